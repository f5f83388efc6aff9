"""One release of the service: budgets are checked, noise drawn and steps stored in one transaction.

It is a continual release (`release.stream`) for callers who may repeat a request: it is recognised by its key and
the token that made it, and gets the stored answer. No answer depends on the counts of earlier requests, and nothing that is
stored is computed from counts without noise. Two things are left for later than there, because many wait. How much has
leaked is counted when somebody asks. And as long as no step spent more than the reserve, a budget within it is admitted without
asking the filter: what every step may spend was proved when the release was created, and its chain vouches for it.

What others wrote is read inside of the transaction that writes, behind the release's lock: what this process remembers saves
reading, and never decides.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from temporaldp.apps.serve import messages
from temporaldp.apps.serve.definition import Definition, Elsewhere, Histogram, proved, unspent
from temporaldp.base.errors import InputError, LeakageBudgetError, SpentError
from temporaldp.base.values import REPLACE_ONE
from temporaldp.core.planning import Guarantee
from temporaldp.core.planning.every_correlation import guaranteed_leakage
from temporaldp.core.planning.histogram_noise import HISTOGRAM_SENSITIVITY
from temporaldp.core.planning.measurement import Measurement
from temporaldp.data.counts.histogram import DiscreteLaplaceHistogram, granted_scale
from temporaldp.data.tables.moments import is_near, moment
from temporaldp.publish.release.calendar import Calendar
from temporaldp.publish.release.chain import STEPS_BETWEEN_CHECKPOINTS, LedgerRow
from temporaldp.publish.release.database import Store
from temporaldp.publish.release.guards import AccountantGuard
from temporaldp.publish.release.ledger import Ledger
from temporaldp.publish.release.outputs import as_text, from_text
from temporaldp.publish.release.resuming import keep_correlations, resumed
from temporaldp.publish.release.step import ReleaseSteps, StepRequest
from temporaldp.publish.release.stream import described


class RepeatedDifferentlyError(InputError):
    """A key was used for another request, or another request released the time."""


@dataclass(frozen=True, slots=True)
class ServedMechanism:
    """Counts with discrete Laplace noise, or charges for outputs that are drawn elsewhere."""

    output: Histogram | Elsewhere

    def __call__(self, counts: tuple[int, ...] | None, epsilon: float) -> Any:
        """Return the noisy counts; where there are none, what was charged. `InputError` for counts of another release."""
        if counts is None:
            return {"charged": epsilon}
        if isinstance(self.output, Elsewhere):
            raise InputError(
                "this release publishes nothing by itself: what it charges is drawn elsewhere; spend a budget"
            )
        return DiscreteLaplaceHistogram(self.output.n_states)(np.array(counts, dtype=np.int64), epsilon).tolist()


class ServedGuard(AccountantGuard):
    """Enforcement of the level of a release of the service.

    As long as no step spent more than the reserve, a budget within it is admitted without the filter, and the accountant is
    not brought up to date; the leakage so far is not computed at a step. `counting` is held while it changes.
    """

    _ledger: Ledger

    def __init__(self, definition: Definition, reserve: float) -> None:
        super().__init__(unspent(definition.promise, reserve), None)
        self.definition, self.every_step, self.guarantee = definition, reserve, Guarantee.of(definition.guarantee)
        self.horizon = definition.horizon  # that of the accountant may be a window
        self._largest_spent, self._rows_seen, self.counting = 0.0, 0, threading.RLock()

    def begin(self, ledger: Ledger) -> None:
        """Keep the matrices of a new release, for reports; the service itself reads them in the definition."""
        if not len(ledger):
            keep_correlations(ledger.store, self.accountant.population, ledger.configuration["correlations"]["salt"])

    def recognised(
        self, request: StepRequest, time: str, calendar: Calendar, others: Sequence[LedgerRow]
    ) -> int | None:
        """Recognise a request by its key; an error for a time that another request released, or that is too far ahead."""
        taken = next((row.step for row in others if request.key is not None and row.request_key == request.key), None)
        if taken is not None:
            return taken
        if calendar.position(time) is not None:
            raise RepeatedDifferentlyError(
                f"time {time!r} was released already, by another request; nothing was spent or published"
            )
        calendar.require_next(time)
        begins = self.definition.begins
        if begins is not None and calendar.last is None and moment(time) != moment(begins):
            raise InputError(f"expected the time {begins!r} for the first step, as the release states, got {time!r}")
        if not request.ahead and not is_near(self.definition.step, calendar.last, time, datetime.now(UTC)):
            raise InputError(
                f"time {time!r} is more than one step ahead of the clock (of the last step, for labels without a clock), or no "
                "time of the kind that the release's step has: all other times would then be late. If this is intended, an "
                "owner sets `ahead`"
            )
        return None

    def measurement(self, mechanism: Any, step: int, epsilon: float | None, *, last: bool) -> Measurement:
        """Measurement with the requested budget, or that of every step; `LeakageBudgetError` if the level forbids it."""
        if self.horizon is not None and step >= self.horizon:
            raise SpentError(f"all {self.horizon} steps of the release have been taken; no further step is possible")
        if self.is_within_reserve(epsilon):
            budget = self.every_step if epsilon is None else epsilon
            return Measurement(mechanism, budget, budget)
        if epsilon is None and self.horizon is not None:
            raise InputError(
                "expected an epsilon: a release with a horizon has no budget that every step can spend. Plan budgets "
                "beforehand (`temporaldp plan --horizon`), or check what remains"
            )
        self.catch_up()
        return super().measurement(mechanism, step, epsilon, last=last)

    def replay(self, ledger: Ledger) -> None:
        """Record the largest budget; the accountant is brought up to date on request."""
        self._ledger = ledger
        spent = [row.epsilon for row in ledger[self._rows_seen :]]
        self._largest_spent, self._rows_seen = max(self._largest_spent, *spent, 0.0), len(ledger)

    def leakage_after(self, epsilon: float) -> None:
        """None: leakage is computed on request."""

    def is_within_reserve(self, epsilon: float | None) -> bool:
        """Whether this and every step so far spend at most the reserve, so that the filter is not needed."""
        asked = self.every_step if epsilon is None else epsilon
        return self.horizon is None and max(asked, self._largest_spent) <= self.every_step and asked > 0.0

    def catch_up(self) -> None:
        """Count all budgets spent, from the checkpoint on. This may take long: call it before others have to wait for it."""
        with self.counting:
            if not len(self.accountant):
                self.accountant = resumed(copy(proved(self.definition.promise, self.every_step)), self._ledger)
            super().replay(self._ledger)
            _ = self.accountant.filters

    def remaining(self, *, last: bool = False) -> float:
        """The largest budget that the next step may spend, in nats."""
        return self.accountant.remaining(last=last)

    def total(self) -> float:
        """The most that leaked about what is protected so far, in nats."""
        return self.accountant.total()

    def kept_state(self) -> dict[str, Any] | None:
        """State of the accountant after all steps."""
        with self.counting:
            self.catch_up()
            return super().kept_state()


class WindowedGuard(ServedGuard):
    """Enforcement of window:W or user:W: the budgets of any W consecutive steps add up to at most alpha.

    Every later step keeps an even share of alpha, so no step may spend more than that, but for the last one.
    """

    def measurement(self, mechanism: Any, step: int, epsilon: float | None, *, last: bool) -> Measurement:
        """Measurement with the requested budget, or that of every step; `LeakageBudgetError` if the level forbids it."""
        left, budget = self.remaining(last=last), self.every_step if epsilon is None else epsilon
        if budget > left:
            raise LeakageBudgetError(
                f"epsilon = {budget!r} at step {step} is more than {left!r}: {self.guarantee.width(None)} consecutive steps "
                f"may spend alpha = {self.alpha:g}, of which every later step keeps {self.every_step!r}. Nothing was spent",
                requested=budget,
                largest=left,
                worst_time=step,
                leakage=self.alpha + budget - left,
                alpha=self.alpha,
            )
        return Measurement(mechanism, budget, budget)

    def remaining(self, *, last: bool = False) -> float:
        """The largest budget that the next step may spend, in nats; 0 after the last one."""
        if len(self._ledger) and self._ledger[-1].last:
            return 0.0
        if not last:
            return self.every_step
        before = self._ledger[max(len(self._ledger) + 1 - self.guarantee.width(None), 0) : len(self._ledger)]
        return max(self.every_step, math.nextafter(self.alpha - math.fsum(row.epsilon for row in before), 0.0))

    def total(self) -> float:
        """The most that any such window spent, in nats."""
        spent = self._ledger.epsilons
        return guaranteed_leakage(self.guarantee, spent, None).worst if len(spent) else 0.0

    def catch_up(self) -> None:
        """Nothing: budgets add up."""

    def kept_state(self) -> dict[str, Any]:
        """Nothing: the last steps are read."""
        return {}


class ServedRelease:
    """One release of the service.

    Parameters
    ----------
    store : Store
    definition : Definition
    reserve : float
        Reserve of every step, found when the release was created.

    Raises
    ------
    LedgerError
        It cannot be read or written, or was changed.
    """

    def __init__(self, store: Store, definition: Definition, reserve: float) -> None:
        self.definition, self.reserve, self._store = definition, reserve, store
        enforcing = ServedGuard if definition.together is None else WindowedGuard
        self._mechanism, self._guard = ServedMechanism(definition.mechanism), enforcing(definition, reserve)
        terms = {
            "neighboring_relation": REPLACE_ONE,
            "mechanism": described(self._mechanism),
            "states": definition.states,
            "step": definition.step,
            "every_step": reserve,
        }
        self._steps = ReleaseSteps(
            store,
            self._guard,
            self._mechanism,
            terms,
            lambda output, *_: (as_text(output), None),  # a digest of the counts would reveal them
            definition=definition.text,
        )
        self.ledger = self._steps.ledger

    def take_step(self, request: StepRequest) -> tuple[messages.TakenStep, bool]:
        """Return the step that a request is answered with, and whether it was taken before.

        Raises
        ------
        LeakageBudgetError, SpentError
            The budget is refused, or there are no more steps. Nothing was drawn or spent.
        RepeatedDifferentlyError
            The key was used for another request, or another request released the time. Nothing was drawn or spent.
        InputError
            The time cannot be the next one, or the counts do not fit the release.
        LedgerError
            The step could not be stored. Nothing was returned; a repeated request shows whether it was stored.
        """
        if request.epsilon == 0.0 and self.definition.begins is None:
            raise InputError(
                "expected an epsilon above 0: steps are passed over only where the matrices vary from step to step (begins)"
            )
        with self._steps.lock:
            if (
                len(self.ledger) - len(self._guard.accountant) < STEPS_BETWEEN_CHECKPOINTS
            ):  # else only after a question, as counting takes long
                self._steps.keep_checkpoint()  # which may read this very request, as another server stored it
            known = None if request.key is None else self._store.step_of(request.key)
            if known is not None:
                self._steps.refresh()
                return self._repeated(request, known), True
            if not self._guard.is_within_reserve(request.epsilon):
                self._guard.catch_up()  # before the release is locked for other requests
            row, again = self._steps.take(request)
            return (self._repeated(request, row.step), True) if again else (self._shown(row), False)

    def check(self, question: messages.BudgetQuestion) -> messages.AdmittedBudget:
        """Return what the next step may spend if it is asked so; errors as for `take_step`.

        Of the steps, only one with a budget above the reserve waits for the answer.
        """
        self._steps.refresh()
        with self._guard.counting:
            self._steps.require_more()
            step = len(self.ledger)
            epsilon = self._guard.measurement(self._mechanism, step, question.epsilon, last=question.last).epsilon
        scale = granted_scale(HISTOGRAM_SENSITIVITY, epsilon) if epsilon > 0.0 else math.inf
        return messages.AdmittedBudget(epsilon=epsilon, laplace_scale=scale, step=step)

    def state(self, *, leakage: bool) -> messages.ReleaseState:
        """Return the definition, the budgets spent, the largest that the next step may spend, and, if requested, the leakage.

        Counting takes milliseconds per new step, and does not block other requests.
        """
        self._steps.refresh()
        with self._guard.counting:
            self._guard.catch_up()
            remaining, leaked = self._guard.remaining(), self._guard.total() if leakage else None
        definition, n_steps = self.definition, len(self.ledger)
        last = self.ledger[n_steps - 1] if n_steps else None
        return messages.ReleaseState(
            release=self._store.release,
            name=definition.name,
            alpha=definition.alpha,
            horizon=definition.horizon,
            bound=definition.bound,
            mechanism=definition.mechanism.model_dump(),
            states=definition.states,
            n_steps=n_steps,
            last_time=None if last is None else last.time,
            is_over=last is not None and last.last,
            spent=math.fsum(self.ledger.epsilons),
            reserve=self.reserve,
            remaining=remaining,
            leakage=leaked,
            head=self.ledger.head,
            **self.stated,
        )

    @cached_property
    def stated(self) -> dict[str, Any]:
        """The guarantee in words, which the definition determines."""
        return self.definition.stated()

    def steps(self, start: int, limit: int) -> messages.TakenSteps:
        """Return the steps from `start` on, at most so many."""
        self._steps.refresh()
        return messages.TakenSteps(
            steps=[self._shown(row) for row in self.ledger[start : start + limit]], n_steps=len(self.ledger)
        )

    def verify(self, head: str | None) -> messages.Intact:
        """Read all steps again and check their chain, and that it has this head; `LedgerChangedError` if it is broken."""
        with Ledger(self._store) as ledger:
            ledger.verify(head=head)
            return messages.Intact(authentic=ledger.is_authentic is True, n_steps=len(ledger), head=ledger.head)

    def _shown(self, row: LedgerRow) -> messages.TakenStep:
        output = None if row.output is None else from_text(row.output)
        return messages.TakenStep(
            release=self._store.release,
            step=row.step,
            time=row.time,
            epsilon=row.epsilon,
            last=row.last,
            counts=output if isinstance(output, list) else None,
            head=row.hash,
        )

    def _repeated(self, request: StepRequest, step: int) -> messages.TakenStep:
        """The step, if it was taken for such a request. The counts are not compared: the answer must not depend on them."""
        row = self.ledger[step]
        is_charge = row.output is None or isinstance(from_text(row.output), dict)
        if (
            (request.time is not None and self._steps.calendar.position(request.time) != step)
            or request.epsilon not in {None, row.parameter}
            or request.last != row.last
            or (request.data is None) != is_charge
        ):
            raise RepeatedDifferentlyError(
                f"this key was used for step {step}, by a request of another kind, time or budget; nothing was spent or "
                "published. Repeat a request as it was, or give a new one a key of its own"
            )
        return self._shown(row)
