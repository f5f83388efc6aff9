"""The online accountant: what has leaked so far, and how much more may be spent."""

from __future__ import annotations

import math
import operator
import threading
from array import array
from collections.abc import Sequence
from copy import copy
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting import charging
from temporaldp.accounting.events import epsilon_of
from temporaldp.accounting.filter import Filter
from temporaldp.accounting.history import History
from temporaldp.accounting.population import Adversaries, named
from temporaldp.accounting.series import LeakageSeries, budgets, temporal_leakage
from temporaldp.accounting.standing import Reserve, Standing, UserLosses, asked_reserve, largest_reserve
from temporaldp.errors import BudgetError, InputError
from temporaldp.values import LARGEST, REPLACE_ONE, checked_relation, positive, whole_number

FloatArray = NDArray[np.float64]


class TemporalAccountant:
    """Keeps account of temporal privacy leakage while budgets are chosen one by one.

    Without alpha an odometer: it admits everything and says what has leaked. With alpha a filter: it admits a budget only if
    every step so far, this one and all later ones stay at or below alpha, whatever is chosen later and however long it goes on;
    anything else is refused and changes nothing. Leakage is an upper bound (the paper's recursions, exact to rounding).

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        Several: everyone is accounted for, and the worst one named.
    alpha : float, > 0, optional
        Level to hold, in nats, under replacement of one person's value.
    horizon : int, optional
        Number of steps T, where it is known; implied by matrices that vary with time. The last step need not leave anything.
    reserve : float, >= 0, optional
        Budget that stays admissible at every later step, in nats. Default: without a horizon the largest there is, by the
        paper's Algorithm 2 (0 where no positive budget lasts); with one 0: follow a plan (`replan`), or early steps can use
        up everything.
    neighboring_relation : {"replace_one"}
        Also dp-accounting's ``NeighboringRelation.REPLACE_ONE``.

    Raises
    ------
    BudgetError
        alpha, horizon or reserve are not admissible.
    InputError
        Another neighbouring relation.

    Notes
    -----
    A filter's spend, check and remaining take the same time at every step: two numbers a user say all that matters about the
    past (docs/theory.md, section 6). The odometer walks back only as far as leakage changes. Threads may share an accountant.

    As a context manager, it is charged by every release made with this package inside the block, in the same thread or task
    (`release`, `release_histograms`, a `ContinualRelease`'s new steps, and a mechanism of the package that is called by itself:
    one step a call), before noise is drawn. In nested blocks every one of them is charged: a day's filter in a lifetime's
    odometer.

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
    """

    def __init__(
        self,
        adversary: Adversaries,
        *,
        alpha: float | None = None,
        horizon: int | None = None,
        reserve: float | None = None,
        neighboring_relation: Any = REPLACE_ONE,
    ) -> None:
        self._relation = checked_relation(neighboring_relation)
        self._alpha = None if alpha is None else positive(alpha, "alpha")
        self._users = [UserLosses.of(name, one) for name, one in named(adversary)]
        self._horizon = _checked_horizon(self._users, horizon)
        self._asked = None if reserve is None else float(reserve)
        kept = self._kept(reserve)
        self._filter = None if self._alpha is None else Filter.at_start(self._users, self._alpha, kept, self._horizon)
        self._spent = array("d")
        self._histories = [History(user.past, user.future, self._spent) for user in self._users]
        self._end: int | None = None
        self._lock = threading.RLock()

    def _kept(self, reserve: float | None) -> Reserve:
        nothing = Reserve(0.0, (0.0,) * len(self._users))
        if reserve is not None and not 0.0 <= reserve <= LARGEST:
            raise BudgetError(f"expected a reserve from 0 to {LARGEST:g} nats, got {reserve!r}")
        if self._alpha is None:
            if reserve:
                raise BudgetError("a reserve is kept below a level: give alpha as well, or leave the reserve out")
            return nothing
        if reserve is not None:
            return asked_reserve(self._users, self._alpha, float(reserve))
        return nothing if self._horizon is not None else largest_reserve(self._users, self._alpha)

    @property
    def alpha(self) -> float | None:
        """The level that is held, in nats; None for an odometer."""
        return self._alpha

    @property
    def horizon(self) -> int | None:
        """Number of steps T; None if it is not known."""
        return self._horizon

    @property
    def reserve(self) -> float:
        """The budget that every later step can still spend, for ever, in nats; 0 for an odometer and where nothing is kept."""
        return 0.0 if self._allowed is None else self._allowed.reserve.epsilon

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
        """What each step spent, in nats: a read-only copy, shape (T,)."""
        spent = np.array(self._spent, dtype=np.float64)
        spent.flags.writeable = False
        return spent

    @property
    def adversaries(self) -> dict[str | None, Any]:
        """The adversaries by name; a single one may be nameless."""
        return {user.name: user.adversary for user in self._users}

    def __len__(self) -> int:
        return len(self._spent)

    def __repr__(self) -> str:
        kind = "odometer" if self._alpha is None else f"alpha = {self._alpha:g}"
        steps = f"{len(self)} step{'' if len(self) == 1 else 's'}" + (f" of {self._horizon}" if self._horizon else "")
        total, time, user = self._worst()
        where = f", worst {total:.6g} nats at step {time}" + (f" for {user!r}" if user is not None else "")
        return f"TemporalAccountant({kind}, {steps}{where if len(self) else ''})"

    def total(self) -> float:
        """The largest temporal privacy leakage of any step so far, in nats; an upper bound. 0 before the first step."""
        return self._worst()[0]

    def total_after(self, epsilon: float) -> float:
        """The same if `epsilon` were spent next, in nats. Changes nothing.

        Raises
        ------
        BudgetError
            epsilon is no number >= 0.
        """
        (budget,) = budgets([epsilon]).tolist()
        with self._lock:
            return max(history.worst_with(budget, 0.0)[0] for history in self._histories)

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
            Nothing was spent yet, or the matrices serve more steps than there were so far.
        """
        if not len(self):
            raise BudgetError("nothing was spent yet, so there is no step to tell the leakage of")
        everyone = self.adversaries
        single = next(iter(everyone.values())) if len(everyone) == 1 else {str(k): v for k, v in everyone.items()}
        return temporal_leakage(single, epsilons=self.ledger, bound="paper")

    def check(self, epsilon: float, *, last: bool = False) -> bool:
        """True if `epsilon` may be spent at the next step; otherwise the error that `spend` would raise. Changes nothing.

        Parameters
        ----------
        epsilon : float, >= 0
            Privacy loss of the next release on its own (substitution of one value), in nats. 0: it is not published.
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

    def spend(self, epsilon: float, *, last: bool = False) -> Self:
        """Spend `epsilon` at the next step; parameters and errors as for `check`. Nothing changes if it is refused.

        Returns
        -------
        TemporalAccountant
            This one, so that calls can be chained.
        """
        with self._lock:
            self._note(self._admitted(epsilon, last), last)
        return self

    def record(self, epsilon: float, *, last: bool = False) -> Self:
        """Take note of a budget that was spent already, whatever alpha says to it; parameters as for `spend`.

        For what a ledger or another program has: what was spent is spent. A filter then admits what still holds alpha, which
        may be nothing.

        Raises
        ------
        BudgetError
            epsilon is no number >= 0, or all T steps are over.
        """
        with self._lock:
            self._note(self._possible(epsilon), last)
        return self

    def _note(self, budget: float, last: bool) -> None:
        if last:
            self._end = len(self._spent) + 1
        self._spent.append(budget)  # one act, whatever interrupts it; the filter follows

    def check_all(self, epsilons: ArrayLike, *, last: bool = False) -> bool:
        """True if `spend_all` would spend these; otherwise the error that it would raise. Changes nothing."""
        asked = budgets(epsilons).tolist()
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

    def spend_all(self, epsilons: ArrayLike, *, last: bool = False) -> Self:
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
        asked = budgets(epsilons).tolist()
        with self._lock:
            self.check_all(asked, last=last)
            for number, epsilon in enumerate(asked, start=1):
                self.spend(epsilon, last=last and number == len(asked))
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
        steps = whole_number(k, "k, the number of steps,", least=1, error=BudgetError)
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

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Where each user stands; for planners."""
        return () if self._allowed is None else self._allowed.standings

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
            An event that is not known here: Gaussian noise has no epsilon with delta = 0, sampling is not supported.
        LeakageBudgetError
            The budgets are refused; then none of the steps is spent.
        """
        times = whole_number(count, "count, the number of steps,", least=1, error=BudgetError)
        return self.spend_all([epsilon_of(event)] * times)

    def supports(self, event: Any) -> bool:
        """Whether `compose` knows what the event spends."""
        try:
            epsilon_of(event)
        except InputError:
            return False
        return True

    def __enter__(self) -> Self:
        charging.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What was spent stays spent, whatever went wrong: noise may have been seen."""
        charging.end(self)

    def _worst(self) -> tuple[float, int, str | None]:
        with self._lock:
            worst = [(*history.worst(), user.name) for history, user in zip(self._histories, self._users, strict=True)]
        return max(worst, key=operator.itemgetter(0))

    @property
    def _is_over(self) -> bool:
        return self._end is not None and len(self._spent) >= self._end

    @property
    def _allowed(self) -> Filter | None:
        """The filter, after all that was spent; None for an odometer."""
        now = self._filter
        while now is not None and now.n_steps < len(self._spent):
            now = now.after(self._spent[now.n_steps])
        self._filter = now
        return now

    def __copy__(self) -> Self:
        """An accountant of its own, with the same past."""
        with self._lock:
            made = type(self).__new__(type(self))
            made.__setstate__(self.__getstate__() | {"_spent": self._spent[:]})
            made._histories = [History(user.past, user.future, made._spent) for user in made._users]
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def _admitted(self, epsilon: float, last: bool) -> float:
        """`epsilon` as a float, if it may be spent."""
        budget = self._possible(epsilon)
        allowed = self._allowed
        if allowed is not None and budget > allowed.largest(last)[0]:
            raise allowed.refusal(budget, last, self._histories)
        return budget

    def _possible(self, epsilon: float) -> float:
        """`epsilon` as a float, if it is a budget and a step is left."""
        try:
            budget = math.nan if isinstance(epsilon, str | bytes | bool) else float(epsilon)
        except (TypeError, ValueError):
            budget = math.nan
        if not 0.0 <= budget <= LARGEST:
            raise BudgetError(f"expected epsilon to be a number from 0 to {LARGEST:g} nats, got {epsilon!r}")
        if self._is_over:
            raise BudgetError(f"step {len(self) - 1} was declared the last, and used what later ones would need")
        if self._horizon is not None and len(self) >= self._horizon:
            raise BudgetError(f"all {self._horizon} steps of the horizon are over; nothing may follow")
        return budget

    def _admits(self, epsilons: Sequence[float], last: bool = False) -> bool:
        if self._is_over or (self._horizon is not None and len(self) + len(epsilons) > self._horizon):
            return False
        return self._allowed is None or self._allowed.admits(epsilons, last)


def _checked_horizon(users: list[UserLosses], horizon: int | None) -> int | None:
    known = None if horizon is None else whole_number(horizon, "the horizon", least=1, error=BudgetError)
    for user in users:
        serves = user.adversary.n_steps
        if serves is not None and known is not None and serves != known:
            who = "the adversary" if user.name is None else f"adversary {user.name!r}"
            raise BudgetError(f"{who} has matrices for {serves} steps, but the horizon is {known}")
        known = known if serves is None else serves
    return known
