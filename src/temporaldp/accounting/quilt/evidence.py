"""Evidence of quilt bounds: leakage pair by pair, and the leakage of independent noise as the lower side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temporaldp.accounting.exact.method import Exact
from temporaldp.accounting.protocol import Attained, Direction, Evidence
from temporaldp.accounting.quilt.arrivals import QuiltArrival
from temporaldp.correlation import Adversary
from temporaldp.values import FloatArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuiltLeakage(Evidence):
    """Leakage of every ordered pair of states at every step, by Markov quilts; in nats, upper bounds.

    Parameters
    ----------
    states : tuple of str
    epsilons : array, shape (T,)
        Event-level epsilon of each step.
    past, future : tuple of T QuiltArrival
        Incoming leakage at each step.
    user : Adversary
    """

    states: tuple[str, ...]
    epsilons: FloatArray
    past: tuple[QuiltArrival, ...]
    future: tuple[QuiltArrival, ...]
    user: Adversary

    def __len__(self) -> int:
        return len(self.past)

    def __repr__(self) -> str:
        return f"QuiltLeakage({len(self)} steps, {len(self.states)} states)"

    @property
    def attained(self) -> Attained | None:
        """Exact leakage of independent noise with the same epsilons, a mechanism with this guarantee; None for intervals."""
        if self.user.is_uncertain:
            return None
        method = Exact()
        (found,) = method.series([self.user], method.of(self.epsilons.tolist(), [self.user]))
        attained = None if found.evidence is None else found.evidence.attained
        return Attained(found.backward, found.forward, found.temporal) if attained is None else attained

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """Leakage of every ordered pair at a step, shape (n, n): row = the state, column = the one compared with.

        Raises
        ------
        InputError
            There is no such step or direction.
        """
        at, n = self.checked_step(step, direction), len(self.states)
        found = np.full((n, n), self.epsilons[at])
        if direction != "forward":
            found = found + self.past[at].pairs
        if direction != "backward":
            found = found + self.future[at].pairs
        np.fill_diagonal(found, 0.0)
        return found
