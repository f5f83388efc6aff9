"""The state of an accountant by the exact leakage, as JSON values: however long the past is, it does not grow.

Odometer and filter keep what arrives at the next step, and the rollouts of earlier steps that what follows may still raise;
all others are proved never to matter again (docs/theory.md, section 11). Arrays are written down to their last bit, so that an
accountant that is restored gives the answers of one that went on. Matrices are not written down.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.correlation import Adversaries
from temporaldp.errors import InputError

KINDS = {"f": "<f8", "i": "<i8", "b": "|b1"}
"""The entries that arrays have."""

ReadBudgets: TypeAlias = Callable[[], Sequence[float]]
"""Returns what the steps before a saved state spent."""


@dataclass(frozen=True, slots=True)
class KeptAdoption:
    """A change of the correlation, whose reserve was found when it was made; as for `TemporalAccountant.adopt`."""

    step: int
    adversary: Adversaries
    both: bool
    reserve: float


@contextmanager
def checked_state(state: dict[str, Any], n_spent: int, n_adopted: int) -> Iterator[None]:
    """Restore a state inside this block: whatever does not fit becomes an `InputError`."""
    if n_spent:
        raise InputError(f"expected an accountant that has spent nothing yet, got one with {n_spent} steps")
    try:
        if state["n_adopted"] != n_adopted:
            raise InputError(f"the state is after {state['n_adopted']} adoptions, but {n_adopted} are known")
        yield
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"expected the kept state of an accountant like this one: {error}") from error


def packed(array: NDArray[Any]) -> str:
    """An array as text: kind, shape and content."""
    kind = KINDS[array.dtype.kind]
    content = base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode("ascii")
    return " ".join([kind, *map(str, array.shape), content])


def unpacked(text: str) -> NDArray[Any]:
    """Undo `packed`; `ValueError` for anything else."""
    kind, *shape, content = text.split(" ")
    if kind not in KINDS.values():
        raise ValueError(f"expected an array of one of {', '.join(KINDS.values())}, got {kind[:10]!r}")
    found = np.frombuffer(base64.b64decode(content, validate=True), dtype=kind)
    return found.reshape([int(length) for length in shape]).copy()
