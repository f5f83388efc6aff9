"""One user's leakage at every step so far, kept up to date while releases follow one another: an odometer, and a filter on it.

Written once for every way of accounting that carries something from step to step (`Steps`).

Notation
--------
A, F     what arrives at each step from the past and from the future
top      index of the largest TPL among the steps up to each one

A new release changes every F in principle. In the order of time reversed, F is the same function of the F after it as before,
so where one is no more than it was taken to be before, all earlier ones are: the walk back stops there. How far that is depends
on the correlation, which forgets, not on how many steps there are. Each F is stored a little raised (`Steps.raised`), so that
rounding does not keep the walk going; what is reported is above the truth by no more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar

from temporaldp.accounting.protocol import Side

One_contra = TypeVar("One_contra", contravariant=True)
One = TypeVar("One")
Arrived = TypeVar("Arrived")

LONGEST_WALK = 10_000
"""Steps after which a filter gives up looking for the end of what a budget changes, and refuses it."""

BISECTIONS = 60
"""Halvings of the bracket for a budget: the last digits of a double."""


class Steps(Protocol[One_contra, Arrived]):
    """What is carried through one user's correlation, a step at a time."""

    @property
    def nothing(self) -> Arrived:
        """What arrives where no release comes before."""

    def arriving(self, side: Side, transition: int, release: One_contra, before: Arrived) -> Arrived:
        """What arrives at the other end of a transition from a release and what arrived with it."""

    def leakage(self, past: Arrived, release: One_contra, future: Arrived) -> float:
        """What past, release and future say about the value at a step, in nats."""

    def never_more(self, one: Arrived, other: Arrived) -> bool:
        """Whether the first says no more than the second, whatever comes with it."""

    def raised(self, arrived: Arrived) -> Arrived:
        """A little more: what rounding can lose from one step to the next is less."""


class StepwiseOdometer(Generic[One, Arrived]):
    """What each step so far leaks about one user."""

    def __init__(self, steps: Steps[One, Arrived]) -> None:
        self._steps = steps
        self._releases: list[One] = []
        self._arrived: list[Arrived] = []
        self._future: list[Arrived] = []
        self._leaked: list[float] = []
        self._top: list[int] = []

    def __len__(self) -> int:
        return len(self._releases)

    def __copy__(self) -> Self:
        made = type(self)(self._steps)
        for name in ("_releases", "_arrived", "_future", "_leaked", "_top"):
            setattr(made, name, list(getattr(self, name)))
        return made

    def extend(self, releases: Sequence[One]) -> None:
        """Take note of the releases of the next steps: one walk back, however many there are."""
        settled, steps = len(self), self._steps
        if not releases:
            return
        for release in releases:
            self._arrived.append(self.next_arrival)
            self._releases.append(release)
        now = len(self)
        self._future += [steps.nothing] * len(releases)
        self._leaked += [0.0] * len(releases)
        self._top += [now - 1] * len(releases)
        later, first = steps.nothing, 0
        for t in range(now - 1, -1, -1):
            if t < now - 1:
                later = steps.arriving("forward", t, self._releases[t + 1], later)
                if t < settled and steps.never_more(later, self._future[t]):
                    first = t + 1
                    break
                later = steps.raised(later)
            self._future[t] = later
            self._leaked[t] = steps.leakage(self._arrived[t], self._releases[t], later)
        best = self._top[first - 1] if first else 0
        for t in range(first, now):
            best = t if self._leaked[t] > self._leaked[best] else best
            self._top[t] = best

    def worst(self) -> tuple[float, int]:
        """The largest TPL so far and the first step (from 0) that has it; (0, 0) before the first step."""
        if not self._releases:
            return 0.0, 0
        top = self._top[-1]
        return self._leaked[top], top

    def worst_with(self, release: One, arriving: Arrived | None = None) -> tuple[float, int]:
        """The same if `release` came next and `arriving` from the steps after it (None: nothing); changes nothing."""
        steps, now = self._steps, len(self)
        later = steps.nothing if arriving is None else arriving
        found = [(steps.leakage(self.next_arrival, release, later), now)]
        first = now
        for t in range(now - 1, -1, -1):
            later = steps.arriving("forward", t, release, later)
            if t < now - 1 and steps.never_more(later, self._future[t]):
                break
            found.append((steps.leakage(self._arrived[t], self._releases[t], later), t))
            first, release = t, self._releases[t]
        if first:
            top = self._top[first - 1]
            found.append((self._leaked[top], top))
        return max(found, key=lambda pair: (pair[0], -pair[1]))

    @property
    def next_arrival(self) -> Arrived:
        """What arrives at the next step from those so far."""
        now = len(self)
        if not now:
            return self._steps.nothing
        return self._steps.arriving("backward", now - 1, self._releases[-1], self._arrived[-1])


@dataclass(frozen=True, slots=True, eq=False)
class LastingSteps(Generic[Arrived]):
    """What arrives, from the past and from the future, if the reserve is spent at every step for ever."""

    past: Arrived
    future: Arrived


@dataclass(frozen=True, slots=True, eq=False)
class StepwiseFilter(Generic[Arrived]):
    """The largest budgets that hold a level for one user; a spend gives another filter.

    A budget is admitted if the level is held by all steps so far, by itself, and by all later ones with the reserve. Later
    steps are looked at until the past says no more than it would if the reserve had been spent for ever: from then on they
    never leak more than the reserve for ever, which holds the level.

    Parameters
    ----------
    steps : Steps
    odometer : StepwiseOdometer
        What was spent so far.
    alpha : float
    reserve : float
    lasting : LastingSteps or None
        None where nothing is kept.
    horizon : int or None
    """

    steps: Steps[float, Arrived]
    odometer: StepwiseOdometer[float, Arrived]
    alpha: float
    reserve: float
    lasting: LastingSteps[Arrived] | None
    horizon: int | None

    def largest(self, last: bool = False) -> float:
        """The largest budget that is admitted next, in nats: a lower bound."""
        if self.admits(self.alpha, last):
            return self.alpha
        low, high = (self.reserve if self.admits(self.reserve, last) else 0.0), self.alpha
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.admits(middle, last) else (low, middle)
            if high - low <= 1e-10 * high:
                break
        return low

    def admits(self, epsilon: float, last: bool = False) -> bool:
        """Whether a budget may be spent next. A step that publishes nothing always may."""
        if epsilon == 0.0:
            return True
        now, steps = len(self.odometer), self.steps
        lasting = None if last or self.horizon == now + 1 else self.lasting
        leaked, _ = self.odometer.worst_with(epsilon, None if lasting is None else lasting.future)
        if leaked > self.alpha:
            return False
        if lasting is None:
            return True
        trial = copy(self.odometer)
        trial.extend([epsilon])
        arrived = trial.next_arrival
        for step in range(now + 1, now + LONGEST_WALK):
            if steps.never_more(arrived, lasting.past) or step == self.horizon:
                return True
            if steps.leakage(arrived, self.reserve, lasting.future) > self.alpha:
                return False
            arrived = steps.arriving("backward", step, self.reserve, arrived)
        return False

    def after(self, epsilon: float) -> Self:
        """After one more budget, whether it was admitted or not: what is spent is spent."""
        odometer = copy(self.odometer)
        odometer.extend([epsilon])
        return replace(self, odometer=odometer)
