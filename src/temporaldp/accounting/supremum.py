"""The level that leakage never exceeds, however long the release goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.curve.method import CurveLimits
from temporaldp.accounting.exact.method import ExactLimits
from temporaldp.accounting.metric.method import MetricLimits
from temporaldp.accounting.periodic import limits_of
from temporaldp.accounting.protocol import (
    SIDES,
    AccountingName,
    AnyBound,
    Limits,
    largest_limits,
    require_lasting,
    weakest,
)
from temporaldp.accounting.ways import ways
from temporaldp.correlation import Adversaries, Population
from temporaldp.display import summary
from temporaldp.errors import BudgetError
from temporaldp.values import compared_by_value, positive

FloatArray = NDArray[np.float64]


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageSupremum:
    """Suprema over all horizons of BPL, FPL and TPL under a constant budget, in nats; ``inf`` where there is none.

    Parameters
    ----------
    epsilon : float
        Budget of every step; under a metric, for the two values furthest apart.
    backward, forward, temporal : float
        Upper bounds at every step of every horizon, and approached as the horizon grows if `bound` is "exact". With several
        users, each is the largest over the users.
    worst_user : str or None
        Who has the largest temporal supremum.
    bound : str
        As for `LeakageSeries`.
    delta : float
        0 for pure differential privacy. Otherwise all suprema are the epsilon at this delta.
    certified : bool
        False where an exact supremum is only an upper bound, mostly inf or the paper's: rollouts were given up before they
        came within 1e-9 of what some horizon attains.
    evidence : ExactLimits, MetricLimits, CurveLimits or None
        What the way of accounting can tell beyond these numbers, for a single user.
    """

    epsilon: float
    backward: float
    forward: float
    temporal: float
    worst_user: str | None = None
    bound: AccountingName = "exact"
    delta: float = 0.0
    certified: bool = True
    evidence: ExactLimits | MetricLimits | CurveLimits | None = None

    def __repr__(self) -> str:
        values = ", ".join(
            f"{name}={getattr(self, name):.6g}" for name in ("epsilon", "backward", "forward", "temporal")
        )
        kind = f"delta={self.delta:g}" if self.delta else f"bound={self.bound!r}"
        return f"LeakageSupremum({values}, {kind})"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        shown: dict[str, object] = {
            "each release by itself": f"{self.epsilon:.6g}",
            "all of them, about one step (TPL)": f"{self.temporal:.6g} at most",
            "from the past (BPL)": f"{self.backward:.6g} at most",
            "from the future (FPL)": f"{self.forward:.6g} at most",
        }
        if self.delta:
            shown["at delta"] = f"{self.delta:g}"
        note = f"{type(self).__name__}, accounted: {self.bound}; inf: it grows without bound"
        return summary("Leakage however long it goes on, in nats", shown, note)

    @property
    def worst(self) -> float:
        """The temporal supremum: the alpha for which the release is alpha-DP_T for ever."""
        return self.temporal


def leakage_supremum(
    adversary: Adversaries,
    *,
    epsilon: float | None = None,
    mechanism: Any = None,
    delta: float | None = None,
    bound: AnyBound = "exact",
    metric: ArrayLike | None = None,
    discretization: float | None = None,
) -> LeakageSupremum:
    """Suprema of the leakage when every step spends epsilon, for ever.

    Exact: with one closed class of values that is aperiodic and lambda the spectral radius of the matrix on the other values, a
    supremum exists if and only if ``epsilon < -log lambda`` (docs/theory.md, section 10). By the paper's bound: Theorem 5, with
    `<` for its `<=`.

    With a mechanism and a delta: of the epsilon at that delta when every step publishes by that mechanism. There can be one
    where the pure leakage grows for ever.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        With constant matrices, or with `PeriodicMatrices`; suprema are then over all phases too.
    epsilon : float, > 0, optional
        In nats.
    mechanism : mechanism, optional
        In place of `epsilon`; as for `temporal_leakage`. Without a delta: a `LikelihoodBox`.
    delta : float, optional
        Needed with a `mechanism` that is no box; with `epsilon`, any mechanism with that guarantee.
    bound : {"exact", "paper"}, with a delta {"exact", "curve", "pair_curve"}, or a way of accounting
        With a delta as for `temporal_leakage`.
        "exact": certified from above, and within 1e-9 of what some horizon attains. "paper": closed form over the leakage
        profile, exact to rounding. With a metric that is no box: the fixed point of the metric, an upper bound, and `inf` where
        no certificate is found.
    metric : array_like, shape (n, n), optional
        As for `temporal_leakage`.
    discretization : float, optional
        As for `temporal_leakage`.

    Raises
    ------
    BudgetError
        epsilon is not positive and finite.
    InputError
        An adversary's matrices vary with time: nothing is known of the steps beyond them. Or there is no such bound or metric.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> adversary = Adversary(backward=TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]))
    >>> round(leakage_supremum(adversary, epsilon=0.1).backward, 4), leakage_supremum(adversary, epsilon=0.3).backward
    (0.6459, inf)

    >>> from scipy.linalg import circulant
    >>> ring = Adversary(TransitionMatrix(circulant([0.6, 0.2, 0, 0, 0, 0.2])))
    >>> leakage_supremum(ring, epsilon=0.1, bound="paper")
    LeakageSupremum(epsilon=0.1, backward=inf, forward=0.1, temporal=inf, bound='paper')
    >>> leakage_supremum(ring, epsilon=0.1)
    LeakageSupremum(epsilon=0.1, backward=0.612733, forward=0.1, temporal=0.612733, bound='exact')

    >>> from temporaldp import GaussianNoise
    >>> walk = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    >>> found = leakage_supremum(walk, mechanism=GaussianNoise(10.0, sensitivity=1.0), delta=1e-6)
    >>> round(found.epsilon, 3), round(found.backward, 3), found.evidence.gap < 1e-3
    (0.397, 0.503, True)
    """
    population = Population.of(adversary)
    for user in population.users:
        for side in SIDES:
            require_lasting(user, side)
    if mechanism is not None and epsilon is not None:
        raise BudgetError("expected either epsilon or a mechanism, got both")
    budget = None if epsilon is None else positive(epsilon, "epsilon")
    found: list[tuple[float, Limits]] = []
    names: list[str | None] = []
    bounds: list[AccountingName] = []
    for way, release, numbers in ways(
        population,
        epsilons=None if budget is None else [budget],
        mechanisms=None if mechanism is None else [mechanism],
        delta=delta,
        bound=bound,
        metric=metric,
        discretization=discretization,
    ):
        promised = float(way.promised(release)[0])
        if not way.delta:
            positive(promised, "what each release promises by itself")
        limits = limits_of(way, [population.users[k] for k in numbers], release)
        bounds.append(way.name)
        found.append((promised, limits))
        names.append(population.names[numbers[limits.worst]])
    largest = largest_limits([limits for _, limits in found])
    worst = largest.worst if len(found) > 1 else 0
    return LeakageSupremum(
        found[worst][0],
        largest.backward,
        largest.forward,
        largest.temporal,
        names[worst],
        weakest(bounds),
        way.delta,
        largest.certified,
        largest.evidence,
    )
