"""One step of a release: checked, drawn and stored in one transaction, and handed out after it.

All releases take their steps here: continual ones, several tables on one account, renewed levels, and the service. They differ
in their `Guard`: the budget of a step, the accountant, and how a repeated request is recognised.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from temporaldp.base.errors import InputError, LedgerError, SpentError
from temporaldp.core.accounting import accounting_blocks
from temporaldp.core.planning.measurement import Measurement
from temporaldp.publish.release.calendar import Calendar
from temporaldp.publish.release.chain import STEPS_BETWEEN_CHECKPOINTS, LedgerRow, keep_checkpoint, last_checked
from temporaldp.publish.release.database import Store
from temporaldp.publish.release.ledger import Ledger, LedgerWriter

if TYPE_CHECKING:
    from temporaldp.publish.release.guards import Guard

Snapshot = TypeVar("Snapshot")
Output = TypeVar("Output")
Written: TypeAlias = Callable[[Any, float, Any], tuple[str, str | None]]
"""What a row keeps of an output, given with its epsilon and the data it was drawn from: the text, and a digest of the data."""


@dataclass(frozen=True, slots=True)
class StepRequest:
    """Request for the next step.

    Parameters
    ----------
    time : str or None
        Label of the step; None for its number.
    epsilon : float, optional
        Budget, in nats; None for that of the guard, 0 to publish nothing.
    last : bool
        No step follows.
    ahead : bool
        The time may be far ahead of the clock and of the last step, where the guard limits that.
    key : str, optional
        Identifies a repeated request, where the time does not.
    data : optional
        Data of the mechanism.
    """

    time: str | None
    epsilon: float | None = None
    last: bool = False
    ahead: bool = False
    key: str | None = None
    data: Any = None


class ReleaseSteps:
    """The steps of a release on its ledger, which is made if there is none.

    Parameters
    ----------
    place : path, str or Store
    guard : Guard
    mechanism : callable
    terms : dict
        Configuration of the ledger as JSON values, besides that of the guard; its "step" is the length of a step.
    written : callable
        Stored part of an output; see `Written`.
    definition, begin_anew
        As for `Ledger.open`, which raises the errors.

    Attributes
    ----------
    ledger : Ledger
    calendar : Calendar
    lock : RLock
        Serialises the threads that use the release.
    """

    def __init__(
        self,
        place: str | os.PathLike[str] | Store,
        guard: Guard,
        mechanism: Any,
        terms: dict[str, Any],
        written: Written,
        definition: str | None = None,
        *,
        begin_anew: bool = False,
    ) -> None:
        self.guard, self._mechanism, self._written = guard, mechanism, written
        self.ledger = Ledger.open(
            place, lambda salt: {**terms, **guard.identity(salt)}, definition, begin_anew=begin_anew
        )
        self.calendar = Calendar(self.ledger, terms["step"], has_phases=guard.has_phases)
        self.lock, self._can_be_kept = threading.RLock(), True
        self._draws: weakref.WeakSet[_Draw] = weakref.WeakSet()
        try:
            guard.begin(self.ledger)
            guard.replay(self.ledger)
        except BaseException:
            self.ledger.discard_unused()
            self.ledger.close()
            raise

    def refresh(self) -> None:
        """Read what other processes added. Errors as for `Ledger.refresh`."""
        with self.lock:
            self.ledger.refresh()
            self.guard.replay(self.ledger)

    @property
    def is_drawing(self) -> bool:
        """Whether this process is drawing a step."""
        return len(self._draws) > 0

    @contextmanager
    def taking(self, request: StepRequest) -> Iterator[tuple[LedgerWriter, LedgerRow, bool]]:
        """Transaction that takes the step of a request: its row, and whether it was taken before.

        The block may add an event, which is committed together with the step.
        """
        if self.is_drawing:
            raise InputError("a mechanism must not release a step while it draws one")
        n_known = len(self.ledger)
        with self.ledger.writing() as writer:
            self.guard.replay(self.ledger)
            time = request.time or str(len(self.ledger))
            known = self.guard.recognised(request, time, self.calendar, self.ledger[n_known:])
            # Known if another process was faster.
            row = self._append(writer, request, time) if known is None else self.ledger[known]
            yield writer, row, known is not None
        self.guard.replay(self.ledger)

    def take(self, request: StepRequest) -> tuple[LedgerRow, bool]:
        """Take the step of a request: its row, and whether it was taken before."""
        with self.taking(request) as (_, row, again):
            return row, again

    def keep_checkpoint(self, beside: Callable[[], dict[str, Any]] = dict) -> None:
        """Store what was checked and counted, and what `beside` returns, every 100 steps; if that fails, no step suffers."""
        if not self._can_be_kept or len(self.ledger) - last_checked(self.ledger.events) < STEPS_BETWEEN_CHECKPOINTS:
            return
        self.guard.kept_state()  # counts before the release is locked for other requests
        with suppress(LedgerError), self.ledger.writing() as writer:
            self.guard.replay(self.ledger)
            if len(self.ledger) - last_checked(self.ledger.events) < STEPS_BETWEEN_CHECKPOINTS or self.ledger[-1].last:
                return
            state = self.guard.kept_state()
            self._can_be_kept = state is not None and keep_checkpoint(self.ledger, writer, {**state, **beside()})

    def _append(self, writer: LedgerWriter, request: StepRequest, time: str) -> LedgerRow:
        """Check, draw and store the next step."""
        self.calendar.require_next(time)
        self.require_more()
        at = self.guard.position(len(self.ledger), time)
        made = self.guard.measurement(self._mechanism, at, request.epsilon, last=request.last)
        # Charged first: whatever happens then, no block around has counted too little. Leakage comes before the draw, which a
        # crash on the way would waste.
        self.guard.charge(made.epsilon, last=request.last)
        leakage = self.guard.leakage_after(made.epsilon)
        text, digest = None, None
        output = self.drawn(made, request.data)
        if output is not None:
            text, digest = self._written(output, made.epsilon, request.data)
        step, spent = len(self.ledger), made.epsilon + 0.0  # 0.0 and not -0.0
        row = LedgerRow(step, time, made.parameter + 0.0, spent, leakage, request.last, text, digest, request.key, "")
        return writer.append(row)

    def drawn(self, made: Measurement, data: Any) -> Any:
        """Return the output of a mechanism, which must not release a step itself; None if nothing is published."""
        going_on = _Draw()
        self._draws.add(going_on)
        try:
            with accounting_blocks.settled():
                return made.draw(data)
        finally:
            del going_on  # the traceback of an error that a caller stores would keep it

    def require_more(self) -> None:
        """Raise `SpentError` after a step that was declared the last."""
        if len(self.ledger) and self.ledger[-1].last:
            raise SpentError(f"the step at time {self.ledger[-1].time!r} was declared the last; nothing may follow it")


class _Draw:
    """One step that is being drawn: as long as the frame that made it lives, whatever interrupts it."""
