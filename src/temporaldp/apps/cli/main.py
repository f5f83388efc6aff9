"""The command's entry: subcommands, and what an error looks like."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, NoReturn

import typer
from rich.markup import escape

from temporaldp import LeakageBudgetError, LedgerError, PlanError, TemporaldpError, __version__
from temporaldp.apps.cli import (
    attack,
    audit,
    demo,
    deployment,
    diagnose,
    init,
    learn,
    ledger,
    plan,
    population,
    release,
    report,
    serve,
    smooth,
    token,
    tradeoff,
)
from temporaldp.apps.cli.interruption import Interrupted, handle_signals, leave
from temporaldp.apps.cli.render import drop_output, errors, warn
from temporaldp.base.errors import LateDataError, LedgerMismatchError, SpentError

BAD_INPUT = 2

EXIT_CODES = (
    (PlanError | LeakageBudgetError | SpentError, 3),
    (LateDataError, 5),
    (LedgerMismatchError, BAD_INPUT),  # the settings are another release's; the ledger is in order
    (LedgerError, 4),
    (TemporaldpError, BAD_INPUT),
)
"""Exit codes of errors; the first class of which an error is an instance counts."""


class Commands(typer.core.TyperGroup):
    """The commands; an unknown option that is a key of the project file is answered with the way to set it."""

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
PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Set up": {"init": init.init},
    "Account and plan": {"audit": audit.audit, "plan": plan.plan, "learn": learn.learn},
    "Publish": {"release": release.release, "smooth": smooth.smooth, "report": report.report, "serve": serve.serve},
    "Study": {
        "diagnose": diagnose.diagnose,
        "tradeoff": tradeoff.tradeoff,
        "population": population.population,
        "attack": attack.attack,
        "deployment": deployment.deployment,
        "demo": demo.demo,
    },
}
for panel, commands in PANELS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(command)
app.add_typer(ledger.app, name="ledger", rich_help_panel="Publish")
app.add_typer(token.app, name="token", rich_help_panel="Publish")


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
            app()
        finally:
            sys.stdout.flush()  # what cannot be written is found here, not when the interpreter ends
    except Interrupted as stop:
        leave(stop.message, stop.exit_code)
    except TemporaldpError as error:
        _stop(str(error), next(code for kind, code in EXIT_CODES if isinstance(error, kind)))
    except MemoryError:
        _stop(
            "not enough memory for that many steps, people or states; use fewer, or plan without a horizon", BAD_INPUT
        )
    except RecursionError:
        _stop("what was read is nested too deeply: expected a file that temporaldp wrote, or a table", BAD_INPUT)
    except BrokenPipeError:  # `| head` has read enough
        drop_output()
        sys.exit(0)
    except OSError as error:
        drop_output()
        _stop(f"cannot read or write {error.filename or 'the output'}: {error.strerror or error}", BAD_INPUT)


def _stop(message: str, code: int) -> NoReturn:
    errors.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
    sys.exit(code)
