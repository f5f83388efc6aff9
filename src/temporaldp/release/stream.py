"""A release that runs for months: an accountant, a mechanism and a ledger, one step at a time."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Generic, Self

from temporaldp.accounting import TemporalAccountant, charging
from temporaldp.accounting.protocol import AccountingName
from temporaldp.accounting.ways import budgets
from temporaldp.errors import BudgetError, InputError
from temporaldp.files.moments import label_of
from temporaldp.planning import BudgetPlan, replan
from temporaldp.release.calendar import Calendar
from temporaldp.release.chain import LedgerRow, canonical
from temporaldp.release.continual import Output, Snapshot, spent_by
from temporaldp.release.identity import correlations_of
from temporaldp.release.ledger import Ledger
from temporaldp.release.outputs import as_text, from_text

LESS_THAN_PLANNED = 1e-6
"""Relative shortfall of what was spent from what was planned, from which on the rest is planned anew."""


class ContinualRelease(Generic[Snapshot, Output]):
    """Publishes one step after another, each once, and never more than the level allows.

    A step's budget is checked, its noise drawn and its output stored in one transaction; only then is the output handed out.
    After a crash at any moment a step is either not spent, or spent with its output stored, and asking again gives that output.
    Several processes may share a ledger: one step is one transaction, and each reads what the others added before it spends.

    Parameters
    ----------
    mechanism : callable (snapshot, epsilon) -> output
        epsilon-DP under replacement of one person's value. If it has a method ``epsilon_spent(epsilon)``, that is what counts
        as spent. Its output must be something JSON can keep, or a NumPy array.
    ledger : path or str
        An SQLite file, made if it does not exist, or a URL of a PostgreSQL database.
    accountant : TemporalAccountant, optional
        With alpha, and nothing spent yet: the ledger says what was. The release works with a copy (`accountant`).
    plan : BudgetPlan, optional
        What each step may spend. Without an accountant the plan alone holds the level (spending less leaks less). With one, the
        rest is planned anew when less was spent than planned. One of the two must be given.
    states : sequence of str, optional
        The data's schema: a ledger for other states is refused. Default: the plan's or the adversary's.
    step : str, optional
        How long one step is, in words; part of the schema. Default: the plan's.
    description : str, optional
        The mechanism's, part of what a ledger is for. Default: its ``repr`` if it is a dataclass, else its module and name, so
        that a function that moves to another module needs one.

    Raises
    ------
    LedgerMismatchError
        The ledger was made for another adversary, level, plan, mechanism or schema; says what differs.
    LedgerError
        The ledger cannot be read, or was changed.
    InputError
        Neither accountant nor plan is given, or they do not fit one another.

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

    def __init__(
        self,
        mechanism: Callable[[Snapshot, float], Output],
        *,
        ledger: str | os.PathLike[str],
        accountant: TemporalAccountant | None = None,
        plan: BudgetPlan | None = None,
        states: tuple[str, ...] | None = None,
        step: str | None = None,
        description: str | None = None,
    ) -> None:
        _require_guard(accountant, plan)
        if not callable(mechanism):
            raise InputError(f"expected a mechanism that can be called with (snapshot, epsilon), got {mechanism!r}")
        self._mechanism, self._accountant, self._plan = mechanism, copy(accountant), plan
        known = [one.states for one in accountant.adversaries.values()] if accountant is not None else []
        schema = states or (plan.states if plan is not None else None) or next(iter(known), None)
        _require_schema(mechanism, schema)
        self._configured: dict[str, Any] = {
            "alpha": accountant.alpha if accountant is not None else plan.alpha if plan is not None else None,
            "horizon": accountant.horizon if accountant is not None else None,
            "reserve": accountant.asked_reserve if accountant is not None else None,
            "neighboring_relation": "replace_one",
            "plan": None if plan is None else _plan_digest(plan),
            "mechanism": description or _described(mechanism),
            "states": None if schema is None else list(schema),
            "step": step or (None if plan is None else plan.step),
        }
        self._ledger = Ledger.open(ledger, self._configuration)
        self._calendar = Calendar(self.step)
        self._lock = threading.RLock()
        self._draws: weakref.WeakSet[_Draw] = weakref.WeakSet()
        self._replay()

    @property
    def accountant(self) -> TemporalAccountant | None:
        """The release's own copy of the accountant, as of the last step. Only the release may spend with it."""
        return self._accountant

    @property
    def ledger(self) -> Ledger:
        """The ledger."""
        return self._ledger

    @property
    def alpha(self) -> float:
        """The level that is held, in nats."""
        return float(self._configured["alpha"])

    @property
    def bound(self) -> AccountingName:
        """The accounting of the leakage by which it is held: the plan's, if there is one, else the accountant's."""
        return "paper" if self._plan is None else self._plan.bound

    @property
    def states(self) -> tuple[str, ...] | None:
        """The states of the data; None if they are not part of what the ledger is for."""
        known = self._configured["states"]
        return None if known is None else tuple(known)

    @property
    def step(self) -> str | None:
        """How long one step is, in words, if that is known."""
        known: str | None = self._configured["step"]
        return known

    @property
    def steps_left(self) -> int | None:
        """How many steps the plan or the horizon has left; None if there is no end."""
        ends = [self._accountant.horizon if self._accountant is not None else None]
        ends += [self._plan.horizon if self._plan is not None else None]
        known = [end for end in ends if end is not None]
        return min(known) - len(self) if known else None

    def has(self, time: object) -> bool:
        """Whether the ledger has this time, as of the last reading or writing; in whatever spelling of dates and numbers."""
        return self._calendar.position(label_of(time)) is not None

    def refresh(self) -> None:
        """Read what other processes added. Errors as for `Ledger.refresh`."""
        with self._lock:
            self._ledger.refresh()
            self._replay()

    def row(self, time: object) -> LedgerRow:
        """The ledger's row of a time; KeyError if it has none."""
        position = self._calendar.position(label_of(time))
        if position is None:
            raise KeyError(time)
        return self._ledger[position]

    def require_next(self, times: Sequence[object]) -> None:
        """Refuse times that cannot be the next steps, in this order; changes nothing.

        Raises
        ------
        InputError
            One is late, of another kind than those before, or less than a step after the one before it.
        """
        trial = self._calendar.copy()
        for label in map(label_of, times):
            trial.require_next(label)
            trial.add(label)

    def __len__(self) -> int:
        return len(self._ledger)

    def __repr__(self) -> str:
        return f"ContinualRelease({self._configured['mechanism']}, {self._ledger!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the ledger."""
        self._ledger.close()

    def release(
        self, snapshot: Snapshot, *, time: object, epsilon: float | None = None, last: bool = False
    ) -> Output | None:
        """The step's published output: drawn and stored now, or the stored one if this time was released before.

        Parameters
        ----------
        snapshot
            The data of this step, for the mechanism; not looked at if the time was released before.
        time : str, number, date or datetime
            The step's label. Times must come in order: numbers, dates, or words that end in a number are known again and
            compared in any spelling; other words are taken in the order in which they come.
        epsilon : float, optional
            Budget, in nats. Default: the plan's; or else what the accountant can spend for ever, the rest at the last step.
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
        return self._publish(label_of(time), lambda budget: self._mechanism(snapshot, budget), epsilon, bool(last))

    def skip(self, *, time: object) -> None:
        """Pass over a step: nothing is published or spent, but time goes on. Errors as for `release`.

        Raises
        ------
        InputError
            The step was published already.
        """
        if self._publish(label_of(time), None, 0.0, last=False) is not None:
            raise InputError(f"time {str(time)!r} was published already, and cannot be passed over any more")

    def next_budget(self, *, last: bool = False) -> float:
        """What the next step would spend if no epsilon is given, in nats.

        Raises
        ------
        BudgetError
            The plan or the horizon is over, or nothing can be spent for ever and there is neither plan nor horizon.
        """
        steps = len(self._ledger)
        self._require_more()
        plan = self._current_plan()
        if plan is not None:
            planned = float(plan.budgets(1, start=steps)[0])
            # A plan made elsewhere may use alpha to the last digit; the accountant keeps a few for rounding.
            return planned if self._accountant is None else min(planned, self._accountant.remaining(last=last))
        assert self._accountant is not None
        left = self._accountant.remaining(last=last)
        if last:
            return left
        if self._accountant.reserve == 0.0:
            raise BudgetError(
                "no positive budget can be spent at every step for ever, so there is no default: give epsilon=, a plan, or an "
                "accountant with a horizon"
            )
        return min(left, self._accountant.reserve)

    def _publish(
        self, time: str, draw: Callable[[float], Output] | None, epsilon: float | None, last: bool
    ) -> Output | None:
        with self._lock:
            if self._draws:
                raise InputError("a mechanism must not release a step while it draws one")
            self._ledger.require_open()
            if self._calendar.position(time) is None:
                self._store(time, draw, epsilon, last)
                self._replay()
            text = self.row(time).output
            if text is None:
                return None
            output: Output = from_text(text)
            return output

    def _store(self, time: str, draw: Callable[[float], Output] | None, epsilon: float | None, last: bool) -> None:
        """Check, draw and store in one transaction; nothing if another process was faster."""
        with self._ledger.writing() as writer:
            self._replay()
            if self._calendar.position(time) is not None:
                return
            self._calendar.require_next(time)
            self._require_more()
            budget = self.next_budget(last=last) if epsilon is None else float(budgets([epsilon])[0])
            spent = 0.0 if draw is None else spent_by(self._mechanism, budget, len(self._ledger))
            self._admit(spent, last)
            charging.charge([spent], last=last)  # first: whatever happens then, nobody around has counted too little
            output = None
            if draw is not None and budget > 0.0:
                going_on = _Draw()
                self._draws.add(going_on)
                with charging.settled():
                    output = draw(budget)
            stored = None if output is None else as_text(output)
            leakage = None if self._accountant is None else self._accountant.total_after(spent)
            writer.append(time=time, epsilon=spent, leakage=leakage, last=last, output=stored)

    def _require_more(self) -> None:
        if len(self._ledger) and self._ledger[-1].last:
            raise BudgetError(
                f"the step at time {self._ledger[-1].time!r} was declared the last; nothing may follow it"
            )

    def _admit(self, spent: float, last: bool) -> None:
        """Refuse what the accountant or, without one, the plan does not allow."""
        step = len(self._ledger)
        if self._accountant is not None:
            self._accountant.check(spent, last=last)
            return
        assert self._plan is not None
        granted = float(self._plan.budgets(1, start=step)[0])
        if spent > granted:
            raise BudgetError(f"epsilon = {spent:.10g} at step {step} is more than the plan grants, {granted:.10g}")

    def _replay(self) -> None:
        """Tell the accountant and the calendar what the ledger has."""
        steps = len(self._ledger)
        if self._accountant is not None:
            if len(self._accountant) > steps:
                raise InputError(
                    f"the accountant has {len(self._accountant)} steps and the ledger {steps}: something else was charged to "
                    "the release's own accountant; open the release again"
                )
            for row in self._ledger[len(self._accountant) :]:
                self._accountant.record(row.epsilon, last=row.last)  # another machine's rounding must not refuse a fact
        for row in self._ledger[len(self._calendar) :]:
            self._calendar.add(row.time)

    def _current_plan(self) -> BudgetPlan | None:
        """The plan, made anew where less was spent than planned."""
        accountant = self._accountant
        if accountant is None or accountant.horizon is None or accountant.reserve > 0.0:
            return self._plan
        if len(accountant) >= accountant.horizon:
            return self._plan
        spent = accountant.ledger.sum()
        planned = 0.0 if self._plan is None else self._plan.epsilons[: len(accountant)].sum()
        if self._plan is None or spent < planned * (1.0 - LESS_THAN_PLANNED):
            self._plan = replan(accountant)
        return self._plan

    def _configuration(self, kept: dict[str, Any] | None) -> dict[str, Any]:
        if self._accountant is None:
            return {**self._configured, "correlations": None}
        old = (kept or {}).get("correlations")
        salt = None if old is None else old["salt"]
        return {**self._configured, "correlations": correlations_of(self._accountant.adversaries.values(), salt=salt)}


class _Draw:
    """One step that is being drawn: as long as the frame that made it lives, whatever interrupts it."""


def _require_schema(mechanism: Any, states: Sequence[str] | None) -> None:
    n_states = getattr(mechanism, "n_states", None)
    if isinstance(n_states, int) and states is not None and n_states != len(states):
        raise InputError(f"the mechanism counts {n_states} states, but the release has {len(states)}")


def _require_guard(accountant: TemporalAccountant | None, plan: BudgetPlan | None) -> None:
    """Something must hold the level, and both must hold the same."""
    for given, kind in ((accountant, TemporalAccountant), (plan, BudgetPlan)):
        if given is not None and not isinstance(given, kind):
            raise InputError(f"expected a {kind.__name__}, got {type(given).__name__}")
    if plan is not None and plan.delta:
        raise InputError(
            "the plan is for a delta, and a continual release spends epsilons with delta = 0: release_histograms publishes "
            "under such a plan"
        )
    if accountant is None:
        if plan is None:
            raise InputError("expected an accountant or a plan (or both): something must hold the level")
        return
    if accountant.alpha is None:
        raise InputError("expected an accountant with alpha: an odometer refuses nothing")
    if len(accountant):
        raise InputError(f"expected an accountant that has spent nothing yet, got one with {len(accountant)} steps")
    if plan is None:
        return
    if plan.bound != "paper":
        raise InputError(
            f"the plan holds alpha by bound={plan.bound!r}, and an accountant counts by the paper's: give the plan alone, "
            "which holds the level, or plan with bound='paper'"
        )
    if plan.alpha > accountant.alpha:
        raise InputError(f"the plan holds alpha = {plan.alpha:g}, more than the accountant's {accountant.alpha:g}")
    if plan.horizon is not None and accountant.horizon != plan.horizon:
        raise InputError(
            f"the plan has {plan.horizon} steps, so the accountant needs horizon={plan.horizon}, got {accountant.horizon}"
        )


def _described(mechanism: Any) -> str:
    if dataclasses.is_dataclass(mechanism):
        return repr(mechanism)
    name = getattr(mechanism, "__qualname__", None) or type(mechanism).__qualname__
    return f"{getattr(mechanism, '__module__', '')}.{name}"


def _plan_digest(plan: BudgetPlan) -> str:
    content = canonical([plan.alpha, plan.horizon, plan.method, plan.epsilons.tolist()])
    return hashlib.sha256(content.encode("ascii")).hexdigest()
