"""The state of an accountant by the exact leakage, as JSON values: however long the past is, it does not grow.

Odometer and filter keep the incoming leakage of the next step, and the rollouts of earlier steps that later ones may still
raise; all others are proved never to matter again (Theory, section 11). Arrays are written down to their last bit, so that an
accountant that is restored gives the answers of one that went on. Matrices are not written down.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = {"f": "<f8", "i": "<i8", "b": "|b1"}
"""The entries that arrays have."""


def packed(array: NDArray[Any]) -> str:
    """Return an array as text: kind, shape and content."""
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
