"""`temporaldp release`: publish the histograms with the planned budgets, once or step by step into a ledger."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from temporaldp import ContinualRelease, InputError, LeakageSeries
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import console, say, warn
from temporaldp.apps.cli.operation import LedgerRun, logged, nearly_used, of_tables, opened_log, trial_place
from temporaldp.apps.cli.render import (
    ROWS_ON_SCREEN,
    facts,
    learning_fact,
    listing,
    require_places,
    say_json,
    working,
)
from temporaldp.base.display import number, spread
from temporaldp.base.errors import InputDiffersWarning, OutputError
from temporaldp.base.values import plural, refuse
from temporaldp.core.planning.histogram_noise import mean_absolute_noise
from temporaldp.data.tables import Traces
from temporaldp.publish.project.inputs import absences
from temporaldp.publish.project.publishing import PublishingRun, earlier_counts, publishing
from temporaldp.publish.project.release import checked_output, setup_of
from temporaldp.publish.release.histograms import require_reached
from temporaldp.publish.report import explanation
from temporaldp.publish.report.figures import release_figure
from temporaldp.publish.report.sentences import (
    LIST_STATES,
    OWN_STATES,
    NoiseBesideCounts,
    accounting_line,
    at_delta,
    discrete_noise,
    guarantee_with_odds,
    nats,
    observers,
    steps,
    typical_error,
)
from temporaldp.publish.report.style import save_figure


def release(
    context: typer.Context,
    traces: o.TracesArgument = None,
    history: o.HistoryOption = None,
    alpha: o.AlphaOption = None,
    plan: Annotated[
        Path | None,
        o.option(
            "--plan", key="release.plan", help="Plan (from `temporaldp plan`), in place of --alpha.", metavar="FILE"
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        o.option(
            "--ledger",
            key="release.ledger",
            help="SQLite file or postgresql:// URL that stores every step.",
            metavar="LEDGER",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        o.option("--output", "-o", key="release.output", help="Published counts (.parquet or .csv).", metavar="FILE"),
    ] = None,
    horizon: o.HorizonOption = None,
    check: Annotated[
        bool,
        o.option(
            "--check", help="Show whether a run would work, what it would spend and leak; draw and write nothing."
        ),
    ] = False,
    overwrite: o.OverwriteOption = False,
    figure: o.FigureOption = None,
    begin_anew: o.BeginAnewOption = False,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Publish the number of users in each state at each step, with exact discrete Laplace or Gaussian noise.

    With a ledger, the command may run again as data arrive: a published step is returned as it was, later ones are added.
    Without one, every run draws new noise and spends the budgets of the plan again.
    """
    settings = o.given(context).settings
    require_places(figure=figure, reads=settings.inputs)
    target, ledger = checked_output(settings, is_check=check), settings.release.ledger
    refuse(
        (check and ledger is None, InputError("--check needs a ledger: --ledger LEDGER")),
        (
            check and begin_anew,
            InputError("--check writes nothing, and --begin-anew is recorded in the ledger: leave out one of them"),
        ),
    )
    log = None if ledger is None else settings.release.log
    if check and log is not None and log.exists():
        opened_log(log).close()
    with logged(None if check else log) as line:
        with working("reading data"):
            setup = setup_of(settings)
        if check:
            assert ledger is not None
            with trial_place(ledger, settings.release.output) as place, setup.opened(place) as stream:
                new = [time for time in setup.data.times if not stream.has(time)]
                require_reached(setup.data, new, settings.release.reached)
                if settings.release.output is not None:
                    earlier_counts(target, setup.data, stream, overwrite)
                _show_forecast(stream, setup.data, as_json)
            return
        with publishing(setup, target, overwrite=overwrite, begin_anew=begin_anew) as opened:
            _publish(opened, target, figure, line, as_json)


def _publish(published: PublishingRun, output: Path, figure: Path | None, line: dict[str, Any], as_json: bool) -> None:
    """Publish the steps of a plan, or those that the ledger lacks; `line` is the line of the log."""
    stream, setup = published.stream, published.setup
    run = None if stream is None else LedgerRun(stream, setup.data)
    try:
        with working("drawing noise", stored=stream), warnings.catch_warnings():
            warnings.simplefilter("ignore", InputDiffersWarning)
            published.draw()
            line |= {} if run is None else run.facts  # what is stored, also where the output cannot be written
            text = published.write(output)
        if run is not None:
            warn(run.gap, run.other_data, nearly_used(run.stream, setup.settings.release.warn_at))
        warn(
            published.not_estimated,
            *published.warnings,
            LIST_STATES if OWN_STATES in setup.warnings else None,
            absences(setup.data),
            published.even_split if run is None or run.is_first else None,
        )
        if figure is not None:
            save_figure(release_figure(published.released), figure)
        _show(published, output, text, as_json, run)
    except OutputError as error:
        if run is None or len(run.stream) == run.n_before:
            raise
        stored = steps(len(run.stream) - run.n_before)
        raise OutputError(
            f"{error}; {stored} drawn before are in the ledger, and the same command returns them"
        ) from None


def _show(published: PublishingRun, output: Path, text: Path, as_json: bool, run: LedgerRun | None) -> None:
    """Print what was published, with which error, under which guarantee; then the details, and what a run did with a ledger."""
    released, estimates, setup = published.released, published.estimates, published.setup
    assert released.alpha is not None
    known = published.known
    noise = mean_absolute_noise(released.scales, released.noise)
    beside = NoiseBesideCounts(noise, *published.present)
    if (estimates is None or estimates.seen == "each release") and (run is None or run.is_first):
        warn(beside.warning)
    half_width = None if released.estimates is None else released.estimates.half_width
    if as_json:
        say_json(
            {
                "output": output,
                "text": text,
                **({} if run is None else run.facts),
                "alpha": released.alpha,
                "guarantee": str(released.guarantee),
                "condition": observers(setup.source)
                if released.guarantee.is_temporal
                else released.guarantee.wording.condition,
                "warnings": setup.warnings,
                "accounting": released.accounting,
                "delta": released.delta,
                "noise": released.noise,
                "scales": released.drawn_scales,
                "steps": len(released.times),
                "states": released.states,
                "epsilons": released.epsilons,
                "neighboring_relation": released.neighboring_relation,
                "l1_sensitivity": 2,
                "unit": "nats",
                "noise_share": beside.share,
                "estimates": None
                if estimates is None
                else {
                    "seen": estimates.seen,
                    "used": estimates.used,
                    "fit": estimates.fit,
                    "half_width": half_width,
                },
                **({"alpha_in_all": known.in_all(released.alpha, released.delta)[0]} if known.spends else {}),
            }
        )
        return
    learning, cost = learning_fact(known, released.alpha, released.delta)
    average = number(beside.average)
    read = (
        ""
        if half_width is None
        else (
            f"Read its column estimate: typically its error is {number(typical_error(half_width, beside.noise))} people and "
            f"its 95 % interval +- {number(half_width)}, where an average count is {average}. "
        )
    )
    say(
        f"{output}: the number of people in {len(released.states)} states at {plural(len(released.times), 'time')}. {read}"
        f"{text} explains the columns.",
        f"Guarantee: {guarantee_with_odds(published.everything, setup.source, published.known, is_part=published.is_part)}",
        f"{learning.capitalize()}: {cost}." if cost else None,
    )
    plan = setup.plan
    if plan is not None and not plan.delta and plan.guarantee.is_temporal and isinstance(plan.leakage, LeakageSeries):
        listing(explanation.by_observer(plan.leakage, plan.provenance, None), left=("the observer knows",))
    drawn = released.drawn
    rows = [
        ("leakage", "" if released.accounting is None else accounting_line(released.accounting, setup.source)),
        ("counts drawn", "" if drawn.all() else f"at {drawn.sum()} of {drawn.size} times; the others are estimated"),
        ("spent per step", spread(released.epsilons[drawn], up=True, digits=4) + at_delta(released.delta)),
        ("noise", f"{discrete_noise(released.noise)}, scale {spread(released.scales[drawn], digits=4)} counts"),
        ("noise on a count", beside.sentence),
        ("estimates from", "" if estimates is None else estimates.used),
        ("fit", "" if estimates is None else estimates.fit),
        *([] if run is None else run.rows),
    ]
    facts("Details", rows)
    if run is not None:
        say("", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC: {run.line(beside.noise, half_width)}.")
    else:
        console.print("Keep this file: a second release of the same data spends the budgets again.", style="dim")


def _show_forecast(stream: ContinualRelease[Any, Any], data: Traces, as_json: bool) -> None:
    """Print the budgets and the leakage of new steps, of which none is drawn.

    Of a table of an account, jobs of other tables may have charged some of them already.
    """
    guard, found, of = stream.guard, stream.forecast(data.times), of_tables(stream)
    leakage = found[-1].leakage if found else stream.leakage
    known = [time for time in data.times if stream.has(time)]
    charged = 0 if stream.table is None else sum(stream.published(time) is None for time in known)
    new, run = len(found) - charged, LedgerRun(stream, data)
    is_over = run.steps_left == 0 or run.remaining == 0.0
    if as_json:
        say_json(
            {
                "checked": True,
                "new_steps": new,
                **({} if stream.table is None else {"table": stream.table, "charged_already": charged}),
                "ledger_steps": len(stream),
                "alpha": guard.alpha,
                "promise": guard.promise,
                "guarantee": str(guard.guarantee),
                "worst_leakage": leakage,
                "steps_left": run.steps_left,
                "remaining": run.remaining,
                "steps_behind": run.steps_behind,
                "steps": [
                    {"time": f.time, "parameter": f.parameter, "epsilon": f.epsilon, "worst_leakage": f.leakage}
                    for f in found
                ],
            }
        )
        return
    all_epochs = f" within each epoch, {number(guard.promise, up=True)} nats with all of them"
    by_others = f"{steps(charged)}, by another table's job: they leak no more"
    rows = [
        ("nothing was drawn", "this is what a release would do"),
        ("table", stream.table),
        ("charged already", "" if stream.table is None else by_others),
        ("released already", f"{steps(len(known) - charged)} of these data, which would be given again"),
        ("new", steps(new) if new else "no step"),
        ("level", f"{guard.alpha:g} nats{'' if guard.promise == guard.alpha else all_epochs}{of}"),
        ("worst leakage then", "" if leakage is None else nats(leakage) + of),
    ]
    would = f"would publish {plural(new, 'new step')}" if new else "works, and would publish nothing new"
    after = "" if run.steps_left is None else f" Of the horizon, {steps(run.steps_left - new)} would be left."
    after = " Later data would be refused: the level or the horizon is used up." if is_over else after
    say(f"A run now {would}: settings, data, ledger and output fit.{after}")
    facts("Check", rows)
    listing(
        [
            {
                "time": f.time,
                "epsilon": number(f.epsilon, up=True),
                "worst leakage": "" if f.leakage is None else number(f.leakage, up=True),
            }
            for f in found[-ROWS_ON_SCREEN:]
        ]
    )
