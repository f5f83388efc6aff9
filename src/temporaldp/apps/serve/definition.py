"""Definition of a release: the correlation, the level, and the kind of output."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator

from temporaldp.base.errors import InputError
from temporaldp.base.names import listed, printable
from temporaldp.base.values import SMALLEST, refuse
from temporaldp.core.accounting import TemporalAccountant
from temporaldp.core.accounting.methods import accounting_from
from temporaldp.core.correlation import Adversary, IntervalMatrix, Population, TransitionMatrix
from temporaldp.core.correlation.documents import adversary_from
from temporaldp.core.correlation.provenance import UNSTATED
from temporaldp.core.planning import Guarantee, plan_guarantee
from temporaldp.core.planning.every_correlation import same_state
from temporaldp.data.tables.moments import steps_between
from temporaldp.publish.release.chain import canonical
from temporaldp.publish.report.sentences import observers

LARGEST_MATRIX = 64
"""States. The sustainable budget is computed when a release is created, which takes seconds for this many."""

LARGEST_SET = 4
"""States of a matrix that is known up to bounds. Doubled, checking a budget takes minutes."""

MOST_MODELS = 8
"""Models of one release. Each is searched for the sustainable budget when the release is created."""

ShortText = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(lambda text: printable(text, "text"))]
Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
ProbabilityRows = Annotated[
    list[Annotated[list[Probability], Field(min_length=2, max_length=LARGEST_MATRIX, fail_fast=True)]],
    Field(min_length=2, max_length=LARGEST_MATRIX, fail_fast=True),
]
FewProbabilityRows = Annotated[ProbabilityRows, Field(max_length=LARGEST_SET)]


class Strict(BaseModel, extra="forbid", strict=True, frozen=True):
    """Base of strict models: unknown fields are refused, and numbers and text are not converted."""


class MatrixBounds(Strict):
    """A transition matrix whose entries are known up to intervals."""

    lower: FewProbabilityRows = Field(description="The least that each probability may be; row: from, column: to.")
    upper: FewProbabilityRows = Field(description="The most that each may be.")


class Histogram(Strict):
    """Counts of people by state, each with discrete Laplace noise that the service draws."""

    kind: Literal["histogram"]
    n_states: Annotated[int, Field(ge=1, le=100_000)] = Field(description="Number of counts of a step.")


class Elsewhere(Strict):
    """Output that is drawn elsewhere: the service only checks and charges budgets."""

    kind: Literal["elsewhere"]
    description: ShortText = Field(description="Description of the output; part of the definition of the release.")


GivenMatrix = ProbabilityRows | MatrixBounds | None


class Definition(Strict):
    """Parameters of a new release. An omitted direction is unknown to the adversary."""

    name: ShortText | None = Field(
        None, description="Name for people; the service uses the identifier that it returns."
    )
    backward: GivenMatrix = Field(None, description="P(previous state | state), row: the state; or its bounds.")
    forward: GivenMatrix = Field(None, description="P(next state | state), row: the state; or its bounds.")
    states: Annotated[list[ShortText], Field(max_length=LARGEST_MATRIX)] | None = Field(
        None, description="Names of the states."
    )
    models: Annotated[dict[ShortText, dict[str, Any]], Field(min_length=1, max_length=MOST_MODELS)] | None = Field(
        None,
        description="Models of the correlation in place of matrices, by name, any of which an adversary may know: documents "
        "of `Adversary.document()`, also of chains with a longer memory.",
    )
    alpha: Annotated[float, Field(ge=SMALLEST, le=1e6, allow_inf_nan=False)] = Field(
        description="The level, in nats: the largest leakage about what the guarantee protects."
    )
    guarantee: str = Field(
        "temporal",
        pattern=r"^(temporal|user|(user|window):[1-9][0-9]{0,4})$",
        description="What alpha is about: temporal (one state, for this correlation) or, without matrices, user (all states of "
        "a person together, for every correlation; with a horizon), user:W (those of any W consecutive steps, for every "
        "correlation, against the outputs of these steps alone, each about its own step) or window:W (those of any W "
        "consecutive steps, where states outside reveal nothing about them).",
    )
    horizon: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None,
        description="Number of steps, where it is known, whose budgets are planned beforehand: each step gives its own.",
    )
    bound: Literal["exact", "paper"] = Field("exact", description="Accounting method by which the level is enforced.")
    mechanism: Annotated[Histogram | Elsewhere, Field(discriminator="kind")]
    step: str | None = Field(
        None,
        pattern=r"^(0*[1-9][0-9]{0,8}(\.[0-9]{1,6})?)( (seconds|months))?$",
        description="How long one step is: '300 seconds', '1 months', or a number where times are numbers.",
    )

    begins: ShortText | None = Field(
        None, description="Time of the first step, where the matrices of the models vary from step to step."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for matrix in (self.backward, self.forward):
            rows = matrix.lower if isinstance(matrix, MatrixBounds) else matrix
            if rows and isinstance(self.mechanism, Histogram) and self.mechanism.n_states != len(rows):
                raise ValueError(
                    f"expected a histogram of the matrices' {len(rows)} states, got n_states {self.mechanism.n_states}"
                )
        return self

    @property
    def text(self) -> str:
        """Canonical JSON of the definition, as stored."""
        return canonical(self.model_dump(mode="json"))

    @property
    def promise(self) -> str:
        """Terms that determine budgets; releases that differ only in names share the computed reserve."""
        same = {
            "name": None,
            "mechanism": Elsewhere(kind="elsewhere", description="anything"),
            "step": None,
            "begins": None,
        }
        return self.model_copy(update=same).text

    @property
    def together(self) -> int | None:
        """Number of consecutive steps whose states window:W or user:W protects together; None for other guarantees."""
        return Guarantee.of(self.guarantee).steps

    def stated(self) -> dict[str, str | None]:
        """The guarantee, the observers for whom it holds, and a warning where matrices contradict each other."""
        each, kept = self._adversaries(), Guarantee.of(self.guarantee)
        models = f", by any of {listed(list(self.models))}" if self.models else ""
        condition = (
            f"{observers(UNSTATED.with_directions_of(each))}{models}" if kept.is_temporal else kept.wording.condition
        )
        warning = next((one.contradiction for one in each if one.contradiction), None)
        return {"guarantee": self.guarantee, "condition": condition, "warning": warning}

    def require_fitting(self) -> None:
        """Refuse models that do not fit what is published (`InputError`); the terms of a known release fitted then."""
        models = self._adversaries()
        if not self.models:
            return
        n_states = max(len(one.shown.states or ()) for one in models)
        if isinstance(self.mechanism, Histogram) and self.mechanism.n_states != n_states:
            raise InputError(
                f"expected a histogram of the models' {n_states} states, got n_states {self.mechanism.n_states}"
            )
        is_constant = all(known.is_constant for one in models for known in one.directions)
        lengths, begins = {one.n_steps for one in models} - {None}, self.begins or ""
        refuse(
            (
                not is_constant and None in {self.step, self.begins},
                InputError(
                    "expected the length of a step (step) and the time of the first one (begins), as the matrices vary from "
                    "step to step: a time that is left out would count as none, and each has matrices of its own"
                ),
            ),
            (
                not lengths <= {self.horizon},
                InputError(
                    f"expected the models' number of steps as horizon, {', '.join(map(str, lengths))}, got {self.horizon}"
                ),
            ),
            (
                not is_constant and steps_between(self.step or "1", begins, begins) is None,
                InputError(
                    f"expected begins to be a time from which steps of {self.step} can be counted, got {self.begins!r}"
                ),
            ),
        )

    def _adversaries(self) -> tuple[Adversary, ...]:
        return Population.of(self.adversary()).users

    def adversary(self) -> Adversary | dict[str, Adversary]:
        """Adversary of the definition, or one for each model.

        Raises
        ------
        InputError
            The matrices are not admissible, or do not fit one another.
        """
        has_matrices = self.backward is not None or self.forward is not None
        if self.guarantee != "temporal":
            is_known = has_matrices or bool(self.models)
            if is_known or (self.horizon is None) == (self.guarantee == "user"):
                raise InputError(
                    "expected no matrices where a guarantee needs no correlation, a horizon with the guarantee user, and none "
                    "with user:W or window:W"
                )
            return same_state()
        if has_matrices == bool(self.models):
            raise InputError("expected a correlation: a matrix backward or forward, or both; or models")
        if self.models:
            models = {name: _model(name, one) for name, one in self.models.items()}
            found = {one.shown.states for one in models.values()} | ({tuple(self.states)} if self.states else set())
            if len(found) > 1:
                raise InputError(
                    f"expected models of the same states, got {' and '.join(listed(one or ()) for one in found)}"
                )
            return models
        return Adversary(_matrix(self.backward, self.states), _matrix(self.forward, self.states))


def _matrix(given: GivenMatrix, states: list[str] | None) -> Any:
    if isinstance(given, MatrixBounds):
        return IntervalMatrix(given.lower, given.upper, states)
    return None if given is None else TransitionMatrix(given, states)


def _model(name: str, document: dict[str, Any]) -> Adversary:
    """The adversary of a document, who has at most as many states as matrices may have, shown or hidden."""
    try:
        found = adversary_from(document)
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, AttributeError) as error:
        raise InputError(f"expected the model {name!r} to be what `Adversary.document()` returns: {error}") from None
    sizes = [len(matrix.states) for matrix in found.matrices]
    if not sizes or max(sizes) > LARGEST_MATRIX or (found.is_uncertain and max(sizes) > LARGEST_SET):
        raise InputError(
            f"expected the model {name!r} to have matrices of at most {LARGEST_MATRIX} states, hidden ones included, or bounds "
            f"of at most {LARGEST_SET}, got {max(sizes, default=0)}"
        )
    return found


def reserve_of(definition: Definition) -> float:
    """The budget that every step may spend, in nats: computed by one request while others with these terms wait."""
    if definition.together is not None:
        return float(plan_guarantee(definition.guarantee, definition.alpha).epsilons[0])
    return proved(definition.promise, None).reserve


@lru_cache(maxsize=256)
def unspent(promise: str, expected: float | None) -> TemporalAccountant:
    """Return an unused accountant, of which every release charges a copy.

    Parameters
    ----------
    promise : str
        Terms of a definition.
    expected : float or None
        Reserve found when the release was created; it is verified before use.
    """
    definition = Definition.model_validate_json(promise)
    made = TemporalAccountant(
        definition.adversary(),
        alpha=definition.alpha,
        horizon=definition.together or definition.horizon,
        accounting=accounting_from({"method": definition.bound}),
    )
    if expected and made.horizon is None:
        made.expect_reserve(expected)
    return made


def proved(promise: str, expected: float | None) -> TemporalAccountant:
    """Return the accountant with its reserve, which one request computes while others with these terms wait."""
    made = unspent(promise, expected)
    with made.lock:
        _ = made.reserve
    return made
