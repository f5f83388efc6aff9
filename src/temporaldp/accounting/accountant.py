"""The online accountant: what has leaked so far, and how much more may be spent."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from copy import copy
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting import accounting_blocks
from temporaldp.accounting.accountant_checks import checked_budget, checked_horizon, checked_releases, checked_reserve
from temporaldp.accounting.adoption import Adoption, adoption_of, caught_up
from temporaldp.accounting.counted_odometers import CountedOdometers
from temporaldp.accounting.curves import checked_delta
from temporaldp.accounting.filter import Filters, filters_at_start
from temporaldp.accounting.kept_state import KeptAdoption, ReadBudgets, Resumed, checked_state, restored, state_document
from temporaldp.accounting.past_budgets import PastBudgets
from temporaldp.accounting.protocol import Accounting, AccountingName, AnyBound, Filter, Odometer
from temporaldp.accounting.refusal import MOST_SHOWN, refusal
from temporaldp.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.accounting.ways import budgets, online_ways
from temporaldp.correlation import Adversaries, Population
from temporaldp.correlation.timeline import Timeline
from temporaldp.errors import BudgetError, InputError
from temporaldp.mechanisms.distances import checked_distances, require_no_nearer
from temporaldp.mechanisms.events import epsilon_of, release_from, release_of
from temporaldp.values import REPLACE_ONE, checked_relation, positive, whole_number

FloatArray = NDArray[np.float64]

NEVER = -1
"""In place of a number of steps that spent no more than the reserve: one of them did."""

FEW_BEHIND = 64
"""Steps by which filters may lag behind what was spent and still are brought up to date with every spend; if they lag further,
as after a ledger was read, they wait until they are needed."""


class TemporalAccountant:
    """Keeps account of temporal privacy leakage while budgets are chosen one by one.

    Without alpha an odometer: it admits everything and says what has leaked. With alpha a filter: it admits a budget only if
    every step so far, this one and all later ones stay at or below alpha, whatever is chosen later and however long it goes on;
    anything else is refused and changes nothing. Budgets may depend on what was published before: pure differential privacy
    holds output by output (docs/theory.md).

    With a delta it is an odometer of mechanisms, and its numbers are epsilons at that delta. Which mechanism comes next must
    then not depend on what was published, so that there is no filter.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        Several: everyone is accounted for, and the worst one named.
    alpha : float, > 0, optional
        Level to hold, in nats, under replacement of one person's value.
    horizon : int, optional
        Number of steps T, where it is known; implied by matrices that vary with time. The last step need not leave anything.
    reserve : float, >= 0, optional
        Budget that stays admissible at every later step, in nats. Default: without a horizon the largest there is (0 where no
        positive budget lasts); with one 0: follow a plan (`replan`), or early steps can use up everything.
    bound : {"exact", "paper"}, or a way of accounting
        By which leakage: the exact one, the paper's upper bound, or one of your own, as for `temporal_leakage`.
    metric : array_like, shape (n, n), optional
        As for `temporal_leakage`; leakage is then bounded pair by pair.
    delta : float, optional
        From 1e-60 to below 1: count any mechanisms, as (epsilon, delta).
    discretization : float, optional
        With a delta: distance of the grid of privacy losses, in nats. Default: as for `temporal_leakage` with the first
        mechanism.
    neighboring_relation : {"replace_one"}
        Also dp-accounting's ``NeighboringRelation.REPLACE_ONE``.

    Raises
    ------
    BudgetError
        alpha, horizon, reserve or delta are not admissible, or alpha is given with a delta.
    InputError
        Another neighbouring relation, or no such bound or metric.

    Notes
    -----
    What a spend, a check or `remaining` takes does not grow with the number of steps: only as much of the past is looked at as
    the correlation remembers. Threads may share an accountant.

    As a context manager, it is charged by every release made with this package inside the block, in the same thread or task
    (`release_snapshots`, `release_histograms`, a `ContinualRelease`'s new steps, and a mechanism of the package that is called
    by itself: one step a call), before noise is drawn. In nested blocks every one of them is charged: a day's filter in a
    lifetime's odometer.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> accountant = TemporalAccountant(Adversary(matrix, matrix), alpha=1.0)
    >>> for _ in range(3):
    ...     accountant = accountant.spend(0.2)
    >>> round(accountant.total(), 4), accountant.worst_time, round(accountant.remaining(), 4)
    (0.4395, 1, 0.3973)
    >>> accountant.spend(0.9)
    Traceback (most recent call last):
    ...
    temporaldp.errors.LeakageBudgetError: ...
    >>> len(accountant)
    3

    >>> from temporaldp import GaussianNoise
    >>> odometer = TemporalAccountant(Adversary(matrix, matrix), delta=1e-6)
    >>> for _ in range(3):
    ...     _ = odometer.spend(GaussianNoise(10.0, sensitivity=1.0))
    ...     print(len(odometer), round(odometer.total(), 3))
    1 0.397
    2 0.467
    3 0.53
    """

    def __init__(
        self,
        adversary: Adversaries,
        *,
        alpha: float | None = None,
        horizon: int | None = None,
        reserve: float | None = None,
        bound: AnyBound = "exact",
        metric: ArrayLike | None = None,
        delta: float | None = None,
        discretization: float | None = None,
        neighboring_relation: Any = REPLACE_ONE,
    ) -> None:
        self._relation = checked_relation(neighboring_relation)
        self._alpha = None if alpha is None else positive(alpha, "alpha")
        self._delta = 0.0 if delta is None else checked_delta(delta)
        if isinstance(bound, Accounting):
            self._delta = bound.delta
        self._population = Population.of(adversary)
        self._horizon = checked_horizon(self._population, horizon)
        self._population = self._first = self._population.counted_over(self._horizon)
        self._asked = checked_reserve(reserve, self._alpha)
        way = "curve" if delta is not None and bound == "exact" else bound
        self._how: dict[str, Any] = {"bound": way, "metric": metric, "delta": delta, "discretization": discretization}
        self._ways: list[tuple[Accounting[Any, Any], list[int]]] | None = None
        self._adoptions: tuple[Adoption, ...] = ()
        self._spent = PastBudgets()
        self._accounting()  # refuses what is no way of accounting
        self._expected: float | None = None
        self._last_allowed: Filters | None = None
        if reserve is not None or self._horizon is not None or self._delta or not isinstance(bound, str):
            _ = self._filters  # refuses what cannot be held; the largest reserve is looked for when it is needed
        self._n_reserved = 0
        self._counted: CountedOdometers | None = None
        self._resumed: Resumed | None = None
        self._timelines: tuple[Timeline, ...] = ()
        self._end: int | None = None
        self._lock = threading.RLock()

    @property
    def _filters(self) -> Filters | None:
        """What was allowed when it was last asked; looked for when it is first needed. None for an odometer."""
        if self._last_allowed is None and self._alpha is not None:
            self._last_allowed = filters_at_start(
                self._first_ways(), self._first.users, self._alpha, self._horizon, self._asked, self._expected
            )
        return self._last_allowed

    def expect_reserve(self, reserve: float) -> None:
        """Begin with what an earlier accountant of the same release found that it can keep, if that holds (it is tried)."""
        if not (self._alpha is not None and 0.0 < reserve <= self._alpha):
            raise BudgetError(f"expected a reserve up to alpha = {self._alpha}, got {reserve!r}")
        self._expected = reserve

    def _accounting(self, following: Any = None) -> list[tuple[Accounting[Any, Any], list[int]]]:
        """The ways of accounting, and the users who are counted by each. At a delta the grid depends on the first release.

        That is `following` if nothing was spent yet; nothing is kept then.
        """
        if self._ways is not None:
            return self._ways
        ways = online_ways(self._population, [*self._spent[:1], following][:1] if self._delta else [], **self._how)
        if self._spent or not self._delta:
            self._ways = ways
        return ways

    @property
    def alpha(self) -> float | None:
        """The level that is held, in nats; None for an odometer."""
        return self._alpha

    @property
    def bound(self) -> AccountingName:
        """The way of accounting: "exact", "paper", "metric", or at a delta "curve"."""
        return self._accounting()[0][0].name

    @property
    def metric(self) -> FloatArray | None:
        """The distances between values, in the order of the states, that epsilons are multiplied with; None for plain privacy.

        Shape (n, n), closed under the triangle inequality.
        """
        return checked_distances(self._how["metric"], self._population.states)

    @property
    def horizon(self) -> int | None:
        """Number of steps T; None if it is not known."""
        return self._horizon

    @property
    def reserve(self) -> float:
        """The budget that every later step can still spend, in nats, if only what was admitted is spent; 0 for none."""
        if self._filters is None:
            return 0.0
        return self._adoptions[-1].reserve if self._adoptions else self._filters.reserve

    @property
    def asked_reserve(self) -> float | None:
        """The reserve that was asked for; None for the default."""
        return self._asked

    @property
    def neighboring_relation(self) -> str:
        """What leakage and budgets refer to."""
        return self._relation

    @property
    def ledger(self) -> FloatArray:
        """What each step spent, in nats: a read-only copy, shape (T,). At a delta, the epsilon of each release by itself."""
        known = list(self._spent)
        spent = np.array(self._accounting()[0][0].promised(tuple(known)) if self._delta else known, dtype=np.float64)
        spent.flags.writeable = False
        return spent

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held by a thread, several calls are one act: others wait."""
        return self._lock

    @property
    def population(self) -> Population:
        """The adversaries, with names, as they are known now; a single one may be nameless."""
        return self._population

    @property
    def filters(self) -> tuple[Filter, ...]:
        """What the level still allows each user; for planners. Empty for an odometer."""
        return () if self._allowed is None else self._allowed.each

    def __len__(self) -> int:
        return len(self._spent)

    def __repr__(self) -> str:
        kind = "odometer" if self._alpha is None else f"alpha = {self._alpha:g}"
        kind += f", delta = {self._delta:g}" if self._delta else ""
        steps = f"{len(self)} step{'' if len(self) == 1 else 's'}" + (f" of {self._horizon}" if self._horizon else "")
        total, time, user = self._worst()
        where = f", worst {total:.6g} nats at step {time}" + (f" for {user!r}" if user is not None else "")
        return f"TemporalAccountant({kind}, {steps}{where if len(self) else ''})"

    def total(self) -> float:
        """The largest temporal privacy leakage of any step so far, in nats; an upper bound. 0 before the first step."""
        return self._worst()[0]

    def total_after(self, spent: Any) -> float:
        """The same if `spent` came next, in nats; as for `spend`. Changes nothing.

        Raises
        ------
        BudgetError
            It is no number >= 0, or, at a delta, `InputError`: no mechanism.
        """
        budget = self._possible(spent, check_end=False)
        with self._lock:
            return max(odometer.worst_with(budget)[0] for odometer in self._odometers(budget))

    @property
    def worst_time(self) -> int | None:
        """Index (from 0) of the first step with the largest leakage; None before the first step."""
        return self._worst()[1] if len(self) else None

    @property
    def worst_user(self) -> str | None:
        """Name of the user who is leaked about most; None for a single nameless one, and before the first step."""
        return self._worst()[2] if len(self) else None

    def leakage(self) -> LeakageSeries:
        """Backward, forward and temporal leakage of every step so far, of every user; takes time with their number.

        Raises
        ------
        BudgetError
            Nothing was spent yet.
        """
        if not len(self):
            raise BudgetError("nothing was spent yet, so there is no step to tell the leakage of")
        return self.leakage_of(list(self._spent))

    def leakage_of(self, spent: ArrayLike | Sequence[Any]) -> LeakageSeries:
        """What these budgets would leak, one a step from the first on, counted as this accountant counts; nothing is spent."""
        asked = checked_releases(spent, self._delta)
        releases: dict[str, Any] = {"mechanisms": asked} if self._delta else {"epsilons": asked}
        return temporal_leakage(self.adversaries_until(len(asked)), **releases, **self._how)

    def adversaries_until(self, n_steps: int) -> Population:
        """Everybody who is accounted for, with their matrices of so many steps, those before an adoption too."""
        if self._timelines:
            return Population(tuple(one.until(n_steps) for one in self._timelines), self._population.names)
        return Population(tuple(one.between(0, n_steps) for one in self._population.users), self._population.names)

    def check(self, epsilon: Any, *, last: bool = False) -> bool:
        """True if `epsilon` may be spent at the next step; otherwise the error that `spend` would raise. Changes nothing.

        Parameters
        ----------
        epsilon : float, >= 0
            Privacy loss of the next release on its own (substitution of one value), in nats. 0: it is not published. At a delta
            also a mechanism, an event, or several of them, as for `temporal_leakage`.
        last : bool
            No step follows: what is reserved for later ones may be used.

        Raises
        ------
        LeakageBudgetError
            Some step's leakage could exceed alpha. Its fields say which, by how much, and what would be admitted.
        BudgetError
            epsilon is no number >= 0, or all T steps are over.
        """
        with self._lock:
            self._admitted(epsilon, last)
        return True

    def spend(self, epsilon: Any, *, last: bool = False) -> Self:
        """Spend `epsilon` at the next step; parameters and errors as for `check`. Nothing changes if it is refused.

        Returns
        -------
        TemporalAccountant
            This one, so that calls can be chained.
        """
        with self._lock:
            self._note([self._admitted(epsilon, last)], last)
        return self

    def record(self, epsilon: Any, *, last: bool = False) -> Self:
        """Take note of a budget that was spent already, whatever alpha says to it; parameters as for `spend`.

        For what a ledger or another program has: what was spent is spent. A filter then admits what still holds alpha, which
        may be nothing.

        Raises
        ------
        BudgetError
            epsilon is no number >= 0, or all T steps are over.
        """
        with self._lock:
            self._note([self._possible(epsilon)], last)
        return self

    def adopt(self, adversary: Adversaries, *, both: bool = False, reserve: float | None = None) -> Self:
        """Account by other matrices from the next step on, exactly; the steps so far keep theirs (docs/theory.md, section 17).

        Parameters
        ----------
        adversary : Adversary, or an iterable or mapping of them
            What is known from now on. A new name may be anybody; who is not named keeps the old matrices.
        both : bool
            Hold the level whether the correlation has changed or not.
        reserve : float, optional
            What every later step may spend, as an earlier call found it. Default: the largest that the level allows.

        Raises
        ------
        InputError
            It does not count by the exact leakage, has a horizon, or the matrices do not fit. Nothing changed then.
        """
        with self._lock:
            now = Population.of(adversary)
            way, kept = self._accounting()[0][0], checked_reserve(reserve, self._alpha)
            allowed = self._allowed if kept is None else None
            made, self._timelines = adoption_of(
                self._population, now, self._timelines, len(self._spent), way, allowed, self._horizon, both=both,
                reserve=kept, asked=self._asked,
            )  # fmt: skip
            self._n_reserved, self._ways = len(self._spent), None
            self._population, self._adoptions = made.population, (*self._adoptions, made)
        return self

    def kept_state(self) -> dict[str, Any] | None:
        """What has to be known of the past to go on from here (`resume`), as JSON values; None where that is every budget."""
        with self._lock:
            if self._horizon is not None or self._delta or self._is_over:
                return None
            known = {"n_steps": len(self), "n_adopted": len(self._adoptions), "reserved": self._are_reserved([])}
            return state_document(known, self._odometers(), self._allowed)

    def resume(self, state: dict[str, Any], adopted: Sequence[KeptAdoption], read: ReadBudgets) -> None:
        """Go on from a kept state, and what was adopted until then; `InputError` if it is none of this accountant's.

        It must not have spent anything, and must not be used any more if this fails. `read` gives what those steps spent.
        """
        with self._lock, checked_state(state, len(self), len(adopted)):
            for one in adopted:
                self._spent = PastBudgets(one.step, read)
                self.adopt(one.adversary, both=one.both, reserve=one.reserve)
            self._spent = PastBudgets(state["n_steps"], read)
            self._n_reserved = len(self) if state["reserved"] else NEVER
            self._resumed = restored(state, self._alpha, self._first.users, self._adoptions)
            self._last_allowed = self._resumed.filters

    def _note(self, budgets: list[Any], last: bool) -> None:
        """Take note of what the next steps spend: in one act, whatever interrupts it; filters and odometers follow."""
        self._end = len(self._spent) + len(budgets) if last else None
        self._spent += budgets
        if self._last_allowed is not None and len(self._spent) - self._last_allowed.n_steps <= FEW_BEHIND:
            _ = self._allowed

    def check_all(self, epsilons: ArrayLike | Sequence[Any], *, last: bool = False) -> bool:
        """True if `spend_all` would spend these; otherwise the error that it would raise. Changes nothing."""
        asked = checked_releases(epsilons, self._delta)
        with self._lock:
            left = None if self._horizon is None else self._horizon - len(self)
            if left is not None and 0 < left < len(asked):
                raise BudgetError(
                    f"{len(asked)} budgets, but only {left} of the horizon's {self._horizon} steps are left"
                )
            if not self._admits(asked, last):
                trial = copy(self)
                for number, epsilon in enumerate(asked, start=1):
                    trial.spend(epsilon, last=last and number == len(asked))  # one of them raises, and says why
        return True

    def spend_all(self, epsilons: ArrayLike | Sequence[Any], *, last: bool = False) -> Self:
        """Spend these budgets at the next steps, one each and in this order: all of them, or none.

        Parameters
        ----------
        epsilons : array_like, shape (k,)
            In nats, >= 0.
        last : bool
            No step follows the k-th.

        Raises
        ------
        LeakageBudgetError, BudgetError
            As for `spend`, of the first step that is refused. Nothing was spent.
        """
        asked = checked_releases(epsilons, self._delta)
        with self._lock:
            self.check_all(asked, last=last)
            self._note([self._possible(epsilon) for epsilon in asked], last)
        return self

    def remaining(self, k: int = 1, *, last: bool = False) -> float:
        """The largest epsilon that may be spent at each of the next k steps, in nats; a lower bound.

        inf for an odometer, 0 once the last step is over.

        Nearly tight, but for budgets that use the level up to its last digits at many steps in a row (the planners' do not):
        there the roundings that are given to the safe side grow from step to step.

        Parameters
        ----------
        k : int, >= 1
        last : bool
            No step follows the k-th: what is reserved for later ones may be used there.

        Raises
        ------
        BudgetError
            k is no number of steps, or more than the horizon leaves.
        """
        steps = whole_number(k, "k", least=1, error=BudgetError)
        if self._is_over or len(self) == self._horizon:
            return 0.0
        if self._horizon is not None and len(self) + steps > self._horizon:
            raise BudgetError(f"expected k <= {self._horizon - len(self)}, the steps that the horizon leaves, got {k}")
        if self._allowed is None:
            return math.inf
        return self._allowed.constant(steps, last)

    def admits(self, epsilons: ArrayLike, *, last: bool = False) -> bool:
        """Whether these budgets may be spent at the next steps, one each, in this order. Changes nothing.

        Parameters
        ----------
        epsilons : array_like, shape (k,)
            In nats, >= 0.
        last : bool
            No step follows the k-th.

        Raises
        ------
        BudgetError
            epsilons are no non-empty sequence of finite numbers >= 0.
        """
        return self._admits(budgets(epsilons).tolist(), last)

    def compose(self, event: Any, count: int = 1) -> Self:
        """Spend what an event of Google's dp-accounting says, once at each of `count` steps.

        An event's noise is relative to the largest contribution of one person, as in dp-accounting. Replacing a value takes one
        contribution away and adds another, which moves a result twice as far::

            LaplaceDpEvent(noise_multiplier)                        2 / noise_multiplier
            DiscreteLaplaceDpEvent(noise_parameter, sensitivity)    2 * noise_parameter * sensitivity
            RandomizedResponseDpEvent(p, k)                         log(1 + k (1 - p) / p)
            NoOpDpEvent()                                           0
            ComposedDpEvent, SelfComposedDpEvent                    the sum: queries at one and the same step

        A histogram of one value a person has contribution 1: discrete Laplace noise of scale b is ``LaplaceDpEvent(b)``, 2 / b.

        Raises
        ------
        InputError
            An event without an epsilon that is known here (Gaussian noise, sampling), or a metric counts less than it spends.
        LeakageBudgetError
            The budgets are refused; then none of the steps is spent.
        """
        spent = event if self._delta else epsilon_of(event)
        if not self._delta and spent > 0.0:
            require_no_nearer(self.metric, repr(event))
        return self.spend_all([spent] * whole_number(count, "count", least=1, error=BudgetError))

    def supports(self, event: Any) -> bool:
        """Whether `compose` knows what the event spends."""
        try:
            release_of(event) if self._delta else epsilon_of(event)
        except InputError:
            return False
        return True

    def __enter__(self) -> Self:
        accounting_blocks.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What was spent stays spent, whatever went wrong: noise may have been seen."""
        accounting_blocks.end(self)

    def _worst(self) -> tuple[float, int, str | None]:
        if not self._spent:
            return 0.0, 0, None
        with self._lock:
            worst = [odometer.worst() for odometer in self._odometers()]
        found = [(*one, name) for one, name in zip(worst, self._population.names, strict=True)]
        return max(found, key=operator.itemgetter(0))

    def _odometers(self, following: Any = None) -> list[Odometer]:
        """Everybody's odometer, after all that was spent. At a delta, `following` chooses the grid if nothing was spent yet."""
        # Taken out while they change: after an interrupt they are made anew.
        known, self._counted = self._counted or self._nothing_counted(following), None
        counted = known.after(self._spent, self._adoptions)
        if self._spent or not self._delta:
            self._counted = counted
        return counted.each

    def _nothing_counted(self, following: Any) -> CountedOdometers:
        """Before the first step, and before anything was adopted; or a resumed state."""
        if self._resumed is not None:
            return self._resumed.counted
        return CountedOdometers.at_start(self._first_ways(following), self._first.users)

    def _first_ways(self, following: Any = None) -> list[tuple[Accounting[Any, Any], list[int]]]:
        """The ways of accounting of everybody who was known in the beginning."""
        return online_ways(self._first, [], **self._how) if self._adoptions else self._accounting(following)

    @property
    def _is_over(self) -> bool:
        return self._end is not None and len(self._spent) >= self._end

    @property
    def _allowed(self) -> Filters | None:
        """What is allowed after all that was spent; None for an odometer."""
        known = self._filters
        self._last_allowed = None if known is None else caught_up(known, self._adoptions, self._spent)
        return self._last_allowed

    def __copy__(self) -> Self:
        """An accountant of its own, with the same past."""
        made = type(self).__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock; what changes when something is spent is copied, so that nobody sees it half changed."""
        with self._lock:
            state = {key: value for key, value in self.__dict__.items() if key != "_lock"}
            return state | {"_spent": copy(self._spent), "_counted": copy(self._counted)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def _admitted(self, epsilon: Any, last: bool) -> Any:
        """What is to be spent, if it may be."""
        budget = self._possible(epsilon)
        if self._are_reserved([budget]):
            return budget
        allowed = self._allowed
        if allowed is not None:
            number = allowed.refusing(budget, last)
            if number is not None:
                way = next(way for way, numbers in self._accounting() if number in numbers)
                user, name = self._population.users[number], self._population.names[number]
                if self._timelines:
                    user = self._timelines[number].until(len(self._spent) + MOST_SHOWN)
                raise refusal(allowed, way, user, name, self._spent[:], budget, last=last)
        return budget

    def _possible(self, epsilon: Any, *, check_end: bool = True) -> Any:
        """What is to be spent, as it is counted, if there is a step left: a number, or at a delta a release."""
        if check_end and self._is_over:
            raise BudgetError(f"step {len(self) - 1} was declared the last, and used what later ones would need")
        budget = self._countable(epsilon) if self._delta else checked_budget(epsilon)
        if check_end and self._horizon is not None and len(self) >= self._horizon:
            raise BudgetError(f"all {self._horizon} steps of the horizon are over; nothing may follow")
        return budget

    def _countable(self, given: Any) -> Any:
        """What is published at a step, at a delta, if it can be counted."""
        release = release_from(given)
        for way, numbers in self._accounting(release):
            way.require_countable([self._population.users[k] for k in numbers], release)
        return release

    def _admits(self, epsilons: Sequence[float], last: bool = False) -> bool:
        if self._is_over or (self._horizon is not None and len(self) + len(epsilons) > self._horizon):
            return False
        return self._are_reserved(epsilons) or self._allowed is None or self._allowed.admits(epsilons, last)

    def _are_reserved(self, epsilons: Sequence[float]) -> bool:
        """Whether no step so far spent more than the reserve, nor do these: every step may spend it, and no filter is asked.

        So a release that goes on after many such steps, which a ledger has, begins at once: its filters need not know them.
        """
        if self._filters is None or self._n_reserved == NEVER:
            return False
        number, reserve = self._n_reserved, self.reserve
        while number < len(self._spent) and self._spent[number] <= reserve:
            number += 1
        self._n_reserved = number
        return number == len(self._spent) and max(epsilons, default=0.0) <= reserve
