"""What a figure or a table of the paper is made of: numbers that say where they come from, and how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporaldp.errors import InputError
from temporaldp.values import copy_in

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes: what is plotted against what, with units.

    Parameters
    ----------
    key : str
        The paper's letter; empty where there is one panel only.
    title : str
    x, y : str
        Quantity, with its unit in brackets.
    """

    key: str
    title: str
    x: str
    y: str


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One line, or one set of points, of a panel.

    Parameters
    ----------
    panel : str
    name : str
        As in the legend; unique in its panel.
    source : str
        Where the numbers come from: a public function, a formula, a solver, or somebody else's program.
    x, y : array, shape (k,)
        `y` is `math.inf` where there is no finite value.
    checks : str or None
        The curve of this panel that these numbers, which others printed, or another way of computing, should equal.
    spread : array, shape (k,), or None
        Standard errors of sampled values.
    """

    panel: str
    name: str
    source: str
    x: FloatArray
    y: FloatArray
    checks: str | None = None
    spread: FloatArray | None = None

    def __post_init__(self) -> None:
        copy_in(self, "x", "y", "spread")
        if self.x.shape != self.y.shape or self.x.ndim != 1:
            raise InputError(
                f"curve {self.name!r} has {self.x.shape} places for {self.y.shape} values; expected as many"
            )


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far a curve is from the numbers that check it, over the points that they share.

    Parameters
    ----------
    panel, name : str
        The curve.
    against : str
        Where the other numbers come from.
    points : int
    difference : float
        The largest relative difference.
    deviations : float or None
        Of sampled numbers, the largest difference in standard errors.
    """

    panel: str
    name: str
    against: str
    points: int
    difference: float
    deviations: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Exhibit:
    """A figure or table of the paper, as numbers.

    Parameters
    ----------
    key : str
        What `temporaldp reproduce --figure` calls it, such as "3" or "table2".
    title : str
    section : str
        Where it stands in the paper.
    panels : tuple of Panel
    curves : tuple of Curve
    notes : tuple of str
        What a reader must know: parameters that the text does not give, solvers that were not there.
    """

    key: str
    title: str
    section: str
    panels: tuple[Panel, ...]
    curves: tuple[Curve, ...]
    notes: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """Name of its files, without a suffix."""
        return f"figure{self.key}" if self.key.isdigit() else self.key

    def curve(self, name: str, panel: str = "") -> Curve:
        """The curve of that name in a panel.

        Raises
        ------
        InputError
            There is none; the message lists those that there are.
        """
        for curve in self.curves:
            if (curve.panel, curve.name) == (panel, name):
                return curve
        there = ", ".join(repr(curve.name) for curve in self.curves if curve.panel == panel)
        raise InputError(f"{self.stem} has no curve {name!r} in panel {panel!r}; there are {there or 'none'}")

    def in_panel(self, panel: Panel) -> list[Curve]:
        """The curves of a panel, in the order of its legend."""
        return [curve for curve in self.curves if curve.panel == panel.key]

    def comparisons(self) -> list[Comparison]:
        """Every curve that checks another, against it."""
        return [
            _compared(self.curve(check.checks, check.panel), check) for check in self.curves if check.checks is not None
        ]


def points(
    panel: str, name: str, source: str, values: Sequence[tuple[float, float]], checks: str | None = None
) -> Curve:
    """A curve from pairs (x, y)."""
    x, y = zip(*values, strict=True) if values else ((), ())
    return Curve(panel, name, source, np.array(x, dtype=float), np.array(y, dtype=float), checks)


def _compared(curve: Curve, check: Curve) -> Comparison:
    shared, ours, theirs = np.intersect1d(curve.x, check.x, return_indices=True)
    mine, other = curve.y[ours], check.y[theirs]
    with np.errstate(invalid="ignore"):  # two infinities are equal
        apart = np.where(mine == other, 0.0, np.abs(mine - other))
    far = float(np.max(apart / np.abs(other), initial=0.0))
    deviations = None if check.spread is None else float(np.max(apart / check.spread[theirs], initial=0.0))
    return Comparison(check.panel, curve.name, check.source, len(shared), far, deviations)
