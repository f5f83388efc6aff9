"""Output of `temporaldp release`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporaldp import ContinualRelease, PublicCorrelation, ReleasedHistograms, SmoothedHistograms
from temporaldp.cli.render import console, facts, learning_facts, say_json, warn
from temporaldp.cli.smoothing import save_all, smoothed_document
from temporaldp.planning.histogram_noise import mean_absolute_noise
from temporaldp.project.inputs import absences
from temporaldp.project.release import ReleaseSetup
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

if TYPE_CHECKING:
    from temporaldp.project.settings import Settings


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Smoothed counts, the correlation that smoothed them, and the files to write."""

    found: SmoothedHistograms
    correlation: PublicCorrelation
    output: Path
    settings: Settings

    @classmethod
    def of(
        cls, found: SmoothedHistograms | None, correlation: PublicCorrelation | None, settings: Settings
    ) -> Smoothing | None:
        """Return None where nothing was smoothed."""
        output = settings.release.smoothed
        return (
            None
            if found is None or correlation is None or output is None
            else cls(found, correlation, output, settings)
        )

    def save(self) -> list[tuple[str, str]]:
        """Write the files and return the rows that describe them."""
        return save_all(self.found, self.correlation, self.output, self.settings)


def say_release(
    released: ReleasedHistograms,
    setup: ReleaseSetup,
    output: Path,
    ledger: tuple[ContinualRelease[Any, Any], int] | None,
    as_json: bool,
    smoothing: Smoothing | None,
) -> None:
    """Write smoothed counts and print the release."""
    warn(setup.source.warning)
    warn(absences(setup.data))
    beside = NoiseBesideCounts(
        mean_absolute_noise(released.scales, released.noise), setup.data.n_users, len(released.states)
    )
    source = setup.source if smoothing is None else setup.source.with_learning_of(smoothing.correlation.source)
    smoothed = [] if smoothing is None else smoothing.save()
    if smoothing is None and (ledger is None or not ledger[1]):  # only at the first steps of a ledger
        warn(beside.warning)
        warn(impossible_counts(released, setup.data.n_users))
    if as_json:
        document = release_document(released, output) | {"noise_beside_counts": beside.share}
        document |= {} if ledger is None else _ledger_document(*ledger)
        if source.learning_epsilon:
            document["alpha_in_all"] = source.in_all(released.alpha or 0.0, released.delta)[0]
        say_json(document | ({} if smoothing is None else smoothed_document(smoothing.found, smoothing.output)))
        return
    assert released.alpha is not None
    more = (
        ("noise beside counts", beside.sentence),
        *learning_facts(source, released.alpha, released.delta),
        *(() if ledger is None else _ledger_facts(*ledger)),
        *smoothed,
    )
    show_release(released, output, more)
    if ledger is None:
        console.print("Keep this file: a second release of the same data spends the budgets again.", style="dim")


def _ledger_document(stream: ContinualRelease[Any, Any], before: int) -> dict[str, Any]:
    return {
        "ledger": stream.ledger.place,
        "ledger_steps": len(stream),
        "new_steps": len(stream) - before,
        "head": stream.ledger.head,
        "worst_leakage": stream.ledger[-1].leakage,
        "alpha_of_epoch": stream.guard.alpha,
    }


def _ledger_facts(stream: ContinualRelease[Any, Any], before: int) -> tuple[tuple[str, str], ...]:
    rows = [("ledger", f"{stream.ledger.place}: {steps(before)} before, {steps(len(stream))} now")]
    worst = stream.ledger[-1].leakage
    renewal = renewal_of(stream.ledger)
    rows += [] if renewal is None else [("renewed", renewed_line(renewal))]
    if worst is not None:
        rows.append(("largest leakage so far", nats(worst)))
    return (*rows, ("head", f"{stream.ledger.head[:16]} (note it for `temporaldp ledger verify --head`)"))


def release_document(released: ReleasedHistograms, output: Path) -> dict[str, Any]:
    """Return the release as JSON values."""
    return {
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
    }


def show_release(released: ReleasedHistograms, output: Path, more: tuple[tuple[str, str], ...] = ()) -> None:
    """Print the release."""
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
