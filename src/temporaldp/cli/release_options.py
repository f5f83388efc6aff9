"""The options of `temporaldp release`: those that a first release needs, then a release that goes on, then smoothed counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from temporaldp.cli import options as o

GOING_ON = "A release that goes on for long (with --ledger)"

OutputOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where to write the counts (.parquet or .csv).", show_default=False),
]
LedgerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help="SQLite file or postgresql:// URL that keeps every step: run again as data arrive.",
        show_default=False,
    ),
]
AlphaOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--alpha", help="With --ledger: the level to hold, in nats, for ever (needs --history).", show_default=False
    ),
]
PlanOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--plan", help="In place of --alpha: a plan from `temporaldp plan`.", show_default=False),
]
DryRunOption: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="With --ledger: say what would be spent and leak; draw and write nothing.")
]
ConsistentOption: TypeAlias = Annotated[
    bool, typer.Option("--consistent", help="Make counts non-negative, with the public total.")
]
HorizonOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--horizon",
        metavar="T",
        help="With --alpha: the release ends after T steps, by the optimal plan for them.",
        show_default=False,
        rich_help_panel=GOING_ON,
    ),
]
RenewOption: TypeAlias = Annotated[
    o.Renewals | None,
    typer.Option(
        "--renew",
        help="The plan begins again with each day, week, month or year, or after its last step (needs --history).",
        show_default=False,
        rich_help_panel=GOING_ON,
    ),
]
LeakageOption: TypeAlias = Annotated[
    o.Bounds | None,
    typer.Option(
        "--bound",
        help="Hold alpha by the exact leakage (default), or by the paper's upper bound.",
        show_default=False,
        rich_help_panel=GOING_ON,
    ),
]
TableOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help="Publish this table of an account of several (`temporaldp ledger share`).",
        show_default=False,
        rich_help_panel=GOING_ON,
    ),
]
HeadOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--head",
        help="A head that was noted: a ledger without it, an older copy, releases nothing.",
        show_default=False,
        rich_help_panel=GOING_ON,
    ),
]
WarnOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--warn-at",
        metavar="SHARE",
        help="Warn once this share of the steps, or of alpha if not spent as planned, is used, such as 0.8.",
        show_default=False,
        rich_help_panel=GOING_ON,
    ),
]
LogOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--log",
        metavar="FILE",
        help="Append a line of JSON about this run, with nothing about a person.",
        show_default=False,
        rich_help_panel=GOING_ON,
    ),
]
SmoothOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--smooth",
        help="Also write counts smoothed by a public correlation (--history, --forward), with 95 % intervals.",
        show_default=False,
        rich_help_panel=o.SMOOTHED,
    ),
]
