"""Outputs of mechanisms as text, and back, exactly; and the export of a ledger as one table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import InputError
from temporaldp.data.files.atomic import suffix_of, write_text
from temporaldp.data.files.columns import save_columns

if TYPE_CHECKING:
    from temporaldp.publish.release.ledger import Ledger


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


def export_ledger(ledger: Ledger, path: str | Path) -> None:
    """Write every step of a ledger to a Parquet, CSV or JSON file, whole or not at all.

    Columns: step, time, published, parameter (the budget, or under a noise plan the scale of the noise), epsilon (nats),
    worst_leakage (of any step so far, nats; empty without an accountant), last, output (as JSON), hash. Where what was released
    are counts of the ledger's states, there is one column ``count STATE`` for each; the tables of a
    shared account have a column ``output TABLE`` each. Parquet and JSON also have what the ledger
    is for, its head and who adopted what. The digests of inputs are not exported.

    Raises
    ------
    InputError
        The suffix is not supported.
    OutputError
        The file cannot be written; an existing file is untouched.
    """
    suffix, said, rows = export_suffix(path), said_of(ledger), ledger[:]
    outputs = [_plain(row.output) for row in rows]
    as_json = [None if output is None else json.dumps(output) for output in outputs]
    columns: dict[str, list[Any]] = {
        "step": [row.step for row in rows],
        "time": [row.time for row in rows],
        "published": [row.output is not None for row in rows],
        "parameter": [row.parameter for row in rows],
        "epsilon": [row.epsilon for row in rows],
        "worst_leakage": [row.leakage for row in rows],
        "last": [row.last for row in rows],
        "output": outputs if suffix == ".json" else as_json,
        "hash": [row.hash for row in rows],
        **_counts(ledger.configuration.get("states") or (), outputs),
        **_tables(ledger),
    }
    if suffix != ".json":
        save_columns(columns, path, said)
        return
    steps = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    write_text(path, json.dumps({**said, "steps": steps}, indent=1, allow_nan=False))


def export_suffix(path: str | Path) -> str:
    """The suffix of an export; `InputError` for one that cannot be written."""
    return suffix_of(path, (".parquet", ".csv", ".json"), "a ledger's export")


def said_of(ledger: Ledger) -> dict[str, Any]:
    """Configuration of the ledger, its head and its events."""
    events = [
        {"step": event.step, "kind": event.kind, "at": event.at, "by": event.by, **event.details, "hash": event.hash}
        for event in ledger.events
        if event.kind not in {"checkpoint", "table"}
    ]
    return {**ledger.configuration, "unit": "nats", "head": ledger.head, "events": events}


def _plain(text: str | None) -> Any:
    """Output of a step as JSON values."""
    output = None if text is None else from_text(text)
    return output.tolist() if isinstance(output, np.ndarray | np.generic) else output


def _tables(ledger: Ledger) -> dict[str, list[Any]]:
    """A column for each table of a shared account."""
    found: dict[str, list[Any]] = {}
    for event in ledger.events:
        if event.kind == "table":
            column = found.setdefault(f"output {event.by}", [None] * len(ledger))
            column[event.details["step"]] = json.dumps(_plain(event.details["output"]))
    return found


def _counts(states: Sequence[str], outputs: Sequence[Any]) -> dict[str, list[Any]]:
    """A column for each state, where every output is one number for each of them."""
    if not states or any(
        one is not None and not (isinstance(one, list) and len(one) == len(states)) for one in outputs
    ):
        return {}
    return {f"count {state}": [None if one is None else one[k] for one in outputs] for k, state in enumerate(states)}
