"""`temporaldp release`: publish the histograms with the planned budgets, once or step by step into a ledger."""

from __future__ import annotations

import os
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from temporaldp import (
    ContinualRelease,
    InputDiffersWarning,
    InputError,
    PublicCorrelation,
    filtered_histograms,
    load_plan,
    release_histograms,
    save_released,
)
from temporaldp import smooth as smooth_released
from temporaldp.cli import options as o
from temporaldp.cli import release_options as r
from temporaldp.cli.earlier_output import is_earlier, refuse_existing
from temporaldp.cli.operation import ledger_facts, logged, nearly_used, other_data, say_forecast, trial_place
from temporaldp.cli.release_setup import Setup, plan_alone, setup_of
from temporaldp.cli.released import Smoothing, say_release
from temporaldp.cli.render import warn, working
from temporaldp.cli.shared_release import AskedTable, refuse_account, release_table
from temporaldp.cli.smoothing import public_correlation
from temporaldp.errors import OutputError
from temporaldp.files.atomic import require_writable
from temporaldp.release.database import file_of
from temporaldp.release.histograms import gap_before
from temporaldp.release.outputs import from_text
from temporaldp.release.released import release_suffix
from temporaldp.release.store import Store


@o.grouped
def release(
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    traces: o.TracesArgument = None,
    ledger: r.LedgerOption = None,
    alpha: r.AlphaOption = None,
    plan: r.PlanOption = None,
    output: r.OutputOption = None,
    dry_run: r.DryRunOption = False,
    consistent: r.ConsistentOption = False,
    overwrite: o.OverwriteOption = False,
    as_json: o.JsonOption = False,
    horizon: r.HorizonOption = None,
    renew: r.RenewOption = None,
    bound: r.LeakageOption = None,
    table: r.TableOption = None,
    head: r.HeadOption = None,
    warn_at: r.WarnOption = None,
    log: r.LogOption = None,
    smooth: r.SmoothOption = None,
    same_start: o.SameStartOption = False,
    synthetic: o.SyntheticOption = None,
) -> None:
    """Publish how many people are in each state at each step, with exact discrete Laplace noise, or what the plan says.

    A release that goes on: `temporaldp release traces.csv --alpha 1 --history past.csv --ledger release.db -o counts.csv`. Run
    again, it gives each step that was released the same counts, and adds later ones.

    With --plan and no --ledger, every run draws new noise and spends the budgets again: an output that exists is kept unless
    you say --overwrite.
    """
    output = _checked_output(output, (traces, plan, *known.files, *reading.files), dry_run=dry_run)
    _require_smoothing(smooth, synthetic, output, (traces, plan, *known.files, *reading.files), consistent, same_start)
    if table is not None:
        if ledger is None:
            raise InputError("--table names a table of an account: say which with --ledger LEDGER")
        _require_account_only((plan, alpha, horizon, bound, smooth, renew), known)
    if ledger is None:
        _require_plan_only(
            plan,
            alpha,
            horizon,
            bound,
            o.CorrelationOptions() if smooth is not None else known,
            upkeep=(dry_run, warn_at, log, head, renew),
        )
        assert plan is not None
        refuse_existing(output, overwrite)
        _release_by_plan(
            plan, traces, reading, known, output, smooth, synthetic,
            consistent=consistent, same_start=same_start, as_json=as_json,
        )  # fmt: skip
        return
    file = file_of(ledger)
    if file is not None and os.path.realpath(file) == os.path.realpath(output):
        raise OutputError(f"--ledger and --output are both {output}; the counts would take the ledger's place")
    share = None if warn_at is None else _checked_share(warn_at)
    with logged(log) as line:
        if table is None:
            refuse_account(ledger)
        else:
            asked = AskedTable(ledger, table, head, share, consistent=consistent, overwrite=overwrite, as_json=as_json)
            release_table(asked, traces, reading, output, line, dry_run=dry_run)
            return
        setup = setup_of(
            traces,
            reading,
            known,
            plan,
            alpha,
            horizon,
            bound,
            smoothing=smooth is not None,
            renewed=None if renew is None else renew.value,
        )
        public = (
            None
            if smooth is None
            else public_correlation(traces, reading, known, setup.data.states, same_start=same_start)
        )
        if dry_run:
            with trial_place(ledger) as place, _opened(setup, place, public) as stream:
                if head is not None:
                    stream.ledger.verify(head=head)
                say_forecast(stream, setup.data, as_json)
            return
        with _opened(setup, ledger, public) as stream:
            if head is not None:
                stream.ledger.verify(head=head)
            if not overwrite and not is_earlier(output, partial(_published, stream), setup.data):
                refuse_existing(output, overwrite)
            before, gap = len(stream), gap_before(setup.data, stream)
            with working("drawing noise", stored=stream), warnings.catch_warnings():
                warnings.simplefilter("ignore", InputDiffersWarning)
                released = release_histograms(setup.data, stream, consistent=consistent)
            save_released(released, output)
            line |= {"new_steps": len(stream) - before, **ledger_facts(stream)}
            warn(gap)
            warn(other_data(stream, setup.data, [t for t in setup.data.times if _published(stream, t) is not None]))
            warn(nearly_used(stream, share))
            found = None if public is None else filtered_histograms(setup.data, stream)
            say_release(
                released, setup, output, (stream, before), as_json, Smoothing.of(found, public, smooth, synthetic)
            )


def _release_by_plan(
    plan: Path,
    traces: Path | None,
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    output: Path,
    smooth: Path | None,
    synthetic: Path | None,
    *,
    consistent: bool,
    same_start: bool,
    as_json: bool,
) -> None:
    """Draw all of it, once, without a ledger."""
    setup = plan_alone(load_plan(plan), traces, reading)
    assert setup.plan is not None
    public = None
    if smooth is not None:
        public = public_correlation(traces, reading, known, setup.data.states, same_start=same_start)
    with working("drawing noise"):
        released = release_histograms(setup.data, setup.plan, consistent=consistent)
    save_released(released, output)
    found = None
    if public is not None:
        totals = setup.data.histogram().sum(axis=1)
        with working("smoothing"):
            found = smooth_released(released, public, total=totals, times=setup.data.times)
    say_release(released, setup, output, None, as_json, Smoothing.of(found, public, smooth, synthetic))


def _checked_output(output: Path | None, reads: tuple[Path | None, ...], *, dry_run: bool) -> Path:
    """Where the counts are written; a dry run writes none."""
    if output is None:
        if not dry_run:
            raise InputError("expected --output FILE (.parquet or .csv), where the counts are written")
        return Path(os.devnull)
    release_suffix(output)
    require_writable(output, reads=reads)
    return output


def _published(stream: ContinualRelease[Any, Any], time: str) -> Any:
    """What the ledger has of a time; None if it has nothing."""
    text = stream.row(time).output if stream.has(time) else None
    return None if text is None else from_text(text)


def _opened(setup: Setup, ledger: str | Store, public: PublicCorrelation | None) -> ContinualRelease[Any, Any]:
    return ContinualRelease(
        setup.mechanism,
        ledger=ledger,
        accountant=setup.accountant,
        plan=setup.plan,
        states=setup.data.states,
        step=setup.source.step,
        correlation=public,
        renewed=setup.renewed,
    )


def _require_smoothing(
    smooth: Path | None,
    synthetic: Path | None,
    output: Path,
    reads: tuple[Path | None, ...],
    consistent: bool,
    same_start: bool,
) -> None:
    if smooth is None:
        if same_start:
            raise InputError("--same-start tells of the counts that --smooth writes: give --smooth FILE too")
        if synthetic is not None:
            raise InputError("--synthetic draws traces from smoothed counts: give --smooth FILE too")
        return
    if consistent:
        raise InputError(
            "--consistent changes the counts that --smooth reads: leave it out. Smoothed counts are consistent anyway"
        )
    release_suffix(smooth)
    for place in (smooth, synthetic):
        if place is not None:
            require_writable(place, reads=(*reads, output))
    if len({os.path.realpath(place) for place in (output, smooth, synthetic) if place}) < 2 + (synthetic is not None):
        raise OutputError("--output, --smooth and --synthetic name the same file; give each its own")


def _checked_share(share: float) -> float:
    if not 0.0 < share <= 1.0:
        raise InputError(f"expected --warn-at to be a share above 0 and up to 1, such as 0.8, got {share:g}")
    return share


def _require_account_only(given: tuple[object, ...], known: o.CorrelationOptions) -> None:
    if any(one is not None for one in given) or known != o.CorrelationOptions():
        raise InputError(
            "with --table, the account says the level and what the adversary knows: leave out --plan, --alpha, --horizon, "
            "--bound, --renew and the correlation (see `temporaldp ledger share`). --smooth is for a release of one table"
        )


def _require_plan_only(
    plan: Path | None,
    alpha: float | None,
    horizon: int | None,
    bound: o.Bounds | None,
    known: o.CorrelationOptions,
    upkeep: tuple[bool, float | None, Path | None, str | None, o.Renewals | None],
) -> None:
    if any(upkeep):
        raise InputError("--dry-run, --warn-at, --log, --head and --renew are for a release with --ledger")
    if any(one is not None for one in (alpha, horizon, bound)) or known != o.CorrelationOptions():
        raise InputError(
            "--alpha, --horizon, --bound and what the adversary knows are for a release with --ledger; without one, "
            "`temporaldp plan` takes them, and --plan its result"
        )
    if plan is None:
        raise InputError("expected --plan PLAN (from `temporaldp plan`), or --ledger LEDGER with --plan or --alpha")
