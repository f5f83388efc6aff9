"""Where Parquet can be cut into parts that are read one after the other, each from row groups of its own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

LEAST_ROWS = 2_000_000
"""Rows of a part: fewer would cost more queries than they save memory."""

MOST_PARTS = 256
"""Every part is a query, which looks at what the files say of all their row groups."""

MOST_READ = 1.5
"""How often a row may be read, on average."""


def cuts(groups: Sequence[tuple[Any, Any, int]]) -> tuple[Any, ...]:
    """Values between which parts lie; none where the files are small, or hold the values in no order.

    Rows of one value are always in one part. Where each of many files is ordered by itself, such as one a day, parts are
    larger, so that few row groups lie in several of them.

    Parameters
    ----------
    groups : sequence of (least, largest, rows)
        Of every row group, as the files say it.
    """
    total = sum(rows for _, _, rows in groups)
    size = max(LEAST_ROWS, total / MOST_PARTS)
    ordered = sorted(groups, key=lambda group: group[0])
    while found := _cuts(ordered, size):
        parts_of = (bisect_right(found, high) - bisect_right(found, low) + 1 for low, high, _ in ordered)
        if sum(rows * n for n, (_, _, rows) in zip(parts_of, ordered, strict=True)) <= MOST_READ * total:
            return tuple(found)
        size *= 2.0
    return ()


def _cuts(ordered: Sequence[tuple[Any, Any, int]], size: float) -> list[Any]:
    found: list[Any] = []
    last, held = ordered[0][0] if ordered else None, 0
    for least, _, rows in ordered:
        if held >= size and least > last:
            found.append(least)
            last, held = least, 0
        held += rows
    return found
