"""The pages of docs/measured: templates in benchmarks/pages, with tables that the benchmarks recorded in benchmarks/recorded.

Run with:  make bench NAME=pages
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded"
PAGES = ("counts", "speed", "tightness")


def provenance(name: str) -> str:
    """Return the command, commit, date and machine of a recorded measurement: the first line of its file."""
    first = _lines(name)[0]
    found = re.fullmatch(r"<!-- (.*) -->", first)
    if found is None:
        raise LookupError(f"expected the provenance in the first line of {name}.md; found {first!r}")
    return found[1]


def table(name: str, heading: str, *, number: int = 1, rows: str = "", without: str = "", columns: dict[str, str] | None = None) -> str:  # fmt: skip
    """Return a recorded table.

    Parameters
    ----------
    name, heading, number
        The file, the heading above the table, and which table below that heading it is.
    rows, without
        Regular expressions: rows that match the first are kept, of these those that match the second are left out.
    columns
        The columns that are kept, in this order, each with the head that it has on the page.
    """
    lines = _lines(name)
    start = next((k for k, line in enumerate(lines) if re.fullmatch(rf"#+ {re.escape(heading)}", line)), None)
    if start is None:
        raise LookupError(f"{name}.md has no heading {heading!r}")
    tables: list[list[list[str]]] = []
    inside = False
    for line in lines[start + 1 :]:
        if line.startswith("#"):
            break
        if line.startswith("|"):
            if not inside:
                tables.append([])
            tables[-1].append([cell.strip() for cell in line.strip().strip("|").split("|")])
        inside = line.startswith("|")
    head, rule, *body = tables[number - 1]
    body = [
        row
        for row in body
        if re.search(rows, " | ".join(row)) and not (without and re.search(without, " | ".join(row)))
    ]
    if not body:
        raise LookupError(f"no row of {heading!r} in {name}.md matches {rows!r}")
    kept = [head.index(column) for column in columns] if columns else list(range(len(head)))
    heads = [*columns.values()] if columns else head
    return "\n".join(
        "| " + " | ".join(row) + " |" for row in [heads, *([row[k] for k in kept] for row in [rule, *body])]
    )


def beside(*tables: str) -> str:
    """Return one table of tables that have the same first column."""
    rows = [[line.split(" | ", 1) for line in lines] for lines in zip(*map(str.splitlines, tables), strict=True)]
    for (first, _), *others in rows:
        if any(name != first for name, _ in others):
            raise LookupError(f"expected tables with the same first column; found {first!r} beside {others!r}")
    return "\n".join(f"{row[0][0]} | " + " ".join(cells for _, cells in row) for row in rows)


def _lines(name: str) -> list[str]:
    return (RECORDED / f"{name}.md").read_text(encoding="utf-8").splitlines()


def page(name: str) -> str:
    """Return the text of docs/measured/NAME.md."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "pages"), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    text = environment.get_template(f"{name}.md.j2").render(table=table, beside=beside, provenance=provenance)
    return re.sub(r"^\|[ :|-]+\|$", lambda rule: rule[0].replace(" ", ""), text, flags=re.MULTILINE)


def main() -> None:
    """Write the pages into the folder given."""
    for name in PAGES:
        (Path(sys.argv[1]) / f"{name}.md").write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
