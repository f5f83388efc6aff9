"""The phase of a time on the clock of a plan."""

from __future__ import annotations

from temporaldp.base.errors import InputError
from temporaldp.core.planning import Plan
from temporaldp.core.planning.clock import Clock
from temporaldp.data.tables.moments import JITTER, steps_between


def phase_at(clock: Clock, time: str) -> int | None:
    """Return the phase of a time on a clock; None where its distance from the start is unknown.

    Raises
    ------
    InputError
        The time lies between two steps of the clock.
    """
    between = None if clock.step is None else steps_between(clock.step, clock.start, time)
    if between is None:
        return None
    if abs(between - round(between)) > JITTER:
        raise InputError(
            f"time {time!r} lies {between:.4g} steps of {clock.step} after the first time of the history, {clock.start!r}: "
            "expected a whole number of steps. Give the phase (--set correlation.phase=N), or traces on the same grid"
        )
    return round(between) % clock.period


def require_phase(plan: Plan, time: str, step: int) -> None:
    """Refuse a time at another phase of a known clock than a step of the plan (from 0), by `InputError`."""
    clock = plan.source.clock
    if clock is None or not plan.has_phases:
        return
    found, expected = phase_at(clock, time), (clock.phase + step) % clock.period
    if found is not None and found != expected:
        raise InputError(
            f"expected step {step + 1} of the plan at phase {expected} of the clock (phase 0 of {clock.period} is at "
            f"{clock.start!r}), but time {time!r} is at phase {found}: plan again with these data (TRACES), or for their "
            f"phase (--set correlation.phase={(found - step) % clock.period})"
        )
