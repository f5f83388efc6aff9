"""`temporaldp plan`: how much may each step spend?"""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from temporaldp import BudgetPlan, LeakageSeries, plan_budget, save_plan
from temporaldp.cli import options as o
from temporaldp.cli.inputs import Inputs, gather
from temporaldp.cli.render import console, facts, say_json, steps_table, warn, working
from temporaldp.files.atomic import require_writable
from temporaldp.files.plans import plan_document
from temporaldp.leakage.profile import positive
from temporaldp.release.histogram import mean_absolute_noise
from temporaldp.report.words import number


class MethodOption(StrEnum):
    """How budgets are chosen."""

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
            help="upper_bound: one budget, any horizon (default without --horizon). quantified: more at both ends "
            "(default with it). uniform: alpha / T.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the plan (JSON).", show_default=False)
    ] = None,
    all_steps: Annotated[bool, typer.Option("--all", help="Show every step in the table.")] = False,
    as_json: o.JsonOption = False,
) -> None:
    """Choose budgets so that no step leaks more than alpha, whatever is released before and after it."""
    level = positive(alpha, "--alpha")
    if output is not None:
        require_writable(output, reads=(traces, *known.files))
    inputs = gather(traces, reading, known)
    with working("planning"):
        made = plan_budget(
            inputs.everyone, alpha=level, horizon=horizon, method=None if method is None else method.value
        )
    made = dataclasses.replace(made, provenance=inputs.provenance.sentence, states=inputs.states)
    warn(inputs.provenance.warning)
    if output is not None:
        save_plan(made, output)
    if as_json:
        noise = mean_absolute_noise(made.epsilons)
        say_json(plan_document(made) | {"mean_absolute_noise": noise, "warning": inputs.provenance.warning})
        return
    show_plan(inputs, made, all_steps=all_steps)
    if output is not None:
        console.print(f"plan written to {output}", soft_wrap=True, markup=False)


def show_plan(inputs: Inputs, made: BudgetPlan, *, all_steps: bool = False) -> None:
    """The plan for people."""
    first, last = made.epsilons[0], made.epsilons[-1]
    middle = made.epsilons[len(made.epsilons) // 2]
    spent = f"{first:.4g} first, {middle:.4g} between, {last:.4g} last"
    if first == last == middle:
        spent = f"{first:.4g} at every step"
    rows = [
        ("correlation", inputs.provenance.sentence),
        ("method", made.method),
        ("horizon", "any number of steps" if made.horizon is None else f"{made.horizon} steps"),
        ("budgets", spent),
        ("leakage, at worst", f"{number(made.leakage.worst, up=True)} of {made.alpha:g}"),
        ("mean absolute noise per count", f"{mean_absolute_noise(made.epsilons):.4g}"),
    ]
    facts(f"Budget plan for alpha = {made.alpha:g} (nats, replace one person's value)", rows)
    if made.horizon is None:
        return
    if isinstance(made.leakage, LeakageSeries):
        steps_table(made.leakage, inputs.times(made.horizon), every_row=all_steps)
    naive = mean_absolute_noise([made.alpha / made.horizon])
    if made.method != "uniform" and naive < mean_absolute_noise(made.epsilons):
        warn(
            f"alpha / T at every step has less noise here ({naive:.4g} per count on average) and holds the same level: "
            "try --method uniform"
        )
