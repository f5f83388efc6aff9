"""Observations that reach a ratio, and derivatives of leakage by the budgets before.

Notation as in `temporaldp.core.kernels.rollouts`.
"""

from __future__ import annotations

import numpy as np

from temporaldp.base.values import BoolArray, FloatArray
from temporaldp.core.kernels.chain import Chain, Items
from temporaldp.core.kernels.rollouts import Rollouts


def observation(chain: Chain, t: int, i: int, j: int, rho: float) -> BoolArray:
    """The states that the output of each earlier step favours to reach the ratio 1 + rho, shape (t, n)."""
    favoured, user = np.zeros((t, chain.n), bool), np.zeros(1, np.int64)
    q, d = (chain.rows(user, user + t, user + k) for k in (i, j))
    c = Rollouts.start(q, d, np.array([rho]), chain.gamma).c
    for s in range(t - 1, -1, -1):
        favoured[s] = c[0] > 0.0
        g = c * (1.0 + np.where(c > 0.0, chain.up[s], chain.down[s]))
        size = np.abs(g).max()
        if s > 0 and size > 0.0:
            c = chain.through(user, user + s, g / size)
    return favoured


@np.errstate(divide="ignore", invalid="ignore")
def derivatives(chain: Chain, items: Items, rho: FloatArray) -> FloatArray:
    """Derivatives of K of each item by the budget of the k-th step before it, shape (m, T - 1); plain releases.

    By the envelope theorem: the share of N that step s raised less the share of D. With c at the root, where
    N = (1 + rho) D, that is the sum of the positive entries of c times the likelihoods x, over N.
    """
    found = np.zeros((len(rho), len(chain.up) - 1))
    for some in chain.blocks(len(rho)):
        here = tuple(one[some] for one in items)
        found[some] = _derivatives(chain, here, rho[some], found.shape[1])  # type: ignore[arg-type]
    return found


def _derivatives(chain: Chain, items: Items, rho: FloatArray, most: int) -> FloatArray:
    user, t, i, j = items
    m, parts, scales = len(rho), [], []
    c = Rollouts.start(chain.rows(user, t, i), chain.rows(user, t, j), rho, chain.gamma).c
    scale = np.zeros(m)
    # Coefficients and likelihoods grow like exp(sum of budgets): each is kept at most 1, and its scale apart.
    for back in range(most):
        s = t - 1 - back
        c = np.where((s >= 0)[:, None], c, 0.0)
        if not ((c > 0.0).any(axis=1) & (c < 0.0).any(axis=1)).any():
            break  # all observations before are alike to both states
        top = np.abs(c).max(axis=1)
        c, scale = np.where(top[:, None] > 0.0, c / top[:, None], 0.0), scale + np.log(np.where(top > 0.0, top, 1.0))
        positive = np.maximum(c, 0.0)
        parts.append(positive)
        scales.append(scale)
        s = np.maximum(s, 0)
        c = chain.through(user, s, c + chain.up[s] * positive)
    found, x, log_scale = np.zeros((m, most)), np.ones((m, chain.n)), np.zeros(m)
    for back in range(len(parts) - 1, -1, -1):
        s = t - 1 - back
        here, at = s >= 0, np.maximum(s, 0)
        if back < len(parts) - 1:
            x = np.where((s > 0)[:, None], chain.before(user, at, x), 1.0)
        x = np.where(here[:, None], x * (1.0 + np.where(parts[back] > 0.0, chain.up[at], 0.0)), 1.0)
        top = x.max(axis=1)
        x, log_scale = x / top[:, None], log_scale + np.log(top)
        found[:, back] = np.where(here, (parts[back] * x).sum(axis=1), 0.0)
        scales[back] = scales[back] + log_scale
    whole = (chain.rows(user, t, i) * x).sum(axis=1)
    for back, one in enumerate(scales):
        found[:, back] *= np.exp(one - log_scale) * (1.0 + rho) / whole
    return found
