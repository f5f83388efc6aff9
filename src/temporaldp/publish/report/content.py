"""The content of a report."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp import __version__
from temporaldp.base.errors import InputError
from temporaldp.base.values import refuse
from temporaldp.core.accounting import LeakageSeries, LeakageSupremum
from temporaldp.core.accounting.curve.evidence import Guesses
from temporaldp.core.accounting.exact.evidence import Observation
from temporaldp.core.correlation import Adversary, Provenance
from temporaldp.core.correlation.provenance import together
from temporaldp.core.planning import Guarantee, Plan
from temporaldp.core.planning.guarantee import TEMPORAL
from temporaldp.core.planning.histogram_noise import laplace_scales
from temporaldp.data.counts import ReleasedHistograms
from temporaldp.lab.studies import LeakageUncertainty
from temporaldp.publish.release.renewal import Renewal
from temporaldp.publish.release.shared_account import TableSpent


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to compute a release again: the command that ran, its settings and files, and what it knew of the correlations.

    Parameters
    ----------
    command : str
    settings : dict of dict
        The keys that were set, by section of the project file.
    inputs : dict of str
        SHA-256 of each file of the correlation and of the plan, by its name; never of protected traces.
    provenances : tuple of Provenance
        Where the correlation comes from; then that of the plan, where there is a plan beside it.
    warnings : tuple of str
        What to know before publishing; by default what the provenances warn of.
    version : str
        Of this package.
    """

    command: str
    settings: dict[str, dict[str, Any]]
    inputs: dict[str, str]
    provenances: tuple[Provenance, ...]
    warnings: tuple[str, ...] = ()
    version: str = __version__

    @property
    def project_file(self) -> str:
        """The settings as a project file."""
        return "\n\n".join(
            "\n".join([f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in keys.items())])
            for name, keys in self.settings.items()
        )


def _toml(value: Any) -> str:
    """A value of TOML from that of JSON."""
    if isinstance(value, dict):
        return (
            f"{{ {', '.join(f'{json.dumps(key, ensure_ascii=False)} = {_toml(one)}' for key, one in value.items())} }}"
        )
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Publication:
    """Who publishes what, as the project file states it; what is None is left out.

    Parameters
    ----------
    controller, purpose, contact : str, optional
    period : str, optional
        Default: the first and the last time.
    approval : tuple of str
        Names or roles of those who sign the report.
    """

    controller: str | None = None
    purpose: str | None = None
    contact: str | None = None
    period: str | None = None
    approval: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EpochLeakage:
    """Leakage of one epoch of a renewed level.

    Parameters
    ----------
    first : str
        Time of its first step.
    n_steps : int
        Number of steps so far.
    alone : float
        Leakage of its releases alone about any of its steps, in nats.
    """

    first: str
    n_steps: int
    alone: float


@dataclass(frozen=True, eq=False)
class Report:
    """Content of a report.

    Parameters
    ----------
    adversaries : tuple of Adversary
        One, or one per user.
    leakage : LeakageSeries
        Leakage of the reported release.
    provenance : Provenance
        Where the adversary's correlation comes from.
    times : tuple of str
        One label per step.
    supremum : LeakageSupremum, optional
        Supremum over an infinite horizon, where every step spends the same.
    plan : BudgetPlan or NoisePlan, optional
        The plan that was followed.
    released : ReleasedHistograms, optional
    true_counts : int array, shape (T, n), optional
        The true histogram. With it, the report is internal.
    n_users : int, optional
        Public number of people at a step, on average.
    name_users : bool
        Whether the person with the largest leakage may be named.
    paper : LeakageSeries, optional
        The same release by the paper's recursions, shown beside its exact leakage.
    paper_supremum : LeakageSupremum, optional
        The supremum by the paper's bound.
    held : float, optional
        Without a plan: the level that an accountant enforces, in nats.
    uncertainty : LeakageUncertainty, optional
        Plausible and guaranteed leakage, given the traces that the correlation was estimated from.
    people : tuple of two float and an int, optional
        Leakage that 95 % of the people of the history do not exceed, and the largest one, in nats, by the matrices of each;
        and how many were compared.
    tables : tuple of (TableSpent, float)
        The tables of a shared account, each with its leakage alone about a person's states in all tables, in nats.
    renewal : Renewal, optional
        Terms of a renewed level; `held` is then the bound of all epochs together.
    epochs : tuple of EpochLeakage
        The epochs of a renewed level.
    recipes : tuple of (int, Recipe)
        From what a ledger's steps were computed, each with the number of steps before it.
    head : str, optional
        The head of a ledger after its last step, which identifies all of its rows.
    guarantee : Guarantee
        What the level is about.
    publication : Publication
        Who publishes what.
    """

    adversaries: tuple[Adversary, ...]
    leakage: LeakageSeries
    provenance: Provenance
    times: tuple[str, ...]
    supremum: LeakageSupremum | None = None
    plan: Plan | None = None
    released: ReleasedHistograms | None = None
    true_counts: NDArray[np.int64] | None = None
    n_users: int | None = None
    name_users: bool = False
    paper: LeakageSeries | None = None
    paper_supremum: LeakageSupremum | None = None
    held: float | None = None
    uncertainty: LeakageUncertainty | None = None
    people: tuple[float, float, int] | None = None
    tables: tuple[tuple[TableSpent, float], ...] = ()
    renewal: Renewal | None = None
    epochs: tuple[EpochLeakage, ...] = ()
    recipes: tuple[tuple[int, Recipe], ...] = ()
    head: str | None = None
    guarantee: Guarantee = TEMPORAL
    publication: Publication = Publication()

    def __post_init__(self) -> None:
        n_steps, plan, released, noise = len(self.leakage), self.plan, self.released, "laplace"
        n_released = n_steps if released is None else len(released.times)
        counts = None if released is None else released.counts.shape
        true = None if self.true_counts is None else self.true_counts.shape
        refuse(
            (
                len(self.times) != n_steps,
                InputError(f"expected {n_steps} time labels, one per step, got {len(self.times)}"),
            ),
            (
                self.paper is not None and not np.array_equal(self.paper.epsilons, self.leakage.epsilons),
                InputError("the paper's bound is of another release: its epsilons differ from those of the leakage"),
            ),
            (
                n_released != n_steps,
                InputError(f"the released histograms have {n_released} steps, the audited release has {n_steps}"),
            ),
            (
                plan is not None and plan.delta != self.leakage.delta,
                InputError(
                    f"the leakage is at delta {self.leakage.delta:g}, the plan is for {0.0 if plan is None else plan.delta:g}"
                ),
            ),
            (
                true is not None and true != counts,
                InputError(f"expected true counts beside released ones of the same shape, got {true} beside {counts}"),
            ),
        )
        if released is None:
            return
        # at least the noise of the plan, or without a plan of the accounted epsilons, at every step
        least = laplace_scales(self.leakage.epsilons)
        if plan is not None:
            noise, least = plan.noise, plan.scales_for(n_steps)
        is_less = released.scales < least * (1.0 - 1e-5)  # files have six digits
        if released.noise != noise or is_less.any():
            step = int(np.argmax(is_less))
            raise InputError(
                f"the released histograms have {released.noise} noise of scale {released.scales[step]:g} at step {step + 1}, "
                f"where {noise} noise of {least[step]:g} is accounted for: they were not released under this plan or promise"
            )

    @property
    def worst_adversary(self) -> Adversary:
        """The adversary with the largest leakage."""
        worst = self.leakage.worst_member
        position = next((k for k, member in enumerate(self.leakage.members) if member is worst), 0)
        return self.adversaries[position]

    @property
    def who(self) -> str | None:
        """The person with the largest leakage, named if that is allowed; None where there is one correlation for all."""
        worst = self.leakage.worst_user
        if not worst or self.provenance.models:
            return None
        return repr(worst) if self.name_users else "one person"

    @property
    def internal(self) -> list[str]:
        """Reasons why the report must not be published; empty if it may be."""
        reasons = [
            (self.true_counts is not None, "It shows the true counts, which the guarantee does not cover."),
            (
                self.provenance.source == "protected",
                "It shows a correlation that was estimated from the protected traces.",
            ),
            (
                self.provenance.per_user or "per person" in self.provenance.models,
                "It shows the correlation of a single person.",
            ),
        ]
        return [reason for applies, reason in reasons if applies]

    @property
    def warnings(self) -> list[str]:
        """Warnings to read before anything that the report is about is published."""
        own = self.provenance.warning
        if self.plan is not None and self.plan.provenance.warning:
            own = f"The plan: {self.plan.provenance.warning}"
        elif self.plan is not None and self.provenance.source == "protected":
            own = "The adversary of this report, but not the plan, was estimated from the protected traces."
        noted = (warning for _, recipe in self.recipes for warning in recipe.warnings)
        return list(dict.fromkeys(filter(None, (own, *noted))))

    @property
    def learning(self) -> Provenance:
        """Where the correlations of the report, of its plan and of its ledger come from, with the cost of learning them."""
        of_plan = [] if self.plan is None else [self.plan.provenance]
        return together([self.provenance, *of_plan, *(one for _, recipe in self.recipes for one in recipe.provenances)])

    @property
    def explained_step(self) -> int:
        """The step whose leakage is explained: the middle one of those with the largest leakage about the worst-off person."""
        tied = np.flatnonzero(self.leakage.worst_member.temporal >= self.leakage.worst * (1.0 - 1e-9))
        return int(tied[len(tied) // 2])

    @cached_property
    def observation(self) -> Observation | None:
        """The observation that attains the leakage of the explained step; computed once. None where none is known."""
        member = self.leakage.worst_member
        is_known = member.is_exact and bool(member.evidence and member.evidence.best_pairs)
        return self.leakage.witness(self.explained_step) if is_known else None

    @property
    def largest_epoch(self) -> float:
        """The largest leakage of an epoch by itself, in nats; 0 where the level is not renewed."""
        return max((epoch.alone for epoch in self.epochs), default=0.0)

    @property
    def alpha(self) -> float | None:
        """The level of a plan, of an epoch or of an accountant; None where only epsilons are promised."""
        if self.renewal is not None:
            return self.renewal.alpha
        return self.held if self.plan is None else self.plan.alpha

    @property
    def headline(self) -> float:
        """The level that is satisfied at all steps, of all epochs together; without one, the largest leakage of a step."""
        level = self.held if self.plan is None else self.plan.alpha
        return level if self.is_satisfied and level is not None else self.leakage.worst

    @property
    def guesses(self) -> Guesses | None:
        """Largest probabilities of right guesses for a delta, where no release follows; None elsewhere."""
        is_whole = self.plan is not None and self.plan.horizon == len(self.leakage)
        return self.leakage.guesses if is_whole and self.renewal is None else None

    @property
    def states(self) -> tuple[str, ...]:
        """The states that are counted; empty where neither counts nor a correlation name them."""
        return self.worst_adversary.states or () if self.released is None else self.released.states

    @property
    def is_satisfied(self) -> bool | None:
        """Whether the level is satisfied against this report's adversary; None where there is no level.

        A plan without a horizon must satisfy its level over an infinite horizon. An accountant refuses later steps that would
        exceed its level.
        """
        if self.plan is None:
            # another machine may round otherwise when it computes an epoch again
            within = self.renewal is None or self.largest_epoch <= self.renewal.alpha * (1.0 + 1e-9)
            return None if self.held is None else within and self.leakage.worst <= self.held
        limit = self.supremum.temporal if self.supremum is not None and self.plan.horizon is None else 0.0
        return max(self.leakage.worst, limit) <= self.plan.alpha
