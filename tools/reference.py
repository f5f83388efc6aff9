"""Write the reference pages that are made from the code: the command line, the project file and its JSON schema.

python tools/reference.py            writes docs/command-line.md, docs/project-file.md, docs/temporaldp.schema.json
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from temporaldp.apps.cli.main import PANELS, load
from temporaldp.publish.project.document import json_schema
from temporaldp.publish.project.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"
WORDS = {str: "text", bool: "true, false", float: "number", int: "whole number", Path: "path", date: "date"}
BEGIN, END = "<!-- generated -->", "<!-- end -->"


def pages() -> dict[Path, str]:
    """Every generated file, with its content."""
    return {
        DOCS / "command-line.md": _between(DOCS / "command-line.md", "\n".join(_commands())),
        DOCS / "project-file.md": _between(DOCS / "project-file.md", "\n".join(_sections())),
        DOCS / "temporaldp.schema.json": json_schema(),
    }


def _between(page: Path, made: str) -> str:
    """The page, with what is made from the code between its two marks."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{made}\n{END}{rest.split(END)[1]}"


def _commands() -> Iterator[str]:
    for path, command in commands():
        arguments = [f"[{one.metavar}]" for one in command.params if one.param_type_name == "argument"]
        yield f"### `{' '.join([path, *arguments])}`\n"
        yield f"{' '.join((command.help or '').split())}\n"
        options = [one for one in command.params if one.param_type_name == "option"]
        if options:
            yield "| option | meaning |\n| --- | --- |"
            for one in options:
                names = ", ".join(f"`{name}`" for name in one.opts)
                value = f" `{_cell(one.metavar)}`" if one.metavar else ""
                yield f"| {names}{value} | {_cell(one.help or '')} |"
        yield ""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command, by the words that call it."""
    for name in sorted(name for panel in PANELS.values() for name in panel):
        command = load(name)
        inner = sorted(getattr(command, "commands", {}).items())
        yield from [(f"temporaldp {name} {one}", part) for one, part in inner] or [(f"temporaldp {name}", command)]


def _sections() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        section: Any = field.annotation
        yield f"### `[{name}]`\n"
        yield f"{field.description}\n"
        if name == "history":
            continue
        yield "| key | accepts | default | meaning |\n| --- | --- | --- | --- |"
        for key, one in section.model_fields.items():
            default = "" if one.default is None else f"`{_plain(one.default)}`"
            yield f"| `{key}` | {_cell(_accepted(one.annotation))} | {default} | {_cell(one.description)} |"
        yield ""


def _accepted(kind: Any) -> str:
    """The type of a key in words."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _accepted(parts[0])
    if origin in {Union, UnionType}:
        return " or ".join(_accepted(part) for part in parts if part is not type(None))
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in parts)
    if kind in WORDS:
        return WORDS[kind]
    return "table" if origin is dict else "two numbers" if len(parts) == 2 and parts[1] is not ... else "list"


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for place, content in pages().items():
        place.write_text(content, encoding="utf-8")
