"""`temporaldp release`: publish the histograms with the planned budgets, once or step by step into a ledger."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from temporaldp import (
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputDiffersWarning,
    InputError,
    NoisyHistogram,
    PublicCorrelation,
    ReleasedHistograms,
    SmoothedHistograms,
    TemporalAccountant,
    Traces,
    consistent_counts,
    filtered_histograms,
    load_plan,
    load_released,
    release_histograms,
    save_released,
)
from temporaldp import smooth as smooth_released
from temporaldp.cli import options as o
from temporaldp.cli.inputs import absences, gather, read_data
from temporaldp.cli.operation import ledger_facts, logged, nearly_used, other_data, say_forecast, trial_place
from temporaldp.cli.render import console, facts, say_json, warn, working
from temporaldp.cli.smoothing import public_correlation, save_all, smoothed_document
from temporaldp.errors import OutputError
from temporaldp.files.atomic import require_writable
from temporaldp.planning import NoisePlan, Plan
from temporaldp.planning.histogram_noise import mean_absolute_noise
from temporaldp.release.histogram import histogram_mechanism
from temporaldp.release.histograms import gap_before
from temporaldp.release.outputs import from_text
from temporaldp.release.released import release_suffix
from temporaldp.release.store import file_of
from temporaldp.report.noise_beside_counts import NoiseBesideCounts, impossible_counts
from temporaldp.report.words import number, span, steps

LEDGER = "Ledger: steps released once, whatever happens"


@dataclass(frozen=True, slots=True)
class Setup:
    """What a release is made of: what holds the level (a plan, an accountant, or both), and the data."""

    plan: Plan | None
    accountant: TemporalAccountant | None
    data: Traces
    step: str | None
    warning: str | None

    @property
    def mechanism(self) -> DiscreteLaplaceHistogram | NoisyHistogram:
        """What publishes a histogram."""
        n_states = self.data.n_states
        return DiscreteLaplaceHistogram(n_states) if self.plan is None else histogram_mechanism(self.plan, n_states)


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Smoothed counts, what they were smoothed by, and where to write them."""

    found: SmoothedHistograms
    correlation: PublicCorrelation
    output: Path
    synthetic: Path | None

    @classmethod
    def of(
        cls,
        found: SmoothedHistograms | None,
        correlation: PublicCorrelation | None,
        output: Path | None,
        synthetic: Path | None,
    ) -> Smoothing | None:
        """None where nothing was smoothed."""
        if found is None or correlation is None or output is None:
            return None
        return cls(found, correlation, output, synthetic)

    def save(self) -> list[tuple[str, str]]:
        """Write them; what to say of them."""
        return save_all(self.found, self.correlation, self.output, self.synthetic)


@o.grouped
def release(
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the counts (.parquet or .csv).", show_default=False)
    ],
    traces: o.TracesArgument = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="Plan from `temporaldp plan`.", show_default=False)
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            help="SQLite file or postgresql:// URL that keeps every step (with --plan or --alpha): run again as data arrive.",
            show_default=False,
            rich_help_panel=LEDGER,
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            help="Level to hold, in nats, instead of a plan: every step gets what lasts for ever (needs a correlation).",
            show_default=False,
            rich_help_panel=LEDGER,
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            "--horizon",
            metavar="T",
            help="With --alpha: the release ends after T steps, and gets the optimal plan for them.",
            show_default=False,
            rich_help_panel=LEDGER,
        ),
    ] = None,
    bound: Annotated[
        o.Bounds | None,
        typer.Option(
            "--bound",
            help="By which leakage an accountant, of a correlation, counts: exact (default) or paper, an upper bound of it.",
            show_default=False,
            rich_help_panel=LEDGER,
        ),
    ] = None,
    consistent: Annotated[
        bool, typer.Option("--consistent", help="Post-process to non-negative counts that keep the public total.")
    ] = False,
    smooth: Annotated[
        Path | None,
        typer.Option(
            "--smooth",
            help="Also write counts smoothed by a public correlation (--history, --forward), with 95 % intervals; with a "
            "ledger each step from the past alone, stored with it.",
            show_default=False,
        ),
    ] = None,
    synthetic: o.SyntheticOption = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            help="A head that was noted elsewhere: an older copy of the ledger releases nothing (exit code 4).",
            show_default=False,
            rich_help_panel=LEDGER,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Say what would be spent and what would leak; nothing is drawn or written.",
            rich_help_panel=LEDGER,
        ),
    ] = False,
    warn_at: Annotated[
        float | None,
        typer.Option(
            "--warn-at",
            metavar="SHARE",
            help="Warn once this share of alpha (or, under a plan, of its steps) is used, such as 0.8.",
            show_default=False,
            rich_help_panel=LEDGER,
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="Append one line of JSON about this run: numbers and codes, nothing about a person.",
            show_default=False,
            rich_help_panel=LEDGER,
        ),
    ] = None,
    overwrite: o.OverwriteOption = False,
    as_json: o.JsonOption = False,
) -> None:
    """Publish how many people are in each state at each step, with exact discrete Laplace noise, or what the plan says.

    With --plan alone, every run draws new noise and spends the budgets again: an output that exists is kept unless you say
    --overwrite. With --ledger, a step that was released gives the same counts again, and later ones are added.
    """
    release_suffix(output)
    require_writable(output, reads=(traces, plan, *known.files, *reading.files))
    _require_smoothing(smooth, synthetic, output, (traces, plan, *known.files, *reading.files), consistent)
    if ledger is None:
        _require_plan_only(
            plan,
            alpha,
            horizon,
            bound,
            o.CorrelationOptions() if smooth is not None else known,
            upkeep=(dry_run, warn_at, log, head),
        )
        assert plan is not None
        _refuse_existing(output, overwrite)
        setup = _plan_alone(load_plan(plan), traces, reading)
        assert setup.plan is not None
        public = None if smooth is None else public_correlation(traces, reading, known, setup.data.states)
        with working("drawing noise"):
            released = release_histograms(setup.data, setup.plan, consistent=consistent)
        save_released(released, output)
        found = None
        if public is not None:
            totals = setup.data.histogram().sum(axis=1)
            with working("smoothing"):
                found = smooth_released(released, public, total=totals, times=setup.data.times)
        _say(released, setup, output, None, as_json, Smoothing.of(found, public, smooth, synthetic))
        return
    file = file_of(ledger)
    if file is not None and os.path.realpath(file) == os.path.realpath(output):
        raise OutputError(f"--ledger and --output are both {output}; the counts would take the ledger's place")
    share = None if warn_at is None else _checked_share(warn_at)
    with logged(log) as line:
        setup = _setup(traces, reading, known, plan, alpha, horizon, bound, smoothing=smooth is not None)
        public = None if smooth is None else public_correlation(traces, reading, known, setup.data.states)
        if dry_run:
            with trial_place(ledger) as place, _opened(setup, place, public) as stream:
                if head is not None:
                    stream.ledger.verify(head=head)
                say_forecast(stream, setup.data, as_json)
            return
        with _opened(setup, ledger, public) as stream:
            if head is not None:
                stream.ledger.verify(head=head)
            if not overwrite and not _is_earlier(output, stream, setup.data):
                _refuse_existing(output, overwrite)
            before, gap = len(stream), gap_before(setup.data, stream)
            with working("drawing noise"), warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", InputDiffersWarning)
                released = release_histograms(setup.data, stream, consistent=consistent)
            save_released(released, output)
            line |= {"new_steps": len(stream) - before, **ledger_facts(stream)}
            warn(gap)
            warn(other_data([str(one.message.time) for one in told if isinstance(one.message, InputDiffersWarning)]))
            warn(nearly_used(stream, share))
            found = None if public is None else filtered_histograms(setup.data, stream)
            _say(released, setup, output, (stream, before), as_json, Smoothing.of(found, public, smooth, synthetic))


def _opened(setup: Setup, ledger: str, public: PublicCorrelation | None) -> ContinualRelease[Any, Any]:
    return ContinualRelease(
        setup.mechanism,
        ledger=ledger,
        accountant=setup.accountant,
        plan=setup.plan,
        states=setup.data.states,
        step=setup.step,
        correlation=public,
    )


def _require_smoothing(
    smooth: Path | None, synthetic: Path | None, output: Path, reads: tuple[Path | None, ...], consistent: bool
) -> None:
    if smooth is None:
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


def _require_plan_only(
    plan: Path | None,
    alpha: float | None,
    horizon: int | None,
    bound: o.Bounds | None,
    known: o.CorrelationOptions,
    upkeep: tuple[bool, float | None, Path | None, str | None],
) -> None:
    if any(upkeep):
        raise InputError("--dry-run, --warn-at, --log and --head are for a release with --ledger")
    if any(one is not None for one in (alpha, horizon, bound)) or known != o.CorrelationOptions():
        raise InputError(
            "--alpha, --horizon, --bound and what the adversary knows are for a release with --ledger; without one, "
            "`temporaldp plan` takes them, and --plan its result"
        )
    if plan is None:
        raise InputError("expected --plan PLAN (from `temporaldp plan`), or --ledger LEDGER with --plan or --alpha")


def _refuse_existing(output: Path, overwrite: bool) -> None:
    if output.exists() and not overwrite:
        raise OutputError(
            f"{output} exists; releasing the same data twice spends the budgets twice. If that file was never shown to "
            "anybody, say --overwrite; otherwise keep it"
        )


def _is_earlier(output: Path, stream: ContinualRelease[Any, Any], data: Traces) -> bool:
    """Whether the file is what this ledger released before, and all of it comes again: replacing it loses nothing."""
    if not output.exists():
        return True
    try:
        old = load_released(output)
    except InputError:
        return False
    if not set(old.times) <= set(data.times) or set(old.states) != set(data.states):
        return False
    for time, counts in zip(old.times, old.reordered(data.states).counts, strict=True):
        kept = from_text(stream.row(time).output or "null") if stream.has(time) else None
        if not isinstance(kept, np.ndarray):
            return False
        total = sum(counts.tolist())  # Python's: a foreign file may hold anything
        same = np.array_equal(counts, kept)
        if not same and (total < 0 or not np.array_equal(counts, consistent_counts(kept, total=total))):
            return False
    return True


def _setup(
    traces: Path | None,
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    plan: Path | None,
    alpha: float | None,
    horizon: int | None,
    bound: o.Bounds | None,
    *,
    smoothing: bool,
) -> Setup:
    """What holds the level of a release with a ledger."""
    if plan is None and alpha is None:
        raise InputError("--ledger needs something that holds a level: --plan PLAN, or --alpha A with a correlation")
    if plan is not None and alpha is not None:
        raise InputError("--plan has a level of its own: leave out --alpha, or the plan")
    if plan is not None and horizon is not None:
        raise InputError("--horizon goes with --alpha: a plan has its own")
    planned = None if plan is None else load_plan(plan)
    if known == o.CorrelationOptions():
        if planned is None:
            raise InputError(
                "--alpha needs what the adversary knows: --history, or --backward and --forward. It is not learnt from TRACES: "
                "they grow from run to run, and are what is to be protected"
            )
        if bound is not None:
            raise InputError(
                "--bound says by which leakage an accountant counts, and the plan alone has none: it holds alpha by the bound "
                "that it was made with. Leave out --bound, or give what the adversary knows (--history)"
            )
        return _plan_alone(planned, traces, reading)
    if known.history is None and known.backward is None and known.forward is None:
        raise InputError("with --ledger, a correlation is learnt from --history only: TRACES grow from run to run")
    if isinstance(planned, NoisePlan):
        if smoothing and alpha is None and bound is None:  # the correlation is there to smooth by
            return _plan_alone(planned, traces, reading)
        raise InputError(
            "the plan's noise is fixed beforehand and holds the level by itself: leave out --history, --backward and "
            "--forward. They are for an accountant, which lets budgets be chosen as one goes; at a delta that may not be, "
            "because hockey-stick divergences do not compose along adaptive paths"
        )
    counted = bound or o.Bounds.EXACT
    if planned is not None and planned.bound == "exact" and counted is o.Bounds.PAPER:
        raise InputError(
            "the plan holds alpha by the exact leakage, and the paper's bound of it is larger: leave out --bound paper, or plan"
            " with --bound paper"
        )
    found = gather(traces, reading, known, None if planned is None else planned.source.states)
    assert found.trajectories is not None
    level, ends = (alpha, horizon) if planned is None else (planned.alpha, planned.horizon)
    accountant = TemporalAccountant(found.everyone, alpha=level, horizon=ends, bound=counted.value)
    warning = (None if planned is None else planned.source.warning) or found.provenance.warning
    return Setup(planned, accountant, found.trajectories, found.step, warning)


def _plan_alone(plan: Plan, traces: Path | None, reading: o.TraceOptions) -> Setup:
    return Setup(plan, None, read_data(traces, reading, plan.source.states), plan.source.step, plan.source.warning)


def _say(
    released: ReleasedHistograms,
    setup: Setup,
    output: Path,
    ledger: tuple[ContinualRelease[Any, Any], int] | None,
    as_json: bool,
    smoothing: Smoothing | None,
) -> None:
    """Write what is still to be written, and tell everything."""
    warn(setup.warning)
    warn(absences(setup.data))
    beside = NoiseBesideCounts(
        mean_absolute_noise(released.scales, released.noise), setup.data.n_users, len(released.states)
    )
    smoothed = [] if smoothing is None else smoothing.save()
    if smoothing is None:
        warn(beside.warning)
        warn(impossible_counts(released, setup.data.n_users))
    if as_json:
        document = _document(released, output) | {"noise_beside_counts": beside.share}
        document |= {} if ledger is None else _ledger_document(*ledger)
        say_json(document | ({} if smoothing is None else smoothed_document(smoothing.found, smoothing.output)))
        return
    more = (() if ledger is None else _ledger_facts(*ledger)) + tuple(smoothed)
    show_release(released, output, (("noise beside counts", beside.sentence), *more))
    if ledger is None:
        console.print(
            "Keep this file: a second release of the same data spends the budgets a second time.", style="dim"
        )


def _ledger_document(stream: ContinualRelease[Any, Any], before: int) -> dict[str, Any]:
    return {
        "ledger": stream.ledger.place,
        "ledger_steps": len(stream),
        "new_steps": len(stream) - before,
        "head": stream.ledger.head,
        "worst_leakage": stream.ledger[-1].leakage,
    }


def _ledger_facts(stream: ContinualRelease[Any, Any], before: int) -> tuple[tuple[str, str], ...]:
    rows = [("ledger", f"{stream.ledger.place}: {steps(before)} before, {steps(len(stream))} now")]
    worst = stream.ledger[-1].leakage
    if worst is not None:
        rows.append(("worst leakage so far", f"{number(worst, up=True)} nats"))
    return (*rows, ("head", f"{stream.ledger.head[:16]} (note it: `temporaldp ledger verify --head` looks for it)"))


def _document(released: ReleasedHistograms, output: Path) -> dict[str, object]:
    return {
        "output": str(output),
        "alpha": released.alpha,
        "bound": released.bound,
        "delta": released.delta,
        "noise": released.noise,
        "scales": released.scales.tolist(),
        "steps": len(released.times),
        "states": released.states,
        "epsilons": released.epsilons.tolist(),
        "consistent": released.consistent,
        "neighboring_relation": released.neighboring_relation,
        "l1_sensitivity": 2,
        "unit": "nats",
    }


def promised(alpha: float, delta: float) -> str:
    """The guarantee of a release in a line."""
    if delta:
        return f"at most {alpha:g} nats at delta {delta:g} about any step ((alpha, delta)-DP_T), replace one person's value"
    return f"at most {alpha:g} nats about any step (alpha-DP_T), replace one person's value"


def show_release(released: ReleasedHistograms, output: Path, more: tuple[tuple[str, str], ...] = ()) -> None:
    """What was released just now, for people."""
    assert released.alpha is not None
    rows = [
        ("written to", str(output)),
        ("histograms", f"{steps(len(released.times))} of {len(released.states)} states"),
        ("guarantee", promised(released.alpha, released.delta)),
        *([("by", "the paper's upper bound of the leakage")] if released.bound == "paper" else []),
        (
            "spent per step",
            span(released.epsilons, up=True) + (f" at delta {released.delta:g}" if released.delta else ""),
        ),
        ("noise", f"exact discrete {released.noise.capitalize()} (OpenDP), scale {span(released.scales)} counts"),
        (
            "post-processing",
            "non-negative, public total kept" if released.consistent else "none: counts may be negative",
        ),
    ]
    facts("Released", [*rows, *more])
