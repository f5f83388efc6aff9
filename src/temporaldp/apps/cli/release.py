"""`temporaldp release`: publish the histograms with the planned budgets, once or step by step into a ledger."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from temporaldp import ContinualRelease, InputError, ReleasedHistograms, save_released
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import warn
from temporaldp.apps.cli.operation import LedgerRun, logged, nearly_used, trial_place
from temporaldp.apps.cli.released import say_forecast, say_release
from temporaldp.apps.cli.render import working
from temporaldp.base.errors import InputDiffersWarning, OutputError
from temporaldp.publish.project.publishing import earlier_counts, publish, require_unpublished, smoothed, with_earlier
from temporaldp.publish.project.release import ReleaseSetup, checked_output, setup_of
from temporaldp.publish.release.histograms import require_reached
from temporaldp.publish.report.sentences import steps


def release(
    context: typer.Context,
    traces_path: o.TracesArgument = None,
    history_path: o.HistoryOption = None,
    privacy_alpha: o.AlphaOption = None,
    release_plan: Annotated[
        Path | None, o.option("--plan", help="Plan (from `temporaldp plan`), in place of --alpha.", metavar="FILE")
    ] = None,
    release_ledger: Annotated[
        str | None,
        o.option("--ledger", help="SQLite file or postgresql:// URL that stores every step.", metavar="LEDGER"),
    ] = None,
    release_output: Annotated[
        Path | None, o.option("--output", "-o", help="Published counts (.parquet or .csv).", metavar="FILE")
    ] = None,
    privacy_horizon: o.HorizonOption = None,
    dry_run: Annotated[
        bool, o.option("--dry-run", help="Report what would be spent and leak; draw and write nothing.")
    ] = False,
    overwrite: o.OverwriteOption = False,
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
    target, ledger = checked_output(settings, dry_run=dry_run), settings.release.ledger
    if dry_run and ledger is None:
        raise InputError("--dry-run needs a ledger: --ledger LEDGER")
    if dry_run and begin_anew:
        raise InputError("--dry-run writes nothing, and --begin-anew is recorded in the ledger: leave out one of them")
    with logged(None if ledger is None else settings.release.log) as line:
        with working("reading data"):
            setup = setup_of(settings)
        if dry_run:
            assert ledger is not None
            with trial_place(ledger, settings.release.output) as place, setup.opened(place) as stream:
                new = [time for time in setup.data.times if not stream.has(time)]
                require_reached(setup.data, new, settings.release.reached)
                say_forecast(stream, setup.data, as_json)
            return
        if ledger is None:
            require_unpublished(target, setup.data, begin_anew=begin_anew)
        with nullcontext() if ledger is None else setup.opened(ledger, begin_anew=begin_anew) as opened:
            earlier = earlier_counts(target, setup.data, opened, overwrite or begin_anew)
            _publish(setup, opened, target, earlier, line, as_json)


def _publish(
    setup: ReleaseSetup,
    stream: ContinualRelease[Any, Any] | None,
    output: Path,
    earlier: ReleasedHistograms | None,
    line: dict[str, Any],
    as_json: bool,
) -> None:
    """Publish the steps of a plan, or those that the ledger lacks; `line` is the line of the log."""
    run = None if stream is None else LedgerRun(stream, setup.data)
    try:
        with working("drawing noise", stored=stream), warnings.catch_warnings():
            warnings.simplefilter("ignore", InputDiffersWarning)
            released = publish(setup, stream)
            line |= {} if run is None else run.facts  # what is stored, also where the output cannot be written
            everything = with_earlier(released, earlier, stream)
            save_released(everything, output, **setup.settings.traces.own_names)
            smoothing = smoothed(everything, setup, stream)
        if run is not None:
            warn(run.gap, run.other_data, nearly_used(run.stream, setup.settings.release.warn_at))
        say_release(released, setup, output, as_json, smoothing, run)
    except OutputError as error:
        if run is None or len(run.stream) == run.n_before:
            raise
        stored = steps(len(run.stream) - run.n_before)
        raise OutputError(
            f"{error}; {stored} drawn before are in the ledger, and the same command returns them"
        ) from None
