"""Options that several subcommands share, and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

TRACES = "Traces"
CORRELATION = "Correlation: what the adversary knows"


class Layout(StrEnum):
    """How a file of traces is laid out."""

    AUTO = "auto"
    LONG = "long"
    WIDE = "wide"
    SEQUENCES = "sequences"


class Known(StrEnum):
    """Which correlations are learnt."""

    BOTH = "both"
    BACKWARD = "backward"
    FORWARD = "forward"


def _option(*names: str, help: str, panel: str | None = None, metavar: str | None = None) -> typer.models.OptionInfo:
    made: typer.models.OptionInfo = typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar)
    return made


TracesArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="TRACES",
        show_default=False,
        help="CSV or Parquet, long (user, time, state) or wide (one column a step); or text, one person's sequence a line.",
    ),
]
RequiredTraces: TypeAlias = Annotated[
    Path, typer.Argument(metavar="TRACES", show_default=False, help="CSV or Parquet, long or wide; or text sequences.")
]
LayoutOption: TypeAlias = Annotated[
    Layout, _option("--layout", help="Layout of TRACES; auto: by suffix and column names.", panel=TRACES)
]
UserOption: TypeAlias = Annotated[str, _option("--user", help="Column that names the person.", panel=TRACES)]
TimeOption: TypeAlias = Annotated[str, _option("--time", help="Column with the time (long layout).", panel=TRACES)]
StateOption: TypeAlias = Annotated[str, _option("--state", help="Column with the state (long layout).", panel=TRACES)]
StatesOption: TypeAlias = Annotated[
    str | None,
    _option("--states", help="The public list of states, separated by commas; others are errors.", panel=TRACES),
]
DelimiterOption: TypeAlias = Annotated[
    str | None, _option("--delimiter", help="Separator of CSV or text.", panel=TRACES)
]
GapsOption: TypeAlias = Annotated[
    bool, _option("--gaps", help="Empty cells (wide) mean that the person was not observed.", panel=TRACES)
]
SortOption: TypeAlias = Annotated[
    bool, _option("--sort", help="Sort rows or columns by time instead of refusing times out of order.", panel=TRACES)
]
BackwardOption: TypeAlias = Annotated[
    Path | None,
    _option(
        "--backward", help="Backward transition matrix (.csv, .json, .npz), instead of learning.", panel=CORRELATION
    ),
]
ForwardOption: TypeAlias = Annotated[
    Path | None,
    _option("--forward", help="Forward transition matrix (.csv, .json, .npz), instead of learning.", panel=CORRELATION),
]
HistoryOption: TypeAlias = Annotated[
    Path | None, _option("--history", help="Other traces to learn the correlation from.", panel=CORRELATION)
]
KnownOption: TypeAlias = Annotated[
    Known, _option("--learn", help="Which correlations to learn from traces.", panel=CORRELATION)
]
PriorOption: TypeAlias = Annotated[
    float, _option("--prior", help="Dirichlet prior: added to the count of every transition.", panel=CORRELATION)
]
PerUserOption: TypeAlias = Annotated[
    bool, _option("--per-user", help="One correlation per person instead of one for all.", panel=CORRELATION)
]
HorizonOption: TypeAlias = Annotated[
    int | None, typer.Option("--horizon", metavar="T", help="Number of steps.", show_default=False)
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table.")]
OverwriteOption: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace an output that is already there.")
]


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How to read a file of traces."""

    layout: Layout
    user: str
    time: str
    state: str
    states: str | None
    delimiter: str | None
    gaps: bool
    sort: bool


@dataclass(frozen=True, slots=True)
class CorrelationOptions:
    """Where the correlation comes from."""

    backward: Path | None
    forward: Path | None
    history: Path | None
    learn: Known
    prior: float
    per_user: bool
