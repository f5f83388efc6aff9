"""Display of results in a notebook: the main numbers as a small table, and figures on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

MOST_CELLS = 12
"""Rows and columns of a matrix that are written out."""


@singledispatch
def figure_of(result: object, **options: Any) -> Figure:
    """Return a figure of a result; figures with one plot accept `axes` to draw on.

    `temporaldp.report` registers a function for each type of result, so that modules of results load no plotting library.
    """
    raise TypeError(f"expected a result that can be drawn, got {type(result).__name__}")


@overload
def draw(result: object, *, ax: None = None, **options: Any) -> Figure: ...
@overload
def draw(result: object, *, ax: Axes | None, **options: Any) -> Any: ...
def draw(result: object, *, ax: Axes | None = None, **options: Any) -> Any:
    """Draw a result for its `plot` method: return a new figure, or `ax` after drawing on it."""
    if ax is None:
        return figure_of(result, **options)
    figure_of(result, axes=ax, **options)
    return ax


def summary(title: str, rows: Mapping[str, object], note: str = "") -> str:
    """Return a small HTML table of names and values, escaped."""
    left = "text-align: left; padding-right: 1em"
    cells = "".join(
        f'<tr><th style="{left}">{escape(name)}</th><td style="{left}">{escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    below = f'<p style="margin: 0"><small>{escape(note)}</small></p>' if note else ""
    return f"<div><strong>{escape(title)}</strong><table><tbody>{cells}</tbody></table>{below}</div>"


def grid(title: str, names: Sequence[str], corner: NDArray[np.float64]) -> str:
    """Return a square matrix as an HTML table with named rows and columns, truncated if it is large."""
    shown = names[:MOST_CELLS]
    head = "".join(f"<th>{escape(name)}</th>" for name in shown)
    body = "".join(
        f"<tr><th>{escape(name)}</th>"
        + "".join(f'<td style="padding: 0 0.4em">{value:.3g}</td>' for value in corner[k].tolist())
        + "</tr>"
        for k, name in enumerate(shown)
    )
    below = f"<small>the first {len(shown)} of {len(names)} values</small>" if len(names) > len(shown) else ""
    table = f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><strong>{escape(title)}</strong>{table}{below}</div>"


def spread(values: ArrayLike) -> str:
    """Return the smallest and the largest number, or the one number if all are equal."""
    numbers = np.asarray(values)
    low, high = f"{numbers.min():.6g}", f"{numbers.max():.6g}"
    return low if low == high else f"{low} to {high}"
