"""The observation that tells two values apart best: whom its steps speak for, and how leakage grows with each step's budget.

Notation as in `temporaldp.kernels.rollouts`, which finds the ratio that this observation reaches.
"""

from __future__ import annotations

import numpy as np

from temporaldp.kernels.chain import BoolArray, Chain, FloatArray, IntArray, Items

DERIVATIVE_BLOCK = 1 << 22
"""Numbers that are kept at once for derivatives."""


def derivatives(chain: Chain, items: Items, rho: FloatArray, most: int) -> FloatArray:
    """How K of each item grows with the budget of each step before it, shape (m, most): column k for step t - 1 - k.

    By the envelope theorem: the share of N in what step s raised, less the share of D. With ``c = u - (1 + rho) v`` at
    the root, where N = (1 + rho) D, that is the sum of c's positive part times x, over N. Plain releases only.
    """
    m, n = len(items), chain.n
    found = np.zeros((m, most))
    length = max(1, DERIVATIVE_BLOCK // (n * max(1, most)))
    for first in range(0, m, length):
        block = slice(first, first + length)
        found[block] = _derivatives(
            chain, items[block], rho[block], min(most, int(items.t[block].max(initial=0))), most
        )
    return found


def _derivatives(chain: Chain, items: Items, rho: FloatArray, depth: int, most: int) -> FloatArray:
    """One block: c is rolled back and its positive parts are kept; then x comes forward again."""
    found = np.zeros((len(items), most))
    if depth == 0:
        return found
    scale = 1.0 / (1.0 + rho)
    q, d = chain.rows(items.t, items.i), chain.rows(items.t, items.j)
    c = (q - d) * scale[:, None] - (rho * scale)[:, None] * d
    parts = np.zeros((depth, *c.shape))
    for k in range(depth):
        s = items.t - 1 - k
        here = s >= 0
        at = np.maximum(s, 0)
        parts[k] = np.where(here[:, None], np.maximum(c, 0.0), 0.0)
        c = chain.through(chain.matrices, c + chain.up[at] * parts[k], at)
    x = np.ones_like(c)
    log_scale = np.zeros(len(items))
    scales = np.zeros((depth, len(items)))
    for k in range(depth - 1, -1, -1):
        s = items.t - 1 - k
        here = s >= 0
        at = np.maximum(s, 0)
        before = _back(chain, x, at)
        x = np.where(here[:, None], np.where((at > 0)[:, None], before, 1.0), 1.0)
        x = x * (1.0 + chain.up[at] * (parts[k] > 0.0))
        top = x.max(axis=1)
        x /= top[:, None]
        log_scale += np.log(top)
        scales[k] = log_scale
        found[:, k] = (parts[k] * x).sum(axis=1)
    whole = (q * x).sum(axis=1) * scale
    found[:, :depth] *= np.exp(scales - log_scale).T / whole[:, None]
    return found


def _back(chain: Chain, columns: FloatArray, s: IntArray) -> FloatArray:
    """The matrix of the transition into its step times each column."""
    if len(chain.matrices) == 1:
        return np.asarray((chain.matrices[0] @ columns.T).T)
    which = chain.into[s]
    result = np.empty_like(columns)
    for number in np.unique(which):
        here = which == number
        result[here] = (chain.matrices[number] @ columns[here].T).T
    return result


def observation(chain: Chain, t: int, i: int, j: int, rho: float) -> BoolArray:
    """Which values every earlier step's output must speak for to reach the ratio 1 + rho: shape (t, n), row s for step s."""
    q, d = chain.rows(np.array([t, t]), np.array([i, j]))
    c = (q - d) / (1.0 + rho) - rho / (1.0 + rho) * d
    raised = np.zeros((t, chain.n), bool)
    first = _starts_of_runs(chain, t)
    s = t - 1
    while s >= 0:
        raised[s] = c > 0.0
        before = c * (1.0 + np.where(raised[s], chain.up[s], chain.down[s]))
        if s:
            before = before @ chain.matrices[chain.into[s]]
            before /= max(np.abs(before).max(), np.finfo(np.float64).tiny)
        if s > first[s] and np.array_equal(before, c):  # and so at all steps of the run
            raised[first[s] : s] = raised[s]
            s = int(first[s])
        else:
            c, s = before, s - 1
    return raised


def _starts_of_runs(chain: Chain, t: int) -> IntArray:
    """For each of the first t steps, the first one of those up to it that have its boxes and its matrix."""
    steps = np.arange(t)
    changed = np.zeros(t, bool)
    for one in (chain.up[:t], chain.down[:t], chain.into[:t, None]):
        changed[1:] |= (one[1:] != one[:-1]).any(axis=1)
    return np.maximum.accumulate(np.where(changed, steps, 0))
