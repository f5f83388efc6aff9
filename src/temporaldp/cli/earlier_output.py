"""Whether an existing output may be replaced: it may if all of it is released again from the ledger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from temporaldp import InputError, load_released
from temporaldp.correlation import Traces
from temporaldp.counts import consistent_counts
from temporaldp.errors import OutputError


def refuse_existing(output: Path, overwrite: bool) -> None:
    """Raise `OutputError` if the file exists and may not be overwritten."""
    if output.exists() and not overwrite:
        raise OutputError(
            f"{output} exists; releasing the same data twice spends the budgets twice. If that file was never shared, "
            "pass --overwrite; otherwise keep it"
        )


def is_earlier(output: Path, published: Callable[[str], Any], data: Traces) -> bool:
    """Whether the file contains only earlier releases of a ledger that are released again, so that replacing it loses nothing.

    `published` returns the counts that the ledger stores for a time, or None.
    """
    if not output.exists():
        return True
    try:
        old = load_released(output)
    except InputError:
        return False
    if not set(old.times) <= set(data.times) or set(old.states) != set(data.states):
        return False
    for time, counts in zip(old.times, old.reordered(data.states).counts, strict=True):
        kept = published(time)
        if not isinstance(kept, np.ndarray):
            return False
        total = sum(counts.tolist())  # Python's: a foreign file may hold anything
        if not np.array_equal(counts, kept) and (
            total < 0 or not np.array_equal(counts, consistent_counts(kept, total=total))
        ):
            return False
    return True
