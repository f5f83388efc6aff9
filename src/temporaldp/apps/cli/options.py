"""Options that several commands share, and the settings that they and the project file amount to.

A command has a positional table and the options that change from call to call. Everything else is a key of the project file,
which `--set SECTION.KEY=VALUE` overrides.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from temporaldp.base.errors import InputError
from temporaldp.publish.project import Project

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import Settings


def given(context: typer.Context) -> Project:
    """Return the project of a command: its file, `--set` and the other options, of which the later ones win."""
    from temporaldp.publish.project.document import read_settings

    options, assignments = context.meta.get(__name__), context.params["assignments"] or []
    return Project(read_settings(context.params["project"], assignments, options))


def sets(key: str) -> Callable[..., Any]:
    """Return the callback of a parameter that sets a key of the project file; None leaves the key as it is."""

    def noted(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
        shown = parameter.opts[0] if parameter.param_type_name == "option" else str(parameter.metavar)
        context.meta.setdefault(__name__, {})[key] = shown, value
        return value

    return noted


def option(*names: str, help: str, metavar: str | None = None, key: str | None = None) -> typer.models.OptionInfo:
    """Return an option without a default in its help: the project file may have another one, as the key that it sets."""
    made: typer.models.OptionInfo = typer.Option(
        *names, help=help, metavar=metavar, show_default=False, callback=None if key is None else sets(key)
    )
    return made


def ledger_of(settings: Settings) -> str:
    """Return the ledger of the settings."""
    if settings.release.ledger is None:
        raise InputError(
            "expected LEDGER (an SQLite file or a postgresql:// URL), or release.ledger in the project file"
        )
    return settings.release.ledger


def place_of(place: str | None, project: Path | None) -> str:
    """Return the given ledger, or that of the project file, by default of the working directory."""
    from temporaldp.publish.project.document import read_settings

    return place if place is not None else ledger_of(read_settings(project))


LedgerArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        callback=sets("release.ledger"),
        metavar="LEDGER",
        show_default=False,
        help="SQLite file or postgresql:// URL; default: the project's ledger.",
    ),
]
TracesArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        callback=sets("traces.path"),
        metavar="TRACES",
        show_default=False,
        help="CSV or Parquet file, folder or pattern; or a text file.",
    ),
]
ProjectOption: TypeAlias = Annotated[
    Path | None, option("--project", help="Project file; default: temporaldp.toml, if it exists.", metavar="FILE")
]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    option("--set", help="Set any key of the project file (repeatable), such as traces.user=id.", metavar="KEY=VALUE"),
]
HistoryOption: TypeAlias = Annotated[
    Path | None,
    option("--history", key="history.path", help="Other traces to estimate the correlation from.", metavar="FILE"),
]
EpsilonOption: TypeAlias = Annotated[
    float | None, option("--epsilon", key="privacy.epsilon", help="Epsilon of every step, in nats.", metavar="E")
]
AlphaOption: TypeAlias = Annotated[
    float | None,
    option("--alpha", key="privacy.alpha", help="Level that every step must satisfy, in nats.", metavar="A"),
]
DeltaOption: TypeAlias = Annotated[
    float | None, option("--delta", key="privacy.delta", help="Account in (epsilon, delta)-DP_T.", metavar="D")
]
NoiseOption: TypeAlias = Annotated[
    str | None,
    option("--noise", key="privacy.noise", help="Noise on counts (with --delta).", metavar="gaussian|laplace"),
]
HorizonOption: TypeAlias = Annotated[
    int | None, option("--horizon", key="privacy.horizon", help="Number of steps.", metavar="T")
]
BoundOption: TypeAlias = Annotated[
    str | None,
    option("--bound", key="privacy.bound", help="Accounting method (default: exact).", metavar="exact|paper"),
]
EffortOption: TypeAlias = Annotated[
    float | None,
    option(
        "--effort",
        key="privacy.effort",
        help="Stop comparing states after so long, with an interval.",
        metavar="SECONDS",
    ),
]
FigureOption: TypeAlias = Annotated[
    Path | None, option("--figure", help="Draw a figure (.png or .svg).", metavar="FILE")
]
ReleaseOption: TypeAlias = Annotated[
    str, option("--release", help="Release of a service; the ledger is its store.", metavar="ID")
]
JsonOption: TypeAlias = Annotated[bool, option("--json", help="Print JSON instead of tables.")]
BeginAnewOption: TypeAlias = Annotated[
    bool,
    option(
        "--begin-anew",
        help="Draw published times of a lost ledger again: both releases together may exceed the level.",
    ),
]
OverwriteOption: TypeAlias = Annotated[bool, option("--overwrite", help="Replace an existing output.")]
