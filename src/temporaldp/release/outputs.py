"""Outputs of mechanisms as text, and back, exactly."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from temporaldp.errors import InputError


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
