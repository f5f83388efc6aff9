"""The clock of matrices that repeat."""

from __future__ import annotations

from dataclasses import dataclass

from temporaldp.base.values import whole_number


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
