"""`temporaldp demo`: audit, learn, plan, release and report on the bundled sample."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from temporaldp import (
    IntervalMatrix,
    PublicCorrelation,
    ReleasedHistograms,
    SmoothedHistograms,
    Trajectories,
    TransitionMatrix,
    compare_plans,
    estimate_adversaries,
    learn_correlation,
    load_sample,
    plan_budget,
    release_histograms,
    save_correlation,
    save_matrix,
    save_plan,
    save_released,
    smooth,
    temporal_leakage,
)
from temporaldp.accounting.paper.method import PaperBound
from temporaldp.cli.audit import audit_of, show_audit
from temporaldp.cli.learn import show_learnt
from temporaldp.cli.plan import show_comparison, show_plan
from temporaldp.cli.released import show_release
from temporaldp.cli.render import console, facts, warn, working
from temporaldp.errors import OutputError
from temporaldp.project.inputs import Inputs
from temporaldp.release import save_smoothed
from temporaldp.report import Evidence, Provenance, write_report
from temporaldp.report.figures import (
    budget_figure,
    comparison_figure,
    leakage_figure,
    matrix_figure,
    release_figure,
    witness_figure,
)
from temporaldp.report.style import save_figure

if TYPE_CHECKING:
    from temporaldp.correlation.trace_table import TraceTable

EPSILON = 0.1
ALPHA = 1.0
LEARNING = 8.0
"""Spent on the correlation: 151 people are few, and with less the noise leaves nothing to be known of it."""


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for pictures, plan, counts and report.")
    ] = Path("temporaldp-demo"),
) -> None:
    """Do all of it on the bundled sample: 151 people, 47 five-minute steps, 5 sleep stages."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make folder {output}: {error.strerror}; choose another with -o") from error
    data = load_sample()
    adversary = next(iter(estimate_adversaries(data)))
    provenance = Provenance("protected", name="the bundled sample", states_given=True)
    inputs = Inputs((adversary,), provenance, data)

    console.rule("1. audit", align="left")
    found = audit_of(inputs, EPSILON, data.n_times)
    audited = found.evidence(inputs)
    show_audit(inputs, found, audited)
    warn(provenance.warning)

    console.rule("2. learn", align="left")
    with working("learning the correlation", writes=True):
        learnt = learn_correlation(
            data, epsilon=LEARNING, contributed=data.n_times - 1, ledger=output / "correlation.db"
        )
        save_correlation(learnt, output / "correlation.json")
    assert isinstance(learnt.backward, IntervalMatrix)
    origin = learnt.backward.origin
    provenance = Provenance("learnt", text=origin.sentence, epsilon=origin.epsilon, states_given=True)
    inputs = Inputs((learnt,), provenance, data)
    show_learnt(learnt)

    console.rule("3. plan", align="left")
    with working("planning"):
        plan = plan_budget(learnt, alpha=ALPHA, horizon=data.n_times)
    plan = dataclasses.replace(plan, source=inputs.source)
    save_plan(plan, output / "plan.json")
    show_plan(inputs, plan)
    console.print("If the correlation were known exactly, plans would be:")
    compared = compare_plans(adversary, alpha=ALPHA, horizon=data.n_times)
    show_comparison(compared)

    console.rule("4. release", align="left")
    released = release_histograms(data, plan, consistent=True)
    save_released(released, output / "released.parquet")
    show_release(released, output / "released.parquet")

    console.rule("5. counts worth publishing", align="left")
    noisy, smoothed, true_half = _smoothed_half(data, output)

    console.rule("6. report", align="left")
    planned = temporal_leakage(learnt, plan.epsilons)
    truth = data.histogram()
    evidence = Evidence(
        (learnt,),
        planned,
        provenance,
        data.times,
        plan=plan,
        released=released,
        true_counts=truth,
        n_users=data.n_users,
        paper=temporal_leakage(learnt, plan.epsilons, accounting=PaperBound()),
    )
    with working("drawing", writes=True):
        write_report(evidence, output / "report.html", title="Sleep stages of 151 people, every five minutes")
        assert isinstance(adversary.backward, TransitionMatrix)
        save_matrix(adversary.backward, output / "backward.csv")
        for name, figure in (
            ("audit.png", leakage_figure(found.series, data.times, paper=found.paper)),
            ("witness.png", witness_figure(found.series.witness(audited.explained_step), data.times)),
            ("plan.png", leakage_figure(planned, data.times, alpha=ALPHA)),
            ("budgets.png", budget_figure(planned, data.times)),
            ("comparison.png", comparison_figure(compared, data.times)),
            ("matrix.png", matrix_figure(adversary.backward, backward=True)),
            ("released.png", release_figure(released, truth)),
            ("smoothed.png", release_figure(noisy, true_half, smoothed=smoothed)),
        ):
            save_figure(figure, output / name)
    console.print(f"Report, plan, counts and pictures are in {output}: open {output / 'report.html'}", soft_wrap=True)


def _smoothed_half(
    sample: TraceTable, output: Path
) -> tuple[ReleasedHistograms, SmoothedHistograms, NDArray[np.int64]]:
    """Half of the people as public history, the other half released and smoothed by what the first half shows."""
    data = Trajectories(sample.codes, states=sample.states, users=sample.users, times=sample.times)
    history, protected = data[: data.n_users // 2], data[data.n_users // 2 :]
    known = PublicCorrelation.from_history(
        history, same_start=True, name="the other half of the sample, taken to be public"
    )
    plan = plan_budget(
        next(iter(estimate_adversaries(history, prior=1.0 / data.n_states))), alpha=ALPHA, horizon=data.n_times
    )
    released = release_histograms(protected, plan)
    smoothed = smooth(released, known, total=protected.n_users)
    truth = protected.histogram()
    save_smoothed(smoothed, output / "smoothed.csv")
    inside = (smoothed.lower <= truth) & (truth <= smoothed.upper)
    rows = [
        (
            "people",
            f"{history.n_users} as public history, {protected.n_users} protected, alpha = {ALPHA:g} for {data.n_times} steps",
        ),
        ("mean error of a count, as released", f"{np.abs(released.counts - truth).mean():.3g} people"),
        ("smoothed", f"{np.abs(smoothed.counts - truth).mean():.3g} people"),
        ("95 % intervals that hold the true count", f"{100.0 * inside.mean():.3g} %"),
        ("fit", smoothed.fit),
        ("made from", smoothed.used),
    ]
    facts(f"Smoothed counts in {output / 'smoothed.csv'}", rows)
    return released, smoothed, truth
