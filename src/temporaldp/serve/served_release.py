"""One release of the service: what may be spent is checked, noise drawn and the step stored in one transaction.

It is a continual release (`temporaldp.release.stream`) for callers who may repeat a request: it is recognised by its key and
the token that made it, and gets the stored answer. No answer depends on the counts of earlier requests, and nothing that is
stored is computed from counts without noise. Two things are left for later than there, because many wait. How much has
leaked is counted when somebody asks. And as long as no step spent more than the reserve, a budget within it is admitted without
asking the filter: what every step may spend was proved when the release was created, and its chain vouches for it.

What others wrote is read inside of the transaction that writes, behind the release's lock: what this process remembers saves
reading, and never decides.
"""

from __future__ import annotations

import threading
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from temporaldp.accounting import TemporalAccountant
from temporaldp.accounting.accountant import account_of
from temporaldp.errors import InputError, SpentError, TemporaldpError
from temporaldp.files.moments import is_near
from temporaldp.planning.measurement import Measurement
from temporaldp.release.adopting import take_in
from temporaldp.release.calendar import Calendar
from temporaldp.release.chain import LedgerRow
from temporaldp.release.guards import AccountantGuard
from temporaldp.release.histogram import DiscreteLaplaceHistogram
from temporaldp.release.ledger import Ledger
from temporaldp.release.outputs import as_text, from_text
from temporaldp.release.store import Store
from temporaldp.release.stream import described
from temporaldp.serve.definition import Definition, Histogram, proved, unspent
from temporaldp.values import REPLACE_ONE


class RepeatedDifferentlyError(InputError):
    """A key that was used before for another request, or a time that another request released."""


class RefusedBudgetError(TemporaldpError, ValueError):
    """A budget that the level does not allow at the next step; nothing was spent.

    Parameters
    ----------
    message : str
    remaining : float
        The largest epsilon that would be admitted in its place, in nats.
    """

    def __init__(self, message: str, *, remaining: float) -> None:
        super().__init__(message)
        self.remaining = remaining


class _NotAdmittedError(Exception):
    """Ends the transaction in which a budget was refused; the words are found after it."""


@dataclass(frozen=True, slots=True)
class StepRequest:
    """What somebody asks of the next step.

    Parameters
    ----------
    key : str or None
        The name of the token and the key of the request, by which it is recognised; None where no step is taken.
    time : str or None
        The step's label; None for the number of the step.
    epsilon : float or None
        In nats; None for what the release can spend at every step.
    last : bool
        No step follows.
    ahead : bool
        The time may be far ahead of the clock and of the last step.
    counts : tuple of int or None
        What is published with noise; None where a budget is only charged.
    """

    key: str | None
    time: str | None
    epsilon: float | None
    last: bool
    ahead: bool = False
    counts: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ServedMechanism:
    """Counts with discrete Laplace noise, and budgets that are charged for something that is drawn elsewhere."""

    histogram: DiscreteLaplaceHistogram | None
    elsewhere: str | None

    def __call__(self, counts: tuple[int, ...] | None, epsilon: float) -> Any:
        """The noisy counts; where there are none, what was charged."""
        if counts is None:
            return {"charged": epsilon}
        assert self.histogram is not None
        return self.histogram(np.array(counts, dtype=np.int64), epsilon).tolist()


def mechanism_of(definition: Definition) -> ServedMechanism:
    """What a release publishes with."""
    told = definition.mechanism
    if isinstance(told, Histogram):
        return ServedMechanism(DiscreteLaplaceHistogram(told.n_states), None)
    return ServedMechanism(None, told.description)


class ServedRelease:
    """One release of the service.

    Parameters
    ----------
    store : Store
    definition : Definition
    reserve : float
        What every step can spend, as it was found when the release was created.
    request_key : str, optional
        Of the request that creates it; kept where it is not there yet.

    Raises
    ------
    LedgerError
        It cannot be read or written, or was changed.
    """

    def __init__(self, store: Store, definition: Definition, reserve: float, request_key: str | None = None) -> None:
        self.definition, self._store, self._reserve = definition, store, reserve
        self._mechanism = mechanism_of(definition)
        # Its `begin` is not called: what it would keep to go on from is in the definition, which is kept with the release.
        self._guard = AccountantGuard(unspent(definition.promise, self._reserve), None)
        self._is_proved = False
        self._ledger = Ledger.open(store, self._configuration, definition=definition.text, request_key=request_key)
        self._calendar = Calendar(definition.step)
        self._largest_spent = 0.0
        self._lock, self._counting = threading.RLock(), threading.Lock()
        self._take_in()

    @property
    def ledger(self) -> Ledger:
        """Its ledger, as of the last reading or writing."""
        return self._ledger

    def __len__(self) -> int:
        return len(self._ledger)

    def require_counts(self, counts: tuple[int, ...]) -> None:
        """Refuse counts that the release does not publish."""
        histogram = self._mechanism.histogram
        if histogram is None:
            raise InputError(
                "this release publishes nothing by itself: what it charges is drawn elsewhere; spend a budget"
            )
        if len(counts) != histogram.n_states:
            raise InputError(f"expected {histogram.n_states} counts, got {len(counts)}")

    def take_step(self, request: StepRequest) -> tuple[LedgerRow, bool]:
        """The step that a request is answered with, and whether it was taken before.

        Raises
        ------
        RefusedBudgetError, SpentError
            The budget is refused, or there are no more steps. Nothing was drawn or spent.
        RepeatedDifferentlyError
            The key was used for another request, or another request released the time. Nothing was drawn or spent.
        InputError
            The time cannot be the next one, or the counts are none of this release's.
        LedgerError
            It could not be stored. Nothing was handed out; whether it was stored all the same, the same request tells.
        """
        with self._lock:
            known = None if request.key is None else self._store.step_of(request.key)
            if known is not None:
                self._refresh(known)
                return self._repeated(request, known), True
            if not self._is_within_reserve(request.epsilon):
                self._catch_up()  # before the release is locked for everybody
            try:
                step = self._take_next(request)
            except _NotAdmittedError:
                raise self._refused(request) from None
            self._take_in()
            return (self._ledger[-1], False) if step is None else (self._repeated(request, step), True)

    def _take_next(self, request: StepRequest) -> int | None:
        """Check, draw and store in one transaction; the step if another server took it for the same request."""
        n_known = len(self._ledger)
        with self._ledger.writing() as writer:
            self._take_in()
            others = self._ledger[n_known:]
            taken = next(
                (row.step for row in others if request.key is not None and row.request_key == request.key), None
            )
            if taken is not None:  # by another server
                return taken
            time = request.time or str(len(self))
            if self._calendar.position(time) is not None:
                raise RepeatedDifferentlyError(
                    f"time {time!r} was released already, by another request; nothing was spent or published"
                )
            self._calendar.require_next(time)
            if not request.ahead and not is_near(self.definition.step, self._calendar.last, time, datetime.now(UTC)):
                raise InputError(
                    f"time {time!r} is more than one step ahead of the clock and of the last step, or no time of the kind that "
                    "the release's step has: all other times would then be late. If it is meant, an owner of the release says "
                    "so (ahead)"
                )
            made = self._measurement(request)
            output = made.draw(request.counts)
            writer.append(
                time=time,
                parameter=made.parameter,
                epsilon=made.epsilon,
                leakage=None,
                last=request.last,
                output=None if output is None else as_text(output),
                digest=None,
                request_key=request.key,
            )
        return None

    def check(self, epsilon: float | None, *, last: bool) -> float:
        """What the next step would spend if it was asked for this, in nats; errors as for `take_step`. Changes nothing."""
        with self._lock:
            self.refresh()
            request = StepRequest(None, None, epsilon, last)
            if not self._is_within_reserve(epsilon):
                self._catch_up()
            try:
                return self._measurement(request).epsilon
            except _NotAdmittedError:
                raise self._refused(request) from None

    def remaining(self, *, last: bool = False) -> float:
        """The largest epsilon that the next step may spend, in nats; a lower bound."""
        accountant = self._counted()
        return 0.0 if self._is_over or len(accountant) == accountant.horizon else accountant.remaining(last=last)

    def leakage(self) -> float:
        """The largest temporal privacy leakage of any step so far, in nats; an upper bound. Takes milliseconds a step, once."""
        return self._counted().total()

    @property
    def reserve(self) -> float:
        """What every step to come can spend, in nats, if only what was admitted is spent."""
        return self._reserve

    def refresh(self) -> None:
        """Read what other servers wrote."""
        with self._lock:
            self._ledger.refresh()
            self._take_in()

    def _counted(self) -> TemporalAccountant:
        """The accountant after all steps; others go on meanwhile."""
        proved(self.definition.promise, self._reserve)  # found once, which may take long, before anybody waits for it
        with self._counting:
            self.refresh()
            with self._lock:
                self._prove()
                counted, n_known = copy(self._guard.accountant), len(self)
            if len(counted) < n_known:
                take_in(counted, self._ledger)
                _ = account_of(counted).filters
                with self._lock:
                    if len(self._guard.accountant) < len(counted) <= len(self):
                        self._guard.accountant = copy(counted)
            return counted

    def _catch_up(self) -> None:
        """Count what was spent, which may take long: not while everybody waits for the release."""
        self._prove()
        self._guard.replay(self._ledger)
        _ = account_of(self._guard.accountant).filters

    def _prove(self) -> None:
        """Have an accountant whose filters are there: they are made once for all releases with this promise."""
        if not self._is_proved:
            self._guard.accountant = copy(proved(self.definition.promise, self._reserve))
            self._is_proved = True

    def _measurement(self, request: StepRequest) -> Measurement:
        """What is drawn at the next step; `_NotAdmittedError` if the level does not allow it."""
        self._require_more()
        if self._is_within_reserve(request.epsilon):
            budget = self._reserve if request.epsilon is None else request.epsilon
            return Measurement(self._mechanism, budget, budget)
        if request.epsilon is None and self.definition.horizon is not None:
            raise InputError(
                "expected an epsilon: a release with a horizon has none that every step can spend. Plan them beforehand "
                "(`temporaldp plan --horizon`), or ask what remains"
            )
        self._guard.replay(self._ledger)
        if request.epsilon is not None and not self._guard.accountant.admits([request.epsilon], last=request.last):
            raise _NotAdmittedError
        return self._guard.measurement(self._mechanism, len(self), request.epsilon, last=request.last)

    def _require_more(self) -> None:
        """`SpentError` if there are no more steps."""
        if self._is_over:
            raise SpentError(f"the step at time {self._ledger[-1].time!r} was declared the last; nothing may follow it")
        if self.definition.horizon is not None and len(self) >= self.definition.horizon:
            raise SpentError(f"all {self.definition.horizon} steps of the release are over; nothing may follow")

    def _refused(self, request: StepRequest) -> RefusedBudgetError:
        """Why a budget is refused, and what remains; outside of any transaction, because the answer takes milliseconds."""
        accountant, epsilon = self._guard.accountant, request.epsilon
        largest, if_last = (accountant.remaining(last=last) for last in (request.last, True))
        kept = "" if request.last or self._reserve == 0.0 else f", with the {self._reserve:.6g} a step kept for later"
        advice = f"the largest epsilon admitted at that step is {largest:.10g}"
        if kept:
            advice += f" ({if_last:.10g} if no step follows)"
        return RefusedBudgetError(
            f"epsilon = {epsilon:.10g} at step {len(self)} could leak more than alpha = {self.definition.alpha:g} nats about "
            f"some step{kept}; {advice}. Nothing was spent",
            remaining=largest,
        )

    def _is_within_reserve(self, epsilon: float | None) -> bool:
        """Whether this and every step so far spent at most what every step may spend: then no filter need be asked."""
        asked = self._reserve if epsilon is None else epsilon
        return self.definition.horizon is None and max(asked, self._largest_spent) <= self._reserve and asked > 0.0

    @property
    def _is_over(self) -> bool:
        return len(self._ledger) > 0 and self._ledger[-1].last

    def _repeated(self, request: StepRequest, step: int) -> LedgerRow:
        """The step, if it was taken for such a request. The counts are not compared: the answer must not depend on them."""
        row = self._ledger[step]
        is_charge = row.output is not None and isinstance(from_text(row.output), dict)
        if (
            (request.time is not None and self._calendar.position(request.time) != step)
            or request.epsilon not in {None, row.parameter}
            or request.last != row.last
            or (request.counts is None) != is_charge
        ):
            raise RepeatedDifferentlyError(
                f"this key was used for step {step}, by a request of another kind, time or budget; nothing was spent or "
                "published. Repeat a request as it was, or give a new one a key of its own"
            )
        return row

    def _refresh(self, step: int) -> None:
        if step >= len(self._ledger):
            self.refresh()

    def _take_in(self) -> None:
        """Know the times and budgets that the ledger has."""
        for row in self._ledger[len(self._calendar) :]:
            self._largest_spent = max(self._largest_spent, row.epsilon)
            self._calendar.add(row.time)

    def _configuration(self, kept: dict[str, Any] | None) -> dict[str, Any]:
        told = self.definition
        return {
            "neighboring_relation": REPLACE_ONE,
            "mechanism": described(self._mechanism),
            "states": told.states,
            "step": told.step,
            "every_step": self._reserve,
            **self._guard.identity(kept or {}),
        }
