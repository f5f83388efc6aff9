"""The end of a command: its answer, and the files that it writes beside it, which are checked before the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporaldp.apps.cli.console import console
from temporaldp.apps.cli.render import say_json, working
from temporaldp.base.errors import OutputError
from temporaldp.data.files.atomic import require_writable
from temporaldp.publish.report.style import figure_suffix, save_figure

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
