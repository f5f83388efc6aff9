"""Division of Parquet files into parts that are read one after the other, each from row groups of its own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

LEAST_CELLS = 2_000_000
"""Cells of a part: with fewer, more queries would cost more than they save memory."""

MOST_PARTS = 100
"""Every part is a query, which looks at what the files say of all their row groups."""

MOST_READ = 1.5
"""Largest average number of reads of a cell."""


def cuts(groups: Sequence[tuple[Any, Any, int]]) -> tuple[Any, ...]:
    """Values between which parts lie; none where the files are small, or hold the values in no order.

    Whatever they are, every row is in one part, and all rows of a value are in the same: they decide on cost alone. Where each
    of many files is ordered by itself, such as one a day, parts are larger, so that few row groups lie in several of them.

    Parameters
    ----------
    groups : sequence of (least, largest, cells)
        Of every row group, as the files say it.
    """
    total = sum(cells for _, _, cells in groups)
    size = max(LEAST_CELLS, total / MOST_PARTS)
    ordered = sorted(groups, key=lambda group: group[0])
    while found := _cuts(ordered, size):
        parts_of = (bisect_right(found, high) - bisect_right(found, low) + 1 for low, high, _ in ordered)
        if sum(cells * n for n, (_, _, cells) in zip(parts_of, ordered, strict=True)) <= MOST_READ * total:
            return tuple(found)
        size *= 2.0
    return ()


def _cuts(ordered: Sequence[tuple[Any, Any, int]], size: float) -> list[Any]:
    found: list[Any] = []
    last, held = ordered[0][0] if ordered else None, 0
    for least, _, cells in ordered:
        if held >= size and least > last:
            found.append(least)
            last, held = least, 0
        held += cells
    return found
