"""Several tables about the same people on one account: each step is charged once, for all tables."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import InputDiffersWarning, InputError, LedgerMismatchError
from temporaldp.base.names import printable, state_names
from temporaldp.base.values import positive, refuse
from temporaldp.core.accounting import TemporalAccountant
from temporaldp.core.planning.measurement import budget_measurement, require_budget_mechanism
from temporaldp.data.counts.histogram import DiscreteLaplaceHistogram
from temporaldp.data.counts.shared_budget import LEFT_OVER
from temporaldp.data.tables.moments import label_of, spelled
from temporaldp.publish.release.chain import LedgerRow
from temporaldp.publish.release.database import Store
from temporaldp.publish.release.guards import Forecast
from temporaldp.publish.release.key_and_marks import keyed_digest
from temporaldp.publish.release.ledger import Ledger
from temporaldp.publish.release.outputs import as_text
from temporaldp.publish.release.resuming import unspent_accountant
from temporaldp.publish.release.stream import ContinualRelease, described, request_of


@dataclass(frozen=True, slots=True)
class SharedCharge:
    """Mechanism without data: the outputs of a step are its tables."""

    shares: tuple[tuple[str, float], ...]
    states: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)

    @property
    def ledger_terms(self) -> dict[str, Any]:
        """Entries of the ledger's configuration about the tables."""
        states = dict(self.states)
        tables = {name: {"share": share, "states": list(states[name])} for name, share in self.shares if name in states}
        return {"tables": tables} if tables else {}

    def __call__(self, snapshot: None, epsilon: float) -> dict[str, float]:
        """Return the budget that is charged."""
        return {"charged": epsilon}


class TableSpent(NamedTuple):
    """Budgets that one table of an account has spent, 0 at other steps, and its share if the ledger records it."""

    name: str
    share: float | None
    epsilons: NDArray[np.float64]


def tables_of(ledger: Ledger) -> list[TableSpent]:
    """The tables of an account, with their budgets at every step, in nats; none in the ledger of a single release."""
    shares = {name: one["share"] for name, one in ledger.configuration.get("tables", {}).items()}
    found = {name: np.zeros(len(ledger)) for name in shares}
    for event in ledger.events:
        if event.kind == "table":
            charged = event.details
            found.setdefault(event.by, np.zeros(len(ledger)))[charged["step"]] = charged["epsilon"]
    return [TableSpent(name, shares.get(name), spent) for name, spent in found.items()]


class SharedRelease(ContinualRelease[Any, Any]):
    """One of several tables about the same people, each published by its own job, in one ledger.

    Several tables may reveal the same state of a person. The accountant therefore counts leakage about the state in all tables
    together (`independent_adversary`, or a joint matrix), and the first job of a step charges it for all tables: each then has
    its share, also after later steps. An unused share is lost.

    Parameters
    ----------
    table : str
        Name of the table that this job publishes.
    mechanism : callable (snapshot, epsilon) -> output
        As for `ContinualRelease`.
    shares : mapping of str to float
        Share of each step's budget of every table: above 0, with a sum of at most 1. The same for all jobs.
    ledger, accountant, step, begin_anew
        As for `ContinualRelease`, the same for all jobs.
    states : mapping of str to sequences of str, optional
        The states of every table that is a histogram. The ledger then stores them, and a job names its table only
        (`SharedRelease.of`).

    Attributes
    ----------
    table : str
        Name of the table that this job publishes.
    share : float
        Share of each step's budget.
    states : tuple of str or None
        The states of this table; None where the ledger does not store them.
    ledger, guard, step
        As for `ContinualRelease`, of all tables together.

    Raises
    ------
    LedgerMismatchError
        The ledger has other shares, another account, or another mechanism for this table.
    InputError
        The table has no share, or the shares are not admissible.

    Examples
    --------
    >>> import tempfile
    >>> from temporaldp import Adversary, DiscreteLaplaceHistogram, TransitionMatrix
    >>> from temporaldp.core.correlation import independent_adversary
    >>> stages, places = (TransitionMatrix([[p, 1.0 - p], [1.0 - p, p]]) for p in (0.6, 0.7))
    >>> both = independent_adversary(Adversary(stages, stages), Adversary(places, places))
    >>> def publish(ledger, table, hour):
    ...     return SharedRelease(
    ...         table, DiscreteLaplaceHistogram(2), shares={"stages": 0.5, "places": 0.5}, ledger=ledger,
    ...         accountant=TemporalAccountant(both, alpha=1.0),
    ...     ).release([70, 30], time=hour)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stages_at_9 = publish(f"{folder}/account.db", "stages", 9)
    ...     stages_at_10 = publish(f"{folder}/account.db", "stages", 10)
    ...     places_at_9 = publish(f"{folder}/account.db", "places", 9)
    ...     with Ledger(f"{folder}/account.db") as ledger:
    ...         len(ledger), ledger[-1].leakage <= 1.0
    (2, True)
    """

    table: str

    def __init__(
        self,
        table: str,
        mechanism: Callable[[Any, float], Any],
        *,
        shares: Mapping[str, float],
        ledger: str | os.PathLike[str] | Store,
        accountant: TemporalAccountant,
        step: str | None = None,
        states: Mapping[str, Sequence[str]] | None = None,
        begin_anew: bool = False,
    ) -> None:
        known = {printable(name, "table"): positive(one, f"share of {name!r}") for name, one in shares.items()}
        refuse(
            (
                table not in known,
                InputError(f"expected a table with a share ({', '.join(known) or 'none has one'}), got {table!r}"),
            ),
            (
                math.fsum(known.values()) > 1.0 + LEFT_OVER,
                InputError(f"expected shares of at most 1 together, got {math.fsum(known.values()):g}"),
            ),
            (
                states is not None and set(states) != set(known),
                InputError(f"expected states for {', '.join(known)}, got some for {', '.join(states or ()) or 'none'}"),
            ),
        )
        require_budget_mechanism(mechanism, accountant.accounting.distances)
        named = tuple((name, state_names(some)) for name, some in sorted((states or {}).items()))
        whose = accountant.population.states
        if named and whose is not None:  # a joint estimate has the combinations that occur, which may be few of all
            of_each = [set(some) for _, some in named]
            is_of_one = any(set(whose) <= own for own in of_each) and not all(set(whose) == own for own in of_each)
            if is_of_one or len(whose) > math.prod(map(len, of_each)):
                sizes = " x ".join(str(len(own)) for own in of_each)
                raise InputError(
                    f"expected an accountant about the states of all tables together (at most {sizes}), as of "
                    f"`independent_adversary` or of `joint_trajectories`, got one of {len(whose)} states: "
                    f"{', '.join(whose[:4])}{', ...' if len(whose) > 4 else ''}. Where one table's state "
                    "determines those of the others, name it with them"
                )
        charge = SharedCharge(tuple(sorted(known.items())), named)
        super().__init__(charge, ledger=ledger, accountant=accountant, step=step, begin_anew=begin_anew)
        self.table, self.share, self.states = table, known[table] * (1.0 - 2.0 * LEFT_OVER), dict(named).get(table)
        self._table_mechanism, self._described = mechanism, described(mechanism)
        self._published: dict[int, dict[str, Any]] = {}
        self._n_seen = 0
        self._take_in()

    @classmethod
    def of(cls, table: str, ledger: str | os.PathLike[str] | Store, *, begin_anew: bool = False) -> Self:
        """Continue with a table of an account whose ledger stores the states of all tables and the matrices.

        Raises
        ------
        InputError
            The ledger is not that of an account with states, or has no such table.
        LedgerError
            There is no ledger, it cannot be read, or the matrices are not stored in it.
        """
        with ExitStack() as after_an_error:
            known = after_an_error.enter_context(Ledger(ledger))
            tables, configuration = account_tables(known, table), known.configuration
            assert known.correlations is not None  # an account has an accountant
            accountant = unspent_accountant(known, known.correlations["users"])
            after_an_error.pop_all()
        return cls(
            table, DiscreteLaplaceHistogram(len(tables[table]["states"])), ledger=known.store, accountant=accountant,
            shares={name: one["share"] for name, one in tables.items()}, step=configuration["step"],
            states={name: one["states"] for name, one in tables.items()}, begin_anew=begin_anew,
        )  # fmt: skip

    def release(self, snapshot: Any, *, time: object, epsilon: float | None = None, last: bool = False) -> Any:
        """The table's output at a step, drawn now or stored before. Errors as for `ContinualRelease.release`.

        `epsilon` and `last` are about the step of all tables, and used by the job that charges it.
        """
        request = request_of(time, epsilon, last=last)
        with self._steps.lock:
            with self._steps.taking(request) as (writer, row, _):  # charged, unless another job did
                self._take_in()
                again = row.step in self._published
                if not again:
                    made = budget_measurement(self._table_mechanism, row.epsilon * self.share, row.step)
                    drawn = self._steps.drawn(made, snapshot)
                    writer.begin_anew()
                    writer.note(
                        "table",
                        by=self.table,
                        details={
                            "step": row.step,
                            "epsilon": made.epsilon,
                            "mechanism": self._described,
                            "output": None if drawn is None else as_text(drawn),
                            "digest": keyed_digest("data", snapshot),
                        },
                    )
            self._steps.keep_checkpoint()
        self._take_in()
        if again and self.input_matches(snapshot, time=time) is False:
            warnings.warn(InputDiffersWarning(row.time), stacklevel=2)
        return self.published(time)

    def completed(self, times: Sequence[object]) -> list[str]:
        """These times: steps between them are not skipped, because other tables may publish them."""
        return [spelled(label_of(time), self._steps.calendar.last, self.step) for time in times]

    @property
    def n_published(self) -> int:
        """Number of steps with this table, as of the last reading or writing."""
        return len(self._published)

    def refresh(self) -> None:
        """Read what other jobs added. Errors as for `Ledger.refresh`."""
        super().refresh()
        self._take_in()

    def row(self, time: object) -> LedgerRow:
        """The ledger's row of a time, with what this table published and spent then; KeyError if it has none."""
        row = super().row(time)
        own = self._published.get(row.step, {"output": None, "epsilon": 0.0, "digest": None})
        return row._replace(output=own["output"], epsilon=own["epsilon"], digest=own["digest"])

    def forecast(self, times: Sequence[object]) -> list[Forecast]:
        """Budgets and leakage of publishing these times, where this table was not published; nothing is drawn or stored.

        The leakage is that of all tables. Steps that another table's job has charged leak no more than they did. Errors as for
        `ContinualRelease.forecast`.
        """
        new = {one.time: one for one in super().forecast(times)}
        found = []
        step_of = self._steps.calendar.position
        for time in (label for label in self.completed(times) if step_of(label) not in self._published):
            charged = new.get(time) or super().row(time)._replace(leakage=self.leakage)
            made = budget_measurement(self._table_mechanism, charged.epsilon * self.share, len(self))
            found.append(Forecast(time, made.parameter, made.epsilon, charged.leakage))
        return found

    def _take_in(self) -> None:
        """Know what this table published so far."""
        with self._steps.lock:
            new = self.ledger.events[self._n_seen :]
            self._n_seen += len(new)
            texts = [event.content for event in new if event.kind == "table" and event.by == self.table]
            for published in json.loads(f"[{','.join(texts)}]"):  # at once: there may be very many
                if published["mechanism"] != self._described:
                    self.close()
                    raise LedgerMismatchError(
                        f"table {self.table!r} of {self.ledger.place} is published by {published['mechanism']}, this release "
                        f"by {self._described}; go on with the same mechanism, or give this one a share and a name of its own"
                    )
                self._published[published["step"]] = published


def account_tables(ledger: Ledger, table: str) -> dict[str, Any]:
    """Share and states of each table of an account, one of which has this name."""
    tables: dict[str, Any] | None = ledger.configuration.get("tables")
    if tables is None:
        raise InputError(
            f"{ledger.place} is not an account of several tables; `temporaldp ledger share` creates one, and a release of one "
            "table alone is asked for without the name of a table"
        )
    if table not in tables:
        raise InputError(f"{ledger.place} is the account of {', '.join(sorted(tables))}, and has no table {table!r}")
    return tables
