"""The exact leakage beside the paper's recursion: what each figure's curves are by the definition itself."""

from __future__ import annotations

import numpy as np

from temporaldp import Adversary, TransitionMatrix, leakage_supremum, temporal_leakage
from temporaldp.accounting.exact.arrivals import rows_of
from temporaldp.accounting.exact.evidence import pair_values
from temporaldp.kernels.exact import Chain
from temporaldp.paper.exhibit import FloatArray

EXACT = "exact"
"""Name of the curves, one for each curve of the paper's."""

SOURCE = "temporal_leakage(bound='exact')"
ONE_PAIR = "the sign rule for one pair of values, which are all alike"
BOTH_PAIRS = "the sign rule for both pairs of values"
PLAN = "plan_budget(method='optimal', bound='exact')"
SOURCES = (SOURCE, ONE_PAIR, BOTH_PAIRS, PLAN)
"""How the exact curves are computed."""

ROOM = 1.0 + 1e-6
"""Bounds that rollouts end in are raised by this."""


def exact_backward(matrix: TransitionMatrix, epsilon: float, steps: FloatArray, *, alike: bool = False) -> FloatArray:
    """Exact BPL in nats at some steps (from 1) of a constant budget, as `temporal_leakage` gives at every step.

    With `alike`, any two values can be renamed into any other two without changing the matrix, and one pair is enough.
    """
    n_steps = int(steps.max())
    budgets = np.full(n_steps, epsilon)
    spread = temporal_leakage(Adversary(backward=matrix), epsilons=budgets, bound="paper").backward * ROOM
    up, down = np.full((n_steps, 1), np.expm1(epsilon)), np.zeros((n_steps, 1))
    chain = Chain.of((rows_of(matrix),), np.zeros(n_steps, np.int64), up, down, spread)
    i, j = _pairs(chain.n, alike)
    at = steps.astype(np.int64) - 1
    each = pair_values(chain, np.repeat(at, len(i)), np.tile(i, len(at)), np.tile(j, len(at)))[1]
    found: FloatArray = each.reshape(len(at), -1).max(axis=1) + epsilon
    return found


def exact_supremum(matrix: TransitionMatrix, epsilon: float) -> float:
    """Exact supremum of BPL in nats, for a matrix whose pairs of values are all alike."""
    limit = leakage_supremum(Adversary(backward=matrix), epsilon=epsilon, bound="paper").backward
    up, down = np.full((1, 1), np.expm1(epsilon)), np.zeros((1, 1))
    chain = Chain.of((rows_of(matrix),), np.zeros(1, np.int64), up, down, np.array([limit * ROOM]), endless=True)
    i, j = _pairs(chain.n, alike=True)
    return float(pair_values(chain, np.zeros(1, np.int64), i, j)[1][0]) + epsilon


def _pairs(n: int, alike: bool) -> tuple[np.ndarray, np.ndarray]:
    if alike:
        return np.array([0]), np.array([1])
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    return i, j
