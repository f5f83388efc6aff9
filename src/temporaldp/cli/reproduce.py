"""`temporaldp reproduce`: the paper's figures, its table, and what it says, claim by claim."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from temporaldp import InputError
from temporaldp.cli.render import console, facts, working

if TYPE_CHECKING:
    from temporaldp.paper import Claim, Exhibit

PAGE = "claims.md"


def reproduce(
    figure: Annotated[
        list[str] | None,
        typer.Option(
            "--figure", metavar="N", help="One figure (3 to 8) or table2; may be repeated.", show_default=False
        ),
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            "--claim", metavar="ID", help="Check one statement of the paper; may be repeated.", show_default=False
        ),
    ] = None,
    claims: Annotated[bool, typer.Option("--claims", help="Check every statement of the paper.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for numbers (CSV), pictures (PNG, SVG) and claims.md.", show_default=False
        ),
    ] = None,
) -> None:
    """Reproduce the paper (Cao et al., ICDE 2017): its figures, Table II, and what it says. Without a choice, all of it.

    Figure 5 measures time on this machine, with the solvers that are installed.
    """
    from temporaldp.paper import check_claims, reproduce, write_document

    if claim and claims:
        raise InputError("expected --claim for some statements or --claims for all of them, not both")
    if output is not None and (claim or claims):
        raise InputError(
            "claims are printed; leave out --claim and --claims to have them written, with all figures, to -o"
        )
    everything = not (figure or claim or claims)
    wanted = check_claims(claim or None)  # refuses unknown names before any work
    exhibits: list[Exhibit] = []
    if figure or everything:
        for found, written in reproduce(figure or None, folder=output):
            exhibits.append(found)
            show_exhibit(found, written)
    if figure and not (claim or claims):
        return
    with working("checking the claims"):
        checked = list(wanted)
    if not everything:
        for one in checked:
            show_claim(one)
    if len(checked) > 1:
        show_verdicts(checked)
    if output is not None:
        write_document(checked, exhibits, output / PAGE)
        console.print(f"The claims, one by one, are in {output / PAGE}", soft_wrap=True, markup=False)


def show_exhibit(found: Exhibit, written: Sequence[Path]) -> None:
    """What was computed, how it compares, and where it is."""
    console.rule(escape(f"{found.stem}: {found.title} ({found.section})"), align="left")
    comparisons = found.comparisons()
    if comparisons:
        table = Table("panel", "curve", "against", box=None, pad_edge=False)
        table.add_column("points", justify="right")
        table.add_column("largest relative difference", justify="left")
        for check in comparisons:
            cells = (check.panel, check.name, check.against)
            sampled = "" if check.deviations is None else f" ({check.deviations:.1f} standard errors)"
            table.add_row(*map(escape, cells), str(check.points), f"{check.difference:.1e}{sampled}")
        console.print(table)
    for note in found.notes:
        console.print(f"Note: {note}", markup=False)
    if written:
        console.print(f"written: {', '.join(map(str, written))}", soft_wrap=True, markup=False)


def show_claim(claim: Claim) -> None:
    """One statement, checked."""
    rows = [("where", claim.place), ("the paper", claim.says), ("we get", claim.found), ("verdict", str(claim.verdict))]
    facts(claim.identifier, [*rows, ("why", claim.why)])
    console.print()


def show_verdicts(checked: Sequence[Claim]) -> None:
    """How many statements agree."""
    from temporaldp.paper import Verdict

    for verdict in Verdict:
        of_it = [claim.identifier for claim in checked if claim.verdict is verdict]
        if of_it:
            console.print(f"{len(of_it)} of {len(checked)} {verdict}: {', '.join(of_it)}", markup=False)
