"""Options that several commands share, and the settings that they and the project file amount to.

A command has a positional table and the options that change from call to call. Everything else is a key of the project file,
which `--set SECTION.KEY=VALUE` overrides.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from temporaldp.errors import InputError
from temporaldp.project import Project

if TYPE_CHECKING:
    from temporaldp.project.settings import Settings

NAMES = {
    "traces.path": "TRACES",
    "history.path": "--history",
    "study.alphas": "--alpha",
    "study.epsilons": "--epsilon",
    "study.scales": "--scale",
}
"""Names in messages of options that are not named after the last part of their key."""


def read(project: Path | None, assignments: list[str] | None, options: Mapping[str, Any]) -> Project:
    """Return the project of a command: the project file, `--set` and the options, of which the later ones win.

    Parameters
    ----------
    project : path or None
        The project file; by default `temporaldp.toml` of the working directory, if there is one.
    assignments : list of str or None
        Values of `--set`.
    options : mapping from keys ("privacy.alpha") to values
        None where an option was not given.
    """
    from temporaldp.project.document import read_settings

    named = {key: (NAMES.get(key) or f"--{key.partition('.')[2]}", value) for key, value in options.items()}
    return Project(read_settings(project, assignments or [], named))


def given(context: typer.Context) -> Project:
    """Return the project of a command: each of its parameters that sets a key is named after it, such as `privacy_alpha`."""
    from temporaldp.project.settings import Settings

    values = {tuple(name.split("_", 1)): value for name, value in context.params.items()}
    keys = {".".join(name): value for name, value in values.items() if name[0] in Settings.model_fields}
    return read(context.params["project"], context.params["assignments"], keys)


def option(*names: str, help: str, metavar: str | None = None) -> typer.models.OptionInfo:
    """Return an option without a default in its help: the project file may have another one."""
    made: typer.models.OptionInfo = typer.Option(*names, help=help, metavar=metavar, show_default=False)
    return made


def ledger_of(settings: Settings) -> str:
    """Return the ledger of the settings."""
    if settings.release.ledger is None:
        raise InputError(
            "expected LEDGER (an SQLite file or a postgresql:// URL), or release.ledger in the project file"
        )
    return settings.release.ledger


def place_of(place: str | None) -> str:
    """Return the given ledger, or that of the project file of the working directory."""
    return place if place is not None else ledger_of(read(None, None, {}).settings)


LedgerArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="LEDGER", show_default=False, help="SQLite file or postgresql:// URL; default: the project's ledger."
    ),
]
TracesArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(metavar="TRACES", show_default=False, help="CSV or Parquet file, folder or pattern; or text."),
]
ProjectOption: TypeAlias = Annotated[
    Path | None, option("--project", help="Project file; default: temporaldp.toml, if it exists.", metavar="FILE")
]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    option("--set", help="Set any key of the project file (repeatable), such as traces.user=id.", metavar="KEY=VALUE"),
]
HistoryOption: TypeAlias = Annotated[
    Path | None, option("--history", help="Other traces to estimate the correlation from.", metavar="FILE")
]
EpsilonOption: TypeAlias = Annotated[
    float | None, option("--epsilon", help="Epsilon of every step, in nats.", metavar="E")
]
AlphaOption: TypeAlias = Annotated[
    float | None, option("--alpha", help="Level that every step must satisfy, in nats.", metavar="A")
]
DeltaOption: TypeAlias = Annotated[
    float | None, option("--delta", help="Account in (epsilon, delta)-DP_T.", metavar="D")
]
NoiseOption: TypeAlias = Annotated[
    str | None,
    option("--noise", help="Noise on counts (with --delta), or unknown.", metavar="gaussian|laplace|unknown"),
]
HorizonOption: TypeAlias = Annotated[int | None, option("--horizon", help="Number of steps.", metavar="T")]
BoundOption: TypeAlias = Annotated[
    str | None, option("--bound", help="Accounting method (default: exact).", metavar="exact|paper")
]
FigureOption: TypeAlias = Annotated[
    Path | None, option("--figure", help="Draw a figure (.png or .svg).", metavar="FILE")
]
JsonOption: TypeAlias = Annotated[bool, option("--json", help="Print JSON instead of tables.")]
OverwriteOption: TypeAlias = Annotated[bool, option("--overwrite", help="Replace an existing output.")]
