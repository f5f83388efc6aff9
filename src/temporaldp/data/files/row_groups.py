"""Division of Parquet files into parts that are read one after the other, each from its own row groups."""

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
    """Values that separate parts; none where the files are small, or their values are not in order.

    For any cuts, every row is in one part, and all rows of a value are in the same one: cuts affect cost alone. Where each of
    many files is ordered by itself, such as one per day, parts are larger, so that few row groups are in several of them.

    Parameters
    ----------
    groups : sequence of (least, largest, cells)
        Statistics of every row group.
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
