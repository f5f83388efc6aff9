"""What arrives through matrices that are known up to intervals, the worst of them chosen anew at every step: upper bounds.

Notation
--------
R_k         row polytope: all distributions between row k of low and of high
x           likelihoods of everything up to a step, up to a common factor; min x = 1
U_k, L_k    the largest and the smallest p x over p in R_k: what is free goes to the largest, or to the smallest entries of x
a           spread: x lies in [1, e^a]^n; Y = e^a - 1
c           coefficients of N - r D, rolled from the near end; w the same times the largest or smallest factor of the output

Given everything before, the likelihoods of one step lie in a product of intervals, ``x'_k in [L_k(x), e^e U_k(x)]``, whatever
the mechanism and the matrix: rows vary independently. ``N - r D`` is linear in each of them, so that each is at one of its
ends. `by_sets` tries every set of ends at every step (exact to its depth). `by_rows` rolls coefficients instead, with linear
bounds of U and L. The proofs are in docs/theory.md, section 12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.kernels.interval_profile import every_set
from temporaldp.kernels.kernels import chosen_kernels
from temporaldp.kernels.kernels import spread as spread_over

FloatArray = NDArray[np.float64]
Bounds: TypeAlias = tuple[FloatArray, FloatArray]
"""Bounds of a matrix: low and high, shape (n, n) each."""

MOST_VECTORS = 1 << 15
"""Vectors of likelihoods that `by_sets` goes through at a step; its depth follows from it."""

DEEPEST = 8
"""Steps that are looked back at most: what lies further away hardly counts."""

MOST_STATES = 64
"""Values up to which more than the profile is computed."""

LARGEST_SPREAD = 300.0
"""Nats that likelihoods may be apart, of everything or of some steps; beyond, numbers would overflow: the spread is given."""

DEPTHS = (1, 2, 3)
"""Steps that `by_rows` looks back: its linear bounds lose a little at every step, so that more do not help."""

AT_ONCE = 64
"""Pairs whose bounds `by_rows` improves together, those with the largest first."""

HALVINGS, FIRST_HALVINGS = 18, 7
"""Of the interval in which a pair's ratio lies: for the pairs that matter, and for all at first."""

U = float(np.finfo(np.float64).eps)


def enumerates(n: int) -> bool:
    """Whether `arrival` tries every set of values at every step, rather than rolling coefficients."""
    return bool(2 ** (2 * n) <= MOST_VECTORS)


def depth(n: int) -> int:
    """Steps before the last that are looked at."""
    by_enumeration = int(math.log2(MOST_VECTORS)) // n - 1
    return min(by_enumeration, DEEPEST) if by_enumeration >= 1 else max(DEPTHS)


def arrival(matrices: Sequence[Bounds], epsilons: Sequence[float], spreads: Sequence[float]) -> FloatArray:
    """Upper bounds of what arrives about each ordered pair of values, shape (n, n), zeros on the diagonal; in nats.

    Parameters
    ----------
    matrices : sequence of D + 1 pairs of bounds
        Of the transition into the step in question, then of the one before, and so on.
    epsilons : sequence of D floats
        What the steps before spent, the nearest first.
    spreads : sequence of D + 1 floats
        ``spreads[k]`` bounds the log ratios of the likelihoods of everything up to the step k + 1 before the one in question.
    """
    n = len(matrices[0][0])
    back = min(depth(n), len(epsilons))
    if max(spreads[k] + sum(epsilons[:k]) for k in range(back + 1)) > LARGEST_SPREAD:
        return np.where(np.eye(n, dtype=bool), 0.0, spreads[0])
    if enumerates(n):
        return by_sets(matrices[: back + 1], epsilons[:back], spreads[back])
    return by_rows(matrices, epsilons, spreads, back)


def by_sets(matrices: Sequence[Bounds], epsilons: Sequence[float], spread: float) -> FloatArray:
    """`arrival` with every set of values whose likelihood is at its upper end, at each of the D + 1 steps.

    The exact supremum over all matrices and mechanisms if the likelihoods furthest away may be anything in
    ``[1, e^spread]^n``; rounded upwards. Vectors of likelihoods are columns, so that what is done to a value is contiguous.
    """
    n = len(matrices[0][0])
    sets = np.vstack((np.zeros(n), every_set(n), np.ones(n))).T
    x = 1.0 + math.expm1(spread) * sets
    for bounds, epsilon in zip(matrices[:0:-1], epsilons[::-1], strict=True):
        largest, smallest = extremes(bounds, x)
        largest *= math.exp(epsilon)
        raised = sets[:, :, None] > 0.0
        x = np.where(raised, largest[:, None, :], smallest[:, None, :]).reshape(n, -1)
    largest, smallest = extremes(matrices[0], x)
    inverse = 1.0 / smallest
    found = np.array([[(largest[i] * inverse[j]).max() for j in range(n)] for i in range(n)])
    # Each step rounds a sum of n products, a factor and a quotient, all positive.
    arrived = np.log(found) + 4.0 * (n + 8) * (len(epsilons) + 2) * U
    np.fill_diagonal(arrived, 0.0)
    return np.asarray(np.maximum(arrived, 0.0))


def extremes(bounds: Bounds, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """U and L of every row at each of m vectors (columns of x), shape (n, m) each; what is free is rounded outwards."""
    low, high = bounds
    free, room = 1.0 - low.sum(axis=1), 2.0 * (len(low) + 2) * U
    more, less = free + room, np.maximum(free - room, 0.0)
    if chosen_kernels(x.size * len(low)) == "numba":
        from temporaldp.kernels.compiled.extremes import extremes as run

        low, high, x = (np.ascontiguousarray(one) for one in (low, high, x))
        largest, smallest = np.empty_like(x), np.empty_like(x)
        spread_over(
            lambda first, last: run(low, high, more, less, x, first, last, largest, smallest),
            x.shape[1],
            step=1,
            work=x.size * len(low) * 4,
        )
        return largest, smallest
    order = np.argsort(-x, axis=0)
    falling = np.take_along_axis(x, order, axis=0)
    largest = low @ x
    smallest = largest.copy()
    for k in range(len(low)):
        reach = (high[k] - low[k])[order]
        for value, way, mass in ((largest, 1, more[k]), (smallest, -1, less[k])):
            filled = np.minimum(np.cumsum(reach[::way], axis=0), mass)
            value[k] += filled[0] * falling[::way][0] + (np.diff(filled, axis=0) * falling[::way][1:]).sum(axis=0)
    return largest, smallest


def by_rows(matrices: Sequence[Bounds], epsilons: Sequence[float], spreads: Sequence[float], back: int) -> FloatArray:
    """`arrival` by rolling the coefficients of N - r D with linear bounds of U and L, for any number of values.

    Pairs are improved in the order of a rough bound, until no other can be the largest.
    """
    n = len(matrices[0][0])
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    ceiling = np.full(len(i), math.expm1(spreads[0]))
    rough = _root(matrices[:1], (), spreads[0], i, j, ceiling, FIRST_HALVINGS)
    order = np.argsort(-rough, kind="stable")
    largest = 0.0
    for first in range(0, len(order), AT_ONCE):
        some = order[first : first + AT_ONCE]
        if rough[some[0]] <= largest:
            break
        for d in DEPTHS:
            if d <= back:
                rough[some] = _root(
                    matrices[: d + 1], epsilons[:d], spreads[d], i[some], j[some], rough[some], HALVINGS
                )
        largest = max(largest, float(rough[some].max()))
    arrived = np.zeros((n, n))
    arrived[i, j] = np.log1p(rough) * (1.0 + 8.0 * U)
    return arrived


def _root(
    matrices: Sequence[Bounds],
    epsilons: Sequence[float],
    spread: float,
    i: NDArray[np.int64],
    j: NDArray[np.int64],
    ceiling: FloatArray,
    halvings: int,
) -> FloatArray:
    """For each pair the smallest ratio less 1 that was proved, from `ceiling` downwards."""
    proved, below = ceiling.copy(), np.zeros_like(ceiling)
    for _ in range(halvings):
        middle = 0.5 * (proved + below)
        holds = _largest_value(matrices, epsilons, spread, i, j, middle) <= 0.0
        proved, below = np.where(holds, middle, proved), np.where(holds, below, middle)
    return proved


def _largest_value(
    matrices: Sequence[Bounds],
    epsilons: Sequence[float],
    spread: float,
    i: NDArray[np.int64],
    j: NDArray[np.int64],
    rho: FloatArray,
) -> FloatArray:
    """Upper bounds of ``N - (1 + rho) D`` for each pair, in units of the smallest likelihood furthest away."""
    n = len(matrices[0][0])
    at = np.arange(len(i))
    w = np.zeros((len(i), n))
    w[at, i], w[at, j] = 1.0, -(1.0 + rho)
    value, size = -rho, np.abs(rho)
    for depth_here, bounds in enumerate(matrices):
        widest = math.expm1(spread + math.fsum(epsilons[depth_here:]))
        c, constant = _through(bounds, w, widest)
        value, size = value + constant, size + constant + widest * np.abs(c).sum(axis=1)
        high = np.maximum(c, 0.0)
        if depth_here == len(epsilons):
            value = value + widest * high.sum(axis=1)
        else:
            lift = math.expm1(epsilons[depth_here])
            value = value + lift * high.sum(axis=1)
            w = c + lift * high
    return np.asarray(value + 8.0 * (n + 8) * (len(epsilons) + 2) * U * size)


def _through(bounds: Bounds, w: FloatArray, widest: float) -> tuple[FloatArray, FloatArray]:
    """Coefficients c and a constant with ``sum_k w_k (p_k x - 1) <= constant + c (x - 1)`` for all rows and all x in the cube.

    For a positive weight, ``p (x - 1)`` is at most ``high (x - 1)``, and at most ``low (x - 1)`` and all that is free times
    `widest`; for a negative one it is at least ``low (x - 1)``, and ``high (x - 1)`` less what is too much times `widest`. For
    each row that one is taken which is better if the high side of x is where c was positive before.
    """
    low, high = bounds
    free, over = np.maximum(1.0 - low.sum(axis=1), 0.0), np.maximum(high.sum(axis=1) - 1.0, 0.0)
    up, down = np.maximum(w, 0.0), np.maximum(-w, 0.0)
    inside = (up @ (low + high) - down @ (low + high) > 0.0).astype(np.float64)
    best = None
    for _ in range(2):
        of_low, of_high = inside @ low.T, inside @ high.T
        by_low, by_high = of_low + free < of_high, of_high - over > of_low
        up_low, down_high = up * by_low, down * by_high
        c = (up - up_low + 0.0) @ high + up_low @ low - (down - down_high) @ low - down_high @ high
        constant = widest * (up_low @ free + down_high @ over)
        total = constant + widest * np.maximum(c, 0.0).sum(axis=1)
        if best is None:
            best = total, c, constant
        else:
            better = total < best[0]
            best = (
                np.minimum(total, best[0]),
                np.where(better[:, None], c, best[1]),
                np.where(better, constant, best[2]),
            )
        inside = (c > 0.0).astype(np.float64)
    assert best is not None
    return best[1], best[2]
