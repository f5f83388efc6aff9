"""Files that a command writes beside its answer: checked before the work, drawn after it, and named at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from temporaldp.cli.render import console, working
from temporaldp.errors import OutputError
from temporaldp.files.atomic import require_writable
from temporaldp.report.style import figure_suffix, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
                raise OutputError(f"{place} exists; say --overwrite to replace it")


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
