"""Adoption of another correlation from a step on, and which users it applies to.

Filters and odometers of the exact method take the new matrices over (`ExactFilter.adopted`). The reserve is searched anew:
the largest budget that, spent at every later step under the new matrices, satisfies the level at every step, those before the
change too. It may be smaller than what the new correlation allows by itself, as the steps before it have leaked.
"""

from __future__ import annotations

from dataclasses import dataclass

from temporaldp.base.errors import InputError
from temporaldp.core.correlation import Adversaries, Adversary, Population

MOST_LINES = 10_000
"""Pairs of an old and a new correlation that are accounted for at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Adoption:
    """A change of the correlation.

    Parameters
    ----------
    step : int
        The first step of the new correlation.
    lines : list of tuple (int, Adversary)
        The users from then on: the number of the user before the change whose past it is, and the
        correlation from then on.
    reserve : float
        Budget that stays admissible at every later step, in nats.
    """

    step: int
    lines: list[tuple[int, Adversary]]
    reserve: float


@dataclass(frozen=True, slots=True)
class KeptAdoption:
    """A change of the correlation, whose reserve was found when it was made; as for `TemporalAccountant.adopt`."""

    step: int
    adversary: Adversaries
    both: bool
    reserve: float


def continued(before: Population, now: Population, *, both: bool) -> list[tuple[int, Adversary]]:
    """Return pairs of a user's number before the change and the correlation from then on.

    A named user continues the one of that name; one without, or with a new name, may be any user, and continues all of them.
    Users that the new population does not name keep the old correlation, and with `both` all users keep it as well.

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
