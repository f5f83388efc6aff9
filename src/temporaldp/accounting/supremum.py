"""The level that leakage never exceeds, however long the release goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.curves import PrivacyCurve
from temporaldp.accounting.events import checked_release
from temporaldp.accounting.exact import Releases
from temporaldp.accounting.exact_series import likely_pairs, rows_of
from temporaldp.accounting.exact_supremum import Limit, both_limits, exact_limit, never_above
from temporaldp.accounting.fixed_point import Search, held_metric
from temporaldp.accounting.likelihood_box import LikelihoodBox
from temporaldp.accounting.mechanisms import require_values
from temporaldp.accounting.metrics import (
    DIRECTIONS,
    Accounting,
    Bound,
    box_of,
    checked_bound,
    checked_guarantee,
    largest_distance,
)
from temporaldp.accounting.pair_search import RISE
from temporaldp.accounting.population import Adversaries, named
from temporaldp.correlation import Adversary, TransitionMatrix
from temporaldp.correlation.adversary import Correlation
from temporaldp.correlation.transition import know_profiles
from temporaldp.errors import BudgetError, InputError, StateError
from temporaldp.leakage.batch import BATCHED
from temporaldp.leakage.kernels import chosen_kernels, repeated
from temporaldp.leakage.recurrence import has_supremum
from temporaldp.progress import part
from temporaldp.values import LARGEST, compared_by_value, positive

FloatArray = NDArray[np.float64]

CLOSE = 1e-9
"""Relative distance from what some horizon attains up to which an exact supremum counts as certified."""


FIRST_USERS, PAIRS_AT_ONCE = 4, 1 << 19
"""Users whose suprema are computed before others are compared with them; and pairs of all users that are compared at once."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class ExactLimits:
    """The lower sides of exact suprema, and who they are about: for a single user.

    Parameters
    ----------
    backward, forward, temporal : float
        What some horizon comes as close to as one likes; equal to the supremum but for 1e-9 (relative), unless that is inf.
    pair : tuple of two str
        The two values that are told apart best by past and future together; by the one of them that has no supremum, if any.
    """

    backward: float
    forward: float
    temporal: float
    pair: tuple[str, str]


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class MetricLimits:
    """The certificates of suprema under a metric, for a single user.

    ``backward`` and ``forward`` have shape (n, n): metrics that one more step ``b -> K(b) + e D`` does not raise anywhere, so
    that no horizon does. None where none was found (the supremum is then inf) or nothing is known.
    """

    backward: FloatArray | None
    forward: FloatArray | None


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class CurveLimits:
    """The certificates of suprema at a delta, for a single user.

    Parameters
    ----------
    gap : float
        How much of the temporal supremum discretisation and rounding can be, at most, in nats.
    backward, forward : PrivacyCurve or None
        Curves that one more step (kernel, then composition) does not raise at any epsilon.
    """

    gap: float
    backward: PrivacyCurve | None
    forward: PrivacyCurve | None


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
    bound : {"exact", "paper", "metric", "curve"}
        As for `LeakageSeries`.
    delta : float
        0 for pure differential privacy. Otherwise all suprema are the epsilon at this delta.
    certified : bool
        False where an exact supremum is only an upper bound, mostly inf or the paper's: rollouts were given up before they
        came within `CLOSE` of what some horizon attains.
    evidence : ExactLimits, MetricLimits, CurveLimits or None
        What the way of accounting can tell beyond these numbers, for a single user.
    """

    epsilon: float
    backward: float
    forward: float
    temporal: float
    worst_user: str | None = None
    bound: Accounting = "exact"
    delta: float = 0.0
    certified: bool = True
    evidence: ExactLimits | MetricLimits | CurveLimits | None = None

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
    bound: Bound = "exact",
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
        With constant matrices.
    epsilon : float, > 0, optional
        In nats.
    mechanism : mechanism, optional
        In place of `epsilon`; as for `temporal_leakage`. Without a delta: a `LikelihoodBox`.
    delta : float, optional
        Needed with a `mechanism` that is no box; with `epsilon`, any mechanism with that guarantee.
    bound : {"exact", "paper"}
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
    chosen = checked_bound(bound)
    if delta is not None or (mechanism is not None and not isinstance(mechanism, LikelihoodBox)):
        return _with_delta(adversary, epsilon, mechanism, delta, chosen, metric, discretization)
    if mechanism is not None:
        if epsilon is not None or metric is not None:
            raise InputError("a box says all that a release can: expected it without epsilon and without a metric")
        return _largest([_of_box(name, one, mechanism, chosen) for name, one in named(adversary)])
    if epsilon is None:
        raise BudgetError("expected epsilon, or a mechanism and a delta; got neither")
    return searched_supremum(adversary, epsilon, chosen, metric, {})


def searched_supremum(
    adversary: Adversaries,
    epsilon: float,
    bound: Bound,
    metric: ArrayLike | None,
    searches: dict[tuple[str | None, str], Search],
) -> LeakageSupremum:
    """`leakage_supremum`, remembering in `searches` where a metric's search ended for each user, for the next budget."""
    budget = positive(epsilon, "epsilon")
    users = list(named(adversary))
    if len(users) > 1 and bound == "exact" and metric is None:
        return _worst_exact(users, budget)
    found = []
    for k, (name, one) in enumerate(users):
        with part(k / len(users), (k + 1) / len(users), "leakage for ever"):
            found.append(_one_supremum(name, one, budget, bound, metric, searches))
    return _largest(found)


def _worst_exact(users: list[tuple[str | None, Adversary]], epsilon: float) -> LeakageSupremum:
    """The largest exact suprema. Few users' need to be known: others are proved not to exceed the largest found so far."""
    known = [matrix for _, one in users for matrix in (one.backward, one.forward)]
    know_profiles([matrix for matrix in known if isinstance(matrix, TransitionMatrix)])
    papers = [_paper(name, one, epsilon) for name, one in users]
    above = np.array([[getattr(paper, way) for way in DIRECTIONS] for paper in papers])
    release = Releases(np.array([[epsilon]]), np.zeros((1, 1)))
    found: list[LeakageSupremum] = []
    largest = np.full(3, epsilon)
    waiting = np.argsort(-above[:, 2], kind="stable")
    length = FIRST_USERS
    with repeated(len(users)):
        while waiting.size:
            for k in waiting[:length].tolist():
                if not found or (above[k] > largest).any():
                    done = 1.0 - len(waiting) / len(users)
                    with part(done, done + 1.0 / len(users), "leakage for ever"):
                        found.append(_exact(users[k][1], papers[k], release))
                    largest = np.maximum(largest, [getattr(found[-1], way) for way in DIRECTIONS])
                    largest[2] = largest.max()  # TPL is no less than BPL and FPL, but for the rounding of each
            waiting = waiting[length:]
            waiting = waiting[(above[waiting] > largest).any(axis=1)]
            length *= 2
            if waiting.size > length:
                waiting = waiting[~_dominated([users[k][1] for k in waiting], release, largest)]
    worst = _largest(found)
    if len(found) == len(users):
        return worst
    past, future, both = (float(level) * RISE for level in largest)
    return replace(worst, backward=past, forward=future, temporal=both, evidence=None)


def _dominated(users: list[Adversary], release: Releases, largest: FloatArray) -> NDArray[np.bool_]:
    """Who is proved never to leak more than the largest; nobody where machine code for small matrices does not apply."""
    below = np.zeros(len(users), bool)
    sizes = {0 if one.states is None else len(one.states) for one in users}
    n = max(sizes)
    if len(sizes) > 1 or n > BATCHED or chosen_kernels(len(users) * n**3) != "numba" or release.narrowed[1] > 0.0:
        return below
    length = max(1, PAIRS_AT_ONCE // n**2)
    for first in range(0, len(users), length):
        some = users[first : first + length]
        rows = [
            tuple(None if m is None else rows_of(m) for m in map(_require_constant, (one.backward, one.forward)))
            for one in some
        ]
        dense = not any(m is not None and not isinstance(m, np.ndarray) for user in rows for m in user)
        if dense and np.isfinite(largest).all():
            below[first : first + length] = never_above(rows, release, largest)
    return below


def _one_supremum(
    name: str | None,
    one: Adversary,
    budget: float,
    bound: Bound,
    metric: ArrayLike | None,
    searches: dict[tuple[str | None, str], Search],
) -> LeakageSupremum:
    """One user's suprema."""
    distances = checked_guarantee(metric, one.states)
    own = positive(budget * largest_distance(distances), "epsilon times the largest distance")
    paper = _paper(name, one, own)
    if bound == "paper":
        return paper
    if distances is None:
        return _exact(one, paper, Releases(np.array([[own]]), np.zeros((1, 1))))
    if (box := box_of(distances)) is not None:
        return _exact(one, paper, Releases(budget * box.high[None], budget * box.low[None]))
    ways = {way: searches.setdefault((name, way), Search()) for way in ("backward", "forward")}
    return _pair_by_pair(one, paper, budget, distances, ways)


def _paper(name: str | None, adversary: Adversary, own: float) -> LeakageSupremum:
    """One user's suprema by the paper's bound."""
    past, future = _limit(adversary.backward, own), _limit(adversary.forward, own)
    return LeakageSupremum(own, past, future, past + (future - own), name, "paper")


def _of_box(name: str | None, adversary: Adversary, box: LikelihoodBox, bound: Bound) -> LeakageSupremum:
    """One user's suprema if every step publishes by the same box."""
    if adversary.states is not None and len(adversary.states) != len(box.low):
        raise StateError(f"the box has {len(box.low)} values, the correlation has {len(adversary.states)} states")
    release = Releases(box.high[None], box.low[None])
    paper = _paper(name, adversary, positive(float(release.width[0]), "the largest log ratio of the box"))
    return _exact(adversary, paper, release) if bound == "exact" else paper


def _exact(adversary: Adversary, paper: LeakageSupremum, release: Releases) -> LeakageSupremum:
    """One user's exact suprema, given the paper's."""
    if adversary.states is None:
        return replace(paper, bound="exact")
    own = float(release.width[0])
    limits = [
        _direction_limit(matrix, release, ceiling)
        for matrix, ceiling in ((adversary.backward, paper.backward), (adversary.forward, paper.forward))
    ]
    known = [one for one in limits if one is not None]
    if any(one.direction is None for one in known):  # at least one grows for ever, or was given up
        worst = max(known, key=lambda one: (one.direction is None, one.attained))
        both = replace(worst, proved=paper.temporal)
    else:
        both = both_limits(known[0], known[1], release) if len(known) == 2 else known[0]
    past, future = (Limit(float(release.attained[0]), own, 0, 1, None) if one is None else one for one in limits)
    states = adversary.states
    certified = all(
        one.attained == one.proved or one.attained >= (1.0 - CLOSE) * one.proved for one in (past, future, both)
    )
    return LeakageSupremum(
        paper.epsilon,
        past.proved,
        future.proved,
        min(both.proved, paper.temporal * (1.0 + 1e-12)),
        paper.worst_user,
        "exact",
        certified=certified,
        evidence=ExactLimits(past.attained, future.attained, both.attained, (states[both.i], states[both.j])),
    )


def _direction_limit(correlation: Correlation, release: Releases, ceiling: float) -> Limit | None:
    """One direction's limit; None for an unknown correlation."""
    matrix = _require_constant(correlation)
    if matrix is None:
        return None
    if _grows_for_ever(matrix, release):
        i, j = likely_pairs(matrix)
        return Limit(math.inf, math.inf, int(i[0]), int(j[0]), None)
    return exact_limit(rows_of(matrix), release, ceiling, likely_pairs(matrix))


def _grows_for_ever(correlation: Correlation, release: Releases) -> bool:
    """Whether plain releases are known to have no supremum."""
    matrix = _require_constant(correlation)
    plain = release.lift.shape[1] == 1
    return plain and matrix is not None and not has_supremum(matrix.probabilities, float(release.width[0]))


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
        if 0.0 < pure <= LARGEST:  # what no delta is needed for is never exceeded with one
            exact = _one_supremum(name, one, pure, "exact", None, {})
            least = (exact.backward, exact.forward, exact.temporal)
        own = limits.own
        found.append(
            LeakageSupremum(
                min(own, pure),
                min(limits.backward, least[0]),
                min(limits.forward, least[1]),
                min(limits.temporal, least[2]),
                name,
                "curve",
                delta=level,
                evidence=CurveLimits(limits.gaps[2], limits.backward_curve, limits.forward_curve),
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
        certified=all(limits.certified for limits in found),
    )


def _pair_by_pair(
    adversary: Adversary,
    paper: LeakageSupremum,
    epsilon: float,
    metric: FloatArray,
    searches: dict[str, Search],
) -> LeakageSupremum:
    """One user's suprema under a metric, given the paper's."""
    if adversary.states is None:
        return replace(paper, bound="metric")
    own = epsilon * metric
    total = own
    limits: dict[str, float] = {}
    certificates: dict[str, FloatArray | None] = {}
    for direction, search in searches.items():
        matrix, limits[direction] = getattr(adversary, direction), getattr(paper, direction)
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
        paper.epsilon,
        limits["backward"],
        limits["forward"],
        min(paper.temporal, float(total.max())),
        paper.worst_user,
        "metric",
        evidence=MetricLimits(certificates["backward"], certificates["forward"]),
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
