"""`temporaldp ledger`: look at a ledger, and check it."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from temporaldp import Ledger
from temporaldp.cli import options as o
from temporaldp.cli.release import promised
from temporaldp.cli.render import console, facts, say_json
from temporaldp.release.chain import LedgerRow
from temporaldp.report.words import number, span, steps

app = typer.Typer(help="Look at the ledger of a release, and check it.", no_args_is_help=True)

LAST_ROWS = 10

TERMS = ("alpha", "bound", "delta", "noise", "plan")
"""What `verify` repeats of what the ledger is for: the head vouches for it."""

ACCOUNTED = {
    "exact": "the exact leakage",
    "paper": "the paper's upper bound of the leakage",
    "metric": "an upper bound of the leakage, pair by pair",
}
"""By which leakage a release of budgets holds its level, in words."""

Place: TypeAlias = Annotated[
    str, typer.Argument(metavar="LEDGER", help="SQLite file or postgresql:// URL.", show_default=False)
]


@app.command("show")
def show(
    place: Place,
    every_row: Annotated[bool, typer.Option("--all", help="Every step instead of the last ten.")] = False,
    as_json: o.JsonOption = False,
) -> None:
    """What the ledger is for, what was spent, and how much leaked. Published counts are not printed."""
    with Ledger(place) as ledger:
        if as_json:
            say_json(_document(ledger))
            return
        facts("Ledger", _facts(ledger))
        if len(ledger):
            called = "scale" if "noise" in ledger.configuration else "budget"
            console.print(_table(ledger[:] if every_row else ledger[-LAST_ROWS:], called))
            if ledger.configuration["correlations"] is None:
                console.print(
                    "A plan alone holds the level: no accountant notes how much leaked at each step.",
                    style="dim",
                )


@app.command("verify")
def verify(
    place: Place,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            help="A head that was noted earlier, 12 digits or more: the ledger must contain it.",
            show_default=False,
        ),
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Check every row against the chain of hashes; exit code 4 if one was edited, deleted or cut off."""
    with Ledger(place) as ledger:
        ledger.verify(head=head)
        if as_json:
            terms = {key: ledger.configuration[key] for key in TERMS if key in ledger.configuration}
            say_json({"ledger": ledger.place, "steps": len(ledger), "head": ledger.head, "intact": True, **terms})
            return
        found = "" if head is None else f", and contains {head}"
        console.print(f"intact: {steps(len(ledger))}, head {ledger.head}{escape(found)}")
        for name, value in _terms(ledger):
            console.print(f"{name}: {value}")


def _document(ledger: Ledger) -> dict[str, Any]:
    return {
        "ledger": ledger.place,
        **ledger.configuration,
        "unit": "nats",
        "head": ledger.head,
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


def _facts(ledger: Ledger) -> list[tuple[str, str]]:
    known = ledger.configuration
    rows = [("place", ledger.place), ("steps", _span(ledger))]
    rows += _terms(ledger)
    rows.append(("held by", _held_by(known)))
    rows.append(("mechanism", str(known["mechanism"])))
    if known["states"] is not None:
        rows.append(("states", ", ".join(known["states"])))
    if known["step"] is not None:
        rows.append(("one step", str(known["step"])))
    spent = ledger.epsilons[ledger.epsilons > 0.0]
    if spent.size:
        rows.append(("spent per step", span(spent, up=True)))
    if len(ledger) and ledger[-1].leakage is not None:
        rows.append(("worst leakage so far", f"{number(ledger[-1].leakage, up=True)} nats"))
    return [*rows, ("head", ledger.head)]


def _terms(ledger: Ledger) -> list[tuple[str, str]]:
    """What the release promises and, if that is at a delta, the noise that it had so far."""
    known = ledger.configuration
    promise = ("guarantee", promised(known["alpha"], known.get("delta", 0.0)))
    if "noise" not in known:
        return [promise, ("by", ACCOUNTED[known["bound"]])]
    scales = np.array([row.parameter for row in ledger[:] if row.output is not None])
    drawn = "" if not scales.size else f", scale {span(scales)} counts so far"
    return [promise, ("noise", f"discrete {known['noise'].capitalize()}, fixed beforehand{drawn}")]


def _span(ledger: Ledger) -> str:
    if not len(ledger):
        return "none yet"
    published = sum(row.output is not None for row in ledger[:])
    text = f"{len(ledger)}, from {ledger[0].time} to {ledger[-1].time}"
    return text if published == len(ledger) else f"{text}; {published} of them published"


def _held_by(known: dict[str, Any]) -> str:
    parts = []
    if known["correlations"] is not None:
        users = len(known["correlations"]["users"])
        parts.append(f"an accountant ({users} correlation{'s' if users > 1 else ''})")
    if known["plan"] is not None:
        parts.append(f"a plan (digest {known['plan'][:12]})")
    if known["horizon"] is not None:
        parts.append(f"for {steps(known['horizon'])}")
    elif known["correlations"] is not None:
        kept = known["reserve"]
        parts.append(
            "what lasts for ever is kept"
            if kept is None
            else f"{number(kept, down=True)} nats a step are kept for ever"
        )
    return ", ".join(parts)


def _table(rows: list[LedgerRow], called: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = ("step", "time", called, "epsilon", "worst leakage")
    for name in columns:
        table.add_column(name, justify="left" if name == "time" else "right")
    for row in rows:
        leakage = "" if row.leakage is None else number(row.leakage, up=True)
        spent = number(row.epsilon, up=True) if row.output is not None else "not published"
        called_with = number(row.parameter) if row.output is not None else ""
        table.add_row(str(row.step), escape(row.time), called_with, spent, leakage)
    return table
