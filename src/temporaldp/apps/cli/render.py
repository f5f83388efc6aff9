"""Tables and progress on a terminal."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, nullcontext
from threading import Event, Thread, Timer
from typing import Any

import typer
from rich.markup import escape
from rich.table import Table

from temporaldp import LeakageSeries
from temporaldp.apps.cli.console import console, errors
from temporaldp.apps.cli.interruption import Interrupted, computing
from temporaldp.base.display import number
from temporaldp.base.documents import spelled
from temporaldp.base.progress import Estimate, watched
from temporaldp.core.accounting.protocol import DIRECTIONS
from temporaldp.core.planning import Source
from temporaldp.publish.report.sentences import learning_cost, steps

MOST_ROWS = 12

PATIENCE, BETWEEN_LINES = 2.0, 10.0
"""Seconds after which progress is shown on a terminal, and between two lines of it in a pipe."""


def say_json(document: dict[str, Any]) -> None:
    """One strict JSON document on standard output, of values that `documents.spelled` spells."""
    say_text(spelled(document) + "\n")


def say_text(text: str) -> None:
    """Text for programs on standard output, in UTF-8 whatever the terminal's encoding is."""
    typer.echo(text.encode("utf-8"), nl=False)


def facts(title: str, rows: Iterable[tuple[str, str | None]]) -> None:
    """Print a title and a table of names and values; rows without a value are omitted."""
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        if value:
            table.add_row(escape(name), escape(value))
    console.print(table)


def listing(
    rows: Sequence[Mapping[str, str]],
    title: str | None = None,
    *,
    left: Collection[str] = ("time",),
    boxed: bool = False,
    bold: int | None = None,
) -> None:
    """A table of rows, texts by the names of their columns: to the right but for those at the `left`; one may be `bold`."""
    if not rows:
        return
    frame: dict[str, Any] = {} if boxed else {"box": None, "pad_edge": False}
    table = Table(title=title, title_justify="left", title_style="bold", **frame)
    for name in rows[0]:
        table.add_column(name, justify="left" if name in left else "right")
    for k, row in enumerate(rows):
        table.add_row(*map(escape, row.values()), style="bold" if k == bold else None)
    console.print(table)


def steps_table(series: LeakageSeries, times: Sequence[str], *, granted: bool = False) -> None:
    """Leakage step by step; of a long series some steps, always with the ends and the worst.

    Epsilons that are `granted` may be spent, and are rounded down; those that were promised, up.
    """
    n_steps = len(series)
    shown = list(range(n_steps))
    if n_steps > MOST_ROWS:
        spread = {round(k * (n_steps - 1) / (MOST_ROWS - 2)) for k in range(MOST_ROWS - 1)}
        shown = sorted(spread | {series.worst_time})
    rows: list[dict[str, str]] = []
    for step in shown:
        epsilon = number(float(series.epsilons[step]), up=not granted, down=granted)
        leaked: dict[str, str] = {name: number(float(getattr(series, name)[step]), up=True) for name in DIRECTIONS}
        rows.append({"step": str(step + 1), "time": times[step], "epsilon": epsilon, **leaked})
    listing(rows, boxed=True, bold=shown.index(series.worst_time))
    if len(shown) < n_steps:
        console.print(f"[dim]{len(shown)} of {n_steps} steps; --json has all of them.[/]")


class _Watch:
    """The current task and its progress: a bar for a terminal, lines for a pipe."""

    def __init__(self, doing: str, stored: Sized | None) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.doing, self.share, self._stored = doing, 0.0, stored
        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()
        self.bar = Progress(*columns, console=errors, transient=True)
        self._task = self.bar.add_task(doing, total=None)
        self.ended = Event()

    def tell(self, doing: str, share: float) -> None:
        """`share` of what is being done is over, or what is about to be done takes long."""
        if isinstance(doing, Estimate):
            errors.print(escape(doing))
            return
        if doing != self.doing:
            self.bar.reset(self._task, description=doing)  # the remaining time is estimated from this task alone
        self.doing, self.share = doing, share
        self.bar.update(self._task, total=1.0 if share else None, completed=share)

    def print_lines(self) -> None:
        """Print a line at times until the work has ended."""
        begun = time.monotonic()
        while not self.ended.wait(BETWEEN_LINES):
            share = f" {self.share:.0%}".replace("%", " %") if self.share else ""
            errors.print(escape(f"{self.doing}{share}, {time.monotonic() - begun:.0f} s so far"))

    def how_far(self) -> str:
        """Message of an interruption at this point."""
        if self._stored is not None:
            return (
                f"interrupted while {self.doing}; the ledger has {steps(len(self._stored))}: run the same command again to "
                "continue after them"
            )
        return f"interrupted at {self.share:.0%} of {self.doing}; nothing was written".replace("%", " %")


@contextmanager
def working(doing: str, *, writes: bool = False, stored: Sized | None = None) -> Iterator[None]:
    """Show progress of a long task on standard error; the message of an interruption states the progress.

    Unless the block `writes`, the process may end within it at any moment; what is `stored` in a ledger by then is kept.
    """
    watch = _Watch(doing, stored)
    shown = Timer(PATIENCE, watch.bar.start) if errors.is_terminal else Thread(target=watch.print_lines)
    shown.daemon = True
    shown.start()
    try:
        with watched(watch.tell), nullcontext() if writes else computing(watch.how_far):
            yield
    except Interrupted as stop:
        stop.message = f"interrupted while {doing}" if writes else watch.how_far()
        raise
    finally:
        watch.ended.set()
        if isinstance(shown, Timer):
            shown.cancel()
        shown.join()
        if errors.is_terminal:
            watch.bar.stop()


def learning_fact(source: Source, alpha: float, delta: float) -> tuple[str, str]:
    """The cost of a correlation that was learned with differential privacy; without a value for other correlations."""
    spent = source.learning_epsilon
    return "cost of learning the correlation", learning_cost(spent, *source.in_all(alpha, delta)) if spent else ""
