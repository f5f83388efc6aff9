"""`temporaldp report`: one page for whoever signs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from temporaldp import (
    InputError,
    LeakageSeries,
    LeakageSupremum,
    Ledger,
    ReleasedHistograms,
    leakage_supremum,
    load_plan,
    load_released,
    temporal_leakage,
)
from temporaldp.accounting.exact.method import Exact
from temporaldp.accounting.interval.method import IntervalBound
from temporaldp.accounting.paper.method import PaperBound
from temporaldp.accounting.protocol import Accounting
from temporaldp.cli import options as o
from temporaldp.cli.inputs import Inputs, absences, gather, uncertainty_of
from temporaldp.cli.ledger_report import evidence_of
from temporaldp.cli.render import console, warn, working
from temporaldp.correlation.states import require_same_states
from temporaldp.files.atomic import require_writable
from temporaldp.planning import Plan
from temporaldp.release.database import file_of
from temporaldp.report import Evidence, write_report
from temporaldp.values import positive


@o.grouped
def report(
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the page (.html).", show_default=False)
    ],
    traces: o.TracesArgument = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="What each step promises, in nats.", show_default=False)
    ] = None,
    plan: Annotated[Path | None, typer.Option("--plan", help="Plan to report on.", show_default=False)] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            metavar="LEDGER",
            help="Ledger to report on: what was released, against the correlation that it was accounted with.",
            show_default=False,
        ),
    ] = None,
    released: Annotated[
        Path | None, typer.Option("--released", help="Released histograms to show.", show_default=False)
    ] = None,
    true_counts: Annotated[
        bool,
        typer.Option("--true-counts", help="Show the true counts beside the released ones: for internal use only."),
    ] = False,
    name_users: Annotated[
        bool, typer.Option("--name-users", help="With --per-user: name the person who is leaked about most.")
    ] = False,
    horizon: o.HorizonOption = None,
    bound: o.BoundOption = o.Bounds.EXACT,
    title: Annotated[str, typer.Option("--title", help="Heading of the page.")] = "Temporal privacy leakage report",
) -> None:
    """Write one self-contained HTML page: the guarantee in words, reasons, assumptions, figures, numbers.

    Report on a constant promise (--epsilon), on a plan (--plan), on what was released (--plan and --released), or on a ledger.
    """
    if ledger is not None:
        if epsilon is not None or released is not None or horizon is not None or bound is not o.Bounds.EXACT:
            raise InputError(
                "--ledger says what was released, spent and by which bound: leave out the options that say so too"
            )
        _report_ledger(ledger, traces, reading, known, plan, output, true_counts, name_users, title)
        return
    if (epsilon is None) == (plan is None):
        raise InputError("expected one of --epsilon (a constant promise) and --plan (planned budgets)")
    if true_counts and (traces is None or released is None):
        raise InputError("--true-counts shows TRACES against --released: give both")
    require_writable(output, reads=(traces, plan, released, *known.files))
    planned = None if plan is None else load_plan(plan)
    states = None if planned is None else planned.source.states
    _require_bound(bound, planned)
    inputs = gather(traces, reading, known, states)
    shown = None if released is None else load_released(released)
    if shown is not None and inputs.states is not None:
        shown = shown.reordered(inputs.states)
    n_steps = _reported_steps(horizon, shown, planned, inputs)
    if states is not None and inputs.states is not None:
        require_same_states(states, inputs.states, what="this report's correlation")
    if shown is not None and inputs.trajectories is not None and shown.times != inputs.trajectories.times:
        raise InputError("the times of the released histograms are not those of TRACES, or stand in another order")
    with working("accounting"):
        leakage, limits = _accounted(
            inputs, planned, epsilon, n_steps, bound.accounting if bound is o.Bounds.PAPER else None
        )
        tighter = isinstance(leakage.accounting, Exact | IntervalBound)
        paper, paper_limits = _accounted(inputs, planned, epsilon, n_steps, PaperBound()) if tighter else (None, None)
        uncertainty = uncertainty_of(inputs, known, leakage)
        evidence = Evidence(
            adversaries=inputs.adversaries,
            leakage=leakage,
            provenance=inputs.provenance,
            times=inputs.times(n_steps) if shown is None else shown.times,
            supremum=limits,
            plan=planned,
            released=shown,
            true_counts=inputs.trajectories.histogram() if true_counts and inputs.trajectories is not None else None,
            n_users=None if inputs.trajectories is None else inputs.trajectories.n_users,
            name_users=name_users,
            paper=paper,
            paper_supremum=paper_limits,
            uncertainty=uncertainty,
        )
    _write(evidence, inputs, output, title)


def _write(evidence: Evidence, inputs: Inputs | None, output: Path, title: str) -> None:
    """Write the page, and say what its reader must know; exit code 3 if the level is not held."""
    with working("drawing", writes=True):
        write_report(evidence, output, title=title)
    told = (None, None) if inputs is None else (inputs.scarcity, absences(inputs.trajectories))
    for sentence in (told[0], *evidence.warnings, told[1]):
        warn(sentence)
    if evidence.internal:
        warn("the page is marked as internal: " + " ".join(evidence.internal))
    console.print(f"report written to {output}", soft_wrap=True, markup=False)
    if evidence.level_held is False:
        whose = "release" if evidence.plan is None else "plan"
        warn(f"the {whose}'s level is not held against this report's adversary; the page says so")
        raise typer.Exit(3)


def _report_ledger(
    ledger: str,
    traces: Path | None,
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    plan: Path | None,
    output: Path,
    true_counts: bool,
    name_users: bool,
    title: str,
) -> None:
    if true_counts or traces is not None:
        raise InputError("a report on a ledger shows what was released alone: leave out TRACES and --true-counts")
    require_writable(output, reads=(plan, file_of(ledger), *known.files))
    with Ledger(ledger) as opened:
        states = opened.configuration["states"]
        given = known != o.CorrelationOptions()
        inputs = gather(None, reading, known, None if states is None else tuple(states)) if given else None
        with working("accounting"):
            evidence = evidence_of(opened, None if plan is None else load_plan(plan), inputs, name_users=name_users)
    _write(evidence, inputs, output, title)


Accounted: TypeAlias = tuple[LeakageSeries, LeakageSupremum | None]


def _require_bound(bound: o.Bounds, plan: Plan | None) -> None:
    if bound is o.Bounds.PAPER and plan is not None and not isinstance(plan.accounting, PaperBound):
        raise InputError(
            f"the plan satisfies {plan.level} by another accounting method ({plan.accounting.name}), of which the paper's "
            "bound is no evidence: leave out --bound paper, or plan with --bound paper"
        )


def _accounted(
    inputs: Inputs, plan: Plan | None, epsilon: float | None, n_steps: int, accounting: Accounting[Any, Any] | None
) -> Accounted:
    if plan is not None:
        return plan.leakage_to(inputs.everyone, n_steps, accounting=accounting), plan.supremum_to(
            inputs.everyone, accounting=accounting
        )
    assert epsilon is not None
    spent = positive(epsilon, "--epsilon")
    return (
        temporal_leakage(inputs.everyone, spent, accounting=accounting or Exact(), horizon=n_steps),
        leakage_supremum(inputs.everyone, spent, accounting=accounting or Exact()),
    )


def _reported_steps(horizon: int | None, shown: ReleasedHistograms | None, plan: Plan | None, inputs: Inputs) -> int:
    """The steps that are asked for, else those that were released, else all that are planned, else those in the data.

    A plan counts before the data: steps to come raise the leakage of those that were, and a report must not leave them out.
    """
    if horizon is None and shown is not None:
        return len(shown.times)
    planned = None if plan is None else plan.horizon
    return inputs.n_steps(planned if horizon is None else horizon)
