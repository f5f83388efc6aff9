"""Where a correlation comes from, and the privacy loss of learning it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from temporaldp.base.errors import InputError
from temporaldp.base.names import printable
from temporaldp.base.values import ULP, sum_up
from temporaldp.core.correlation.clock import Clock

if TYPE_CHECKING:
    from temporaldp.core.correlation.adversary import Adversary

Kind: TypeAlias = Literal["stated", "matrices", "estimated", "history", "protected", "learnt"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a correlation comes from, as interval matrices, plans, public correlations, ledgers and reports record it.

    Parameters
    ----------
    source : {"stated", "matrices", "estimated", "history", "protected", "learnt"}
        A range stated by the user; given matrices; estimated from traces without privacy: from any, from others than the
        protected ones, or from these themselves; learned from protected traces with differential privacy.
    sentence : str
        Description of the source, as printed in reports; empty where nothing is known.
    spends : tuple of (str, float)
        Identifier and epsilon, in nats, of each spend that the correlation was learned by; both directions of one spend, and
        all plans for them, share it. Empty unless it was learned.
    warning : str or None
        Warning to print before anything that was computed from the correlation is published.
    prior : float
        Dirichlet concentration of an estimate; 0 for maximum likelihood.
    confidence : float
        Confidence of intervals; 0 where one matrix was estimated.
    per_user : bool
        Whether there is one correlation per user.
    models : tuple of str
        Names of the models that the observer may know, where they were estimated together; one adversary for each.
    left_out : tuple of str
        Names of models that a test prefers and the observer is assumed not to know.
    only : {"backward", "forward"} or None
        The one direction of time in which the observer knows the correlation; None for both.
    step : str or None
        Length of a step, where the traces that the correlation was estimated from have times.
    clock : Clock or None
        The clock and the phase of the first step, where they are known.

    Examples
    --------
    >>> Provenance("stated", "Stated: every user stays with at least 70 %.").epsilon
    0.0
    """

    source: Kind
    sentence: str = ""
    spends: tuple[tuple[str, float], ...] = ()
    warning: str | None = None
    prior: float = 0.0
    confidence: float = 0.0
    per_user: bool = False
    models: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    only: Literal["backward", "forward"] | None = None
    step: str | None = None
    clock: Clock | None = None

    def __post_init__(self) -> None:
        if self.source not in get_args(Kind):
            raise InputError(
                f"expected a correlation whose source is one of {', '.join(get_args(Kind))}, got {self.source!r}"
            )
        named = all(name and math.isfinite(epsilon) and epsilon > 0.0 for name, epsilon in self.spends)
        has_none = self.source not in {"learnt", "protected"}  # with what was learned, some may not be private
        if not named or (self.source == "learnt" and not self.spends) or (has_none and self.spends):
            raise InputError(  # without names, two could be taken for one
                f"expected the name of a spend and its epsilon > 0 for a learned correlation, and no spends for others, "
                f"got {self.spends}"
            )
        for name in ("sentence", "warning", "step"):
            printable(getattr(self, name), f"{name} of a correlation")

    def with_directions_of(self, adversaries: Iterable[Adversary]) -> Provenance:
        """Return a copy whose `only` is the direction of time in which the adversaries have matrices, None for both."""
        backward, forward = (
            any(known.matrices for known in sides)
            for sides in zip(*(one.directions for one in adversaries), strict=True)
        )
        return replace(self, only=None if backward == forward else "backward" if backward else "forward")

    def require_steps_within(self, days: float, what: str) -> None:
        """Refuse a correlation of longer steps than those that it is used for: within these, people move less.

        Raises
        ------
        InputError
            A step of the traces that the correlation was estimated from is longer than `days`; `what` states whose these are.
        """
        number, _, unit = (self.step or "").partition(" ")
        length = {"seconds": 1.0 / 86400.0, "months": 28.0}.get(unit, 0.0)
        if length and float(number) * length > days:
            raise InputError(
                f"a step of the history is {self.step}, and {what}: within a shorter step people move less, and more leaks. "
                "Give a history with such steps"
            )

    @property
    def epsilon(self) -> float:
        """Privacy loss of learning the correlation, for all states of a person together, in nats, rounded up."""
        return sum_up(epsilon for _, epsilon in self.spends)

    def in_all(self, alpha: float, delta: float) -> tuple[float, float]:
        """The level of a release at (alpha, delta) together with all that is published about its correlation.

        alpha + epsilon, at a delta up to e^epsilon times as large (Theory, section 12); both rounded up.
        """
        spent = self.epsilon
        return sum_up((alpha, spent)), min(1.0, delta * math.exp(spent) * (1.0 + 4.0 * ULP)) if delta else 0.0


UNSTATED = Provenance("matrices")
"""Of matrices that do not say where they come from."""


def together(each: Iterable[Provenance]) -> Provenance:
    """Combine the provenances of several correlations; the losses of distinct spends add up.

    Where one of them comes from the protected traces, so does the result.
    """
    known = sorted(dict.fromkeys(each), key=lambda one: one.source != "protected") or [UNSTATED]
    learnt = [one for one in known if one.spends]
    warning = " ".join(dict.fromkeys(one.warning for one in known if one.warning)) or None
    if not learnt:
        return replace(known[0], warning=warning)
    protected = [one for one in known if one.source == "protected"]
    return Provenance(
        "protected" if protected else "learnt",
        " ".join(dict.fromkeys(one.sentence for one in protected + learnt)),
        tuple(dict.fromkeys(spend for one in learnt for spend in one.spends)),
        warning,
        only=known[0].only,
        step=known[0].step,
        clock=known[0].clock,
    )
