"""How much more can be spent: two numbers a user decide, however many steps there were.

Notation
--------
alpha      the level
BPL        backward leakage of the last step
h          headroom: the largest leakage that may still arrive at the last step from later ones, ``TPL <= alpha`` at every step
           so far if and only if what arrives is at most h
v          what is kept for the steps to come: with it, a constant budget can be spent for ever

The first step has ``h = alpha - e``. Each later one ``h' = min(alpha - BPL', L_F^-1(h) - e)``: what arrives at the new step,
plus its own budget, must pass no more than h to the step before. So a budget e is admitted if and only if ``h' >= v``, that is
``e <= min(alpha - L_B(BPL), L_F^-1(h)) - v``: a closed form, and every step so far is held by it (docs/theory.md).

L_F^-1 expands: what is given to the safe side for rounding grows from step to step where budgets sit on the level to the last
digit, and spare room grows as well where they do not. So planners keep `SPARE` of alpha a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from temporaldp.accounting.balance import balance, merged_profile
from temporaldp.accounting.history import Losses
from temporaldp.accounting.scalar import SUM_ROUNDING, ScalarLoss, U
from temporaldp.correlation import Adversary
from temporaldp.correlation.adversary import Correlation
from temporaldp.errors import BudgetError
from temporaldp.leakage.profile import LeakageProfile
from temporaldp.values import SMALLEST

RAISED = 1.0 + 1e-12
"""What is kept for later is kept with this much to spare, so that roundings, step after step, do not eat it up."""

SPARE = 64.0 * U
"""Share of alpha by which more is kept, and less promised, for the same reason."""


@dataclass(frozen=True, slots=True)
class UserLosses:
    """One user's losses in both directions."""

    name: str | None
    adversary: Adversary
    past: Losses
    future: Losses

    @classmethod
    def of(cls, name: str | None, adversary: Adversary) -> UserLosses:
        """The losses of an adversary's correlations; computes the profiles."""
        return cls(name, adversary, _losses(adversary.backward), _losses(adversary.forward))


def _losses(correlation: Correlation) -> Losses:
    if correlation is None:
        return Losses([ScalarLoss.of(None)])
    matrices = correlation if isinstance(correlation, tuple) else (correlation,)
    return Losses([ScalarLoss.of(matrix.leakage_profile()) for matrix in matrices])


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one user's leakage stands after some steps: all that decides what can still be spent.

    Parameters
    ----------
    n_steps : int
    arrived : float
        What arrives at the next step from the past, in nats.
    room : float
        What the next step's budget and all that arrives there from later ones may add up to; rounded down.
    """

    n_steps: int
    arrived: float
    room: float

    @classmethod
    def at_start(cls, alpha: float) -> Standing:
        """Before the first step."""
        return cls(0, 0.0, alpha * (1.0 - SUM_ROUNDING))

    def after(self, user: UserLosses, alpha: float, epsilon: float) -> Standing:
        """Where it stands after one more budget, of at most `room`."""
        bpl, headroom = self.arrived + epsilon, (self.room - epsilon) * (1.0 - SUM_ROUNDING)
        if user.adversary.n_steps == self.n_steps + 1:  # no transition leads on
            return Standing(self.n_steps + 1, 0.0, 0.0)
        arrived = user.past[self.n_steps](bpl)
        ceiling = user.future[self.n_steps].inverse(headroom)
        return Standing(self.n_steps + 1, arrived, min(alpha * (1.0 - SUM_ROUNDING) - arrived, ceiling))


@dataclass(frozen=True, slots=True)
class Reserve:
    """What is kept for later steps.

    Parameters
    ----------
    epsilon : float
        The budget that every later step can still spend, for ever, in nats: a lower bound; 0 if nothing is kept.
    arriving : tuple of float, one per user
        What those budgets, for ever, make arrive at the step before them.
    """

    epsilon: float
    arriving: tuple[float, ...]


def largest_reserve(users: Sequence[UserLosses], alpha: float) -> Reserve:
    """As much as can be spent at every step, for ever (the paper's Algorithm 2); nothing where no budget lasts."""
    found = [balance(*_merged(user), alpha) for user in users]
    levels = [one.forward_level for one in found]
    return reserve_for(
        users, alpha, min(one.budget for one in found), [v - one.budget for v, one in zip(levels, found, strict=True)]
    )


def asked_reserve(users: Sequence[UserLosses], alpha: float, epsilon: float) -> Reserve:
    """Enough for `epsilon` at every step, for ever; `BudgetError` if alpha does not allow it."""
    if epsilon == 0.0:
        return Reserve(0.0, (0.0,) * len(users))
    most = largest_reserve(users, alpha)
    kept = most if epsilon == most.epsilon else reserve_for(users, alpha, epsilon * RAISED + 4.0 * SPARE * alpha)
    if kept.epsilon < epsilon <= most.epsilon:
        kept = most
    if kept.epsilon < epsilon:
        raise BudgetError(
            f"expected a reserve of at most {most.epsilon:.10g} nats a step, which alpha = {alpha:g} allows for ever, "
            f"got {epsilon!r}"
        )
    return Reserve(epsilon, kept.arriving)


def reserve_for(
    users: Sequence[UserLosses], alpha: float, epsilon: float, enough: Sequence[float] | None = None
) -> Reserve:
    """What `epsilon` at every step, for ever, takes; its own `epsilon` is what that certainly allows, roundings included.

    `enough` is known to suffice for each user; where `epsilon` hardly lasts, its supremum is not to be had in doubles.
    """
    nothing = Reserve(0.0, (0.0,) * len(users))
    if epsilon < SMALLEST:
        return nothing
    arriving, lasting = [], []
    for number, user in enumerate(users):
        backward, forward = _merged(user)
        level = epsilon if forward is None else forward.supremum(epsilon=epsilon)
        needed = level - epsilon if enough is None else min(level - epsilon, enough[number])
        kept = max(needed, 0.0) * RAISED + SPARE * alpha
        if not kept < alpha:
            return nothing
        # The state that leaves least: all that may have arrived did, and headroom is what is kept, or some roundings less.
        behind = 0.0 if backward is None else backward.loss(alpha - kept)
        ahead = ScalarLoss.of(forward).inverse(kept - 0.25 * SPARE * alpha)
        lasting.append(min(alpha * (1.0 - SUM_ROUNDING) - behind, ahead) - kept - SPARE * alpha)
        arriving.append(kept)
    if min(lasting) <= 0.0:
        return nothing
    return Reserve(min(lasting), tuple(arriving))


def _merged(user: UserLosses) -> tuple[LeakageProfile | None, LeakageProfile | None]:
    return merged_profile(user.adversary.backward), merged_profile(user.adversary.forward)
