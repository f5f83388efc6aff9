"""The filter by the paper's bound: two numbers per user determine the admissible budgets, for any number of past steps.

Notation
--------
alpha      the level
BPL        backward leakage of the last step
h          headroom: the largest leakage that may still arrive at the last step from later ones, ``TPL <= alpha`` at every step
           so far if and only if incoming leakage is at most h
v          leakage kept for later steps: with it, a constant budget is sustainable

The first step has ``h = alpha - e``. Each later one ``h' = min(alpha - BPL', L_F^-1(h) - e)``: incoming leakage of the new
step, plus its own budget, must pass no more than h to the step before. So a budget e is admitted if and only if ``h' >= v``,
that is ``e <= min(alpha - L_B(BPL), L_F^-1(h)) - v``: a closed form that covers every step so far (Theory, section 6).

L_F^-1 expands: the margin for rounding grows from step to step where budgets use the level to the last digit, and so does
unused room elsewhere. So planners leave `STEP_MARGIN` of alpha per step unused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from temporaldp.base.display import apart
from temporaldp.base.errors import BudgetError
from temporaldp.base.values import ROUNDOFF, SMALLEST
from temporaldp.core.accounting.margins import STEP_MARGIN
from temporaldp.core.accounting.paper.arrivals import TransitionLoss, added
from temporaldp.core.accounting.paper.supremum import constant_budget, merged_profile
from temporaldp.core.accounting.protocol import Filter, Side
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.core.kernels.profile import LeakageProfile

SUM_ROUNDING = 8.0 * ROUNDOFF
"""Relative. What one addition and one subtraction of levels can be wrong by, several times over."""

RAISED = 1.0 + 1e-12
"""What is kept for later is kept with this much to spare, so that roundings, step after step, do not eat it up."""


class PaperSteps:
    """One user's losses, one transition at a time: a `temporaldp.core.accounting.stepwise.Steps` of numbers."""

    nothing = 0.0

    def __init__(self, user: Adversary) -> None:
        self.adversary = user
        self._losses = {"backward": _losses(user.backward), "forward": _losses(user.forward)}

    def loss(self, side: Side, transition: int) -> TransitionLoss:
        """The loss of the transition between steps `transition` and `transition` + 1."""
        each = self._losses[side]
        return each[0] if len(each) == 1 else each[transition]

    def arriving(self, side: Side, transition: int, release: float, before: float) -> float:
        """The loss of the sum of incoming leakage and epsilon."""
        return self.loss(side, transition)(before, release)

    def leakage(self, past: float, release: float, future: float) -> float:
        """Sum of incoming leakage and the epsilon."""
        return float(added(added(past, release), future))

    def never_more(self, one: float, other: float) -> bool:
        """Whether one incoming leakage is at most the other, so that it leads to no more later on."""
        return one <= other

    def raised(self, arrived: float) -> float:
        """The number itself: the recursion converges to the last digit."""
        return arrived


def _losses(correlation: Correlation) -> list[TransitionLoss]:
    if not correlation:
        return [TransitionLoss(None)]
    return [TransitionLoss(matrix.leakage_profile()) for matrix in correlation.matrices]


@dataclass(frozen=True, slots=True)
class PaperFilter(Filter):
    """Filter of one user by the paper's bound; a spend returns another filter.

    Parameters
    ----------
    steps : PaperSteps
    alpha : float
    kept : float
        Incoming leakage of the next step that is kept for later steps.
    horizon : int or None
    n_steps : int
        Number of steps so far.
    arrived : float
        Incoming leakage of the next step from the past, in nats.
    room : float
        Upper limit of the next step's budget plus its incoming leakage from later steps; rounded down.
        ``-inf`` once the level is exceeded.
    """

    steps: PaperSteps
    alpha: float
    kept: float
    horizon: int | None
    n_steps: int
    arrived: float
    room: float

    @classmethod
    def at_start(cls, steps: PaperSteps, alpha: float, kept: float, horizon: int | None) -> Self:
        """The state before the first step."""
        return cls(steps, alpha, kept, horizon, 0, 0.0, alpha * (1.0 - SUM_ROUNDING))

    def largest(self, last: bool = False) -> float:
        """The largest budget that is admitted next."""
        final = last or self.horizon == self.n_steps + 1
        return max(self.room - (0.0 if final else self.kept), 0.0)

    def admits(self, epsilon: float, last: bool = False) -> bool:
        """Whether a budget may be spent next."""
        return epsilon <= self.largest(last)

    def after(self, epsilon: float) -> Self:
        """The filter after one more budget; after one above the level it admits nothing more."""
        transition, steps = self.n_steps, self.n_steps + 1
        if steps in {self.horizon, self.steps.adversary.n_steps}:  # no transition leads on
            return replace(self, n_steps=steps, arrived=0.0, room=0.0)
        if epsilon > self.room * (1.0 + SUM_ROUNDING):
            return replace(self, n_steps=steps, arrived=0.0, room=-math.inf)
        headroom = (self.room - epsilon) * (1.0 - SUM_ROUNDING)
        arrived = self.steps.loss("backward", transition)(self.arrived, epsilon)
        ceiling = self.steps.loss("forward", transition).inverse(headroom)
        room = min(self.alpha * (1.0 - SUM_ROUNDING) - arrived, ceiling)
        return replace(self, n_steps=steps, arrived=arrived, room=room)


@dataclass(frozen=True, slots=True)
class PaperReserve:
    """Reserve for later steps.

    Parameters
    ----------
    epsilon : float
        Sustainable epsilon, in nats: a lower bound; 0 if nothing is kept.
    arriving : tuple of float, one per user
        Incoming leakage of those budgets, over an infinite horizon, at the step before them.
    """

    epsilon: float
    arriving: tuple[float, ...]


def largest_reserve(users: Sequence[PaperSteps], alpha: float) -> PaperReserve:
    """Return the largest sustainable reserve (the paper's Algorithm 2); 0 where no budget is sustainable."""
    found = [constant_budget(*_merged(user), alpha) for user in users]
    enough = [one.forward_level - one.budget for one in found]
    return reserve_for(users, alpha, min(one.budget for one in found), enough)


def asked_reserve(users: Sequence[PaperSteps], alpha: float, epsilon: float) -> PaperReserve:
    """Return a reserve of `epsilon` nats; `BudgetError` if that is not sustainable."""
    if epsilon == 0.0:
        return PaperReserve(0.0, (0.0,) * len(users))
    most = largest_reserve(users, alpha)
    kept = most if epsilon == most.epsilon else reserve_for(users, alpha, epsilon * RAISED + 4.0 * STEP_MARGIN * alpha)
    if kept.epsilon < epsilon <= most.epsilon:
        kept = most
    if kept.epsilon < epsilon:
        largest, asked = apart(most.epsilon, epsilon)
        raise BudgetError(
            f"expected a reserve of at most {largest} nats per step, which alpha = {alpha:g} allows over an infinite horizon, "
            f"got {asked}"
        )
    return PaperReserve(epsilon, kept.arriving)


def reserve_for(
    users: Sequence[PaperSteps], alpha: float, epsilon: float, enough: Sequence[float] | None = None
) -> PaperReserve:
    """Return the reserve that `epsilon` at every step needs; its own `epsilon` is a lower bound, roundings included.

    `enough` is known to suffice for each user; where `epsilon` is hardly sustainable, doubles do not represent its supremum.
    """
    nothing = PaperReserve(0.0, (0.0,) * len(users))
    if epsilon < SMALLEST:
        return nothing
    arriving, sustained = [], []
    for number, user in enumerate(users):
        backward, forward = _merged(user)
        level = epsilon if forward is None else forward.supremum(epsilon=epsilon)
        needed = level - epsilon if enough is None else min(level - epsilon, enough[number])
        kept = max(needed, 0.0) * RAISED + STEP_MARGIN * alpha
        if not kept < alpha:
            return nothing
        # The state that leaves least: all that may have arrived did, and headroom is what is kept, or some roundings less.
        behind = TransitionLoss(backward)(alpha - kept)
        ahead = TransitionLoss(forward).inverse(kept - 0.25 * STEP_MARGIN * alpha)
        sustained.append(min(alpha * (1.0 - SUM_ROUNDING) - behind, ahead) - kept - STEP_MARGIN * alpha)
        arriving.append(kept)
    if min(sustained) <= 0.0:
        return nothing
    return PaperReserve(min(sustained), tuple(arriving))


def _merged(user: PaperSteps) -> tuple[LeakageProfile | None, LeakageProfile | None]:
    return merged_profile(user.adversary.backward), merged_profile(user.adversary.forward)
