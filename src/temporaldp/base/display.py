"""Numbers as people read them, and display of results in a notebook: a small table, and figures on request."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.base.values import ROUNDOFF, SAME_SIDES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

ROWS_SHOWN = 12
"""Rows and columns of a matrix that are written out."""


def number(value: float, *, up: bool = False, down: bool = False, digits: int = 4) -> str:
    """So many digits: rounded up for an upper bound, down for what may be spent, to the nearest otherwise.

    An upper bound between 1 and 10 has four decimals, so that it has as many as one below 1.
    """
    value = float(value)
    if not math.isfinite(value) or value == 0.0:
        return f"{value:g}"
    digits += up and digits == 4 and 1.0 <= value < 10.0
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    scaled = Decimal(value).scaleb(decimals)
    # A value that is a decimal of so many digits but for rounding stays what it is.
    rounding = (Decimal("1e-9") + abs(scaled) * Decimal(4.0 * ROUNDOFF)) * (down - up)
    way = ROUND_CEILING if up else ROUND_FLOOR if down else ROUND_HALF_EVEN
    rounded = (scaled + rounding).to_integral_value(way).scaleb(-decimals)
    return f"{float(rounded):.{digits}g}"


def bound(leakage: float) -> str:
    """An upper bound as reprs and tables show it: six digits, rounded up."""
    return number(leakage, up=True, digits=6)


def interval(low: float, high: float, effort: float, digits: int = 4, *, unit: str = "") -> str:
    """Two sides of a number, rounded down and up, and the seconds after which the search between them ended, if any.

    One number, rounded up, where they are equal but for rounding.
    """
    if low >= high * (1.0 - SAME_SIDES):
        return number(high, up=True, digits=digits) + unit
    sides = number(low, down=True, digits=digits), number(high, up=True, digits=digits)
    return " to ".join(sides) + unit + (f" after {effort:g} s" if math.isfinite(effort) else "")


def apart(low: float, high: float) -> tuple[str, str]:
    """Two numbers, of which the first is less, with as many digits as show that: rounded down, and rounded up."""
    for digits in range(10, 17):
        shown = number(low, down=True, digits=digits), number(high, up=True, digits=digits)
        if float(shown[0]) < float(shown[1]):
            return shown
    return repr(float(low)), repr(float(high))


@singledispatch
def figure_of(result: object, **options: Any) -> Figure:
    """Return a figure of a result; figures with one plot accept `axes` to draw on.

    `temporaldp.publish.report` registers a function for each type of result, and is loaded when the first one is drawn.
    """
    figures = "temporaldp.publish.report"
    if figures not in sys.modules:
        importlib.import_module(figures)
        return figure_of(result, **options)
    raise TypeError(f"expected a result that can be drawn, got {type(result).__name__}")


def draw(result: object, *, ax: Axes | None, **options: Any) -> Any:
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
    shown = names[:ROWS_SHOWN]
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


def spread(values: ArrayLike, *, up: bool = False, down: bool = False, digits: int = 6) -> str:
    """Return the smallest and the largest number, or the one number if all are equal; rounded as by `number`."""
    numbers = np.asarray(values)
    low, high = (number(float(one), up=up, down=down, digits=digits) for one in (numbers.min(), numbers.max()))
    return low if low == high else f"{low} to {high}"
