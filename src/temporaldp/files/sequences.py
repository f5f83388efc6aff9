"""Text with one person's sequence a line, as batches of rows."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from temporaldp.correlation.relations import MISSING_WORDS
from temporaldp.errors import TraceError
from temporaldp.extras import needing
from temporaldp.files.atomic import brief

LINE_BITS = 32
"""A value's row number is that of its line, shifted by so many bits, and its position."""

VALUES = 1 << 18
"""Values after which a batch is handed on."""


def sequence_batches(source: Path, states: tuple[str, ...] | None, delimiter: str | None) -> Iterator[Any]:
    """Arrow batches with the columns c0 (the line), c1 (the position), c2 (the state) and row; lines count from 1.

    Raises
    ------
    TraceError
        Not text, empty, a table rather than sequences, or a word for a missing value.
    """
    read = _Read(states, delimiter)
    lengths: list[int] = []
    words: list[str] = []
    for cells in read.lines(source):
        lengths.append(len(cells))
        words.extend(cells)
        if len(words) >= VALUES:
            yield _batch(lengths, words, read.n_lines)
            lengths, words = [], []
    read.refuse()
    yield _batch(lengths, words, read.n_lines)


def _batch(lengths: list[int], words: list[str], last: int) -> Any:
    """The lines up to number `last`."""
    with needing("tables"):
        import pyarrow as pa

    lines = np.repeat(np.arange(last - len(lengths) + 1, last + 1), lengths)
    positions = np.concatenate([np.arange(length) for length in lengths]) if lengths else np.zeros(0, np.int64)
    columns = [lines, positions, pa.array(words, pa.string()), (lines << LINE_BITS) + positions]
    return pa.record_batch([pa.array(column) for column in columns], ["c0", "c1", "c2", "row"])


class _Read:
    """Lines as they are read, and what is wrong with them; said at the end, when it is known whether they are a table."""

    def __init__(self, states: tuple[str, ...] | None, delimiter: str | None) -> None:
        self._states, self._delimiter = set(states or ()), delimiter
        self._commas: set[int] = set()
        self._missing: str | None = None
        self.n_lines = 0

    def lines(self, source: Path) -> Iterator[list[str]]:
        """The cells of every line that is not blank."""
        opener = gzip.open if source.suffix.lower() == ".gz" else open
        try:
            with opener(source, "rt", encoding="utf-8-sig") as file:
                for line in file:
                    if line.strip():
                        yield self._cells(line.strip())
        except (UnicodeDecodeError, OSError, EOFError, zlib.error) as error:
            raise TraceError(
                f"expected text with one person's sequence a line, but it cannot be read: {brief(error)}"
            ) from None

    def _cells(self, line: str) -> list[str]:
        cells = [cell.strip() for cell in line.split(self._delimiter)]
        self._commas.add(line.count(","))
        self.n_lines += 1
        bad = [cell for cell in cells if cell.lower() in MISSING_WORDS and cell not in self._states]
        if bad and self._missing is None:
            self._missing = (
                f"sequence {self.n_lines} holds {bad[0]!r}, which is no state; split the sequence there or drop it"
            )
        return cells

    def refuse(self) -> None:
        """Raise `TraceError` with what is wrong."""
        if self._delimiter is None and len(self._commas) == 1 and self._commas != {0}:
            raise TraceError(
                "this looks like a CSV table, not like sequences separated by blanks; say --set "
                "traces.layout=long or --set traces.layout=wide, or "
                "--set traces.delimiter=, if each line is one person's sequence"
            )
        if not self.n_lines:
            raise TraceError("the file is empty")
        if self._missing is not None:
            raise TraceError(self._missing)
