"""`temporaldp report`: one page for the approval of a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from temporaldp import InputError
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import warn
from temporaldp.apps.cli.render import say_json, say_written, working
from temporaldp.data.files.atomic import require_writable
from temporaldp.publish.project.inputs import absences
from temporaldp.publish.project.reporting import reported, reported_ledger
from temporaldp.publish.release.chain import LEDGER
from temporaldp.publish.release.database import file_of
from temporaldp.publish.report import write_report

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import Settings


def report(
    context: typer.Context,
    traces: o.TracesArgument = None,
    history: o.HistoryOption = None,
    epsilon: o.EpsilonOption = None,
    plan: Annotated[
        Path | None, o.option("--plan", key="release.plan", help="Plan to report on.", metavar="FILE")
    ] = None,
    ledger: Annotated[
        str | None, o.option("--ledger", key="release.ledger", help="Ledger to report on.", metavar="LEDGER")
    ] = None,
    released: Annotated[
        Path | None, o.option("--released", key="report.released", help="Published counts to show.", metavar="FILE")
    ] = None,
    output: Annotated[
        Path | None,
        o.option("--output", "-o", key="report.output", help="Where to write the page (.html).", metavar="FILE"),
    ] = None,
    identifier: o.ReleaseOption = LEDGER,
    horizon: o.HorizonOption = None,
    bound: o.BoundOption = None,
    effort: o.EffortOption = None,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Write one self-contained HTML page: the guarantee in words, reasons, assumptions, figures, numbers.

    A report is about a ledger (--ledger), a plan (--plan; published counts: --released) or an epsilon (--epsilon). Options
    take precedence over the project file; within the file, a ledger takes precedence.
    """
    named = {"epsilon": epsilon, "plan": plan, "ledger": ledger}
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
    if ledger is not None and any(one is not None for one in (released, horizon, bound, traces)):
        raise InputError(
            "a ledger determines what was released, spent and by which bound: leave out TRACES, --released, --horizon and "
            "--bound"
        )
    with working("accounting"):
        if ledger is None:
            evidence, inputs = reported(subject)
        else:
            assigned = any(one.startswith(("correlation.", "history.")) for one in assignments or [])
            evidence, inputs = reported_ledger(subject, identifier, is_other=history is not None or assigned)
    with working("drawing", writes=True):
        write_report(evidence, target, title=subject.report.title, step=subject.report.step)
    scarce, absent = (None, None) if inputs is None else (inputs.scarcity, absences(inputs.trajectories))
    internal = "the page is marked as internal: " + " ".join(evidence.internal) if evidence.internal else None
    warn(scarce, *evidence.warnings, absent, internal)
    if as_json:
        say_json(
            {
                "report": target,
                "worst_leakage": evidence.leakage.worst,
                "alpha": evidence.alpha,
                "guarantee": str(evidence.guarantee),
                "is_satisfied": evidence.is_satisfied,
                "is_internal": bool(evidence.internal),
            }
        )
    else:
        say_written(report=target)
    if evidence.is_satisfied is False:
        whose = "release" if evidence.plan is None else "plan"
        warn(f"the level of the {whose} is not satisfied against the adversary of this report; see the page")
        raise typer.Exit(3)


def _subject(settings: Settings, given: set[str]) -> Settings:
    """The settings of the one thing to report on: given on the command line, or else the first of ledger, plan, epsilon."""
    release = settings.release
    known = {"ledger": release.ledger, "plan": release.plan, "epsilon": settings.privacy.epsilon}
    first = next((name for name, value in known.items() if (name in given if given else value is not None)), None)
    if first is None:
        raise InputError("expected --epsilon (every step), --plan (planned budgets) or --ledger (what was spent)")
    kept = {
        "ledger": release.ledger if first == "ledger" else None,
        "plan": None if first == "epsilon" else release.plan,
    }
    return settings.model_copy(update={"release": release.model_copy(update=kept)})
