"""From a TOML file and a command line to validated settings."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from temporaldp.errors import InputError, MissingFileError
from temporaldp.project.settings import Place, Section, Settings

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
        what is accepted.
    """
    text, name, document = "", "", Document()
    if file is not None or DEFAULT_FILE.exists():
        place = file or DEFAULT_FILE
        name, text = str(place), _text(place)
        document = _parsed(text, name)
        _require_known(document, lambda key: _location(name, text, key))
        _resolve_paths(document, place.parent)
    given: dict[str, tuple[str, Any]] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or "." not in key:
            raise InputError(
                f"expected --set SECTION.KEY=VALUE, such as --set traces.user=person_id, got {assignment!r}"
            )
        section, _, field = key.strip().partition(".")
        _require_known({section: {field: value}}, lambda key: f"--set {key}")
        given[key.strip()] = f"--set {key.strip()}", value
    given |= {key: (option, value) for key, (option, value) in (options or {}).items() if value is not None}
    for key, (_, value) in given.items():
        section, _, field = key.partition(".")
        document.setdefault(section, {})[field] = value
    try:
        return Settings.model_validate(document)
    except ValidationError as error:
        raise InputError(
            _sentence(error, lambda key: given[key][0] if key in given else _location(name, text, key))
        ) from None


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
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not valid TOML: {error}") from None
    for section, keys in found.items():
        if not isinstance(keys, dict):
            raise InputError(
                f"{name}: expected sections with keys, such as [traces]; {section!r} stands outside of them"
            )
    return found


def _require_known(document: Mapping[str, Mapping[str, Any]], where: Callable[[str], str]) -> None:
    """Refuse unknown sections and keys, with the closest known one."""
    for section, keys in document.items():
        if section not in Settings.model_fields:
            close = difflib.get_close_matches(section, Settings.model_fields, n=1, cutoff=0.0)
            raise InputError(f"{where(section)}: unknown section [{section}]; did you mean [{close[0]}]?")
        known = _section(section).model_fields
        for key in keys:
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
                found = closest_key(key, cutoff=1.0) or f"{section}.{close[0]}"
                raise InputError(f"{where(f'{section}.{key}')}: unknown key {section}.{key}; did you mean {found}?")


def closest_key(name: str, cutoff: float = 0.7) -> str | None:
    """Return the "section.key" whose key is most like a name; None if none is."""
    keys = {
        key: f"{section}.{key}" for section in reversed(Settings.model_fields) for key in _section(section).model_fields
    }
    close = difflib.get_close_matches(name, keys, n=1, cutoff=cutoff)
    return keys[close[0]] if close else None


def _section(name: str) -> type[Section]:
    found = Settings.model_fields[name].annotation
    assert isinstance(found, type)
    assert issubclass(found, Section)
    return found


def _is_path(field: FieldInfo) -> bool:
    accepted = (field.annotation, *get_args(field.annotation))
    return Path in accepted or Place in accepted


def _resolve_paths(document: Document, folder: Path) -> None:
    for section, keys in document.items():
        for key, value in keys.items():
            if isinstance(value, str) and "://" not in value and _is_path(_section(section).model_fields[key]):
                keys[key] = str(folder / value)


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
    accepted = first["msg"].removeprefix("Value error, ")
    description = _section(key.partition(".")[0]).model_fields[key.partition(".")[2]].description
    return f"{where(key)}: {key} = {first['input']!r} is not accepted: {accepted}. Its meaning: {description}"


def json_schema() -> str:
    """Return the JSON schema of the project file, which editors complete keys by."""
    return json.dumps(Settings.model_json_schema(), indent=1) + "\n"
