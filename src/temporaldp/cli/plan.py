"""`temporaldp plan`: how much may each step spend?"""

from __future__ import annotations

import dataclasses
import math
from enum import StrEnum
from functools import singledispatch
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from temporaldp import (
    BudgetError,
    BudgetPlan,
    InputError,
    LeakageSeries,
    NoisePlan,
    Optimality,
    PlanComparison,
    compare_plans,
    plan_budget,
    plan_noise,
    save_plan,
)
from temporaldp.cli import options as o
from temporaldp.cli.inputs import Inputs, absences, gather
from temporaldp.cli.render import console, facts, say_json, steps_table, warn, working
from temporaldp.files.atomic import require_writable
from temporaldp.files.plans import plan_document
from temporaldp.planning import Plan
from temporaldp.planning.histogram_noise import Noise, laplace_scales, mean_absolute_noise
from temporaldp.planning.plan import Method
from temporaldp.report.figures import comparison_figure
from temporaldp.report.style import figure_suffix, save_figure
from temporaldp.report.words import number, steps
from temporaldp.values import positive

SAME = 1e-9
"""Relative difference of noise below which two plans have as much."""


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
    compared = compare or figure is not None
    _require_together(compared, horizon, delta, mechanism)
    if delta is not None:
        _require_noise_alone(compared, method, objective, bound)
    for place in (output, figure):
        if place is not None:
            require_writable(place, reads=(traces, *known.files))
    if figure is not None:
        figure_suffix(figure)
    inputs = gather(traces, reading, known)
    everyone, comparison = inputs.everyone, PlanComparison({}, {})
    chosen: Method | None = None if method is None else method.value
    with working("planning"):
        if delta is not None:
            made: Plan = plan_noise(everyone, alpha=level, delta=delta, noise=_noise(mechanism), horizon=horizon)
        else:
            how: dict[str, Any] = {
                "alpha": level,
                "horizon": horizon,
                "objective": objective.value,
                "bound": bound.value,
            }
            comparison = compare_plans(everyone, **how) if compared else comparison
            made = comparison.plans.get(chosen or "optimal") or plan_budget(everyone, method=chosen, **how)
    made = dataclasses.replace(made, source=inputs.source)
    warn(made.source.warning)
    warn(absences(inputs.trajectories))
    if output is not None:
        save_plan(made, output)
    if figure is not None and horizon is not None:
        save_figure(comparison_figure(comparison.plans, inputs.times(horizon)), figure)
    if as_json:
        say_json(plan_document(made) | {"mean_absolute_noise": made.mean_absolute_noise} | _comparison(comparison))
        return
    show_plan(inputs, made, all_steps=all_steps)
    if compare:
        show_comparison(comparison)
    _say_written(plan=output, figure=figure)


def _say_written(**places: Path | None) -> None:
    for what, place in places.items():
        if place is not None:
            console.print(f"{what} written to {place}", soft_wrap=True, markup=False)


def _noise(mechanism: o.Noises | None) -> Noise:
    return "laplace" if mechanism is o.Noises.LAPLACE else "gaussian"


def _require_together(compared: bool, horizon: int | None, delta: float | None, mechanism: o.Noises | None) -> None:
    """Options that say nothing without another one are refused."""
    if compared and horizon is None:
        raise BudgetError("--compare and --figure need --horizon T: without one there is only one method")
    if delta is None and mechanism is not None:
        raise BudgetError("--mechanism is planned for a delta: give --delta D, such as 1e-6")


def _require_noise_alone(
    compared: bool, method: MethodOption | None, objective: ObjectiveOption, bound: o.Bounds
) -> None:
    """With --delta, options that choose budgets are refused."""
    if compared:
        raise BudgetError("--compare and --figure are about budgets with delta = 0: leave out --delta, or them")
    if method is not None or objective is not ObjectiveOption.MEAN_ABSOLUTE_ERROR:
        raise BudgetError(
            "--method and --objective are about budgets with delta = 0: with --delta the least noise is planned; leave out "
            "--delta, or them"
        )
    if bound is o.Bounds.PAPER:
        raise InputError("--bound paper is about delta = 0: with --delta there is one way to account")


def _comparison(found: PlanComparison) -> dict[str, Any]:
    if not found.plans:
        return {}
    refusals = {method: str(error) for method, error in found.refusals.items()}
    return {"comparison": [_row(plan) for plan in found.plans.values()], "without_plan": refusals}


def _row(plan: BudgetPlan) -> dict[str, Any]:
    """What one method costs and leaks."""
    return {
        "method": plan.method,
        "bound": plan.bound,
        "mean_absolute_noise": plan.mean_absolute_noise,
        "mean_inverse_epsilon": float(np.mean(1.0 / plan.epsilons)),
        "smallest_epsilon": float(plan.epsilons.min()),
        "largest_epsilon": float(plan.epsilons.max()),
        "worst_leakage": plan.leakage.worst,
    }


def show_comparison(found: PlanComparison) -> None:
    """Every method side by side, for people, and why a method has no plan."""
    table = Table(title="All methods side by side", title_justify="left", title_style="bold")
    table.add_column("method")
    for name in ("noise per count", "least budget", "largest", "worst leakage"):
        table.add_column(name, justify="right")
    for plan in found.plans.values():
        row = _row(plan)
        budgets = [number(row[name], down=True) for name in ("smallest_epsilon", "largest_epsilon")]
        noise = number(row["mean_absolute_noise"])
        table.add_row(plan.method, noise, *budgets, number(row["worst_leakage"], up=True))
    console.print(table)
    for why in dict.fromkeys(map(str, found.refusals.values())):
        names = " or ".join(method for method, error in found.refusals.items() if str(error) == why)
        console.print(f"There is no plan by {names}: {why}.", style="dim", markup=False)


@singledispatch
def _particulars(plan: Plan) -> list[tuple[str, str]]:
    """What there is to say of one kind of plan, beside what there is to say of all."""
    raise NotImplementedError(type(plan).__name__)


@_particulars.register
def _(plan: BudgetPlan) -> list[tuple[str, str]]:
    certificate = [] if plan.optimality is None else [("certificate", _certificate(plan.optimality))]
    return [("method", plan.description), *certificate]


@_particulars.register
def _(plan: NoisePlan) -> list[tuple[str, str]]:
    at = f"{plan.delta:g}: budgets and leakage are the epsilon at this delta"
    return [("noise", f"{plan.description}, fixed beforehand"), ("delta", at)]


def show_plan(inputs: Inputs, made: Plan, *, all_steps: bool = False) -> None:
    """The plan for people."""
    first, middle, last = (number(float(made.epsilons[k]), down=True) for k in (0, len(made.epsilons) // 2, -1))
    spent = f"{first} at every step"
    if not (made.epsilons == made.epsilons[0]).all():
        between = "" if len(made.epsilons) < 3 else f"{middle} in the middle, "
        spent = f"{first} first, {between}{last} last"
    rows = [
        ("correlation", inputs.provenance.sentence),
        *_particulars(made),
        ("horizon", "any number of steps" if made.horizon is None else steps(made.horizon)),
        ("budgets", spent),
        (
            f"leakage, at worst ({'exact' if made.bound == 'exact' else 'upper bound'})",
            f"{number(made.leakage.worst, up=True)} of {made.alpha:g}",
        ),
        ("mean absolute noise per count", f"{made.mean_absolute_noise:.4g}"),
    ]
    facts(f"Plan for {made.level} (nats, replace one person's value)", rows)
    if isinstance(made.leakage, LeakageSeries):
        steps_table(made.leakage, inputs.times(len(made.leakage)), every_row=all_steps, granted=True)
        naive = mean_absolute_noise(laplace_scales([made.alpha / len(made.leakage)]))
        if naive < made.mean_absolute_noise * (1.0 - SAME):
            warn(
                f"alpha / T at every step has less noise here ({naive:.4g} per count on average) and holds the same level: try "
                "--method optimal without --delta, which is never worse"
            )


def _certificate(found: Optimality) -> str:
    """How much less noise another plan can have at most; a share above 100 % would say nothing."""
    least = found.error_bound
    short = math.inf if least is None or least <= 0.0 else found.error / least - 1.0
    if short > 1.0:
        return "not certified: the least noise that was found, not proven least"
    return f"no plan has less noise by more than {number(100.0 * max(short, 0.0), up=True)} % ({found.objective})"
