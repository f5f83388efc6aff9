"""Options that several subcommands share, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from temporaldp.accounting.methods import accounting_from
from temporaldp.accounting.protocol import Accounting

TRACES = "Traces"
CORRELATION = "Correlation: what the adversary knows"
SMOOTHED = "Smoothed counts"


class Layout(StrEnum):
    """How a file of traces is laid out."""

    AUTO = "auto"
    LONG = "long"
    WIDE = "wide"
    SEQUENCES = "sequences"


class Fills(StrEnum):
    """What somebody is at a step without an event."""

    LAST = "last"
    ABSENT = "absent"


class Known(StrEnum):
    """Which correlations are learnt."""

    BOTH = "both"
    BACKWARD = "backward"
    FORWARD = "forward"


class Bounds(StrEnum):
    """The accounting method."""

    EXACT = "exact"
    PAPER = "paper"

    @property
    def accounting(self) -> Accounting[Any, Any]:
        """The method itself."""
        return accounting_from({"method": self.value})


class Renewals(StrEnum):
    """When a plan begins again."""

    STEPS = "steps"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    YEARLY = "yearly"


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
        help="CSV or Parquet, long (user, time, state) or wide (one column a step), a file, a pattern or a folder; or text, "
        "one person's sequence a line.",
    ),
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
ByOption: TypeAlias = Annotated[
    str | None,
    _option("--by", help="Column with the group that a person belongs to.", panel=TRACES, metavar="COLUMN"),
]
GroupsOption: TypeAlias = Annotated[
    str | None,
    _option("--groups", help="With --by: only the people of these groups.", panel=TRACES, metavar="A,B"),
]
PeopleOption: TypeAlias = Annotated[
    str | None,
    _option("--people", help="Only these people.", panel=TRACES, metavar="A,B"),
]
SinceOption: TypeAlias = Annotated[
    str | None,
    _option("--since", help="Only times from this one on.", panel=TRACES, metavar="TIME"),
]
UntilOption: TypeAlias = Annotated[
    str | None,
    _option("--until", help="Only times up to this one.", panel=TRACES, metavar="TIME"),
]
AbsentOption: TypeAlias = Annotated[
    str | None,
    _option(
        "--absent",
        help="A state for people without a row at a time: presence is then protected.",
        panel=TRACES,
        metavar="NAME",
    ),
]
EveryOption: TypeAlias = Annotated[
    str | None,
    _option(
        "--every",
        help="Rows are events: put them on a grid of 15min, 1h or 1d.",
        panel=TRACES,
        metavar="STEP",
    ),
]
ZoneOption: TypeAlias = Annotated[
    str | None,
    _option("--zone", help="With --every: whose clock it is, such as Europe/Amsterdam.", panel=TRACES, metavar="ZONE"),
]
FillOption: TypeAlias = Annotated[
    Fills | None,
    _option("--fill", help="With --every: at a step without an event, what people were last, or absent.", panel=TRACES),
]
MemoryOption: TypeAlias = Annotated[
    str, _option("--memory", help="What reading may take; more is spilled to temporary files.", panel=TRACES)
]
TransitionsOption: TypeAlias = Annotated[
    Path | None,
    _option("--transitions", help="In place of TRACES: a table with the columns from, to, count.", panel=TRACES),
]
CountsOption: TypeAlias = Annotated[
    Path | None,
    _option("--counts", help="In place of TRACES: a table with the columns time, state, count.", panel=TRACES),
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
CorrelationFileOption: TypeAlias = Annotated[
    Path | None,
    _option(
        "--correlation",
        help="Correlation of both directions in one file (.npz), as learn writes it, instead of learning.",
        panel=CORRELATION,
    ),
]
StaysOption: TypeAlias = Annotated[
    str | None,
    _option(
        "--stays",
        help="Every correlation under which a value stays with a probability in this range, such as 0.7:0.95.",
        panel=CORRELATION,
        metavar="FROM:TO",
    ),
]
ConfidenceOption: TypeAlias = Annotated[
    float | None,
    _option(
        "--confidence",
        help="Every correlation within Clopper-Pearson intervals of what traces show, such as 0.95.",
        panel=CORRELATION,
        metavar="C",
    ),
]
PeriodOption: TypeAlias = Annotated[
    int | None,
    _option("--period", help="One correlation for each of so many steps of a clock.", panel=CORRELATION, metavar="P"),
]
PhaseOption: TypeAlias = Annotated[
    int | None,
    _option(
        "--phase",
        help="With --period: at which step of the clock the release begins; 0: where the traces learnt from do.",
        panel=CORRELATION,
    ),
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
FailureOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--failure",
        metavar="P",
        help="With --verify: the probability that draws deceive; a thousandth of delta unless given.",
        show_default=False,
    ),
]
DrawsOption: TypeAlias = Annotated[int, typer.Option("--draws", help="With --verify: how many draws.")]
SecondsOption: TypeAlias = Annotated[
    float | None, typer.Option("--seconds", help="With --verify: a limit of time.", show_default=False)
]
SeedOption: TypeAlias = Annotated[int, typer.Option("--seed", help="Of all draws.")]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table.")]
SameStartOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--same-start",
        help="The release begins as the history does (a night, a course), whose first counts tell of its own.",
        rich_help_panel=SMOOTHED,
    ),
]
SyntheticOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--synthetic",
        help="Also draw made-up traces from the smoothed counts (.csv), for who needs rows.",
        show_default=False,
        rich_help_panel=SMOOTHED,
    ),
]
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
    absent: AbsentOption = None
    every: EveryOption = None
    fill: FillOption = None
    zone: ZoneOption = None
    by: ByOption = None
    groups: GroupsOption = None
    people: PeopleOption = None
    since: SinceOption = None
    until: UntilOption = None
    memory: MemoryOption = "1GiB"
    transitions: TransitionsOption = None
    counts: CountsOption = None

    @property
    def files(self) -> tuple[Path | None, ...]:
        """The files that are read in place of traces."""
        return self.transitions, self.counts

    @property
    def counted(self) -> bool:
        """Whether counts take the place of traces."""
        return self.transitions is not None or self.counts is not None


@dataclass(frozen=True)
class CorrelationOptions:
    """Where the correlation comes from."""

    backward: BackwardOption = None
    forward: ForwardOption = None
    history: HistoryOption = None
    learn: KnownOption = Known.BOTH
    prior: PriorOption = 0.0
    per_user: PerUserOption = False
    correlation: CorrelationFileOption = None
    stays: StaysOption = None
    confidence: ConfidenceOption = None
    period: PeriodOption = None
    phase: PhaseOption = None

    @property
    def files(self) -> tuple[Path | None, ...]:
        """The files that are read for it."""
        return self.backward, self.forward, self.history, self.correlation

    @property
    def learning(self) -> bool:
        """Whether an option about learning from traces was given."""
        chosen = self.history is not None or self.per_user or bool(self.prior) or self.learn is not Known.BOTH
        return chosen or self.confidence is not None or self.period is not None or self.phase is not None


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
