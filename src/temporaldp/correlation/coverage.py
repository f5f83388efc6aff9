"""Whether traces contain enough transitions to estimate a correlation."""

from __future__ import annotations

from dataclasses import dataclass

from temporaldp.correlation.traces import Traces

SCARCE = 0.05
"""Share of all people's steps whose transition must have been observed: with fewer, the times are not a common grid. Page
views of different lengths have 0.2, nights of sleep 0.7, and events whose minutes are taken for steps 0.003
(docs/how-to/scale.md)."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Number of observed transitions, people and steps; if all people are observed, each step has one transition per person.

    Parameters
    ----------
    n_transitions, n_users, n_steps : int
        Numbers; steps are those between consecutive times.
    """

    n_transitions: int
    n_users: int
    n_steps: int

    @property
    def share(self) -> float:
        """Share of the transitions of all people that are observed."""
        return self.n_transitions / max(self.n_users * self.n_steps, 1)

    @property
    def is_scarce(self) -> bool:
        """Whether there are too few transitions to estimate a correlation."""
        return self.share < SCARCE

    @property
    def sentence(self) -> str:
        """Warning for scarce transitions."""
        return (
            f"these traces show few transitions for their steps: {self.n_transitions}, where {self.n_users} people over "
            f"{self.n_steps} steps would have {self.n_users * self.n_steps} ({100.0 * self.share:.2g} %). Events are not "
            "states: the estimate reflects the prior, not how people move, and is not evidence of low leakage. Put the events "
            "on a grid (--set traces.every=1h --set traces.fill=last), or take longer steps"
        )


def coverage(traces: Traces) -> Coverage:
    """Return the share of all people's steps that is observed.

    Raises
    ------
    InputError
        Counted traces of which only one table is known.
    """
    return Coverage(int(traces.transition_counts().sum()), traces.n_users, int(traces.consecutive.sum()))
