"""The optimal plan by the paper's bound, for the interior-point method: a convexified Newton step, linear in the horizon.

Notation
--------
z        variables, shape (T, 1 + number of arrivals): column 0 is e, then one v per arrival (`arrivals.py`)
g        constraints, all > 0 inside: one (m, T - 1) array per arrival, then a (T,) array ``level - e - sum of its v`` per user;
         the level is alpha, or less at a first step that earlier ones leave less room
y, mu    their multipliers, and the weight of the barrier (`interior_point.py`)
w, p     the loss ``sum_t w_t / e_t^p``; w sums to 1

The Newton matrix is the Lagrangian's with its negative curvature left out: positive definite, with blocks that touch
neighbouring steps only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temporaldp.base.values import BoolArray, FloatArray
from temporaldp.core.planning import interior_point
from temporaldp.core.planning.arrivals import EARLIER, LATER, Arrival
from temporaldp.core.planning.interior_point import Point


@dataclass(frozen=True, slots=True, eq=False)
class PaperProgram:
    """The optimal-plan problem: minimise the loss over budgets whose leakage stays below the levels (U, T), at most alpha."""

    alpha: float
    weights: FloatArray
    power: int
    arrivals: list[Arrival]
    levels: FloatArray

    @property
    def horizon(self) -> int:
        """Number of steps T."""
        return len(self.weights)

    @property
    def published(self) -> BoolArray:
        """Mask of steps with a weight; the others get no budget."""
        return self.weights > 0.0

    @property
    def fixed(self) -> BoolArray:
        """Mask of the variables that cannot move."""
        fixed = np.zeros((self.horizon, 1 + len(self.arrivals)), dtype=bool)
        fixed[:, 0] = ~self.published
        for k, arrival in enumerate(self.arrivals):
            fixed[0 if arrival.backward else -1, 1 + k] = True
        return fixed

    def budgets(self, x: FloatArray) -> FloatArray:
        """The budgets of the published steps."""
        return np.asarray(x[self.published, 0])

    def loss(self, x: FloatArray) -> float:
        """The weighted mean of ``1 / e^p`` over the published steps."""
        with np.errstate(divide="ignore"):
            return float((self.weights[self.published] / self.budgets(x) ** self.power).sum())

    def at(self, x: FloatArray, near: Point | None = None) -> Point:
        """The point with these variables; NaN, which is not positive, where a trial step is far out of range."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = [
                x[c.target, 1 + k] - c.loss(x[c.source, 0] + x[c.source, 1 + k]) for k, c in enumerate(self.arrivals)
            ]
        return Point(x, found + [level - x[:, self.columns(u)].sum(axis=1) for u, level in enumerate(self.levels)])

    def newton(
        self, point: Point, y: list[FloatArray], mu: float, scale: float
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Negative gradient, the convexified Newton step, and the change of each constraint along it."""
        descent, bands, slopes = _system(self, point.x, point.slacks, y, mu, scale)
        move = _solve(bands, descent)
        changes = [
            move[c.target, 1 + k] - slopes[k] * (move[c.source, 0] + move[c.source, 1 + k])
            for k, c in enumerate(self.arrivals)
        ]
        return descent, move, changes + [-move[:, self.columns(u)].sum(axis=1) for u in range(len(self.levels))]

    def columns(self, user: int) -> list[int]:
        """Columns of z that add up to the user's leakage: e and the user's arrivals."""
        return [0] + [1 + k for k, arrival in enumerate(self.arrivals) if arrival.user == user]


def minimise(program: PaperProgram, start: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """Budgets of a locally minimal loss, from budgets that leak less than alpha; and multipliers for a lower bound."""
    # Relative loss that the last barrier may cost: number of constraints times mu, as a share of the loss
    found, multipliers = interior_point.minimise(program, program.at(_inside(program, start)), gap=1e-10)
    return np.where(program.published, found[:, 0], 0.0), multipliers


def _inside(program: PaperProgram, start: FloatArray) -> FloatArray:
    """A strictly feasible z above `start`."""
    fixed = program.fixed
    z = np.zeros(fixed.shape)
    z[:, 0] = np.where(program.published, start, 0.0)
    for k, arrival in enumerate(program.arrivals):
        z[:, 1 + k] = arrival.arrived(z[:, 0])
    room = min(
        float((level - z[:, program.columns(user)].sum(axis=1)).min()) for user, level in enumerate(program.levels)
    )
    # Slopes of L are at most 1, so that margins which grow along each direction leave every constraint some slack.
    margins = 0.25 * room * np.linspace(0.5, 1.0, program.horizon)
    for k, arrival in enumerate(program.arrivals):
        z[:, 1 + k] += np.where(fixed[:, 1 + k], 0.0, margins if arrival.backward else margins[::-1])
    return z


def _system(
    program: PaperProgram,
    z: FloatArray,
    g: list[FloatArray],
    y: list[FloatArray],
    mu: float,
    scale: float,
) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
    """Negative gradient of the barrier function, the Newton matrix in banded form, and the slopes of the losses."""
    w, p, on = program.weights, program.power, program.published
    horizon, width = z.shape
    descent = np.zeros(z.shape)
    own = np.zeros((horizon, width, width))
    next_ = np.zeros((max(horizon - 1, 0), width, width))
    descent[on, 0] = p * w[on] / z[on, 0] ** (p + 1) / scale
    own[on, 0, 0] = p * (p + 1) * w[on] / z[on, 0] ** (p + 2) / scale
    slopes = []
    for k, arrival in enumerate(program.arrivals):
        column = 1 + k
        first, second = arrival.slopes(z[arrival.source, 0] + z[arrival.source, column])
        pull, stiff = mu / g[k], y[k] / g[k]
        descent[arrival.target, column] += pull.sum(axis=0)
        own[arrival.target, column, column] += stiff.sum(axis=0)
        push = (first * pull).sum(axis=0)
        bend = (stiff * first * first + np.maximum(y[k] * second, 0.0)).sum(axis=0)
        cross = (stiff * first).sum(axis=0)
        for a in (0, column):
            descent[arrival.source, a] -= push
            for b in (0, column):
                own[arrival.source, a, b] += bend
            if arrival.backward:
                next_[:, a, column] -= cross
            else:
                next_[:, column, a] -= cross
        slopes.append(first)
    for user in range(len(program.levels)):
        part = len(program.arrivals) + user
        for a in program.columns(user):
            descent[:, a] -= mu / g[part]
            for b in program.columns(user):
                own[:, a, b] += y[part] / g[part]
    _pin(own, next_, descent, program.fixed)
    return descent, _banded(own, next_), slopes


def _pin(own: FloatArray, next_: FloatArray, descent: FloatArray, fixed: BoolArray) -> None:
    """Rows and columns of entries that cannot move become those of the identity."""
    own[fixed[:, :, None] | fixed[:, None, :]] = 0.0
    rows, columns = np.nonzero(fixed)
    own[rows, columns, columns] = 1.0
    next_[fixed[EARLIER, :, None] | fixed[LATER, None, :]] = 0.0
    descent[fixed] = 0.0


def _banded(own: FloatArray, next_: FloatArray) -> FloatArray:
    """Upper banded storage of the symmetric matrix with diagonal blocks `own` and blocks `next_` to their right."""
    horizon, width, _ = own.shape
    bands = np.zeros((2 * width, horizon * width))
    for a in range(width):
        for b in range(a, width):
            bands[2 * width - 1 + a - b, b::width] = own[:, a, b]
        for b in range(width):
            bands[width - 1 + a - b, width + b :: width] = next_[:, a, b]
    return bands


def _solve(bands: FloatArray, descent: FloatArray) -> FloatArray:
    from scipy.linalg import LinAlgError, solveh_banded

    diagonal = bands[-1]
    for shift in (0.0, 1e-12, 1e-9, 1e-6):  # rounding can make the last pivots vanish; a shift costs only speed
        shifted = bands.copy()
        shifted[-1] = diagonal * (1.0 + shift)
        try:
            return np.asarray(solveh_banded(shifted, descent.ravel()), dtype=np.float64).reshape(descent.shape)
        except (LinAlgError, ValueError):  # singular, or out of range
            continue
    return np.asarray(descent / diagonal.reshape(descent.shape), dtype=np.float64)
