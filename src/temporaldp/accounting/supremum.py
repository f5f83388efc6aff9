"""The level that leakage never exceeds, however long the release goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.curves import PrivacyCurve
from temporaldp.accounting.events import checked_release
from temporaldp.accounting.fixed_point import Search, held_metric
from temporaldp.accounting.mechanisms import require_values
from temporaldp.accounting.metrics import Bound, checked_bound, checked_guarantee, guarantee_for, largest_distance
from temporaldp.accounting.population import Adversaries, named
from temporaldp.correlation import Adversary, TransitionMatrix
from temporaldp.correlation.adversary import Correlation
from temporaldp.errors import BudgetError, InputError
from temporaldp.leakage.profile import LARGEST, positive

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageSupremum:
    """Suprema over all horizons of BPL, FPL and TPL under a constant budget, in nats; ``inf`` where there is none.

    Parameters
    ----------
    epsilon : float
        Budget of every step; under a metric, for the two values furthest apart.
    backward, forward, temporal : float
        Upper bounds at every step of every horizon, and approached as the horizon grows. With several users, each is the
        largest over the users.
    worst_user : str or None
        Who has the largest temporal supremum.
    bound : {"uniform", "pairwise"}
        Which upper bound it is.
    backward_metric, forward_metric : array, shape (n, n), or None
        The certificates of the pairwise bound for a single user: metrics that one more step ``b -> K(b) + e D`` does not raise
        anywhere, so that no horizon does. None where none was found (the supremum is then inf) or nothing is known.
    delta : float
        0 for pure differential privacy. Otherwise all suprema are the epsilon at this delta.
    gap : float
        With a delta, how much of the temporal supremum discretisation and rounding can be, at most, in nats.
    backward_curve, forward_curve : PrivacyCurve or None
        With a delta, the certificates for a single user: curves that one more step (kernel, then composition) does not raise at
        any epsilon.
    """

    epsilon: float
    backward: float
    forward: float
    temporal: float
    worst_user: str | None = None
    bound: Bound = "uniform"
    backward_metric: FloatArray | None = None
    forward_metric: FloatArray | None = None
    delta: float = 0.0
    gap: float = 0.0
    backward_curve: PrivacyCurve | None = None
    forward_curve: PrivacyCurve | None = None

    def __repr__(self) -> str:
        values = ", ".join(
            f"{name}={getattr(self, name):.6g}" for name in ("epsilon", "backward", "forward", "temporal")
        )
        kind = f"delta={self.delta:g}" if self.delta else f"bound={self.bound!r}"
        return f"LeakageSupremum({values}, {kind})"

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
    bound: Bound = "uniform",
    metric: ArrayLike | None = None,
    discretization: float | None = None,
) -> LeakageSupremum:
    """Suprema of the leakage when every step spends epsilon, for ever (Theorem 5 of the paper, with `<` for its `<=`).

    With a mechanism and a delta: of the epsilon at that delta when every step publishes by that mechanism. There can be one
    where the pure leakage grows for ever.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        With constant matrices.
    epsilon : float, > 0, optional
        In nats.
    mechanism : mechanism, optional
        In place of `epsilon`; as for `temporal_leakage`.
    delta : float, optional
        Needed with `mechanism`; with `epsilon`, any mechanism with that guarantee.
    bound : {"uniform", "pairwise"}
        "uniform": closed form over the leakage profile, exact to rounding. "pairwise": the fixed point of the metric, with a
        certificate; within 1e-11 of it in general, never below, and `inf` where no certificate is found.
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
    >>> leakage_supremum(ring, epsilon=0.1)
    LeakageSupremum(epsilon=0.1, backward=inf, forward=0.1, temporal=inf, bound='uniform')
    >>> leakage_supremum(ring, epsilon=0.1, bound="pairwise")
    LeakageSupremum(epsilon=0.1, backward=0.637088, forward=0.1, temporal=0.637088, bound='pairwise')

    >>> from temporaldp import GaussianNoise
    >>> walk = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    >>> found = leakage_supremum(walk, mechanism=GaussianNoise(10.0, sensitivity=1.0), delta=1e-6)
    >>> round(found.epsilon, 3), round(found.backward, 3), found.gap < 1e-3
    (0.397, 0.503, True)
    """
    if mechanism is not None or delta is not None:
        return _with_delta(adversary, epsilon, mechanism, delta, bound, metric, discretization)
    if epsilon is None:
        raise BudgetError("expected epsilon, or a mechanism and a delta; got neither")
    return searched_supremum(adversary, epsilon, checked_bound(bound), metric, {})


def searched_supremum(
    adversary: Adversaries,
    epsilon: float,
    bound: Bound,
    metric: ArrayLike | None,
    searches: dict[tuple[str | None, str], Search],
) -> LeakageSupremum:
    """`leakage_supremum`, remembering in `searches` where each user's and direction's search ended, for the next budget."""
    budget = positive(epsilon, "epsilon")
    found = []
    for name, one in named(adversary):
        distances = checked_guarantee(metric, one.states)
        own = positive(budget * largest_distance(distances), "epsilon times the largest distance")
        past, future = _limit(one.backward, own), _limit(one.forward, own)
        limits = LeakageSupremum(own, past, future, past + (future - own), name)
        if bound == "pairwise":
            ways = {way: searches.setdefault((name, way), Search()) for way in ("backward", "forward")}
            limits = _pair_by_pair(one, limits, budget, distances, ways)
        found.append(limits)
    return _largest(found)


def _with_delta(
    adversary: Adversaries,
    epsilon: float | None,
    mechanism: Any,
    delta: float | None,
    bound: str,
    metric: ArrayLike | None,
    discretization: float | None,
) -> LeakageSupremum:
    """Suprema as epsilon at a delta."""
    from temporaldp.accounting.curve_supremum import curve_limits

    release, level, step = checked_release(epsilon, mechanism, delta, bound, metric, discretization)
    pure = math.fsum(one.pure_epsilon for one in release)
    found = []
    for name, one in named(adversary):
        for matrix in (one.backward, one.forward):
            _require_constant(matrix)
        require_values((release,), None if one.states is None else len(one.states))
        limits = curve_limits(one, release, level, step)
        least = (math.inf,) * 3
        if 0.0 < pure <= LARGEST:
            past, future = _limit(one.backward, pure), _limit(one.forward, pure)
            least = (past, future, past + (future - pure))
        own = limits.own
        found.append(
            LeakageSupremum(
                min(own, pure),
                min(limits.backward, least[0]),
                min(limits.forward, least[1]),
                min(limits.temporal, least[2]),
                name,
                delta=level,
                gap=limits.gaps[2],
                backward_curve=limits.backward_curve,
                forward_curve=limits.forward_curve,
            )
        )
    return _largest(found)


def _largest(found: list[LeakageSupremum]) -> LeakageSupremum:
    """The largest over users."""
    if len(found) == 1:
        return found[0]
    worst = max(found, key=lambda limits: limits.temporal)
    return LeakageSupremum(
        epsilon=worst.epsilon,
        backward=max(limits.backward for limits in found),
        forward=max(limits.forward for limits in found),
        temporal=worst.temporal,
        worst_user=worst.worst_user,
        bound=worst.bound,
        delta=worst.delta,
        gap=worst.gap,
    )


def _pair_by_pair(
    adversary: Adversary,
    uniform: LeakageSupremum,
    epsilon: float,
    metric: FloatArray | None,
    searches: dict[str, Search],
) -> LeakageSupremum:
    """One user's suprema under the pairwise bound, given those under the uniform bound."""
    if adversary.states is None:
        return replace(uniform, bound="pairwise")
    own = epsilon * guarantee_for(metric, adversary.states)
    total = own
    limits: dict[str, float] = {}
    certificates: dict[str, FloatArray | None] = {}
    for direction, search in searches.items():
        matrix, limits[direction] = getattr(adversary, direction), getattr(uniform, direction)
        certificates[direction] = None
        if matrix is None:
            continue
        held = held_metric(matrix, own, ceiling=limits[direction], search=search)
        if held is None:
            total = np.full_like(own, np.inf)
            continue
        certificates[direction] = held.metric
        limits[direction] = min(limits[direction], float((held.arrived + own).max()))
        total = total + held.arrived
    return LeakageSupremum(
        uniform.epsilon,
        limits["backward"],
        limits["forward"],
        min(uniform.temporal, float(total.max())),
        uniform.worst_user,
        "pairwise",
        certificates["backward"],
        certificates["forward"],
    )


def _limit(correlation: Correlation, epsilon: float) -> float:
    matrix = _require_constant(correlation)
    return epsilon if matrix is None else matrix.leakage_profile().supremum(epsilon=epsilon)


def _require_constant(correlation: Correlation) -> TransitionMatrix | None:
    if isinstance(correlation, tuple):
        raise InputError(
            f"the supremum needs constant matrices, got a sequence of {len(correlation)}; nothing is known of later steps. "
            "Use temporal_leakage for the steps that the sequence covers"
        )
    return correlation
