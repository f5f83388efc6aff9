"""Another correlation from a step on: what a level still allows then, and who continues whom.

The filters of the exact way take the new matrices over (`ExactFilter.adopted`). The reserve is found anew: the largest budget
that, spent at every later step under the new matrices, keeps every step within the level, those before the change too. It may
be smaller than what the new correlation would allow by itself, as the steps before it have leaked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from temporaldp.accounting.exact.online import ExactFilter, ExactOdometer
from temporaldp.accounting.filter import Filters
from temporaldp.accounting.protocol import Accounting, Odometer
from temporaldp.correlation import Adversary, Population
from temporaldp.correlation.timeline import Timeline
from temporaldp.errors import InputError

MOST_LINES = 10_000
"""Pairs of an old and a new correlation that are accounted for at most."""

CLOSE_RESERVE = 1e-7
"""Relative distance of the largest reserve to which it is looked for."""

MOST_HALVINGS = 60


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

    def counted(self, odometers: Sequence[Odometer], spent: Sequence[float]) -> list[Odometer]:
        """Everybody's odometer after the change, from those before it and what was spent in between."""
        for odometer in odometers:
            odometer.extend(spent)
        found: list[Odometer] = []
        for parent, user in zip(self.parents, self.users, strict=True):
            odometer = odometers[parent]
            assert isinstance(odometer, ExactOdometer)  # only the exact way adopts
            found.append(odometer.adopted(user))
        return found


def adoption_of(
    before: Population,
    now: Population,
    timelines: tuple[Timeline, ...],
    step: int,
    way: Accounting[Any, Any],
    filters: Filters | None,
    horizon: int | None,
    *,
    both: bool,
    reserve: float | None,
    asked: float | None,
) -> tuple[Adoption, tuple[Timeline, ...]]:
    """A change before a step, and what is known about everybody then, step by step.

    `reserve` is what every later step may spend, if that is known already; `asked` is what was asked for in the beginning.

    Raises
    ------
    InputError
        The accountant cannot go on with another correlation, or this one does not fit.
    """
    require_adoptable(horizon, way.name)
    lines = continued(before, now, both=both)
    changed = changed_timelines(before, timelines, step, lines)
    kept = reserve
    if kept is None:
        kept = 0.0 if filters is None else largest_reserve(way, filters, lines, asked)
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
    before: Population, known: tuple[Timeline, ...], step: int, lines: Sequence[tuple[int, Adversary]]
) -> tuple[Timeline, ...]:
    """What is known about everybody, step by step, with a change before a step; `InputError` where it does not fit."""
    each = known or tuple(Timeline((0,), (user,)) for user in before.users)
    return tuple(each[k] if user is each[k].current else each[k].changed(step, user) for k, user in lines)


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


def adopted_filters(filters: Filters, lines: Sequence[tuple[int, Adversary]]) -> tuple[ExactFilter, ...]:
    """The filters with the new correlations, without any reserve."""
    found = []
    for parent, user in lines:
        standing = filters.each[parent]
        if not isinstance(standing, ExactFilter):
            raise InputError(
                "expected an accountant by the exact leakage (bound='exact', without a metric): only that one can go on with "
                "another correlation; begin another release, whose level counts by itself"
            )
        found.append(standing.adopted(user))
    return tuple(found)


def with_reserve(each: Sequence[ExactFilter], reserve: float) -> tuple[ExactFilter, ...] | None:
    """Everybody's filter with a reserve; None if the level does not allow it about somebody."""
    if reserve <= 0.0:
        return tuple(each)
    found = []
    for standing in each:
        kept = standing.with_reserve(reserve)
        if kept is None:
            return None
        found.append(kept)
    return tuple(found)


def with_largest_reserve(each: Sequence[ExactFilter], most: float) -> tuple[tuple[ExactFilter, ...], float]:
    """Everybody's filter with the largest reserve up to `most` that the level allows, and that reserve: a lower bound."""
    whole = with_reserve(each, most)
    if whole is not None:
        return whole, _least(whole)
    low, high, best = 0.0, most, tuple(each)
    for _ in range(MOST_HALVINGS):
        middle = 0.5 * (low + high)
        found = with_reserve(each, middle)
        if found is None:
            high = middle
        else:
            low, best = middle, found
        if high - low <= CLOSE_RESERVE * high:
            break
    return best, _least(best)


def _least(each: Sequence[ExactFilter]) -> float:
    return min(one.reserve for one in each)


def largest_reserve(
    way: Accounting[Any, Any], filters: Filters, lines: Sequence[tuple[int, Adversary]], asked: float | None
) -> float:
    """The largest budget for every later step, in nats: at most what was asked for, and what all lines allow for ever."""
    if asked == 0.0:
        return 0.0
    most = way.lasting_epsilon(list({id(user): user for _, user in lines}.values()), filters.alpha)
    return with_largest_reserve(adopted_filters(filters, lines), most if asked is None else min(most, asked))[1]


def caught_up(filters: Filters, adoptions: Sequence[Adoption], spent: Sequence[float]) -> Filters:
    """The filters after all that was spent and adopted."""
    now = filters
    while True:
        following = adoptions[now.n_adopted : now.n_adopted + 1]
        if following and following[0].step == now.n_steps:
            now = _after_adoption(now, following[0])
        elif now.n_steps < len(spent):
            now = now.after(spent[now.n_steps])
        else:
            return now


def _after_adoption(filters: Filters, adoption: Adoption) -> Filters:
    """The filters of everybody after a change whose reserve is known; without one where rounding no longer allows it."""
    lines = list(zip(adoption.parents, adoption.users, strict=True))
    plain = adopted_filters(filters, lines)
    each = with_reserve(plain, adoption.reserve) or plain
    return replace(filters, each=each, reserve=adoption.reserve, n_adopted=filters.n_adopted + 1)
