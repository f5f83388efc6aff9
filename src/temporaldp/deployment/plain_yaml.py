"""YAML as a record of the registry needs it, and nothing more: no tags, no anchors, no deep nesting, no large file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from temporaldp.errors import InputError
from temporaldp.extras import needing
from temporaldp.files.atomic import brief, require_file

with needing("deployment"):
    import yaml

LARGEST_FILE = 256 * 1024
"""Bytes; the longest record of the registry has 12 thousand."""

DEEPEST = 20
"""Levels of nesting; a record of the registry has 4."""

NUMBERS = (
    ("tag:yaml.org,2002:null", r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", r"(?:true|True|TRUE|false|False|FALSE)", list("tTfF")),
    ("tag:yaml.org,2002:int", r"[-+]?(?:0|[1-9][0-9]{0,300})", list("-+0123456789")),
    (
        "tag:yaml.org,2002:float",
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))",
        list("-+.0123456789"),
    ),
)
"""Scalars that are not text, by the core schema of YAML 1.2: 1e-5 is a number; yes, 1:30 and dates are text."""


class PlainLoader(yaml.SafeLoader):
    """SafeLoader without repeated keys and YAML 1.1's guesses."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Return a mapping; an error for a key that is not text, or is repeated."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key.value, str) or key.value in seen:
                raise InputError(f"expected every field once, by a name, got {str(key.value)[:60]!r} {_place(key)}")
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


for tag, pattern, first in NUMBERS:
    PlainLoader.add_implicit_resolver(tag, re.compile(f"^{pattern}$"), first)


def read_plain_yaml(path: str | Path, what: str) -> dict[str, Any]:
    """The one mapping that a YAML file holds.

    Raises
    ------
    MissingFileError
        There is no such file.
    InputError
        It is too large, not YAML, has tags, anchors, aliases or repeated keys, is nested too deeply, or holds no mapping.
    """
    source = require_file(path, what)
    try:
        with source.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{source}: expected {what}, but it cannot be read: {brief(error)}") from None
    if len(content) > LARGEST_FILE:
        raise InputError(f"{source}: expected {what} of at most {LARGEST_FILE // 1024} KiB, got a larger file")
    try:
        _require_plain(content)
        found = yaml.load(content, Loader=PlainLoader)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{source}: expected {what} in YAML, got something else: {brief(error)}") from None
    if not isinstance(found, dict):
        raise InputError(f"{source}: expected {what}, a mapping of fields, got {_kind(found)}")
    return found


def _require_plain(content: bytes) -> None:
    """Refuse what a record does not need, before anything is made of it."""
    depth = 0
    for event in yaml.parse(content):
        if getattr(event, "anchor", None) is not None:
            raise InputError(f"expected no anchors and aliases (& and *), got one {_place(event)}: write values out")
        if (tag := getattr(event, "tag", None)) is not None:
            raise InputError(f"expected no tags, got {tag[:60]!r} {_place(event)}: write plain values")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise InputError(f"expected at most {DEEPEST} levels of nesting, got more {_place(event)}")


def _kind(found: Any) -> str:
    return {"NoneType": "an empty file", "list": "a list", "str": "text"}.get(type(found).__name__, "a single value")


def _place(marked: Any) -> str:
    return f"in line {marked.start_mark.line + 1}"
