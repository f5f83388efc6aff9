"""`temporaldp demo`: audit, plan, release and report on the bundled sample."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from temporaldp import (
    OutputError,
    compare_plans,
    estimate_adversaries,
    load_sample,
    plan_budget,
    release_histograms,
    save_matrix,
    save_plan,
    save_released,
    temporal_leakage,
)
from temporaldp.cli.audit import audit_of, show_audit
from temporaldp.cli.inputs import Inputs
from temporaldp.cli.plan import show_comparison, show_plan
from temporaldp.cli.release import show_release
from temporaldp.cli.render import console, warn, working
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

EPSILON = 0.1
ALPHA = 1.0


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for pictures, plan, counts and report.")
    ] = Path("temporaldp-demo"),
) -> None:
    """Do all four on the bundled sample: 151 people, 47 five-minute steps, 5 sleep stages."""
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

    console.rule("2. plan", align="left")
    plan = plan_budget(adversary, alpha=ALPHA, horizon=data.n_times)
    plan = dataclasses.replace(plan, source=inputs.source)
    save_plan(plan, output / "plan.json")
    show_plan(inputs, plan)
    compared = compare_plans(adversary, alpha=ALPHA, horizon=data.n_times)
    show_comparison(compared)

    console.rule("3. release", align="left")
    released = release_histograms(data, plan, consistent=True)
    save_released(released, output / "released.parquet")
    show_release(released, output / "released.parquet")

    console.rule("4. report", align="left")
    planned = temporal_leakage(adversary, epsilons=plan.epsilons)
    truth = data.histogram()
    evidence = Evidence(
        (adversary,),
        planned,
        provenance,
        data.times,
        plan=plan,
        released=released,
        true_counts=truth,
        n_users=data.n_users,
        paper=temporal_leakage(adversary, epsilons=plan.epsilons, bound="paper"),
    )
    with working("drawing", writes=True):
        write_report(evidence, output / "report.html", title="Sleep stages of 151 people, every five minutes")
        assert adversary.backward is not None
        assert not isinstance(adversary.backward, tuple)
        save_matrix(adversary.backward, output / "backward.csv")
        for name, figure in (
            ("audit.png", leakage_figure(found.series, data.times, paper=found.paper)),
            ("witness.png", witness_figure(found.series.witness(audited.explained_step), data.times)),
            ("plan.png", leakage_figure(planned, data.times, alpha=ALPHA)),
            ("budgets.png", budget_figure(planned, data.times)),
            ("comparison.png", comparison_figure(compared.plans, data.times)),
            ("matrix.png", matrix_figure(adversary.backward, backward=True)),
            ("released.png", release_figure(released, truth)),
        ):
            save_figure(figure, output / name)
    console.print(f"Report, plan, counts and pictures are in {output}: open {output / 'report.html'}", soft_wrap=True)
