"""Which way of accounting a question asks for, and what that way keeps of each release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.curve.curves import COARSEST, checked_delta, chosen_discretization
from temporaldp.accounting.curve.method import CurveAccounting, guarantee_of
from temporaldp.accounting.curve.pair_method import PairCurveAccounting, affordable, checked_pairs
from temporaldp.accounting.exact.arrivals import Releases
from temporaldp.accounting.exact.method import ExactAccounting
from temporaldp.accounting.interval.method import IntervalAccounting
from temporaldp.accounting.metric.method import MetricAccounting
from temporaldp.accounting.paper.method import PaperAccounting
from temporaldp.accounting.protocol import (
    Accounting,
    AnyBound,
    Bound,
    DeltaBound,
    checked_bound,
    checked_delta_bound,
)
from temporaldp.correlation import Population
from temporaldp.correlation.adversary import exactly_known
from temporaldp.errors import BudgetError, InputError, StateError
from temporaldp.mechanisms.distances import box_of, checked_distances, largest_distance
from temporaldp.mechanisms.events import releases_of
from temporaldp.mechanisms.likelihood_box import LikelihoodBox
from temporaldp.mechanisms.protocol import Mechanisms
from temporaldp.values import LARGEST

FloatArray = NDArray[np.float64]
States: TypeAlias = tuple[str, ...] | None
Way: TypeAlias = tuple[Accounting[Any, Any], Any]
"""A way of accounting, and the releases as it keeps them."""

COARSER = 4
"""Times the grid of one curve is that of each pair, unless one is given: what that costs falls with its square."""

FOR_EVER = 1000
"""Steps of a supremum, for what is affordable: it ends where it settles."""


class Kind(NamedTuple):
    """What users have in common who are accounted for in one way.

    Parameters
    ----------
    states : tuple of str or None
        Where states do not matter, those of the first user.
    is_uncertain : bool
        Whether of their matrices only a set is known.
    """

    states: States
    is_uncertain: bool


def ways(
    population: Population,
    *,
    epsilons: ArrayLike | None,
    mechanisms: Sequence[Any] | None,
    delta: float | None,
    bound: AnyBound,
    metric: ArrayLike | None,
    discretization: float | None,
) -> Iterator[tuple[Accounting[Any, Any], Any, list[int]]]:
    """The way of accounting, the releases as it keeps them, and the numbers of the users who are accounted for like that.

    One way for everybody, but for users of whose matrices only a set is known, and for a metric with named rows, which is put
    in the order of each user's own states.
    """
    way_for: Callable[[Kind], Way]
    if isinstance(bound, Accounting):
        _require_nothing_else(metric, delta, discretization)
        _require_known(bound, population.is_uncertain)
        way_for = partial(_same, _own(bound, epsilons, mechanisms))
    elif delta is not None:
        _require_no_metric(metric)
        way_for = partial(
            _same, _curve(population, epsilons, mechanisms, delta, discretization, checked_delta_bound(bound))
        )
    elif mechanisms is not None:
        if epsilons is not None or metric is not None:
            raise InputError(
                "boxes say all that a release can: expected mechanisms without epsilons and without a metric"
            )
        way_for = partial(_boxes, _checked_boxes(mechanisms), checked_bound(bound))
    elif epsilons is not None:
        way_for = partial(_epsilons, budgets(epsilons), metric, checked_bound(bound))
    else:
        raise BudgetError("expected epsilons, one per step, or mechanisms; got neither")
    for kind, numbers in alike(population, by_states=metric is not None or mechanisms is not None):
        yield *way_for(kind), numbers


def alike(population: Population, *, by_states: bool) -> list[tuple[Kind, list[int]]]:
    """The numbers of the users who are accounted for in one way, for each such group."""
    groups: dict[Kind, list[int]] = {}
    for number, user in enumerate(population.users):
        groups.setdefault(Kind(user.states if by_states else None, user.is_uncertain), []).append(number)
    return list(groups.items())


def _require_known(way: Accounting[Any, Any], is_uncertain: bool) -> None:
    if is_uncertain and not way.takes_sets:
        raise InputError(
            f"the way of accounting {way.name!r} is about matrices that are known exactly, and of this adversary's only a set "
            "is (IntervalMatrix): leave out bound=, or give one whose numbers hold for every matrix of a set and that says so "
            "(takes_sets = True)"
        )


def _require_nothing_else(metric: ArrayLike | None, delta: float | None, discretization: float | None) -> None:
    if metric is not None or delta is not None or discretization is not None:
        raise InputError(
            "a way of accounting that is given as bound= says by itself what it needs: expected no metric, delta or "
            "discretization with it"
        )


def _own(way: Accounting[Any, Any], epsilons: ArrayLike | None, mechanisms: Sequence[Any] | None) -> Way:
    """A way that somebody made, and releases: epsilons, or whatever it keeps of them itself."""
    if (epsilons is None) == (mechanisms is None):
        raise BudgetError("expected either epsilons or mechanisms, one per step")
    return way, mechanisms if epsilons is None else way.of_epsilons(budgets(epsilons))


def _require_no_metric(metric: ArrayLike | None) -> None:
    if metric is not None:
        raise InputError("with a delta mechanisms say how they tell values apart: a metric does not apply")


def way_of_epsilons(
    bound: AnyBound, metric: ArrayLike | None, kind: Kind, *, online: bool = False
) -> Accounting[Any, Any]:
    """Exact where what a release can say is a box; else with one number for each pair of values, or one for all.

    Where only a set of matrices is known, a bound for all of them. A way of accounting that somebody made stays as it is.
    `online`, where releases come one after the other, the box of a metric is counted pair by pair, from above.

    Raises
    ------
    InputError
        No such bound, or the metric is none; `StateError` if it is for other states.
    """
    if isinstance(bound, Accounting):
        _require_nothing_else(metric, None, None)
        _require_known(bound, kind.is_uncertain)
        return bound
    chosen = checked_bound(bound)
    distances = checked_distances(metric, kind.states)
    if chosen == "paper":
        return PaperAccounting(largest_distance(distances))
    if kind.is_uncertain:
        return IntervalAccounting(largest_distance(distances))
    if distances is None:
        return ExactAccounting()
    box = None if online and (distances + np.eye(len(distances)) != 1.0).any() else box_of(distances)
    return MetricAccounting(distances) if box is None else ExactAccounting(box)


def _same(way: Way, _: Kind) -> Way:
    return way


def _epsilons(spent: FloatArray, metric: ArrayLike | None, bound: Bound, kind: Kind) -> Way:
    way = way_of_epsilons(bound, metric, kind)
    releases = way.of_epsilons(spent)
    most = float(way.promised(releases).max())
    if not most <= LARGEST:
        raise BudgetError(f"expected epsilons times distances up to {LARGEST:g}, got {most:g}")
    return way, releases


def _checked_boxes(mechanisms: Sequence[Any]) -> list[LikelihoodBox | None]:
    given = [mechanism for mechanism in mechanisms if mechanism is not None]
    other = next((one for one in given if not isinstance(one, LikelihoodBox)), None)
    if other is not None:
        raise BudgetError(
            f"{type(other).__name__} needs a delta, as in delta=1e-6: leakage is then the epsilon at that delta; without one, "
            "give epsilons, or a LikelihoodBox for each step"
        )
    if not given:
        raise BudgetError("expected at least one step with a LikelihoodBox, got none")
    return list(mechanisms)


def _boxes(boxes: list[LikelihoodBox | None], bound: Bound, kind: Kind) -> Way:
    n_values = next(len(box.low) for box in boxes if box is not None) if kind.states is None else len(kind.states)
    for step, box in enumerate(boxes):
        if box is not None and len(box.low) != n_values:
            raise StateError(
                f"mechanisms[{step}] is a box of {len(box.low)} values, and the correlation has {n_values} states"
            )
    releases = Releases.of_boxes(boxes, n_values)
    if bound == "paper":
        return PaperAccounting(), releases.width
    return (IntervalAccounting(), releases.width) if kind.is_uncertain else (ExactAccounting(), releases)


def _curve(
    population: Population,
    epsilons: ArrayLike | None,
    mechanisms: Sequence[Any] | None,
    delta: float,
    discretization: float | None,
    bound: DeltaBound,
) -> Way:
    """Pair by pair where that is asked for, or affordable and nothing else is; else one curve."""
    if (epsilons is None) == (mechanisms is None):
        raise BudgetError("expected either epsilons or mechanisms, one per step")
    level = checked_delta(delta)
    if epsilons is not None:
        releases = tuple(guarantee_of(epsilon) for epsilon in budgets(epsilons).tolist())
    else:
        assert mechanisms is not None
        releases = releases_of(mechanisms)
    one = CurveAccounting(level, chosen_discretization(releases, level, discretization))
    coarser = one.discretization if discretization is not None else min(COARSER * one.discretization, COARSEST)
    if bound == "pair_curve":
        checked_pairs(level)
        for matrix in (one for user in population.users for one in user.matrices):
            exactly_known(matrix)
    steps = len(releases) - 1 or FOR_EVER
    if bound == "pair_curve" or (
        bound == "exact" and affordable(population.users, releases, coarser, level, steps=steps)
    ):
        return PairCurveAccounting(one, max(coarser, one.discretization)), releases
    return one, releases


def budgets(epsilons: ArrayLike, *, n_steps: int | None = None) -> FloatArray:
    """`epsilons` as a checked, non-empty vector of finite numbers >= 0; with `n_steps`, one number may stand for all."""
    try:
        spent = np.array(epsilons, dtype=np.float64)
    except (TypeError, ValueError):
        raise BudgetError(f"expected epsilons to be a sequence of numbers, one per step, got {epsilons!r}") from None
    if spent.ndim == 0 and n_steps is not None:
        spent = np.full(n_steps, spent)
    if spent.ndim == 0:
        raise BudgetError(
            f"expected epsilons to be a sequence, one per step, got the number {spent:g}, which does not say how many steps "
            f"there are; for 10 equal steps write epsilons=[{spent:g}] * 10, and for any number of them "
            f"leakage_supremum(adversary, epsilon={spent:g})"
        )
    if spent.ndim != 1 or spent.size == 0:
        raise BudgetError(f"expected epsilons of shape (T,), one per step and at least one, got shape {spent.shape}")
    bad = np.flatnonzero(~((spent >= 0.0) & (spent <= LARGEST)))
    if bad.size:
        raise BudgetError(f"expected epsilons from 0 to {LARGEST:g}, got epsilons[{bad[0]}] = {spent[bad[0]]}")
    return spent


def online_ways(
    population: Population,
    first: Sequence[Mechanisms | None],
    *,
    bound: AnyBound,
    metric: ArrayLike | None,
    delta: float | None,
    discretization: float | None,
) -> list[tuple[Accounting[Any, Any], list[int]]]:
    """The way of accounting for releases that come one after the other, and the numbers of the users who are counted by it.

    At a delta the `first` release chooses the grid. A metric with named rows needs a way for each order of states, a set of
    matrices one of its own.
    """
    if isinstance(bound, Accounting):
        _require_nothing_else(metric, delta, discretization)
    elif delta is not None:
        _require_no_metric(metric)
        if checked_delta_bound(bound) == "pair_curve":
            raise InputError(
                "an accountant with a delta counts by one curve: at every step it looks at all earlier ones again, for which a "
                "curve for each pair takes too long; call temporal_leakage with the mechanisms so far"
            )
        level = checked_delta(delta)
        known = [release for release in first if release is not None]
        way = CurveAccounting(level, chosen_discretization(known, level, discretization))
        return [(way, list(range(len(population))))]
    return [
        (way_of_epsilons(bound, metric, kind, online=True), numbers)
        for kind, numbers in alike(population, by_states=metric is not None)
    ]
