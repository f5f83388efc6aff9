"""`temporaldp report`: one page for whoever signs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
import typer

from temporaldp import (
    BudgetPlan,
    InputError,
    LeakageSeries,
    LeakageSupremum,
    ReleasedHistograms,
    leakage_supremum,
    load_plan,
    load_released,
    temporal_leakage,
)
from temporaldp.cli import options as o
from temporaldp.cli.inputs import Inputs, absences, gather
from temporaldp.cli.render import console, warn, working
from temporaldp.correlation.states import require_same_states
from temporaldp.files.atomic import require_writable
from temporaldp.planning.noise import histogram_noise, planned_discretization
from temporaldp.report import Evidence, write_report
from temporaldp.values import positive


@o.grouped
def report(
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the page (.html).", show_default=False)
    ],
    traces: o.TracesArgument = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="What each step promises, in nats.", show_default=False)
    ] = None,
    plan: Annotated[Path | None, typer.Option("--plan", help="Budget plan to report on.", show_default=False)] = None,
    released: Annotated[
        Path | None, typer.Option("--released", help="Released histograms to show.", show_default=False)
    ] = None,
    true_counts: Annotated[
        bool,
        typer.Option("--true-counts", help="Show the true counts beside the released ones: for internal use only."),
    ] = False,
    name_users: Annotated[
        bool, typer.Option("--name-users", help="With --per-user: name the person who is leaked about most.")
    ] = False,
    horizon: o.HorizonOption = None,
    bound: o.BoundOption = o.Bounds.EXACT,
    title: Annotated[str, typer.Option("--title", help="Heading of the page.")] = "Temporal privacy leakage report",
) -> None:
    """Write one self-contained HTML page: the guarantee in words, reasons, assumptions, figures, numbers.

    Report on a constant promise (--epsilon), on a plan (--plan), or on what was released (--plan and --released).
    """
    if (epsilon is None) == (plan is None):
        raise InputError("expected one of --epsilon (a constant promise) and --plan (planned budgets)")
    if true_counts and (traces is None or released is None):
        raise InputError("--true-counts shows TRACES against --released: give both")
    require_writable(output, reads=(traces, plan, released, *known.files))
    budget = None if plan is None else load_plan(plan)
    _require_bound(bound, budget)
    inputs = gather(traces, reading, known, None if budget is None else budget.states)
    shown = None if released is None else load_released(released)
    if shown is not None and inputs.states is not None:
        shown = shown.reordered(inputs.states)
    n_steps = _reported_steps(horizon, shown, budget, inputs)
    if budget is not None and budget.states is not None and inputs.states is not None:
        require_same_states(budget.states, inputs.states, what="this report's correlation")
    if shown is not None and inputs.trajectories is not None and shown.times != inputs.trajectories.times:
        raise InputError("the times of the released histograms are not those of TRACES, or stand in another order")
    with working("accounting"):
        if budget is not None and budget.delta:
            leakage, limits = _with_delta(inputs, budget, n_steps)
        else:
            leakage, limits = _pure(inputs, budget, epsilon, n_steps, bound)
        exact = leakage.bound == "exact"
        paper, paper_limits = _pure(inputs, budget, epsilon, n_steps, o.Bounds.PAPER) if exact else (None, None)
        evidence = Evidence(
            adversaries=inputs.adversaries,
            leakage=leakage,
            provenance=inputs.provenance,
            times=inputs.times(n_steps) if shown is None else shown.times,
            supremum=limits,
            plan=budget,
            released=shown,
            true_counts=inputs.trajectories.histogram() if true_counts and inputs.trajectories is not None else None,
            n_users=None if inputs.trajectories is None else inputs.trajectories.n_users,
            name_users=name_users,
            paper=paper,
            paper_supremum=paper_limits,
        )
    with working("drawing", writes=True):
        write_report(evidence, output, title=title)
    for sentence in (*evidence.warnings, absences(inputs.trajectories)):
        warn(sentence)
    if evidence.internal:
        warn("the page is marked as internal: " + " ".join(evidence.internal))
    console.print(f"report written to {output}", soft_wrap=True, markup=False)
    if evidence.level_held is False:
        warn("the plan's level is not held against this report's adversary; the page says so")
        raise typer.Exit(3)


Accounted: TypeAlias = tuple[LeakageSeries, LeakageSupremum | None]


def _require_bound(bound: o.Bounds, budget: BudgetPlan | None) -> None:
    if bound is o.Bounds.PAPER and budget is not None and budget.bound != "paper":
        held = f"at delta {budget.delta:g}" if budget.delta else "by the exact leakage"
        raise InputError(
            f"the plan holds alpha {held}, and the paper's bound says nothing about that: leave out --bound paper, or plan "
            "with --bound paper"
        )


def _pure(inputs: Inputs, budget: BudgetPlan | None, epsilon: float | None, n_steps: int, bound: o.Bounds) -> Accounted:
    if budget is None:
        assert epsilon is not None
        spent = np.full(n_steps, positive(epsilon, "--epsilon"))
    else:
        spent = budget.budgets(n_steps)
    leakage = temporal_leakage(inputs.everyone, epsilons=spent, bound=bound.value)
    if budget is not None and budget.horizon is not None:
        return leakage, None
    return leakage, leakage_supremum(inputs.everyone, epsilon=float(spent[0]), bound=bound.value)


def _with_delta(inputs: Inputs, budget: BudgetPlan, n_steps: int) -> Accounted:
    """On the grid on which the plan was held."""
    assert budget.mechanism is not None
    noise = [histogram_noise(budget.mechanism, scale) for scale in budget.noise_scales(n_steps).tolist()]
    delta, grid = budget.delta, planned_discretization(budget.alpha)
    leakage = temporal_leakage(inputs.everyone, mechanisms=noise, delta=delta, discretization=grid)
    if budget.horizon is not None:
        return leakage, None
    return leakage, leakage_supremum(inputs.everyone, mechanism=noise[0], delta=delta, discretization=grid)


def _reported_steps(
    horizon: int | None, shown: ReleasedHistograms | None, budget: BudgetPlan | None, inputs: Inputs
) -> int:
    """The steps that are asked for, else those that were released, else all that are planned, else those in the data.

    A plan counts before the data: steps to come raise the leakage of those that were, and a report must not leave them out.
    """
    if horizon is None and shown is not None:
        return len(shown.times)
    planned = None if budget is None else budget.horizon
    return inputs.n_steps(planned if horizon is None else horizon)
