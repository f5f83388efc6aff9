"""Which way of accounting a question asks for, and what that way keeps of each release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.curve import CurveAccounting, guarantee_of
from temporaldp.accounting.curves import Release, checked_delta, chosen_discretization
from temporaldp.accounting.distances import box_of, checked_distances, largest_distance
from temporaldp.accounting.events import releases_of
from temporaldp.accounting.exact import ExactAccounting
from temporaldp.accounting.exact_arrivals import Releases
from temporaldp.accounting.likelihood_box import LikelihoodBox
from temporaldp.accounting.metric import MetricAccounting
from temporaldp.accounting.paper import PaperAccounting
from temporaldp.accounting.protocol import Accounting, Bound, checked_bound
from temporaldp.correlation import Population
from temporaldp.errors import BudgetError, InputError, StateError
from temporaldp.leakage.profile import LARGEST

FloatArray = NDArray[np.float64]
States: TypeAlias = tuple[str, ...] | None
Way: TypeAlias = tuple[Accounting[Any, Any], Any]
"""A way of accounting, and the releases as it keeps them."""


def ways(
    population: Population,
    *,
    epsilons: ArrayLike | None,
    mechanisms: Sequence[Any] | None,
    delta: float | None,
    bound: Bound,
    metric: ArrayLike | None,
    discretization: float | None,
) -> Iterator[tuple[Accounting[Any, Any], Any, list[int]]]:
    """The way of accounting, the releases as it keeps them, and the numbers of the users who are accounted for like that.

    One way for everybody, but for a metric with named rows, which is put in the order of each user's own states.
    """
    chosen = checked_bound(bound)
    way_for: Callable[[States], Way]
    if delta is not None:
        _require_one_curve(chosen, metric)
        way = _curve(epsilons, mechanisms, delta, discretization)
        way_for = partial(_same, way)
    elif mechanisms is not None:
        if epsilons is not None or metric is not None:
            raise InputError(
                "boxes say all that a release can: expected mechanisms without epsilons and without a metric"
            )
        boxes = _checked_boxes(mechanisms)
        way_for = partial(_boxes, boxes, chosen)
    elif epsilons is not None:
        spent = budgets(epsilons)
        way_for = partial(_epsilons, spent, metric, chosen)
    else:
        raise BudgetError("expected epsilons, one per step, or mechanisms; got neither")
    groups: dict[States, list[int]] = {}
    for number, user in enumerate(population.users):
        groups.setdefault(user.states if metric is not None or mechanisms is not None else None, []).append(number)
    for states, numbers in groups.items():
        yield *way_for(states), numbers


def _require_one_curve(bound: Bound, metric: ArrayLike | None) -> None:
    if checked_bound(bound) == "paper" or metric is not None:
        raise InputError(
            "with a delta there is one curve for all pairs of values: neither bound='paper' nor a metric applies"
        )


def way_of_epsilons(bound: Bound, metric: ArrayLike | None, states: States) -> Accounting[Any, Any]:
    """Exact where what a release can say is a box; else with one number for each pair of values, or one for all.

    Raises
    ------
    InputError
        No such bound, or the metric is none; `StateError` if it is for other states.
    """
    chosen = checked_bound(bound)
    distances = checked_distances(metric, states)
    if chosen == "paper":
        return PaperAccounting(largest_distance(distances))
    if distances is None:
        return ExactAccounting()
    box = box_of(distances)
    return MetricAccounting(distances) if box is None else ExactAccounting(box)


def _same(way: Way, _: States) -> Way:
    return way


def _epsilons(spent: FloatArray, metric: ArrayLike | None, bound: Bound, states: States) -> Way:
    way = way_of_epsilons(bound, metric, states)
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


def _boxes(boxes: list[LikelihoodBox | None], bound: Bound, states: States) -> Way:
    n_values = next(len(box.low) for box in boxes if box is not None) if states is None else len(states)
    for step, box in enumerate(boxes):
        if box is not None and len(box.low) != n_values:
            raise StateError(f"the box of step {step} has {len(box.low)} values, the correlation has {n_values} states")
    releases = Releases.of_boxes(boxes, n_values)
    return (PaperAccounting(), releases.width) if bound == "paper" else (ExactAccounting(), releases)


def _curve(
    epsilons: ArrayLike | None, mechanisms: Sequence[Any] | None, delta: float, discretization: float | None
) -> Way:
    if (epsilons is None) == (mechanisms is None):
        raise BudgetError("expected either epsilons or mechanisms, one per step")
    level = checked_delta(delta)
    if epsilons is not None:
        releases = tuple(guarantee_of(epsilon) for epsilon in budgets(epsilons).tolist())
    else:
        assert mechanisms is not None
        releases = releases_of(mechanisms)
    return CurveAccounting(level, chosen_discretization(releases, level, discretization)), releases


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


def online_way(
    states: States,
    first: Sequence[Release | None],
    *,
    bound: Bound,
    metric: ArrayLike | None,
    delta: float | None,
    discretization: float | None,
) -> Accounting[Any, Any]:
    """The way of accounting for releases that come one after the other; at a delta the `first` of them chooses the grid."""
    if delta is None:
        return way_of_epsilons(bound, metric, states)
    _require_one_curve(bound, metric)
    level = checked_delta(delta)
    known = [release for release in first if release is not None]
    return CurveAccounting(level, chosen_discretization(known, level, discretization))
