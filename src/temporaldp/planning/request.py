"""What a plan is asked for: a level, for some users, over some steps; and why nothing may hold it for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from temporaldp.accounting.constant_budget import merged_profile
from temporaldp.accounting.protocol import AccountingName
from temporaldp.correlation import Adversaries, Adversary, Population
from temporaldp.correlation.adversary import Correlation
from temporaldp.errors import BudgetError, PlanError
from temporaldp.leakage import Witness
from temporaldp.planning.plan import Source
from temporaldp.values import positive, whole_number


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A level to hold for every user, for T steps or for ever.

    Parameters
    ----------
    population : Population
    alpha : float
        In nats.
    horizon : int or None
    """

    population: Population
    alpha: float
    horizon: int | None

    @classmethod
    def checked(cls, adversary: Adversaries, alpha: float, horizon: int | None) -> Self:
        """From what a user gives.

        Raises
        ------
        BudgetError
            alpha or the horizon is not admissible, or the horizon is not that of the matrices.
        """
        made = cls(
            Population.of(adversary),
            positive(alpha, "alpha"),
            None if horizon is None else whole_number(horizon, "the horizon", least=1, error=BudgetError),
        )
        for name, one in made.population:
            if one.n_steps not in {None, made.horizon}:
                who = "the adversary" if name is None else f"adversary {name!r}"
                raise BudgetError(
                    f"{who} has matrices for {one.n_steps} steps, but the horizon is {made.horizon or 'unknown'}; plan for "
                    f"{one.n_steps} steps, or give constant matrices"
                )
        return made

    @property
    def users(self) -> tuple[Adversary, ...]:
        """The adversaries, without their names."""
        return self.population.users

    @property
    def has_constant_matrices(self) -> bool:
        """Whether no user has matrices for a certain number of steps."""
        return self.population.n_steps is None

    @property
    def n_shares(self) -> int:
        """How many epsilons a plan has: one a step, or the one of every step."""
        return self.horizon or 1

    @property
    def source(self) -> Source:
        """What a plan says of the correlation until it is told more: its states."""
        return Source(self.population.states)

    def nothing_lasts(self, bound: AccountingName, user: int = 0) -> PlanError:
        """Why no budget ("curve": no noise) holds alpha for ever, and what to do."""
        name, adversary = self.population.names[user], self.users[user]
        who = "" if name is None else f" of {name!r}"
        otherwise = (
            "Give a horizon of T steps, each of which can spend at least alpha / T; or estimate with a prior, if certainty is "
            "only an artefact of short traces"
        )
        if bound == "exact":
            return PlanError(
                f"no positive budget holds alpha = {self.alpha:g} for ever: the correlation{who} has values that never lead "
                "to a common one (several closed classes of values, or values that take turns), so that leakage about them "
                f"adds up with every step, or alpha is too small for doubles. {otherwise}"
            )
        certain = [w for w in map(_certain, (adversary.backward, adversary.forward)) if w is not None]
        why = (
            f"the correlation{who} tells {certain[0].value!r} and {certain[0].other_value!r} apart with certainty (their rows "
            "have no state in common), so by this bound leakage adds up with every step"
            if certain
            else f"the correlation{who} is so strong that a step's budget vanishes in rounding"
        )
        if bound == "paper":
            return PlanError(
                f"no positive budget holds alpha = {self.alpha:g} for ever by the paper's bound: {why}. Plan by the exact "
                f"leakage, which is the default. {otherwise}"
            )
        return PlanError(f"no noise holds alpha = {self.alpha:g} for ever at any delta: {why}. {otherwise}")


def _certain(correlation: Correlation) -> Witness | None:
    profile = merged_profile(correlation)
    if profile is None or not len(profile):
        return None
    first = profile.witnesses[0]
    return first if first.other_probability == 0.0 and first.probability == 1.0 else None
