"""How many people of a history are among the protected ones, and at which times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from temporaldp.data.tables.moments import moment

if TYPE_CHECKING:
    from temporaldp.data.tables.trace_table import TraceTable

MOST_COMPARED = 2_000_000
"""Rows at common times that are compared; of more, those at some of these times."""


@dataclass(frozen=True, slots=True)
class SharedPeople:
    """People of a history who are protected.

    People of one name are taken for one person.

    Parameters
    ----------
    n_people : int
        People of the history.
    n_known : int
        Of these, people whose name the protected traces hold.
    n_observed : int
        Of these, people whose protected states the history holds: the same states at the same times. 0 where most people of one
        name have different states at one time: these times are counted from different beginnings, or the people are others.
    """

    n_people: int
    n_known: int
    n_observed: int

    @property
    def sentence(self) -> str:
        """Who is protected, and whether at the same times."""
        if not self.n_known:
            return f"none of its {self.n_people} people is protected"
        if not self.n_observed:
            return (
                f"{_share(self.n_known, self.n_people)} are protected, at other times: their states in the history are not "
                "protected, and the budgets depend on them"
            )
        return f"{_share(self.n_observed, self.n_people)} are protected, with the same states at the same times"


def shared_people(history: TraceTable, protected: TraceTable) -> SharedPeople:
    """Compare the people of a history, and their states at common times, with those of protected traces."""
    known = history.names & protected.names
    past, now = ({moment(label): k for k, label in enumerate(traces.times)} for traces in (history, protected))
    common = sorted((past[at], now[at]) for at in past.keys() & now.keys()) if known else []
    n_rows = sum(int(history.n_rows[one] + protected.n_rows[other]) for one, other in common)
    common = common[:: 1 + n_rows // MOST_COMPARED]
    states, others = history.states_at([one for one, _ in common]), protected.states_at([other for _, other in common])
    same: dict[str, bool] = {}
    for cell in states.keys() & others.keys():
        user = cell[0]
        same[user] = same.get(user, True) and states[cell] == others[cell]
    is_same_data = 2 * sum(same.values()) > len(same)
    return SharedPeople(history.n_users, len(known), len(same) if is_same_data else 0)


def _share(n: int, of: int) -> str:
    return f"all of its {of} people" if n == of else f"{n} of its {of} people"
