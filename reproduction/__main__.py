"""Command line: ``python -m reproduction [--figure N] [--claim ID] [-o FOLDER]``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from reproduction import EXHIBITS, STATEMENTS
from reproduction.claim import Claim, Verdict
from reproduction.document import render_document
from reproduction.drawing import save_figure
from reproduction.exhibit import Exhibit, write_csv

PAGE = "README.md"


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute the chosen figures and claims, or all of them, and print the results.

    With a folder, write each figure as CSV, PNG and SVG, and, if nothing was chosen, the page of all claims.
    """
    parser = argparse.ArgumentParser(prog="python -m reproduction", description="Reproduce Cao et al., ICDE 2017.")
    parser.add_argument("--figure", action="append", choices=EXHIBITS, help="one figure or table; may be repeated")
    parser.add_argument(
        "--claim", action="append", choices=STATEMENTS, metavar="ID", help="one statement of the paper; may be repeated"
    )
    parser.add_argument("--output", "-o", type=Path, metavar="FOLDER", help="folder for CSV, PNG, SVG and README.md")
    options = parser.parse_args(arguments)
    everything = not (options.figure or options.claim)
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
    exhibits = []
    for key in EXHIBITS if everything else options.figure or ():
        exhibits.append(EXHIBITS[key].compute())
        show_exhibit(exhibits[-1])
        if options.output is not None:
            write_exhibit(key, exhibits[-1], options.output)
    claims = []
    for identifier in STATEMENTS if everything else options.claim or ():
        claims.append(STATEMENTS[identifier].examine())
        if not everything:
            show_claim(claims[-1])
    if everything:
        show_verdicts(claims)
        if options.output is not None:
            (options.output / PAGE).write_text(render_document(claims, exhibits), encoding="utf-8")


def show_exhibit(exhibit: Exhibit) -> None:
    """Print the comparisons and notes of an exhibit."""
    print(f"{exhibit.stem}: {exhibit.title} ({exhibit.section})")
    for check in exhibit.comparisons():
        sampled = "" if check.deviations is None else f", {check.deviations:.1f} standard errors"
        panel = f"({check.panel}) " if check.panel else ""
        print(f"  {panel}{check.name}: {check.points} points of {check.against}, {check.difference:.1e}{sampled}")
    for note in exhibit.notes:
        print(f"  Note: {note}")


def write_exhibit(key: str, exhibit: Exhibit, folder: Path) -> None:
    """Write an exhibit as CSV, PNG and SVG."""
    write_csv(exhibit, folder / f"{exhibit.stem}.csv")
    figure = EXHIBITS[key].draw(exhibit)
    for suffix in ("png", "svg"):
        save_figure(figure, folder / f"{exhibit.stem}.{suffix}")


def show_claim(claim: Claim) -> None:
    """Print one checked statement."""
    print(claim.identifier)
    lines = {
        "where": claim.place,
        "the paper": claim.says,
        "we get": claim.found,
        "verdict": claim.verdict,
        "why": claim.why,
    }
    for name, text in lines.items():
        print(f"  {name:<10} {text}")


def show_verdicts(claims: Iterable[Claim]) -> None:
    """Print the claims of each verdict."""
    for verdict in Verdict:
        print(f"{verdict}: {', '.join(claim.identifier for claim in claims if claim.verdict is verdict)}")


if __name__ == "__main__":
    main()
