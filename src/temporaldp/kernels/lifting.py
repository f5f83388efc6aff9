"""What one step leaks pair by pair: a metric on values, lifted through a transition matrix.

The multiplicative Kantorovich lifting of Chatzikokolakis, Gebler, Palamidessi and Xu (Generalized bisimulation metrics, CONCUR
2014): for every ordered pair (i, j) of rows of P,

    K(b)(i, j) = log max { P_i x / P_j x : x > 0, x_a <= e^b(a, c) x_c for all a, c }.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.kernels.kernels import chosen_kernels, spread
from temporaldp.kernels.profile import LeakageProfile

FloatArray = NDArray[np.float64]
Trees = NDArray[np.int16]

WIDENED = 2.0**-42
"""Share of the largest entry by which constraints are widened while a pair searches: far above rounding, and only there to
break ties. Values are computed on the metric itself."""

MOST_STATES_KEPT = 400
"""States up to which every pair keeps its tree, 2 n^3 bytes (128 MB); with more, each step searches anew."""

MOVES_PER_STATE = 20
"""A search takes about two moves a state from nothing, less than one from the tree before. Ties at hundreds of nats can make it
turn round; it is then stopped, and what flow proves at that point is reported."""

LOSS_ROUNDING = 1e-15
"""Relative: the loss of a profile is exact to rounding, and an upper bound when raised by this."""

PAIR_WORK = 600
"""Entries of a pass over pairs of rows that take as long as one value of one pair, for the choice of threads."""

ALWAYS = 1 << 30
"""More work than any threshold: loops over pairs are never worth interpreting if they can be compiled."""


@dataclass(frozen=True, slots=True, eq=False)
class PairFlow:
    """Why one pair leaks what it leaks: the pairs at the other time that it rests on, heaviest first.

    ``pairs`` (k, 2) are the tight constraints (a, c) of the best tree and `shares` (k,) the derivative of the pair's leakage
    with respect to ``b(a, c)``: at least 0, at most 1 together.
    """

    pairs: NDArray[np.int64]
    shares: FloatArray


def no_trees(n_states: int) -> Trees:
    """Room for the tree of every pair, none of them known yet; no room at all for too many states."""
    kept = n_states + 1 if n_states <= MOST_STATES_KEPT else 0
    return np.zeros((n_states, n_states, kept), dtype=np.int16)


def off_diagonal(n_states: int) -> FloatArray:
    """1 off the diagonal, 0 on it: the metric of plain differential privacy, times epsilon."""
    return 1.0 - np.eye(n_states)


def lifted(
    rows: FloatArray,
    metric: FloatArray,
    profile: LeakageProfile,
    trees: Trees,
    *,
    moves_per_state: int = MOVES_PER_STATE,
) -> FloatArray:
    """K(metric) for all ordered pairs of rows, shape (n, n), zeros on the diagonal; in nats.

    Upper bounds, each proved by flow along a tree: at most ``3 (n + 8) (1 + 2 max(metric))`` roundings of 1.1e-16 above the
    exact value, or more where a pair's search was stopped; above ``profile.loss(metric.max())``, the bound for all pairs, by
    its rounding at most.

    Parameters
    ----------
    rows : array, shape (n, n)
        A transition matrix.
    metric : array, shape (n, n)
        ``b(a, c) >= 0`` bounds the log ratio of the likelihoods of a and c; zeros on the diagonal. Where going through a third
        value is shorter, that counts.
    profile : LeakageProfile
        Of the same matrix.
    trees : array, shape (n, n, n + 1) or (n, n, 0)
        From `no_trees`. Used to start from, and left with the trees of this step.
    moves_per_state : int
        After so many moves for each value a pair's search stops; the bound stays sound.
    """
    n = len(rows)
    largest = float(metric.max())
    upper = np.zeros((n, n))
    if largest == 0.0 or len(profile) == 0:
        return upper
    run = _kernels()
    rows, metric = _plain(rows), _plain(metric)
    work = PAIR_WORK * n * n * n
    if (metric + largest * np.eye(n) == largest).all():
        spread(lambda first, last: run.lift_constant(rows, largest, first, last, upper), n, step=1, work=work)
    else:
        metric = closed(metric)
        wide = _widened(metric, largest)
        moves = moves_per_state * n

        def rows_from(first: int, last: int) -> None:
            run.lift(rows, metric, wide, largest, trees, moves, first, last, upper)

        spread(rows_from, n, step=1, work=work)
    return np.minimum(upper, profile.loss(largest) * (1.0 + LOSS_ROUNDING))


def flow_of(rows: FloatArray, metric: FloatArray, i: int, j: int) -> PairFlow:
    """What ``K(metric)(i, j)`` rests on."""
    q, d = _plain(rows[i]), _plain(rows[j])
    values = np.flatnonzero((q > 0.0) | (d > 0.0))
    b = closed(metric)[np.ix_(values, values)]
    m, level = len(values), float(b.max())
    if level == 0.0 or np.array_equal(q, d):
        return PairFlow(np.zeros((0, 2), np.int64), np.zeros(0))
    floats, ints = np.empty((5, m)), np.empty((4, m), np.int64)
    parent, upper = np.empty(m, np.int64), np.empty(m, np.bool_)
    run = _kernels()
    run.solve(
        q[values], d[values], b, _widened(b, level), level, m, parent, upper, False, MOVES_PER_STATE * m, floats, ints
    )
    pairs, shares = [], []
    u = floats[0]
    lq, ld = _log_sum(q[values], u), _log_sum(d[values], u)
    weight = _shares(q[values], u, lq) - _shares(d[values], u, ld)
    for v in reversed(ints[0].tolist()):
        p = int(parent[v])
        if p >= 0:
            pairs.append((v, p) if upper[v] else (p, v))
            shares.append(max(0.0, weight[v] if upper[v] else -weight[v]))
            weight[p] += weight[v]
    order = np.argsort(-np.array(shares), kind="stable")
    return PairFlow(values[np.array(pairs)[order]], np.array(shares)[order])


def closed(metric: FloatArray) -> FloatArray:
    """The largest metric below that obeys the triangle inequality (Floyd and Warshall): shortest paths, O(n^3)."""
    shortest = metric.copy()
    for k in range(len(metric)):
        np.minimum(shortest, shortest[:, k, None] + shortest[k], out=shortest)
    return shortest


def _plain(array: FloatArray) -> FloatArray:
    """A copy that may be written to, row after row: Numba compiles anew for every other kind of array."""
    return np.array(array, order="C")


def _log_sum(row: FloatArray, u: FloatArray) -> float:
    top = float(u[row > 0.0].max())
    return top + math.log(float((row * np.exp(np.minimum(u - top, 0.0))).sum()))


def _shares(row: FloatArray, u: FloatArray, log_sum: float) -> FloatArray:
    return np.where(row > 0.0, row * np.exp(np.minimum(u - log_sum, 700.0)), 0.0)


def _widened(metric: FloatArray, largest: float) -> FloatArray:
    wide = metric + (WIDENED * largest) * _spreading(len(metric))
    np.fill_diagonal(wide, 0.0)
    return wide


@lru_cache(maxsize=4)
def _spreading(n: int) -> FloatArray:
    """Numbers from 1 to 1.25, the same every time: the triangle inequality then holds strictly."""
    return 1.0 + 0.25 * np.random.default_rng(n).random((n, n))


def _kernels() -> Any:
    """The functions of `temporaldp.kernels.trees`, compiled if they can be."""
    if chosen_kernels(ALWAYS) == "numpy":
        from temporaldp.kernels.trees import lifting as interpreted

        return interpreted
    from temporaldp.kernels.compiled import lifting

    return lifting
