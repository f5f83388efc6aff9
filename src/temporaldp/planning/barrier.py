"""An interior-point method for the optimal plan: a convexified Newton step on a banded system, linear in the horizon.

Notation
--------
z        variables, shape (T, 1 + number of arrivals): column 0 is e, then one v per arrival (`arrivals.py`)
g        constraints, all > 0 inside: one (m, T - 1) array per arrival, then a (T,) array ``level - e - sum of its v`` per user;
         the level is alpha, or less at a first step that earlier ones leave less room
y        their multipliers
mu       weight of the barrier ``-mu sum log g``; falls to nothing
w, p     the loss ``sum_t w_t / e_t^p``; w sums to 1

Every iterate is strictly feasible, so that stopping anywhere gives a plan that holds. The Newton matrix is the Lagrangian's
with its negative curvature left out: positive definite, with blocks that touch neighbouring steps only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temporaldp.planning.arrivals import EARLIER, LATER, Arrival
from temporaldp.values import BoolArray, FloatArray

GAP = 1e-10
"""Relative loss that the last barrier may cost: number of constraints times mu, as a share of the loss."""

FRACTION_TO_BOUNDARY = 0.99

SMALLEST_STEP = 1e-12
CENTRING = 1e10
"""Multipliers stay within this factor of mu / g, so that a poor step cannot freeze the method."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The optimal-plan problem: minimise the loss over budgets whose leakage stays below the levels (U, T), at most alpha."""

    alpha: float
    weights: FloatArray
    power: int
    arrivals: list[Arrival]
    levels: FloatArray

    @property
    def n_users(self) -> int:
        """Number of users U."""
        return len(self.levels)

    @property
    def horizon(self) -> int:
        """Number of steps T."""
        return len(self.weights)

    @property
    def published(self) -> BoolArray:
        """Which steps have a weight; the others get no budget."""
        return self.weights > 0.0

    def loss(self, epsilons: FloatArray) -> float:
        """The weighted mean of ``1 / e^p`` over the published steps."""
        on = self.published
        with np.errstate(divide="ignore"):
            return float((self.weights[on] / epsilons[on] ** self.power).sum())

    def columns(self, user: int) -> list[int]:
        """Columns of z that add up to the user's leakage: e and the user's arrivals."""
        return [0] + [1 + k for k, arrival in enumerate(self.arrivals) if arrival.user == user]

    def constraints(self, z: FloatArray) -> list[FloatArray]:
        """g(z); not a number, and so not positive, where a trial step went far out of range."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = [
                z[c.target, 1 + k] - c.loss(z[c.source, 0] + z[c.source, 1 + k]) for k, c in enumerate(self.arrivals)
            ]
        return found + [level - z[:, self.columns(user)].sum(axis=1) for user, level in enumerate(self.levels)]


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Budgets, and the multipliers that a lower bound can be made of."""

    epsilons: FloatArray
    multipliers: list[FloatArray]


def minimise(program: Program, start: FloatArray) -> Solution:
    """A local minimum from budgets that leak less than alpha."""
    z, fixed = _inside(program, start)
    scale = program.loss(z[:, 0])
    g = program.constraints(z)
    count = sum(part.size for part in g)
    mu = 0.1 / count
    y = [mu / part for part in g]
    for _ in range(400):
        gradient, matrix, slopes = _system(program, z, g, y, mu, scale, fixed)
        move = _solve(matrix, gradient)
        decrease = float((move * gradient).sum())
        step, z_new, g_new = _search(program, z, g, move, mu, scale, decrease)
        y = _multipliers(program, g, y, move, slopes, mu)
        z, g = z_new, g_new
        y = [np.clip(a, mu / (CENTRING * b), CENTRING * mu / b) for a, b in zip(y, g, strict=True)]
        if step <= SMALLEST_STEP:
            break
        # Decrease of the barrier function, as a share of the loss, below which rounding alone is left
        if decrease <= max(0.1 * mu, 1e-14):
            if mu * count <= GAP:
                break
            mu = max(0.2 * mu, 0.5 * GAP / count)
    return Solution(np.where(program.published, z[:, 0], 0.0), [part * scale for part in y])


def _inside(program: Program, start: FloatArray) -> tuple[FloatArray, BoolArray]:
    """A strictly feasible z above `start`, and which of its entries cannot move."""
    z = np.zeros((program.horizon, 1 + len(program.arrivals)))
    fixed = np.zeros(z.shape, dtype=bool)
    z[:, 0], fixed[:, 0] = np.where(program.published, start, 0.0), ~program.published
    for k, arrival in enumerate(program.arrivals):
        z[:, 1 + k] = arrival.arrived(z[:, 0])
        fixed[0 if arrival.backward else -1, 1 + k] = True
    room = min(
        float((level - z[:, program.columns(user)].sum(axis=1)).min()) for user, level in enumerate(program.levels)
    )
    # Slopes of L are at most 1, so that margins which grow along each direction leave every constraint some slack.
    margins = 0.25 * room * np.linspace(0.5, 1.0, program.horizon)
    for k, arrival in enumerate(program.arrivals):
        z[:, 1 + k] += np.where(fixed[:, 1 + k], 0.0, margins if arrival.backward else margins[::-1])
    return z, fixed


def _system(
    program: Program,
    z: FloatArray,
    g: list[FloatArray],
    y: list[FloatArray],
    mu: float,
    scale: float,
    fixed: BoolArray,
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
    for user in range(program.n_users):
        part = len(program.arrivals) + user
        for a in program.columns(user):
            descent[:, a] -= mu / g[part]
            for b in program.columns(user):
                own[:, a, b] += y[part] / g[part]
    _pin(own, next_, descent, fixed)
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


def _search(
    program: Program, z: FloatArray, g: list[FloatArray], move: FloatArray, mu: float, scale: float, decrease: float
) -> tuple[float, FloatArray, list[FloatArray]]:
    """Backtrack until every constraint holds strictly and the barrier function falls."""

    def barrier(at: FloatArray, parts: list[FloatArray]) -> float:
        return program.loss(at[:, 0]) / scale - mu * sum(float(np.log(part).sum()) for part in parts)

    shrinking = move[:, 0] < 0.0
    step = 1.0
    if shrinking.any():
        step = min(1.0, FRACTION_TO_BOUNDARY * float(np.min(-z[shrinking, 0] / move[shrinking, 0])))
    now = barrier(z, g)
    while step > SMALLEST_STEP:
        z_new = z + step * move
        g_new = program.constraints(z_new)
        if all((part > 0.0).all() for part in g_new):
            allowed = now - 1e-4 * step * decrease + 1e-13 * abs(now)
            if barrier(z_new, g_new) <= allowed:
                return step, z_new, g_new
        step *= 0.5
    return 0.0, z, g


def _multipliers(
    program: Program, g: list[FloatArray], y: list[FloatArray], move: FloatArray, slopes: list[FloatArray], mu: float
) -> list[FloatArray]:
    """The primal-dual step of the multipliers, shortened so that they stay positive."""
    changes = [
        move[c.target, 1 + k] - slopes[k] * (move[c.source, 0] + move[c.source, 1 + k])
        for k, c in enumerate(program.arrivals)
    ]
    changes += [-move[:, program.columns(user)].sum(axis=1) for user in range(program.n_users)]
    steps = [mu / b - a - a / b * change for a, b, change in zip(y, g, changes, strict=True)]
    length = 1.0
    for a, step in zip(y, steps, strict=True):
        falling = step < 0.0
        if falling.any():
            length = min(length, FRACTION_TO_BOUNDARY * float(np.min(-a[falling] / step[falling])))
    return [a + length * step for a, step in zip(y, steps, strict=True)]
