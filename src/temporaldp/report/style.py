"""The style of all figures, readable in print and in grey, and their files, which are the same for the same data."""

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
    "text.parse_math": False,  # names may contain dollar signs
}
BLUE, ORANGE, DARK, GREY = "#2166ac", "#d6604d", "#1a1a1a", "#8c8c8c"
WIDTH = 7.2


@contextmanager
def figure_style(style: Any = STYLE) -> Iterator[None]:
    """Apply the style of the package, without warnings about names that a font cannot show or that leave little room."""
    with needing("report"):
        import matplotlib as mpl

    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def styled(draw: Callable[Arguments, Figure]) -> Callable[Arguments, Figure]:
    """Draw with the style of the package; on given `axes`, with their style, in which names are no formulas."""

    @wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Figure:
        with figure_style(STYLE if kwargs.get("axes") is None else {"text.parse_math": False}):
            return draw(*args, **kwargs)

    return drawn


def figure_suffix(path: str | Path) -> str:
    """Return the suffix of a figure file, .png or .svg."""
    suffix = Path(path).suffix.lower()
    if suffix not in {".png", ".svg"}:
        raise InputError(f"expected a figure file ending in .png or .svg, got {str(path)!r}")
    return suffix


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .png or .svg, whole or not at all."""
    suffix = figure_suffix(path).lstrip(".")
    with replacing(path) as temporary:
        _write(figure, temporary, suffix)


def figure_svg(figure: Figure) -> bytes:
    """A figure as an SVG document."""
    buffer = io.BytesIO()
    _write(figure, buffer, "svg")
    return buffer.getvalue()


def _write(figure: Figure, target: Path | io.BytesIO, suffix: str) -> None:
    """Write a figure without its creation date: the same data give the same file."""
    with figure_style():
        figure.savefig(target, format=suffix, dpi=160, metadata={"Date": None} if suffix == "svg" else {})


def new_figure(
    height: float,
    *,
    width: float = WIDTH,
    subplots: tuple[int, int] = (1, 1),
    height_ratios: Sequence[float] | None = None,
) -> tuple[Figure, Any]:
    """A figure outside of pyplot, and its axes."""
    from temporaldp.report.picture import Picture

    figure = Picture(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*subplots, height_ratios=height_ratios)


def one_plot(height: float, axes: Axes | None, *, width: float = WIDTH) -> tuple[Figure, Axes]:
    """A figure with one plot; or given `axes` and their figure."""
    return new_figure(height, width=width) if axes is None else (cast("Figure", axes.figure), axes)


def legend_above(axes: Axes, columns: int) -> None:
    """Place the legend above the axes."""
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, fontsize=9, frameon=False)
