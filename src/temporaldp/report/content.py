"""What a report is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting import LeakageSeries, LeakageSupremum
from temporaldp.accounting.exact.evidence import ExactLeakage, Observation
from temporaldp.correlation import Adversary
from temporaldp.errors import InputError
from temporaldp.planning import Plan
from temporaldp.planning.histogram_noise import laplace_scales
from temporaldp.release import ReleasedHistograms
from temporaldp.studies import LeakageUncertainty

COUNTED_AGAIN = 1e-9
"""Relative: by which an epoch may miss its level as it is counted again, on another machine."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the adversary's correlation comes from.

    Parameters
    ----------
    source : {"matrices", "history", "protected", "stated", "learnt"}
        Given matrices; learnt from other traces; learnt from the very traces that are to be protected; a range that somebody
        states; learnt from protected traces with differential privacy.
    prior : float
        Dirichlet concentration used in learning; 0 for maximum likelihood.
    per_user : bool
        One correlation per user, or one for all.
    name : str
        Of the file or files.
    states_given : bool
        Whether the list of states was given rather than taken from what occurs in the traces.
    text : str
        What is stated, or how it was learnt, in words.
    epsilon : float
        What learning it has cost for all values of a person together, in nats; 0 unless it was learnt with privacy.
    confidence : float
        Of intervals; 0 where one matrix was estimated.
    period : int
        Steps of a clock; 0 where there is none.
    """

    source: Literal["matrices", "history", "protected", "stated", "learnt"]
    prior: float = 0.0
    per_user: bool = False
    name: str = ""
    states_given: bool = False
    text: str = ""
    epsilon: float = 0.0
    confidence: float = 0.0
    period: int = 0

    @property
    def depends_on_protected_data(self) -> bool:
        """Whether everything computed from the correlation depends on the data that are to be protected."""
        return self.source == "protected"

    @property
    def sentence(self) -> str:
        """One sentence that says where the correlation comes from."""
        if self.source == "matrices":
            return f"Given as transition matrices ({self.name})."
        if self.source in {"stated", "learnt"}:
            return self.text
        whose = "one correlation per user" if self.per_user else "one correlation for the whole population"
        how = (
            f"with a Dirichlet prior of {self.prior:g} per cell"
            if self.prior
            else "by maximum likelihood, without a prior"
        )
        if self.confidence:
            how = f"as intervals that hold all entries at {100.0 * self.confidence:g} % confidence"
        if self.period:
            how += f", a matrix for each of {self.period} phases of a clock, tied to that of all"
        what = (
            f"the protected traces themselves ({self.name})"
            if self.source == "protected"
            else f"other traces ({self.name})"
        )
        return f"Learnt from {what}: {whose}, {how}."

    @property
    def warning(self) -> str | None:
        """What a reader must know before publishing anything computed from this correlation; None if nothing."""
        if not self.depends_on_protected_data:
            return None
        states = "" if self.states_given else " So does the list of states, unless --states gives it."
        return (
            "The correlation was learnt from the very traces that are to be protected. The budgets, and everything published "
            f"about them, then depend on the protected data outside the guarantee.{states} Learn it from public or historical "
            "data (--history), or with differential privacy (temporaldp learn, then correlation.file), before you publish."
        )


@dataclass(frozen=True, slots=True)
class TableLeakage:
    """One table of an account that several are charged to.

    Parameters
    ----------
    name : str
    n_published : int
        Steps at which it was published.
    largest_budget : float
        Of a step, in nats.
    alone : float
        What it has leaked by itself about a person's values in all tables, in nats; 0 where nothing was published.
    """

    name: str
    n_published: int
    largest_budget: float
    alone: float


@dataclass(frozen=True, slots=True)
class EpochLeakage:
    """One epoch of a level that is renewed.

    Parameters
    ----------
    first : str
        The time of its first step.
    n_steps : int
        So far.
    alone : float
        What it has leaked by itself about any of its steps, in nats.
    """

    first: str
    n_steps: int
    alone: float


@dataclass(frozen=True, slots=True)
class RenewedLeakage:
    """A level that is renewed.

    Parameters
    ----------
    every : str
        "steps", or "daily", "weekly", "monthly" or "yearly".
    n_steps : int
        Of an epoch; by the calendar at most.
    alpha : float
        What each epoch is to hold by itself, in nats.
    for_ever : float
        What all together never exceed, in nats.
    epochs : tuple of EpochLeakage
    """

    every: str
    n_steps: int
    alpha: float
    for_ever: float
    epochs: tuple[EpochLeakage, ...]

    @property
    def alone(self) -> float:
        """The largest leakage of an epoch by itself."""
        return max(epoch.alone for epoch in self.epochs)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Everything that a report shows.

    Parameters
    ----------
    adversaries : tuple of Adversary
        One, or one per user.
    leakage : LeakageSeries
        Of the release that is reported on.
    provenance : Provenance
    times : tuple of str
        One label per step.
    supremum : LeakageSupremum, optional
        Where every step spends the same.
    plan : BudgetPlan or NoisePlan, optional
        If one was followed.
    released : ReleasedHistograms, optional
    true_counts : int array, shape (T, n), optional
        The true histogram. Private: with it, the report must not leave the house.
    n_users : int, optional
        Number of people in the data.
    name_users : bool
        Whether the person who is leaked about most may be named.
    paper : LeakageSeries, optional
        The same release by the paper's recursions, shown once beside its exact leakage.
    paper_supremum : LeakageSupremum, optional
        The supremum by the paper's bound.
    held : float, optional
        Without a plan: the level that an accountant held, in nats, and goes on to hold.
    uncertainty : LeakageUncertainty, optional
        What is plausible and what is guaranteed, as far as traces tell the correlation.
    tables : tuple of TableLeakage
        Where several tables about the same people are charged to one account: each of them.
    renewal : RenewedLeakage, optional
        Where the level is renewed; `held` is then what all epochs together never exceed.
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
    tables: tuple[TableLeakage, ...] = ()
    renewal: RenewedLeakage | None = None
    _observed: dict[int, Observation] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.times) != len(self.leakage):
            raise InputError(f"expected {len(self.leakage)} time labels, one per step, got {len(self.times)}")
        if self.true_counts is not None and self.released is None:
            raise InputError("true counts are shown against released ones, but nothing was released")
        if self.paper is not None and not np.array_equal(self.paper.epsilons, self.leakage.epsilons):
            raise InputError("the paper's bound is of another release: its epsilons differ from those of the leakage")
        if self.released is not None and len(self.released.times) != len(self.leakage):
            raise InputError(
                f"the released histograms have {len(self.released.times)} steps, the audited release has {len(self.leakage)}"
            )
        if self.plan is not None and self.plan.delta != self.leakage.delta:
            raise InputError(f"the leakage is at delta {self.leakage.delta:g}, the plan is for {self.plan.delta:g}")
        if self.released is not None:
            self._require_accounted(self.released)
        shapes = [
            counts.shape for counts in (self.true_counts, getattr(self.released, "counts", None)) if counts is not None
        ]
        if len(set(shapes)) > 1:
            raise InputError(f"expected true counts of shape {shapes[1]} like the released ones, got {shapes[0]}")

    def _require_accounted(self, released: ReleasedHistograms) -> None:
        """What was released has the noise of the plan, or more; without a plan, it spent what is accounted for, or less."""
        noise = "laplace" if self.plan is None else self.plan.noise
        n_steps = len(self.leakage)
        least = laplace_scales(self.leakage.epsilons) if self.plan is None else self.plan.scales_for(n_steps)
        if released.noise != noise or (released.scales < least).any():
            step = int(np.argmin(released.scales / least))
            raise InputError(
                f"the released histograms have {released.noise} noise of scale {released.scales[step]:g} at step {step + 1}, "
                f"where {noise} noise of {least[step]:g} is accounted for: they were not released under this plan or promise"
            )

    @property
    def worst_adversary(self) -> Adversary:
        """The adversary whose target is leaked about most."""
        worst = self.leakage.worst_member
        position = next((k for k, member in enumerate(self.leakage.members) if member is worst), 0)
        return self.adversaries[position]

    @property
    def who(self) -> str | None:
        """The person who is leaked about most, as the report may call them; None where there is one correlation for all."""
        worst = self.leakage.worst_user
        if not worst:
            return None
        return repr(worst) if self.name_users else "one person"

    @property
    def internal(self) -> list[str]:
        """Why the report must stay inside; empty if it may be shown to anybody."""
        reasons = []
        if self.true_counts is not None:
            reasons.append("It shows the true counts, which the guarantee does not cover.")
        if self.provenance.depends_on_protected_data:
            reasons.append("It shows a correlation that was learnt from the protected traces.")
        if self.provenance.per_user:
            reasons.append("It shows the correlation of a single person.")
        return reasons

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before publishing anything that the report is about."""
        if self.plan is None:
            return [self.provenance.warning] if self.provenance.warning else []
        warning = self.plan.source.warning
        found = [f"The plan: {warning}"] if warning else []
        if self.provenance.depends_on_protected_data and not warning:
            found.append("The adversary of this report, though not the plan, was learnt from the protected traces.")
        return found

    @property
    def explained_step(self) -> int:
        """The step whose leakage is explained: the middle one of all at which the worst-off person is leaked about most."""
        tied = np.flatnonzero(self.leakage.worst_member.temporal >= self.leakage.worst * (1.0 - 1e-9))
        return int(tied[len(tied) // 2])

    @property
    def observation(self) -> Observation | None:
        """The observation that gives most away about that step; None where none is known."""
        if not isinstance(self.leakage.worst_member.evidence, ExactLeakage):
            return None
        step = self.explained_step
        if step not in self._observed:
            self._observed[step] = self.leakage.witness(step)
        return self._observed[step]

    @property
    def alpha(self) -> float | None:
        """The level, of a plan or of an accountant; None for a mere promise."""
        return self.held if self.plan is None else self.plan.alpha

    @property
    def level_held(self) -> bool | None:
        """Whether the level is held against this report's adversary; None where there is none, but a promise.

        A plan for ever must hold for ever. An accountant refuses later steps that would break its level.
        """
        if self.plan is None:
            within = self.renewal is None or self.renewal.alone <= self.renewal.alpha * (1.0 + COUNTED_AGAIN)
            return None if self.held is None else within and self.leakage.worst <= self.held
        for_ever = self.supremum.temporal if self.supremum is not None and self.plan.horizon is None else 0.0
        return max(self.leakage.worst, for_ever) <= self.plan.alpha
