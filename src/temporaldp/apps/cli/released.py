"""Output of `temporaldp release`: what is replaced, printed and, in a dry run, foreseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from temporaldp import ContinualRelease, ReleasedHistograms
from temporaldp.apps.cli.console import console, warn
from temporaldp.apps.cli.operation import LedgerRun, of_tables
from temporaldp.apps.cli.render import MOST_ROWS, facts, learning_fact, listing, say_json
from temporaldp.base.display import number
from temporaldp.core.planning.histogram_noise import mean_absolute_noise
from temporaldp.data.tables import Traces
from temporaldp.publish.project.inputs import absences
from temporaldp.publish.project.publishing import Smoothing
from temporaldp.publish.project.release import ReleaseSetup
from temporaldp.publish.report.sentences import (
    NoiseBesideCounts,
    accounting_line,
    at_delta,
    discrete_noise,
    guarantee_line,
    impossible_counts,
    nats,
    span,
    steps,
)


def say_release(
    released: ReleasedHistograms,
    setup: ReleaseSetup,
    output: Path,
    as_json: bool,
    smoothing: Smoothing | None,
    run: LedgerRun | None,
) -> None:
    """Write smoothed counts and print the release, and what a run did with a ledger.

    The noise of counts that are not smoothed is warned about when they are published for the first time.
    """
    assert released.alpha is not None
    source = setup.source if smoothing is None else setup.source.with_learning_of(smoothing.correlation.source)
    smoothed = [] if smoothing is None else smoothing.save()
    beside = NoiseBesideCounts(
        mean_absolute_noise(released.scales, released.noise), setup.data.n_users, len(released.states)
    )
    warn(setup.source.warning, absences(setup.data))
    if smoothing is None and (run is None or run.is_first):
        warn(beside.warning, impossible_counts(released, setup.data.n_users))
    if as_json:
        in_all = source.in_all(released.alpha, released.delta)[0]
        say_json(
            {
                "output": output,
                **({} if run is None else run.facts),
                "alpha": released.alpha,
                "accounting": released.accounting,
                "delta": released.delta,
                "noise": released.noise,
                "scales": released.scales,
                "steps": len(released.times),
                "states": released.states,
                "epsilons": released.epsilons,
                "consistent": released.consistent,
                "neighboring_relation": released.neighboring_relation,
                "l1_sensitivity": 2,
                "unit": "nats",
                "noise_beside_counts": beside.share,
                **({"alpha_in_all": in_all} if source.learning_epsilon else {}),
                **({} if smoothing is None else smoothing.document),
            }
        )
        return
    rows = [
        ("written to", str(output)),
        ("histograms", f"{steps(len(released.times))} of {len(released.states)} states"),
        ("guarantee", guarantee_line(released.alpha, released.delta)),
        ("leakage", "" if released.accounting is None else accounting_line(released.accounting)),
        ("spent per step", span(released.epsilons, up=True) + at_delta(released.delta)),
        ("noise", f"{discrete_noise(released.noise)}, scale {span(released.scales)} counts"),
        (
            "post-processing",
            "non-negative, public total kept" if released.consistent else "none: counts may be negative",
        ),
        ("noise beside counts", beside.sentence),
        learning_fact(source, released.alpha, released.delta),
        *([] if run is None else run.rows),
        *smoothed,
    ]
    facts("Released", rows)
    if run is None:
        console.print("Keep this file: a second release of the same data spends the budgets again.", style="dim")


def say_forecast(stream: ContinualRelease[Any, Any], data: Traces, as_json: bool) -> None:
    """Print the budgets and the leakage of new steps, of which none is drawn.

    Of a table of an account, jobs of other tables may have charged some of them already.
    """
    guard, found, of = stream.guard, stream.forecast(data.times), of_tables(stream)
    leakage = found[-1].leakage if found else stream.leakage
    known = [time for time in data.times if stream.has(time)]
    charged = 0 if stream.table is None else sum(stream.published(time) is None for time in known)
    new = len(found) - charged
    if as_json:
        listed = [
            {"time": f.time, "parameter": f.parameter, "epsilon": f.epsilon, "worst_leakage": f.leakage} for f in found
        ]
        table = {} if stream.table is None else {"table": stream.table, "charged_already": charged}
        terms = {"ledger_steps": len(stream), "alpha": guard.alpha, "worst_leakage": leakage, "steps": listed}
        say_json({"dry_run": True, "new_steps": new, **table, **terms})
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
    facts("Dry run", rows)
    listing(
        [
            {
                "time": f.time,
                "epsilon": number(f.epsilon, up=True),
                "worst leakage": "" if f.leakage is None else number(f.leakage, up=True),
            }
            for f in found[-MOST_ROWS:]
        ]
    )
