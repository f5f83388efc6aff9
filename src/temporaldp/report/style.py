"""The look that all pictures share, and how they are written: readable in print, in grey, and the same for the same data."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, cast

from temporaldp.errors import InputError
from temporaldp.extras import needing
from temporaldp.files.atomic import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Arguments = ParamSpec("Arguments")

STYLE: Any = {
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.88",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.dpi": 100,
    "svg.hashsalt": "temporaldp",
    "text.parse_math": False,  # a name with two dollar signs is a name
}
BLUE, ORANGE, DARK, GREY = "#2166ac", "#d6604d", "#1a1a1a", "#8c8c8c"
GREEN, PURPLE = "#4d9221", "#762a83"
WIDTH = 7.2


@contextmanager
def figure_style() -> Iterator[None]:
    """Our style; and no warnings on names that a font cannot show or that leave little room: the figure stays readable."""
    with needing("report"):
        import matplotlib as mpl

    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@contextmanager
def _names_as_given() -> Iterator[None]:
    """Names with dollar signs are names, whatever the style."""
    with needing("report"):
        import matplotlib as mpl

    with mpl.rc_context({"text.parse_math": False}):
        yield


def styled(draw: Callable[Arguments, Figure]) -> Callable[Arguments, Figure]:
    """Draw with our style from the first to the last artist; on `axes` that somebody gives, with theirs."""

    @wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Figure:
        with figure_style() if kwargs.get("axes") is None else _names_as_given():
            return draw(*args, **kwargs)

    return drawn


def figure_suffix(path: str | Path) -> str:
    """The suffix of a place for a figure, if it is one that can be drawn."""
    suffix = Path(path).suffix.lower()
    if suffix not in {".png", ".svg"}:
        raise InputError(f"expected a figure file ending in .png or .svg, got {str(path)!r}")
    return suffix


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .png or .svg, whole or not at all."""
    suffix = figure_suffix(path)
    with figure_style(), replacing(path) as temporary:
        figure.savefig(temporary, format=suffix.lstrip("."), dpi=160, metadata=_metadata(path))


def figure_svg(figure: Figure) -> bytes:
    """A figure as an SVG document."""
    buffer = io.BytesIO()
    with figure_style():
        figure.savefig(buffer, format="svg", metadata=_metadata("x.svg"))
    return buffer.getvalue()


def _metadata(path: str | Path) -> dict[str, Any]:
    """No creation date: the same data give the same file."""
    return {"Date": None} if Path(path).suffix.lower() == ".svg" else {}


def new_figure(
    height: float,
    *,
    width: float = WIDTH,
    subplots: tuple[int, int] = (1, 1),
    height_ratios: Sequence[float] | None = None,
) -> tuple[Figure, Any]:
    """A figure that belongs to nobody's global state, and its axes."""
    from temporaldp.report.picture import Picture

    figure = Picture(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*subplots, height_ratios=height_ratios)


def one_plot(height: float, axes: Axes | None, *, width: float = WIDTH) -> tuple[Figure, Axes]:
    """A figure with one plot in it; or the `axes` that somebody gave, and their figure."""
    return new_figure(height, width=width) if axes is None else (cast("Figure", axes.figure), axes)


def legend_above(axes: Axes, columns: int) -> None:
    """The legend over the axes, where it hides nothing."""
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, fontsize=9, frameon=False)
