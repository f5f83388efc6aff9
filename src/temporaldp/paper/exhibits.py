"""Every figure and table that is reproduced, and the files that hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from temporaldp.errors import InputError, OutputError
from temporaldp.extras import needing
from temporaldp.files.atomic import replacing
from temporaldp.paper import figure3, figure4, figure5, figure6, figure7, figure8, table2
from temporaldp.paper.exhibit import Curve, Exhibit
from temporaldp.report.style import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("exhibit", "panel", "curve", "x_name", "x", "y_name", "y", "standard_error", "source", "checks")


@dataclass(frozen=True, slots=True)
class Maker:
    """How an exhibit is computed, and how it is drawn."""

    compute: Callable[[], Exhibit]
    draw: Callable[[Exhibit], Figure]


EXHIBITS: Mapping[str, Maker] = MappingProxyType(
    {
        "3": Maker(figure3.compute, figure3.draw),
        "4": Maker(figure4.compute, figure4.draw),
        "5": Maker(figure5.compute, figure5.draw),
        "6": Maker(figure6.compute, figure6.draw),
        "7": Maker(figure7.compute, figure7.draw),
        "8": Maker(figure8.compute, figure8.draw),
        "table2": Maker(table2.compute, table2.draw),
    }
)


def exhibit(key: str) -> Exhibit:
    """One figure or table of the paper, as numbers.

    Parameters
    ----------
    key : {"3", "4", "5", "6", "7", "8", "table2"}

    Raises
    ------
    InputError
        No such figure or table.

    Examples
    --------
    >>> found = exhibit("3")
    >>> found.curve("(ii) moderate", "a").y.round(4)[:3]
    array([0.1   , 0.1808, 0.2471])
    >>> max(check.difference for check in found.comparisons()) < 1e-12
    True
    """
    return _maker(key).compute()


def reproduce(
    keys: Iterable[str] | None = None, *, folder: str | Path | None = None
) -> Iterator[tuple[Exhibit, list[Path]]]:
    """Compute figures and tables, each when asked for; with a folder, write each as CSV, PNG and SVG.

    Files of the same name are replaced, each whole or not at all. What cannot be done is refused before any work.

    Parameters
    ----------
    keys : iterable of str, optional
        Which; by default all.
    folder : str or Path, optional
        Made if it is not there.

    Yields
    ------
    exhibit : Exhibit
    written : list of Path

    Raises
    ------
    InputError
        No such figure or table.
    OutputError
        The folder cannot be made, or a file cannot be written; what stood there is untouched.
    """
    makers = [_maker(key) for key in (EXHIBITS if keys is None else keys)]
    place = None if folder is None else _made(Path(folder))
    return (_reproduced(maker, place) for maker in makers)


def _reproduced(maker: Maker, folder: Path | None) -> tuple[Exhibit, list[Path]]:
    found = maker.compute()
    return found, [] if folder is None else _written(found, maker.draw(found), folder)


def _maker(key: str) -> Maker:
    try:
        return EXHIBITS[key]
    except KeyError:
        raise InputError(
            f"expected a figure or table of the paper, one of {', '.join(EXHIBITS)}, got {key!r}"
        ) from None


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make folder {folder}: {error.strerror}; choose another with -o") from error
    return folder


def _written(found: Exhibit, figure: Figure, folder: Path) -> list[Path]:
    paths = [folder / f"{found.stem}{suffix}" for suffix in (".csv", ".png", ".svg")]
    write_csv(found, paths[0])
    for path in paths[1:]:
        save_figure(figure, path)
    return paths


def write_csv(found: Exhibit, path: str | Path) -> None:
    """An exhibit as one long table: a row a point, with the source of its number; no value is written as ``inf``."""
    with needing("tables"):
        import pyarrow as pa
        from pyarrow import csv

    rows = [
        (found.stem, panel.key, curve.name, panel.x, x, panel.y, y, error, curve.source, curve.checks)
        for panel in found.panels
        for curve in found.in_panel(panel)
        for x, y, error in zip(curve.x.tolist(), curve.y.tolist(), _errors(curve), strict=True)
    ]
    table = pa.table(dict(zip(COLUMNS, (list(column) for column in zip(*rows, strict=True)), strict=True)))
    with replacing(path) as temporary:
        csv.write_csv(table, temporary)


def _errors(curve: Curve) -> list[float | None]:
    return [None] * len(curve.x) if curve.spread is None else curve.spread.tolist()
