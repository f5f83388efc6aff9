"""Allocation of noise at a delta over a known horizon, by derivatives of the leakage of one curve for all pairs.

The mean scale is minimised by sequential quadratic programming over the logarithms of scales, subject to the leakage of every
step. Derivatives are differences: where one release changes, incoming leakage after it and before it changes until the release
is forgotten, and everything else is known. A coarse grid suffices, as only the shape is taken from here: the planner scales it
by its own accounting, on its own grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from temporaldp.accounting.curve.arrivals import SingleCurve, arriving_curves
from temporaldp.accounting.curve.grid import raised_by
from temporaldp.correlation import Adversary
from temporaldp.mechanisms.protocol import Mechanisms
from temporaldp.planning.histogram_noise import Noise, histogram_profile
from temporaldp.values import FloatArray

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
    program = _Program(users, noise, start, groups, alpha, delta)
    if tighter is not None:
        program.correct(tighter)
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
    ) -> None:
        self.users, self.noise, self.start, self.groups = users, noise, start, groups
        self.alpha, self.delta = alpha, delta
        self._at: tuple[FloatArray, list[_Run]] | None = None
        self.correction = np.zeros((len(users), start.size))

    def correct(self, tighter: FloatArray) -> None:
        """Take one curve for as much too high as it is at the start."""
        known = self._runs(np.zeros(int(self.groups.max()) + 1))
        self.correction = np.stack([self._slack(one) for one in tighter]) - [self._slack(run.epsilons) for run in known]

    def slack(self, y: FloatArray) -> FloatArray:
        """Slack of every step for the worst user."""
        return np.asarray(np.min(self._slacks(self._runs(y)), axis=0))

    def slopes(self, y: FloatArray) -> FloatArray:
        """Derivatives of the slack: one row per step, one column per group."""
        runs = self._runs(y)
        worst = np.argmin(self._slacks(runs), axis=0)
        every = np.stack([self._slopes(run, y) for run in runs])
        return np.asarray(every[worst, np.arange(len(worst))])

    def _slacks(self, runs: list[_Run]) -> FloatArray:
        return np.asarray([self._slack(run.epsilons) for run in runs] + self.correction)

    def _slack(self, epsilons: FloatArray) -> FloatArray:
        return np.asarray(np.log(self.alpha) - np.log(np.maximum(epsilons, 1e-9 * self.alpha)))

    def _slopes(self, run: _Run, y: FloatArray) -> FloatArray:
        base = self._slack(run.epsilons)
        found = np.zeros((self.start.size, y.size))
        for group in range(y.size):
            steps = np.flatnonzero(self.groups == group)
            if steps.size == 1:
                t = int(steps[0])
                near = run.with_other(t, self._releases(y, NUDGE, group)[t])
            else:
                near = _Run.of(run.user, self._releases(y, NUDGE, group), run.side).epsilons
            found[:, group] = (self._slack(near) - base) / NUDGE
        return found

    def _runs(self, y: FloatArray) -> list[_Run]:
        if self._at is None or not np.array_equal(self._at[0], y):
            releases = self._releases(y)
            # Points of the grid up to alpha
            made = [
                _Run.of(user, releases, SingleCurve(self.alpha / 256.0, self.delta, up=True)) for user in self.users
            ]
            self._at = (y.copy(), made)
        return self._at[1]

    def _releases(self, y: FloatArray, nudge: float = 0.0, group: int = -1) -> list[Mechanisms]:
        scales = self.start * np.exp(y[self.groups] + nudge * (self.groups == group))
        return [(histogram_profile(self.noise, scale),) for scale in scales.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Incoming leakage of every step, and its leakage, for one user."""

    user: Adversary
    side: SingleCurve
    releases: list[Mechanisms]
    past: tuple[FloatArray, ...]
    backward: tuple[FloatArray, ...]
    future: tuple[FloatArray, ...]
    forward: tuple[FloatArray, ...]
    epsilons: FloatArray

    @classmethod
    def of(cls, user: Adversary, releases: list[Mechanisms], side: SingleCurve) -> _Run:
        past, backward = arriving_curves(side, user, "backward", releases)
        future, forward = arriving_curves(side, user, "forward", releases)
        each = [side.epsilon(side.composed(b, f)) for b, f in zip(backward, future, strict=True)]
        return cls(user, side, releases, past, backward, future, forward, np.array(each))

    def with_other(self, t: int, release: Mechanisms) -> FloatArray:
        """Leakage of every step if step t had another release."""
        side, found = self.side, self.epsilons.copy()
        own = side.own(release)
        total = side.composed(self.past[t], own)
        found[t] = side.epsilon(side.composed(total, self.future[t]))
        for s in range(t + 1, len(found)):
            arrived = side.through(self.user.backward.at(s - 1), total)
            if self._same(arrived, self.past[s]):
                break
            total = side.composed(arrived, side.own(self.releases[s]))
            found[s] = side.epsilon(side.composed(total, self.future[s]))
        total = side.composed(self.future[t], own)
        for s in range(t - 1, -1, -1):
            arrived = side.through(self.user.forward.at(s), total)
            if self._same(arrived, self.future[s]):
                break
            total = side.composed(arrived, side.own(self.releases[s]))
            found[s] = side.epsilon(side.composed(arrived, self.backward[s]))
        return found

    def _same(self, one: FloatArray, other: FloatArray) -> bool:
        # Of the delta, times the nudge: a curve that changes by less is taken for the same
        return max(raised_by(one, other), raised_by(other, one)) <= 1e-3 * NUDGE * self.side.delta
