"""Another correlation from a step on: which user continues which.

Filters and odometers of the exact method take the new matrices over (`ExactFilter.adopted`). The reserve is searched anew:
the largest budget that, spent at every later step under the new matrices, keeps every step within the level, those before the
change too. It may be smaller than what the new correlation would allow by itself, as the steps before it have leaked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from temporaldp.accounting.protocol import Accounting
from temporaldp.correlation import Adversary, Population
from temporaldp.errors import InputError

if TYPE_CHECKING:
    from temporaldp.accounting.filter import Filters

MOST_LINES = 10_000
"""Pairs of an old and a new correlation that are accounted for at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Adoption:
    """A change of what is known.

    Parameters
    ----------
    step : int
        The first step of the new correlation.
    users : tuple of Adversary
        Everybody who is accounted for from then on.
    names : tuple of str or None
    parents : tuple of int
        Whose past each of them has: the number of a user before the change.
    reserve : float
        What every later step may spend, in nats.
    """

    step: int
    users: tuple[Adversary, ...]
    names: tuple[str | None, ...]
    parents: tuple[int, ...]
    reserve: float

    @classmethod
    def of(cls, step: int, before: Population, lines: Sequence[tuple[int, Adversary]], reserve: float) -> Adoption:
        """A change before a step, by who continues whom."""
        parents, users = zip(*lines, strict=True)
        return cls(step, users, tuple(before.names[k] for k in parents), parents, reserve)

    @property
    def population(self) -> Population:
        """Everybody from then on."""
        return Population(self.users, self.names)

    @property
    def lines(self) -> list[tuple[int, Adversary]]:
        """The number of each user's predecessor, and the correlation from now on."""
        return list(zip(self.parents, self.users, strict=True))


def adoption_of(
    before: Population,
    now: Population,
    timelines: tuple[Adversary, ...],
    step: int,
    method: Accounting[Any, Any],
    filters: Filters | None,
    horizon: int | None,
    *,
    both: bool,
    reserve: float | None,
    asked: float | None,
) -> tuple[Adoption, tuple[Adversary, ...]]:
    """A change before a step, and what is known about everybody then, step by step.

    `reserve` is what every later step may spend, if that is known already; `asked` is what was asked for in the beginning.

    Raises
    ------
    InputError
        The accountant cannot go on with another correlation, or this one does not fit.
    """
    require_adoptable(horizon, method.name)
    lines = continued(before, now, both=both)
    changed = changed_timelines(before, timelines, step, lines)
    kept = reserve
    if kept is None and (filters is None or asked == 0.0):
        kept = 0.0
    if kept is None:
        assert filters is not None
        most = method.lasting_epsilon(list({id(user): user for _, user in lines}.values()), filters.alpha)
        kept = filters.continued(lines).with_largest_reserve(most if asked is None else min(most, asked)).reserve
    return Adoption.of(step, before, lines, kept), changed


def require_adoptable(horizon: int | None, bound: str) -> None:
    """Refuse an accountant that cannot go on with another correlation: `InputError`."""
    if horizon is not None:
        raise InputError(
            "expected an accountant without a horizon: what is planned for a known number of steps rests on the matrices "
            "that it was planned for; begin another release with the new correlation"
        )
    if bound != "exact":
        raise InputError(
            f"expected an accountant by the exact leakage, got one by {bound!r}: only that one goes on with another "
            "correlation; begin another release"
        )


def changed_timelines(
    before: Population, known: tuple[Adversary, ...], step: int, lines: Sequence[tuple[int, Adversary]]
) -> tuple[Adversary, ...]:
    """What is known about everybody, step by step, with a change before a step; `InputError` where it does not fit."""
    each = known or before.users
    return tuple(
        each[k] if user.directions == each[k].current.directions else each[k].changed(step, user) for k, user in lines
    )


def continued(before: Population, now: Population, *, both: bool) -> list[tuple[int, Adversary]]:
    """Who continues whom: pairs of a user's number and the correlation from now on.

    A named user continues the one of that name; one without, or with a new name, may be anybody, and continues everybody. Whom
    the new population does not name keeps the old correlation, and with `both` everybody does besides.

    Raises
    ------
    InputError
        There are too many pairs.
    """
    lines: list[tuple[int, Adversary]] = []
    for name, user in now:
        same = [k for k, known in enumerate(before.names) if name is not None and known == name]
        lines += [(k, user) for k in same or range(len(before))]
        if len(lines) > MOST_LINES:
            raise InputError(
                f"{len(now)} new correlations may continue any of {len(before)} old ones, more than {MOST_LINES} pairs: name "
                "the people in both, or give one correlation for all"
            )
    left = range(len(before)) if both else sorted(set(range(len(before))) - {k for k, _ in lines})
    return lines + [(k, before.users[k]) for k in left]
