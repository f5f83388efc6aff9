"""Files that a command writes beside its answer: checked before the work, drawn after it, and named at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from temporaldp.cli.render import console, working
from temporaldp.files.atomic import require_writable
from temporaldp.report.style import figure_suffix, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def require_figure(place: Path | None, *, reads: Iterable[Path | None]) -> None:
    """Refuse a figure that could not be written when the work is done. Errors as for `figure_suffix` and `require_writable`."""
    if place is not None:
        figure_suffix(place)
        require_writable(place, reads=reads)


def draw(place: Path | None, figure: Callable[[], Figure]) -> None:
    """Write a figure, if one is wanted."""
    if place is not None:
        with working("drawing", writes=True):
            save_figure(figure(), place)


def say_written(**places: Path | None) -> None:
    """Print where the files are, by what they contain."""
    for what, place in places.items():
        if place is not None:
            console.print(f"{what} written to {place}", soft_wrap=True, markup=False)
