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
from temporaldp.accounting.curve.method import ApproximateDP
from temporaldp.cli import options as o
from temporaldp.cli.inputs import Inputs, absences, gather
from temporaldp.cli.render import console, facts, learning_facts, say_json, steps_table, warn, working
from temporaldp.files.atomic import require_writable
from temporaldp.files.plans import plan_document
from temporaldp.planning import Plan
from temporaldp.planning.histogram_noise import Noise, laplace_scales, mean_absolute_noise
from temporaldp.planning.plan import Method
from temporaldp.report.figures import comparison_figure
from temporaldp.report.noise_beside_counts import NoiseBesideCounts
from temporaldp.report.style import figure_suffix, save_figure
from temporaldp.report.words import number, steps
from temporaldp.values import positive, whole_number

SAME = 1e-6
"""Relative difference of noise below which two plans have as much: plans leave up to 1e-7 of alpha unspent."""


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
    verify: Annotated[
        bool, typer.Option("--verify", help="With --delta and --horizon: look for less noise by simulation (minutes).")
    ] = False,
    failure: o.FailureOption = None,
    draws: o.DrawsOption = 1_000_000,
    seconds: o.SecondsOption = None,
    seed: o.SeedOption = 0,
    compare: Annotated[bool, typer.Option("--compare", help="Print every method's plan side by side.")] = False,
    population: Annotated[
        int | None,
        typer.Option(
            "--population",
            help="How many people are counted, to compare the noise with; by default those of TRACES.",
            show_default=False,
        ),
    ] = None,
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
    _require_together(compared, horizon, delta, mechanism, verify)
    by: dict[str, Any] = {"verify": verify, "failure": failure, "draws": draws, "seconds": seconds, "seed": seed}
    if delta is not None:
        _require_noise_alone(compared, method, objective, bound)
    for place in (output, figure):
        if place is not None:
            require_writable(place, reads=(traces, *known.files, *reading.files))
    if figure is not None:
        figure_suffix(figure)
    inputs = gather(traces, reading, known)
    everyone, comparison = inputs.everyone, PlanComparison({}, {})
    chosen: Method | None = None if method is None else method.value
    with working("planning"):
        if delta is not None:
            made: Plan = plan_noise(
                everyone, alpha=level, noise=_noise(mechanism), horizon=horizon, **by, accounting=ApproximateDP(delta)
            )
        else:
            how: dict[str, Any] = {
                "alpha": level,
                "horizon": horizon,
                "objective": objective.value,
                "accounting": bound.accounting,
            }
            comparison = compare_plans(everyone, **how) if compared else comparison
            made = comparison.plans.get(chosen or "optimal") or plan_budget(everyone, method=chosen, **how)
    made = dataclasses.replace(made, source=inputs.source)
    warn(inputs.scarcity)
    warn(made.source.warning)
    warn(absences(inputs.trajectories))
    if output is not None:
        save_plan(made, output)
    if figure is not None and horizon is not None:
        save_figure(comparison_figure(comparison.plans, inputs.times(horizon)), figure)
    beside = _beside(inputs, made, population)
    warn(None if beside is None else beside.warning)
    if as_json:
        share = None if beside is None else beside.share
        about: dict[str, Any] = {"mean_absolute_noise": made.mean_absolute_noise, "noise_beside_counts": share}
        about |= {"alpha_in_all": made.alpha_in_all} if made.source.learning_epsilon else {}
        say_json(plan_document(made) | about | _comparison(comparison))
        return
    show_plan(inputs, made, all_steps=all_steps, beside=beside)
    if compare:
        show_comparison(comparison)
    _say_written(plan=output, figure=figure)


def _beside(inputs: Inputs, made: Plan, population: int | None) -> NoiseBesideCounts | None:
    """The noise beside an average count; None if nobody said how many people there are."""
    n_people = population if population is not None or inputs.trajectories is None else inputs.trajectories.n_users
    if n_people is None or inputs.states is None:
        return None
    return NoiseBesideCounts(
        made.mean_absolute_noise, whole_number(n_people, "--population", least=1), len(inputs.states)
    )


def _say_written(**places: Path | None) -> None:
    for what, place in places.items():
        if place is not None:
            console.print(f"{what} written to {place}", soft_wrap=True, markup=False)


def _noise(mechanism: o.Noises | None) -> Noise:
    return "laplace" if mechanism is o.Noises.LAPLACE else "gaussian"


def _require_together(
    compared: bool, horizon: int | None, delta: float | None, mechanism: o.Noises | None, verify: bool
) -> None:
    """Options that say nothing without another one are refused."""
    if compared and horizon is None:
        raise BudgetError("--compare and --figure need --horizon T: without one there is only one method")
    if delta is None and mechanism is not None:
        raise BudgetError("--mechanism is planned for a delta: give --delta D, such as 1e-6")
    if verify and (delta is None or horizon is None):
        raise BudgetError("--verify simulates a number of steps at a delta: give --delta D and --horizon T")


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
        "accounting": plan.accounting.document(),
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
    optimality = [] if plan.optimality is None else [("optimality", _optimality(plan.optimality))]
    return [("method", plan.description), *optimality]


@_particulars.register
def _(plan: NoisePlan) -> list[tuple[str, str]]:
    at = f"{plan.delta:g}: budgets and leakage are the epsilon at this delta"
    found = plan.verification
    verified = [] if found is None else [("verified", found.sentence)]
    optimality = [] if plan.optimality is None else [("optimality", _optimality(plan.optimality))]
    return [("noise", f"{plan.description}, fixed beforehand"), ("delta", at), *verified, *optimality]


def show_plan(inputs: Inputs, made: Plan, *, all_steps: bool = False, beside: NoiseBesideCounts | None = None) -> None:
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
            f"leakage, at worst ({made.accounting.label})",
            f"{number(made.leakage.worst, up=True)} of {made.alpha:g}",
        ),
        ("mean absolute noise per count", f"{made.mean_absolute_noise:.4g}"),
        ("noise beside counts", "give --population N to compare" if beside is None else beside.sentence),
        *learning_facts(made.source, made.alpha, made.delta),
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


def _optimality(found: Optimality) -> str:
    """How much less noise another plan can have at most, accounted for alike; a share above 100 % would say nothing."""
    least = found.error_bound
    short = math.inf if least is None or least <= 0.0 else found.error / least - 1.0
    if short > 1.0:
        return "not proved: another plan that holds the level could need less noise"
    most = number(100.0 * max(short, 0.0), up=True)
    return (
        f"no plan that holds the level by the same accounting has less noise by more than {most} % ({found.objective})"
    )
