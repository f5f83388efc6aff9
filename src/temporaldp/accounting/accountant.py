"""The online accountant: what has leaked so far, and how much more may be spent."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from copy import copy
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting import accounting_blocks
from temporaldp.accounting.account import Account
from temporaldp.accounting.accountant_checks import checked_horizon, checked_releases, checked_reserve
from temporaldp.accounting.exact.method import Exact
from temporaldp.accounting.kept_state import KeptAdoption, ReadBudgets
from temporaldp.accounting.paper.method import PaperBound
from temporaldp.accounting.protocol import Accounting, Filter, budgets, require_method
from temporaldp.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.correlation import Adversaries, Population
from temporaldp.errors import BudgetError, InputError
from temporaldp.mechanisms.distances import require_no_nearer
from temporaldp.mechanisms.events import epsilon_of, release_of
from temporaldp.values import REPLACE_ONE, checked_relation, positive, whole_number

FloatArray = NDArray[np.float64]
EXACT = Exact()


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
    accounting : Accounting
        As for `temporal_leakage`. `ApproximateDP` accounts for mechanisms, by one privacy curve on the grid of the first one.
    neighboring_relation : {"replace_one"}
        Also dp-accounting's ``NeighboringRelation.REPLACE_ONE``.

    Raises
    ------
    BudgetError
        alpha, horizon or reserve are not admissible, or alpha is given with a delta.
    InputError
        Another neighbouring relation, or a method that does not apply to these matrices.

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

    >>> from temporaldp import ApproximateDP, GaussianNoise
    >>> odometer = TemporalAccountant(Adversary(matrix, matrix), accounting=ApproximateDP(delta=1e-6))
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
        alpha: float | None = None,
        *,
        accounting: Accounting[Any, Any] = EXACT,
        horizon: int | None = None,
        reserve: float | None = None,
        neighboring_relation: Any = REPLACE_ONE,
    ) -> None:
        require_method(accounting)
        self._relation = checked_relation(neighboring_relation)
        level = None if alpha is None else positive(alpha, "alpha")
        population = Population.of(adversary)
        steps = checked_horizon(population, horizon)
        self._lock = threading.RLock()
        self._account = Account(
            population.counted_over(steps),
            accounting,
            alpha=level,
            horizon=steps,
            asked_reserve=checked_reserve(reserve, level),
        )
        self._account.ways()  # refuses matrices that the method cannot account for
        if (
            reserve is not None
            or steps is not None
            or self._account.delta
            or not isinstance(accounting, Exact | PaperBound)
        ):
            # Refuses what cannot be held. Otherwise the largest reserve is looked for when it is needed.
            _ = self._account.last_allowed

    def expect_reserve(self, reserve: float) -> None:
        """Begin with what an earlier accountant of the same release found that it can keep, if that holds (it is tried)."""
        if not (self.alpha is not None and 0.0 < reserve <= self.alpha):
            raise BudgetError(f"expected a reserve up to alpha = {self.alpha}, got {reserve!r}")
        self._account.expected_reserve = reserve

    @property
    def alpha(self) -> float | None:
        """The level that is held, in nats; None for an odometer."""
        return self._account.alpha

    @property
    def delta(self) -> float:
        """The delta that mechanisms are counted at; 0 where pure epsilons are."""
        return self._account.delta

    @property
    def accounting(self) -> Accounting[Any, Any]:
        """The method by which leakage is counted."""
        return self._account.ways()[0][0]

    @property
    def horizon(self) -> int | None:
        """Number of steps T; None if it is not known."""
        return self._account.horizon

    @property
    def reserve(self) -> float:
        """The budget that every later step can still spend, in nats, if only what was admitted is spent; 0 for none."""
        return self._account.reserve

    @property
    def asked_reserve(self) -> float | None:
        """The reserve that was asked for; None for the default."""
        return self._account.asked_reserve

    @property
    def neighboring_relation(self) -> str:
        """What leakage and budgets refer to."""
        return self._relation

    @property
    def ledger(self) -> FloatArray:
        """What each step spent, in nats: a read-only copy, shape (T,). At a delta, the epsilon of each release by itself."""
        known = list(self._account.spent)
        spent = np.array(
            self._account.ways()[0][0].promised(tuple(known)) if self._account.delta else known, dtype=np.float64
        )
        spent.flags.writeable = False
        return spent

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held by a thread, several calls are one act: others wait."""
        return self._lock

    @property
    def population(self) -> Population:
        """The adversaries, with names, as they are known now; a single one may be nameless."""
        return self._account.population

    @property
    def filters(self) -> tuple[Filter, ...]:
        """What the level still allows each user; for planners. Empty for an odometer."""
        allowed = self._account.allowed
        return () if allowed is None else allowed.each

    def __len__(self) -> int:
        return len(self._account)

    def __repr__(self) -> str:
        kind = "odometer" if self.alpha is None else f"alpha = {self.alpha:g}"
        kind += f", delta = {self._account.delta:g}" if self._account.delta else ""
        steps = f"{len(self)} step{'' if len(self) == 1 else 's'}" + (f" of {self.horizon}" if self.horizon else "")
        total, time, user = self._worst()
        where = f", worst {total:.6g} nats at step {time}" + (f" for {user!r}" if user is not None else "")
        return f"TemporalAccountant({kind}, {steps}{where if len(self) else ''})"

    def total(self) -> float:
        """The largest temporal privacy leakage of any step so far, in nats; an upper bound. 0 before the first step."""
        return self._worst()[0]

    def total_after(self, spent: Any) -> float:
        """The largest temporal privacy leakage of any step if `spent` came next, in nats; an upper bound. Changes nothing.

        Raises
        ------
        BudgetError
            It is no number >= 0, or, at a delta, `InputError`: no mechanism.
        """
        budget = self._account.possible(spent, check_end=False)
        with self._lock:
            return max(odometer.worst_with(budget)[0] for odometer in self._account.odometers(budget))

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
        return self.leakage_of(list(self._account.spent))

    def leakage_of(self, spent: ArrayLike | Sequence[Any]) -> LeakageSeries:
        """What these budgets would leak, one a step from the first on, counted as this accountant counts; nothing is spent."""
        delta = self._account.delta
        asked = checked_releases(spent, delta)
        return temporal_leakage(self.adversaries_until(len(asked)), asked, accounting=self._account.accounting)

    def adversaries_until(self, n_steps: int) -> Population:
        """Everybody who is accounted for, with their matrices of so many steps, those before an adoption too."""
        return self._account.adversaries_until(n_steps)

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
            self._account.admitted(epsilon, last)
        return True

    def spend(self, epsilon: Any, *, last: bool = False) -> Self:
        """Spend `epsilon` at the next step; parameters and errors as for `check`. Nothing changes if it is refused.

        Returns
        -------
        TemporalAccountant
            This one, so that calls can be chained.
        """
        with self._lock:
            self._account.note([self._account.admitted(epsilon, last)], last)
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
            self._account.note([self._account.possible(epsilon)], last)
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
            self._account.adopt(Population.of(adversary), both=both, reserve=checked_reserve(reserve, self.alpha))
        return self

    def kept_state(self) -> dict[str, Any] | None:
        """What has to be known of the past to go on from here (`resume`), as JSON values; None where that is every budget."""
        with self._lock:
            return self._account.kept_state()

    def resume(self, state: dict[str, Any], adopted: Sequence[KeptAdoption], read: ReadBudgets) -> None:
        """Go on from a kept state, and what was adopted until then; `InputError` if it is none of this accountant's.

        It must not have spent anything, and must not be used any more if this fails. `read` gives what those steps spent.
        """
        with self._lock:
            self._account.resume(state, adopted, read)

    def check_all(self, epsilons: ArrayLike | Sequence[Any], *, last: bool = False) -> bool:
        """True if `spend_all` would spend these; otherwise the error that it would raise. Changes nothing."""
        asked = checked_releases(epsilons, self._account.delta)
        with self._lock:
            left = None if self.horizon is None else self.horizon - len(self)
            if left is not None and 0 < left < len(asked):
                raise BudgetError(
                    f"{len(asked)} budgets, but only {left} of the horizon's {self.horizon} steps are left"
                )
            if not self._account.admits(asked, last):
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
        asked = checked_releases(epsilons, self._account.delta)
        with self._lock:
            self.check_all(asked, last=last)
            self._account.note([self._account.possible(epsilon) for epsilon in asked], last)
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
        if self._account.is_over or len(self) == self.horizon:
            return 0.0
        if self.horizon is not None and len(self) + steps > self.horizon:
            raise BudgetError(f"expected k <= {self.horizon - len(self)}, the steps that the horizon leaves, got {k}")
        allowed = self._account.allowed
        return math.inf if allowed is None else allowed.constant(steps, last)

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
        return self._account.admits(budgets(epsilons).tolist(), last)

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
        spent = event if self._account.delta else epsilon_of(event)
        if not self._account.delta and spent > 0.0:
            require_no_nearer(self.accounting.distances, repr(event))
        return self.spend_all([spent] * whole_number(count, "count", least=1, error=BudgetError))

    def supports(self, event: Any) -> bool:
        """Whether `compose` knows what the event spends."""
        try:
            release_of(event) if self._account.delta else epsilon_of(event)
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

    def __copy__(self) -> Self:
        """An accountant of its own, with the same past."""
        made = type(self).__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock; what changes when something is spent is copied, so that nobody sees it half changed."""
        with self._lock:
            state = {key: value for key, value in self.__dict__.items() if key != "_lock"}
            return state | {"_account": copy(self._account)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def _worst(self) -> tuple[float, int, str | None]:
        with self._lock:
            return self._account.worst()
