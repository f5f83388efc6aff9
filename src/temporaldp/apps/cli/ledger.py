"""`temporaldp ledger`: look at a ledger, check it, export it, keep it up, and adopt another correlation."""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from temporaldp import InputError, Ledger, load_plan
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import console, warn
from temporaldp.apps.cli.ledger_share import share
from temporaldp.apps.cli.render import answer, facts, listing, require_places, say_json, working
from temporaldp.base.display import number, spread
from temporaldp.base.errors import LedgerError
from temporaldp.base.values import REPLACE_PERSON, plural
from temporaldp.core.accounting.methods import accounting_from
from temporaldp.core.correlation.provenance import UNSTATED
from temporaldp.core.planning import Guarantee
from temporaldp.publish.project.inputs import gather
from temporaldp.publish.project.recipe import note_recipe, recipe_of, recipes_of
from temporaldp.publish.project.release import without_traces
from temporaldp.publish.release import adopt_correlation, export_ledger
from temporaldp.publish.release.chain import LEDGER
from temporaldp.publish.release.database import file_of
from temporaldp.publish.release.histograms import require_same_step
from temporaldp.publish.release.outputs import export_suffix, said_of
from temporaldp.publish.release.renewal import renewal_of
from temporaldp.publish.release.resuming import kept_correlations
from temporaldp.publish.release.shared_account import TableSpent, tables_of
from temporaldp.publish.report.sentences import (
    AUTHENTIC,
    NOT_AUTHENTIC,
    NOT_SUSTAINABLE,
    accounting_line,
    discrete_noise,
    guarantee_line,
    nats,
    renewed_line,
    steps,
    sustainable,
)

app = typer.Typer(
    help="Inspect, verify and maintain the ledger of a release.", no_args_is_help=True, add_completion=False
)

app.command("share")(share)


@app.command("show")
def show(
    place: o.LedgerArgument = None,
    release: o.ReleaseOption = LEDGER,
    every_row: Annotated[bool, typer.Option("--all", help="Show every step instead of the last ten.")] = False,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
) -> None:
    """Print the terms of a release, its spent budget and its leakage, but no published counts."""
    with Ledger(o.place_of(place, project), release) as ledger:
        noted = [recipe for _, recipe in recipes_of(ledger)]
        warn(*dict.fromkeys(one for each in noted for one in (*(p.warning for p in each.provenances), *each.warnings)))
        answer(as_json, document=partial(_document, ledger), show=partial(_show, ledger, every_row=every_row))


@app.command("verify")
def verify(
    place: o.LedgerArgument = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            help="Head noted earlier (at least 12 digits); the ledger must contain it.",
            show_default=False,
        ),
    ] = None,
    release: o.ReleaseOption = LEDGER,
    sign: Annotated[
        bool,
        typer.Option(
            "--sign",
            help="Then authenticate the head with the key of this machine, where it is not; an entry records it.",
        ),
    ] = False,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
) -> None:
    """Check every row against the chain of hashes, and the head against its MAC; exit code 4 if any was changed or removed."""
    # An older copy is warned of when it is opened, and refused in the same words: then the error is enough.
    with warnings.catch_warnings(record=True) as opening, Ledger(o.place_of(place, project), release) as ledger:
        if sign:
            ledger.sign(head=head)
        else:
            ledger.verify(head=head)
    warn(*(str(one.message) for one in opening))
    if as_json:
        covered_by_head = {"alpha", "guarantee", "renewal", "accounting", "delta", "noise", "plan"}
        terms = {key: value for key, value in ledger.configuration.items() if key in covered_by_head}
        state = {"steps": len(ledger), "head": ledger.head, "intact": True, "authentic": ledger.is_authentic}
        say_json({"ledger": ledger.place, **state, **terms})
        return
    found = "" if head is None else f", and contains {head}"
    console.print(f"intact: {steps(len(ledger))}, head {ledger.head}{escape(found)}")
    console.print(f"authentic: {AUTHENTIC if ledger.is_authentic else NOT_AUTHENTIC}")
    for name, value in (*_decided(ledger), *_terms(ledger)):
        if value:
            console.print(f"{name}: {escape(value)}")


@app.command("export")
def export(
    output: Annotated[
        Path, o.option("--output", "-o", help="Where to write every step (.parquet, .csv or .json).", metavar="FILE")
    ],
    place: o.LedgerArgument = None,
    release: o.ReleaseOption = LEDGER,
    overwrite: o.OverwriteOption = False,
    project: o.ProjectOption = None,
) -> None:
    """Export every step with its time, budget or noise, leakage so far and output, as one table."""
    export_suffix(output)
    place = o.place_of(place, project)
    require_places(output, reads=(file_of(place),), overwrite=overwrite)
    with Ledger(place, release) as ledger:
        export_ledger(ledger, output)
        console.print(f"{steps(len(ledger))} written to {output}, head {ledger.head}", soft_wrap=True, markup=False)


@app.command("adopt")
def adopt(
    context: typer.Context,
    place: o.LedgerArgument = None,
    history: o.HistoryOption = None,
    plan: Annotated[
        Path | None, o.option("--plan", help="For a renewed level: a plan with the new correlation.", metavar="FILE")
    ] = None,
    both: Annotated[
        bool,
        o.option("--both", help="Satisfy the level whether the correlation changed or not (larger leakage counts)."),
    ] = False,
    adopted_by: Annotated[
        str | None,
        o.option("--adopted-by", help="Name of the person who adopts it (default: the system user).", metavar="NAME"),
    ] = None,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Account with another correlation from the next step on; earlier steps keep theirs, and all steps satisfy the level."""
    settings = o.given(context).settings
    if not settings.has_correlation:
        raise InputError(
            "expected a correlation: --history FILE, a correlation (--set correlation.file=FILE), or matrices (--set "
            "correlation.backward=FILE)"
        )
    with Ledger(o.ledger_of(settings)) as ledger:
        before = ledger.configuration["states"]
        found = gather(without_traces(settings), None if before is None else tuple(before))
        require_same_step(ledger.configuration["step"], found.provenance.step, what="release", of="history")
        with working("what the level allows now"):
            event = adopt_correlation(
                ledger, found.everyone, both=both, by=adopted_by, plan=None if plan is None else load_plan(plan)
            )
            note_recipe(ledger, recipe_of("temporaldp ledger adopt LEDGER", settings, found.provenance))
        warn(found.provenance.warning)
        if as_json:
            say_json({"ledger": ledger.place, "from_step": event.step, "by": event.by, "at": event.at, **event.details})
            return
        rows = [
            ("from step", f"{event.step + 1} on" + (", the larger leakage of both correlations" if both else "")),
            ("by", f"{event.by}, {event.at}"),
        ]
        is_renewed = renewal_of(ledger) is not None
        if is_renewed:
            share = number(100.0 * event.details["share"], down=True)
            rows.append(("this epoch spends", f"{share} % of the planned budgets of its other steps"))
            rows.append(("all epochs together", f"at most {nats(event.details['promise'])} about any step"))
        else:
            rows.append(sustainable(event.details["reserve"]))
            warn(NOT_SUSTAINABLE if event.details["reserve"] == 0.0 else None)
        facts("Adopted", [*rows, ("head", ledger.head)])
        console.print(f"Later releases need this correlation{' and this plan' if is_renewed else ''}.", style="dim")


@app.command("backup")
def backup(
    output: Annotated[
        Path,
        o.option("--output", "-o", help="Where to write the copy; an existing file is never replaced.", metavar="FILE"),
    ],
    place: o.LedgerArgument = None,
    project: o.ProjectOption = None,
) -> None:
    """Copy an SQLite ledger consistently while a release runs, and verify the copy."""
    with Ledger(o.place_of(place, project)) as ledger:
        ledger.back_up(output)
    with Ledger(output) as copy:
        copy.verify()
        console.print(f"{steps(len(copy))} copied to {output}, head {copy.head}", soft_wrap=True, markup=False)


def _document(ledger: Ledger) -> dict[str, Any]:
    spent = {
        one.name: {"published": int((one.epsilons > 0.0).sum()), "epsilons": one.epsilons.tolist()}
        for one in tables_of(ledger)
    }
    return {
        "ledger": ledger.place,
        **said_of(ledger),
        **({"table_steps": spent} if spent else {}),
        "steps": [
            {
                "step": r.step,
                "time": r.time,
                "parameter": r.parameter,
                "epsilon": r.epsilon,
                "worst_leakage": r.leakage,
            }
            for r in ledger[:]
        ],
    }


def _show(ledger: Ledger, *, every_row: bool) -> None:
    """Print the terms, and every step or the last ten."""
    known, tables, spent = ledger.configuration, tables_of(ledger), ledger.epsilons[ledger.epsilons > 0.0]
    leaked = ledger[-1].leakage if len(ledger) else None
    rows = [
        ("place", ledger.place),
        ("steps", _span(ledger)),
        *_terms(ledger),
        ("epochs", _epochs(ledger)),
        ("enforced by", _enforced_by({**known, "plan": ledger.plan})),
        ("mechanism", str(known["mechanism"])),
        ("states", (" | " if known.get("tables") else ", ").join(known["states"] or ())),
        ("one step", str(known["step"] or "")),
        *((f"table {one.name}", _table_words(one)) for one in tables),
        *(
            (
                "adopted",
                f"another correlation{' beside the previous one' if event.details.get('both') else ''}, from step "
                f"{event.step + 1} on, by {event.by}, {event.at}",
            )
            for event in ledger.adoptions
        ),
        *_decided(ledger),
        ("spent per step", spread(spent, up=True, digits=4) if spent.size else ""),
        (
            "largest leakage so far",
            "" if leaked is None else nats(leaked) + (", of all tables together" if tables else ""),
        ),
        ("head", ledger.head),
    ]
    facts("Ledger", rows)
    listing(
        [
            {
                "step": str(row.step + 1),
                "time": row.time,
                "scale" if "noise" in known else "budget": number(row.parameter) if row.output is not None else "",
                "epsilon": number(row.epsilon, up=True) if row.output is not None else "not published",
                "largest leakage": "" if row.leakage is None else number(row.leakage, up=True),
            }
            for row in (ledger[:] if every_row else ledger[-10:])
        ],
        None if every_row or len(ledger) <= 10 else f"The last 10 of {steps(len(ledger))} (--all shows every one)",
    )
    if len(ledger) and known["correlations"] is None:
        console.print(
            "The release follows a plan: the ledger has no accountant and does not store the leakage of each step.",
            style="dim",
        )


def _decided(ledger: Ledger) -> list[tuple[str, str]]:
    """The events by which owners vouched for the chain, or disregarded steps that it lacks."""
    found = []
    for event in ledger.events:
        after = f"after {steps(event.step)}, by {event.by}, {event.at}"
        if event.kind == "sign":
            found.append(("signed", f"{after}: this person vouches for the entries before"))
        elif event.kind == "begin anew":
            lost = event.details["steps"]
            which = "steps of an output" if lost is None else f"{steps(lost)} of a ledger or of later days"
            found.append(("begun anew", f"{after}: {which} are missing and not counted"))
    return found


def _epochs(ledger: Ledger) -> str:
    renewal = renewal_of(ledger)
    if renewal is None or not len(ledger):
        return ""
    epochs = renewal.epochs_of(ledger.times)
    first, end = epochs[-1]
    return f"{len(epochs)}; the last one has {steps(end - first)} of at most {renewal.n_steps}"


def _table_words(table: TableSpent) -> str:
    published = table.epsilons[table.epsilons > 0.0]
    spent = f", {spread(published, up=True, digits=4)} nats each" if published.size else ""
    share = "" if table.share is None else f"{100.0 * table.share:g} % of every step; "
    return f"{share}published at {steps(published.size)}{spent}"


def _terms(ledger: Ledger) -> list[tuple[str, str]]:
    """The guarantee of the release and, at a delta, the noise so far; without a value where something does not apply."""
    known = ledger.configuration
    if known["neighboring_relation"] == REPLACE_PERSON:
        spent = f"{number(known['alpha'], up=True)}-differential privacy for all states of a person together"
        return [("guarantee", spent), ("of", "a correlation")]
    renewal, is_pure, noted = renewal_of(ledger), "noise" not in known, recipes_of(ledger)
    sources = [recipe.provenances[0] for _, recipe in noted]
    source = sources[-1] if len({one.models for one in sources}) == 1 else UNSTATED
    if not sources and known["correlations"] is not None:  # of the service, or of Python
        with suppress(LedgerError):
            source = UNSTATED.with_directions_of(kept_correlations(ledger, known["correlations"]["users"]).users)
    kept = Guarantee.of(known.get("guarantee", "temporal"))
    level = known["alpha"] if renewal is None else renewal.promise
    scales = np.array([] if is_pure else [row.parameter for row in ledger[:] if row.output is not None])
    drawn = f", scale {spread(scales, digits=4)} counts so far" if scales.size else ""
    return [
        ("guarantee", guarantee_line(level, known.get("delta", 0.0), kept, source)),
        ("leakage", accounting_line(accounting_from(known["accounting"]), source) if is_pure else ""),
        ("renewed", "" if renewal is None else renewed_line(renewal)),
        ("noise", "" if is_pure else f"{discrete_noise(known['noise'])}, fixed before the first release{drawn}"),
    ]


def _span(ledger: Ledger) -> str:
    if not len(ledger):
        return "none yet"
    published = sum(row.output is not None for row in ledger[:])
    of_them = "" if published == len(ledger) else f"; {published} of them published"
    return f"{len(ledger)}, from {ledger[0].time} to {ledger[-1].time}{of_them}"


def _enforced_by(known: dict[str, Any]) -> str:
    if known["neighboring_relation"] == REPLACE_PERSON:
        return ""  # one spend; no state leaks through time
    parts = []
    if known["correlations"] is not None:
        what = "an odometer of all epochs" if "renewal" in known else "an accountant"
        parts.append(f"{what} ({plural(len(known['correlations']['users']), 'correlation')})")
    if known["plan"] is not None:
        parts.append(f"a plan (digest {known['plan'][:12]}){', renewed' if 'renewal' in known else ''}")
    if known["horizon"] is not None:
        parts.append(f"for {steps(known['horizon'])}")
    elif known["correlations"] is not None and "renewal" not in known:
        kept = known["reserve"]
        reserved = (
            "" if kept is None else f"{number(kept, down=True)} nats per step are reserved over an infinite horizon"
        )
        parts.append(reserved or "a sustainable budget is reserved")
    return ", ".join(parts)
