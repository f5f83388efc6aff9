"""Standard output and standard error, and the sentences on them."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from temporaldp.base.errors import (
    LateDataError,
    LeakageBudgetError,
    LedgerError,
    LedgerMismatchError,
    OutputError,
    PlanError,
    SpentError,
    TemporaldpError,
)
from temporaldp.base.names import CONTROL

OUTCOMES = (
    (
        PlanError | LeakageBudgetError | SpentError,
        3,
        "the budget, the plan or the horizon is used up, or cannot satisfy the level",
    ),
    (LateDataError, 5, "a later step was released already"),
    (LedgerMismatchError, 2, "the settings or the data are not those of the ledger"),
    (LedgerError, 4, "the ledger cannot be read, written or trusted, or was lost"),
    (OutputError, 2, "the output cannot be written, or has other counts"),
    (TemporaldpError, 2, "the data or the options are wrong"),
)
"""Classes of errors, their exit codes, and what they mean, without protected data; the first class that an error has counts."""


def outcome(error: TemporaldpError) -> tuple[int, str]:
    """The exit code of an error, and what it means."""
    return next((code, said) for kind, code, said in OUTCOMES if isinstance(error, kind))


class Harmless(Console):
    """A console that shows control characters in texts of others, and marks that reorder text, as escapes."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return text with its styles."""
        harmless = re.sub(rf"(?![\t\n]){CONTROL}", lambda found: ascii(found[0])[1:-1], text)
        return super().render_str(harmless, **options)


class Terminal(Harmless):
    """A console that exits with success when its reader has closed the pipe (`| head`)."""

    def on_broken_pipe(self) -> None:
        """Stop silently, with the exit code of success."""
        self.quiet = True
        drop_output()
        raise SystemExit(0)


def drop_output() -> None:
    """Discard what is still to be written to standard output, which cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


console = Terminal(highlight=False, emoji=False)
errors = Harmless(stderr=True, highlight=False, emoji=False)


def warn(*sentences: str | None) -> None:
    """Warnings on standard error, so that they reach a person even when the output goes to a program; None is no warning."""
    for sentence in (one for one in sentences if one is not None):
        errors.print(f"[bold yellow]warning:[/] {escape(sentence)}")


def say(*sentences: str | None) -> None:
    """Sentences on standard output, a line each; None is no sentence."""
    for sentence in (one for one in sentences if one is not None):
        console.print(sentence, markup=False)
