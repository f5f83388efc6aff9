"""The command's entry: subcommands, and what an error looks like."""

from __future__ import annotations

import importlib
import io
import sys
import warnings
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, NoReturn

import typer
from rich.markup import escape

from temporaldp import __version__
from temporaldp.apps.cli.console import drop_output, errors, outcome, warn
from temporaldp.apps.cli.interruption import Interrupted, handle_signals, leave
from temporaldp.base.errors import TemporaldpError


class Commands(typer.core.TyperGroup):
    """The commands, each loaded when it runs; an unknown option that is a setting is answered with the way to set it."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of these arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load(str(command.name)), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except Exception as error:  # Typer's class for an unknown option is private
            option, close = getattr(error, "option_name", None), getattr(error, "possibilities", None)
            if option is not None and not get_close_matches(option, close or (), cutoff=0.8):
                from temporaldp.publish.project.document import closest_key

                key = closest_key(option.lstrip("-").replace("-", "_"))
                if key is not None:
                    vars(error)["message"] = f"There is no such option; the setting is --set {key}=VALUE."
            raise


app = typer.Typer(
    name="temporaldp",
    cls=Commands,
    help="Differential privacy under temporal correlations: audit a release, plan its budgets, publish, report.",
    epilog="Exit codes: 0 success; 2 invalid input, nothing was written; 3 the level is not or cannot be satisfied, "
    "or the budget is used up; 4 a ledger cannot be read, written or trusted; 5 the data are too late to be released.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
PANELS = {
    "Set up": {
        "init": "Inspect a table and write a commented project file with its shape, columns, steps, states and level."
    },
    "Account and plan": {
        "audit": "Compute the leakage of a release that spends epsilon at every step.",
        "budget": "Compute the epsilon to type into another library, or what a renewed epsilon leaks over time.",
        "plan": "Compare what each guarantee costs, and plan the one in use, so no step leaks more than alpha.",
        "learn": "Estimate a correlation from protected traces with differential privacy, as intervals.",
    },
    "Publish": {
        "release": "Publish the number of users in each state at each step, with exact discrete Laplace or Gaussian noise.",
        "smooth": "Smooth a finished release by a public correlation, with 95 % intervals.",
        "report": "Write one self-contained HTML page: the guarantee in words, reasons, assumptions, figures, numbers.",
        "serve": "Serve the page or, with a store, releases over HTTP, until stopped (Ctrl-C, SIGTERM).",
        "ledger": "Inspect, verify and maintain the ledger of a release.",
        "token": "Create, list and revoke the tokens of a service.",
    },
    "Study": {
        "diagnose": "Test whether one first-order matrix describes the traces, and how much leakage finer models add.",
        "population": "Compute the distribution of leakage over users, or over groups (--set traces.by=COLUMN).",
        "attack": "Attack a finished release of your own, with the adversary's knowledge of all other users.",
        "deployment": "Compute what the guarantee of a published system is worth over time, from its record.",
        "demo": "Audit, plan, release and report on the bundled sample.",
    },
}
"""The commands, modules of this package, as `temporaldp --help` lists them."""

for panel, commands in PANELS.items():
    for name, summary in commands.items():
        app.command(name, help=summary, rich_help_panel=panel)(lambda: None)


def load(name: str) -> Any:
    """A command, with its options and arguments; groups have `commands`."""
    module = importlib.import_module(f"temporaldp.apps.cli.{name}")
    whole = getattr(module, "app", None)
    if whole is None:
        whole = typer.Typer(add_completion=False)
        whole.command(name)(getattr(module, name))
    return without_types_of_flags(typer.main.get_command(whole))


def without_types_of_flags(command: Any) -> Any:
    """A command whose help shows nothing where a flag takes no value, instead of <bool>."""
    for one in getattr(command, "commands", {}).values():
        without_types_of_flags(one)
    for param in (*command.params, command.get_help_option(typer.Context(command))):
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return command


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
    handle_signals()
    once = cache(warn)  # however often a command reads the same file
    warnings.showwarning = lambda message, *_, **__: once(str(message))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names that a terminal cannot show stay different
    try:
        try:
            without_types_of_flags(typer.main.get_command(app))()
        finally:
            sys.stdout.flush()  # what cannot be written is found here, not when the interpreter ends
    except Interrupted as stop:
        leave(stop.message, stop.exit_code)
    except TemporaldpError as error:
        _stop(str(error), outcome(error)[0])
    except MemoryError:
        _stop("not enough memory for that many steps, people or states; use fewer, or plan without a horizon")
    except RecursionError:
        _stop("what was read is nested too deeply: expected a file that temporaldp wrote, or a table")
    except BrokenPipeError:  # `| head` has read enough
        drop_output()
        sys.exit(0)
    except OSError as error:
        drop_output()
        _stop(f"cannot read or write {error.filename or 'the output'}: {error.strerror or error}")


def _stop(message: str, code: int = 2) -> NoReturn:
    errors.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
    sys.exit(code)
