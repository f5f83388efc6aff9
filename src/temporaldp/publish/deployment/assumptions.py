"""Assumptions that a record does not state: the secret, the chains, the number of steps, and the units of a change of state."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

import numpy as np

from temporaldp.base.errors import BudgetError, InputError, StateError
from temporaldp.base.names import printable, state_names
from temporaldp.base.values import assign, refuse, whole_number
from temporaldp.core.correlation import Adversary, IntervalMatrix, TransitionMatrix, lazy_walk
from temporaldp.core.planning import Guarantee
from temporaldp.publish.deployment.unit import PrivacyUnit, UnitName
from temporaldp.publish.deployment.wording import STEPS_A_YEAR, Period

if TYPE_CHECKING:
    from temporaldp.publish.deployment.record import Deployment


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions about a deployment; every field has a default, and the card lists all of them.

    Parameters
    ----------
    states : tuple of str
        The states of the secret of a step; 2 or more: by default, whether the person's data of a step are in the release.
    stays : tuple of two float
        Range of the probability that the state stays the same from one step to the next; all other states are equally likely.
        By default from independent steps to a change once in a hundred steps.
    correlation : Adversary, optional
        In place of `stays`: the correlation that the adversary knows, whose states are those of the secret.
    correlation_name : str
        Name of its file.
    at : float, optional
        Probability of staying of the explanation; by default 0.9 if the range contains it, else the end with more leakage.
    horizon : int, optional
        Number of steps; by default those of a year.
    since, until : date, optional
        In place of a horizon: first and last day (by default today); all calendar periods that they touch count.
    unit : str, optional
        "replace-one", "add-or-remove", "binary-count" or "category-histogram". By default by the record, and where it is about
        adding or removing, two states are one unit apart if one of them is named "absent", and two units otherwise.
    absent : str, optional
        The state without data.
    contributions : int, optional
        Largest number of promised units in a step.
    tables : mapping of str to float, optional
        Epsilons of the tables that the state enters, in place of the record's; kept as pairs.
    delta : float, optional
        Delta of the accounting, where the promise is not pure.
    every : str, optional
        Length of a step, where the record does not state repeated releases or their frequency.
    fresh_noise : bool
        Whether noise that is drawn on a device is drawn anew at every step; a promise of approximate DP needs it.
    guarantee : {"temporal", "user", "user:W", "window:W"}
        What the verdict of the card is about; the card lists all.
    """

    states: tuple[str, ...] = ("present", "absent")
    stays: tuple[float, float] = (0.5, 0.99)
    correlation: Adversary | None = None
    correlation_name: str = ""
    at: float | None = None
    horizon: int | None = None
    since: datetime.date | None = None
    until: datetime.date | None = None
    unit: UnitName | None = None
    absent: str | None = None
    contributions: int | None = None
    tables: Mapping[str, float] | tuple[tuple[str, float], ...] | None = None
    delta: float | None = None
    every: Period | None = None
    fresh_noise: bool = False
    guarantee: str = "temporal"

    def __post_init__(self) -> None:
        try:
            least, most = (float(value) for value in self.stays)
        except (TypeError, ValueError):
            raise InputError(f"expected stays=(smallest, largest), two probabilities, got {self.stays!r}") from None
        names = state_names(self.states)
        printable(self.correlation_name, "the name of the correlation")
        assign(self, states=names, stays=(least, most))
        if self.tables is not None:
            named = dict(self.tables).items()
            assign(self, tables=tuple((printable(name, "the name of a table"), epsilon) for name, epsilon in named))
        Guarantee.of(self.guarantee)
        if self.horizon is not None:
            whole_number(self.horizon, "the horizon", least=1, error=BudgetError)
        refuse(
            (
                # more than a step every three seconds for a year
                self.horizon is not None and self.horizon > 10_000_000,
                BudgetError("expected a horizon of at most 10000000 steps, got a larger one"),
            ),
            (
                len(names) < 2,
                StateError(f"expected at least 2 states, such as home,away, got {', '.join(names) or 'none'}"),
            ),
            (
                not 0.0 <= least <= most <= 1.0,
                InputError(
                    f"expected 0 <= smallest <= largest <= 1 for the probability of staying, got {least:g} and {most:g}"
                ),
            ),
            (
                self.at is not None and not least <= self.at <= most,
                InputError(f"expected a probability within the range {least:g} to {most:g}, got {self.at}"),
            ),
            (
                self.correlation is not None and self.at is not None,
                InputError("expected either a correlation or a probability of staying to explain, got both"),
            ),
            (
                self.unit not in {None, *get_args(UnitName)},
                InputError(f"expected a unit among {', '.join(get_args(UnitName))}, got {self.unit!r}"),
            ),
            (
                self.every not in {None, *STEPS_A_YEAR},
                InputError(f"expected a length of a step among {', '.join(STEPS_A_YEAR)}, got {self.every!r}"),
            ),
            (
                self.horizon is not None and (self.since is not None or self.until is not None),
                InputError("expected either a horizon or dates (since, until), got both"),
            ),
            (
                self.until is not None and self.since is None,
                InputError("expected since, the first day, with until, the last one"),
            ),
            (
                self.delta is not None and not 0.0 < self.delta < 1.0,
                BudgetError(f"expected delta between 0 and 1, got {self.delta!r}"),
            ),
            (
                self.absent is not None and self.unit not in {None, "add-or-remove"},
                InputError(f"expected absent with the unit 'add-or-remove' alone, got {self.unit!r}"),
            ),
        )
        if self.correlation is not None:
            assign(self, states=_states_of(self.correlation, names))

    @property
    def explained(self) -> float:
        """The probability of staying of the explanation."""
        least, most = self.stays
        if self.at is not None:
            return self.at
        return 0.9 if least <= 0.9 <= most else max(self.stays, key=lambda p: abs(p - 1.0 / len(self.states)))

    @property
    def points(self) -> tuple[float, ...]:
        """Points of the curve: round numbers and both ends, closer together near 1; eleven equidistant in a short range."""
        least, most = self.stays
        steps = [round(0.05 * k, 2) for k in range(20)] + [0.96, 0.97, 0.98, 0.99]
        inside = [p for p in steps if least <= p <= most]
        if len(inside) < 5 and least < most:
            inside = [round(float(p), 6) for p in np.linspace(least, most, 11)]
        return tuple(sorted({least, most, self.explained, *inside}))

    def chains(self, points: Iterable[float] | None = None) -> dict[float, Adversary]:
        """The adversaries by probability of staying (default: `points`): the given one, or chains that else move uniformly."""
        if self.correlation is not None:
            return {round(stay_probability(self.correlation), 6): self.correlation}
        chains = {stays: lazy_walk(stays, self.states) for stays in points or self.points}
        return {stays: Adversary(matrix, matrix) for stays, matrix in chains.items()}

    def steps(self, period: Period) -> int:
        """The number of steps: as given, those of a year, or the calendar periods (weeks from Monday) that the dates touch."""
        if self.horizon is not None:
            return self.horizon
        if self.since is None:
            return STEPS_A_YEAR[period]
        last = datetime.date.today() if self.until is None else self.until
        if last < self.since:
            raise InputError(f"expected dates in order, got {self.since} after {last}")
        first, days = self.since, (last - self.since).days + 1
        months = 12 * (last.year - first.year) + last.month - first.month
        return {
            "hour": 24 * days,
            "quarter-day": 4 * days,
            "half-day": 2 * days,
            "day": days,
            "week": (days + first.weekday() + 6) // 7,
            "half-month": 2 * months + (last.day > 15) - (first.day > 15) + 1,
            "month": months + 1,
            "quarter": 4 * (last.year - first.year) + (last.month - 1) // 3 - (first.month - 1) // 3 + 1,
            "half-year": 2 * (last.year - first.year) + (last.month > 6) - (first.month > 6) + 1,
            "year": last.year - first.year + 1,
        }[period]

    def privacy_unit(self, deployment: Deployment) -> PrivacyUnit:
        """Promised units of a change of state: as given, or by the record and the states."""
        name = self.unit
        if name is None:
            if self.absent is not None or (len(self.states) > 2 and "absent" in self.states):
                name = "add-or-remove"
            elif deployment.neighbours == "replacing":
                name = "replace-one"
            else:
                name = "binary-count" if "absent" in self.states else "category-histogram"
        unit = PrivacyUnit.of(name, absent=self.absent or "absent")
        if name == "category-histogram" and len(self.states) == 2:
            one = "If only one of the two states is counted, they are one unit apart: --unit binary-count."
            unit = replace(unit, reasoning=(*unit.reasoning, one))
        if self.unit is None and name != "binary-count" and deployment.neighbours is None:
            unclear = (
                "The record does not state one neighbouring relation (privacy_unit_details names neither adding or removing "
                "nor replacing, or both, or denies one): adding or removing is assumed, for which the leakage is larger. If "
                "the promise is about replacing, give --unit replace-one."
            )
            unit = replace(unit, reasoning=(*unit.reasoning, unclear))
        if self.contributions is not None:
            unit = PrivacyUnit.at_most(self.contributions, of=unit)
        return unit if self.tables is None else PrivacyUnit.tables(dict(self.tables), of=unit)


def _states_of(correlation: Adversary, asked: tuple[str, ...]) -> tuple[str, ...]:
    """The states of a given correlation, which are those that are asked for, unless these are the default."""
    known = correlation.states
    if known is None:
        raise InputError("expected a correlation with a matrix, got an adversary without matrices")
    if asked != Assumptions().states and set(asked) != set(known):
        raise StateError(f"expected the states of the matrix, {', '.join(known)}, got --states {', '.join(asked)}")
    return known


def stay_probability(adversary: Adversary) -> float:
    """Probability of staying under a given correlation: the stationary mean of a matrix, the largest of a set."""
    known = adversary.forward or adversary.backward
    if isinstance(known, IntervalMatrix):
        return float(np.diag(known.upper).max())
    if not isinstance(known, TransitionMatrix):
        raise InputError("expected one matrix for all steps, got a correlation that varies with time")
    return float(known.stationary_distribution() @ np.diag(known.dense()))
