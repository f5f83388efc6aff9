"""`temporaldp report`: one page for the approval of a release."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from temporaldp import (
    InputError,
    Ledger,
    ReleasedHistograms,
    load_plan,
    load_released,
)
from temporaldp.accounting.exact.method import Exact
from temporaldp.accounting.paper.method import PaperBound
from temporaldp.accounting.protocol import Accounting
from temporaldp.cli import options as o
from temporaldp.cli.audit import audit_of, evidence_by
from temporaldp.cli.ledger_report import evidence_of
from temporaldp.cli.render import warn, working
from temporaldp.cli.written import say_written
from temporaldp.correlation.states import require_same_states
from temporaldp.files.atomic import require_writable
from temporaldp.planning import Plan
from temporaldp.project.inputs import Inputs, absences, gather, uncertainty_of
from temporaldp.project.recipe import recipe_of
from temporaldp.project.release import loaded_plan, without_traces
from temporaldp.release.database import file_of
from temporaldp.report import Evidence, write_report

if TYPE_CHECKING:
    from temporaldp.project.settings import Settings


def report(
    context: typer.Context,
    traces_path: o.TracesArgument = None,
    history_path: o.HistoryOption = None,
    privacy_epsilon: o.EpsilonOption = None,
    release_plan: Annotated[Path | None, o.option("--plan", help="Plan to report on.", metavar="FILE")] = None,
    release_ledger: Annotated[str | None, o.option("--ledger", help="Ledger to report on.", metavar="LEDGER")] = None,
    report_released: Annotated[
        Path | None, o.option("--released", help="Published counts to show.", metavar="FILE")
    ] = None,
    report_output: Annotated[
        Path | None, o.option("--output", "-o", help="Where to write the page (.html).", metavar="FILE")
    ] = None,
    privacy_horizon: o.HorizonOption = None,
    privacy_bound: o.BoundOption = None,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Write one self-contained HTML page: the guarantee in words, reasons, assumptions, figures, numbers.

    A report is about a ledger (--ledger), a plan (--plan, with --released what was published) or an epsilon (--epsilon). Of
    these, what the command line names comes before the project file, in which a ledger comes first.
    """
    settings = o.given(context).settings
    named = {"epsilon": privacy_epsilon, "plan": release_plan, "ledger": release_ledger}
    given = {name for name, value in named.items() if value is not None}
    if len(given) > 1 and given != {"plan", "ledger"}:
        raise InputError(
            "expected one of --epsilon (every step), --plan (planned budgets) and --ledger (what was spent)"
        )
    subject = _subject(settings, given)
    target = subject.report.output
    if target is None:
        raise InputError("expected --output FILE (.html), where the page is written")
    if subject.release.ledger is not None:
        if any(one is not None for one in (report_released, privacy_horizon, privacy_bound, traces_path)):
            raise InputError(
                "a ledger determines what was released, spent and by which bound: leave out TRACES, --released, --horizon and "
                "--bound"
            )
        assigned = any(one.startswith(("correlation.", "history.")) for one in assignments or [])
        _report_ledger(subject, target, is_other=history_path is not None or assigned)
        return
    asked, privacy = subject.report, subject.privacy
    if asked.true_counts and (subject.traces.path is None or asked.released is None):
        raise InputError("report.true_counts shows TRACES beside --released: give both")
    require_writable(target, reads=(*subject.inputs, subject.release.plan, asked.released))
    planned = loaded_plan(subject)
    states = None if planned is None else planned.source.states
    method = privacy.accounting
    if isinstance(method, PaperBound) and planned is not None and not isinstance(planned.accounting, PaperBound):
        raise InputError(
            f"the plan satisfies {planned.level} by another accounting method ({planned.accounting.name}), of which the "
            "paper's bound is not evidence: leave out --bound paper, or plan with --bound paper"
        )
    with working("reading data"):
        inputs = gather(subject, states)
    shown = None if asked.released is None else load_released(asked.released)
    if shown is not None and inputs.states is not None:
        shown = shown.reordered(inputs.states)
    n_steps = _reported_steps(privacy.horizon, shown, planned, inputs)
    if states is not None and inputs.states is not None:
        require_same_states(states, inputs.states, what="this report's correlation")
    if shown is not None and inputs.trajectories is not None and shown.times != inputs.trajectories.times:
        raise InputError("the times of the released histograms are not those of TRACES, or are in another order")
    with working("accounting"):
        evidence = (
            audit_of(inputs, privacy.epsilon, n_steps, method)
            if planned is None
            else _planned(inputs, planned, n_steps, method)
        )
        evidence = replace(
            evidence,
            times=evidence.times if shown is None else shown.times,
            plan=planned,
            released=shown,
            true_counts=inputs.trajectories.histogram()
            if asked.true_counts and inputs.trajectories is not None
            else None,
            n_users=None if inputs.trajectories is None else inputs.trajectories.n_users,
            name_users=asked.name_users,
            uncertainty=uncertainty_of(inputs, subject.correlation, evidence.leakage),
            recipes=((0, recipe_of("temporaldp report", subject, inputs.provenance)),),
        )
    _write(evidence, inputs, target, asked.title)


def _subject(settings: Settings, given: set[str]) -> Settings:
    """The settings of the one thing to report on: given on the command line, or else the first of ledger, plan, epsilon."""
    release = settings.release
    known = {"ledger": release.ledger, "plan": release.plan, "epsilon": settings.privacy.epsilon}
    chosen = given or {name for name, value in known.items() if value is not None}
    if not chosen:
        raise InputError("expected --epsilon (every step), --plan (planned budgets) or --ledger (what was spent)")
    first = next(name for name in known if name in chosen)
    kept = {
        "ledger": release.ledger if first == "ledger" else None,
        "plan": None if first == "epsilon" else release.plan,
    }
    return settings.model_copy(update={"release": release.model_copy(update=kept)})


def _write(evidence: Evidence, inputs: Inputs | None, output: Path, title: str) -> None:
    """Write the page and print its warnings; exit code 3 if the level is not satisfied."""
    with working("drawing", writes=True):
        write_report(evidence, output, title=title)
    scarce, absent = (None, None) if inputs is None else (inputs.scarcity, absences(inputs.trajectories))
    internal = "the page is marked as internal: " + " ".join(evidence.internal) if evidence.internal else None
    warn(scarce, *evidence.warnings, absent, internal)
    say_written(report=output)
    if evidence.is_satisfied is False:
        whose = "release" if evidence.plan is None else "plan"
        warn(f"the level of the {whose} is not satisfied against the adversary of this report; see the page")
        raise typer.Exit(3)


def _report_ledger(settings: Settings, output: Path, *, is_other: bool) -> None:
    """Report on what a ledger stores, against its own correlation unless the command line gives another one (`is_other`)."""
    asked, place, plan = settings.report, settings.release.ledger, settings.release.plan
    assert place is not None
    if asked.true_counts:
        raise InputError("a report on a ledger shows only what was released: leave out report.true_counts")
    require_writable(output, reads=(plan, file_of(place), *settings.inputs))
    with Ledger(place) as opened:
        states = opened.configuration["states"]
        given = without_traces(settings)
        inputs = None
        if settings.has_correlation and (is_other or opened.configuration["correlations"] is None):
            inputs = gather(given, None if states is None else tuple(states))
        with working("accounting"):
            evidence = evidence_of(
                opened, None if plan is None else load_plan(plan), inputs, name_users=asked.name_users
            )
    _write(evidence, inputs, output, asked.title)


def _planned(inputs: Inputs, plan: Plan, n_steps: int, method: Accounting[Any, Any]) -> Evidence:
    """Leakage under a plan, by the method that is asked for, or by its own."""
    return evidence_by(
        inputs,
        None if isinstance(method, Exact) else method,
        leakage=partial(plan.leakage_to, inputs.everyone, n_steps),
        supremum=partial(plan.supremum_to, inputs.everyone),
    )


def _reported_steps(horizon: int | None, shown: ReleasedHistograms | None, plan: Plan | None, inputs: Inputs) -> int:
    """The steps that are asked for, else those that were released, else all that are planned, else those in the data.

    A plan counts before the data: steps to come raise the leakage of those that were, and a report must not leave them out.
    """
    if horizon is None and shown is not None:
        return len(shown.times)
    planned = None if plan is None else plan.horizon
    return inputs.n_steps(planned if horizon is None else horizon)
