"""What a command shows: its answer as tables or JSON, progress, and where its files are, which are checked before the work."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread, Timer
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table

from temporaldp import LeakageSeries
from temporaldp.apps.cli.console import console, errors
from temporaldp.apps.cli.interruption import Interrupted, computing
from temporaldp.base.display import number
from temporaldp.base.documents import spelled
from temporaldp.base.errors import OutputError
from temporaldp.base.progress import Estimate, watched
from temporaldp.core.accounting.protocol import DIRECTIONS
from temporaldp.core.correlation import Provenance
from temporaldp.data.files.atomic import require_writable
from temporaldp.publish.report.sentences import learning_cost, steps
from temporaldp.publish.report.style import figure_suffix, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from temporaldp.lab.studies import LeakageDistribution

ROWS_ON_SCREEN = 12


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
    """A table of rows, texts by the names of their columns: to the right but for those at the `left`; one may be `bold`.

    Texts at the left are wrapped where the terminal is narrow, names of columns too; what is to the right is never cut.
    """
    if not rows:
        return
    kept = [name for name in rows[0] if any(one[name] for one in rows)]
    rows = [{name: one[name] for name in kept} for one in rows]
    frame: dict[str, Any] = {} if boxed else {"box": None, "pad_edge": False}
    table = Table(title=title, title_justify="left", title_style="bold", **frame)
    for name in rows[0]:
        uncut = [
            *name.split(),
            *(part for row in rows for part in (row[name].split() if name in left else [row[name]])),
        ]
        table.add_column(
            name, justify="left" if name in left else "right", min_width=max(map(cell_len, uncut), default=0)
        )
    for k, row in enumerate(rows):
        table.add_row(*map(escape, row.values()), style="bold" if k == bold else None)
    console.print(table, crop=False)


def steps_table(series: LeakageSeries, times: Sequence[str], *, granted: bool = False) -> None:
    """Leakage step by step; of a long series some steps, always with the ends and the worst.

    Epsilons that are `granted` may be spent, and are rounded down; those that were promised, up.
    """
    n_steps = len(series)
    shown = list(range(n_steps))
    if n_steps > ROWS_ON_SCREEN:
        spread = {round(k * (n_steps - 1) / (ROWS_ON_SCREEN - 2)) for k in range(ROWS_ON_SCREEN - 1)}
        shown = sorted(spread | {series.worst_time})
    rows = [
        {
            "step": str(step + 1),
            "time": times[step],
            "epsilon": number(float(series.epsilons[step]), up=not granted, down=granted),
            **{name: number(float(getattr(series, name)[step]), up=True) for name in DIRECTIONS},
        }
        for step in shown
    ]
    listing(rows, boxed=True, bold=shown.index(series.worst_time))
    if len(shown) < n_steps:
        console.print(f"[dim]{len(shown)} of {n_steps} steps; --json has all of them.[/]")


class Watch:
    """The current task and its progress: a bar for a terminal, lines for a pipe."""

    between_lines = 10.0  # seconds

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
        while not self.ended.wait(self.between_lines):
            share = f" {self.share:.0%}".replace("%", " %") if self.share else ""
            errors.print(escape(f"working: {self.doing}{share}, {time.monotonic() - begun:.0f} s so far"))

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
    watch = Watch(doing, stored)
    shown = Timer(2.0, watch.bar.start) if errors.is_terminal else Thread(target=watch.print_lines)
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


def at_most(found: LeakageSeries | LeakageDistribution) -> str:
    """Qualification of a number that exceeds what its accounting method attains, as where an effort ended a search."""
    return "" if found.label == found.accounting.label else "at most "


def learning_fact(provenance: Provenance, alpha: float, delta: float) -> tuple[str, str]:
    """The cost of a correlation that was learned with differential privacy; without a value for other correlations."""
    spent = provenance.epsilon
    return "cost of learning the correlation", learning_cost(spent, *provenance.in_all(alpha, delta)) if spent else ""


def require_places(
    *places: Path | None, reads: Iterable[Path | None], figure: Path | None = None, overwrite: bool = True
) -> None:
    """Refuse outputs that could not be written when the work is done, or that exist and may not be overwritten.

    Errors as for `figure_suffix` and `require_writable`.
    """
    if figure is not None:
        figure_suffix(figure)
    for place in (*places, figure):
        if place is not None:
            require_writable(place, reads=reads)
            if place.exists() and not overwrite:
                raise OutputError(f"{place} exists; use --overwrite to replace it")


def answer(
    as_json: bool,
    *,
    document: Callable[[], dict[str, Any]],
    show: Callable[[], None],
    draw: Callable[[], Figure] | None = None,
    figure: Path | None = None,
    **places: Path | None,
) -> None:
    """Write the figure if one is wanted; print the answer as JSON, or as tables with the files that were written.

    Parameters
    ----------
    as_json : bool
    document : callable
        Returns the answer as JSON values.
    show : callable
        Prints the answer as tables.
    draw : callable, optional
        Returns the figure.
    figure : path, optional
        File of the figure.
    **places : path or None
        Other files that were written, by what they contain.
    """
    if figure is not None and draw is not None:
        with working("drawing", writes=True):
            save_figure(draw(), figure)
    if as_json:
        say_json(document())
        return
    show()
    say_written(figure=figure, **places)


def say_written(**places: Path | None) -> None:
    """Print where the files are, by what they contain."""
    for what, place in places.items():
        if place is not None:
            console.print(f"{what} written to {place}", soft_wrap=True, markup=False)
