"""Output of `temporaldp release`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from temporaldp import ContinualRelease, ReleasedHistograms
from temporaldp.cli.render import console, facts, learning_facts, say_json, warn
from temporaldp.correlation import Traces
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
) -> None:
    """Write smoothed counts and print the release; of a `ledger`, with the number of steps that it had before."""
    assert released.alpha is not None
    warn(setup.source.warning)
    source = setup.source if smoothing is None else setup.source.with_learning_of(smoothing.correlation.source)
    smoothed = [] if smoothing is None else smoothing.save()
    document = {} if ledger is None else ledger_document(*ledger)
    if source.learning_epsilon:
        document["alpha_in_all"] = source.in_all(released.alpha, released.delta)[0]
    say_counts(
        released,
        setup.data,
        output,
        as_json,
        is_first=smoothing is None and (ledger is None or not ledger[1]),
        document=document | ({} if smoothing is None else smoothing.document),
        rows=(
            *learning_facts(source, released.alpha, released.delta),
            *(() if ledger is None else ledger_rows(*ledger)),
            *smoothed,
        ),
    )
    if ledger is None and not as_json:
        console.print("Keep this file: a second release of the same data spends the budgets again.", style="dim")


def say_counts(
    released: ReleasedHistograms,
    data: Traces,
    output: Path,
    as_json: bool,
    *,
    is_first: bool,
    document: dict[str, Any],
    rows: Iterable[tuple[str, str]],
) -> None:
    """Print released counts, and what else is reported of them; the noise is warned about with the first steps alone."""
    beside = NoiseBesideCounts(mean_absolute_noise(released.scales, released.noise), data.n_users, len(released.states))
    warn(absences(data))
    if is_first:
        warn(beside.warning)
        warn(impossible_counts(released, data.n_users))
    if as_json:
        known = {
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
        }
        say_json(known | document)
        return
    show_release(released, output, ("noise beside counts", beside.sentence), *rows)


def ledger_document(stream: ContinualRelease[Any, Any], before: int) -> dict[str, Any]:
    """Return the ledger after a release as JSON values."""
    return {
        "ledger": stream.ledger.place,
        "ledger_steps": len(stream),
        "new_steps": len(stream) - before,
        "head": stream.ledger.head,
        "worst_leakage": stream.ledger[-1].leakage,
        "alpha_of_epoch": stream.guard.alpha,
    }


def ledger_rows(stream: ContinualRelease[Any, Any], before: int, of: str = "") -> list[tuple[str, str]]:
    """Return rows about the ledger after a release; `of` names what its leakage is about."""
    rows = [("ledger", f"{stream.ledger.place}: {steps(before)} before, {steps(len(stream))} now")]
    worst = stream.ledger[-1].leakage
    renewal = renewal_of(stream.ledger)
    rows += [] if renewal is None else [("renewed", renewed_line(renewal))]
    if worst is not None:
        rows.append(("largest leakage so far", nats(worst) + of))
    return [*rows, ("head", f"{stream.ledger.head[:16]} (note it for `temporaldp ledger verify --head`)")]


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
