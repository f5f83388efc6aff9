"""Outputs of mechanisms as text, and back, exactly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.errors import InputError
from temporaldp.release.chain import collector_paused


def as_text(output: Any) -> str:
    """NumPy arrays and numbers of plain types, and whatever JSON has.

    Raises
    ------
    InputError
        Something else: it could not be given back as it was.
    """
    try:
        if _is_plain_array(output):
            document = {"array": output.tolist(), "dtype": output.dtype.str, "shape": output.shape}
        else:
            document = {"value": output}
        text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"expected an output that a ledger can keep (numbers without NaN, text, lists, dictionaries, NumPy arrays), got "
            f"{type(output).__name__}: {error}; convert it inside the mechanism"
        ) from None
    again = from_text(text)
    same = np.array_equal(again, output) if "array" in document else again == output
    if type(again) is not type(output) or not same:
        raise InputError(f"expected an output that JSON gives back as it was, got {type(output).__name__}")
    return text


FILTERED = "filtered"
"""Where the text of an output keeps what a filter made of it and of those before."""


def with_filtered(text: str, filtered: dict[str, Any]) -> str:
    """The text of an output, with JSON values beside it that `from_text` leaves alone."""
    return json.dumps(json.loads(text) | {FILTERED: filtered}, separators=(",", ":"), allow_nan=False)


def filtered_of(text: str) -> dict[str, Any] | None:
    """What stands beside an output; None if nothing does."""
    found: dict[str, Any] | None = json.loads(text).get(FILTERED)
    return found


def _is_plain_array(output: Any) -> bool:
    """An array or number of NumPy's, and no subclass with more to it (a mask, a unit)."""
    return (type(output) is np.ndarray or isinstance(output, np.generic)) and output.dtype.kind in "biufU"


def from_text(text: str) -> Any:
    """The output that `as_text` wrote down."""
    document = json.loads(text)
    if "value" in document:
        return document["value"]
    array = np.array(document["array"], dtype=np.dtype(document["dtype"])).reshape(document["shape"])
    return array if document["shape"] else array[()]


ARRAY, DTYPE = '{"array":', ',"dtype":'
"""How the text of an array begins, and what follows its numbers."""

TEXTS_AT_ONCE = 4096
"""That are decoded together: a call for each takes longer, and millions of lists in memory at once do too."""


@collector_paused()
def counts_of(texts: Sequence[str | None], n: int) -> NDArray[Any] | None:
    """What many texts hold, stacked, shape (T, n), if that is n numbers of one type each; None where it is something else."""
    known = [text for text in texts if text is not None]
    if not known or len(known) < len(texts):
        return None
    parts, kinds = [], set()
    for start in range(0, len(known), TEXTS_AT_ONCE):
        some = known[start : start + TEXTS_AT_ONCE]
        first, end = json.loads(some[0]), some[0].rfind(DTYPE)
        kinds.add((first.get("dtype"), *first.get("shape", ())))
        if end > 0 and all(text.startswith(ARRAY) and text.endswith(some[0][end:]) for text in some):
            numbers = json.loads(f"[{','.join(text[len(ARRAY) : end - len(some[0])] for text in some)}]")
        else:  # something stands beside the arrays
            documents = json.loads(f"[{','.join(some)}]")
            kinds |= {(one.get("dtype"), *one.get("shape", ())) for one in documents}
            numbers = [one.get("array") for one in documents]
        kind = first.get("dtype")
        if kind is None or kinds != {(kind, n)}:
            return None
        parts.append(np.array(numbers, dtype=np.dtype(kind)))
    return np.concatenate(parts)
