"""`temporaldp diagnose`: is one first-order matrix enough for these traces?"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from temporaldp import InputError
from temporaldp.cli import options as o
from temporaldp.cli.inputs import read_data
from temporaldp.cli.render import console, say_json, working
from temporaldp.files.atomic import require_writable
from temporaldp.files.plans import json_number
from temporaldp.report.style import figure_suffix, save_figure
from temporaldp.report.uncertainty import diagnosis_figure
from temporaldp.report.words import number
from temporaldp.studies import Diagnosis
from temporaldp.studies import diagnose as diagnosed
from temporaldp.values import positive


@o.grouped
def diagnose(
    reading: o.TraceOptions,
    traces: o.TracesArgument = None,
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="Budget of every step, by which leakage is told, in nats.")
    ] = 0.1,
    period: Annotated[
        int | None,
        typer.Option("--period", metavar="P", help="Steps after which the clock repeats.", show_default=False),
    ] = None,
    horizon: o.HorizonOption = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Draw the leakage under each model (.png or .svg).", show_default=False),
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Test finer models of the correlation, say how much leakage each adds, and find what is thin in the traces."""
    budget = positive(epsilon, "--epsilon")
    if figure is not None:
        figure_suffix(figure)
        require_writable(figure, reads=(traces,))
    data = read_data(traces, reading)
    with working("diagnosing"):
        found = diagnosed(data, epsilon=budget, period=period, horizon=_steps(horizon))
    if figure is not None:
        with working("drawing", writes=True):
            save_figure(diagnosis_figure(found), figure)
    if as_json:
        say_json(_document(found))
        return
    show_diagnosis(found)
    if figure is not None:
        console.print(f"figure written to {figure}", soft_wrap=True, markup=False)


def _steps(horizon: int | None) -> int | None:
    if horizon is not None and horizon < 1:
        raise InputError(f"expected --horizon of at least 1 step, got {horizon}")
    return horizon


def show_diagnosis(found: Diagnosis) -> None:
    """The diagnosis for people: what is known of each model, the tests, and the verdict."""
    table = Table(
        title=f"Largest leakage of any step (nats), {found.epsilon:g} a step", title_justify="left", title_style="bold"
    )
    table.add_column("model")
    table.add_column("leakage", justify="right")
    for one in found.models:
        if math.isnan(one.proved):
            table.add_row(one.model, "-")
        elif one.attained == one.proved:
            table.add_row(one.model, number(one.proved, up=True))
        else:
            table.add_row(one.model, f"{number(one.attained, down=True)} to {number(one.proved, up=True)}")
    console.print(table)
    tests = Table(title="Against one first-order matrix", title_justify="left", title_style="bold")
    for name in ("finer model", "G", "degrees", "p", "BIC prefers it"):
        tests.add_column(name, justify="left" if name == "finer model" else "right")
    for test in found.refinements:
        p = "< 1e-12" if test.p_value < 1e-12 else f"{test.p_value:.2g}"
        tests.add_row(test.name, f"{test.statistic:.1f}", str(test.degrees), p, "yes" if test.preferred else "no")
    console.print(tests)
    for one in found.models:
        if one.note:
            console.print(f"{one.model[:1].upper()}{one.model[1:]}: {one.note}.", markup=False)
    for sentence in found.verdict:
        console.print(sentence, markup=False)


def _document(found: Diagnosis) -> dict[str, object]:
    models = [asdict(one) | {"attained": _number(one.attained), "proved": _number(one.proved)} for one in found.models]
    return {
        "epsilon": found.epsilon,
        "models": models,
        "refinements": [asdict(one) | {"preferred": one.preferred} for one in found.refinements],
        "weaknesses": asdict(found.weaknesses),
        "verdict": found.verdict,
        "unit": "nats",
    }


def _number(value: float) -> object:
    return None if math.isnan(value) else json_number(value)
