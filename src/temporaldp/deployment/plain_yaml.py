"""YAML as a record of the registry needs it: a small file without anchors, tags and repeated fields."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from temporaldp.errors import InputError
from temporaldp.extras import needing
from temporaldp.files.atomic import brief, require_file

with needing("deployment"):
    import yaml

LARGEST_FILE = 256 * 1024
"""Bytes; the longest record of the registry has 12 thousand."""


SCALARS = {
    "null": r"(~|null|Null|NULL)?$",
    "bool": r"(true|True|TRUE|false|False|FALSE)$",
    "int": r"[-+]?(0|[1-9][0-9]*)$",
    "float": r"[-+]?([0-9]*\.[0-9]+|[0-9]+\.?)([eE][-+]?[0-9]+)?$|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$",
}
"""What is not text, as in YAML 1.2: in 1.1, 010 is 8, 1:30 is 90, yes is true, and 1e-9 is text."""


class PlainLoader(yaml.SafeLoader):
    """SafeLoader without tags, anchors and repeated fields, with the scalars of YAML 1.2."""

    yaml_implicit_resolvers = {}  # noqa: RUF012

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node; an error where it has an anchor or a tag, or is an alias."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if event.anchor is not None:
            raise yaml.MarkedYAMLError(None, None, "an anchor or alias (& or *): write values out", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(None, None, f"the tag {event.tag[:60]!r}: leave it out", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Return a mapping; an error for a field that is repeated."""
        found = super().construct_mapping(node, deep=deep)
        if len(found) < len(node.value):
            (repeated, _), *_ = Counter(str(key.value)[:60] for key, _ in node.value).most_common()
            raise yaml.MarkedYAMLError(None, None, f"the field {repeated!r} more than once", node.start_mark)
        return found


for kind, pattern in SCALARS.items():
    PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern), None)


def read_plain_yaml(path: str | Path, what: str) -> dict[str, Any]:
    """Read the single mapping of a YAML file.

    Raises
    ------
    MissingFileError
        There is no such file.
    InputError
        The file is too large, not YAML or not a mapping, is nested too deeply, or has tags, anchors, aliases or repeated
        fields.
    """
    source = require_file(path, what)
    if source.stat().st_size > LARGEST_FILE:
        raise InputError(f"{source}: expected {what} of at most {LARGEST_FILE // 1024} KiB, got a larger file")
    try:
        found = yaml.load(source.read_bytes(), Loader=PlainLoader)
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{source}: expected {what} in plain YAML, got something else: {brief(error)}") from None
    if not isinstance(found, dict):
        kind = "an empty file" if found is None else f"a {type(found).__name__}"
        raise InputError(f"{source}: expected {what}, a mapping of fields, got {kind}")
    return found
