"""What a release protects: one state against all releases, or several states of a person together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import whole_number

Protected: TypeAlias = Literal["temporal", "user", "window", "event"]


class Wording(NamedTuple):
    """A guarantee in words: its name, what is protected, and for which observers; these also in a few words, for tables."""

    label: str
    protects: str
    condition: str
    observers: str


WORDINGS = {
    "temporal": Wording(
        "temporal level",
        "the state of a person at any one step, against all releases",
        "observers who know the correlation",
        "who know the correlation",
    ),
    "user": Wording("user level", "all states of a person together", "every correlation", "any"),
    "epochs": Wording(
        "user level within {steps} steps",
        "all states of a person at any {steps} consecutive steps together",
        "every correlation, against the releases of these steps alone",
        "any, by these releases alone",
    ),
    "window": Wording(
        "window of {steps} steps",
        "the states of a person at any {steps} consecutive steps together",
        "any correlation within the window, and none with states outside of it",
        "any, within the window",
    ),
    "event": Wording(
        "event level",
        "the state of a person at one step, against the release of that step alone",
        "observers who know nothing about a person's other states",
        "who know no habits",
    ),
}


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a release protects of one person.

    Parameters
    ----------
    kind : {"temporal", "user", "window", "event"}
        One state against all releases, for given correlations; all states of a person together, for every correlation; those
        of any W consecutive steps against all releases, where states outside of the window reveal nothing about them; or one
        state against the release of its own step alone.
    steps : int, optional
        Length W of the window. With the user level: all states of any W consecutive steps, for every correlation, but against
        the releases of these steps alone, each of which must be about its own step, with noise of its own. Releases of other
        steps can reveal more; `epochs_together` bounds what several times as many reveal. A window has the same noise.

    Examples
    --------
    >>> Guarantee.of("user").wording.condition
    'every correlation'
    """

    kind: Protected = "temporal"
    steps: int | None = None

    def __post_init__(self) -> None:
        has_length: dict[str, set[bool]] = {"user": {False, True}, "window": {True}}  # the others never have
        if self.kind not in get_args(Protected) or (self.steps is not None) not in has_length.get(self.kind, {False}):
            raise InputError(
                f"expected a guarantee temporal, user, user:W, event or window:W, with W a number of steps, got {self}"
            )
        if self.steps is not None:
            whole_number(self.steps, "the window of a guarantee", least=1)

    def __str__(self) -> str:
        return self.kind if self.steps is None else f"{self.kind}:{self.steps}"

    @classmethod
    def of(cls, given: str | Guarantee) -> Guarantee:
        """The guarantee of a text, such as "temporal", "user", "user:365" or "window:7".

        Raises
        ------
        InputError
            It is none of these.
        """
        if isinstance(given, Guarantee):
            return given
        kind, _, steps = str(given).partition(":")
        if steps and not steps.isdecimal():
            raise InputError(f"expected a whole number of steps, such as window:7 or user:365, got {given!r}")
        return cls(kind, int(steps) if steps else None)  # type: ignore[arg-type]

    @property
    def is_temporal(self) -> bool:
        """Whether it holds for given correlations only."""
        return self.kind == "temporal"

    @property
    def is_of_epochs(self) -> bool:
        """Whether it is the user level within a number of steps, against the releases of these steps alone."""
        return self.kind == "user" and self.steps is not None

    @property
    def wording(self) -> Wording:
        """The guarantee in words."""
        return Wording(
            *(text.format(steps=self.steps) for text in WORDINGS["epochs" if self.is_of_epochs else self.kind])
        )

    def width(self, horizon: int | None) -> int:
        """Number of consecutive steps whose states are protected together.

        Raises
        ------
        BudgetError
            It is the user level of a release without an end, which has none.
        """
        if self.kind == "event":
            return 1
        if self.steps is not None:
            return self.steps if horizon is None else min(self.steps, horizon)
        if horizon is None:
            raise BudgetError(
                "the user level of a release without an end is not bounded, because every step adds to it: give a horizon of T "
                "steps, take the temporal level, a window (window:W), or the user level within W steps, against the releases "
                "of these steps alone (user:W)"
            )
        return horizon


TEMPORAL = Guarantee()
