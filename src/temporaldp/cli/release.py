"""`temporaldp release`: publish the histograms with the planned budgets, once or step by step into a ledger."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from temporaldp import ContinualRelease, InputError, release_histograms, save_released
from temporaldp.cli import options as o
from temporaldp.cli.earlier_output import is_earlier, refuse_existing
from temporaldp.cli.operation import ledger_facts, logged, nearly_used, other_data, say_forecast, trial_place
from temporaldp.cli.released import say_release
from temporaldp.cli.render import warn, working
from temporaldp.correlation import Traces
from temporaldp.errors import InputDiffersWarning
from temporaldp.project.release import checked_output, setup_of
from temporaldp.project.smoothing import smoothing_of
from temporaldp.release.histograms import gap_before
from temporaldp.report.sentences import steps

if TYPE_CHECKING:
    from temporaldp.project.settings import Settings


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
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Publish the number of users in each state at each step, with exact discrete Laplace or Gaussian noise.

    With a ledger, the command may run again as data arrive: a published step is returned as it was, later ones are added.
    Without one, every run draws new noise and spends the budgets of the plan again.
    """
    settings = o.given(context).settings
    target = checked_output(settings, dry_run=dry_run)
    asked = settings.release
    if asked.ledger is None:
        if dry_run:
            raise InputError("--dry-run needs a ledger: --ledger LEDGER")
        refuse_existing(target, overwrite)
        _release_by_plan(settings, target, as_json=as_json)
        return
    with logged(asked.log) as line:
        _release_with_ledger(settings, target, line, dry_run=dry_run, overwrite=overwrite, as_json=as_json)


def _release_with_ledger(
    settings: Settings, output: Path, line: dict[str, Any], *, dry_run: bool, overwrite: bool, as_json: bool
) -> None:
    """Publish the steps that the ledger lacks; `line` is the line of the log."""
    asked = settings.release
    assert asked.ledger is not None
    with working("reading data"):
        setup = setup_of(settings)
    if dry_run:
        with trial_place(asked.ledger) as place, setup.opened(place) as stream:
            _forecast(stream, setup.data, as_json)
        return
    with setup.opened(asked.ledger) as stream:
        refuse_existing(output, overwrite or is_earlier(output, stream.published, setup.data))
        before, is_first, gap = len(stream), not stream.n_published, gap_before(setup.data, stream)
        again = sum(stream.published(time) is not None for time in setup.data.times)
        with working("drawing noise", stored=stream), warnings.catch_warnings():
            warnings.simplefilter("ignore", InputDiffersWarning)
            released = release_histograms(setup.data, stream, consistent=asked.consistent)
        save_released(released, output, **settings.traces.own_names)
        stored = [time for time in setup.data.times if stream.published(time) is not None]
        line |= {"new_steps": len(stream) - before, "new_published": len(stored) - again, **ledger_facts(stream)}
        warn(gap, other_data(stream, setup.data, stored), nearly_used(stream, asked.warn_at))
        smoothing = smoothing_of(setup, released, stream)
        say_release(released, setup, output, as_json, smoothing, (stream, before), is_first=is_first)


def _release_by_plan(settings: Settings, output: Path, *, as_json: bool) -> None:
    """Draw all steps of a plan at once, without a ledger."""
    with working("reading data"):
        setup = setup_of(settings)
    assert setup.plan is not None
    with working("drawing noise"):
        released = release_histograms(setup.data, setup.plan, consistent=settings.release.consistent)
    save_released(released, output, **settings.traces.own_names)
    with working("smoothing"):
        smoothing = smoothing_of(setup, released)
    say_release(released, setup, output, as_json, smoothing)


def _forecast(stream: ContinualRelease[Any, Any], data: Traces, as_json: bool) -> None:
    """Report the new steps; of a table of an account, jobs of other tables may have charged some already."""
    found, known = stream.forecast(data.times), sum(map(stream.has, data.times))
    document: dict[str, Any] = {"new_steps": len(found)}
    rows = [("nothing was drawn", "this is what a release would do")]
    if stream.table is not None:
        charged = sum(stream.has(time) and stream.published(time) is None for time in data.times)
        known -= charged
        document = {"table": stream.table, "new_steps": len(found) - charged, "charged_already": charged}
        rows += [
            ("table", stream.table),
            ("charged already", f"{steps(charged)}, by another table's job: they leak no more"),
        ]
    rows += [
        ("released already", f"{steps(known)} of these data, which would be given again"),
        ("new", steps(document["new_steps"]) if document["new_steps"] else "no step"),
    ]
    say_forecast(stream, found, as_json, document=document, rows=rows)
