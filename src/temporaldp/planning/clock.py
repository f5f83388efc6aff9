"""The clock of a plan whose matrices repeat, and the phase of a time on it."""

from __future__ import annotations

from dataclasses import dataclass

from temporaldp.correlation.moments import JITTER, steps_between
from temporaldp.errors import InputError
from temporaldp.values import whole_number


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock whose phases repeat after `period` steps.

    Parameters
    ----------
    start : str
        A time at phase 0: the first one of the history.
    step : str or None
        Length of a step; None where it is unknown.
    period : int
        Number of phases.
    phase : int
        Phase of the first step of the release.
    """

    start: str
    step: str | None
    period: int
    phase: int = 0

    def __post_init__(self) -> None:
        whole_number(self.period, "the period of a clock", least=2)

    def phase_at(self, time: str) -> int | None:
        """Return the phase of a time; None where its distance from the start is unknown.

        Raises
        ------
        InputError
            The time lies between two steps of the clock.
        """
        between = None if self.step is None else steps_between(self.step, self.start, time)
        if between is None:
            return None
        if abs(between - round(between)) > JITTER:
            raise InputError(
                f"time {time!r} lies {between:.4g} steps of {self.step} after the first time of the history, {self.start!r}: "
                "expected a whole number of steps. Give the phase (--set correlation.phase=N), or traces on the same grid"
            )
        return round(between) % self.period

    def require(self, time: str, step: int) -> None:
        """Refuse a time at another phase than that of a step of the release (from 0), by `InputError`."""
        found, expected = self.phase_at(time), (self.phase + step) % self.period
        if found is not None and found != expected:
            raise InputError(
                f"expected step {step + 1} of the plan at phase {expected} of the clock (phase 0 of {self.period} is at "
                f"{self.start!r}), but time {time!r} is at phase {found}: plan again with these data (TRACES), or for their "
                f"phase (--set correlation.phase={(found - step) % self.period})"
            )
