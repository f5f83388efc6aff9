r"""What every way of accounting offers. Series, suprema, the accountant, plans, the ledger and the report are written over it.

A way of accounting follows what is known about one person's value from step to step. The releases before a step tell the
adversary something about the value there, which *arrives* through the backward correlation; those after it do so through the
forward one. Given the value, past, present and future are independent, so that the three add up to the *leakage* of each step::

    releases  ->  arrivals(backward)  \
                  the step's own part  }->  leakage:  backward, forward and temporal privacy leakage
    releases  ->  arrivals(forward)   /

There are five ways. They differ in what they keep of a release (`R`) and of what arrives (`A`):

==========  ===========================================  ========================================================
way         of a release                                 of what arrives
==========  ===========================================  ========================================================
exact       what an output can say for each value        rollouts: which observation tells two values apart best
paper       its epsilon                                  one number
metric      its epsilon times distances of values        one number for each pair of values
curve       its mechanisms                               a privacy curve, the delta of every epsilon
pair_curve  its mechanisms                               a privacy curve for each pair of values
interval    its epsilon                                  one number for each pair of values, of every matrix of a set
==========  ===========================================  ========================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.monotone_search import largest_lasting
from temporaldp.correlation import Adversary, TransitionMatrix
from temporaldp.correlation.adversary import Correlation, exactly_known
from temporaldp.correlation.periodic import Matrix, PeriodicMatrices
from temporaldp.errors import BudgetError, InputError
from temporaldp.progress import part

FloatArray = NDArray[np.float64]
R = TypeVar("R", bound=Sized)
A = TypeVar("A")

Side: TypeAlias = Literal["backward", "forward"]
Direction: TypeAlias = Literal["backward", "forward", "temporal"]
Bound: TypeAlias = Literal["exact", "paper"]
DeltaBound: TypeAlias = Literal["exact", "curve", "pair_curve"]
AccountingName: TypeAlias = str
"""One of `ACCOUNTINGS`, or how a way of accounting that somebody made calls itself."""

SIDES: tuple[Side, ...] = ("backward", "forward")
DIRECTIONS: tuple[Direction, ...] = ("backward", "forward", "temporal")
ACCOUNTINGS = ("exact", "paper", "metric", "curve", "pair_curve", "interval", "verified")


SPARED = 4e-12
"""Share of alpha that is not spent for ever: the supremum and a long series round in ways of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Leakage:
    """BPL, FPL and TPL about one user, arrays of shape (T,) in nats, and what else the way of accounting can tell of them."""

    backward: FloatArray
    forward: FloatArray
    temporal: FloatArray
    evidence: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Suprema over all horizons, in nats; ``inf`` where there is none.

    Parameters
    ----------
    backward, forward, temporal : float
    worst : int
        Number of the user with the largest temporal one.
    certified : bool
        Whether some horizon comes as close to them as one likes; of upper bounds: whether they are proved.
    evidence
        What else the way of accounting can tell of them, for a single user.
    """

    backward: float
    forward: float
    temporal: float
    worst: int = 0
    certified: bool = True
    evidence: Any = None


class Odometer(Protocol):
    """What has leaked so far about one user, of releases that follow one another."""

    def __copy__(self) -> Self:
        """One of its own, with the same past."""

    def extend(self, releases: Sequence[Any]) -> None:
        """Take note of the releases of the next steps, one a step."""

    def worst(self) -> tuple[float, int]:
        """The largest TPL of any step so far, in nats, and the first step (from 0) that has it; (0, 0) before the first."""

    def worst_with(self, release: Any) -> tuple[float, int]:
        """The same if `release` came next; changes nothing."""


class Filter(Protocol):
    """What a level still allows one user; a spend gives another one."""

    def largest(self, last: bool = False) -> float:
        """The largest epsilon that is admitted next, in nats: a lower bound. `last`: no step follows."""

    def admits(self, epsilon: float, last: bool = False) -> bool:
        """Whether an epsilon may be spent next."""

    def after(self, epsilon: float) -> Self:
        """After one more epsilon, whether it was admitted or not: what is spent is spent."""


class Accounting(ABC, Generic[R, A]):
    """A way of accounting. Numbers are exact or upper bounds, never too low; more budget never lowers any of them."""

    name: ClassVar[AccountingName]
    takes_sets: ClassVar[bool] = False
    """Whether its numbers hold for every matrix of an `IntervalMatrix`, as those of a leakage profile do."""
    delta: float = 0.0

    @abstractmethod
    def of_epsilons(self, epsilons: FloatArray) -> R:
        """Releases that promise these epsilons, shape (T,), and nothing else is known of them."""

    @abstractmethod
    def promised(self, releases: R) -> FloatArray:
        """What each release leaks by itself, shape (T,), in nats."""

    @abstractmethod
    def arrivals(self, user: Adversary, side: Side, releases: R) -> A:
        """What arrives at each of T steps from the releases before it ("backward") or after it ("forward")."""

    @abstractmethod
    def leakage(self, user: Adversary, past: A, releases: R, future: A) -> Leakage:
        """What past, own release and future say at each step."""

    @abstractmethod
    def lasting_arrivals(self, user: Adversary, side: Side, release: R) -> A:
        """What arrives if one release repeats for ever: no horizon's arrival exceeds it. `release` has one step."""

    @abstractmethod
    def lasting_leakage(self, user: Adversary, past: A, release: R, future: A) -> Limits:
        """What past, own release and future say if one release repeats for ever, in both directions of time."""

    def series(self, users: Sequence[Adversary], releases: R) -> list[Leakage]:
        """The leakage of every step, about each user."""
        found = []
        for k, user in enumerate(users):
            with part(k / len(users), (k + 1) / len(users), "leakage of every step"):
                past, future = (self.arrivals(user, side, releases) for side in SIDES)
                found.append(self.leakage(user, past, releases, future))
        return found

    def limits(self, users: Sequence[Adversary], release: R) -> Limits:
        """The suprema: each the largest over the users."""
        found = []
        for k, user in enumerate(users):
            with part(k / len(users), (k + 1) / len(users), "leakage for ever"):
                past, future = (self.lasting_arrivals(user, side, release) for side in SIDES)
                found.append(self.lasting_leakage(user, past, release, future))
        return largest_limits(found)

    def lasting_epsilon(self, users: Sequence[Adversary], alpha: float) -> float:
        """The largest epsilon, to 1e-8, that every step can spend for ever below alpha; 0 if not even a billionth of alpha."""

        def worst(epsilon: float) -> float:
            return self.limits(users, self.of_epsilons(np.array([epsilon]))).temporal

        most = alpha / float(self.promised(self.of_epsilons(np.ones(1)))[0])
        return largest_lasting(worst, most, alpha * (1.0 - SPARED))

    def unspent(self, horizon: int) -> float:
        """Share of alpha that a plan for so many steps leaves, so that the filters, which round, admit it step by step."""
        return SPARED

    def require_countable(self, users: Sequence[Adversary], release: Any) -> None:
        """Refuse what an odometer could not count, before it is spent; here nothing."""

    @abstractmethod
    def odometer(self, user: Adversary) -> Odometer:
        """What has leaked about one user, before the first step."""

    @abstractmethod
    def filters(
        self, users: Sequence[Adversary], alpha: float, reserve: float | None, horizon: int | None
    ) -> tuple[Sequence[Filter], float]:
        """What a level allows each user, before the first step, and the reserve that is kept.

        `reserve` is the epsilon that every later step can still spend. None: the largest there is, or 0 with a horizon.

        Raises
        ------
        BudgetError
            alpha does not allow that reserve, or epsilons at a delta cannot be chosen as one goes.
        """


AnyBound: TypeAlias = Bound | DeltaBound | Accounting[Any, Any]
"""What users give: a name, or a way of accounting of their own."""


def largest_limits(found: Sequence[Limits]) -> Limits:
    """The largest over users."""
    if len(found) == 1:
        return found[0]
    worst = max(range(len(found)), key=lambda k: found[k].temporal)
    return Limits(
        max(limits.backward for limits in found),
        max(limits.forward for limits in found),
        found[worst].temporal,
        worst,
        all(limits.certified for limits in found),
    )


def refused_reserve(alpha: float, reserve: float) -> BudgetError:
    """Why a reserve cannot be kept."""
    return BudgetError(
        f"expected a reserve that alpha = {alpha:g} allows at every step for ever, got {reserve!r}; ask "
        "`sustainable_budget` for the largest, or leave it out"
    )


def checked_bound(bound: str) -> Bound:
    """The name of a way of accounting that can be chosen where a release is given by its epsilon."""
    if bound not in {"exact", "paper"}:
        raise InputError(f"expected bound to be 'exact' or 'paper', got {bound!r}")
    return "exact" if bound == "exact" else "paper"


def checked_delta_bound(bound: str) -> DeltaBound:
    """The name of a way of accounting at a delta: "exact" is the default, the tightest that is affordable."""
    if bound == "exact":
        return "exact"
    if bound in {"curve", "pair_curve"}:
        return "curve" if bound == "curve" else "pair_curve"
    raise InputError(
        "with a delta leakage is bounded by privacy curves: expected bound to be left out, 'curve' (one for all pairs of "
        f"values) or 'pair_curve' (one for each), got {bound!r}"
    )


def checked_accounting(bound: str) -> AccountingName:
    """The name of a way of accounting, as a file says it."""
    if bound in ACCOUNTINGS:
        return bound
    raise InputError(f"expected bound to be one of {', '.join(map(repr, ACCOUNTINGS))}, got {bound!r}")


def weakest(names: Sequence[AccountingName]) -> AccountingName:
    """How a number is accounted for that is the largest of some which are accounted for in these ways."""
    return next((name for name in names if name != "exact"), "exact")


def require_lasting(user: Adversary, side: Side) -> None:
    """Refuse matrices for a number of steps only, by `InputError`."""
    correlation: Correlation = getattr(user, side)
    if isinstance(correlation, tuple):
        raise InputError(
            f"the supremum needs constant matrices, got a sequence of {len(correlation)}; nothing is known of later steps. "
            "Use temporal_leakage for the steps that the sequence covers, or PeriodicMatrices if they come again"
        )


def constant_matrix(user: Adversary, side: Side) -> Matrix | None:
    """The one matrix of a direction, None for an unknown correlation; `InputError` where matrices vary with time."""
    require_lasting(user, side)
    correlation: Correlation = getattr(user, side)
    assert not isinstance(correlation, tuple)
    assert not isinstance(correlation, PeriodicMatrices)  # `temporaldp.accounting.periodic` writes clocks out
    return correlation


def constant_known_matrix(user: Adversary, side: Side) -> TransitionMatrix | None:
    """The one matrix of a direction, or None; `InputError` where it varies with time or is known by intervals only."""
    matrix = constant_matrix(user, side)
    return None if matrix is None else exactly_known(matrix)
