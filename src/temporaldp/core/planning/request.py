"""The request for a plan: a level, users and steps; and the error where no budget is sustainable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from temporaldp.base.errors import BudgetError, PlanError
from temporaldp.base.names import listed
from temporaldp.base.values import FloatArray, positive, whole_number
from temporaldp.core.accounting import LeakageSeries, temporal_leakage
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.paper.supremum import merged_profile
from temporaldp.core.accounting.periodic import sustainable_epsilon_of
from temporaldp.core.accounting.protocol import Accounting, Planner, grouped, weakest
from temporaldp.core.correlation import Adversaries, Adversary, IntervalMatrix, Population, TransitionMatrix
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.core.correlation.provenance import together
from temporaldp.core.kernels import Witness


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A level to satisfy for every user, for T steps or over an infinite horizon, and the accounting method.

    Parameters
    ----------
    population : Population
    alpha : float
        In nats.
    horizon : int or None
    accounting : Accounting
        As for `temporal_leakage`.
    """

    population: Population
    alpha: float
    horizon: int | None
    accounting: Accounting[Any, Any] = EXACT

    @classmethod
    def checked(
        cls,
        adversary: Adversaries,
        alpha: float,
        horizon: int | None,
        accounting: Accounting[Any, Any] = EXACT,
    ) -> Self:
        """The request of checked arguments.

        Raises
        ------
        BudgetError
            alpha or the horizon is not admissible, or the horizon is not that of the matrices.
        InputError
            The method cannot account for the matrices.
        """
        made = cls(
            Population.of(adversary),
            positive(alpha, "alpha"),
            None if horizon is None else whole_number(horizon, "the horizon", least=1, error=BudgetError),
            accounting,
        )
        made.methods()  # refuses matrices that the method cannot account for
        known = made.population.n_steps
        if made.horizon is None and known is not None:
            raise BudgetError(
                f"expected a horizon of {known} steps, for which there are matrices, or constant matrices"
            )
        return made if made.horizon is None else replace(made, population=made.population.over(made.horizon))

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
        """Number of epsilons of a plan: one per step, or the one of every step."""
        return self.horizon or 1

    @property
    def facts(self) -> dict[str, Any]:
        """What a plan records of the request: level, states, whether steps differ, and the provenance that matrices carry."""
        return {
            "alpha": self.alpha,
            "states": self.users[0].shown.states,
            "has_phases": self.horizon is not None and not self.population.is_constant,
            "provenance": together(
                m.provenance for user in self.users for m in user.matrices if isinstance(m, IntervalMatrix)
            ),
        }

    def by(self, accounting: Accounting[Any, Any]) -> Self:
        """Return the request with another accounting method."""
        return replace(self, accounting=accounting)

    def methods(self) -> list[tuple[Accounting[Any, Any], list[Adversary]]]:
        """The methods that account for the users, and the users of each."""
        return [(method, users) for method, _, users in grouped(self.accounting, self.users)]

    @property
    def most_promised(self) -> float:
        """Largest leakage of a release with a budget of one nat by itself: the largest distance of a metric."""
        return max(float(method.release_epsilons(method.of_epsilons(np.ones(1)))[0]) for method, _ in self.methods())

    @property
    def plan_margin(self) -> float:
        """Share of alpha that a plan leaves unused, so that an accountant, which rounds at every step, admits it."""
        if self.horizon is None:
            return 0.0
        n_states = len(self.users[0].states or ())
        return max(method.plan_margin(self.alpha, self.horizon, n_states) for method, _ in self.methods())

    def series(self, epsilons: FloatArray) -> LeakageSeries:
        """Leakage of budgets, one per step."""
        return temporal_leakage(self.population, epsilons, accounting=self.accounting)

    def sustainable_epsilon(self) -> float:
        """Sustainable budget at the level alpha for all users; a lower bound, 0 if there is none."""
        return min(sustainable_epsilon_of(method, users, self.alpha) for method, users in self.methods())

    def nothing_lasts(self, user: int = 0, *, accounting: Accounting[Any, Any] | None = None) -> PlanError:
        """The error where no budget (at a delta: no noise) satisfies alpha over an infinite horizon, with advice."""
        method = accounting or weakest([method for method, _ in self.methods()])
        name, adversary = self.population.names[user], self.users[user]
        who = "" if name is None else f" of {name!r}"
        otherwise = (
            "Give a horizon of T steps, each of which can spend at least alpha / T; or estimate with a prior, if certainty is "
            "only an artefact of short traces"
        )
        if math.isfinite(method.effort):
            return PlanError(
                f"no positive budget was proved to be sustainable at alpha = {self.alpha:g} within {method.effort:g} s: allow "
                f"more effort, or none at all. {otherwise}"
            )
        if method.is_exact and (kept := _never_left(adversary)):
            return PlanError(
                f"no positive budget is sustainable at alpha = {self.alpha:g}: the correlation{who} has several closed classes "
                f"of states, as {listed(kept)} is never left: leakage about it adds up with every step. If people in it "
                "have gone, let them be absent after some time (`fill_limit` and `absent` of the traces), or leave their rows "
                f"out. {otherwise}"
            )
        if method.is_exact:
            return PlanError(
                f"no positive budget is sustainable at alpha = {self.alpha:g}: the correlation{who} has states that never lead "
                "to a common one (several closed classes of states, or states that take turns), so leakage about them "
                f"adds up with every step, or alpha is too small for doubles. {otherwise}"
            )
        certain = [w for w in map(_certain, (adversary.backward, adversary.forward)) if w is not None]
        why = (
            f"the correlation{who} distinguishes {certain[0].state!r} from {certain[0].other_state!r} with certainty (their "
            "rows have no state in common), so by this bound leakage adds up with every step"
            if certain
            else f"the correlation{who} is so strong that no budget was found that lasts"
        )
        what, at = ("noise", "at any delta") if method.delta else ("positive budget", method.scope)
        advice = " ".join(filter(None, [method.remedy, otherwise]))
        return PlanError(f"no {what} is sustainable at alpha = {self.alpha:g} {at}: {why}. {advice}")


def common_planner(methods: Sequence[Accounting[Any, Any]]) -> Planner:
    """How all of these methods find budgets of least noise; "by scaling" where they differ."""
    return methods[0].plans if len({one.plans for one in methods}) == 1 else "by scaling"


def _never_left(adversary: Adversary) -> list[str]:
    """States that a person keeps with certainty, by a matrix that is known exactly."""
    found: dict[str, None] = {}
    for matrix in (one for one in adversary.matrices if isinstance(one, TransitionMatrix)):
        found |= dict.fromkeys(np.array(matrix.states)[matrix.probabilities.diagonal() == 1.0].tolist())
    return list(found)


def _certain(correlation: Correlation) -> Witness | None:
    profile = merged_profile(correlation)
    if profile is None or not len(profile):
        return None
    first = profile.witnesses[0]
    return first if first.other_probability == 0.0 and first.probability == 1.0 else None
