"""dp-accounting: a temporal accountant behind the interface of its accountants."""

from __future__ import annotations

from functools import cache
from typing import Any

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.extras import needing
from temporaldp.base.values import whole_number
from temporaldp.core.accounting import TemporalAccountant, accounting_blocks
from temporaldp.core.mechanisms.events import epsilon_of, release_of
from temporaldp.lab.adapters.charging import checked


def dp_accounting(accountant: TemporalAccountant) -> Any:
    """Return a temporal accountant with the interface of the accountants of dp-accounting.

    ``compose(event)`` is one step, ``compose(event, count)`` so many steps after another, all of them or none; several events
    about the data of one step are one ``ComposedDpEvent``. Noise counts as for `temporal_leakage`: an event
    describes the sensitivity to one contribution of a person, and replacing a state has twice that sensitivity.

    Parameters
    ----------
    accountant : TemporalAccountant
        With delta = 0 it accepts only events with a pure epsilon (Laplace, discrete Laplace, randomised response).

    Returns
    -------
    dp_accounting.PrivacyAccountant
        Its relation is `REPLACE_ONE`. ``get_epsilon(delta)`` is the temporal leakage of the worst step so far, in nats, an
        upper bound; at the accountant's own delta, or any if it has none.

    Raises
    ------
    LeakageBudgetError
        At ``compose``: the level would break. Nothing was spent.
    dp_accounting.UnsupportedEventError
        At ``compose``: an event that the accountant cannot count.
    MissingExtraError
        dp-accounting is not installed.

    Examples
    --------
    >>> from dp_accounting import LaplaceDpEvent
    >>> import temporaldp as tdp
    >>> walk = tdp.TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> events = tdp.adapters.dp_accounting(tdp.TemporalAccountant(tdp.Adversary(walk, walk), alpha=1.0))
    >>> round(events.compose(LaplaceDpEvent(20.0), count=10).get_epsilon(0.0), 4)
    0.3677
    """
    return _accountant_class()(checked(accountant))


@cache
def _accountant_class() -> type:
    """The class; made when dp-accounting is there."""
    with needing("dp-accounting"):
        from dp_accounting import NeighboringRelation, PrivacyAccountant

    class DpAccountingAccountant(PrivacyAccountant):  # type: ignore[misc]
        """Every composition is a step."""

        def __init__(self, temporal: TemporalAccountant) -> None:
            super().__init__(NeighboringRelation.REPLACE_ONE)
            self.temporal = temporal

        def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
            try:
                self._spent(event)
            except InputError as error:
                return self.CompositionErrorDetails(invalid_event=event, error_message=str(error))
            return None

        def _spent(self, event: Any) -> Any:
            return release_of(event) if self.temporal.accounting.delta else epsilon_of(event)

        def compose(self, event: Any, count: int = 1) -> Any:
            """Spend so many steps with this event: all of them, or none."""
            if not self.supports(event):
                return super().compose(event, count)  # which raises the reason
            if whole_number(count, "count", least=0):
                with self.temporal:
                    accounting_blocks.charge([self._spent(event)] * count)
            return super().compose(event, count)

        def get_epsilon(self, target_delta: float) -> float:
            """The largest temporal leakage of any step so far, in nats."""
            if self.temporal.accounting.delta and target_delta != self.temporal.accounting.delta:
                raise BudgetError(
                    f"this accountant counts at delta = {self.temporal.accounting.delta:g}, got {target_delta:g}"
                )
            return self.temporal.total()

    return DpAccountingAccountant
