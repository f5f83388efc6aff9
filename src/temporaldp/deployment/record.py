"""A record of the public registry of differentially private deployments, as far as leakage over time depends on it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporaldp.deployment.plain_yaml import read_plain_yaml
from temporaldp.deployment.promise import ApproximatePromise, ConcentratedPromise, Promise, PurePromise
from temporaldp.deployment.stated_unit import Period, StatedUnit, period_in
from temporaldp.errors import InputError

if TYPE_CHECKING:
    from temporaldp.deployment.card import DeploymentCard
    from temporaldp.deployment.question import Question

PARAMETERS = "deployment.privacy_loss.privacy_parameters"

NEEDED = {"Zero-concentrated DP": ("rho",), "Approximate DP": ("epsilon", "delta"), "Pure DP": ("epsilon",)}
"""Parameters of a variant; of any other one, whatever there is."""

NUMBER = r"\s*[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?\s*"

ON_DEVICE = ("Local", "Shuffle", "Federated")
"""Deployment models in which the noise is drawn before the data reach the curator."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a deployment has no number here: in a few words for a table, and in a sentence."""

    brief: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a record states, read and checked: promise, unit, how often, where the noise is drawn.

    Parameters
    ----------
    slug, name : str
    curators : tuple of str
    status : str
        How far the registry has got with the record: "Pending", "Draft", ...
    promise : PurePromise, ApproximatePromise or ConcentratedPromise
        Of the privacy parameters.
    variant : str
        Of differential privacy.
    unit_text : str
        The privacy unit, as the record has it.
    unit_details, parameter_details, release_details, source_details, mechanisms, composition, unprotected : str
        The fields that say more, "" where they are empty.
    release_type : str
        "One release", "Many releases", or "".
    model : str
        "Central", "Local", ..., or "".
    source : str
        Name of the file.

    Examples
    --------
    >>> record = {"url_slug": "x", "status": "Draft", "tier": 2, "deployment": {"basic": {"name": "Counts of visits"},
    ...     "privacy_loss": {"privacy_unit": "User-day-level", "privacy_parameters": {"epsilon": 1.0}},
    ...     "deployment_model": {"model_name": "Central", "release_type": "Many releases"}}}
    >>> card = Deployment.from_record(record).card(stays=(0.7, 0.99))
    >>> dict(zip(card.stays, [round(value, 2) for value in card.lasting]))[0.9]
    4.5
    """

    slug: str
    name: str
    curators: tuple[str, ...]
    status: str
    promise: Promise
    variant: str
    unit_text: str
    unit_details: str = ""
    parameter_details: str = ""
    release_type: str = ""
    release_details: str = ""
    source_details: str = ""
    model: str = ""
    mechanisms: str = ""
    composition: str = ""
    unprotected: str = ""
    source: str = ""

    @classmethod
    def load(cls, path: str | Path) -> Deployment:
        """Read a record.

        Parameters
        ----------
        path : str or Path
            A YAML file by the registry's schema, at most 256 KiB, without tags, anchors and aliases.

        Raises
        ------
        MissingFileError
            There is no such file.
        InputError
            It is no YAML, no record, or has no usable parameters: names the field.
        """
        return cls.from_record(read_plain_yaml(path, "a record of a deployment"), source=str(path))

    @classmethod
    def from_record(cls, record: Mapping[str, Any], *, source: str = "") -> Deployment:
        """Check a record that was read already.

        Raises
        ------
        InputError
            It is no record, or has no usable parameters: names the field.
        """
        try:
            return cls._checked(record, Path(source).name)
        except InputError as error:
            raise InputError(f"{source}: {error}" if source else str(error)) from None

    @classmethod
    def _checked(cls, record: Mapping[str, Any], source: str) -> Deployment:
        if "deployment" not in record:
            schema = "properties" in record and "type" in record
            what = "the registry's schema, which is no record" if schema else f"the fields {_listed(record)}"
            raise InputError(f"expected a record with the field 'deployment', got {what}")
        deployment = _section(record, "deployment", "deployment", needed=True)
        basic = _section(deployment, "basic", "deployment.basic", needed=True)
        loss = _section(deployment, "privacy_loss", "deployment.privacy_loss", needed=True)
        model = _section(deployment, "deployment_model", "deployment.deployment_model")
        variant = _section(deployment, "dp_variant", "deployment.dp_variant")
        how = _section(deployment, "implementation", "deployment.implementation")
        accounting = _section(deployment, "accounting", "deployment.accounting")
        stated = _text(variant, "variant_name", "deployment.dp_variant")
        unit = _text(loss, "privacy_unit", "deployment.privacy_loss")
        if not unit:
            raise InputError("expected deployment.privacy_loss.privacy_unit, such as 'User-day-level', got nothing")
        curators = basic.get("data_curators") or []
        if not (isinstance(curators, list) and all(isinstance(one, str) for one in curators)):
            raise InputError("expected deployment.basic.data_curators to be a list of names")
        place = "deployment.deployment_model"
        return cls(
            slug=_text(record, "url_slug", "the record"),
            name=_text(basic, "name", "deployment.basic") or _text(record, "url_slug", "the record") or "(no name)",
            curators=tuple(curators),
            status=_text(record, "status", "the record"),
            promise=_promise(loss, stated),
            variant=stated,
            unit_text=unit,
            unit_details=_text(loss, "privacy_unit_details", "deployment.privacy_loss"),
            parameter_details=_text(loss, "privacy_parameters_details", "deployment.privacy_loss"),
            release_type=_text(model, "release_type", place),
            release_details=_text(model, "release_type_details", place),
            source_details=_text(model, "data_source_type_details", place),
            model=_text(model, "model_name", place),
            mechanisms=_text(how, "mechanisms", "deployment.implementation"),
            composition=_text(accounting, "composition", "deployment.accounting"),
            unprotected=_text(variant, "unprotected_quantities", "deployment.dp_variant"),
            source=source,
        )

    @property
    def stated_unit(self) -> StatedUnit:
        """The unit that the record names.

        Raises
        ------
        InputError
            It is not known.
        """
        try:
            return StatedUnit.read(self.unit_text)
        except InputError as error:
            raise InputError(f"{self.source or self.name}: deployment.privacy_loss.privacy_unit: {error}") from None

    @property
    def about_replacing(self) -> bool:
        """Whether the record says that its promise is about replacing, rather than adding or removing, the data of a unit."""
        return re.search(r"change-one|modif|replac|bounded neighbo", self.unit_details.lower()) is not None

    @property
    def repeats(self) -> bool:
        """Whether the record says that it releases repeatedly."""
        return self.release_type == "Many releases"

    @property
    def said_period(self) -> Period | None:
        """How often it releases: by the unit, or by the details of the release type; None if neither says it."""
        return self.stated_unit.period or period_in(self.release_details)

    def misfit(self, question: Question) -> Misfit | None:
        """Why there is no number: what the record says, or does not say; None if there is one."""
        return next((reason for reason in self._reasons(question) if reason), None)

    def card(self, question: Question | None = None, **asked: Any) -> DeploymentCard:
        """What the promise of a step is worth over time, with all that was assumed.

        Parameters
        ----------
        question : Question, optional
            What a record cannot say. Or its fields by keyword: ``states``, ``stays``, ``horizon``, ``unit``, ...

        Raises
        ------
        InputError, StateError, BudgetError
            Unknown unit, values that do not fit it, a range that is none.
        """
        from temporaldp.deployment.card import card_of
        from temporaldp.deployment.question import Question

        if question is not None and asked:
            raise InputError("expected a Question or its fields by keyword, got both")
        return card_of(self, Question(**asked) if question is None else question)

    def _reasons(self, question: Question) -> list[Misfit | None]:
        return [
            self._about_variant(),
            self._about_releases(question),
            self._about_kept_noise(),
            self._about_unit(question),
            self._about_fresh_noise(question),
        ]

    def _about_variant(self) -> Misfit | None:
        if self.variant not in {"Custom", "Renyi DP"}:
            return None
        return Misfit(
            f"{self.variant} is not modelled",
            f"dp_variant.variant_name is {self.variant!r}: the parameters alone do not say what is promised, and only pure, "
            "approximate and zero-concentrated differential privacy are modelled.",
        )

    def _about_releases(self, question: Question) -> Misfit | None:
        if self.repeats or question.every is not None:
            return None
        said = f"release_type is {self.release_type!r}" if self.release_type else "release_type says nothing"
        details = f" (release_type_details: {_brief(self.release_details)!r})" if self.release_details else ""
        unit, period = self.stated_unit, self.said_period
        if self.release_type and period is None:
            return Misfit(
                "one release",
                f"{said}{details}: without releases at other steps there is nothing that a correlation over time could add.",
            )
        named = f"the unit {unit.text!r}" if unit.period else "release_type_details"
        repeated = f"{named} speaks of steps" if period else "no field says how often it releases"
        return Misfit(
            "one release" if self.release_type else "how often is not said",
            f"{said}{details}, but {repeated}: if a person's data are released at many steps, say so with "
            f"--set deployment.every="
            f"{period or 'day'}.",
        )

    def _about_unit(self, question: Question) -> Misfit | None:
        unit = self.stated_unit
        if question.every is not None and question.unit is not None:
            return None
        if unit.period is None and unit.of_people and question.every is None:
            return Misfit(
                "all steps of a person",
                f"the unit is {unit.text!r}: the promise is about all data of a person together, and no correlation between "
                "steps changes what it is worth.",
            )
        if not unit.of_people and unit.period is None and question.contributions is None:
            return Misfit(
                "events: how many is not said",
                f"the unit is {unit.text!r}: the record bounds no number of them in a step. How many a person has in one step "
                "at most is said with --set deployment.contributions=N.",
            )
        if self.said_period is None and question.every is None:
            return Misfit(
                "how often is not said",
                "the record does not say how often it releases: say so with --set deployment.every=day.",
            )
        return None

    def _about_kept_noise(self) -> Misfit | None:
        text = " ".join((self.mechanisms, self.release_details, self.parameter_details)).lower()
        if re.search(r"memoi[sz]", text):
            return Misfit(
                "memoised noise",
                "the record speaks of memoised noise: noise that is drawn once and used again makes later releases depend on "
                "earlier ones, which is not modelled.",
            )
        if self.model in ON_DEVICE and re.search(r"\bsampl(es|ed|ing)\b", text):
            return Misfit(
                "sampling on the device",
                f"model_name is {self.model!r}, and the record speaks of sampling on the device: which of a person's data a "
                "step's release is about is then itself random, which is not modelled.",
            )
        return None

    def _about_fresh_noise(self, question: Question) -> Misfit | None:
        if self.model not in ON_DEVICE or question.fresh_noise:
            return None
        return Misfit(
            "noise on the device",
            f"model_name is {self.model!r}: noise is drawn on the device, and the record does not say that it is drawn anew at "
            "every step. Noise that is kept and used again (memoised) is not modelled. If it is fresh, say so with "
            "--fresh-noise.",
        )


def _promise(loss: Mapping[str, Any], variant: str) -> Promise:
    """The parameters, by the variant where there are several."""
    given = loss.get("privacy_parameters")
    if given is None or given == {}:
        raise InputError(f"expected {PARAMETERS} with epsilon, epsilon and delta, or rho, got nothing")
    if not isinstance(given, dict):
        raise InputError(f"expected {PARAMETERS} to be a mapping such as 'epsilon: 1.0', got {_shown(given)}")
    numbers = {name: _number(given[name], name) for name in ("epsilon", "delta", "rho") if given.get(name) is not None}
    lacking = [name for name in NEEDED.get(variant, ()) if name not in numbers]
    if lacking:
        raise InputError(f"expected {PARAMETERS}.{lacking[0]}, which {variant} has, got {_listed(given)}")
    if not {"epsilon", "rho"} & set(numbers):
        raise InputError(f"expected {PARAMETERS} with epsilon, epsilon and delta, or rho, got {_listed(given)}")
    try:
        if "rho" in numbers and (variant == "Zero-concentrated DP" or "epsilon" not in numbers):
            return ConcentratedPromise(numbers["rho"])
        if numbers.get("delta", 0.0) != 0.0:
            return ApproximatePromise(numbers["epsilon"], numbers["delta"])
        return PurePromise(numbers["epsilon"])
    except InputError as error:
        raise InputError(f"{PARAMETERS}: {error}") from None


def _number(value: Any, name: str) -> float:
    """A number; of delta also one that is written as text, which the registry's schema allows."""
    number = math.nan
    if (isinstance(value, int | float) and not isinstance(value, bool)) or (
        name == "delta" and isinstance(value, str) and re.fullmatch(NUMBER, value)
    ):
        number = float(value)
    if not math.isfinite(number):
        raise InputError(f"expected {PARAMETERS}.{name} to be a number, such as {name}: 0.5, got {_shown(value)}")
    return number


def _section(parent: Mapping[str, Any], name: str, place: str, *, needed: bool = False) -> Mapping[str, Any]:
    found = parent.get(name)
    if found is None and not needed:
        return {}
    if not isinstance(found, dict):
        raise InputError(f"expected {place} to be a mapping of fields, got {_shown(found)}")
    return found


def _text(parent: Mapping[str, Any], name: str, place: str) -> str:
    found = parent.get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise InputError(f"expected {place}.{name} to be text, got {_shown(found)}")
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in found).strip()


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _listed(fields: Mapping[str, Any]) -> str:
    names = [str(name)[:40] for name in fields]
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "") if names else "none"


def _brief(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}..."
