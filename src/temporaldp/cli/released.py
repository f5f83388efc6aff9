"""Output of `temporaldp release`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from temporaldp import ContinualRelease, ReleasedHistograms
from temporaldp.cli.render import console, facts, learning_facts, say_json, warn
from temporaldp.planning.histogram_noise import mean_absolute_noise
from temporaldp.project.inputs import absences
from temporaldp.project.release import ReleaseSetup
from temporaldp.project.smoothing import Smoothing
from temporaldp.release.renewal import renewal_of
from temporaldp.report.sentences import (
    NoiseBesideCounts,
    accounting_line,
    at_delta,
    discrete_noise,
    guarantee_line,
    impossible_counts,
    nats,
    renewed_line,
    span,
    steps,
)


def say_release(
    released: ReleasedHistograms,
    setup: ReleaseSetup,
    output: Path,
    as_json: bool,
    smoothing: Smoothing | None,
    ledger: tuple[ContinualRelease[Any, Any], int] | None = None,
    *,
    is_first: bool = True,
) -> None:
    """Write smoothed counts and print the release; of a `ledger`, with the number of steps that it had before.

    The noise of counts that are not smoothed is warned about when they are published for the first time.
    """
    assert released.alpha is not None
    source = setup.source if smoothing is None else setup.source.with_learning_of(smoothing.correlation.source)
    smoothed = [] if smoothing is None else smoothing.save()
    beside = NoiseBesideCounts(
        mean_absolute_noise(released.scales, released.noise), setup.data.n_users, len(released.states)
    )
    warn(setup.source.warning, absences(setup.data))
    if is_first and smoothing is None:
        warn(beside.warning, impossible_counts(released, setup.data.n_users))
    if as_json:
        say_json(
            {
                "output": output,
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
                **({} if ledger is None else ledger_document(*ledger)),
                **(
                    {"alpha_in_all": source.in_all(released.alpha, released.delta)[0]}
                    if source.learning_epsilon
                    else {}
                ),
                **({} if smoothing is None else smoothing.document),
            }
        )
        return
    show_release(
        released,
        output,
        ("noise beside counts", beside.sentence),
        *learning_facts(source, released.alpha, released.delta),
        *(() if ledger is None else ledger_rows(*ledger)),
        *smoothed,
    )
    if ledger is None:
        console.print("Keep this file: a second release of the same data spends the budgets again.", style="dim")


def ledger_document(stream: ContinualRelease[Any, Any], before: int) -> dict[str, Any]:
    """Return the ledger after a release as JSON values."""
    return {
        **({} if stream.table is None else {"table": stream.table}),
        "ledger": stream.ledger.place,
        "ledger_steps": len(stream),
        "new_steps": len(stream) - before,
        "head": stream.ledger.head,
        "worst_leakage": stream.leakage,
        "alpha_of_epoch": stream.guard.alpha,
    }


def ledger_rows(stream: ContinualRelease[Any, Any], before: int) -> list[tuple[str, str]]:
    """Return rows about the ledger after a release."""
    rows = [] if stream.table is None else [("table", stream.table)]
    rows.append(("ledger", f"{stream.ledger.place}: {steps(before)} before, {steps(len(stream))} now"))
    renewal = renewal_of(stream.ledger)
    rows += [] if renewal is None else [("renewed", renewed_line(renewal))]
    if stream.leakage is not None:
        rows.append(("largest leakage so far", nats(stream.leakage) + of_tables(stream)))
    return [*rows, ("head", f"{stream.ledger.head[:16]} (note it for `temporaldp ledger verify --head`)")]


def of_tables(stream: ContinualRelease[Any, Any]) -> str:
    """What a level and a leakage are about, where they are not about this release alone."""
    return "" if stream.table is None else ", of all tables together"


def show_release(released: ReleasedHistograms, output: Path, *more: tuple[str, str]) -> None:
    """Print the release, with `more` rows."""
    assert released.alpha is not None
    rows = [
        ("written to", str(output)),
        ("histograms", f"{steps(len(released.times))} of {len(released.states)} states"),
        ("guarantee", guarantee_line(released.alpha, released.delta)),
        *([] if released.accounting is None else [("leakage", accounting_line(released.accounting))]),
        ("spent per step", span(released.epsilons, up=True) + at_delta(released.delta)),
        ("noise", f"{discrete_noise(released.noise)}, scale {span(released.scales)} counts"),
        (
            "post-processing",
            "non-negative, public total kept" if released.consistent else "none: counts may be negative",
        ),
    ]
    facts("Released", [*rows, *more])
