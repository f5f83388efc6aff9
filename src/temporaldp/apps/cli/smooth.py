"""`temporaldp smooth`: smoothed counts of a finished release."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from temporaldp import InputError, load_released, save_released
from temporaldp import smooth as smooth_released
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.render import answer, facts, require_places, working
from temporaldp.base.display import number
from temporaldp.data.counts.released import release_suffix
from temporaldp.publish.project.release import public_correlation, without_traces
from temporaldp.publish.report.figures import release_figure


def smooth(
    context: typer.Context,
    released: Annotated[
        Path | None,
        typer.Argument(
            callback=o.sets("report.released"),
            metavar="RELEASED",
            show_default=False,
            help="Published counts, as drawn (.parquet or .csv).",
        ),
    ] = None,
    history: o.HistoryOption = None,
    population: Annotated[
        int | None, o.option("--population", key="release.population", help="Public number of users.", metavar="N")
    ] = None,
    output: Annotated[
        Path | None,
        o.option("--output", "-o", key="release.output", help="Where to write (.parquet or .csv).", metavar="FILE"),
    ] = None,
    figure: o.FigureOption = None,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Smooth a finished release by a public correlation, with 95 % intervals.

    Post-processing: only published counts, the public number of users and a public correlation are read.
    """
    settings = o.given(context).settings
    release, place = settings.release, settings.report.released
    if place is None or release.output is None or release.population is None:
        raise InputError("expected RELEASED, --population N (the public number of users) and --output FILE")
    release_suffix(release.output)
    require_places(release.output, figure=figure, reads=(place, *settings.inputs))
    counts = load_released(place)
    with working("reading the correlation"):
        correlation = public_correlation(without_traces(settings), counts.states, counts.times[0])
    with working("smoothing"):
        found = smooth_released(counts, correlation, total=release.population)
    estimated = found.of(counts)
    save_released(estimated, release.output)
    assert estimated.estimates is not None
    rows = [
        (
            "estimates",
            f"{release.output}, a typical 95 % interval is +- {number(estimated.estimates.half_width)} people",
        ),
        ("estimates from", found.used),
        ("fit", found.fit),
    ]
    estimates = {"estimate": found.counts, "low": found.lower, "high": found.upper}
    document = {"output": release.output, "seen": found.seen, "used": found.used, "fit": found.fit, **estimates}
    answer(
        as_json,
        document=lambda: document,
        show=partial(facts, "Smoothed", rows),
        draw=partial(release_figure, estimated),
        figure=figure,
    )
