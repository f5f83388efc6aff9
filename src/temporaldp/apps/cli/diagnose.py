"""`temporaldp diagnose`: is one first-order matrix enough for these traces?"""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import say
from temporaldp.apps.cli.render import answer, listing, require_places, working
from temporaldp.base.display import number
from temporaldp.lab.studies import Diagnosis
from temporaldp.lab.studies import diagnose as diagnosed
from temporaldp.lab.studies.diagnosis import ModelLeakage
from temporaldp.publish.project.inputs import read_data
from temporaldp.publish.report.study_figures import diagnosis_figure


def diagnose(
    context: typer.Context,
    traces: o.TracesArgument = None,
    epsilon: o.EpsilonOption = None,
    period: Annotated[
        int | None,
        o.option("--period", key="correlation.period", help="Steps after which the clock repeats.", metavar="P"),
    ] = None,
    horizon: o.HorizonOption = None,
    figure: o.FigureOption = None,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Test whether one first-order matrix describes the traces, and how much leakage finer models add.

    Leakage is computed for 0.1 nats per step unless epsilon is given.
    """
    settings = o.given(context).settings
    require_places(figure=figure, reads=settings.inputs)
    with working("reading traces"):
        data = read_data(settings.traces)
    with working("diagnosing"):
        found = diagnosed(
            data,
            epsilon=settings.privacy.epsilon or 0.1,
            period=settings.correlation.period,
            horizon=settings.privacy.horizon,
        )
    answer(
        as_json,
        document=partial(_document, found),
        show=partial(_show, found),
        draw=partial(diagnosis_figure, found),
        figure=figure,
    )


def _show(found: Diagnosis) -> None:
    """Print the leakage of each model, the tests, and the verdict."""
    listing(
        [{"model": one.model, "leakage": _leakage(one)} for one in found.models],
        f"Largest leakage of any step (nats), {found.epsilon:g} per step",
        left=("model",),
        boxed=True,
    )
    tests = [
        {
            "finer model": one.name,
            "G": f"{one.statistic:.1f}",
            "degrees": str(one.degrees),
            "p": "< 1e-12" if one.p_value < 1e-12 else f"{one.p_value:.2g}",
            "BIC prefers it": "yes" if one.preferred else "no",
        }
        for one in found.refinements
    ]
    listing(tests, "Against one first-order matrix", left=("finer model",), boxed=True)
    notes = [f"{one.model[:1].upper()}{one.model[1:]}: {one.note}." for one in found.models if one.note]
    say(*notes, *found.verdict)


def _leakage(one: ModelLeakage) -> str:
    if math.isnan(one.proved):
        return "-"
    low, high = number(one.attained, down=True), number(one.proved, up=True)
    return high if one.attained == one.proved else f"{low} to {high}"


def _document(found: Diagnosis) -> dict[str, object]:
    return {
        "epsilon": found.epsilon,
        "models": found.models,
        "refinements": [asdict(one) | {"preferred": one.preferred} for one in found.refinements],
        "weaknesses": found.weaknesses,
        "verdict": found.verdict,
        "unit": "nats",
    }
