"""`temporaldp attack`: what somebody who knows everybody else makes of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from temporaldp import load_released
from temporaldp.cli import options as o
from temporaldp.cli.inputs import gather
from temporaldp.cli.render import console, say_json, warn, working
from temporaldp.errors import InputError
from temporaldp.files.atomic import require_writable
from temporaldp.report.attack_figure import attack_figure
from temporaldp.report.style import figure_suffix, save_figure
from temporaldp.studies import ReleaseAttack, attack_release


@o.grouped
def attack(
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    released: Annotated[
        Path, typer.Option("--released", help="The release to attack (.parquet or .csv).", show_default=False)
    ],
    traces: o.TracesArgument = None,
    repeats: Annotated[
        int, typer.Option("--repeats", help="How often the same noise is drawn again, for the mean.")
    ] = 50,
    seed: o.SeedOption = 0,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure", help="Draw what is recognised, and what is allowed (.png or .svg).", show_default=False
        ),
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Attack a finished release of your own: who was where, for somebody who knows everybody else's values.

    TRACES are the true data that were released; the answer is as secret as they are. Exit code 3: the guarantee is exceeded.
    """
    if figure is not None:
        figure_suffix(figure)
        require_writable(figure, reads=(traces, released, *known.files, *reading.files))
    if traces is None:
        raise InputError("expected TRACES, the true data that were released: without them nobody knows whom to attack")
    inputs = gather(traces, reading, known)
    counts = load_released(released)
    users = {one.name: one for one in inputs.adversaries if one.name is not None}
    with working("attacking"):
        found = attack_release(
            inputs.trajectories,
            counts,
            users if len(inputs.adversaries) > 1 else inputs.adversaries[0],
            repeats=repeats,
            seed=seed,
        )
    warn(inputs.provenance.warning)
    if figure is not None:
        with working("drawing", writes=True):
            save_figure(attack_figure(found), figure)
    if as_json:
        say_json(attack_document(found) | {"correlation": inputs.provenance.sentence})
    else:
        for sentence in found.sentences:
            console.print(sentence, markup=False)
        if figure is not None:
            console.print(f"figure written to {figure}", soft_wrap=True, markup=False)
    if found.exceeds:
        raise typer.Exit(3)


def attack_document(found: ReleaseAttack) -> dict[str, Any]:
    """The attack as JSON values: rates, and what is allowed at each rate of false alarms."""
    return {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "unit": "nats",
        "people": found.n_people,
        "steps": found.n_steps,
        "right": found.right,
        "most_right": found.most_right,
        "false_positives": found.false_positives.tolist(),
        "true_positives": found.true_positives.tolist(),
        "allowed": found.allowed(found.false_positives).tolist(),
        "repeats": found.repeats,
        "mean_false_positives": found.mean_false_positives.tolist(),
        "mean_true_positives": found.mean_true_positives.tolist(),
        "evidence": found.evidence,
        "exceeds": found.exceeds,
        "in_words": found.sentences,
    }
