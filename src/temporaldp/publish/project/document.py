"""From a TOML file and a command line to validated settings."""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from temporaldp.base.errors import InputError, MissingFileError
from temporaldp.publish.project.settings import Section, Settings, Written

DEFAULT_FILE = Path("temporaldp.toml")

Document: TypeAlias = dict[str, dict[str, Any]]


def read_settings(
    file: Path | None = None, assignments: Sequence[str] = (), options: Mapping[str, tuple[str, Any]] | None = None
) -> Settings:
    """Return the settings of a project file, overridden by a command line.

    Parameters
    ----------
    file : path, optional
        By default `temporaldp.toml` of the working directory, if it exists. Relative paths in it are relative to its folder.
    assignments : sequence of str
        "section.key=value", as `--set` takes them.
    options : mapping from "section.key" to (name of the option, value), optional
        Options of a command; a value of None leaves the key as it is. They override assignments.

    Raises
    ------
    MissingFileError
        The named file does not exist.
    InputError
        The file is not TOML, a key is unknown, or a value is not accepted; the message names the key, the line, the value and
        what is accepted. It names a file to write outside of its folder.
    """
    text, name, document = "", "", Document()
    if file is not None or DEFAULT_FILE.exists():
        place = file or DEFAULT_FILE
        name, text = str(place), _text(place)
        document = _parsed(text, name)
    given: dict[str, tuple[str, Any]] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or "." not in key:
            raise InputError(
                f"expected --set SECTION.KEY=VALUE, such as --set traces.user=person_id, got {assignment!r}"
            )
        given[key.strip()] = f"--set {key.strip()}", value
    given |= {key: (option, value) for key, (option, value) in (options or {}).items() if value is not None}

    def where(wrong: str) -> str:
        """Option or line that sets a key, or a key of a section."""
        of_options = (option for key, (option, _) in given.items() if f"{key}.".startswith(f"{wrong}."))
        return next(of_options, None) or _location(name, text, wrong)

    _place_files(document, given, Path(name).parent, where)
    for key, (_, value) in given.items():
        section, _, field = key.partition(".")
        document.setdefault(section, {})[field] = value
    try:
        return Settings.model_validate(document)
    except ValidationError as error:
        raise InputError(_sentence(error, where)) from None


def _text(place: Path) -> str:
    try:
        return place.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingFileError(f"there is no project file {place}; `temporaldp init TABLE` writes one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the project file {place}: {error}") from None


def _parsed(text: str, name: str) -> Document:
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{name} is not valid TOML: {error}") from None
    for section, keys in found.items():
        if not isinstance(keys, dict):
            raise InputError(
                f"{name}: expected sections with keys, such as [traces]; {section!r} is outside of a section"
            )
    return found


def closest_key(name: str, cutoff: float = 0.7) -> str | None:
    """Return the "section.key" whose key is most like a name; None if none is."""
    keys = {key: f"{section}.{key}" for section in reversed(Settings.model_fields) for key in _fields(section)}
    close = difflib.get_close_matches(name, keys, n=1, cutoff=cutoff)
    return keys[close[0]] if close else None


def _fields(section: str) -> dict[str, FieldInfo]:
    """Keys of a section; none if the section is unknown."""
    known = Settings.model_fields.get(section)
    return {} if known is None else cast(type[Section], known.annotation).model_fields


def _written(field: FieldInfo) -> Written | None:
    """The mark of a file that a command writes; None for another key."""
    marks = (mark for accepted in get_args(field.annotation) for mark in getattr(accepted, "__metadata__", ()))
    return next((mark for mark in marks if isinstance(mark, Written)), None)


def _place_files(document: Document, given: Collection[str], folder: Path, where: Callable[[str], str]) -> None:
    """Make paths of a project file relative to its folder.

    Files to write outside of it, or with other endings, are refused, unless a command line gives them: a project file may come
    from others, and must not choose what is overwritten, or what a shell reads when it starts.
    """
    for section, keys in document.items():
        for key, field in _fields(section).items():
            value, written, name = keys.get(key), _written(field), f"{section}.{key}"
            is_url = name == "release.ledger" and "://" in str(value)
            if not isinstance(value, str) or is_url or not (written or Path in get_args(field.annotation)):
                continue
            keys[key] = placed = str(folder / value)
            if written is None or name in given:
                continue
            inside = Path(os.path.realpath(placed)).is_relative_to(os.path.realpath(folder))
            if not inside or Path(placed).suffix.lower() not in written.suffixes:
                raise InputError(
                    f"{where(name)}: expected {name} to be a file ending in {' or '.join(written.suffixes)} in the folder of "
                    f"the project file or below it, got {placed!r}; another place is given on the command line "
                    f"(--set {name}=FILE)"
                )


def _location(name: str, text: str, key: str) -> str:
    """File and line of a key."""
    section, _, field = key.partition(".")
    current = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\s*([\w-]+)\s*\]", line):
            current = header[1]
            if current == section and not field:
                return f"{name}, line {number}"
        elif current == section and field and re.match(rf"\s*\"?{re.escape(field)}\"?\s*=", line):
            return f"{name}, line {number}"
    return name


def _sentence(error: ValidationError, where: Callable[[str], str]) -> str:
    """The first problem: where it is, what was found and what is accepted."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"][:2])
    section, _, field = key.partition(".")
    if first["type"] == "extra_forbidden":
        return f"{where(key)}: {_unknown(section, field)}"
    accepted, description = first["msg"].removeprefix("Value error, "), _fields(section)[field].description
    return f"{where(key)}: {key} = {first['input']!r} is not accepted: {accepted}. Its meaning: {description}"


def _unknown(section: str, field: str) -> str:
    """An unknown section or key, and the closest known one."""
    known = _fields(section)
    if not known:
        close = difflib.get_close_matches(section, Settings.model_fields, n=1, cutoff=0.0)
        return f"unknown section [{section}]; did you mean [{close[0]}]?"
    close = difflib.get_close_matches(field, known, n=1, cutoff=0.0)
    found = closest_key(field, cutoff=1.0) or f"{section}.{close[0]}"
    return f"unknown key {section}.{field}; did you mean {found}?"


def json_schema() -> str:
    """Return the JSON schema of the project file, which editors complete keys by."""
    return json.dumps(Settings.model_json_schema(), indent=1) + "\n"
