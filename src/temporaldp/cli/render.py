"""What people see: tables and progress on a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from temporaldp import LeakageSeries
from temporaldp.report.words import number

Item = TypeVar("Item")


class Terminal(Console):
    """A console that leaves quietly when its reader has gone (`| head`): that is no error of ours."""

    def on_broken_pipe(self) -> None:
        """Stop without a word, with the code for success."""
        self.quiet = True
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        raise SystemExit(0)


console = Terminal(highlight=False, emoji=False)
errors = Console(stderr=True, highlight=False, emoji=False)

MOST_ROWS = 12


def say_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output; strict JSON, so infinity must already be the word "inf"."""
    typer.echo(json.dumps(document, indent=1, allow_nan=False))


def warn(sentence: str | None) -> None:
    """A warning on standard error, so that it reaches a person even when the output goes to a program."""
    if sentence:
        errors.print(f"[bold yellow]warning:[/] {escape(sentence)}")


def facts(title: str, rows: Sequence[tuple[str, str]]) -> None:
    """A title and lines of name and value."""
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(escape(name), escape(value))
    console.print(table)


def steps_table(
    series: LeakageSeries, times: Sequence[str], *, every_row: bool, pairwise: LeakageSeries | None = None
) -> None:
    """Leakage step by step; of a long series some steps, always with the ends and the worst."""
    n_steps = len(series)
    shown = list(range(n_steps))
    if not every_row and n_steps > MOST_ROWS:
        spread = {round(k * (n_steps - 1) / (MOST_ROWS - 2)) for k in range(MOST_ROWS - 1)}
        shown = sorted(spread | {one.worst_time for one in (series, pairwise) if one is not None})
    table = Table()
    tighter = () if pairwise is None else ("pair by pair",)
    for name in ("step", "time", "epsilon", "backward", "forward", "temporal", *tighter):
        table.add_column(name, justify="left" if name == "time" else "right")
    for step in shown:
        values = (series.epsilons[step], series.backward[step], series.forward[step], series.temporal[step])
        values += () if pairwise is None else (pairwise.temporal[step],)
        mark = "bold" if step == series.worst_time else None
        cells = [number(float(values[0])), *(number(float(value), up=True) for value in values[1:])]
        table.add_row(str(step + 1), escape(times[step]), *cells, style=mark)
    console.print(table)
    if len(shown) < n_steps:
        console.print(f"[dim]{len(shown)} of {n_steps} steps; --all shows every one, --json has them all.[/]")


def tracked(items: Iterable[Item], doing: str, total: int) -> Iterator[Item]:
    """The items, with a progress bar on standard error where there are many and somebody watches."""
    if total < 2 or not errors.is_terminal:
        yield from items
        return
    from rich.progress import track

    yield from track(items, description=doing, total=total, console=errors, transient=True)


@contextmanager
def working(doing: str) -> Iterator[None]:
    """A spinner on standard error while something takes long and somebody watches."""
    if not errors.is_terminal:
        yield
        return
    with errors.status(doing):
        yield
