"""Accounting with one number for each pair of states, and the evidence of such methods."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from temporaldp.base.values import FloatArray, compared_by_value, copy_in, locked
from temporaldp.core.accounting.paper.method import PAPER
from temporaldp.core.accounting.protocol import DIRECTIONS, Direction, Evidence, Leakage, Limits
from temporaldp.core.accounting.stepwise import Arrived
from temporaldp.core.accounting.stepwise_accounting import StepwiseAccounting
from temporaldp.core.correlation import Adversary


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairwiseLeakage(Evidence):
    """Leakage of every ordered pair of states, one matrix per step; in nats, upper bounds.

    Parameters
    ----------
    states : tuple of str
        In the order of rows and columns.
    epsilons : array, shape (T,)
        Factors of D at each step.
    guarantee : array, shape (n, n)
        D, closed under the triangle inequality; 1 off the diagonal for plain differential privacy.
    past, future : tuple of T arrays, shape (n, n)
        Incoming leakage at each step from the releases before and after it. Steps at which it has settled share one array.
    """

    states: tuple[str, ...]
    epsilons: FloatArray
    guarantee: FloatArray
    past: tuple[FloatArray, ...]
    future: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        copy_in(self, "epsilons", "guarantee")
        locked((*self.past, *self.future))

    compares_pairs = True

    def __len__(self) -> int:
        return len(self.past)

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """Leakage of every ordered pair at a step, shape (n, n): row = the state, column = the one it is compared with.

        Zero on the diagonal; under metric privacy a quasi-metric. Row and column follow `states`.

        Raises
        ------
        InputError
            There is no such step or direction.
        """
        at = self.checked_step(step, direction)
        found: FloatArray = self.epsilons[at] * self.guarantee
        if direction != "forward":
            found = found + self.past[at]
        if direction != "backward":
            found = found + self.future[at]
        np.fill_diagonal(found, 0.0)
        return found


class PairwiseAccounting(StepwiseAccounting[Arrived]):
    """Base of methods with one number for each pair of states, which are never above the paper's bound."""

    widest: float = 1.0
    """Leakage of a release of epsilon 1 about the two states furthest apart, in nats."""

    supremum_factor: ClassVar[float] = 1.0
    """Raises suprema, so that no series exceeds them."""

    def release_epsilons(self, releases: FloatArray) -> FloatArray:
        """Epsilons of the two states furthest apart."""
        return releases * self.widest

    @abstractmethod
    def evidence(
        self, states: tuple[str, ...], past: tuple[Arrived, ...], releases: FloatArray, future: tuple[Arrived, ...]
    ) -> PairwiseLeakage:
        """Return the leakage of every pair of states at every step."""

    def leakage(
        self, user: Adversary, past: tuple[Arrived, ...], releases: FloatArray, future: tuple[Arrived, ...]
    ) -> Leakage:
        """The largest entry of each sum; never above the paper's bound, not by one ulp."""
        (paper,) = PAPER.series([user], self.release_epsilons(releases))
        if user.states is None:  # nothing is known of how states follow one another: each release stands alone
            return paper
        found = super().leakage(user, past, releases, future)
        backward, forward, temporal = (
            np.minimum(getattr(found, direction), getattr(paper, direction)) for direction in DIRECTIONS
        )
        return Leakage(backward, forward, temporal, self.evidence(user.states, past, releases, future))

    def supremum_leakage(
        self, user: Adversary, past: tuple[Arrived, ...], release: FloatArray, future: tuple[Arrived, ...]
    ) -> Limits:
        """The largest entry of each sum; never above the paper's bound."""
        found = super().supremum_leakage(user, past, release, future)
        paper = PAPER.limits([user], self.release_epsilons(release))
        capped = {
            direction: min(getattr(found, direction) * self.supremum_factor, getattr(paper, direction))
            for direction in DIRECTIONS
        }
        return replace(found, **capped)
