"""Continual release: an accountant, a mechanism and a ledger, one step at a time."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Generic

import numpy as np

from temporaldp.base.errors import InputDiffersWarning, InputError
from temporaldp.base.names import printable, require_same_states, state_names
from temporaldp.base.values import REPLACE_ONE
from temporaldp.core.accounting import TemporalAccountant
from temporaldp.core.accounting.protocol import budgets
from temporaldp.core.planning import Plan
from temporaldp.data.smoothing import CountEstimate, PublicCorrelation, require_public
from temporaldp.data.tables.moments import label_of, moment
from temporaldp.publish.release import filtering
from temporaldp.publish.release.chain import LedgerRow
from temporaldp.publish.release.closing import Closing
from temporaldp.publish.release.database import Store
from temporaldp.publish.release.guards import Forecast, guard_of
from temporaldp.publish.release.key_and_marks import keyed_digest, matches
from temporaldp.publish.release.outputs import as_text, from_text, with_filtered
from temporaldp.publish.release.renewal import Every, renewed_guard
from temporaldp.publish.release.step import Output, ReleaseSteps, Snapshot, StepRequest


class ContinualRelease(Closing, Generic[Snapshot, Output]):
    """Continual release: publishes each step exactly once, and satisfies a level at every step.

    A step's budget is checked, its noise drawn and its output stored in one transaction; only then is the output handed out.
    After a crash at any moment a step is either not spent, or spent with its output stored, and asking again gives that output.
    Several processes may share a ledger: one step is one transaction, and each reads what the others added before it spends.

    Parameters
    ----------
    mechanism : callable (snapshot, epsilon) -> output, or under a noise plan (snapshot, scale) -> output
        epsilon-DP under replacement of one person's state. If it has a method ``epsilon_spent(epsilon)``, that is what counts
        as spent. Under a noise plan, a histogram with noise of that scale, such as a `NoisyHistogram`. Its output must be
        something JSON can keep, or a NumPy array.
    ledger : path or str
        An SQLite file, made if it does not exist, or a URL of a PostgreSQL database.
    accountant : TemporalAccountant, optional
        With alpha, and nothing spent yet: what was spent is read from the ledger. The release works with a copy (`accountant`).
    plan : BudgetPlan or NoisePlan, optional
        Budget or noise of each step. Without an accountant the plan alone enforces the level (spending
        less leaks less). With one, which takes budgets only, the rest is planned anew when less was spent than planned.
        One of the two must be given. Under a noise plan nothing is chosen adaptively: the guarantee at delta does not
        cover noise that depends on earlier outputs.
    states : sequence of str, optional
        The data's schema: a ledger for other states is refused. Default: the plan's or the adversary's.
    step : str, optional
        Length of one step, in words; part of the schema. Default: the plan's.
    description : str, optional
        The mechanism's, part of what a ledger is for. Default: its ``repr`` if it is a dataclass, else its module and name, so
        that a function that moves to another module needs one.
    correlation : PublicCorrelation, optional
        Of a histogram: each step also gets its filtered counts, from the releases up to it, the public total (the sum of the
        snapshot) and this correlation. They are stored with the step (`filtered`), and cost no privacy.
    renewed : {"steps", "daily", "weekly", "monthly", "yearly"}, optional
        The plan, of budgets with a horizon, begins again: after its last step, or with the first step of a day, week, month or
        year, however many of its steps were over (a week begins on Monday). The accountant is then an odometer (without alpha),
        which counts what all epochs leak together: more than alpha, never more than ``guard.promise`` (`leakage_of_epochs`).
    timezone : str, optional
        With `renewed`: time zone of these days, weeks, months and years, such as "Europe/Amsterdam", for times with an offset.
        Default: the clock that times are written with.
    begin_anew : bool
        Go on although the ledger was lost, or is an older copy: steps that this machine wrote and the ledger lacks are
        disregarded, and their times may be drawn again. What both releases reveal together may exceed the level. The ledger
        records it with the next step. Refused where nothing is missing.

    Attributes
    ----------
    ledger : Ledger
    guard : Guard
        Enforcement of the level.
    correlation : PublicCorrelation or None
        Correlation of the filter, if any.
    states : tuple of str or None
        The states of the data; None if they are not part of the configuration.
    step : str or None
        Length of one step, in words, if known.
    table : str or None
        Table of an account that is published (`SharedRelease`); None if the ledger is of one release.

    Raises
    ------
    LedgerMismatchError
        The ledger was made for another adversary, level, plan, mechanism or schema; the message names the differences.
    LedgerError
        The ledger cannot be read, was changed or lost, or lacks steps that this machine wrote. A new ledger without steps is
        removed when an error ends the ``with`` block.
    InputError
        Neither accountant nor plan is given, or they do not fit one another.
    PlanError
        The plan to renew does not satisfy its level against the accountant's adversary, or its leakage would be unbounded.

    Examples
    --------
    >>> import tempfile
    >>> from temporaldp import Adversary, DiscreteLaplaceHistogram, TransitionMatrix
    >>> matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> mechanism = DiscreteLaplaceHistogram(n_states=2)
    >>> def publish(ledger):
    ...     accountant = TemporalAccountant(Adversary(matrix, matrix), alpha=1.0)
    ...     with ContinualRelease(mechanism, ledger=ledger, accountant=accountant) as stream:
    ...         return stream.release([70, 30], time="09:00").tolist(), len(stream), round(stream.accountant.total(), 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = publish(f"{folder}/release.db")
    ...     again = publish(f"{folder}/release.db")  # another day, another process
    >>> first == again, first[1:]
    (True, (1, 0.2598))
    """

    table: str | None = None

    def __init__(
        self,
        mechanism: Callable[[Snapshot, float], Output],
        *,
        ledger: str | os.PathLike[str] | Store,
        accountant: TemporalAccountant | None = None,
        plan: Plan | None = None,
        states: tuple[str, ...] | None = None,
        step: str | None = None,
        description: str | None = None,
        correlation: PublicCorrelation | None = None,
        renewed: Every | None = None,
        timezone: str | None = None,
        begin_anew: bool = False,
    ) -> None:
        if renewed is None and timezone is not None:
            raise InputError("a time zone is that of a renewed level: leave it out, or give `renewed`")
        self.guard = (
            guard_of(accountant, plan) if renewed is None else renewed_guard(accountant, plan, renewed, step, timezone)
        )
        self.guard.require_mechanism(mechanism)
        self._mechanism = mechanism
        users = () if accountant is None else accountant.population.users
        given = (None if plan is None else plan.states, *(user.shown.states for user in users))
        known, named = [one for one in given if one is not None], None if states is None else state_names(states)
        # Without names of their own, states have numbers
        own = [one for one in known if one != tuple(map(str, range(len(one))))]
        self.states = named or next(iter([*own, *known]), None)
        for one in known:
            if self.states and set(one) != set(self.states) and (one in own or len(one) != len(self.states)):
                require_same_states(one, self.states, what="this release")
        n_states = getattr(mechanism, "n_states", None)
        if isinstance(n_states, int) and self.states is not None and n_states != len(self.states):
            raise InputError(f"the mechanism counts {n_states} states, but the release has {len(self.states)}")
        self.step = printable(step, "step") if step else (None if plan is None else plan.provenance.step)
        self._configured: dict[str, Any] = {
            "horizon": None,
            "reserve": None,
            "correlations": None,
            "neighboring_relation": REPLACE_ONE,
            "mechanism": printable(description or described(mechanism), "description"),
            "states": None if self.states is None else list(self.states),
            "step": self.step,
            **getattr(mechanism, "ledger_terms", {}),
        }
        self._filter: filtering.StepFilter | None = None
        self.correlation: PublicCorrelation | None = None
        if correlation is not None:
            filtering.require_histogram(mechanism)
            public = require_public(correlation)
            public = public if self.states is None else public.reordered(self.states)
            self._filter, self.correlation = filtering.StepFilter(public, self.guard), public
            self._configured["filter"] = "a public correlation"  # any: a release may adopt another one
        self._steps = ReleaseSteps(
            ledger, self.guard, mechanism, self._configured, self._written, begin_anew=begin_anew
        )
        self.ledger = self._steps.ledger
        if self._filter is not None and self.ledger.checkpoint is not None:
            self._filter.resume(self.ledger.checkpoint.accountant["filter"])

    @property
    def accountant(self) -> TemporalAccountant | None:
        """Copy of the accountant, as of the last step. Only the release may spend with it."""
        return self.guard.accountant

    def has(self, time: object) -> bool:
        """Whether the ledger has this time, in any spelling, as of the last reading or writing."""
        return self._steps.calendar.position(label_of(time)) is not None

    def refresh(self) -> None:
        """Read what other processes added. Errors as for `Ledger.refresh`."""
        self._steps.refresh()

    def row(self, time: object) -> LedgerRow:
        """The ledger's row of a time; KeyError if it has none."""
        position = self._steps.calendar.position(label_of(time))
        if position is None:
            raise KeyError(time)
        return self.ledger[position]  # type: ignore[no-any-return]

    def published(self, time: object) -> Any:
        """Stored output of a time; None if nothing was published then."""
        text = self.row(time).output if self.has(time) else None
        return None if text is None else from_text(text)

    @property
    def n_published(self) -> int:
        """Number of steps in the ledger, those that were passed over included."""
        return len(self)

    @property
    def leakage(self) -> float | None:
        """Largest leakage of any step so far, in nats; None without a step, or where the ledger stores no leakage."""
        return self.ledger[-1].leakage if len(self) else None

    def filtered(self, time: object) -> CountEstimate:
        """Stored filtered counts of a released time, with their intervals.

        Raises
        ------
        KeyError
            The time was not released.
        InputError
            The release has no correlation to filter by, or the step was passed over.
        """
        return filtering.stored_estimate(self.row(time))

    def completed(self, times: Sequence[object]) -> list[str]:
        """These times, the next steps, and those between that must be skipped (`skip`).

        Steps must be skipped only where the correlation depends on a clock, so that each step has a phase of its own. Dates are
        written as precisely as those of the ledger.
        """
        return self._steps.calendar.completed(*map(label_of, times))

    def require_next(self, times: Sequence[object]) -> None:
        """Raise an error for times that cannot be the next steps, in this order; changes nothing.

        Raises
        ------
        InputError
            A time is late, of another kind than those before, or less than a step after the previous one.
        """
        self._steps.calendar.require_next(*map(label_of, times))

    def __len__(self) -> int:
        return len(self.ledger)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._configured['mechanism']}, {self.ledger!r})"

    def __exit__(self, *error: object) -> None:
        if error and error[0] is not None:
            self.ledger.discard_unused()
        self.close()

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()

    def release(
        self, snapshot: Snapshot, *, time: object, epsilon: float | None = None, last: bool = False
    ) -> Output | None:
        """Publish a step: draw and store its output, or return the stored one if this time was released before.

        Parameters
        ----------
        snapshot
            The data of this step, for the mechanism. If the time was released before, the stored output is returned; an
            `InputDiffersWarning` is issued if the data differ from those from which it was drawn.
        time : str, number, date or datetime
            The step's label. Times must come in order: numbers, dates, or words that end in a number are known again and
            compared in any spelling; other words are in the order of the calls.
        epsilon : float, optional
            Budget, in nats. Default: that of the plan; without a plan the sustainable budget, the rest at the last step.
        last : bool
            No step follows: what is reserved for later ones may be used.

        Returns
        -------
        The mechanism's output. None for a time that was passed over (`skip`, or a plan without a budget for it).

        Raises
        ------
        LeakageBudgetError, BudgetError
            The budget is refused, or there is none left. Nothing was drawn or spent.
        InputError
            The time comes before one that was released, or the output cannot be stored. Nothing was spent.
        LedgerError
            The ledger could not be read or written. Nothing was published.
        """
        known = self.has(time)
        row = self._publish(request_of(time, epsilon, last=last, data=snapshot))
        if known and matches(row.digest, "data", snapshot) is False:
            warnings.warn(InputDiffersWarning(row.time), stacklevel=2)
        output: Output | None = None if row.output is None else from_text(row.output)
        return output

    def input_matches(self, snapshot: Snapshot, *, time: object) -> bool | None:
        """Return whether a released step is requested with the data that it was drawn from, by a keyed digest.

        None where it cannot be determined: nothing was published at that time, the digest's key is not on this machine
        (`TEMPORALDP_KEY_FILE`), or the data are not plain numbers and text.
        """
        return matches(self.row(time).digest, "data", snapshot)

    def skip(self, *, time: object) -> None:
        """Skip a step: nothing is published or spent. Errors as for `release_snapshots`.

        Raises
        ------
        InputError
            The step was published already.
        """
        if self._publish(StepRequest(label_of(time), epsilon=0.0)).output is not None:
            raise InputError(f"time {str(time)!r} was published already, and can no longer be passed over")

    def forecast(self, times: Sequence[object]) -> list[Forecast]:
        """Forecast of the budgets and leakage of those times that are not in the ledger; nothing is drawn or stored.

        Raises
        ------
        LateDataError, InputError
            They cannot be the next steps, in this order.
        LeakageBudgetError, BudgetError
            There is no budget for one of them.
        """
        with self._steps.lock:
            self.refresh()
            new = [label for label in map(label_of, times) if self._steps.calendar.position(label) is None]
            steps, asked = self.completed(new), {moment(label) for label in new}
            self.require_next(steps)
            if new:
                self._steps.require_more()
            skipped = {label for label in steps if moment(label) not in asked}
            return self.guard.forecast(self._mechanism, len(self), steps, skipped)

    def _publish(self, request: StepRequest) -> LedgerRow:
        """The row of a step, taken unless it was taken before; a step that is there needs no right to write."""
        with self._steps.lock:
            self.ledger.store.database.require_open()
            self.guard.replay(self.ledger)  # an interrupt may have come between a step and its being counted
            if self._steps.is_drawing or self._steps.calendar.position(request.time or "") is None:
                self._steps.take(request)
                self._steps.keep_checkpoint(
                    lambda: {} if self._filter is None else {"filter": self._filter.kept_state(self.ledger)}
                )
            return self.row(request.time)

    def _written(self, output: Any, epsilon: float, snapshot: Any) -> tuple[str, str | None]:
        """Return the text of an output, with filtered counts if there is a filter, and the digest of the snapshot."""
        text = as_text(output)
        if self._filter is not None:
            total = int(np.sum(np.asarray(snapshot)))
            text = with_filtered(text, self._filter.next_step(self.ledger, output, epsilon, total))
        return text, keyed_digest("data", snapshot)


def request_of(time: object, epsilon: float | None, *, last: bool, data: Any = None) -> StepRequest:
    """Return the request for a step, with a checked time and epsilon."""
    return StepRequest(label_of(time), None if epsilon is None else float(budgets([epsilon])[0]), bool(last), data=data)


def described(mechanism: Any) -> str:
    """Description of a mechanism in the configuration of a ledger."""
    if dataclasses.is_dataclass(mechanism):
        return repr(mechanism)
    name = getattr(mechanism, "__qualname__", None) or type(mechanism).__qualname__
    return f"{getattr(mechanism, '__module__', '')}.{name}"
