"""Values as JSON documents, and back, by pydantic: what files contain, and what commands print.

An array becomes a list, a dataclass an object of its fields. A class whose document is another one has a method `document`.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np

from temporaldp.base.errors import InputError


def plain(value: Any) -> Any:
    """Return a value as JSON values."""
    return _adapter(Any).dump_python(value, mode="json", fallback=_plain)


def spelled(value: Any) -> str:
    """Return a value as strict JSON text, in which infinity and NaN are the words "Infinity" and "NaN"."""
    return str(_adapter(Any).dump_json(value, indent=1, fallback=_plain), encoding="utf-8")


def json_line(value: Any) -> str:
    """Return JSON values as one line of ASCII without dollar signs and backquotes, which a shell that reads it would run."""
    return json.dumps(value, allow_nan=False).replace("$", r"\u0024").replace("`", r"\u0060")


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value.document()


def value_of(kind: Any, document: Any) -> Any:
    """Return the value of a type, such as a dataclass, that JSON values describe.

    Raises
    ------
    InputError
        A field is missing, or of another type; the message names it, what was found and what is accepted.
    """
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise InputError(f"{field or 'value'} {str(first['input'])[:40]!r} is not accepted: {first['msg']}") from None


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(kind, config=ConfigDict(ser_json_inf_nan="strings") if kind is Any else None)
