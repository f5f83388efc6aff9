"""Allocation of noise at a delta over a known horizon, by derivatives of the leakage of one curve for all pairs.

The mean scale is minimised by sequential quadratic programming over the logarithms of scales, subject to the leakage of every
step. Derivatives are differences: where one release changes, incoming leakage after it and before it changes until the release
is forgotten, and everything else is known. A coarse grid suffices, as only the shape is taken from here: the planner scales it
by its own accounting, on its own grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.curve.arrivals import Curves, SingleCurve, arriving_curves
from temporaldp.core.accounting.curve.evidence import Run
from temporaldp.core.accounting.curve.grid import raised_by
from temporaldp.core.accounting.protocol import SIDES
from temporaldp.core.correlation import Adversary
from temporaldp.core.mechanisms.protocol import Mechanisms
from temporaldp.core.planning.histogram_noise import Noise, histogram_profile

ENDS = 12
"""Steps at each end with scales of their own; those between share one, as they have much the same past and future."""

NUDGE = 5e-3
"""Relative change of a scale by which leakage is differentiated."""


def least_shape(
    users: Sequence[Adversary],
    noise: Noise,
    start: FloatArray,
    *,
    alpha: float,
    delta: float,
    tighter: FloatArray | None = None,
) -> FloatArray | None:
    """Scales with about the least mean that satisfy alpha by one curve, from a start that does; None where none are found.

    `tighter`, shape (users, T), is the leakage of the start by another accounting; one curve is then taken for as much too high
    at every step as at the start.
    """
    from scipy.optimize import minimize

    steps = np.arange(start.size)
    groups = np.minimum(steps, np.maximum(ENDS, steps - max(start.size - 2 * ENDS - 1, 0)))
    counts = np.bincount(groups)
    program = _Program(users, noise, start, groups, alpha, delta, tighter)
    # Steps of the search at most; the last ones gain next to nothing
    found = minimize(
        lambda y: float(counts @ np.exp(y) / start.size),
        np.zeros(counts.size),
        jac=lambda y: counts * np.exp(y) / start.size,
        constraints={"type": "ineq", "fun": program.slack, "jac": program.slopes},
        bounds=[(-2.0, 2.0)] * counts.size,
        method="SLSQP",
        options={"maxiter": 20, "ftol": 1e-5},
    )
    shape = start * np.exp(found.x[groups])
    return shape if np.isfinite(shape).all() else None


class _Program:
    """The constraints: how far the leakage of every step is below alpha, as a difference of logarithms."""

    def __init__(
        self,
        users: Sequence[Adversary],
        noise: Noise,
        start: FloatArray,
        groups: FloatArray,
        alpha: float,
        delta: float,
        tighter: FloatArray | None,
    ) -> None:
        self.users, self.noise, self.start, self.groups = users, noise, start, groups
        self.alpha, self.delta = alpha, delta
        self._runs = lru_cache(maxsize=1)(self._made)
        self.correction = np.zeros((len(users), start.size))
        if tighter is not None:
            self.correction = self._slack(tighter) - self._slacks(np.zeros(int(groups.max()) + 1))

    def slack(self, y: FloatArray) -> FloatArray:
        """Slack of every step for the worst user."""
        return np.asarray(np.min(self._slacks(y), axis=0))

    def slopes(self, y: FloatArray) -> FloatArray:
        """Derivatives of the slack: one row per step, one column per group."""
        worst = np.argmin(self._slacks(y), axis=0)
        every = np.stack([self._slopes(run, y) for run in self._runs(tuple(y.tolist()))])
        return np.asarray(every[worst, np.arange(len(worst))])

    def _slacks(self, y: FloatArray) -> FloatArray:
        return self._slack(np.stack([run.epsilons for run in self._runs(tuple(y.tolist()))])) + self.correction

    def _slack(self, epsilons: FloatArray) -> FloatArray:
        return np.asarray(np.log(self.alpha) - np.log(np.maximum(epsilons, 1e-9 * self.alpha)))

    def _slopes(self, run: _Run, y: FloatArray) -> FloatArray:
        base = self._slack(run.epsilons)
        found = np.zeros((self.start.size, y.size))
        for group in range(y.size):
            steps, nudged = np.flatnonzero(self.groups == group), self._releases(y, NUDGE, group)
            if steps.size == 1:
                t = int(steps[0])
                near = run.with_other(t, nudged[t])
            else:
                near = _Run.of(run.user, nudged, run.curves.curves).epsilons
            found[:, group] = (self._slack(near) - base) / NUDGE
        return found

    def _made(self, y: tuple[float, ...]) -> list[_Run]:
        releases = self._releases(np.array(y))
        # Points of the grid up to alpha
        return [_Run.of(user, releases, SingleCurve(self.alpha / 256.0, self.delta, up=True)) for user in self.users]

    def _releases(self, y: FloatArray, nudge: float = 0.0, group: int = -1) -> list[Mechanisms]:
        scales = self.start * np.exp(y[self.groups] + nudge * (self.groups == group))
        return [(histogram_profile(self.noise, scale),) for scale in scales.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Curves of every step, and its leakage, for one user."""

    user: Adversary
    releases: list[Mechanisms]
    curves: Run
    epsilons: FloatArray

    @classmethod
    def of(cls, user: Adversary, releases: list[Mechanisms], side: Curves) -> _Run:
        past, future = (arriving_curves(side, user, direction, releases) for direction in SIDES)
        curves = Run(side, *past, *future)
        return cls(user, releases, curves, curves.epsilons("temporal"))

    def with_other(self, t: int, release: Mechanisms) -> FloatArray:
        """Leakage of every step if step t had another release."""
        run, side, found = self.curves, self.curves.curves, self.epsilons.copy()
        own = side.own(release)
        total = side.composed(run.past[t], own)
        found[t] = side.epsilon_together(total, run.future[t])
        for s in range(t + 1, len(found)):
            arrived = side.through(self.user.backward.at(s - 1), total)
            if _same(side, arrived, run.past[s]):
                break
            total = side.composed(arrived, side.own(self.releases[s]))
            found[s] = side.epsilon_together(total, run.future[s])
        total = side.composed(run.future[t], own)
        for s in range(t - 1, -1, -1):
            arrived = side.through(self.user.forward.at(s), total)
            if _same(side, arrived, run.future[s]):
                break
            total = side.composed(arrived, side.own(self.releases[s]))
            found[s] = side.epsilon_together(arrived, run.backward[s])
        return found


def _same(side: Curves, one: FloatArray, other: FloatArray) -> bool:
    # Of the delta, times the nudge: a curve that changes by less is taken for the same
    return max(raised_by(one, other), raised_by(other, one)) <= 1e-3 * NUDGE * side.delta
