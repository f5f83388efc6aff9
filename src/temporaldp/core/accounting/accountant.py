"""The online accountant: the leakage so far, and the budgets that are still admitted.

It keeps the users, the method and the budgets so far. Odometers and filters follow from these (`OnlineStates.after`): they are
computed on request, so that a ledger of many steps opens at once, and brought up to date with every later one.
"""

from __future__ import annotations

import hashlib
import math
import operator
import threading
from collections.abc import Callable, Mapping, Sequence, Set
from copy import copy
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from temporaldp.base.display import bound, number, spread, summary
from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import (
    LARGEST,
    FloatArray,
    exact_sum,
    is_at_most,
    plural,
    positive,
    read_only,
    real_number,
    sum_up,
    whole_number,
)
from temporaldp.core.accounting import accounting_blocks
from temporaldp.core.accounting.adoption import Adoption, KeptAdoption, continued
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.online_states import MOST_SHOWN, Filters, OnlineStates, filters_at_start, refusal
from temporaldp.core.accounting.protocol import (
    Accounting,
    Filter,
    Group,
    Odometer,
    grouped,
    listed,
    require_method,
    weakest,
)
from temporaldp.core.accounting.sequence import without_shared
from temporaldp.core.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.core.correlation import Adversaries, Population
from temporaldp.core.mechanisms.distances import require_no_nearer
from temporaldp.core.mechanisms.events import epsilon_of, is_mechanism, release_from

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ReadBudgets: TypeAlias = Callable[[], Sequence[float]]
"""Returns what the steps before a saved state spent."""


class TemporalAccountant:
    """Accountant of temporal privacy leakage while budgets are chosen one by one.

    Without alpha an odometer: it admits everything and computes the leakage so far. With alpha a filter: it admits a budget
    only if every step so far, this one and all later ones stay at or below alpha, whatever is chosen later and however long it
    goes on; anything else is refused and changes nothing. Budgets may depend on what was published before: pure differential
    privacy holds output by output (Theory, section 11).

    Under approximate DP it is an odometer of mechanisms, and its numbers are epsilons at that delta. Mechanisms may then not
    depend on earlier outputs, so that there is no filter.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        Several: every user is accounted for, and the results are those of the worst.
    alpha : float, > 0, optional
        Level to satisfy, in nats, under replacement of one person's state.
    horizon : int, optional
        Number of steps T, if known; implied by matrices that vary with time. After the last step no budget need remain.
    reserve : float, >= 0, optional
        Budget that stays admissible at every later step, in nats. Default: without a horizon the largest (0 where no positive
        budget is sustainable); with a horizon 0: follow a plan (`replan`), or early steps can use up the level. Beside matrices
        that vary with time it is 0.
    accounting : Accounting
        As for `temporal_leakage`. `ApproximateDP` accounts for mechanisms, by one privacy curve on the grid of the first one.

    Raises
    ------
    BudgetError
        alpha, horizon or reserve are not admissible, or alpha is given under approximate DP.
    InputError
        A method that does not apply to these matrices.

    Notes
    -----
    The time of a spend, a check or `remaining` does not grow with the number of steps: only the part of the past that the
    correlation remembers is used. Threads may share an accountant.

    As a context manager, it is charged by every release of this package inside the block, in the same thread or task
    (`release_snapshots`, `release_histograms`, new steps of a `ContinualRelease`, and a mechanism of the package that is called
    directly: one step per call), before noise is drawn. In nested blocks all accountants are charged, such as the filter of a
    day and the odometer of a lifetime.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> accountant = TemporalAccountant(Adversary(matrix, matrix), alpha=1.0)
    >>> for _ in range(3):
    ...     accountant = accountant.spend(0.2)
    >>> round(accountant.total(), 4), round(accountant.remaining(), 4)
    (0.4395, 0.3973)
    >>> accountant.spend(0.9)
    Traceback (most recent call last):
    ...
    temporaldp.base.errors.LeakageBudgetError: ...
    >>> len(accountant)
    3

    >>> from temporaldp import ApproximateDP, GaussianNoise
    >>> odometer = TemporalAccountant(Adversary(matrix, matrix), accounting=ApproximateDP(delta=1e-6))
    >>> for _ in range(3):
    ...     _ = odometer.spend(GaussianNoise(10.0, sensitivity=1.0))
    ...     print(len(odometer), round(odometer.total(), 3))
    1 0.397
    2 0.467
    3 0.53
    """

    population: Population
    """All users, after the last adoption with a line for each past that may be theirs."""
    alpha: float | None
    """The level that is satisfied at every step, in nats; None for an odometer."""
    horizon: int | None
    """Number of steps T; None if it is unknown."""
    asked_reserve: float | None
    """The reserve that was asked for, in nats; None for the largest."""
    asked_accounting: Accounting[Any, Any]
    """The method that was asked for, which chooses `accounting` for the users."""

    def __init__(
        self,
        adversary: Adversaries,
        alpha: float | None = None,
        *,
        accounting: Accounting[Any, Any] = EXACT,
        horizon: int | None = None,
        reserve: float | None = None,
    ) -> None:
        require_method(accounting)
        level = None if alpha is None else positive(alpha, "alpha")
        population = Population.of(adversary)
        known = None if horizon is None else whole_number(horizon, "horizon", least=1, error=BudgetError)
        steps = population.n_steps if known is None else known
        # Exact leakage is counted over clocks; another correlation that varies needs a number of steps
        counted = all(one.is_constant or one.period is not None for user in population.users for one in user.directions)
        if steps is not None or level is not None or not (accounting.is_exact and counted):
            population = population.counted_over(steps)
        self.lock = threading.RLock()
        self.population = self._first = population
        self.alpha, self.horizon, self.asked_reserve = level, steps, _checked_reserve(reserve, level)
        if self.asked_reserve and not population.is_constant:
            raise BudgetError(
                "a reserve needs one matrix for each direction, but these vary with time: leave it out, and follow a plan "
                "(plan_budget, replan)"
            )
        self.asked_accounting, self._delta = accounting, accounting.delta
        self._methods: list[Group] | None = None
        self._spent: list[Any] = []
        self._total: tuple[float, ...] = ()  # of all budgets, without rounding
        self._n_unread: int = 0
        self._read: ReadBudgets = tuple
        self._end: int | None = None
        self._adoptions: tuple[Adoption, ...] = ()
        self._timelines = population.users
        self._expected_reserve: float | None = None
        self._n_reserved: int | None = 0
        self._known_filters: Filters | None = None
        self._known_odometers: OnlineStates[Odometer] | None = None
        self._groups()  # refuses matrices that the method cannot account for
        if reserve is not None or steps is not None or self._delta or not accounting.allows_any_level:
            # Refuses what cannot be satisfied. Otherwise the largest reserve is computed when it is needed.
            self._last_filters()

    def __len__(self) -> int:
        return len(self._spent)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same adversaries, level and method, and have spent the same."""
        if not isinstance(other, TemporalAccountant):
            return NotImplemented
        return self is other or self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]  # what was spent changes

    def _content(self) -> tuple[Any, ...]:
        with self.lock:
            adoptions = tuple((one.step, tuple(one.lines), one.reserve) for one in self._adoptions)
            asked = self.asked_accounting, self.alpha, self.horizon, self.asked_reserve, self._first
            return (*asked, adoptions, tuple(self._all_spent()), self._end)

    def __copy__(self) -> Self:
        """An accountant of its own with the same past: what changes when something is spent is copied."""
        made = type(self).__new__(type(self))
        with self.lock:
            made.__dict__.update(self.__dict__)
            made._spent, made._known_odometers = list(self._spent), copy(self._known_odometers)
        made.lock = threading.RLock()
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Whole but for the lock: a copy in another process cannot read the budgets before a saved state."""
        with self.lock:
            whole = {"_spent": list(self._all_spent()), "_n_unread": 0, "_read": tuple, "lock": None}
            return copy(self).__dict__ | whole

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"lock": threading.RLock()})

    def __repr__(self) -> str:
        kind = "odometer" if self.alpha is None else f"alpha = {bound(self.alpha)}"
        kind += f", delta = {self._delta:g}" if self._delta else ""
        steps = plural(len(self), "step") + (f" of {self.horizon}" if self.horizon else "")
        with self.lock:
            total, time, user = self._worst()
        where = f", worst {bound(total)} nats at step {time}" + (f" for {user!r}" if user is not None else "")
        return f"TemporalAccountant({kind}, {steps}{where if len(self) else ''})"

    def plot(self, *, times: Sequence[object] | None = None, ax: Axes | None = None) -> Any:
        """Draw the leakage so far, and the level (needs Matplotlib); arguments and result as of `LeakageSeries.plot`."""
        return self.leakage().plot(times=times, alpha=self.alpha, ax=ax)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        shown: dict[str, object] = {"steps": f"{len(self)} of {self.horizon}" if self.horizon else len(self)}
        if len(self):
            method, spent = self.accounting, self.spent
            each = spent if self._delta else method.release_epsilons(method.of_epsilons(spent))
            shown["spent at each step"] = spread(each, up=True)
            shown["largest leakage so far"] = bound(self.total())
        if self.alpha is not None:
            shown["level"] = f"{self.alpha:g}"
            shown["kept for each later step"] = number(self.reserve, down=True)
        note = f"accounted: {weakest(self.methods).label}" + (f"; at delta {self._delta:g}" if self._delta else "")
        return summary("Temporal privacy accountant, in nats", shown, note)

    @property
    def accounting(self) -> Accounting[Any, Any]:
        """The method by which leakage is counted."""
        return self._groups()[0][0]

    @property
    def methods(self) -> tuple[Accounting[Any, Any], ...]:
        """The methods by which leakage is counted, where users differ in what is known of their matrices."""
        return tuple(method for method, *_ in self._groups())

    @property
    def reserve(self) -> float:
        """The budget that every later step can still spend, in nats, if only admitted budgets are spent; 0 for none."""
        with self.lock:
            known = self._last_filters()
            return 0.0 if known is None else self._adoptions[-1].reserve if self._adoptions else known.reserve

    @property
    def spent(self) -> FloatArray:
        """Budget of each step, in nats: a read-only copy, shape (T,). At a delta, the epsilon of each release by itself."""
        with self.lock:
            known = tuple(self._all_spent())
        return read_only(self.accounting.release_epsilons(known) if self._delta else known)

    @property
    def n_adopted(self) -> int:
        """Number of adoptions so far."""
        return len(self._adoptions)

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The filter of each user after all budgets so far; empty for an odometer."""
        with self.lock:
            known = self._filters()
            return () if known is None else known.each

    def total(self, following: Any = None) -> float:
        """The largest temporal privacy leakage of any step so far, in nats, an upper bound; 0 before the first step.

        Parameters
        ----------
        following : float or mechanism, optional
            Release of the next step: the total includes it. Nothing is spent.

        Raises
        ------
        BudgetError
            `following` is given, and all T steps are over.
        """
        with self.lock:
            if following is None:
                return self._worst()[0]
            self._require_steps(1)
            release = self._counted(following)
            return min(max(one.worst_with(release)[0] for one in self._odometers(release)), self._most(release))

    def leakage(self, releases: Any = None) -> LeakageSeries:
        """Backward, forward and temporal leakage of every step so far, for every user.

        Parameters
        ----------
        releases : sequence, optional
            The leakage of these releases, one per step from the first step on, in place of those that were spent.

        Raises
        ------
        BudgetError
            Nothing was spent yet.
        """
        with self.lock:
            if releases is not None:
                asked = self._listed(releases if isinstance(releases, np.ndarray) else listed(releases, None))
            elif len(self):
                asked = list(self._all_spent())
            else:
                raise BudgetError("expected at least one step that was spent, got none: there is no leakage yet")
            population = self.adversaries_until(len(asked))
        return temporal_leakage(population, asked, accounting=self.asked_accounting)

    def admits(self, releases: Any, *, last: bool = False) -> bool:
        """Whether releases are admitted at the next steps; parameters as for `spend`. Changes nothing.

        Raises
        ------
        BudgetError
            A release is neither a number >= 0 nor a mechanism that can be counted.
        """
        with self.lock:
            asked = self._listed(releases)
            if self._is_over or (self.horizon is not None and len(self) + len(asked) > self.horizon):
                return False
            return self._refused(asked, last) is None

    def check(self, releases: Any, *, last: bool = False) -> None:
        """Raise the error that `spend` would raise; parameters as for `spend`. Changes nothing."""
        with self.lock:
            self._require(self._listed(releases), last)

    def spend(self, releases: Any, *, last: bool = False, enforce: bool = True) -> Self:
        """Spend releases at the next steps, one each and in this order: all of them, or none.

        Parameters
        ----------
        releases : float >= 0, mechanism, event of dp-accounting, or list or array of them
            Privacy loss of the next release by itself (replacement of one state), in nats; 0 for a step without a release. At a
            delta also a mechanism, or a tuple of several that are published at one step. A list has one entry per step. Noise
            of a dp-accounting event is relative to the largest contribution of one user; replacing a state removes one
            contribution and adds another, which moves a result twice as far.
        last : bool
            Whether no step follows, so that the reserve may be used.
        enforce : bool
            False for budgets that were spent already, as by another program: they are counted even above alpha. A filter then
            admits what still satisfies alpha, which may be nothing.

        Returns
        -------
        TemporalAccountant
            The accountant itself, so that calls can be chained.

        Raises
        ------
        LeakageBudgetError
            The leakage of some step could exceed alpha. Its fields contain the step, the leakage and what would be admitted.
        BudgetError
            A release is not a number >= 0, or all T steps are over.
        InputError
            A release is not a mechanism or an event that can be counted.
        """
        with self.lock:
            asked = self._listed(releases)
            if enforce:
                self._require(asked, last)
            else:
                self._require_steps(len(asked))
            self._end = len(self) + len(asked) if last else None
            self._spent += asked
            if not self._delta:
                self._total = exact_sum([*self._total, *asked])
            # Steps by which filters may lag behind what was spent and still are brought up to date with every spend; if they
            # lag further, as after a ledger was read, they wait until they are needed
            if self._known_filters is not None and len(self) - self._known_filters.n_steps <= 64:
                self._filters()
        return self

    def remaining(self, *, last: bool = False) -> float:
        """Largest epsilon that is admitted at the next step, in nats; a lower bound.

        inf for an odometer, 0 once the last step is over.

        Nearly tight, except for budgets that use the level up to its last digits at many consecutive steps (planned budgets do
        not): there the directed rounding accumulates.

        Parameters
        ----------
        last : bool
            Whether no step follows, so that the reserve may be used.
        """
        with self.lock:
            if self._is_over or len(self) == self.horizon:
                return 0.0
            allowed = self._filters()
            if allowed is None:
                return math.inf
            return max(allowed.largest(last), self._left(self._total) if allowed.is_final(last) else 0.0)

    def adopt(self, adversary: Adversaries, *, both: bool = False) -> Self:
        """Account exactly with other matrices from the next step on; the steps so far keep theirs (Theory, section 17).

        The reserve is then the largest that the level allows after what was spent, up to the one that was asked for.

        Parameters
        ----------
        adversary : Adversary, or an iterable or mapping of them
            The correlations from the next step on. A new name may be any user; users who are not named keep the old matrices.
        both : bool
            Satisfy the level whether the correlation has changed or not.

        Raises
        ------
        InputError
            The accounting method is not exact, there is a horizon, or the matrices do not fit. Nothing is changed.
        """
        now = Population.of(adversary)
        with self.lock:
            self._adopt(now, both=both)
        return self

    def adopt_kept(self, adoption: KeptAdoption) -> Self:
        """Take over an adoption whose reserve was found when it was made, as a ledger has it, without another check."""
        with self.lock:
            self._adopt(Population.of(adoption.adversary), both=adoption.both, reserve=adoption.reserve)
        return self

    def adversaries_until(self, n_steps: int) -> Population:
        """All users, with their matrices of this number of steps, including those before an adoption."""
        return Population(tuple(one.between(0, n_steps) for one in self._timelines), self.population.names)

    def expect_reserve(self, reserve: float) -> None:
        """Try the reserve of an earlier accountant of the same release first; `BudgetError` if it is above the level."""
        if not (self.alpha is not None and 0.0 < reserve <= self.alpha):
            raise BudgetError(f"expected a reserve up to alpha = {self.alpha}, got {reserve!r}")
        self._expected_reserve = reserve

    def kept_state(self) -> dict[str, Any] | None:
        """State from which one of the same release can `resume`, as JSON values; None where all budgets are needed."""
        with self.lock:
            if self._delta or self._is_over or len(self) == self.horizon:
                return None
            allowed = self._filters()
            filters = None if allowed is None else [one.saved() for one in allowed.each]
            odometers = [] if None in (filters or ()) else [one.saved() for one in self._odometers()]
            if not odometers or None in odometers:
                return None
            return {
                "release": self._identity,
                "n_steps": len(self),
                "total": list(self._total),
                "horizon": self.horizon,
                "n_adopted": self.n_adopted,
                "reserved": self._are_reserved([]),
                "reserve": None if allowed is None else allowed.reserve,
                "odometers": odometers,
                "filters": filters,
            }

    def resume(self, state: dict[str, Any], adopted: Sequence[KeptAdoption], read: ReadBudgets) -> None:
        """Continue from a saved state; nothing is changed by an `InputError`.

        Parameters
        ----------
        state : dict
            As `kept_state` of an accountant of the same release returned it.
        adopted : sequence of KeptAdoption
            The adoptions before it.
        read : callable
            Returns the budgets of the steps before it; called only if they are needed.
        """
        if len(self):
            raise InputError(f"expected an accountant that has spent nothing yet, got one with {len(self)} steps")
        trial = copy(self)
        try:
            trial._restore(state, adopted, read)
        except (KeyError, TypeError, ValueError, AttributeError, AssertionError, IndexError) as error:
            raise InputError(f"expected the kept state of an accountant like this one: {error}") from error
        with self.lock:
            self.__dict__.update(trial.__dict__ | {"lock": self.lock})

    def __enter__(self) -> Self:
        accounting_blocks.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep what was spent, also after an error: noise may have been observed."""
        accounting_blocks.end(self)

    @cached_property
    def _identity(self) -> str:
        """What a kept state must agree with: the users before any adoption, in their order, the level and the method."""
        method, users = self.asked_accounting, self._first.users
        asked = method.name, None if method.distances is None else np.asarray(method.distances).tolist()
        whole = [*asked, self.alpha, self.asked_reserve, *(user.digest() for user in users)]
        return hashlib.sha256(repr(whole).encode("utf-8")).hexdigest()

    def _all_spent(self) -> list[Any]:
        """Budgets of all steps so far; those before a saved state are read when they are first needed."""
        if self._n_unread:
            before = list(self._read())[: self._n_unread]
            if len(before) != self._n_unread:
                raise IndexError(f"expected what {self._n_unread} steps spent, got {len(before)}")
            self._spent[: self._n_unread], self._n_unread = before, 0
        return self._spent

    def _spent_from(self, step: int) -> list[Any]:
        """The budgets of all steps, of which those before `step` may be missing."""
        return self._spent if step >= self._n_unread else self._all_spent()

    @property
    def _is_over(self) -> bool:
        """Whether a step was declared the last one."""
        return self._end is not None and len(self) >= self._end

    def _groups(self, following: Any = None) -> list[Group]:
        """Return the accounting methods, with the users of each.

        Under approximate DP the grid depends on the first release: `following`, if nothing was spent yet. The result is
        then not stored.
        """
        if self._methods is not None:
            return self._methods
        first = [*self._spent[:1], following][:1] if self._delta else []
        found = grouped(self.asked_accounting, self.population.users, first, online=True)
        if self._spent or not self._delta:
            self._methods = found
        return found

    def _first_groups(self, following: Any = None) -> list[Group]:
        """The accounting methods of the users before any adoption."""
        if self._adoptions:
            return grouped(self.asked_accounting, self._first.users, online=True)
        return self._groups(following)

    def _odometers(self, following: Any = None) -> tuple[Odometer, ...]:
        """Each user's odometer after all budgets. Under approximate DP, `following` determines the first grid."""
        # Taken out while they change: after an interrupt they are computed from the first step on.
        known, self._known_odometers = self._known_odometers, None
        if known is None:
            made = {
                number: method.odometer(user)
                for method, numbers, users in self._first_groups(following)
                for number, user in zip(numbers, users, strict=True)
            }
            known = OnlineStates(tuple(made[k] for k in range(len(made))))
        counted = known.after(self._spent_from(known.n_steps), self._adoptions)
        if self._spent or not self._delta:
            self._known_odometers = counted
        return counted.each

    def _last_filters(self) -> Filters | None:
        """Filters of the last request, computed on the first; None for an odometer."""
        if self._known_filters is None and self.alpha is not None:
            self._known_filters = filters_at_start(
                self._first_groups(), self.alpha, self.horizon, self.asked_reserve, self._expected_reserve
            )
        return self._known_filters

    def _filters(self) -> Filters | None:
        """Filters after all budgets; None for an odometer."""
        known = self._last_filters()
        self._known_filters = None if known is None else known.after(self._spent_from(known.n_steps), self._adoptions)
        return self._known_filters

    def _worst(self) -> tuple[float, int, str | None]:
        """The largest leakage so far, in nats, its step, and its user; 0 at step 0 before the first one."""
        if not self._spent:
            return 0.0, 0, None
        each = zip(self._odometers(), self.population.names, strict=True)
        level, step, name = max(((*odometer.worst(), name) for odometer, name in each), key=operator.itemgetter(0))
        return min(level, self._most()), step, name

    def _listed(self, releases: Any) -> list[Any]:
        """Releases of the next steps, one each, in the form that is counted: a number, or mechanisms under approximate DP."""
        releases = without_shared(releases, self.asked_accounting, self.population.users)
        several = isinstance(releases, list | np.ndarray | Set | Mapping)
        # Several mechanisms are one step, several numbers as many steps
        several = several or (isinstance(releases, tuple) and not self._delta and not any(map(is_mechanism, releases)))
        each = list(listed(releases, None)) if several else [releases]
        return [self._counted(one) for one in each]

    def _counted(self, given: Any) -> Any:
        """A release as it is counted: a number, or at a delta mechanisms; `BudgetError` or `InputError` for anything else."""
        if not self._delta:
            return _checked_budget(given, self.asked_accounting)
        release = release_from(given)
        for method, _, users in self._groups(release):
            method.require_countable(users, release)
        return release

    def _require_steps(self, n_steps: int) -> None:
        """Raise `BudgetError` unless `n_steps` further steps are left."""
        if self._is_over:
            raise BudgetError(f"step {len(self) - 1} was declared the last and used the reserve of later steps")
        left = n_steps if self.horizon is None else self.horizon - len(self)
        if left == 0:
            raise BudgetError(f"all {self.horizon} steps of the horizon are over; no step may follow")
        if left < n_steps:
            raise BudgetError(f"{n_steps} budgets, but only {left} of the horizon's {self.horizon} steps are left")

    def _require(self, releases: list[Any], last: bool) -> None:
        """Raise `LeakageBudgetError` or `BudgetError` unless these releases are admitted at the next steps."""
        self._require_steps(len(releases))
        refused = self._refused(releases, last)
        if refused is None:
            return
        step, number, before = refused
        method = next(method for method, numbers, _ in self._groups() if number in numbers)
        user, name = self.population.users[number], self.population.names[number]
        if self._adoptions:
            user = self._timelines[number].between(0, len(self) + step + MOST_SHOWN)
        spent, final = [*self._all_spent(), *releases[:step]], last and step == len(releases) - 1
        left = self._left(exact_sum([*self._total, *releases[:step]]))
        raise refusal(before, method, user, name, spent, releases[step], last=final, left=left)

    def _refused(self, releases: list[Any], last: bool) -> tuple[int, int, Filters] | None:
        """The first of these releases that is not admitted, the user whose filter refuses it, and the filters before it."""
        allowed, total = None if self._are_reserved(releases) else self._filters(), self._total
        if allowed is None:
            return None
        for step, (epsilon, before) in enumerate(zip(releases, allowed.before_each(releases), strict=True)):
            final, total = last and step == len(releases) - 1, exact_sum([*total, epsilon])
            adds_up = (before.is_final(final) or not self.reserve) and self._adds_up and is_at_most(total, before.alpha)
            is_admitted = adds_up or self._are_reserved(releases[: step + 1])
            if not is_admitted and (number := before.refusing(epsilon, final)) is not None:
                return step, number, before
        return None

    @property
    def _adds_up(self) -> bool:
        """Whether a step leaks no more than all budgets together, whatever the correlation: nats, not multiples of a metric."""
        one = np.ones(1)
        return not self._delta and all(
            method.release_epsilons(method.of_epsilons(one))[0] == 1.0 for method, *_ in self._groups()
        )

    def _most(self, *following: Any) -> float:
        """The sum of all budgets, rounded up, which no step's leakage exceeds; inf where they do not add up."""
        return sum_up([*self._total, *following]) if self._adds_up else math.inf

    def _left(self, total: Sequence[float]) -> float:
        """What the level leaves of the sum of all budgets, rounded down; 0 for nothing."""
        level = (self.alpha or 0.0) * self._adds_up
        left = max(math.fsum([level, *(-part for part in total)]), 0.0)
        while left > 0.0 and not is_at_most([*total, left], level):
            left = math.nextafter(left, 0.0)
        return left

    def _are_reserved(self, epsilons: Sequence[float]) -> bool:
        """Whether no step so far spent more than the reserve, nor do these: every step may spend it, and no filter is asked.

        So a release that continues after many such steps, which a ledger has, begins at once: its filters need not know them.
        """
        if self._last_filters() is None or self._n_reserved is None:
            return False
        number, reserve = self._n_reserved, self.reserve
        while number < len(self) and self._spent_from(number)[number] <= reserve:
            number += 1
        self._n_reserved = number
        return number == len(self) and max(epsilons, default=0.0) <= reserve

    def _adopt(self, now: Population, *, both: bool, reserve: float | None = None) -> None:
        """Account with other matrices from the next step on; `reserve` was found for them before."""
        method = self.accounting
        if self.horizon is not None:
            raise InputError(
                "expected an accountant without a horizon: what is planned for a known number of steps rests on the matrices "
                "that it was planned for; begin another release with the new correlation"
            )
        for one in self.methods:
            one.require_adoptable()
        lines, known = continued(self.population, now, both=both), self._timelines
        names = tuple(self.population.names[parent] for parent, _ in lines)
        timelines = tuple(
            known[parent]
            if user.directions == known[parent].current.directions
            else known[parent].changed(len(self), user)
            for parent, user in lines
        )
        kept, asked = reserve or 0.0, self.asked_reserve
        allowed = self._filters() if reserve is None and asked != 0.0 else None
        if allowed is not None:
            after = allowed.adopted(Adoption(len(self), lines, 0.0))
            most = method.sustainable_epsilon(list({id(user): user for _, user in lines}.values()), allowed.alpha)
            kept = after.with_largest_reserve(most if asked is None else min(most, asked)).reserve
        self._n_reserved, self._methods, self._timelines = len(self), None, timelines
        self.population = Population(tuple(user for _, user in lines), names)
        self._adoptions = (*self._adoptions, Adoption(len(self), lines, kept))

    def _restore(self, state: dict[str, Any], adopted: Sequence[KeptAdoption], read: ReadBudgets) -> None:
        if state["release"] != self._identity:
            raise ValueError("the state is of other adversaries, another level, reserve or accounting method")
        found = state["n_adopted"], state["horizon"], state["filters"] is None
        if found != (len(adopted), self.horizon, self.alpha is None):
            raise ValueError(
                f"the state is after {found[0]} adoptions, for the horizon {found[1]} and {'without' if found[2] else 'with'} "
                f"filters; expected {len(adopted)} adoptions, the horizon {self.horizon} and alpha = {self.alpha}"
            )
        self._read = read
        for one in adopted:
            self._spent, self._n_unread = [None] * one.step, one.step
            self.adopt_kept(one)
        self._n_unread = whole_number(state["n_steps"], "n_steps", least=0)
        self._spent = [None] * self._n_unread
        self._n_reserved = len(self) if state["reserved"] else None
        self._total = tuple(map(float, state["total"]))
        at = len(self), len(adopted)
        method, alpha, horizon = self.accounting, self.alpha, self.horizon
        odometers = zip(state["odometers"], self._timelines, strict=True)
        self._known_odometers = OnlineStates(tuple(method.restored_odometer(*one) for one in odometers), *at)
        if alpha is not None:
            filters = zip(state["filters"], self._timelines, strict=True)
            each = tuple(method.restored_filter(*one, alpha, horizon) for one in filters)
            self._known_filters = Filters(each, *at, alpha=alpha, reserve=float(state["reserve"]), horizon=horizon)


def _checked_budget(epsilon: Any, accounting: Accounting[Any, Any]) -> float:
    """A budget in nats, 0 or more, also of a pure mechanism or event; `BudgetError` for anything else."""
    if is_mechanism(epsilon):
        spent = epsilon_of(epsilon)
        if spent > 0.0:
            require_no_nearer(accounting.distances, repr(epsilon))
        return spent
    return real_number(epsilon, "epsilon", ge=0.0, le=LARGEST, error=BudgetError)


def _checked_reserve(reserve: float | None, alpha: float | None) -> float | None:
    """A reserve in nats, or None; `BudgetError` if it is not admissible, or there is no level."""
    if reserve is None:
        return None
    level = real_number(reserve, "reserve", ge=0.0, le=LARGEST, error=BudgetError)
    if alpha is None and reserve:
        raise BudgetError("a reserve requires a level: give alpha as well, or leave the reserve out")
    return level
