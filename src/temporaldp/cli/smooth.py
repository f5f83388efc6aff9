"""`temporaldp smooth`: what a finished release says about the true counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from temporaldp import load_released
from temporaldp import smooth as smooth_released
from temporaldp.cli import options as o
from temporaldp.cli.render import console, facts, say_json, working
from temporaldp.cli.smoothing import public_correlation, save_all, smoothed_document
from temporaldp.files.atomic import require_writable
from temporaldp.release.released import release_suffix
from temporaldp.report.figures import release_figure
from temporaldp.report.style import figure_suffix, save_figure


@o.grouped
def smooth(
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    released: Annotated[
        Path, typer.Argument(metavar="RELEASED", show_default=False, help="Counts from `temporaldp release`, as drawn.")
    ],
    population: Annotated[int, typer.Option("--population", help="The public number of people.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write (.parquet or .csv).", show_default=False)
    ],
    same_start: o.SameStartOption = False,
    synthetic: o.SyntheticOption = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw them beside the released counts.", show_default=False)
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Smooth a finished release by a public correlation: every count from all releases, with a 95 % interval.

    Post-processing: it reads released counts, the public number of people, and a correlation that is public or paid for.
    """
    release_suffix(output)
    for place in (output, synthetic, figure):
        if place is not None:
            require_writable(place, reads=(released, *known.files))
    if figure is not None:
        figure_suffix(figure)
    counts = load_released(released)
    correlation = public_correlation(None, reading, known, counts.states, same_start=same_start)
    with working("smoothing"):
        found = smooth_released(counts, correlation, total=population)
    rows = save_all(found, correlation, output, synthetic)
    if figure is not None:
        save_figure(release_figure(counts, smoothed=found), figure)
    if as_json:
        say_json(smoothed_document(found, output))
        return
    facts("Smoothed", rows)
    if figure is not None:
        console.print(f"figure written to {figure}", soft_wrap=True, markup=False)
