"""The command's entry: subcommands, and what an error looks like."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from temporaldp import PlanError, TemporaldpError, __version__
from temporaldp.cli import audit, demo, plan, release, report
from temporaldp.cli.render import errors

BAD_INPUT = 2
LEVEL_NOT_HELD = 3

app = typer.Typer(
    name="temporaldp",
    help="Differential privacy under temporal correlations: audit a release, plan its budgets, publish, report.",
    epilog="Exit codes: 0 done; 2 bad input, nothing was written; 3 the level is not, or cannot be, held.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("audit")(audit.audit)
app.command("plan")(plan.plan)
app.command("release")(release.release)
app.command("report")(report.report)
app.command("demo")(demo.demo)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"temporaldp {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_say_version)
    ] = False,
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Run the command; an error that we expect is one message on standard error and an exit code, never a traceback."""
    # A polite kill unwinds like an error, so that temporary files go away; by default Python would just stop.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        app()
    except TemporaldpError as error:
        errors.print(f"[bold red]error:[/] {_escaped(str(error))}", soft_wrap=True)
        sys.exit(LEVEL_NOT_HELD if isinstance(error, PlanError) else BAD_INPUT)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): that is no error of ours.
        sys.stderr.close()
        sys.exit(0)


def _escaped(message: str) -> str:
    from rich.markup import escape

    return escape(message)
