"""A record of the public registry of differentially private deployments, and the promise that it states."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporaldp.base.errors import InputError
from temporaldp.base.extras import needing
from temporaldp.data.files.atomic import brief, require_file
from temporaldp.publish.deployment.frequency import period_in
from temporaldp.publish.deployment.neighbours import Neighbours, stated_neighbours
from temporaldp.publish.deployment.promise import ConcentratedPromise, EpsilonPromise, Promise
from temporaldp.publish.deployment.stated_unit import Period, StatedUnit

if TYPE_CHECKING:
    from temporaldp.publish.deployment.card import DeploymentCard
    from temporaldp.publish.deployment.question import Question
    from temporaldp.publish.deployment.schema import Parameters, Record

LARGEST_FILE = 256 * 1024
"""Bytes; the longest record of the registry has 12 thousand."""

NEEDED = {"Zero-concentrated DP": ("rho",), "Approximate DP": ("epsilon", "delta"), "Pure DP": ("epsilon",)}
"""Variants that are modelled, with their required parameters; a record without a variant needs epsilon or rho."""

NOTHING_UNPROTECTED = re.compile(
    r"(?:none|no unprotected quantities)(?: (?:(?:is|are|were) )?(?:mentioned|stated|listed|known))?\.?", re.IGNORECASE
)
"""The whole of a field that states that the promise covers every quantity."""


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
        Fields of the record (`temporaldp.publish.deployment.schema`): slug, name, curators, status, variant, unit, model, ...
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
        if source.stat().st_size > LARGEST_FILE:
            raise InputError(f"{source}: expected a record of at most {LARGEST_FILE // 1024} KiB, got a larger file")
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
        from temporaldp.publish.deployment.schema import validated

        try:
            known = validated(record)
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
        return self.record.unprotected != "" and NOTHING_UNPROTECTED.fullmatch(self.record.unprotected) is None

    @property
    def is_central(self) -> bool:
        """Whether the curator draws the noise, after the data have arrived; not known of other models and of none."""
        return self.record.model == "Central"

    @property
    def repeats(self) -> bool:
        """Whether the record states repeated releases."""
        return self.record.release_type == "Many releases"

    @property
    def stated_period(self) -> Period | None:
        """Length of a step by the unit or by the details of the release type; None if neither states it."""
        return self.stated_unit.period or period_in(self.record.release_details)

    def card(self, question: Question | None = None, **asked: Any) -> DeploymentCard:
        """Return the leakage over time under the promise, with all assumptions.

        Parameters
        ----------
        question : Question, optional
            What a record does not state. Or its fields by keyword: ``states``, ``stays``, ``horizon``, ``unit``, ...

        Raises
        ------
        InputError, StateError, BudgetError
            The unit is unknown, the states do not fit it, or the range is empty.
        """
        from temporaldp.publish.deployment.card import card_of
        from temporaldp.publish.deployment.question import Question

        if question is not None and asked:
            raise InputError("expected a Question or its fields by keyword, got both")
        return card_of(self, Question(**asked) if question is None else question)

    def noise_is_fresh(self, question: Question) -> bool:
        """Whether the noise of each step is taken to be independent of all other noise: not where a device may reuse it."""
        return question.fresh_noise or self.is_central

    def misfit(self, question: Question) -> Misfit | None:
        """Return the first reason why there is no number; None if there is one."""
        record, unit, period = self.record, self.stated_unit, self.stated_period
        text = " ".join((record.mechanisms, record.release_details, record.parameter_details)).lower()
        unstated = not self.repeats and question.every is None
        step = question.every or period
        details = " ".join(record.release_details.split())
        stated = f"release_type is {record.release_type!r}" if record.release_type else "release_type is empty"
        stated += f" (release_type_details: {textwrap.shorten(details, 60, placeholder=' ...')!r})" if details else ""
        repeated = f"the unit {unit.text!r} names a step" if unit.period else "release_type_details names a frequency"
        reasons = (
            (
                record.variant not in {"", *NEEDED},
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
                not self.is_central and re.search(r"\bsampl(es|ed|ing)\b", text) is not None,
                "sampling on the device",
                f"model_name is {record.model!r}, and the record mentions sampling on the device: the data that the release "
                "of a step is about are then random, which is not modelled.",
            ),
            (
                unit.period is None and unit.of_people and question.every is None,
                "all steps of a person",
                f"the unit is {unit.text!r}: the promise covers all data of a person together, for every correlation between "
                "steps.",
            ),
            (
                unit.may_repeat(step) and question.contributions is None,
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
                not self.noise_is_fresh(question) and self.promise.default_delta > 0.0,
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
    missing = [name for name in NEEDED.get(variant, ()) if name not in given]
    if missing:
        raise InputError(f"expected {place}.{missing[0]}, which {variant} has, got {names}")
    if not {"epsilon", "rho"} & set(given):
        raise InputError(f"expected {place} with epsilon, epsilon and delta, or rho, got {names}")
    try:
        if "rho" in given and (variant == "Zero-concentrated DP" or "epsilon" not in given):
            return ConcentratedPromise(given["rho"])
        return EpsilonPromise(given["epsilon"], given.get("delta", 0.0))
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
