"""Text with one person's sequence a line, as batches of rows."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from temporaldp.errors import TraceError
from temporaldp.extras import needing
from temporaldp.files.atomic import brief

LINE_BITS = 32
"""A value's row number is that of its line, shifted by so many bits, and its position."""

VALUES = 1 << 18
"""Values after which a batch is handed on."""


def sequence_batches(source: Path, delimiter: str | None) -> Iterator[Any]:
    """Arrow batches with the columns c0 (the line), c1 (the position), c2 (the state) and row; lines count from 1.

    Raises
    ------
    TraceError
        Not text, empty, or a table rather than sequences.
    """
    lengths: list[int] = []
    words: list[str] = []
    commas: set[int] = set()
    n_lines = 0
    opener = gzip.open if source.suffix.lower() == ".gz" else open
    try:
        with opener(source, "rt", encoding="utf-8-sig") as file:
            for line in filter(None, map(str.strip, file)):
                cells = [cell.strip() for cell in line.split(delimiter)]
                commas.add(line.count(","))
                n_lines += 1
                lengths.append(len(cells))
                words.extend(cells)
                if len(words) >= VALUES:
                    yield _batch(lengths, words, n_lines)
                    lengths, words = [], []
    except (UnicodeDecodeError, OSError, EOFError, zlib.error) as error:
        raise TraceError(
            f"expected text with one person's sequence a line, but it cannot be read: {brief(error)}"
        ) from None
    if delimiter is None and len(commas) == 1 and commas != {0}:
        raise TraceError(
            "this looks like a CSV table, not like sequences separated by blanks; say --set "
            "traces.layout=long or --set traces.layout=wide, or "
            "--set traces.delimiter=, if each line is one person's sequence"
        )
    if not n_lines:
        raise TraceError("the file is empty")
    yield _batch(lengths, words, n_lines)


def _batch(lengths: list[int], words: list[str], last: int) -> Any:
    """The lines up to number `last`."""
    with needing("tables"):
        import pyarrow as pa

    lines = np.repeat(np.arange(last - len(lengths) + 1, last + 1), lengths)
    positions = np.concatenate([np.arange(length) for length in lengths]) if lengths else np.zeros(0, np.int64)
    columns = [lines, positions, pa.array(words, pa.string()), (lines << LINE_BITS) + positions]
    return pa.record_batch([pa.array(column) for column in columns], ["c0", "c1", "c2", "row"])
