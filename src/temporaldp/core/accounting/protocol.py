r"""The protocol of accounting methods. Series, suprema, the accountant, plans, the ledger and reports are written over it.

An accounting method follows the leakage about one user's state from step to step. The releases before a step reveal something
about the state there through the backward correlation, its *incoming leakage* from the past; those after it do so through the
forward correlation. Given the state, past, present and future are independent, so that the three add up to the *leakage* of
each step::

    releases  ->  arrivals(backward)  \
                  the step's own part  }->  leakage:  backward, forward and temporal privacy leakage
    releases  ->  arrivals(forward)   /

The methods differ in how they represent a release (`R`) and incoming leakage (`A`):

=================  ==========================================  =========================================================
method             a release                                   incoming leakage
=================  ==========================================  =========================================================
`Exact`            the likelihoods that an output can have     rollouts: the observation that distinguishes two states best
`PaperBound`       its epsilon                                 one number
`MetricPrivacy`    its epsilon times distances of states       one number for each pair of states
`FiniteOutputs`    the likelihoods of its outputs             the vectors of likelihoods that are extreme
`ApproximateDP`    its mechanisms                              one privacy curve, or one for each pair of states
`IntervalBound`    its epsilon                                 one number for each pair of states, for all matrices of a set
=================  ==========================================  =========================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.names import require_same_states
from temporaldp.base.progress import part
from temporaldp.base.values import LARGEST, FloatArray, IntArray, compared_by_value, whole_number
from temporaldp.core.accounting.margins import CONSTANT_MARGIN
from temporaldp.core.accounting.monotone_search import largest_sustainable
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import Matrix
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.core.mechanisms.events import epsilon_of, is_mechanism
from temporaldp.core.mechanisms.likelihood_box import LikelihoodBox
from temporaldp.core.mechanisms.output_table import OutputTable
from temporaldp.core.mechanisms.protocol import is_ours

R = TypeVar("R", bound=Sized)
A = TypeVar("A")

Side: TypeAlias = Literal["backward", "forward"]
Direction: TypeAlias = Literal["backward", "forward", "temporal"]
Planner: TypeAlias = Literal["by recursion", "by derivatives", "by scaling"]
SIDES: tuple[Side, ...] = ("backward", "forward")
DIRECTIONS: tuple[Direction, ...] = ("backward", "forward", "temporal")


@compared_by_value
class Attained(NamedTuple):
    """Leakage that observations attain: lower bounds of BPL, FPL and TPL in nats, shape (T,) of a series, () of suprema."""

    backward: FloatArray
    forward: FloatArray
    temporal: FloatArray


class Evidence:
    """Evidence of an accounting method for the series of one user; `LeakageSeries.evidence`.

    Base class of pairs of states, observations and privacy curves. A subclass overrides what its method can compute.
    """

    __slots__ = ()

    states: tuple[str, ...]
    """The states, in the order of rows and columns of `metric`."""
    compares_pairs: ClassVar[bool] = False
    """Whether `metric` distinguishes pairs of states that leak differently."""

    @property
    def best_pairs(self) -> dict[str, tuple[IntArray, IntArray]]:
        """The two states at each step that observations distinguish best, for each direction; empty where there are none."""
        return {}

    @property
    def attained(self) -> Attained | None:
        """Lower bounds of the leakage of every step, which observations attain; None for upper bounds alone."""
        return None

    def __len__(self) -> int:
        """Number of steps."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} steps, {len(self.states)} states)"

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """Leakage of every ordered pair of states at a step, shape (n, n): row = the state, column = the one compared with."""
        raise NotImplementedError

    def worst_pair(self, step: int, direction: Direction = "temporal") -> tuple[str, str] | None:
        """The pair of states with the largest leakage at a step, state and other state; None where pairs are not kept."""
        each = self.metric(step, direction)
        i, j = np.unravel_index(int(np.argmax(each - np.eye(len(each)))), each.shape)  # two states, even if all is 0
        return self.states[i], self.states[j]

    def witness(self, step: int) -> Any:
        """The observation with the largest leakage about a step; None where none is known."""
        return None

    def window(self, first: int, end: int) -> float | None:
        """Leakage at the series' delta about all states in steps ``first:end`` together; None where budgets add up."""
        return None

    @property
    def user_level(self) -> float | None:
        """Leakage at the series' delta about all states together, for every correlation; None where budgets add up."""
        return None

    @property
    def guesses(self) -> Any:
        """Largest probabilities of right guesses; None without privacy curves."""
        return None

    def gap(self, step: int) -> float | None:
        """Bound of the discretisation error at a step, in nats; None where nothing is discretised, or nothing is known."""
        return None

    def checked_step(self, step: int, direction: Direction = "temporal") -> int:
        """The step, counted from 0; `InputError` where there is no such step or direction."""
        at = whole_number(step, "a step")
        if not -len(self) <= at < len(self):
            raise InputError(f"expected a step from 0 to {len(self) - 1}, got {step}")
        if direction not in DIRECTIONS:
            raise InputError(f"expected direction to be backward, forward or temporal, got {direction!r}")
        return range(len(self))[at]


@dataclass(frozen=True, slots=True, eq=False)
class Leakage:
    """BPL, FPL and TPL, arrays of shape (T,) in nats, with evidence; and the `method`, where another one had to answer."""

    backward: FloatArray
    forward: FloatArray
    temporal: FloatArray
    evidence: Evidence | None = None
    method: Accounting[Any, Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Suprema over all horizons, in nats; ``inf`` where there is none.

    Parameters
    ----------
    backward, forward, temporal : float
    worst : int
        Number of the user with the largest temporal one.
    certified : bool
        Whether finite horizons approach the suprema; for upper bounds, whether they are proved.
    lower : Attained or None
        Numbers that some horizon comes arbitrarily close to, for a single user or the one with the largest.
    evidence : tuple or None
        Under a metric, for a single user: what proves the backward and the forward supremum, shape (n, n), None where there is
        none. Metrics that one more step ``b -> K(b) + e D`` does not raise anywhere, so that no horizon does.
    """

    backward: float
    forward: float
    temporal: float
    worst: int = 0
    certified: bool = True
    lower: Attained | None = None
    evidence: tuple[FloatArray | None, ...] | None = None


class OnlineState(ABC):
    """What an odometer or a filter keeps of the releases so far about one user."""

    def adopted(self, adversary: Adversary) -> Self:
        """The state with another correlation from the next step on; a filter has no reserve then. `InputError` without one."""
        raise InputError("this accounting method does not continue with another correlation: begin another release")

    @abstractmethod
    def extended(self, releases: Sequence[Any]) -> Self:
        """The state after the releases of the next steps, one per step."""

    def saved(self) -> dict[str, Any] | None:
        """The state as JSON values, without the matrices; None where it is every release."""
        return None


class Odometer(OnlineState):
    """Leakage so far about one user, updated after each release."""

    @abstractmethod
    def __copy__(self) -> Self:
        """Return an independent odometer with the same past."""

    @abstractmethod
    def extend(self, releases: Sequence[Any]) -> None:
        """Add the releases of the next steps, one per step."""

    def extended(self, releases: Sequence[Any]) -> Self:
        """The odometer itself, after these releases were added."""
        self.extend(releases)
        return self

    @abstractmethod
    def worst(self) -> tuple[float, int]:
        """The largest TPL of any step so far, in nats, and the first step (from 0) that has it; (0, 0) before the first."""

    @abstractmethod
    def worst_with(self, release: Any) -> tuple[float, int]:
        """The largest TPL and its step if `release` came next; changes nothing."""


class Filter(OnlineState):
    """The budgets that a level still admits for one user; a spend returns another filter."""

    @abstractmethod
    def largest(self, last: bool = False) -> float:
        """The largest epsilon that is admitted next, in nats: a lower bound. `last`: no step follows."""

    @abstractmethod
    def admits(self, epsilon: float, last: bool = False) -> bool:
        """Whether an epsilon may be spent next."""

    @abstractmethod
    def after(self, epsilon: float) -> Self:
        """The filter after one more epsilon, whether that was admitted or not."""

    def extended(self, releases: Sequence[float]) -> Self:
        """The filter after these epsilons."""
        return reduce(type(self).after, releases, self)

    def with_reserve(self, reserve: float) -> tuple[Self, float] | None:
        """After `adopted`: the filter with a reserve, and how much of it is kept; None if the level does not allow it."""
        raise InputError("this accounting method does not continue with another correlation: begin another release")


class Accounting(ABC, Generic[R, A]):
    """An accounting method. Its numbers are exact or upper bounds, and never decrease when a budget increases.

    A subclass is a choice with its own parameters, such as `ApproximateDP(delta=1e-6)`; results carry it as `accounting`.
    """

    name: ClassVar[str]
    """Name of the method in files, messages and JSON."""
    is_exact: ClassVar[bool] = False
    """Whether its numbers are the suprema of the definitions, attained by an observation."""
    takes_sets: ClassVar[bool] = False
    """Whether its numbers hold for every matrix of an `IntervalMatrix`."""
    is_first_order: ClassVar[bool] = True
    """Whether releases before a step and after it are independent given its state, so that Theorem 2 holds for windows."""
    allows_any_level: ClassVar[bool] = False
    """Whether there are filters for every level, with a reserve of 0 if need be."""
    looser: ClassVar[Accounting[Any, Any] | None] = None
    """A method whose larger numbers reports show beside these."""
    plans: ClassVar[Planner] = "by scaling"
    """How budgets of least noise are found: by the paper's recursion, exact derivatives, or scaling those of the other two."""
    remedy: ClassVar[str] = ""
    """What to do where by this method no budget is sustainable, as a sentence."""
    delta: float = 0.0
    """The delta at which leakage is counted; 0 for pure differential privacy."""
    distances: FloatArray | None = None
    """Distances between states by which epsilons are multiplied, shape (n, n); None for plain privacy."""
    by_position: bool = False
    """Whether rows of the distances have no names, so that they are in the order of the states."""
    effort: float = np.inf
    """Seconds after which a search ends with the bounds that it has; of a call, and no part of the method in files."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Accounting):
            return NotImplemented
        if self is other or type(self) is not type(other):
            return self is other
        try:
            return self.document() == other.document()
        except InputError:
            return False

    def __hash__(self) -> int:
        return hash((type(self), self.delta))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({f'delta={self.delta:g}' if self.delta else ''})"

    @property
    def label(self) -> str:
        """Kind of its numbers: exact or an upper bound."""
        return "exact" if self.is_exact else "upper bound"

    @property
    def scope(self) -> str:
        """How, or for what, its numbers hold, after "sustainable at a level"."""
        return f"by the accounting method {self.name!r}"

    @property
    def sentence(self) -> str:
        """Sentence for reports about how leakage was computed."""
        return f"Leakage is an upper bound by the accounting method {self.name!r}."

    def document(self) -> dict[str, Any]:
        """The method and its parameters as JSON values, for `accounting_from`.

        Raises
        ------
        InputError
            The method is not one of this package: it cannot be made again from a file.
        """
        if not is_ours(self):
            raise InputError(
                f"the accounting method {self.name!r} cannot be written to a file, because nothing in the file could make it "
                "again; write the numbers, or give the method a `document`"
            )
        return {"method": self.name}

    def specialised(
        self, users: Sequence[Adversary], releases: Sequence[Any] = (), *, online: bool = False
    ) -> Accounting[Any, Any]:
        """Return the method that accounts for these users: this one, or a specialisation of it.

        Parameters
        ----------
        users : sequence of Adversary
            Adversaries with the same states; all or none of them have interval matrices, or a longer memory.
        releases : sequence
            Releases known in advance; a grid of privacy losses depends on them.
        online : bool
            Whether releases are added one by one.

        Raises
        ------
        InputError
            The method does not support interval matrices.
        """
        if not self.takes_sets and any(user.is_uncertain for user in users):
            raise InputError(
                f"the accounting method {self.name!r} needs matrices that are known exactly, and this adversary has an "
                "IntervalMatrix: use Exact(), which then bounds all matrices of the set, or a method with takes_sets = True"
            )
        return self

    def convert(self, releases: Sequence[Any], users: Sequence[Adversary]) -> R:
        """Numbers or mechanisms, one per step, in the method's own form; `BudgetError` where it cannot account for them."""
        return self.of_epsilons(budgets(releases))

    def of_epsilons(self, epsilons: FloatArray) -> R:
        """Releases with these epsilons, shape (T,), and no other knowledge of them: the epsilons themselves by default."""
        return epsilons  # type: ignore[return-value]

    @property
    def for_epsilons(self) -> Accounting[Any, Any]:
        """The method for releases of which only the epsilon of the two states furthest apart is known."""
        return self

    def release_epsilons(self, releases: R) -> FloatArray:
        """Leakage of each release by itself, shape (T,), in nats: the releases, which are epsilons, by default."""
        return releases  # type: ignore[return-value]

    @abstractmethod
    def arrivals(self, user: Adversary, side: Side, releases: R) -> A:
        """Incoming leakage at each of T steps from the releases before it ("backward") or after it ("forward")."""

    @abstractmethod
    def leakage(self, user: Adversary, past: A, releases: R, future: A) -> Leakage:
        """Leakage of each step from the past, its own release, and the future."""

    @abstractmethod
    def supremum_arrivals(self, user: Adversary, side: Side, release: R) -> A:
        """Incoming leakage over an infinite horizon of one release, which no finite horizon exceeds. `release` has one step."""

    @abstractmethod
    def supremum_leakage(self, user: Adversary, past: A, release: R, future: A) -> Limits:
        """Leakage of past, own release and future over an infinite horizon of one release, in both directions of time."""

    def series(self, users: Sequence[Adversary], releases: R) -> list[Leakage]:
        """The leakage of every step, for each user."""
        found = []
        for k, user in enumerate(users):
            with part(k / len(users), (k + 1) / len(users), "leakage of every step"):
                past, future = self.both_sides(user, releases, self.arrivals)
                found.append(self.leakage(user, past, releases, future))
        return found

    def both_sides(self, user: Adversary, releases: R, arrivals: Callable[[Adversary, Side, R], A]) -> tuple[A, A]:
        """Incoming leakage from the past and from the future, by `arrivals` or `supremum_arrivals`."""
        past, future = (arrivals(user, side, releases) for side in SIDES)
        return past, future

    def limits(self, users: Sequence[Adversary], release: R) -> Limits:
        """Suprema, each the largest over the users."""
        found = []
        for k, user in enumerate(users):
            with part(k / len(users), (k + 1) / len(users), "leakage over an infinite horizon"):
                past, future = self.both_sides(user, release, self.supremum_arrivals)
                found.append(self.supremum_leakage(user, past, release, future))
        return largest_limits(found)

    def sustainable_epsilon(self, users: Sequence[Adversary], alpha: float) -> float:
        """The largest sustainable epsilon at a level alpha, to 1e-8; 0 if not even a billionth of alpha is sustainable."""
        return largest_sustainable(
            lambda epsilon: self.limits(users, self.of_epsilons(np.array([epsilon]))).temporal,
            alpha / float(self.release_epsilons(self.of_epsilons(np.ones(1)))[0]),
            alpha * (1.0 - CONSTANT_MARGIN),
        )

    def plan_margin(self, alpha: float, horizon: int, n_states: int) -> float:
        """Share of alpha that a plan for this number of steps leaves unused, so that the filters, which round, admit it."""
        return CONSTANT_MARGIN

    def require_countable(self, users: Sequence[Adversary], release: Any) -> None:
        """Raise an error for a release that an odometer could not count, before it is spent; by default none."""

    @abstractmethod
    def odometer(self, user: Adversary) -> Odometer:
        """Return the odometer of one user before the first step."""

    @abstractmethod
    def filters(
        self, users: Sequence[Adversary], alpha: float, reserve: float | None, horizon: int | None
    ) -> tuple[Sequence[Filter], float]:
        """Return the filter of each user before the first step, and the reserve that is kept.

        `reserve` is the epsilon that every later step can still spend. None: the largest there is, or 0 with a horizon.

        Raises
        ------
        BudgetError
            alpha does not allow that reserve, or epsilons at a delta cannot be chosen as one goes.
        """

    def require_adoptable(self) -> None:
        """Raise `InputError` unless odometers and filters can go on with another correlation."""
        raise InputError(
            f"expected an accountant by the exact leakage, got one by {self.name!r}: only that one continues with another "
            "correlation; begin another release, whose level counts by itself"
        )

    def restored_odometer(self, state: dict[str, Any], user: Adversary) -> Odometer:
        """Undo `saved`, with the user's matrices of all steps; `ValueError` for other states."""
        raise ValueError(f"the method {self.name!r} keeps no state")

    def restored_filter(self, state: dict[str, Any], user: Adversary, alpha: float, horizon: int | None) -> Filter:
        """Undo `saved`, with the user's matrices of all steps; `ValueError` or `InputError` for other states."""
        raise ValueError(f"the method {self.name!r} keeps no state")


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


def weakest(methods: Sequence[Accounting[Any, Any]]) -> Accounting[Any, Any]:
    """The accounting method of a number that is the largest of several: exact only if all of them are."""
    return next((one for one in methods if not one.is_exact), methods[0])


def require_method(accounting: Any) -> None:
    """Raise `InputError` for anything but an accounting method, such as its name or its class."""
    if not isinstance(accounting, Accounting):
        raise InputError(
            "expected accounting to be an accounting method, such as Exact(), PaperBound() or ApproximateDP(delta=1e-6), got "
            f"{accounting!r}"
        )


Group: TypeAlias = tuple[Accounting[Any, Any], list[int], list[Adversary]]
"""A method, and the numbers and adversaries of the users that it accounts for."""


def grouped(
    accounting: Accounting[Any, Any], users: Sequence[Adversary], releases: Sequence[Any] = (), *, online: bool = False
) -> list[Group]:
    """The methods that account for these users, and the numbers and the users of each."""
    require_method(accounting)
    groups: dict[Any, list[int]] = {}
    for number, user in enumerate(users):
        groups.setdefault((user.states, user.is_uncertain, user.is_lifted), []).append(number)
    if len(groups) > 1:
        parts = (part for one in releases for part in (one if isinstance(one, tuple) else (one,)))
        if accounting.by_position or any(isinstance(one, LikelihoodBox | OutputTable) for one in parts):
            orders: dict[frozenset[str], tuple[str, ...]] = {}
            for states in (user.states for user in users if user.states is not None):
                first = orders.setdefault(frozenset(states), states)
                require_same_states(first, states, what="a user, to which boxes, tables or distances go by position,")
    each = [(numbers, [users[k] for k in numbers]) for numbers in groups.values()]
    return [(accounting.specialised(some, releases, online=online), numbers, some) for numbers, some in each]


def listed(releases: Any, n_steps: int | None) -> Sequence[Any]:
    """Releases as a sequence, one per step; one number or mechanism stands for all of `n_steps` steps.

    Raises
    ------
    BudgetError
        The number of steps is not known, or there are none.
    """
    if isinstance(releases, str | bytes | type | Set | Mapping) or np.ma.is_masked(releases):
        raise BudgetError(f"expected numbers or mechanisms, one per step, got {releases!r}")
    each = list(releases) if isinstance(releases, Sequence | Iterator) else np.asarray(releases)
    if isinstance(each, np.ndarray) and each.ndim == 0:
        if n_steps is None:
            raise BudgetError(
                f"expected one number or mechanism per step, got {releases!r} alone, which does not determine the number of "
                f"steps: write [{releases!r}] * 10 or horizon=10 for 10 steps, or call leakage_supremum for an infinite horizon"
            )
        return [releases] * n_steps
    if not len(each):
        raise BudgetError("expected one number or mechanism per step, and at least one step, got none")
    return each if isinstance(each, Sequence) else each.tolist() if each.dtype == object else each  # type: ignore[return-value]


def budgets(releases: ArrayLike | Sequence[Any]) -> FloatArray:
    """`releases` as a checked, non-empty vector of finite numbers >= 0: pure epsilons of mechanisms, and 0 for None."""
    if isinstance(releases, Sequence):
        where = " at step {} (from 0)"
        known = ((one, where.format(step)) for step, one in enumerate(releases))
        releases = [0.0 if one is None else epsilon_of(one, at) if is_mechanism(one) else one for one, at in known]
    named = isinstance(releases, Sequence) and any(isinstance(one, bool | np.bool_ | str | bytes) for one in releases)
    if named or np.ma.is_masked(releases) or getattr(releases, "dtype", np.dtype(np.float64)).kind in "bSU":
        raise BudgetError(f"expected numbers (epsilons in nats), one per step, got {releases!r:.60}")
    try:
        spent = np.array(releases, dtype=np.float64)
    except (TypeError, ValueError):
        other = next((one for one in releases if not isinstance(one, int | float | np.number)), releases)  # type: ignore[union-attr]
        raise BudgetError(
            f"expected numbers (epsilons in nats) or mechanisms, one per step, got {type(other).__name__}: a LikelihoodBox is "
            "accounted for by Exact() or PaperBound(), and windows or a matrix mechanism over a horizon"
        ) from None
    if spent.ndim != 1 or spent.size == 0:
        raise BudgetError(f"expected epsilons of shape (T,), one per step and at least one, got shape {spent.shape}")
    bad = np.flatnonzero(~((spent >= 0.0) & (spent <= LARGEST)))
    if bad.size:
        raise BudgetError(f"expected epsilons from 0 to {LARGEST:g}, got {spent[bad[0]]} at step {bad[0]} (from 0)")
    return spent


def numbered(matrices: Iterable[Any]) -> tuple[list[Any], IntArray]:
    """Return the distinct matrices, and the index of each matrix among them (-1 for None)."""
    each = list(matrices)
    different = {id(one): one for one in each if one is not None}
    numbers = {id(None): -1} | {key: number for number, key in enumerate(different)}
    return list(different.values()), np.array([numbers[id(one)] for one in each], dtype=np.int64)


def constant_matrix(user: Adversary, side: Side) -> Matrix | None:
    """The one matrix of a direction, None for an unknown correlation; `InputError` where matrices vary with time."""
    correlation: Correlation = getattr(user, side)
    if not correlation.is_constant and correlation.period is None:
        raise InputError(
            f"the supremum needs constant matrices, got {len(correlation.matrices)} that vary with time; nothing determines "
            "later steps. Use temporal_leakage for the steps that the sequence covers, or Periodic if they repeat"
        )
    return correlation.at(0)  # clocks are written out by `temporaldp.core.accounting.periodic`
