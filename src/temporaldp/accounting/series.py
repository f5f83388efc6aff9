"""Backward, forward and temporal privacy leakage of a sequence of releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.curve_series import LeakageCurves, leakage_curves
from temporaldp.accounting.curves import checked_delta, chosen_discretization
from temporaldp.accounting.events import refuse_other_bounds, releases_of
from temporaldp.accounting.exact import Releases
from temporaldp.accounting.exact_population import MemberLeakage, exact_population, worth_the_kernel
from temporaldp.accounting.exact_series import Attained, ExactLeakage, Observation, exact_leakage
from temporaldp.accounting.likelihood_box import LikelihoodBox
from temporaldp.accounting.mechanisms import PrivacyGuarantee, require_values
from temporaldp.accounting.metrics import (
    DIRECTIONS,
    Accounting,
    Bound,
    PairwiseLeakage,
    arrivals,
    box_of,
    checked_bound,
    checked_guarantee,
    guarantee_for,
    spend_scaled,
)
from temporaldp.accounting.population import Adversaries, named
from temporaldp.accounting.recursion import arrivals_of_users, reversed_correlation
from temporaldp.correlation import Adversary
from temporaldp.errors import BudgetError, InputError, StateError
from temporaldp.progress import part
from temporaldp.values import LARGEST, compared_by_value

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]

LEAKAGE = "leakage of every step"

GIVEN_UP = 1e-9
"""Distance of both sides, as a share of a user's largest leakage, from which on the kernel of populations gave a pair up."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageSeries:
    """Leakage at every step of a sequence of T releases, in nats; from `temporal_leakage`.

    The paper's Definitions 5 to 7: the supremum over every mechanism with these epsilons, exact by default; then these are the
    upper sides of certified pairs, of which `attained` has the lower. Otherwise an upper bound; `bound` says which.
    Neighbouring databases differ in one person's *value* (replace one).

    Parameters
    ----------
    epsilons : array, shape (T,)
        What each release promises on its own; under a metric, for the two values furthest apart.
    backward, forward, temporal : array, shape (T,)
        BPL, FPL and TPL: leakage at a step from it and the past, from it and the future, and from everything. With several
        users, each is the largest over the users at that step (so that in general
        ``temporal < backward + forward - epsilons``).
    name : str or None
        The user, if one is named.
    members : tuple of LeakageSeries
        One per user where there are several; empty for a single user.
    bound : {"exact", "paper", "metric", "curve"}
        "exact", or which upper bound: the paper's recursions, one metric a step (given a metric), or one privacy curve a step
        (with a delta).
    delta : float
        0 for pure differential privacy. Otherwise all leakage is the epsilon at this delta: (epsilon, delta)-DP_T.
    evidence : ExactLeakage, PairwiseLeakage, LeakageCurves or None
        What the way of accounting can tell beyond these numbers, for a single user; None for the paper's, and for a
        user of whom no correlation is known.
    """

    epsilons: FloatArray
    backward: FloatArray
    forward: FloatArray
    temporal: FloatArray
    name: str | None = None
    members: tuple[LeakageSeries, ...] = ()
    bound: Accounting = "exact"
    delta: float = 0.0
    evidence: ExactLeakage | PairwiseLeakage | LeakageCurves | None = None

    def __post_init__(self) -> None:
        for field in ("epsilons", *DIRECTIONS):
            object.__setattr__(self, field, _frozen(getattr(self, field)))

    def __len__(self) -> int:
        return len(self.epsilons)

    def __repr__(self) -> str:
        who = f", worst user {self.worst_user!r}" if self.worst_user else ""
        at = f" at delta {self.delta:g}" if self.delta else ""
        return f"LeakageSeries({len(self)} steps, worst {self.worst:.6g} nats{at} at time {self.worst_time}{who})"

    @property
    def worst_time(self) -> int:
        """Index (from 0) of the first step with the largest temporal privacy leakage."""
        return int(np.argmax(self.temporal))

    @property
    def worst(self) -> float:
        """Largest temporal privacy leakage of any step: the alpha for which the release is alpha-DP_T (Definition 8)."""
        return float(self.temporal[self.worst_time])

    @property
    def worst_user(self) -> str | None:
        """Name of the user who is leaked about most, at `worst_time`; None for a single nameless user."""
        return self.worst_member.name

    @property
    def worst_member(self) -> LeakageSeries:
        """The series of the user who is leaked about most, at `worst_time`; itself for a single user."""
        if not self.members:
            return self
        time = self.worst_time
        return max(self.members, key=lambda member: member.temporal[time])

    @property
    def attained(self) -> Attained | None:
        """What observations reach at every step, the lower sides of exact numbers; None where there are only upper bounds."""
        if self.bound != "exact":
            return None
        if self.members:
            each = [member.attained for member in self.members]
            return Attained(*(np.max([one[k] for one in each if one is not None], axis=0) for k in range(3)))
        if isinstance(self.evidence, ExactLeakage):
            return self.evidence.attained
        return Attained(self.backward, self.forward, self.temporal)

    @property
    def gap(self) -> float:
        """The largest distance between what is reported and what is attained, of any step; 0 without an exact number."""
        attained = self.attained
        if attained is None:
            return 0.0
        return max(float((getattr(self, name) - getattr(attained, name)).max()) for name in DIRECTIONS)

    def worst_pair(self, time: int | None = None) -> tuple[str, str] | None:
        """The value that is leaked about most at a step (default: the worst), and the one it is told from; None if unknown."""
        member = self.worst_member
        if not isinstance(member.evidence, ExactLeakage | PairwiseLeakage):
            return None
        return member.evidence.worst_pair(self.worst_time if time is None else time)

    def witness(self, time: int | None = None) -> Observation:
        """The observation that gives most away about a step (default: the worst), release by release.

        Raises
        ------
        InputError
            Only the exact accounting of somebody with a correlation knows one, or there is no such step.
        """
        member = self.worst_member
        if not isinstance(member.evidence, ExactLeakage):
            raise InputError(
                f"an observation is known for the exact leakage of an adversary with a correlation; this series is by bound="
                f"{self.bound!r}"
                + ("" if self.bound != "exact" else ", without a correlation, or was read from a file")
            )
        return member.evidence.witness(self.worst_time if time is None else time)

    @property
    def user_level(self) -> float:
        """Leakage about all of a user's values together: the sum of all epsilons (Corollary 1), whatever the correlation.

        With a delta, the epsilon of the composition of all releases.
        """
        if self.delta:
            return (self.members or (self,))[0]._whole_curves().user_level
        return math.fsum(self.epsilons)

    def window(self, start: int | None, stop: int | None) -> float:
        """Leakage about all values in steps ``start:stop`` together, by Theorem 2, in nats; exact where the series is.

        With a delta, the same releases are composed where pure epsilons are added.

        Python's slice convention: 0-based, `stop` excluded, negative numbers count from the end, None is the end. One step:
        its TPL. Two: ``BPL[start] + FPL[start + 1]``. More: ``BPL[start] + FPL[stop - 1]`` and the epsilons between them.

        Raises
        ------
        InputError
            The window is empty.
        """
        first, end, _ = slice(start, stop).indices(len(self))
        if first >= end:
            raise InputError(f"expected a window of at least one of the {len(self)} steps, got {start}:{stop}")
        if self.members:
            return max(member.window(first, end) for member in self.members)
        if end - first == 1:
            return float(self.temporal[first])
        if self.delta:
            return self._whole_curves().window(first, end)
        return math.fsum([self.backward[first], self.forward[end - 1], *self.epsilons[first + 1 : end - 1]])

    def _whole_curves(self) -> LeakageCurves:
        """Epsilons at one delta do not add up: what several steps leak together needs their curves."""
        if not isinstance(self.evidence, LeakageCurves):
            raise InputError(
                "what several steps leak together at a delta follows from whole curves, which a plan read from a file does not "
                "have; call temporal_leakage with its mechanisms"
            )
        return self.evidence

    def to_frame(self) -> pd.DataFrame:
        """Columns epsilon, backward, forward, temporal and one row per step, as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        fields = {"epsilon": "epsilons", "backward": "backward", "forward": "forward", "temporal": "temporal"}
        return pd.DataFrame({column: getattr(self, field) for column, field in fields.items()})


def _frozen(values: FloatArray) -> FloatArray:
    """A read-only copy; an array that nobody can write to is kept as it is, so that users share theirs."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and not values.flags.writeable:
        owner = values if values.base is None else values.base
        if isinstance(owner, np.ndarray) and owner.base is None and not owner.flags.writeable:
            return values
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def temporal_leakage(
    adversary: Adversaries,
    *,
    epsilons: ArrayLike | None = None,
    mechanisms: Sequence[Any] | None = None,
    delta: float | None = None,
    bound: Bound = "exact",
    metric: ArrayLike | None = None,
    discretization: float | None = None,
) -> LeakageSeries:
    """What a sequence of releases leaks at each step to an adversary who knows temporal correlations.

    Exact: the supremum of the paper's Definitions 5 to 7 over every mechanism with these epsilons, by the sign rule
    (docs/theory.md, section 10). Each number is the upper side of a certified pair, in nats: ``series.attained`` has the lower,
    reached by the observation ``series.witness()``. For a histogram with Laplace noise it is that release's own leakage.

    ``bound="paper"``: the paper's recursions ``BPL_t = L_B(BPL_{t-1}) + e_t``, ``FPL_t = L_F(FPL_{t+1}) + e_t``,
    ``TPL_t = BPL_t + FPL_t - e_t`` (Equations 13, 15 and 10, Sections III-B and IV): upper bounds, computed in microseconds. An
    unknown correlation passes nothing on.

    With a `metric` that is no box, one number for each pair of values is carried, an upper bound (docs/theory.md,
    section 8; the lifting of Chatzikokolakis et al., CONCUR 2014); ``series.bound`` is then "metric".

    With `mechanisms` and `delta` leakage is the epsilon at that delta, of any mechanisms: their privacy profiles are carried
    through the correlation and composed with the next release (docs/theory.md, section 9). Discretisation rounds up;
    ``series.evidence`` has the whole curves, and says how much of the result is discretisation.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        Several: every user is accounted for and the worst one named. Iterables may be generators.
    epsilons : array_like, shape (T,), optional
        Privacy loss of each release on its own (substitution of one value), in nats, >= 0; 0 for a step that is not
        published.
    mechanisms : sequence of T mechanisms, optional
        What is published at each step, in place of `epsilons`: `GaussianNoise`, `LaplaceNoise`, `DiscreteGaussianNoise`,
        `DiscreteLaplaceNoise`, `RandomizedResponse`, `OutputTable`, `PrivacyGuarantee`, an event or a privacy loss distribution
        of dp-accounting (made for replacement of a value: its defaults are about adding or removing one), None for a step that
        is not published, or a tuple of several that are published at one step. Which they are must not depend on what was
        published before. Without a delta: a `LikelihoodBox` or None for each step.
    delta : float, optional
        From 1e-60 to below 1. Needed with `mechanisms` that are no boxes; with `epsilons`, each is any mechanism with that
        guarantee.
    bound : {"exact", "paper"}
    metric : array_like, shape (n, n), optional
        D, for mechanisms with metric privacy (geo-indistinguishability): a release at step t changes the odds between values i
        and j by at most ``epsilons[t] * D[i, j]``. At least 0, zeros on the diagonal; a pandas table with the states' names is
        put in order. Default: 1 between any two values. It may be asymmetric; where a way round over other values is shorter,
        that distance counts, since odds that change little on every part of the way change little on the whole. Under the
        paper's bound the largest distance counts. ``epsilons`` of the result are scaled by it.
    discretization : float, optional
        Distance of the grid of privacy losses, in nats. Default: a 512th of the epsilon of the release with the most noise, at
        most 0.01.


    Returns
    -------
    LeakageSeries

    Raises
    ------
    BudgetError
        epsilons are no non-empty sequence of finite numbers >= 0, or their number does not fit an adversary's matrices.
    InputError
        No such bound or mechanism, or the metric is none; `StateError` if it is for other states.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> adversary = Adversary(backward=TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]))
    >>> temporal_leakage(adversary, epsilons=[0.1] * 5).backward.round(4)
    array([0.1   , 0.1808, 0.2471, 0.3024, 0.3488])

    >>> from scipy.linalg import circulant
    >>> ring = TransitionMatrix(circulant([0.6, 0.2, 0, 0, 0, 0.2]))
    >>> for bound in ("paper", "exact"):
    ...     series = temporal_leakage(Adversary(ring, ring), epsilons=[0.1] * 20, bound=bound)
    ...     print(bound, round(series.worst, 3))
    paper 2.0
    exact 1.013
    >>> series.worst_pair(), series.gap < 1e-12
    (('0', '3'), True)
    >>> series.witness().counts_high(series.worst_time - 1)        # the sides of the ring that speak for '0'
    ('0', '1', '5')

    >>> from temporaldp import GaussianNoise
    >>> walk = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    >>> noise = GaussianNoise(10.0, sensitivity=1.0)
    >>> temporal_leakage(walk, mechanisms=[noise] * 20, delta=1e-6).backward.round(3)[[0, 1, 2, 19]]
    array([0.397, 0.467, 0.49 , 0.503])
    """
    chosen = checked_bound(bound)
    if delta is None and mechanisms is not None:
        return _of_boxes(adversary, epsilons, mechanisms, chosen, metric)
    if delta is not None:
        return _with_delta(adversary, epsilons, mechanisms, delta, chosen, metric, discretization)
    if epsilons is None:
        raise BudgetError("expected epsilons, one per step, or mechanisms; got neither")
    spent = _frozen(budgets(epsilons))
    users = list(named(adversary))
    distances = [checked_guarantee(metric, one.states) for _, one in users]
    promised = _frozen(spend_scaled(spent, distances[0]))
    if chosen == "exact" and not any(D is not None for D in distances):
        return _together(_exact_members(users, spent), promised)
    members = _members(users, promised)
    if chosen == "exact":
        members = _each_by_pairs(users, members, spent, distances)
    return _together(members, promised)


def _each_by_pairs(
    users: list[tuple[str | None, Adversary]],
    papers: list[LeakageSeries],
    spent: FloatArray,
    distances: Sequence[FloatArray | None],
) -> list[LeakageSeries]:
    """Every user's series, one after the other."""
    members = []
    for k, ((_, one), paper, D) in enumerate(zip(users, papers, distances, strict=True)):
        with part(k / len(users), (k + 1) / len(users), LEAKAGE):
            members.append(_by_pairs(one, paper, spent, D))
    return members


def _by_pairs(
    adversary: Adversary, paper: LeakageSeries, spent: FloatArray, metric: FloatArray | None
) -> LeakageSeries:
    """Exact where what a release can say is a box; else with one number for each pair."""
    if metric is None:
        return _exact(adversary, paper, Releases(spent[:, None], np.zeros((len(spent), 1))))
    box = box_of(metric)
    if box is None:
        return _pair_by_pair(adversary, paper, spent, metric)
    return _exact(adversary, paper, Releases(spent[:, None] * box.high, spent[:, None] * box.low))


def _exact(adversary: Adversary, paper: LeakageSeries, releases: Releases) -> LeakageSeries:
    """One user's exact series; each release stands alone where nothing is known of how values follow one another."""
    if adversary.states is None:
        return replace(paper, bound="exact")
    known = Attained(paper.backward, paper.forward, paper.temporal)
    past, future, both, evidence = exact_leakage(adversary, releases, known)
    return LeakageSeries(paper.epsilons, past, future, both, name=paper.name, evidence=evidence)


def _exact_members(users: list[tuple[str | None, Adversary]], spent: FloatArray) -> list[LeakageSeries]:
    """The exact series of users under plain releases, all at once where the kernel of populations is worth loading."""
    if not worth_the_kernel([one for _, one in users], spent):
        return _each_by_pairs(users, _members(users, spent), spent, [None] * len(users))
    found = exact_population([one for _, one in users], spent)
    members = []
    for (name, one), row in zip(users, found.which.tolist(), strict=True):
        if one.states is None:
            members.append(LeakageSeries(spent, spent, spent, spent, name))
        else:
            low, high = found.attained[row], found.proved[row]
            if (high - low).max() > GIVEN_UP * high.max():
                members.append(_by_pairs(one, _members([(name, one)], spent)[0], spent, None))
                continue
            past, future, both = high
            members.append(LeakageSeries(spent, past, future, both, name, evidence=MemberLeakage(one, found, row)))
    return members


def _of_boxes(
    adversary: Adversaries,
    epsilons: ArrayLike | None,
    mechanisms: Sequence[Any],
    bound: Bound,
    metric: ArrayLike | None,
) -> LeakageSeries:
    """The leakage of releases that are given as boxes of likelihoods."""
    if epsilons is not None or metric is not None:
        raise InputError("boxes say all that a release can: expected mechanisms without epsilons and without a metric")
    given = [mechanism for mechanism in mechanisms if mechanism is not None]
    other = next((one for one in given if not isinstance(one, LikelihoodBox)), None)
    if other is not None:
        raise BudgetError(
            f"{type(other).__name__} needs a delta, as in delta=1e-6: leakage is then the epsilon at that delta; without one, "
            "give epsilons, or a LikelihoodBox for each step"
        )
    if not given:
        raise BudgetError("expected at least one step with a LikelihoodBox, got none")
    users = list(named(adversary))
    n = len(given[0].low)
    for name, one in users:
        n_states = n if one.states is None else len(one.states)
        wrong = next((k for k, box in enumerate(mechanisms) if box is not None and len(box.low) != n_states), None)
        if wrong is not None:
            who = "the correlation" if name is None else f"the correlation of {name!r}"
            raise StateError(
                f"the box of step {wrong} has {len(mechanisms[wrong].low)} values, {who} has {n_states} states"
            )
    lift, drop = (
        np.array([np.zeros(n) if box is None else getattr(box, side) for box in mechanisms]) for side in ("high", "low")
    )
    releases = Releases(lift, drop)
    promised = _frozen(releases.width)
    members = _members(users, promised)
    if bound == "exact":
        for k, (_, one) in enumerate(users):
            with part(k / len(users), (k + 1) / len(users), LEAKAGE):
                members[k] = _exact(one, members[k], releases)
    return _together(members, promised)


def _with_delta(
    adversary: Adversaries,
    epsilons: ArrayLike | None,
    mechanisms: Sequence[Any] | None,
    delta: float,
    bound: Bound,
    metric: ArrayLike | None,
    discretization: float | None,
) -> LeakageSeries:
    """Leakage as epsilon at a delta, for each user and together."""
    if (epsilons is None) == (mechanisms is None):
        raise BudgetError("expected either epsilons or mechanisms, one per step")
    refuse_other_bounds(bound, metric)
    level = checked_delta(delta)
    if epsilons is not None:
        mechanisms = [PrivacyGuarantee(epsilon) if epsilon else None for epsilon in budgets(epsilons).tolist()]
    assert mechanisms is not None
    releases = releases_of(mechanisms)
    users = list(named(adversary))
    pure = np.array([math.fsum(mechanism.pure_epsilon for mechanism in release) for release in releases])
    _check_lengths(users, len(releases))
    # What no delta is needed for is never exceeded with one.
    members = [] if (pure > LARGEST).any() else _exact_members(users, pure)
    step = chosen_discretization(releases, level, discretization)
    found = []
    for k, (name, one) in enumerate(users):
        require_values(releases, None if one.states is None else len(one.states))
        known = {direction: getattr(members[k], direction) for direction in DIRECTIONS} if members else None
        with part(k / len(users), (k + 1) / len(users), LEAKAGE):
            curves = leakage_curves(one, releases, level, step, known)
        past, future, both = (curves.epsilons(direction) for direction in DIRECTIONS)
        found.append(
            LeakageSeries(curves.promised, past, future, both, name=name, bound="curve", delta=level, evidence=curves)
        )
    return _together(found, found[0].epsilons)


def _together(members: list[LeakageSeries], spent: FloatArray) -> LeakageSeries:
    """The largest over users at every step."""
    if len(members) == 1:
        return members[0]
    past, future, both = (np.max([getattr(m, field) for m in members], axis=0) for field in DIRECTIONS)
    return LeakageSeries(
        spent, past, future, both, members=tuple(members), bound=members[0].bound, delta=members[0].delta
    )


def _pair_by_pair(adversary: Adversary, paper: LeakageSeries, spent: FloatArray, metric: FloatArray) -> LeakageSeries:
    """One user's series with one number for each pair, given the paper's: never above it, by one ulp neither."""
    if adversary.states is None:  # nothing is known of how values follow one another: each release stands alone
        return replace(paper, bound="metric")
    guarantee = guarantee_for(metric, adversary.states)
    past = arrivals(adversary.backward, spent, guarantee)
    future = arrivals(reversed_correlation(adversary.forward), spent[::-1], guarantee)[::-1]
    pairs = PairwiseLeakage(adversary.states, spent, guarantee, past, future, adversary.backward, adversary.forward)
    series = {
        direction: np.minimum(getattr(paper, direction), [pairs.metric(t, direction).max() for t in range(len(spent))])
        for direction in DIRECTIONS
    }
    return LeakageSeries(paper.epsilons, **series, name=paper.name, bound="metric", evidence=pairs)


def budgets(epsilons: ArrayLike) -> FloatArray:
    """`epsilons` as a checked, non-empty vector of finite numbers >= 0."""
    try:
        spent = np.array(epsilons, dtype=np.float64)
    except (TypeError, ValueError):
        raise BudgetError(f"expected epsilons to be a sequence of numbers, one per step, got {epsilons!r}") from None
    if spent.ndim != 1 or spent.size == 0:
        raise BudgetError(
            f"expected epsilons of shape (T,), one per step and at least one, got shape {spent.shape}; for T equal steps "
            "write numpy.full(T, epsilon)"
        )
    bad = np.flatnonzero(~((spent >= 0.0) & (spent <= LARGEST)))
    if bad.size:
        raise BudgetError(f"expected epsilons from 0 to {LARGEST:g}, got {spent[bad[0]]} at step {bad[0]}")
    return spent


def _check_lengths(named_adversaries: list[tuple[str | None, Adversary]], n_steps: int) -> None:
    for _, adversary in named_adversaries:
        if adversary.n_steps not in {None, n_steps}:
            raise BudgetError(
                f"the adversary's matrices serve {adversary.n_steps} steps, but there are {n_steps} releases; give one "
                "matrix per transition (one fewer than steps) or a constant matrix"
            )


def _members(named_adversaries: list[tuple[str | None, Adversary]], spent: FloatArray) -> list[LeakageSeries]:
    """The series of every user, all users at once."""
    _check_lengths(named_adversaries, len(spent))
    past = arrivals_of_users([adversary.backward for _, adversary in named_adversaries], spent)
    # Forward leakage runs from the last step to the first: the same recursion on everything reversed.
    reverse = [reversed_correlation(adversary.forward) for _, adversary in named_adversaries]
    future = arrivals_of_users(reverse, spent[::-1])[:, ::-1]
    series = []
    for (name, _), before, after in zip(named_adversaries, past, future, strict=True):
        series.append(LeakageSeries(spent, before + spent, after + spent, before + after + spent, name, bound="paper"))
    return series
