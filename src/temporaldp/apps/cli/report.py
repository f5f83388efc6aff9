"""`temporaldp report`: one page for the approval of a release."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from temporaldp import InputError
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import warn
from temporaldp.apps.cli.render import working
from temporaldp.apps.cli.written import answer
from temporaldp.data.files.atomic import require_writable
from temporaldp.publish.project.inputs import absences
from temporaldp.publish.project.reporting import reported, reported_ledger
from temporaldp.publish.release.chain import LEDGER
from temporaldp.publish.release.database import file_of
from temporaldp.publish.report import Report, write_report

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import Settings


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
    identifier: o.ReleaseOption = LEDGER,
    privacy_horizon: o.HorizonOption = None,
    privacy_bound: o.BoundOption = None,
    privacy_effort: o.EffortOption = None,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Write one self-contained HTML page: the guarantee in words, reasons, assumptions, figures, numbers.

    A report is about a ledger (--ledger), a plan (--plan; published counts: --released) or an epsilon (--epsilon). Options
    take precedence over the project file; within the file, a ledger takes precedence.
    """
    named = {"epsilon": privacy_epsilon, "plan": release_plan, "ledger": release_ledger}
    given = {name for name, value in named.items() if value is not None}
    if len(given) > 1 and given != {"plan", "ledger"}:
        raise InputError(
            "expected one of --epsilon (every step), --plan (planned budgets) and --ledger (what was spent)"
        )
    subject = _subject(o.given(context).settings, given)
    if identifier != LEDGER and subject.release.ledger is None:
        raise InputError("--release names a release of a service: give the service's store too (--ledger)")
    target, ledger = subject.report.output, subject.release.ledger
    if target is None:
        raise InputError("expected --output FILE (.html), where the page is written")
    file = None if ledger is None else file_of(ledger)
    require_writable(target, reads=(*subject.inputs, subject.release.plan, subject.report.released, file))
    with working("accounting"):
        if ledger is None:
            evidence, inputs = reported(subject)
        elif any(one is not None for one in (report_released, privacy_horizon, privacy_bound, traces_path)):
            raise InputError(
                "a ledger determines what was released, spent and by which bound: leave out TRACES, --released, --horizon and "
                "--bound"
            )
        else:
            assigned = any(one.startswith(("correlation.", "history.")) for one in assignments or [])
            evidence, inputs = reported_ledger(subject, identifier, is_other=history_path is not None or assigned)
    with working("drawing", writes=True):
        write_report(evidence, target, title=subject.report.title, step=subject.report.step)
    scarce, absent = (None, None) if inputs is None else (inputs.scarcity, absences(inputs.trajectories))
    internal = "the page is marked as internal: " + " ".join(evidence.internal) if evidence.internal else None
    warn(scarce, *evidence.warnings, absent, internal)
    answer(as_json, document=partial(_document, evidence, target), show=lambda: None, report=target)
    if evidence.is_satisfied is False:
        whose = "release" if evidence.plan is None else "plan"
        warn(f"the level of the {whose} is not satisfied against the adversary of this report; see the page")
        raise typer.Exit(3)


def _document(evidence: Report, target: Path) -> dict[str, Any]:
    about = {"worst_leakage": evidence.leakage.worst, "alpha": evidence.alpha, "is_satisfied": evidence.is_satisfied}
    return {"report": target, **about, "is_internal": bool(evidence.internal)}


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
