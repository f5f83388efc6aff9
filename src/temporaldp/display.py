"""How results show themselves in a notebook: the numbers that matter as a small table, and a picture when asked for one."""

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
    """A result as a figure; those that are one plot take `axes` to draw on.

    `report.plots` registers how each kind of result is drawn. So the results need not know any plotting library, and the rooms
    that they live in load none.
    """
    raise TypeError(f"expected a result that can be drawn, got {type(result).__name__}")


@overload
def draw(result: object, *, ax: None = None, **options: Any) -> Figure: ...
@overload
def draw(result: object, *, ax: Axes | None, **options: Any) -> Any: ...
def draw(result: object, *, ax: Axes | None = None, **options: Any) -> Any:
    """What the `plot` method of a result calls: a figure of its own, or `ax` with the result drawn on it."""
    if ax is None:
        return figure_of(result, **options)
    figure_of(result, axes=ax, **options)
    return ax


def summary(title: str, rows: Mapping[str, object], note: str = "") -> str:
    """A small HTML table of names and values, everything escaped."""
    left = "text-align: left; padding-right: 1em"
    cells = "".join(
        f'<tr><th style="{left}">{escape(name)}</th><td style="{left}">{escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    below = f'<p style="margin: 0"><small>{escape(note)}</small></p>' if note else ""
    return f"<div><strong>{escape(title)}</strong><table><tbody>{cells}</tbody></table>{below}</div>"


def grid(title: str, names: Sequence[str], corner: NDArray[np.float64]) -> str:
    """A square matrix as an HTML table with the names of its rows and columns; of a large one the first rows and columns."""
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
    """The one number that they all are, or the least and the largest."""
    numbers = np.asarray(values)
    low, high = f"{numbers.min():.6g}", f"{numbers.max():.6g}"
    return low if low == high else f"{low} to {high}"
