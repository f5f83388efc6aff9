"""`temporaldp tradeoff`: which alpha?"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from temporaldp import InputError
from temporaldp import tradeoff as computed
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import console, say, warn
from temporaldp.apps.cli.render import answer, listing, require_places, working
from temporaldp.base.display import number
from temporaldp.data.smoothing import PublicCorrelation, Tradeoff, TradeoffPoint
from temporaldp.publish.project.inputs import gather
from temporaldp.publish.project.release import public_part
from temporaldp.publish.report.sentences import USER_LEVEL, NoiseBesideCounts
from temporaldp.publish.report.study_figures import tradeoff_figure


def tradeoff(
    context: typer.Context,
    traces: o.TracesArgument = None,
    history: o.HistoryOption = None,
    horizon: o.HorizonOption = None,
    alphas: Annotated[
        str | None, o.option("--alpha", key="study.alphas", help="Levels to compare, in nats.", metavar="A,B,...")
    ] = None,
    epsilons: Annotated[
        str | None,
        o.option(
            "--epsilon",
            key="study.epsilons",
            help="In place of --alpha: epsilons per step, in nats.",
            metavar="E,F,...",
        ),
    ] = None,
    scales: Annotated[
        str | None,
        o.option(
            "--scale", key="study.scales", help="In place of --alpha: scales of noise, in counts.", metavar="S,T,..."
        ),
    ] = None,
    delta: o.DeltaOption = None,
    noise: o.NoiseOption = None,
    error: Annotated[
        float | None,
        o.option(
            "--error", key="study.error", help="Find the smallest alpha with at most this error, in users.", metavar="E"
        ),
    ] = None,
    figure: o.FigureOption = None,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Compare levels: the epsilon of a step, the leakage, and the error of counts and smoothed counts.

    Errors are simulated from the public correlation. Of TRACES only the numbers of users and steps are used.
    """
    settings = o.given(context).settings
    privacy, study, n_people = settings.privacy, settings.study, settings.release.population
    require_places(figure=figure, reads=settings.inputs)
    if privacy.delta is None and privacy.noise is not None:
        raise InputError("--noise is gaussian or laplace, and planned at a delta: give --delta D, such as 1e-6")
    with working("reading data"):
        inputs = gather(settings)
    if n_people is None:
        if inputs.trajectories is None:
            raise InputError("the number of users is unknown: give TRACES, or --set release.population=N")
        n_people = inputs.trajectories.n_users
    public = public_part(inputs, same_start=settings.release.same_start)
    with working("simulating"):
        found = computed(
            inputs.everyone,
            public,
            n_people=n_people,
            horizon=inputs.n_steps(privacy.horizon),
            alphas=study.alphas,
            epsilons=study.epsilons,
            scales=study.scales,
            delta=privacy.delta or 0.0,
            noise=privacy.noise,
            window=study.window,
            largest_error=study.error,
        )
    answer(
        as_json,
        document=lambda: (
            asdict(found) | {"correlation": public.provenance.sentence, "unit": "nats", "errors": "people"}
        ),
        show=partial(_show, found, public),
        draw=partial(tradeoff_figure, found),
        figure=figure,
    )


def _show(found: Tradeoff, public: PublicCorrelation) -> None:
    """Print the table and the conclusions."""
    n_states = len(public.states)
    at = f", all at delta {found.delta:g}" if found.delta else ""
    title = f"{found.n_people} people, {n_states} states, {found.horizon} steps; leakage in nats{at}, errors in people"
    event = f"{found.window}-event"
    rows = [
        {
            "alpha": number(point.alpha, up=True),
            "epsilon": number(point.epsilon, up=True),
            "scale": number(point.scale),
            "error": number(point.error),
            "smoothed": number(point.smoothed_error),
            event: number(point.window_level, up=True),
            "user level": number(point.user_level, up=True),
        }
        for point in found.points
    ]
    listing(rows, title, boxed=True)
    at_alpha = [
        {
            "alpha": number(point.alpha, up=True),
            event: number(within_window.smoothed_error),
            "user level": number(within_user.smoothed_error),
        }
        for point, within_window, within_user in zip(found.points, found.window_points, found.user_points, strict=False)
    ]
    listing(at_alpha, f"Errors of smoothed counts where alpha bounds the {event} level or the user level", boxed=True)
    say(*_conclusions(found))
    warn(NoiseBesideCounts(found.points[len(found.points) // 2].error, found.n_people, n_states).warning)
    console.print(f"Simulated from the correlation alone. {public.provenance.sentence}", style="dim", markup=False)


def _conclusions(found: Tradeoff) -> list[str]:
    sentences = []
    if found.largest_error is not None:
        kinds = (found.within, "smoothed"), (found.within_released, "as released")
        sentences += [_smallest(point, found.largest_error, how) for point, how in kinds]
    near = [point for point in found.points if point.user_level <= 2.0 * point.alpha]
    if near:
        point = near[-1]
        sentences.append(
            f"The noise of alpha = {number(point.alpha, up=True)} satisfies {number(point.user_level, up=True)}-differential "
            f"privacy at the {USER_LEVEL}, for every correlation: this guarantee can be stated instead if it suffices."
        )
    return sentences


def _smallest(point: TradeoffPoint | None, error: float, how: str) -> str:
    if point is None:
        return f"No amount of noise in the searched range has an error of at most {error:g} people {how}."
    return (
        f"The smallest alpha with an error of at most {error:g} people {how}: about {number(point.alpha, up=True, digits=2)} "
        f"({number(point.epsilon, up=True, digits=2)} per step, noise of scale {number(point.scale, digits=3)}), because "
        "errors are simulated."
    )
