"""A record of the public registry of differentially private deployments, and the promise that it states."""

from __future__ import annotations

import re
import reprlib
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import AfterValidator, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError

from temporaldp.base.errors import InputError
from temporaldp.base.extras import needing
from temporaldp.data.files.atomic import brief, require_file
from temporaldp.publish.deployment.assumptions import Assumptions
from temporaldp.publish.deployment.promise import ConcentratedPromise, EpsilonPromise, Promise
from temporaldp.publish.deployment.wording import (
    STEPS_A_YEAR,
    Neighbours,
    Period,
    StatedUnit,
    period_in,
    stated_neighbours,
)
from temporaldp.publish.project.settings import Number

if TYPE_CHECKING:
    from temporaldp.publish.deployment.card import DeploymentCard

PARAMETERS_OF_VARIANT = {
    "Zero-concentrated DP": ("rho",),
    "Approximate DP": ("epsilon", "delta"),
    "Pure DP": ("epsilon",),
}
"""Variants that are modelled, with their required parameters; a record without a variant needs epsilon or rho."""


def _given(value: Any) -> Any:
    """The value of a field; None for one that is empty."""
    return None if value in ("", "null", "~") else value


def _printable(text: str) -> str:
    """In one line, without control characters, which could change a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def _at(path: str) -> AliasPath:
    return AliasPath(*path.split("."))


Text: TypeAlias = Annotated[
    str, Strict(), AfterValidator(_printable), BeforeValidator(lambda value: "" if _given(value) is None else value)
]
Parameter: TypeAlias = Annotated[Number | None, BeforeValidator(_given)]


class Parameters(BaseModel):
    """Privacy parameters of one step."""

    model_config = ConfigDict(frozen=True)

    epsilon: Parameter = None
    delta: Parameter = None
    rho: Parameter = None


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


@dataclass(frozen=True, slots=True)
class Misfit:
    """Reason why a deployment has no number: brief for a table, and as a sentence."""

    brief: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """A validated record with its promise.

    Parameters
    ----------
    record : Record
        Fields of the record : slug, name, curators, status, variant, unit, model, ...
    promise : EpsilonPromise or ConcentratedPromise
        By the privacy parameters.
    source : str
        Name of the file.

    Examples
    --------
    >>> record = {"url_slug": "x", "status": "Draft", "tier": 2, "deployment": {"basic": {"name": "Counts of visits"},
    ...     "privacy_loss": {"privacy_unit": "User-day-level", "privacy_parameters": {"epsilon": 1.0}},
    ...     "deployment_model": {"model_name": "Central", "release_type": "Many releases"}}}
    >>> card = Deployment.from_record(record).card(stays=(0.7, 0.99))
    >>> dict(zip(card.stays, [round(value, 2) for value in card.over_time]))[0.9]
    4.5
    """

    record: Record
    promise: Promise
    source: str = ""

    @classmethod
    def load(cls, path: str | Path) -> Deployment:
        """Read a record.

        Parameters
        ----------
        path : str or Path
            A YAML file by the registry's schema, at most 256 KiB. Its scalars are read as text, and numbers from that text.

        Raises
        ------
        MissingFileError
            There is no such file.
        InputError
            It is not YAML, not a record, or has no usable parameters; the message names the field.
        """
        with needing("deployment"):
            import yaml

        source = require_file(path, "a record of a deployment")
        if source.stat().st_size > 256 * 1024:  # the longest record of the registry has 12 thousand bytes
            raise InputError(f"{source}: expected a record of at most 256 KiB, got a larger file")
        try:
            found = yaml.load(source.read_bytes(), Loader=yaml.BaseLoader)
        except (OSError, yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
            raise InputError(f"{source}: expected a record in YAML, got something else: {brief(error)}") from None
        if not isinstance(found, dict):
            kind = "text or an empty file" if isinstance(found, str | None) else f"a {type(found).__name__}"
            raise InputError(f"{source}: expected a record, a mapping of fields, got {kind}")
        return cls.from_record(found, source=str(path))

    @classmethod
    def from_record(cls, record: Mapping[str, Any], *, source: str = "") -> Deployment:
        """Validate a record that was read already.

        Raises
        ------
        InputError
            It is not a record, or has no usable parameters; the message names the field.
        """
        try:
            known = _validated(record)
            return cls(known, _promise(known.parameters, known.variant), Path(source).name)
        except InputError as error:
            raise InputError(f"{source}: {error}" if source else str(error)) from None

    @property
    def name(self) -> str:
        """Name of the deployment, or of its record."""
        return self.record.name or self.record.slug or "(no name)"

    @property
    def stated_unit(self) -> StatedUnit:
        """The privacy unit that the record states.

        Raises
        ------
        InputError
            Its words are not recognised.
        """
        try:
            return StatedUnit.read(self.record.unit)
        except InputError as error:
            raise InputError(f"{self.source or self.name}: deployment.privacy_loss.privacy_unit: {error}") from None

    @property
    def neighbours(self) -> Neighbours | None:
        """Whether the promise is about adding or removing, or about replacing; None if the record states both or neither."""
        return stated_neighbours(self.record.unit_details)

    @property
    def names_unprotected(self) -> bool:
        """Whether the record names quantities that the promise does not cover."""
        nothing = r"(?:none|no unprotected quantities)(?: (?:(?:is|are|were) )?(?:mentioned|stated|listed|known))?\.?"
        return self.record.unprotected != "" and not re.fullmatch(nothing, self.record.unprotected, re.IGNORECASE)

    @property
    def stated_period(self) -> Period | None:
        """Length of a step by the unit or by the details of the release type; None if neither states it."""
        return self.stated_unit.period or period_in(self.record.release_details)

    def card(self, assumptions: Assumptions | None = None, **asked: Any) -> DeploymentCard:
        """Return the leakage over time under the promise, with all assumptions.

        Parameters
        ----------
        assumptions : Assumptions, optional
            What a record does not state. Or its fields by keyword: ``states``, ``stays``, ``horizon``, ``unit``, ...

        Raises
        ------
        InputError, StateError, BudgetError
            The unit is unknown, the states do not fit it, or the range is empty.
        """
        from temporaldp.publish.deployment.card import card_of

        if assumptions is not None and asked:
            raise InputError("expected Assumptions or their fields by keyword, got both")
        return card_of(self, Assumptions(**asked) if assumptions is None else assumptions)

    def misfit(self, assumptions: Assumptions) -> Misfit | None:
        """Return the first reason why there is no number; None if there is one."""
        record, unit, period = self.record, self.stated_unit, self.stated_period
        text = " ".join((record.mechanisms, record.release_details, record.parameter_details)).lower()
        is_central = record.model == "Central"  # else the noise may be drawn on a device, which may reuse it
        unstated = record.release_type != "Many releases" and assumptions.every is None
        step = assumptions.every or period
        released = period_in(record.release_details)
        is_rarer = (
            unit.period is not None and released is not None and STEPS_A_YEAR[released] < STEPS_A_YEAR[unit.period]
        )
        details = " ".join(record.release_details.split())
        stated = f"release_type is {record.release_type!r}" if record.release_type else "release_type is empty"
        stated += f" (release_type_details: {textwrap.shorten(details, 60, placeholder=' ...')!r})" if details else ""
        repeated = f"the unit {unit.text!r} names a step" if unit.period else "release_type_details names a frequency"
        reasons = (
            (
                record.variant not in {"", *PARAMETERS_OF_VARIANT},
                f"{record.variant} is not modelled",
                f"dp_variant.variant_name is {record.variant!r}: the parameters alone do not determine the guarantee, and only "
                "pure, approximate and zero-concentrated differential privacy are modelled.",
            ),
            (
                unstated and record.release_type != "" and period is None,
                "one release",
                f"{stated}: without releases at other steps, a correlation over time adds nothing.",
            ),
            (
                unstated,
                "one release" if record.release_type else "frequency not stated",
                f"{stated}, but {repeated if period else 'no field states a frequency'}: if a person's data are released at "
                f"many steps, give --set deployment.every={period or 'day'}.",
            ),
            (
                re.search(r"memoi[sz]", text) is not None,
                "memoised noise",
                "the record mentions memoised noise: the promise of such a record may be about a stored answer alone. "
                "temporaldp.event_epsilons takes the randomisation that is drawn anew for each report.",
            ),
            (
                not is_central and re.search(r"\bsampl(es|ed|ing)\b", text) is not None,
                "sampling on the device",
                f"model_name is {record.model!r}, and the record mentions sampling on the device: the data that the release "
                "of a step is about are then random, which is not modelled.",
            ),
            (
                unit.period is None and unit.of_people and assumptions.every is None,
                "all steps of a person",
                f"the unit is {unit.text!r}: the promise covers all data of a person together, for every correlation between "
                "steps.",
            ),
            (
                unit.may_repeat(step) and assumptions.contributions is None,
                "number of events not stated",
                f"the unit is {unit.text!r}: the record does not bound the number of units in a {step or 'step'}. Give the "
                "largest number of a person in one step with --set deployment.contributions=N.",
            ),
            (
                step is None,
                "frequency not stated",
                "the record does not state how often it releases, or not one frequency: give --set deployment.every=day.",
            ),
            (
                is_rarer and assumptions.every is None and self.promise.default_delta > 0.0,
                "rarer releases",
                f"the unit {unit.text!r} names a {unit.period}, but release_type_details a {released}: with delta > 0, an "
                f"output about several steps is not covered. Give --set deployment.every={unit.period} if each is about one.",
            ),
            (
                not (is_central or assumptions.fresh_noise) and self.promise.default_delta > 0.0,
                "noise on the device",
                f"model_name is {record.model!r}: noise may be drawn on the device, and the record does not state that it is "
                "drawn anew at every step, as approximate DP needs. Give --set deployment.fresh_noise=true if it is.",
            ),
        )
        return next((Misfit(brief, sentence) for applies, brief, sentence in reasons if applies), None)


def _promise(parameters: Parameters, variant: str) -> Promise:
    """The promise by the parameters; by the variant where there are several."""
    place = "deployment.privacy_loss.privacy_parameters"
    given = parameters.model_dump(exclude_none=True)
    names = ", ".join(given) or "none"
    missing = [name for name in PARAMETERS_OF_VARIANT.get(variant, ()) if name not in given]
    if missing:
        raise InputError(f"expected {place}.{missing[0]}, which {variant} has, got {names}")
    if not {"epsilon", "rho"} & set(given):
        raise InputError(f"expected {place} with epsilon, epsilon and delta, or rho, got {names}")
    try:
        by_rho = variant == "Zero-concentrated DP" or "epsilon" not in given or (not variant and "delta" not in given)
        if "rho" in given and by_rho:  # an epsilon beside it is its conversion, at a delta that is not stated
            return ConcentratedPromise(given["rho"])
        return EpsilonPromise(given["epsilon"], given.get("delta", 0.0))
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _validated(document: Mapping[str, Any]) -> Record:
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
    read = ("basic", "dp_variant", "privacy_loss", "deployment_model", "implementation", "accounting")
    sections = {f"deployment.{name}": content.get(name) for name in read} if isinstance(content, dict) else {}
    for place, section in {"deployment": content, **sections}.items():
        if not isinstance(section, dict) and _given(section) is not None:
            raise InputError(f"expected {place} to be a mapping of fields, got {_shown(section)}")
    try:
        return Record.model_validate(document)
    except ValidationError as error:
        raise InputError(_sentence(error)) from None


def _sentence(error: ValidationError) -> str:
    """The first problem: where it is, what is expected and what was found."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    hints = {
        "privacy_unit": ", such as 'User-day-level'",
        "privacy_parameters": " with epsilon, epsilon and delta, or rho, numbers such as 'epsilon: 0.5'",
    }
    found = "nothing" if first["type"] == "missing" else _shown(first["input"])
    return f"expected {'.'.join(path)}{hints.get(''.join(path[2:3]), '')}, got {found} ({first['msg']})"


def _shown(value: Any) -> str:
    """A value of a record, which may be very large."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 80
    return "nothing" if value in (None, "") else short.repr(value)
