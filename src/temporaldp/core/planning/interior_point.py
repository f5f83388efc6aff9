"""An interior-point method for optimal plans: Newton steps on a barrier function, from inside of every constraint.

Notation
--------
x        variables, of the program's own shape
g        slacks, all > 0 inside
y        their multipliers
mu       weight of the barrier ``-mu sum log g``; falls to nothing

Every iterate is strictly feasible, so that stopping anywhere gives a plan that satisfies its level.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from temporaldp.base.progress import still_wanted
from temporaldp.base.values import FloatArray


class Point(NamedTuple):
    """Variables, the slacks there, and what the program keeps of their computation."""

    x: FloatArray
    slacks: list[FloatArray]
    kept: Any = None


class Program(Protocol):
    """Minimisation, under constraints, of a loss that decreases in every budget."""

    def loss(self, x: FloatArray) -> float:
        """Value of the objective."""

    def budgets(self, x: FloatArray) -> FloatArray:
        """The variables that must stay positive."""

    def at(self, x: FloatArray, near: Point) -> Point:
        """The point with these variables."""

    def newton(
        self, point: Point, y: list[FloatArray], mu: float, scale: float
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Negative gradient of ``loss / scale - mu sum log g``, Newton's step, and the change of each slack along it."""


def minimise(
    program: Program, start: Point, *, gap: float, centred: float = 0.1, shortest: float = 0.0
) -> tuple[FloatArray, list[FloatArray]]:
    """A local minimum and its multipliers, from a point inside.

    `gap` is the relative loss that the last barrier may cost. Within `centred` times mu of its minimum, and where a share of at
    most `shortest` of a step is taken, as at kinks, the barrier function counts as minimised, and mu falls.
    """
    now, scale = start, program.loss(start.x)
    count = sum(part.size for part in now.slacks)
    mu = 0.1 / count
    y = [mu / part for part in now.slacks]
    for _ in range(400):
        still_wanted()
        descent, move, changes = program.newton(now, y, mu, scale)
        decrease = float((move * descent).sum())
        step, after = _search(program, now, move, mu, scale, decrease)
        y = _multipliers(y, now.slacks, changes, mu)
        now = after
        # Multipliers stay within this factor of mu / g, so that a poor step cannot freeze the method
        y = [np.clip(a, mu / (1e10 * b), 1e10 * mu / b) for a, b in zip(y, now.slacks, strict=True)]
        # A decrease of this share of the loss is rounding
        if step <= shortest or decrease <= max(centred * mu, 1e-14):
            if mu * count <= gap:
                break
            mu = max(0.2 * mu, 0.5 * gap / count)
    return now.x, [part * scale for part in y]


def _search(
    program: Program, now: Point, move: FloatArray, mu: float, scale: float, decrease: float
) -> tuple[float, Point]:
    """Backtrack until every slack is positive and the barrier function falls."""

    def barrier(point: Point) -> float:
        return program.loss(point.x) / scale - mu * sum(float(np.log(part).sum()) for part in point.slacks)

    value, step = barrier(now), _largest_step([program.budgets(now.x)], [program.budgets(move)])
    while step > 1e-12:
        tried = program.at(now.x + step * move, now)
        is_inside = all((part > 0.0).all() for part in tried.slacks)
        if is_inside and barrier(tried) <= value - 1e-4 * step * decrease + 1e-13 * abs(value):
            return step, tried
        step *= 0.5
    return 0.0, now


def _multipliers(y: list[FloatArray], g: list[FloatArray], changes: list[FloatArray], mu: float) -> list[FloatArray]:
    """The primal-dual step of the multipliers, shortened so that they stay positive."""
    steps = [mu / b - a - a / b * change for a, b, change in zip(y, g, changes, strict=True)]
    length = _largest_step(y, steps)
    return [a + length * step for a, step in zip(y, steps, strict=True)]


def _largest_step(positive: list[FloatArray], steps: list[FloatArray]) -> float:
    """The largest share of steps, up to 1, that goes at most 99 % of the way to where a positive number is 0."""
    furthest = 1.0
    for one, step in zip(positive, steps, strict=True):
        falling = step < 0.0
        with np.errstate(divide="ignore", over="ignore"):  # a fall below the resolution of doubles has no end
            ends = (one[falling] / -step[falling]).min(initial=np.inf)
        furthest = min(furthest, 0.99 * float(ends))
    return furthest
