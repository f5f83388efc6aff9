"""Odometer and filter of one user, for methods that are defined step by step (`Steps`).

Notation
--------
A, F     incoming leakage of each step from the past and from the future
top      index of the largest TPL among the steps up to each one

A new release changes every F in principle. In the order of time reversed, F is the same function of the F after it as before,
so where one is no more than it was taken to be before, all earlier ones are: the walk back stops there. How far that is depends
on the correlation, which forgets, not on how many steps there are. Each F is stored a little raised (`Steps.raised`), so that
rounding does not keep the walk going; what is reported is above the truth by no more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, Self, TypeAlias, TypeVar

from temporaldp.base.values import LARGEST
from temporaldp.core.accounting.monotone_search import bisected
from temporaldp.core.accounting.protocol import Filter, Odometer, Side

One_contra = TypeVar("One_contra", contravariant=True)
One = TypeVar("One")
Arrived = TypeVar("Arrived")
ReserveArrivals: TypeAlias = tuple[Arrived, Arrived]


class Steps(Protocol[One_contra, Arrived]):
    """Incoming leakage through one user's correlation, step by step. It must not decrease when incoming leakage increases."""

    @property
    def nothing(self) -> Arrived:
        """Incoming leakage without earlier releases."""

    def arriving(self, side: Side, transition: int, release: One_contra, before: Arrived) -> Arrived:
        """Incoming leakage at the other end of a transition, from a release and its own incoming leakage.

        Transition t lies between steps t and t + 1; "backward" it leads from t to t + 1, "forward" from t + 1 to t.
        """

    def leakage(self, past: Arrived, release: One_contra, future: Arrived) -> float:
        """Leakage of past, release and future about the state at a step, in nats."""

    def never_more(self, one: Arrived, other: Arrived) -> bool:
        """Whether the first leaks no more than the second, whatever is added to both."""

    def raised(self, arrived: Arrived) -> Arrived:
        """Incoming leakage raised by more than the rounding of one step."""


class StepwiseOdometer(Odometer, Generic[One, Arrived]):
    """Odometer of one user: the leakage of each step so far."""

    def __init__(self, steps: Steps[One, Arrived]) -> None:
        self._steps = steps
        self._releases: list[One] = []
        self._past: list[Arrived] = []
        self._future: list[Arrived] = []
        self._leaked: list[float] = []
        self._top: list[int] = []

    def __len__(self) -> int:
        return len(self._releases)

    def __copy__(self) -> Self:
        made = type(self)(self._steps)
        for name in ("_releases", "_past", "_future", "_leaked", "_top"):
            setattr(made, name, list(getattr(self, name)))
        return made

    def extend(self, releases: Sequence[One]) -> None:
        """Add the releases of the next steps, with one walk back."""
        known, steps = len(self), self._steps
        if not releases:
            return
        for release in releases:
            self._past.append(self.next_arrival)
            self._releases.append(release)
        now = len(self)
        self._future += [steps.nothing] * len(releases)
        self._leaked += [0.0] * len(releases)
        self._top += [now - 1] * len(releases)
        later, first = steps.nothing, 0
        for t in range(now - 1, -1, -1):
            if t < now - 1:
                later = steps.arriving("forward", t, self._releases[t + 1], later)
                if t < known and steps.never_more(later, self._future[t]):
                    first = t + 1
                    break
                later = steps.raised(later)
            self._future[t] = later
            self._leaked[t] = steps.leakage(self._past[t], self._releases[t], later)
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
        """The largest TPL and its step if `release` came next, with `arriving` from later steps; changes nothing."""
        steps, now = self._steps, len(self)
        later = steps.nothing if arriving is None else arriving
        known = [(steps.leakage(self.next_arrival, release, later), now)]
        first = now
        for t in range(now - 1, -1, -1):
            later = steps.arriving("forward", t, release, later)
            if t < now - 1 and steps.never_more(later, self._future[t]):
                break
            later = steps.raised(later)  # as it will be stored: what is admitted by this number is so by that one
            known.append((steps.leakage(self._past[t], self._releases[t], later), t))
            first, release = t, self._releases[t]
        if first:
            top = self._top[first - 1]
            known.append((self._leaked[top], top))
        return max(known, key=lambda pair: (pair[0], -pair[1]))

    @property
    def next_arrival(self) -> Arrived:
        """Incoming leakage of the next step, from those so far."""
        now = len(self)
        if not now:
            return self._steps.nothing
        return self._steps.arriving("backward", now - 1, self._releases[-1], self._past[-1])


@dataclass(frozen=True, slots=True, eq=False)
class StepwiseFilter(Filter, Generic[Arrived]):
    """The largest budgets that satisfy a level for one user; a spend returns another filter.

    A budget is admitted if all steps so far, its own, and all later ones with the reserve satisfy the level. Later steps are
    examined until the past leaks no more than with the reserve at every step, or until it begins to fall: from then on they
    never leak more than steps that are known to satisfy the level.

    Parameters
    ----------
    steps : Steps
    odometer : StepwiseOdometer
        Odometer of the releases so far.
    alpha : float
    reserve : float
    kept : pair or None
        Incoming leakage from the past and from the future if the reserve is spent at every step, earlier and later, however
        many there are. None where there is no reserve.
    horizon : int or None
    reserved : bool
        Whether the budgets so far, followed by the reserve at every later step, satisfy the level.
    """

    steps: Steps[float, Arrived]
    odometer: StepwiseOdometer[float, Arrived]
    alpha: float
    reserve: float
    kept: ReserveArrivals[Arrived] | None
    horizon: int | None
    reserved: bool = True
    _answers: dict[tuple[float, bool], bool] = field(default_factory=dict)

    def largest(self, last: bool = False) -> float:
        """The largest budget that is admitted next, in nats: a lower bound."""
        if len(self.odometer) == self.horizon:
            return 0.0
        low, high = (self.reserve if self.admits(self.reserve, last) else 0.0), max(self.alpha, self.reserve)
        while high < LARGEST and self.admits(high, last):  # a metric may set all values less than 1 apart
            low, high = high, min(2.0 * high, LARGEST)
        return bisected(lambda epsilon: self.admits(epsilon, last), low, high, 1e-10)

    def admits(self, epsilon: float, last: bool = False) -> bool:
        """Whether a budget is admitted next. A step without a release always is.

        A budget up to the reserve needs no check: the one before it was admitted with the reserve after it.
        """
        if epsilon == 0.0 or (self.reserved and epsilon <= self.reserve):
            return True
        final = last or self.kept is None or self.horizon == len(self.odometer) + 1
        if (epsilon, final) not in self._answers:
            self._answers[epsilon, final] = self._holds(epsilon, final)
        return self._answers[epsilon, final]

    def _holds(self, epsilon: float, final: bool) -> bool:
        """Whether all steps hold the level if a budget is spent next, and the reserve from then on unless it is the last."""
        kept = None if final else self.kept
        leaked, _ = self.odometer.worst_with(epsilon, None if kept is None else kept[1])
        return leaked <= self.alpha and (kept is None or self._later_steps_hold(epsilon, kept))

    def _later_steps_hold(self, epsilon: float, kept: ReserveArrivals[Arrived]) -> bool:
        """Whether the steps after the next one hold the level, if a budget is spent next and the reserve from then on."""
        steps, first, (past, future) = self.steps, len(self.odometer) + 1, kept
        arrived = steps.arriving("backward", first - 1, epsilon, self.odometer.next_arrival)
        # Later steps that a filter looks at before it gives up and refuses a budget
        for step in range(first, first + 10_000):
            if step == self.horizon or steps.never_more(arrived, past):
                return True
            if steps.leakage(arrived, self.reserve, future) > self.alpha:
                return False
            after = steps.arriving("backward", step, self.reserve, arrived)
            if steps.never_more(steps.raised(after), arrived):
                return True
            arrived = after
        return False

    def after(self, epsilon: float) -> Self:
        """The filter after one more budget, also one that is not admitted."""
        odometer = copy(self.odometer)
        odometer.extend([epsilon])
        reserved = self.reserved and self.admits(epsilon)
        return replace(self, odometer=odometer, reserved=reserved, _answers={})
