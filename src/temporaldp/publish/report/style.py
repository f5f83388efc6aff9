"""The style of all figures, readable in print and in grey, and their files, which are the same for the same data."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, cast

import numpy as np

from temporaldp.base.extras import needing
from temporaldp.data.files.atomic import replacing, suffix_of

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
    "path.simplify_threshold": 1.0 / 3.0,  # of a pixel; a long line has about 4,000 points, its peaks among them
}
BLUE, ORANGE, DARK, GREY = "#2166ac", "#d6604d", "#1a1a1a", "#8c8c8c"


@contextmanager
def figure_style(style: Any = STYLE) -> Iterator[None]:
    """Apply the style of the package, without warnings about names that a font cannot show or that leave little room."""
    with needing("report"):
        import matplotlib as mpl

    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def styled(draw: Callable[Arguments, Figure]) -> Callable[Arguments, Figure]:
    """Draw with the style of the package; on given `axes`, with their style, in which names are not formulas."""

    @wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Figure:
        with figure_style(STYLE if kwargs.get("axes") is None else {"text.parse_math": False}):
            return draw(*args, **kwargs)

    return drawn


def figure_suffix(path: str | Path) -> str:
    """Return the suffix of a figure file, .png or .svg."""
    return suffix_of(path, (".png", ".svg"), "a figure")


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .png or .svg, whole or not at all."""
    drawn = figure_svg(figure) if figure_suffix(path) == ".svg" else figure_png(figure, dpi=160)
    with replacing(path) as temporary:
        temporary.write_bytes(drawn)


def figure_svg(figure: Figure) -> bytes:
    """A figure as an SVG document, which a viewer in dark mode inverts; hues stay what they are."""
    drawn = _drawn(figure, format="svg", metadata={"Date": None})  # a date would make equal figures unequal files
    dark_mode = b"@media (prefers-color-scheme: dark) {svg {filter: invert(0.9) hue-rotate(180deg)}}"
    return drawn.replace(b"</style>", dark_mode + b"</style>", 1)


def figure_png(figure: Figure, dpi: int) -> bytes:
    """A figure as a PNG file."""
    return _drawn(figure, format="png", dpi=dpi)


def _drawn(figure: Figure, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with figure_style():
        figure.savefig(buffer, **options)
    return buffer.getvalue()


def new_figure(
    height: float,
    *,
    width: float = 7.2,
    subplots: tuple[int, int] = (1, 1),
    height_ratios: Sequence[float] | None = None,
) -> tuple[Figure, Any]:
    """A figure outside of pyplot, and its axes."""
    from temporaldp.publish.report.picture import Picture

    figure = Picture(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*subplots, height_ratios=height_ratios)


def one_plot(height: float, axes: Axes | None, *, width: float = 7.2) -> tuple[Figure, Axes]:
    """A figure with one plot; or given `axes` and their figure."""
    return new_figure(height, width=width) if axes is None else (cast("Figure", axes.figure), axes)


def name_step(figure: Figure, step: str | None) -> None:
    """Add the length of a step, if it is known with its unit, to the labels of axes of time."""
    for axes in figure.axes if step and re.search("[a-z]", step) else ():
        if (name := axes.get_xlabel()) in {"step", "time"}:
            axes.set_xlabel(f"{name} ({step})")


def label_lines(axes: Axes) -> None:
    """Write the label of each line beside its end, in its colour; labels that would overlap are moved up by 0.17 inches."""
    bottom, top = axes.get_ylim()
    height = 0.17 * (top - bottom) / (axes.get_window_extent().height / axes.figure.dpi)
    place = bottom
    for line in sorted(axes.get_lines(), key=lambda line: float(np.asarray(line.get_ydata())[-1])):
        place = max(float(np.asarray(line.get_ydata())[-1]), place + height)
        axes.annotate(
            str(line.get_label()),
            (1.0, place),
            (6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            color=line.get_color(),
            fontsize=9,
            va="center",
        )


def legend_above(axes: Axes, columns: int) -> Figure:
    """Place the legend above the axes, and return their figure."""
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, fontsize=9, frameon=False)
    return cast("Figure", axes.figure)
