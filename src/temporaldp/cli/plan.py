"""`temporaldp plan`: how much may each step spend?"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from temporaldp import BudgetError, BudgetPlan, InputError, LeakageSeries, compare_plans, plan_budget, save_plan
from temporaldp.cli import options as o
from temporaldp.cli.inputs import Inputs, absences, gather
from temporaldp.cli.render import console, facts, say_json, steps_table, warn, working
from temporaldp.files.atomic import require_writable
from temporaldp.files.plans import plan_document
from temporaldp.planning.plan import Method
from temporaldp.release.histogram import laplace_scales, mean_absolute_noise, planned_noise
from temporaldp.report.figures import comparison_figure
from temporaldp.report.style import figure_suffix, save_figure
from temporaldp.report.words import number, span, steps
from temporaldp.values import positive


class ObjectiveOption(StrEnum):
    """What the optimal plan minimises."""

    MEAN_ABSOLUTE_ERROR = "mean_absolute_error"
    MEAN_SQUARED_ERROR = "mean_squared_error"


class MethodOption(StrEnum):
    """How budgets are chosen."""

    OPTIMAL = "optimal"
    UPPER_BOUND = "upper_bound"
    QUANTIFIED = "quantified"
    UNIFORM = "uniform"


@o.grouped
def plan(
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    alpha: Annotated[float, typer.Option("--alpha", help="Level to hold at every step, in nats.", show_default=False)],
    traces: o.TracesArgument = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            "--horizon", metavar="T", help="Number of steps; without it the plan holds for ever.", show_default=False
        ),
    ] = None,
    method: Annotated[
        MethodOption | None,
        typer.Option(
            "--method",
            help="optimal: little noise for T steps (default with --horizon), with a certificate under --bound paper. "
            "upper_bound: one budget, any horizon (default without). quantified: the paper's Algorithm 3. uniform: alpha / T.",
            show_default=False,
        ),
    ] = None,
    objective: Annotated[
        ObjectiveOption, typer.Option("--objective", help="What the optimal plan minimises.")
    ] = ObjectiveOption.MEAN_ABSOLUTE_ERROR,
    bound: o.BoundOption = o.Bounds.EXACT,
    delta: o.DeltaOption = None,
    mechanism: o.MechanismOption = None,
    compare: Annotated[bool, typer.Option("--compare", help="Print every method's plan side by side.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Draw the budgets of every method (.png or .svg).", show_default=False),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the plan (JSON).", show_default=False)
    ] = None,
    all_steps: Annotated[bool, typer.Option("--all", help="Show every step in the table.")] = False,
    as_json: o.JsonOption = False,
) -> None:
    """Choose budgets so that no step leaks more than alpha, whatever is released before and after it."""
    level = positive(alpha, "--alpha")
    _require_comparable(compare or figure is not None, horizon, delta)
    if delta is None and mechanism is not None:
        raise BudgetError("--mechanism is planned for a delta: give --delta D, such as 1e-6")
    if delta is not None and bound is o.Bounds.PAPER:
        raise InputError("--bound paper is about delta = 0: with --delta there is one way to account")
    for place in (output, figure):
        if place is not None:
            require_writable(place, reads=(traces, *known.files))
    if figure is not None:
        figure_suffix(figure)
    inputs = gather(traces, reading, known)
    chosen: Method | None = None if method is None else method.value
    plans: dict[Method, BudgetPlan] = {}
    with working("planning"):
        if horizon is not None and (compare or figure is not None):
            plans = compare_plans(
                inputs.everyone, alpha=level, horizon=horizon, objective=objective.value, bound=bound.value
            )
        wanted: Method = chosen or "optimal"
        made = (
            plans[wanted]
            if wanted in plans
            else plan_budget(
                inputs.everyone,
                alpha=level,
                horizon=horizon,
                method=chosen,
                objective=objective.value,
                bound=bound.value,
                delta=delta,
                mechanism=None if mechanism is None else mechanism.value,
            )
        )
    made = dataclasses.replace(
        made,
        provenance=inputs.provenance.sentence,
        warning=inputs.provenance.warning,
        states=inputs.states,
        step=inputs.step,
    )
    warn(inputs.provenance.warning)
    warn(absences(inputs.trajectories))
    if output is not None:
        save_plan(made, output)
    if figure is not None and horizon is not None:
        save_figure(comparison_figure(plans, inputs.times(horizon)), figure)
    if as_json:
        noise = planned_noise(made)
        compared = {"comparison": [_row(plan) for plan in plans.values()]} if plans else {}
        say_json(plan_document(made) | {"mean_absolute_noise": noise} | compared)
        return
    show_plan(inputs, made, all_steps=all_steps)
    if compare:
        show_comparison(plans)
    for what, place in (("plan", output), ("figure", figure)):
        if place is not None:
            console.print(f"{what} written to {place}", soft_wrap=True, markup=False)


def _require_comparable(compared: bool, horizon: int | None, delta: float | None) -> None:
    if compared and horizon is None:
        raise BudgetError("--compare and --figure need --horizon T: without one there is only one method")
    if compared and delta is not None:
        raise BudgetError("--compare and --figure are about budgets with delta = 0: leave out --delta, or them")


def _row(plan: BudgetPlan) -> dict[str, Any]:
    """What one method costs and leaks."""
    return {
        "method": plan.method,
        "bound": plan.bound,
        "mean_absolute_noise": planned_noise(plan),
        "mean_inverse_epsilon": float(np.mean(1.0 / plan.epsilons)),
        "smallest_epsilon": float(plan.epsilons.min()),
        "largest_epsilon": float(plan.epsilons.max()),
        "worst_leakage": plan.leakage.worst,
    }


def show_comparison(plans: Mapping[Method, BudgetPlan]) -> None:
    """Every method side by side, for people."""
    table = Table(title="All methods side by side", title_justify="left", title_style="bold")
    table.add_column("method")
    for name in ("noise per count", "least budget", "largest", "worst leakage"):
        table.add_column(name, justify="right")
    for plan in plans.values():
        row = _row(plan)
        budgets = [number(row[name], down=True) for name in ("smallest_epsilon", "largest_epsilon")]
        noise = number(row["mean_absolute_noise"])
        table.add_row(plan.method, noise, *budgets, number(row["worst_leakage"], up=True))
    console.print(table)
    if lacking := [method for method in ("upper_bound", "quantified") if method not in plans]:
        console.print(
            f"No positive budget holds alpha for ever, so there is no plan by {' or '.join(lacking)}.", style="dim"
        )


def show_plan(inputs: Inputs, made: BudgetPlan, *, all_steps: bool = False) -> None:
    """The plan for people."""
    first, middle, last = (number(float(made.epsilons[k]), down=True) for k in (0, len(made.epsilons) // 2, -1))
    spent = f"{first} at every step"
    if not (made.epsilons == made.epsilons[0]).all():
        between = "" if len(made.epsilons) < 3 else f"{middle} in the middle, "
        spent = f"{first} first, {between}{last} last"
    how = [("method", made.method + (", by the paper's upper bound" if made.bound == "paper" else ""))]
    if made.scales is not None:
        how = [
            ("noise", f"discrete {str(made.mechanism).capitalize()}, scale {span(made.scales)} counts"),
            ("delta", f"{made.delta:g}: budgets and leakage are the epsilon at this delta"),
        ]
    rows = [
        ("correlation", inputs.provenance.sentence),
        *how,
        ("horizon", "any number of steps" if made.horizon is None else steps(made.horizon)),
        ("budgets", spent),
        (
            f"leakage, at worst ({'exact' if made.bound == 'exact' else 'upper bound'})",
            f"{number(made.leakage.worst, up=True)} of {made.alpha:g}",
        ),
        ("mean absolute noise per count", f"{planned_noise(made):.4g}"),
    ]
    if made.error is not None:
        rows.insert(3, ("certificate", _certificate(made.error, made.error_bound, made.objective)))
    level = f"alpha = {made.alpha:g}" + (f", delta = {made.delta:g}" if made.delta else "")
    facts(f"{'Noise' if made.delta else 'Budget'} plan for {level} (nats, replace one person's value)", rows)
    if made.horizon is None:
        return
    if isinstance(made.leakage, LeakageSeries):
        steps_table(made.leakage, inputs.times(made.horizon), every_row=all_steps, granted=True)
    naive = mean_absolute_noise(laplace_scales([made.alpha / made.horizon]))
    if made.method not in {"uniform", "optimal", "calibrated"} and naive < planned_noise(made):
        warn(
            f"alpha / T at every step has less noise here ({naive:.4g} per count on average) and holds the same level: "
            "try --method optimal, which is never worse than either"
        )


def _certificate(error: float, error_bound: float | None, objective: str | None) -> str:
    """How much less noise another plan can have at most; a share above 100 % would say nothing."""
    short = math.inf if error_bound is None or error_bound <= 0.0 else error / error_bound - 1.0
    if short > 1.0:
        return "not certified: the least noise that was found, not proven least"
    return f"no plan has less noise by more than {number(100.0 * max(short, 0.0), up=True)} % ({objective})"
