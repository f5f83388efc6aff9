"""`temporaldp attack`: an attack on a finished release, with knowledge of all other users."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from temporaldp import load_released
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import say, warn
from temporaldp.apps.cli.render import answer, require_places, working
from temporaldp.base.errors import InputError
from temporaldp.lab.studies import ReleaseAttack, attack_release
from temporaldp.publish.project.inputs import Inputs, gather
from temporaldp.publish.report.study_figures import attack_figure


def attack(
    context: typer.Context,
    traces: o.TracesArgument = None,
    released: Annotated[
        Path | None,
        o.option("--released", key="report.released", help="The release to attack (.parquet or .csv).", metavar="FILE"),
    ] = None,
    history: o.HistoryOption = None,
    figure: o.FigureOption = None,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Attack a finished release of your own, with the adversary's knowledge of all other users.

    TRACES are the true data; the result is as confidential as they are. Exit code 3: the guarantee is exceeded.
    """
    settings = o.given(context).settings
    place = settings.report.released or settings.release.output
    if place is None:
        raise InputError("expected --released FILE, the published counts")
    require_places(figure=figure, reads=(*settings.inputs, place))
    if settings.traces.path is None:
        raise InputError("expected TRACES, the true data that were released")
    with working("reading data"):
        inputs = gather(settings)
    users = {one.name: one for one in inputs.adversaries if one.name is not None}
    with working("attacking"):
        found = attack_release(
            inputs.trajectories,
            load_released(place),
            users if inputs.provenance.per_user else inputs.smoothing,
            repeats=settings.study.repeats,
            seed=settings.study.seed,
        )
    warn(inputs.provenance.warning)
    answer(
        as_json,
        document=partial(_document, inputs, found),
        show=partial(say, *found.sentences),
        draw=partial(attack_figure, found),
        figure=figure,
    )
    if found.exceeds:
        raise typer.Exit(3)


def _document(inputs: Inputs, found: ReleaseAttack) -> dict[str, Any]:
    """The attack as JSON values: rates, and what is allowed at each rate of false alarms."""
    return {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "unit": "nats",
        "people": found.n_people,
        "steps": found.n_steps,
        "right": found.right,
        "most_right": found.most_right,
        "false_positives": found.false_positives,
        "true_positives": found.true_positives,
        "allowed": found.allowed(found.false_positives),
        "repeats": found.repeats,
        "mean_false_positives": found.mean_false_positives,
        "mean_true_positives": found.mean_true_positives,
        "evidence": found.evidence,
        "exceeds": found.exceeds,
        "in_words": found.sentences,
        "correlation": inputs.provenance.sentence,
    }
