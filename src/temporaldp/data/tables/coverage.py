"""Whether traces contain enough transitions to estimate a correlation."""

from __future__ import annotations

from temporaldp.data.tables.counted import CountedTraces
from temporaldp.data.tables.traces import Traces

SCARCE = 0.05
"""Share of all people's steps whose transition must have been observed: with fewer, the times are not a common grid. Page
views of different lengths have 0.2, nights of sleep 0.7, and events whose minutes are taken for steps 0.003
(docs/how-to/scale.md)."""


def scarcity(traces: Traces) -> str | None:
    """Return the warning where too few transitions were observed; None where there are enough, or times are unknown.

    If all people are observed, each step between consecutive times has one transition per person.
    """
    if isinstance(traces, CountedTraces) and not traces.has_histogram:
        return None
    observed, n_users, n_steps = int(traces.transition_counts().sum()), traces.n_users, int(traces.consecutive.sum())
    share = observed / max(n_users * n_steps, 1)
    if share >= SCARCE:
        return None
    return (
        f"these traces show few transitions for their steps: {observed}, where {n_users} people over {n_steps} steps would "
        f"have {n_users * n_steps} ({100.0 * share:.2g} %). Events are not states: the estimate reflects the prior, not how "
        "people move, and is not evidence of low leakage. Put the events on a grid (--set traces.every=1h --set "
        "traces.fill=last), or take longer steps"
    )
