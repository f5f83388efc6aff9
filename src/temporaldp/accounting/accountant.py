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
from temporaldp.accounting.events import REPLACE_ONE, checked_relation, epsilon_of
from temporaldp.accounting.history import History
from temporaldp.accounting.population import Adversaries, named
from temporaldp.accounting.series import LeakageSeries, budgets, temporal_leakage
from temporaldp.accounting.standing import (
    SPARE,
    Reserve,
    Standing,
    UserLosses,
    asked_reserve,
    largest_reserve,
)
from temporaldp.errors import BudgetError, InputError, LeakageBudgetError
from temporaldp.leakage.profile import LARGEST, positive

FloatArray = NDArray[np.float64]

BISECTIONS = 60
"""Halvings of the bracket for a budget of several steps: the last digits of a double."""


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
    (`release`, `release_histograms`, and a mechanism of the package that is called by itself: one step a call), before noise is
    drawn.

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
        self._asked, self._reserve = None if reserve is None else float(reserve), self._kept(reserve)
        self._spent = array("d")
        self._standings = [Standing.at_start(self._alpha or 0.0)] * len(self._users)
        self._histories = [History(user.past, user.future, self._spent) for user in self._users]
        self._over = False
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
        return self._reserve.epsilon

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
        total, time, user = self._worst()
        where = f", worst {total:.6g} nats at time {time}" + (f" for {user!r}" if user is not None else "")
        return f"TemporalAccountant({kind}, {len(self)} steps{where if len(self) else ''})"

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
        """Name of the user who is leaked about most; None for a single nameless one."""
        return self._worst()[2]

    def leakage(self) -> LeakageSeries:
        """Backward, forward and temporal leakage of every step so far, of every user; takes time with their number.

        Raises
        ------
        BudgetError
            Nothing was spent yet, or the matrices serve more steps than there were so far.
        """
        everyone = self.adversaries
        single = next(iter(everyone.values())) if len(everyone) == 1 else {str(k): v for k, v in everyone.items()}
        return temporal_leakage(single, epsilons=self.ledger)

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
            budget = self._admitted(epsilon, last)
            if self._alpha is not None:
                self._standings = self._after(self._standings, budget)
            self._spent.append(budget)
            self._over = last
        return self

    def spend_all(self, epsilons: ArrayLike) -> Self:
        """Spend these budgets at the next steps, one each and in this order: all of them, or none.

        Parameters
        ----------
        epsilons : array_like, shape (k,)
            In nats, >= 0.

        Raises
        ------
        LeakageBudgetError, BudgetError
            As for `spend`, of the first step that is refused. Nothing was spent.
        """
        asked = budgets(epsilons).tolist()
        with self._lock:
            if len(asked) > 1 and not self._admits(asked):
                trial = copy(self)
                for epsilon in asked:
                    trial.spend(epsilon)  # one of them raises, and says why
            for epsilon in asked:
                self.spend(epsilon)
        return self

    def remaining(self, k: int = 1, *, last: bool = False) -> float:
        """The largest epsilon that may be spent at each of the next k steps, in nats; a lower bound, inf for an odometer.

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
        steps = _whole(k, "k")
        if self._horizon is not None and len(self) + steps > self._horizon:
            raise BudgetError(f"expected k <= {self._horizon - len(self)}, the steps that the horizon leaves, got {k}")
        if self._over:
            return 0.0
        if self._alpha is None:
            return math.inf
        with self._lock:
            if steps == 1:
                return self._largest(self._standings, last)[0]
            low, high = 0.0, max(self._largest(self._standings, either)[0] for either in (False, last))
            for _ in range(BISECTIONS):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if self._admits([middle] * steps, last) else (low, middle)
        # Just inside the level, room grows from step to step; exactly on it, the roundings given away would.
        return max(low - steps * SPARE * self._alpha, 0.0)

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
        return tuple(self._standings)

    def compose(self, event: Any, count: int = 1) -> Self:
        """Spend what an event of Google's dp-accounting says, at each of `count` steps; sensitivities are under replacement.

        Events of a ``ComposedDpEvent`` or ``SelfComposedDpEvent`` are queries at one and the same step: they add up there.

        Raises
        ------
        InputError
            An event without pure differential privacy, such as Gaussian noise.
        LeakageBudgetError
            The budgets are refused; then none of the steps is spent.
        """
        return self.spend_all([epsilon_of(event)] * _whole(count, "count"))

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
        charging.end()

    def _worst(self) -> tuple[float, int, str | None]:
        with self._lock:
            worst = [(*history.worst(), user.name) for history, user in zip(self._histories, self._users, strict=True)]
        return max(worst, key=operator.itemgetter(0))

    def __copy__(self) -> Self:
        """An accountant of its own, with the same past."""
        with self._lock:
            made = type(self).__new__(type(self))
            made.__setstate__(self.__getstate__() | {"_spent": self._spent[:], "_standings": list(self._standings)})
            made._histories = [History(user.past, user.future, made._spent) for user in made._users]
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def _admitted(self, epsilon: float, last: bool) -> float:
        """`epsilon` as a float, if it may be spent."""
        try:
            budget = float(epsilon)
        except (TypeError, ValueError):
            raise BudgetError(f"expected epsilon to be a number of nats, got {epsilon!r}") from None
        if not 0.0 <= budget <= LARGEST:
            raise BudgetError(f"expected epsilon from 0 to {LARGEST:g} nats, got {epsilon!r}")
        if self._over:
            raise BudgetError(f"step {len(self) - 1} was declared the last, and used what later ones would need")
        if self._horizon is not None and len(self) >= self._horizon:
            raise BudgetError(f"all {self._horizon} steps of the horizon are over; nothing may follow")
        if self._alpha is not None and budget > 0.0:
            largest, number = self._largest(self._standings, last)
            if budget > largest:
                raise self._refusal(budget, largest, number, last)
        return budget

    def _refusal(self, budget: float, largest: float, number: int, last: bool) -> LeakageBudgetError:
        """Why `budget` is refused; `number` is that of the user who decides."""
        assert self._alpha is not None
        final = last or self._horizon == len(self) + 1
        leakage, time = self._histories[number].worst_with(budget, 0.0 if final else self._reserve.arriving[number])
        name = self._users[number].name
        advice = f"the largest epsilon admitted now is {largest:.10g}"
        if not final and self._reserve.epsilon > 0.0:
            most = self._largest(self._standings, last=True)[0]
            advice += f" ({most:.10g} with last=True, if no step follows)"
        about = "" if name is None else f" about {name!r}"
        kept = (
            ""
            if final or not self._reserve.epsilon
            else f", with the {self._reserve.epsilon:.6g} a step kept for later"
        )
        return LeakageBudgetError(
            f"epsilon = {budget:.10g} at step {len(self)} would leak {leakage:.10g} nats{about} at step {time}{kept}, above "
            f"alpha = {self._alpha:g}; {advice}. Nothing was spent",
            requested=budget,
            largest=largest,
            worst_time=time,
            leakage=leakage,
            alpha=self._alpha,
            user=name,
        )

    def _largest(self, standings: list[Standing], last: bool) -> tuple[float, int]:
        """The largest budget that every user's standing admits next, and the number of the user who decides."""
        assert self._alpha is not None
        final = last or self._horizon == standings[0].n_steps + 1
        kept = (0.0,) * len(self._users) if final else self._reserve.arriving
        limits = [at.room - v for at, v in zip(standings, kept, strict=True)]
        number = min(range(len(limits)), key=limits.__getitem__)
        return max(limits[number], 0.0), number

    def _admits(self, epsilons: Sequence[float], last: bool = False) -> bool:
        if self._over or (self._horizon is not None and len(self) + len(epsilons) > self._horizon):
            return False
        if self._alpha is None:
            return True
        standings = self._standings
        for step, epsilon in enumerate(epsilons, start=1):
            if epsilon > self._largest(standings, last and step == len(epsilons))[0]:
                return False
            standings = self._after(standings, epsilon)
        return True

    def _after(self, standings: list[Standing], epsilon: float) -> list[Standing]:
        assert self._alpha is not None
        return [at.after(user, self._alpha, epsilon) for user, at in zip(self._users, standings, strict=True)]


def _whole(value: int, name: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise BudgetError(f"expected {name} to be a whole number of steps, at least 1, got {value!r}")
    return number


def _checked_horizon(users: list[UserLosses], horizon: int | None) -> int | None:
    known = None if horizon is None else _whole(horizon, "horizon")
    for user in users:
        serves = user.adversary.n_steps
        if serves is not None and known is not None and serves != known:
            who = "the adversary" if user.name is None else f"adversary {user.name!r}"
            raise BudgetError(f"{who} has matrices for {serves} steps, but the horizon is {known}")
        known = known if serves is None else serves
    return known
