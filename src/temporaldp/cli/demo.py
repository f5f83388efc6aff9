"""`temporaldp demo`: audit, plan, release, smooth and report on the bundled sample."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from temporaldp import (
    Exact,
    PublicCorrelation,
    ReleasedHistograms,
    SmoothedHistograms,
    Trajectories,
    TransitionMatrix,
    compare_plans,
    estimate_adversary,
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
from temporaldp.cli.render import console, facts, working
from temporaldp.counts import save_smoothed
from temporaldp.errors import OutputError
from temporaldp.project.inputs import Inputs
from temporaldp.report import Evidence, Provenance, write_report
from temporaldp.report.figures import (
    budget_figure,
    comparison_figure,
    leakage_figure,
    matrix_figure,
    release_figure,
    witness_figure,
)
from temporaldp.report.sentences import NoiseBesideCounts
from temporaldp.report.style import name_step, save_figure

EPSILON = 0.1
ALPHA = 1.0
LEARNING = 8.0
"""Spent on the correlation in the aside: 76 people are few, and less leaves nothing but noise."""

PUBLIC = 75
"""People of the sample whose data are taken to be public; the others are protected."""

STAGES = "wake", "REM", "N1 light", "N2", "N3 deep"
STEP = "5 min"


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for pictures, plan, counts and report.")
    ] = Path("temporaldp-demo"),
) -> None:
    """Audit, plan, release, smooth and report on the bundled sample: 75 people as public history, 76 protected, 47 steps."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make folder {output}: {error.strerror}; choose another with -o") from error
    sample = load_sample()
    times = tuple(str(step + 1) for step in range(sample.n_times))
    people = Trajectories(sample.codes, states=STAGES, users=sample.users, times=times)
    history, protected = people[:PUBLIC], people[PUBLIC:]
    prior = 1.0 / people.n_states
    adversary = estimate_adversary(history, prior=prior)
    name = f"{PUBLIC} people of the sample, taken to be public"
    provenance = Provenance("history", prior=prior, name=name, states_given=True)
    inputs = Inputs((adversary,), provenance, protected, STEP)

    console.rule("1. audit: what leaks?", align="left")
    audited = audit_of(inputs, EPSILON, protected.n_times, Exact())
    show_audit(inputs, audited)

    console.rule("2. plan: noise for a level", align="left")
    with working("planning"):
        compared = compare_plans(adversary, alpha=ALPHA, horizon=protected.n_times)
    plan = dataclasses.replace(compared.plans["optimal"], source=inputs.source)
    save_plan(plan, output / "plan.json")
    show_plan(inputs, plan, beside=NoiseBesideCounts(plan.mean_absolute_noise, protected.n_users, protected.n_states))
    show_comparison(compared)

    console.rule("3. release: noisy counts", align="left")
    released = release_histograms(protected, plan)
    save_released(released, output / "released.parquet")
    show_release(released, output / "released.parquet")

    console.rule("4. smoothed counts, at no privacy cost", align="left")
    known = PublicCorrelation.from_history(history, same_start=True, name=name)
    smoothed = smooth(released, known, total=protected.n_users)
    save_smoothed(smoothed, output / "smoothed.csv")
    truth = protected.histogram()
    _show_smoothed(released, smoothed, truth, output / "smoothed.csv")

    console.rule("5. report", align="left")
    planned = temporal_leakage(adversary, plan.epsilons)
    evidence = Evidence(
        (adversary,),
        planned,
        provenance,
        protected.times,
        plan=plan,
        released=released,
        true_counts=truth,
        n_users=protected.n_users,
        paper=temporal_leakage(adversary, plan.epsilons, accounting=PaperBound()),
    )
    title = f"Sleep stages of {protected.n_users} people, every five minutes"
    assert isinstance(adversary.backward, TransitionMatrix)
    save_matrix(adversary.backward, output / "backward.csv")
    with working("drawing", writes=True):
        write_report(evidence, output / "report.html", title=title)
        for figure_name, figure in (
            ("audit.svg", leakage_figure(audited.leakage, protected.times, paper=audited.paper)),
            ("witness.svg", witness_figure(audited.leakage.witness(audited.explained_step), protected.times)),
            ("plan.svg", leakage_figure(planned, protected.times, alpha=ALPHA)),
            ("budgets.svg", budget_figure(planned, protected.times)),
            ("comparison.svg", comparison_figure(compared, protected.times)),
            ("matrix.svg", matrix_figure(adversary.backward, backward=True)),
            ("released.svg", release_figure(released, truth)),
            ("smoothed.svg", release_figure(released, truth, smoothed=smoothed)),
        ):
            name_step(figure, STEP)
            save_figure(figure, output / figure_name)

    console.rule("Aside: without public history", align="left")
    _learn(protected, output, plan.mean_absolute_noise)
    console.print(f"Report, plan, counts and pictures are in {output}: open {output / 'report.html'}", soft_wrap=True)


def _learn(protected: Trajectories, output: Path, noise: float) -> None:
    """Learn the correlation with differential privacy from the protected people, and compare the noise of a plan by it."""
    with working("learning the correlation", writes=True):
        learnt = learn_correlation(protected, epsilon=LEARNING, contributed=protected.n_times - 1)
        save_correlation(learnt, output / "correlation.json")
        limited = plan_budget(learnt, alpha=ALPHA, horizon=protected.n_times)
    show_learnt(learnt)
    console.print(
        f"A plan with this correlation needs a mean noise of {limited.mean_absolute_noise:.1f} people on a count, where public "
        f"history needs {noise:.1f}: the intervals of {protected.n_users} people are wide."
    )


def _show_smoothed(
    released: ReleasedHistograms, smoothed: SmoothedHistograms, truth: NDArray[np.int64], path: Path
) -> None:
    inside = (smoothed.lower <= truth) & (truth <= smoothed.upper)
    rows = [
        ("mean error of a count, as released", f"{np.abs(released.counts - truth).mean():.3g} people"),
        ("smoothed", f"{np.abs(smoothed.counts - truth).mean():.3g} people"),
        ("95 % intervals that contain the true count", f"{100.0 * inside.mean():.3g} %"),
        ("fit", smoothed.fit),
        ("made from", smoothed.used),
    ]
    facts(f"Smoothed counts in {path}", rows)
