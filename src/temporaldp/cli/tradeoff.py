"""`temporaldp tradeoff`: which alpha?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from temporaldp import InputError, Tradeoff, TradeoffPoint
from temporaldp import tradeoff as computed
from temporaldp.cli import options as o
from temporaldp.cli.inputs import gather
from temporaldp.cli.render import console, say_json, warn, working
from temporaldp.cli.smoothing import public_part
from temporaldp.files.atomic import require_writable
from temporaldp.planning.histogram_noise import Noise
from temporaldp.report.noise_beside_counts import NoiseBesideCounts
from temporaldp.report.style import figure_suffix, save_figure
from temporaldp.report.tradeoff_figure import tradeoff_figure
from temporaldp.report.words import number

ENOUGH = 2.0
"""Up to so many times alpha, the user level of the same noise is worth a sentence."""


@o.grouped
def tradeoff(
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    traces: o.TracesArgument = None,
    population: Annotated[
        int | None,
        typer.Option("--population", help="How many people; by default those of TRACES.", show_default=False),
    ] = None,
    horizon: o.HorizonOption = None,
    alpha: Annotated[
        str | None, typer.Option("--alpha", help="Levels to look at, separated by commas, in nats.", show_default=False)
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option("--epsilon", help="Instead: what each step promises, separated by commas.", show_default=False),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option("--scale", help="Instead: scales of the noise of a count, in people.", show_default=False),
    ] = None,
    delta: o.DeltaOption = None,
    mechanism: o.MechanismOption = None,
    window: Annotated[
        int | None,
        typer.Option("--window", metavar="W", help="Steps of w-event privacy (default 10).", show_default=False),
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            "--error", help="Find the smallest alpha with no larger an error of a count, in people.", show_default=False
        ),
    ] = None,
    same_start: o.SameStartOption = False,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw alpha against the error (.png or .svg).", show_default=False)
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """What each alpha costs: what is promised, what leaks, and how far counts and smoothed counts are from the truth.

    Errors are simulated from the public correlation. Of TRACES only the number of people and of steps is used.
    """
    if figure is not None:
        figure_suffix(figure)
        require_writable(figure, reads=(traces, *known.files))
    if delta is None and mechanism is not None:
        raise InputError("--mechanism is for a delta: give --delta D, such as 1e-6")
    inputs = gather(traces, reading, known)
    n_people = population if population is not None or inputs.trajectories is None else inputs.trajectories.n_users
    if n_people is None:
        raise InputError("without TRACES the number of people is unknown; give --population N")
    public = public_part(inputs, same_start=same_start)
    kind: Noise | None = None if mechanism is None else mechanism.value
    with working("simulating"):
        found = computed(
            inputs.everyone,
            public,
            n_people=n_people,
            horizon=inputs.n_steps(horizon),
            alphas=_numbers(alpha, "--alpha"),
            epsilons=_numbers(epsilon, "--epsilon"),
            scales=_numbers(scale, "--scale"),
            delta=delta or 0.0,
            noise=kind,
            window=window,
            largest_error=error,
        )
    if figure is not None:
        save_figure(tradeoff_figure(found), figure)
    if as_json:
        say_json(asdict(found) | {"correlation": public.source.provenance, "unit": "nats", "errors": "people"})
        return
    show_tradeoff(found, len(public.states))
    console.print(f"Simulated from the correlation alone. {public.source.provenance}", style="dim", markup=False)
    if figure is not None:
        console.print(f"figure written to {figure}", soft_wrap=True, markup=False)


def _numbers(text: str | None, option: str) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"expected numbers separated by commas for {option}, got {text!r}") from None


def show_tradeoff(found: Tradeoff, n_states: int) -> None:
    """The table, and what follows from it."""
    at = f", all at delta {found.delta:g}" if found.delta else ""
    title = f"{found.n_people} people, {n_states} states, {found.horizon} steps; leakage in nats{at}, errors in people"
    table = Table(title=title, title_justify="left", title_style="bold")
    names = [
        "alpha (leaks)",
        "promised a step",
        "noise scale",
        "error",
        "smoothed",
        f"{found.window}-event",
        "user level",
    ]
    if found.user_points:
        names += [f"smoothed, {found.window}-event at alpha", "smoothed, user level at alpha"]
    for name in names:
        table.add_column(name, justify="right")
    for k, point in enumerate(found.points):
        row = [number(one, up=True) for one in (point.alpha, point.epsilon)]
        row += [f"{one:.3g}" for one in (point.scale, point.error, point.smoothed_error)]
        row += [number(one, up=True) for one in (point.window_level, point.user_level)]
        if found.user_points:
            row += [f"{other[k].smoothed_error:.3g}" for other in (found.window_points, found.user_points)]
        table.add_row(*row)
    console.print(table)
    for sentence in _conclusions(found):
        console.print(sentence, markup=False)
    middle = found.points[len(found.points) // 2]
    warn(NoiseBesideCounts(middle.error, found.n_people, n_states).warning)


def _conclusions(found: Tradeoff) -> list[str]:
    told = []
    if found.largest_error is not None:
        told.append(_smallest(found.within, found.largest_error, "smoothed"))
        told.append(_smallest(found.within_released, found.largest_error, "as released"))
    near = [point for point in found.points if point.user_level <= ENOUGH * point.alpha]
    if near:
        point = near[-1]
        told.append(
            f"The noise of alpha = {number(point.alpha, up=True)} protects all values of a person together at "
            f"{number(point.user_level, up=True)} (user level), whatever the correlation: if that will do, promise it instead."
        )
    return told


def _smallest(point: TradeoffPoint | None, error: float, how: str) -> str:
    if point is None:
        return f"No noise that is worth the name has an error of at most {error:g} people {how}."
    return (
        f"The smallest alpha with an error of at most {error:g} people {how}: {number(point.alpha, up=True)} "
        f"({number(point.epsilon, up=True)} a step, noise of scale {point.scale:.3g})."
    )
