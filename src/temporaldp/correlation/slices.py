"""Parts of a table: some people, some groups, some times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.correlation.times import comparable
from temporaldp.errors import InputError


@dataclass(frozen=True, slots=True)
class Slices:
    """What is looked at; all of it by default.

    Parameters
    ----------
    people, groups : tuple of str, optional
    since, until : str, optional
        Times, both included.
    """

    people: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    since: str | None = None
    until: str | None = None


EVERYTHING = Slices()


def within(column: NDArray[Any], since: str | None, until: str | None) -> NDArray[np.bool_]:
    """Which times lie between two, both included.

    Raises
    ------
    InputError
        An end that is no time, or one of another kind.
    """
    moments, kept = comparable(column, "time"), np.ones(len(column), dtype=bool)
    for edge, first in ((since, True), (until, False)):
        if edge is None:
            continue
        limit = comparable(np.array([edge], dtype=object), "since" if first else "until")
        if (limit.dtype.kind == "M") != (moments.dtype.kind == "M"):
            raise InputError(f"expected a time like those in the table, such as {str(column[0])!r}, got {edge!r}")
        kept &= (moments >= limit[0]) if first else (moments <= limit[0])
    return kept
