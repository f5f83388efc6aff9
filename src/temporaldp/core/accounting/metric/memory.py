"""Accounting for chains with a longer memory: an upper bound of the leakage about the states that hidden states show.

Notation
--------
D        1 where the labels of two hidden states differ, else 0: a release of budget e has log ratios of at most e D
K_B, K_F incoming leakage about pairs of hidden states from the past and from the future, as under a metric (`MetricSteps`)
Q        ``Pr(u | state)`` of hidden states u, shape (n, m)

Given the hidden state, past and future are independent. The leakage about two states v and w is
``e + log max Q_v X / Q_w X`` over likelihoods with ``X_u <= exp((K_B + K_F)(u, u')) X_u'``: one more lifting, through Q
(Theory, section 13).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import FloatArray, compared_by_value, copy_in
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.metric.method import MetricSteps
from temporaldp.core.accounting.protocol import Accounting, Direction, Evidence, Filter, Leakage, Limits
from temporaldp.core.accounting.stepwise_accounting import StepwiseAccounting
from temporaldp.core.correlation import Adversary, TransitionMatrix
from temporaldp.core.correlation.lifted_chain import LiftedAdversary, LiftedChain
from temporaldp.core.kernels.lifting import lifted, no_trees, off_diagonal


class LongerMemory(StepwiseAccounting[FloatArray]):
    """An upper bound of leakage about the states of a `LiftedChain`; `Exact()` stands for it there. Releases are epsilons.

    Over an infinite horizon it is the leakage about hidden states, which is at least as large.
    """

    name = "longer memory"
    sentence = (
        "Leakage is an upper bound for an adversary who knows a chain with a longer memory: incoming leakage of each pair of "
        "its hidden states, by the lifting of its matrices, and one more lifting to the states that they show."
    )

    def document(self) -> dict[str, Any]:
        """Return the name."""
        return {"method": self.name}

    def specialised(
        self, users: Sequence[Adversary], releases: Sequence[Any] = (), *, online: bool = False
    ) -> Accounting[Any, Any]:
        """The method itself; `InputError` for adversaries about states that are not hidden."""
        if not users[0].is_lifted:
            raise InputError("expected chains with a longer memory (LiftedChain), got matrices of states: use Exact()")
        return self

    def steps(self, user: Adversary) -> HiddenSteps:
        """Return the steps of one user."""
        assert isinstance(user, LiftedAdversary)
        return HiddenSteps(user)

    def limits(self, users: Sequence[Adversary], release: FloatArray) -> Limits:
        """Suprema about the hidden states, which are at least those about the states: long memories settle slowly here."""
        return EXACT.limits(users, EXACT.of_epsilons(release))

    def sustainable_epsilon(self, users: Sequence[Adversary], alpha: float) -> float:
        """That for the hidden states."""
        return EXACT.sustainable_epsilon(users, alpha)

    def filters(
        self, users: Sequence[Adversary], alpha: float, reserve: float | None, horizon: int | None
    ) -> tuple[Sequence[Filter], float]:
        """About the states for a known horizon; otherwise about the hidden states."""
        if horizon is None:
            return EXACT.filters(users, alpha, reserve, horizon)
        return super().filters(users, alpha, reserve, horizon)

    def leakage(
        self, user: Adversary, past: tuple[FloatArray, ...], releases: FloatArray, future: tuple[FloatArray, ...]
    ) -> Leakage:
        """The largest leakage of each step about two states; steps at which it has settled share one lifting."""
        steps, known = self.steps(user), dict[tuple[int, int], float]()

        def arriving(before: FloatArray, after: FloatArray) -> float:
            key = id(before), id(after)
            if key not in known:
                known[key] = steps.leakage(before, 0.0, after)
            return known[key]

        nothing = (steps.nothing,) * len(releases)
        backward, forward, temporal = (
            releases + np.array([arriving(a, f) for a, f in zip(before, after, strict=True)])
            for before, after in ((past, nothing), (nothing, future), (past, future))
        )
        return Leakage(backward, forward, temporal, ShownLeakage(steps.chain.states, releases, past, future, steps))


class HiddenSteps(MetricSteps):
    """One user's liftings, one transition at a time; a `temporaldp.core.accounting.stepwise.Steps` of hidden pairs."""

    def __init__(self, user: LiftedAdversary) -> None:
        self.chain: LiftedChain = user.chain
        labels = self.chain.labels
        super().__init__(user, (labels[:, None] != labels[None, :]).astype(np.float64))
        self._shown = TransitionMatrix(self.chain.shares[labels], self.chain.forward.states).leakage_profile()
        self._trees_shown = no_trees(len(labels), len(self.chain.states))

    def about_states(self, arrived: FloatArray) -> FloatArray:
        """Leakage about every ordered pair of states, shape (n, n), from that about hidden states, shape (m, m)."""
        return lifted(self.chain.shares, arrived, self._shown, self._trees_shown)

    def leakage(self, past: FloatArray, release: float, future: FloatArray) -> float:
        """The largest leakage about two states."""
        return release + float(self.about_states(past + future).max())


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ShownLeakage(Evidence):
    """Leakage about every ordered pair of states of a chain with a longer memory, in nats: upper bounds.

    Parameters
    ----------
    states : tuple of str
    epsilons : array, shape (T,)
    past, future : tuple of T arrays, shape (m, m)
        Incoming leakage about every pair of hidden states.
    """

    states: tuple[str, ...]
    epsilons: FloatArray
    past: tuple[FloatArray, ...]
    future: tuple[FloatArray, ...]
    _steps: HiddenSteps = field(compare=False)
    compares_pairs = True

    def __post_init__(self) -> None:
        copy_in(self, "epsilons")

    def __len__(self) -> int:
        return len(self.past)

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """Leakage of every ordered pair at a step, shape (n, n): row = the state, column = the one it is compared with."""
        at, nothing = self.checked_step(step, direction), self._steps.nothing
        before = nothing if direction == "forward" else self.past[at]
        after = nothing if direction == "backward" else self.future[at]
        found: FloatArray = self._steps.about_states(before + after) + self.epsilons[at] * off_diagonal(
            len(self.states)
        )
        return found
