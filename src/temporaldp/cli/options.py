"""Options that several subcommands share, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

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


class Bounds(StrEnum):
    """By which accounting leakage is told, and alpha held."""

    EXACT = "exact"
    PAPER = "paper"


class Noises(StrEnum):
    """Noise on every count of a histogram."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


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
BoundOption: TypeAlias = Annotated[
    Bounds,
    typer.Option(
        "--bound",
        help="exact: the largest leakage over every mechanism with these epsilons. paper: the recursions of Cao et al., an "
        "upper bound of it, alone.",
    ),
]
DeltaOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--delta",
        metavar="D",
        help="(epsilon, delta)-DP_T instead of delta = 0: all leakage is the epsilon at this delta.",
        show_default=False,
    ),
]
MechanismOption: TypeAlias = Annotated[
    Noises | None,
    typer.Option(
        "--mechanism",
        help="With --delta: discrete Gaussian or discrete Laplace noise on every count.",
        show_default=False,
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table.")]
OverwriteOption: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace an output that is already there.")
]


@dataclass(frozen=True)
class TraceOptions:
    """How to read a file of traces."""

    layout: LayoutOption = Layout.AUTO
    user: UserOption = "user"
    time: TimeOption = "time"
    state: StateOption = "state"
    states: StatesOption = None
    delimiter: DelimiterOption = None
    gaps: GapsOption = False
    sort: SortOption = False


@dataclass(frozen=True)
class CorrelationOptions:
    """Where the correlation comes from."""

    backward: BackwardOption = None
    forward: ForwardOption = None
    history: HistoryOption = None
    learn: KnownOption = Known.BOTH
    prior: PriorOption = 0.0
    per_user: PerUserOption = False

    @property
    def files(self) -> tuple[Path | None, ...]:
        """The files that are read for it."""
        return self.backward, self.forward, self.history


GROUPS = (TraceOptions, CorrelationOptions)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters of type `TraceOptions` or `CorrelationOptions` are written out, one option a field.

    Typer reads a function's signature; so the options of a group are declared once, as fields, and a command asks for the
    group as a whole.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if hint in GROUPS}
    own = [p.replace(annotation=hints[name]) for name, p in signature(command).parameters.items() if name not in groups]
    spread = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])
        for group in groups.values()
        for types in [get_type_hints(group, include_extras=True)]
        for field in fields(group)
    ]

    def run(**values: Any) -> None:
        made = {name: group(**{f.name: values.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**values, **made)

    parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own] + spread
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run
