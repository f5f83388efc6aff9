"""Outputs of mechanisms as text, and back, exactly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import InputError


def as_text(output: Any) -> str:
    """An output as text: NumPy arrays and numbers of plain types, and JSON values.

    Raises
    ------
    InputError
        The output has another type, and could not be restored exactly.
    """
    # An array or number of NumPy's, and no subclass with more to it (a mask, a unit).
    is_array = (type(output) is np.ndarray or isinstance(output, np.generic)) and output.dtype.kind in "biufU"
    try:
        document = (
            {"array": output.tolist(), "dtype": output.dtype.str, "shape": output.shape}
            if is_array
            else {"value": output}
        )
        text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"expected an output that a ledger can keep (numbers without NaN, text, lists, dictionaries, NumPy arrays), got "
            f"{type(output).__name__}: {error}; convert it inside the mechanism"
        ) from None
    again = from_text(text)
    same = np.array_equal(again, output) if "array" in document else again == output
    if type(again) is not type(output) or not same:
        raise InputError(f"expected an output that JSON restores exactly, got {type(output).__name__}")
    return text


def with_filtered(text: str, filtered: dict[str, Any]) -> str:
    """The text of an output with additional JSON values, which `from_text` ignores."""
    return json.dumps(json.loads(text) | {"filtered": filtered}, separators=(",", ":"), allow_nan=False)


def filtered_of(text: str) -> dict[str, Any] | None:
    """JSON values stored beside an output; None if there are none."""
    found: dict[str, Any] | None = json.loads(text).get("filtered")
    return found


def from_text(text: str) -> Any:
    """The output of a text by `as_text`."""
    document = json.loads(text)
    if "value" in document:
        return document["value"]
    array = np.array(document["array"], dtype=np.dtype(document["dtype"])).reshape(document["shape"])
    return array if document["shape"] else array[()]


def counts_of(texts: Sequence[str | None], n: int) -> NDArray[Any] | None:
    """Stack the outputs of many texts, shape (T, n), if each is n numbers of one type; None otherwise."""
    outputs = [None if text is None else from_text(text) for text in texts]
    arrays = [one for one in outputs if isinstance(one, np.ndarray) and one.shape == (n,)]
    is_uniform = len({one.dtype for one in arrays}) == 1 and len(arrays) == len(texts)
    return np.stack(arrays) if is_uniform else None
