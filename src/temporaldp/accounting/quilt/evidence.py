"""Evidence of quilt bounds: leakage pair by pair, and the leakage of independent noise as the lower side."""

from __future__ import annotations

from dataclasses import dataclass

from temporaldp.accounting.exact.method import Exact
from temporaldp.accounting.pairwise import PairwiseLeakage
from temporaldp.accounting.protocol import Attained
from temporaldp.correlation import Adversary
from temporaldp.values import compared_by_value


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuiltLeakage(PairwiseLeakage):
    """Leakage of every ordered pair of states at every step, by Markov quilts; in nats, upper bounds.

    Parameters
    ----------
    states, epsilons, guarantee, past, future
        As for `PairwiseLeakage`, with the event-level epsilon of each step.
    user : Adversary
    """

    user: Adversary

    @property
    def attained(self) -> Attained | None:
        """Exact leakage of independent noise with the same epsilons, a mechanism with this guarantee; None for intervals."""
        if self.user.is_uncertain:
            return None
        method = Exact()
        (found,) = method.series([self.user], method.of(self.epsilons.tolist(), [self.user]))
        attained = None if found.evidence is None else found.evidence.attained
        return Attained(found.backward, found.forward, found.temporal) if attained is None else attained
