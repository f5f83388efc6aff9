"""Figures and tables of the paper as numbers, each with its source, and comparisons between them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

COLUMNS = ("exhibit", "panel", "curve", "x_name", "x", "y_name", "y", "standard_error", "source", "checks")


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes.

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
        Origin of the numbers: a public function, a formula, a solver, or the program of another author.
    x, y : array, shape (k,)
        `y` is `math.inf` where there is no finite value.
    checks : str or None
        Name of the curve of this panel that these numbers should equal; they were published, or computed differently.
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
        if self.x.shape != self.y.shape or self.x.ndim != 1:
            raise ValueError(f"curve {self.name!r}: expected x and y of one length, got {self.x.shape}, {self.y.shape}")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Difference between a curve and the numbers that check it, over their common points.

    Parameters
    ----------
    panel, name : str
        The curve.
    against : str
        Source of the other numbers.
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
        Argument of ``python -m reproduction --figure``, such as "3" or "table2".
    title : str
    section : str
        Its place in the paper.
    panels : tuple of Panel
    curves : tuple of Curve
    notes : tuple of str
        Parameters that the text does not give, solvers that are not installed.
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
        LookupError
            No such curve; the message lists the curves of the panel.
        """
        for curve in self.curves:
            if (curve.panel, curve.name) == (panel, name):
                return curve
        there = ", ".join(repr(curve.name) for curve in self.curves if curve.panel == panel)
        raise LookupError(f"{self.stem} has no curve {name!r} in panel {panel!r}; there are {there or 'none'}")

    def in_panel(self, panel: Panel) -> list[Curve]:
        """The curves of a panel, in the order of its legend."""
        return [curve for curve in self.curves if curve.panel == panel.key]

    def comparisons(self) -> list[Comparison]:
        """Compare every curve that checks another with that one."""
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


def write_csv(exhibit: Exhibit, path: Path) -> None:
    """Write an exhibit as one long table: a row a point, with the source of its number."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for panel in exhibit.panels:
            for curve in exhibit.in_panel(panel):
                errors = [None] * len(curve.x) if curve.spread is None else curve.spread.tolist()
                for x, y, error in zip(curve.x.tolist(), curve.y.tolist(), errors, strict=True):
                    place = (exhibit.stem, panel.key, curve.name)
                    writer.writerow((*place, panel.x, x, panel.y, y, error, curve.source, curve.checks))
