"""What a record cannot say, and somebody has to: which secret, which chains, how many steps, what a change of value is."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from temporaldp.correlation import Adversary, IntervalMatrix, TransitionMatrix
from temporaldp.correlation.states import state_names
from temporaldp.deployment.stated_unit import STEPS_A_YEAR, Period
from temporaldp.deployment.unit import PrivacyUnit
from temporaldp.errors import BudgetError, InputError, StateError
from temporaldp.values import whole_number

if TYPE_CHECKING:
    from temporaldp.deployment.record import Deployment

UnitName: TypeAlias = Literal["replace-one", "add-or-remove", "binary-count", "category-histogram"]

STATES = ("present", "absent")
"""The secret unless somebody names another: whether the person's data of a step are in the release."""

STAYS = (0.5, 0.99)
"""From two values that have nothing to do with one another, to those that change once in a hundred steps."""

EXPLAINED = 0.9
"""The probability of staying by which a card is explained, where the range has it."""

MOST_STEPS = 10_000_000

SPACING = 0.05
"""Between points of the curve; near 1, where leakage grows fast, a fifth of it."""

FEW = 5
"""With fewer round points than this in a range, eleven are spread evenly."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a deployment; every field has a default, which the card's assumptions name.

    Parameters
    ----------
    states : tuple of str
        The values that a step's secret can have; 2 or more.
    stays : tuple of two float
        Range of the probability with which a value stays from one step to the next; the rest goes to every other value alike.
    correlation : Adversary, optional
        In place of `stays`: what is known.
    correlation_name : str
        Of the file it came from.
    at : float, optional
        Of the range, the probability of staying by which the card is explained; 0.9 where the range has it, else its worse end.
    horizon : int, optional
        Steps; a year's where it is not given, and `since` is not.
    since, until : date, optional
        Instead: from a day to a day (today, if only the first is given).
    unit : str, optional
        "replace-one", "add-or-remove", "binary-count" or "category-histogram".
    absent : str, optional
        The value at which there are no data.
    contributions : int, optional
        Promised units that a step holds at most.
    tables : mapping of str to float, optional
        Epsilons of the tables that the value enters, in place of the record's; kept as pairs.
    delta : float, optional
        At which leakage is told where the promise is no pure one.
    every : str, optional
        Length of a step, where the record does not say that, or how often, it releases.
    fresh_noise : bool
        Whether noise that is drawn on a device is known to be drawn anew at every step.
    """

    states: tuple[str, ...] = STATES
    stays: tuple[float, float] = STAYS
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

    def __post_init__(self) -> None:
        names = state_names(self.states)
        if len(names) < 2:
            raise StateError(f"expected at least 2 values, such as home,away, got {', '.join(names) or 'none'}")
        object.__setattr__(self, "states", names)
        if self.tables is not None:
            object.__setattr__(self, "tables", tuple(dict(self.tables).items()))
        self._check_range()
        if self.unit is not None and self.unit not in get_args(UnitName):
            raise InputError(f"expected a unit among {', '.join(get_args(UnitName))}, got {self.unit!r}")
        if self.every is not None and self.every not in STEPS_A_YEAR:
            raise InputError(f"expected a length of a step among {', '.join(STEPS_A_YEAR)}, got {self.every!r}")
        if self.horizon is not None:
            whole_number(self.horizon, "the horizon", least=1, error=BudgetError)
            if self.horizon > MOST_STEPS:
                raise BudgetError(f"expected a horizon of at most {MOST_STEPS} steps, got {self.horizon}")
            if self.since is not None or self.until is not None:
                raise InputError("expected either a horizon or dates (since, until), got both")
        if self.until is not None and self.since is None:
            raise InputError("expected since, the first day, with until, the last one")
        if self.delta is not None and not 0.0 < self.delta < 1.0:
            raise BudgetError(f"expected delta between 0 and 1, got {self.delta!r}")
        if self.absent is not None and self.unit not in {None, "add-or-remove"}:
            raise InputError(f"expected absent with the unit 'add-or-remove' alone, got {self.unit!r}")

    def _check_range(self) -> None:
        try:
            least, most = (float(value) for value in self.stays)
        except (TypeError, ValueError):
            raise InputError(f"expected stays=(smallest, largest), two probabilities, got {self.stays!r}") from None
        if not 0.0 <= least <= most <= 1.0:
            raise InputError(
                f"expected 0 <= smallest <= largest <= 1 for the probability of staying, got {least:g} and {most:g}"
            )
        object.__setattr__(self, "stays", (least, most))
        if self.at is not None and not least <= self.at <= most:
            raise InputError(f"expected a probability within the range {least:g} to {most:g}, got {self.at:g}")
        if self.correlation is not None and self.at is not None:
            raise InputError("expected either a correlation or a probability of staying to explain, got both")

    @property
    def explained(self) -> float:
        """The probability of staying by which the card is explained."""
        least, most = self.stays
        if self.at is not None:
            return self.at
        return (
            EXPLAINED if least <= EXPLAINED <= most else max(self.stays, key=lambda p: abs(p - 1.0 / len(self.states)))
        )

    @property
    def points(self) -> tuple[float, ...]:
        """The range as the curve shows it: round numbers and both ends; closer together near 1."""
        least, most = self.stays
        steps = [round(SPACING * k, 2) for k in range(20)] + [0.96, 0.97, 0.98, 0.99]
        inside = [p for p in steps if least <= p <= most]
        if len(inside) < FEW and least < most:
            inside = [round(float(p), 6) for p in np.linspace(least, most, 11)]
        return tuple(sorted({least, most, self.explained, *inside}))

    def chain(self, stays: float) -> Adversary:
        """Who knows that a value stays with this probability, and else goes to every other value alike."""
        n = len(self.states)
        away = (1.0 - stays) / (n - 1)
        matrix = TransitionMatrix(np.where(np.eye(n, dtype=bool), stays, away), self.states)
        return Adversary(matrix, matrix)

    def steps(self, period: Period) -> int:
        """How many steps are asked about."""
        if self.horizon is not None:
            return self.horizon
        if self.since is None:
            return STEPS_A_YEAR[period]
        last = datetime.date.today() if self.until is None else self.until
        if last < self.since:
            raise InputError(f"expected dates in order, got {self.since} after {last}")
        days = (last - self.since).days + 1
        months = 12 * (last.year - self.since.year) + last.month - self.since.month + 1
        return {
            "hour": 24 * days,
            "quarter-day": 4 * days,
            "day": days,
            "week": math.ceil(days / 7),
            "month": months,
            "quarter": math.ceil(months / 3),
            "year": last.year - self.since.year + 1,
        }[period]

    def privacy_unit(self, deployment: Deployment) -> PrivacyUnit:
        """How many promised units a change of value is: as asked, or by what the record and the values suggest."""
        name = self.unit
        if name is None:
            if self.absent is not None or (len(self.states) > 2 and "absent" in self.states):
                name = "add-or-remove"
            elif deployment.about_replacing:
                name = "replace-one"
            else:
                name = "binary-count" if len(self.states) == 2 else "category-histogram"
        match name:
            case "replace-one":
                unit = PrivacyUnit.replace_one()
            case "add-or-remove":
                unit = PrivacyUnit.add_or_remove(absent=self.absent or "absent")
            case "binary-count":
                unit = PrivacyUnit.binary_count()
            case "category-histogram":
                unit = PrivacyUnit.category_histogram()
        if self.contributions is not None:
            unit = PrivacyUnit.at_most(self.contributions, of=unit)
        return unit if self.tables is None else PrivacyUnit.tables(dict(self.tables), of=unit)


def stay_probability(adversary: Adversary) -> float:
    """How often a value stays under a given correlation: on average if it is stationary, at most if it is a set."""
    known = adversary.forward or adversary.backward
    if isinstance(known, IntervalMatrix):
        return float(np.diag(known.upper).max())
    if not isinstance(known, TransitionMatrix):
        raise InputError("expected one matrix for all steps, got a correlation that varies with time")
    return float(known.stationary_distribution() @ np.diag(known.dense()))
