"""`temporaldp release`: publish the histograms with the planned budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from temporaldp import ReleasedHistograms, load_plan, release_histograms, save_released
from temporaldp.cli import options as o
from temporaldp.cli.inputs import absences, read
from temporaldp.cli.render import console, facts, say_json, warn, working
from temporaldp.errors import OutputError
from temporaldp.files.atomic import require_writable
from temporaldp.planning import BudgetPlan
from temporaldp.release.released import release_suffix
from temporaldp.report.words import number, steps


@o.grouped
def release(
    reading: o.TraceOptions,
    traces: o.RequiredTraces,
    plan: Annotated[Path, typer.Option("--plan", help="Budget plan from `temporaldp plan`.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the counts (.parquet or .csv).", show_default=False)
    ],
    consistent: Annotated[
        bool, typer.Option("--consistent", help="Post-process to non-negative counts that keep the public total.")
    ] = False,
    overwrite: o.OverwriteOption = False,
    as_json: o.JsonOption = False,
) -> None:
    """Publish how many people are in each state at each step, with exact discrete Laplace noise under a plan.

    Every run draws new noise and spends the budgets again, so an output that exists is not replaced unless you say so.
    """
    release_suffix(output)
    require_writable(output, reads=(traces, plan))
    if output.exists() and not overwrite:
        raise OutputError(
            f"{output} exists; releasing the same data twice spends the budgets twice. If that file was never shown to "
            "anybody, say --overwrite; otherwise keep it"
        )
    budget = load_plan(plan)
    data = read(traces, reading, budget.states)
    with working("drawing noise"):
        released = release_histograms(data, budget, consistent=consistent)
    save_released(released, output)
    warn(budget.warning)
    warn(absences(data))
    if as_json:
        say_json(_document(released, budget, output))
    else:
        show_release(released, budget, output)


def _document(released: ReleasedHistograms, plan: BudgetPlan, output: Path) -> dict[str, object]:
    return {
        "output": str(output),
        "alpha": plan.alpha,
        "steps": len(released.times),
        "states": released.states,
        "epsilons": released.epsilons.tolist(),
        "consistent": released.consistent,
        "neighboring_relation": released.neighboring_relation,
        "l1_sensitivity": 2,
        "unit": "nats",
    }


def show_release(released: ReleasedHistograms, plan: BudgetPlan, output: Path) -> None:
    """What was released, for people."""
    rows = [
        ("written to", str(output)),
        ("histograms", f"{steps(len(released.times))} of {len(released.states)} states"),
        ("guarantee", f"at most {plan.alpha:g} nats about any step (alpha-DP_T), replace one person's value"),
        ("spent per step", f"{number(float(released.epsilons.min()))} to {number(float(released.epsilons.max()))}"),
        ("noise", "exact discrete Laplace (OpenDP), L1 sensitivity 2"),
        (
            "post-processing",
            "non-negative, public total kept" if released.consistent else "none: counts may be negative",
        ),
    ]
    facts("Released", rows)
    console.print("Keep this file: a second release of the same data spends the budgets a second time.", style="dim")
