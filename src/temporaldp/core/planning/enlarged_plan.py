"""Budgets that satisfy a level by any accounting method: those of another method, times the largest factor that satisfies it.

For sets of matrices, metric privacy, and accounting methods that a user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from temporaldp.base.errors import PlanError
from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.exact.method import Exact
from temporaldp.core.accounting.monotone_search import LEAST_SHARE, largest_in_few_tries
from temporaldp.core.accounting.paper.method import PaperBound
from temporaldp.core.correlation import Adversary, Population
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.core.planning.budget_plan import BudgetPlan
from temporaldp.core.planning.exact_plan import exact_plan, mean_noise
from temporaldp.core.planning.optimal import Measure
from temporaldp.core.planning.paper_plan import paper_plan
from temporaldp.core.planning.plan import Method
from temporaldp.core.planning.request import Request
from temporaldp.core.planning.within_level import plan_within_level


def enlarged_plan(request: Request, method: Method, by: Measure | None) -> BudgetPlan:
    """The plan of a method for a known horizon; with a measure, the better of the shapes by paper and by exact leakage.

    Every candidate satisfies the level by the request's own accounting method; none is proved to be optimal.
    """
    unit = request.most_promised
    found = [_scaled(request, shape / unit) for shape in _shapes(request, method, by)]
    error = by.error if by is not None else mean_noise
    return plan_within_level(request, min(found, key=error), method, by=by)


def _shapes(request: Request, method: Method, by: Measure | None) -> Iterator[FloatArray]:
    """Budgets for one matrix without a metric, which say how much each step should have."""
    assert request.horizon is not None
    with suppress(PlanError):
        yield paper_plan(request.by(PaperBound()), method, by).epsilons
    with suppress(PlanError):
        yield exact_plan(_central(request).by(Exact()), method, by).epsilons
    if by is None or (by.weights > 0.0).all():
        yield np.full(request.horizon, request.alpha / request.horizon)


def _scaled(request: Request, shape: FloatArray) -> FloatArray:
    """The shape, times nearly the largest factor that satisfies slightly less than the level."""
    unit, ceiling = request.most_promised, request.alpha * (1.0 - 2.0 * request.plan_margin)

    def worst(factor: float) -> float:
        return request.series(factor * shape).worst

    # No step leaks more than all releases together promise. A method that a user wrote may count more.
    least = min(1.0, ceiling / (unit * float(shape.sum())))
    while worst(least) > ceiling:
        least *= 0.5
        if least * float(shape.max()) < LEAST_SHARE * request.alpha / unit:
            raise request.nothing_lasts()
    return shape * largest_in_few_tries(worst, least, ceiling / (unit * float(shape.max())), ceiling)


def _central(request: Request) -> Request:
    """The same request if the matrices at the centres of the sets were known."""

    def central(known: Correlation) -> Correlation:
        return known.mapped(lambda matrix: matrix.central())

    users = tuple(Adversary(*map(central, user.directions)) for user in request.users)
    return replace(request, population=Population(users, request.population.names))
