"""`temporaldp init`: propose a project file for a table."""

from __future__ import annotations

import os
import shlex
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
    assignments: Annotated[
        list[str] | None,
        o.option("--set", help="A key that is known (repeatable), such as traces.every=1d.", metavar="KEY=VALUE"),
    ] = None,
    stream: Annotated[
        bool, o.option("--stream", help="Later steps follow, also where the table looks finished: no horizon.")
    ] = False,
    output: Annotated[
        Path, o.option("--output", "-o", help="Where to write the file (default: temporaldp.toml).", metavar="FILE")
    ] = Path("temporaldp.toml"),
    schema: Annotated[
        bool, o.option("--schema", help="Also write the JSON schema beside it, for completion in editors.")
    ] = False,
    overwrite: o.OverwriteOption = False,
) -> None:
    """Inspect a table and write a commented project file with its shape, columns, steps, states and level.

    The command recognises tables of states, events and intervals (trips, stays), wide tables and sequences, and the format of
    their times. Answer what is asked with --set. Most other commands read temporaldp.toml in the working directory. Review it
    before you publish. Exit code 2: the table cannot be read until a question is answered.
    """
    from temporaldp.publish.project.document import json_schema, read_settings
    from temporaldp.publish.project.proposal import propose

    require_places(output, reads=(table, history), overwrite=overwrite)
    with working("looking at the table"):
        given = read_settings(Path(os.devnull), assignments or ()).model_dump(mode="json", exclude_unset=True)
        proposal = propose(table, history, output, given, stream=stream)
    beside = output.with_suffix(".schema.json")
    text = f"#:schema ./{beside.name}\n{proposal.text}" if schema else proposal.text
    if schema:
        write_text(beside, json_schema())
    write_text(output, text)
    warn(*proposal.questions)
    console.print(text, markup=False, soft_wrap=True)
    if any("--set " in question for question in proposal.questions):
        again = f"temporaldp init {shlex.quote(str(table))} --set KEY=VALUE --overwrite"
        console.print(f"To answer what is asked: {again}", style="dim", soft_wrap=True, markup=False)
    console.print(f"Written to {output}. Next: {proposal.next_step}", style="dim", soft_wrap=True)
    if not proposal.is_readable:
        raise typer.Exit(2)  # as for any other table that cannot be read
