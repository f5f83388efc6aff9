"""Certificate of optimality: a lower bound on the loss of every plan that satisfies alpha-DP_T.

Notation
--------
e, v, L_h    as in `arrivals.py`; B = e + v for each arrival
y            multipliers >= 0 of the solver's constraints, any at all
cells        of an increasing function, shape (2, GRID_CELLS): values at the left end of each, and lower bounds of slopes there

**Weak duality.** For every feasible plan, the loss is at least the loss minus multipliers times (non-negative) constraints.
With B in place of v that Lagrangian is a sum of functions of one variable each: one of every e_t, and for every arrival one of
every B_t, ``(a linear term) + sum_h y_h L_h(B_t)``. Their minima over [0, alpha] add up to a bound for *every* plan, though
the problem is not convex. (The constraint B >= e is dropped, which can only lower the bound.) Where an arrival starts, B = e.

Minima are taken cell by cell of a grid: L_h increases, and its slope rises and then falls, so that on a cell the slope is at
least its smaller value at the two ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from temporaldp.base.values import FloatArray
from temporaldp.core.planning.arrivals import Arrival
from temporaldp.core.planning.barrier import PaperProgram

GRID_CELLS = 1500
"""Cells of the grid on [0, alpha]; the error falls with their square."""


def lower_bound(program: PaperProgram, multipliers: list[FloatArray]) -> float:
    """Lower bound of the loss of every plan with temporal leakage at most alpha, but for the last rounding."""
    users = [np.maximum(part, 0.0) for part in multipliers[len(program.arrivals) :]]
    grid = np.linspace(0.0, program.alpha, GRID_CELLS + 1)
    total = -program.alpha * sum(float(part.sum()) for part in users)
    tilt = sum(users, np.zeros(program.horizon))  # coefficient of e_t
    at_ends = {0: np.zeros((2, GRID_CELLS)), program.horizon - 1: np.zeros((2, GRID_CELLS))}
    size = program.alpha * float(tilt.sum())
    for k, arrival in enumerate(program.arrivals):
        y = np.maximum(multipliers[k], 0.0)
        incoming = np.zeros(program.horizon)
        incoming[arrival.target] = y.sum(axis=0)
        coefficient = users[arrival.user] - incoming  # of v_t, hence of B_t, and minus that of e_t
        start = 0 if arrival.backward else program.horizon - 1
        for step, cells in _outgoing(program, arrival, y, grid):
            if step == start:
                at_ends[step] = at_ends[step] + cells
            else:
                total += _least(cells, float(coefficient[step]), grid)
        last = program.horizon - 1 - start
        if last != start:
            total += min(0.0, float(coefficient[last]) * program.alpha)
        moved = np.ones(program.horizon, dtype=bool)
        moved[start] = False
        tilt[moved] -= coefficient[moved]
        size += program.alpha * float(np.abs(coefficient).sum())
    total += _budget_terms(program, tilt, at_ends, grid)
    # Relative amount taken off for the rounding of the sums
    return total - 1e-12 * (abs(total) + size)


def _outgoing(
    program: PaperProgram, arrival: Arrival, y: FloatArray, grid: FloatArray
) -> Iterator[tuple[int, FloatArray]]:
    """For each source step, the cells of ``sum_h y_h L_h``."""
    constant = arrival.d.shape[1] == 1
    for k, step in enumerate(range(program.horizon)[arrival.source]):
        if k == 0 or not constant:
            column = slice(0, 1) if constant else slice(k, k + 1)
            one = Arrival(arrival.user, arrival.backward, arrival.d[:, column], arrival.x[:, column])
            height, slope = one.loss(grid)[:, :-1], one.slopes(grid)[0]
            least = np.minimum(slope[:, :-1], slope[:, 1:])
        yield step, np.stack((y[:, k] @ height, y[:, k] @ least))


def _least(cells: FloatArray, coefficient: float, grid: FloatArray) -> float:
    """Lower bound of ``min over [0, alpha] of coefficient B + function(B)``."""
    value, slope = cells
    at_left = coefficient * grid[:-1] + value
    return float((at_left + np.minimum(0.0, (coefficient + slope) * (grid[1] - grid[0]))).min())


def _budget_terms(program: PaperProgram, tilt: FloatArray, at_ends: dict[int, FloatArray], grid: FloatArray) -> float:
    """Minima over e_t of ``w_t / e^p + tilt_t e``, and at the two ends of what starts there as well."""
    total = 0.0
    p, alpha = program.power, program.alpha
    inner = program.published.copy()
    inner[list(at_ends)] = False
    w, c = program.weights[inner], tilt[inner]
    best = np.full(len(w), alpha)
    best[c > 0] = np.minimum(alpha, (p * w[c > 0] / c[c > 0]) ** (1.0 / (p + 1)))
    total += float((w / best**p + c * best).sum())
    width, right = grid[1] - grid[0], grid[1:]
    for step, (value, rise) in at_ends.items():
        if not program.published[step]:
            continue  # e = 0 there, and every L_h(0) = 0
        # 1 / e^p is convex: its tangent at the right end of a cell lies below it on the cell.
        weight = program.weights[step]
        slope = -p * weight / right ** (p + 1) + tilt[step] + rise
        at_left = weight / right**p + p * weight / right ** (p + 1) * width + tilt[step] * grid[:-1] + value
        total += float((at_left + np.minimum(0.0, slope * width)).min())
    return total
