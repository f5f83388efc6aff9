"""The fields of a registry record that leakage over time depends on, validated by pydantic."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
)

from temporaldp.base.errors import InputError

SECTIONS = ("basic", "dp_variant", "privacy_loss", "deployment_model", "implementation", "accounting")
"""Sections of the field `deployment` that are read."""

NUMBER = r"\s*-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*"
"""A number in the text of a file."""

NOTHING_GIVEN = (None, "null", "~")
"""Values of a field that is empty."""

SHORT = reprlib.Repr()
SHORT.maxstring = SHORT.maxother = 80

HINTS = {
    "deployment.privacy_loss.privacy_unit": ", such as 'User-day-level'",
    "deployment.privacy_loss.privacy_parameters": " with epsilon, epsilon and delta, or rho, numbers such as 'epsilon: 0.5'",
}
"""Constraint of a required field."""


def _present(value: Any) -> Any:
    return "" if value in NOTHING_GIVEN else value


def _printable(text: str) -> str:
    """In one line, without control characters, which could change a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def _number(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(NUMBER, value):
        return float(value)
    return None if value in (*NOTHING_GIVEN, "") else value


def _at(path: str) -> AliasPath:
    return AliasPath(*path.split("."))


Text: TypeAlias = Annotated[str, Strict(), AfterValidator(_printable), BeforeValidator(_present)]
Number: TypeAlias = Annotated[float | None, Strict(), Field(allow_inf_nan=False), BeforeValidator(_number)]


class Parameters(BaseModel):
    """Privacy parameters of one step."""

    model_config = ConfigDict(frozen=True)

    epsilon: Number = None
    delta: Number = None
    rho: Number = None


class Record(BaseModel):
    """A record of the registry; fields that are missing are empty."""

    model_config = ConfigDict(frozen=True)

    slug: Text = Field("", validation_alias="url_slug")
    status: Text = ""
    name: Text = Field("", validation_alias=_at("deployment.basic.name"))
    curators: tuple[Text, ...] = Field((), validation_alias=_at("deployment.basic.data_curators"))
    variant: Text = Field("", validation_alias=_at("deployment.dp_variant.variant_name"))
    unprotected: Text = Field("", validation_alias=_at("deployment.dp_variant.unprotected_quantities"))
    unit: Annotated[Text, Field(min_length=1)] = Field(validation_alias=_at("deployment.privacy_loss.privacy_unit"))
    unit_details: Text = Field("", validation_alias=_at("deployment.privacy_loss.privacy_unit_details"))
    parameters: Parameters = Field(validation_alias=_at("deployment.privacy_loss.privacy_parameters"))
    parameter_details: Text = Field("", validation_alias=_at("deployment.privacy_loss.privacy_parameters_details"))
    model: Text = Field("", validation_alias=_at("deployment.deployment_model.model_name"))
    release_type: Text = Field("", validation_alias=_at("deployment.deployment_model.release_type"))
    release_details: Text = Field("", validation_alias=_at("deployment.deployment_model.release_type_details"))
    source_details: Text = Field("", validation_alias=_at("deployment.deployment_model.data_source_type_details"))
    mechanisms: Text = Field("", validation_alias=_at("deployment.implementation.mechanisms"))
    composition: Text = Field("", validation_alias=_at("deployment.accounting.composition"))


def validated(document: Mapping[str, Any]) -> Record:
    """Return the record of a document.

    Raises
    ------
    InputError
        A section or a field is missing or of another kind; the message names it.
    """
    if "deployment" not in document:
        is_schema = "properties" in document and "type" in document
        found = "the registry's schema" if is_schema else f"the fields {', '.join(map(str, document))[:200]}"
        raise InputError(f"expected a record with the field 'deployment', got {found}")
    content = document["deployment"]
    sections = {f"deployment.{name}": content.get(name) for name in SECTIONS} if isinstance(content, dict) else {}
    for place, section in {"deployment": content, **sections}.items():
        if not isinstance(section, dict) and section not in (*NOTHING_GIVEN, ""):
            raise InputError(f"expected {place} to be a mapping of fields, got {_shown(section)}")
    try:
        return Record.model_validate(document)
    except ValidationError as error:
        raise InputError(_sentence(error)) from None


def _sentence(error: ValidationError) -> str:
    """The first problem: where it is, what is expected and what was found."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    found = "nothing" if first["type"] == "missing" else _shown(first["input"])
    return f"expected {'.'.join(path)}{HINTS.get('.'.join(path[:3]), '')}, got {found} ({first['msg']})"


def _shown(value: Any) -> str:
    return "nothing" if value in (None, "") else SHORT.repr(value)
