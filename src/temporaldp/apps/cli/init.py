"""`temporaldp init`: propose a project file for a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import console, warn
from temporaldp.apps.cli.render import require_places, working
from temporaldp.data.files.atomic import write_text


def init(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", show_default=False, help="The protected traces (CSV, Parquet or text).")
    ],
    history: Annotated[
        Path | None, o.option("--history", help="Other traces, to estimate the correlation from.", metavar="TABLE")
    ] = None,
    output: Annotated[
        Path, o.option("--output", "-o", help="Where to write the file (default: temporaldp.toml).", metavar="FILE")
    ] = Path("temporaldp.toml"),
    schema: Annotated[
        bool, o.option("--schema", help="Also write the JSON schema beside it, for completion in editors.")
    ] = False,
    overwrite: o.OverwriteOption = False,
) -> None:
    """Inspect a table and write a commented project file with its columns, steps, states and level.

    The other commands read temporaldp.toml in the working directory. Review it before you publish.
    """
    from temporaldp.publish.project.document import json_schema
    from temporaldp.publish.project.proposal import propose

    require_places(output, reads=(table, history), overwrite=overwrite)
    with working("looking at the table"):
        proposal = propose(table, history, output)
    beside = output.with_suffix(".schema.json")
    text = f"#:schema ./{beside.name}\n{proposal.text}" if schema else proposal.text
    if schema:
        write_text(beside, json_schema())
    write_text(output, text)
    warn(*proposal.questions)
    console.print(text, markup=False, soft_wrap=True)
    console.print(f"Written to {output}. Next: {proposal.next_step}", style="dim", soft_wrap=True)
