"""Budgets that satisfy a level by any accounting method: those of another method, times the largest factor that satisfies it.

For sets of matrices, longer memory, several models, metric privacy, and accounting methods that a user wrote.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np

from temporaldp.base.errors import PlanError
from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.exact.method import Exact
from temporaldp.core.accounting.monotone_search import LEAST_SHARE, largest_in_few_tries
from temporaldp.core.accounting.paper.method import PaperBound
from temporaldp.core.correlation import Adversary, Population
from temporaldp.core.planning.budget_plan import BudgetPlan
from temporaldp.core.planning.exact_plan import exact_shape, mean_noise
from temporaldp.core.planning.optimal import Measure
from temporaldp.core.planning.paper_plan import paper_plan
from temporaldp.core.planning.plan import Method
from temporaldp.core.planning.request import Request
from temporaldp.core.planning.within_level import plan_within_level


def enlarged_plan(request: Request, method: Method, by: Measure | None) -> BudgetPlan:
    """The plan of a method for a known horizon; with a measure, the better of the shapes by paper and by exact leakage.

    Every candidate satisfies the level by the request's own accounting method; none is proved to be optimal.
    """
    unit, best = request.most_promised, None
    error = by.error if by is not None else mean_noise
    for shape in (one / unit for one in _shapes(request, method, by)):
        if best is None or not _leaks_more(request, shape, error, error(best)):
            made = _scaled(request, shape)
            best = made if best is None else min(best, made, key=error)
    assert best is not None  # the last shape needs no plan
    return plan_within_level(request, best, method, by=by)


def _leaks_more(request: Request, shape: FloatArray, error: Callable[[FloatArray], float], known: float) -> bool:
    """Whether the shape exceeds the level before its error is 0.3 % below a known one: so it is hardly a better plan."""
    power = math.log2(error(shape) / error(2.0 * shape))
    factor = (error(shape) / (known * (1.0 - 3e-3))) ** (1.0 / power)
    return any(_of_users(request, one).series(factor * shape).worst > request.alpha for one in _cheapest_first(request))


def _cheapest_first(request: Request) -> list[list[int]]:
    """Users in groups that are accounted for together; those with a longer memory, whose leakage takes longest, come last."""
    users = range(len(request.users))
    lifted = [k for k in users if request.users[k].is_lifted]
    together = [k for k in users if k not in lifted]
    return [*([together] if together else []), *([k] for k in lifted)]


def _shapes(request: Request, method: Method, by: Measure | None) -> Iterator[FloatArray]:
    """Budgets for one matrix without a metric, which say how much each step should have."""
    assert request.horizon is not None
    plain = _plain(request)
    # Closer shapes do no better for longer memory, whose leakage has another shape
    close = 0.03 if any(user.is_lifted for user in request.users) else 1e-4
    with suppress(PlanError):
        yield exact_shape(plain.by(Exact()), method, by, close)
    with suppress(PlanError):
        yield paper_plan(plain.by(PaperBound()), method, by).epsilons
    if by is None or (by.weights > 0.0).all():
        yield np.full(request.horizon, request.alpha / request.horizon)


def _scaled(request: Request, shape: FloatArray) -> FloatArray:
    """The shape, times nearly the largest factor that satisfies slightly less than the level for every user.

    Only users who exceed the level at the factor found so far limit it further.
    """
    ceiling, factor = request.alpha * (1.0 - 2.0 * request.plan_margin), 1.0
    for number, group in enumerate(_cheapest_first(request)):
        if number == 0 and _of_users(request, group).series(shape).worst < ceiling * (1.0 - 1e-3):
            factor = ceiling / (request.most_promised * float(shape.max()))
        while group:
            found = _of_users(request, group).series(factor * shape)
            leaked = [one.worst for one in found.members or (found,)]
            worst = int(np.argmax(leaked))
            if leaked[worst] <= ceiling:
                break
            limiting = group.pop(worst)
            factor = _largest_factor(_of_users(request, [limiting]), shape, factor, leaked[worst], ceiling)
    return factor * shape


def _largest_factor(request: Request, shape: FloatArray, high: float, leaked: float, ceiling: float) -> float:
    """Nearly the largest factor with which the shape leaks at most the ceiling, below `high`, with which it `leaked` more."""

    @cache
    def worst(factor: float) -> float:
        return request.series(factor * shape).worst

    # Leakage grows at least in proportion to budgets, and no step leaks more than all releases together promise. A method that
    # a user wrote may count otherwise.
    least = min(high, max(high * ceiling / leaked, ceiling / (request.most_promised * float(shape.sum()))))
    while not (found := largest_in_few_tries(worst, least, high, ceiling, at_high=leaked, assumed=True)):
        least, high, leaked = 0.5 * least, least, worst(least)
        if least * float(shape.max()) < LEAST_SHARE * request.alpha / request.most_promised:
            raise request.nothing_lasts()
    return found


def _of_users(request: Request, chosen: Sequence[int]) -> Request:
    """Return a request with the same level, horizon and method about the chosen users."""
    names, users = request.population.names, request.users
    return replace(request, population=Population(tuple(users[k] for k in chosen), tuple(names[k] for k in chosen)))


def _plain(request: Request) -> Request:
    """Return a request about one known first-order matrix per direction: the centre of a set, or transitions of shown states.

    Chains with a longer memory count only where there is no other user.
    """
    few = [k for k, user in enumerate(request.users) if not user.is_lifted] or range(len(request.users))
    chosen = _of_users(request, few)

    def central(user: Adversary) -> Adversary:
        shown = user.shown
        return Adversary(*(known.mapped(lambda matrix: matrix.central()) for known in shown.directions))

    users = tuple(central(user) for user in chosen.users)
    return replace(chosen, population=Population(users, chosen.population.names))
