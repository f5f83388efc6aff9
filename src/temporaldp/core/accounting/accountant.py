"""The online accountant: the leakage so far, and the budgets that are still admitted."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from copy import copy
from types import TracebackType
from typing import Any, Self

from temporaldp.base.display import bound
from temporaldp.base.errors import BudgetError
from temporaldp.base.values import REPLACE_ONE, FloatArray, checked_relation, plural, positive, read_only, whole_number
from temporaldp.core.accounting import accounting_blocks
from temporaldp.core.accounting.account import Account, checked_horizon, checked_reserve
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.protocol import Accounting, budgets, listed, require_method
from temporaldp.core.accounting.series import LeakageSeries, series_of, temporal_leakage
from temporaldp.core.correlation import Adversaries, Population


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
        budget is sustainable); with a horizon 0: follow a plan (`replan`), or early steps can use up the level.
    accounting : Accounting
        As for `temporal_leakage`. `ApproximateDP` accounts for mechanisms, by one privacy curve on the grid of the first one.
    neighboring_relation : {"replace_one"}
        Also dp-accounting's ``NeighboringRelation.REPLACE_ONE``.

    Raises
    ------
    BudgetError
        alpha, horizon or reserve are not admissible, or alpha is given under approximate DP.
    InputError
        Another neighbouring relation, or a method that does not apply to these matrices.

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
        checked_relation(neighboring_relation)
        level = None if alpha is None else positive(alpha, "alpha")
        population = Population.of(adversary)
        steps = checked_horizon(population, horizon)
        self._lock = threading.RLock()
        counts_only = level is None and accounting.is_exact
        self._account = Account(
            population if steps is None and counts_only else population.counted_over(steps),
            accounting,
            alpha=level,
            horizon=steps,
            asked_reserve=checked_reserve(reserve, level),
        )
        self._account.methods()  # refuses matrices that the method cannot account for
        if reserve is not None or steps is not None or self._account.delta or not accounting.allows_any_level:
            # Refuses what cannot be satisfied. Otherwise the largest reserve is computed when it is needed.
            _ = self._account.last_allowed

    @property
    def alpha(self) -> float | None:
        """The level that is satisfied at every step, in nats; None for an odometer."""
        return self._account.alpha

    @property
    def accounting(self) -> Accounting[Any, Any]:
        """The method by which leakage is counted."""
        return self._account.methods()[0][0]

    @property
    def horizon(self) -> int | None:
        """Number of steps T; None if it is unknown."""
        return self._account.horizon

    @property
    def reserve(self) -> float:
        """The budget that every later step can still spend, in nats, if only admitted budgets are spent; 0 for none."""
        return self._account.reserve

    @property
    def spent(self) -> FloatArray:
        """Budget of each step, in nats: a read-only copy, shape (T,). At a delta, the epsilon of each release by itself."""
        with self._lock:
            known = tuple(self._account.spent)
        return read_only(self.accounting.promised(known) if self._account.delta else known)

    def __len__(self) -> int:
        return len(self._account)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same adversaries, level and method, and have spent the same."""
        if not isinstance(other, TemporalAccountant):
            return NotImplemented
        return self is other or self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]  # what was spent changes

    def _content(self) -> tuple[Any, ...]:
        with self._lock:
            return self._account.content

    def __repr__(self) -> str:
        kind = "odometer" if self.alpha is None else f"alpha = {bound(self.alpha)}"
        kind += f", delta = {self._account.delta:g}" if self._account.delta else ""
        steps = plural(len(self), "step") + (f" of {self.horizon}" if self.horizon else "")
        with self._lock:
            total, time, user = self._account.worst()
        where = f", worst {bound(total)} nats at step {time}" + (f" for {user!r}" if user is not None else "")
        return f"TemporalAccountant({kind}, {steps}{where if len(self) else ''})"

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
        with self._lock:
            if following is None:
                return self._account.worst()[0]
            self._account.require_steps(1)
            release = self._account.counted(following)
            return self._account.worst_with(release)

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
        with self._lock:
            if releases is not None:
                asked = self._account.listed(listed(releases, None))
            elif len(self):
                asked = list(self._account.spent)
            else:
                raise BudgetError("expected at least one step that was spent, got none: there is no leakage yet")
            population = self._account.adversaries_until(len(asked))
            known = self._account.known_leakage() if releases is None else None
        if known is None:
            return temporal_leakage(population, asked, accounting=self._account.accounting)
        return series_of(population, budgets(asked), known, self.accounting)

    def admits(self, releases: Any, *, last: bool = False) -> bool:
        """Whether releases are admitted at the next steps; parameters as for `spend`. Changes nothing.

        Raises
        ------
        BudgetError
            A release is neither a number >= 0 nor a mechanism that can be counted.
        """
        with self._lock:
            return self._account.admits(self._account.listed(releases), last)

    def check(self, releases: Any, *, last: bool = False) -> None:
        """Raise the error that `spend` would raise; parameters as for `spend`. Changes nothing."""
        with self._lock:
            self._account.require(self._account.listed(releases), last)

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
        with self._lock:
            asked = self._account.listed(releases)
            if enforce:
                self._account.require(asked, last)
            else:
                self._account.require_steps(len(asked))
            self._account.note(asked, last)
        return self

    def remaining(self, k: int = 1, *, last: bool = False) -> float:
        """Largest epsilon that is admitted at each of the next k steps, in nats; a lower bound.

        inf for an odometer, 0 once the last step is over.

        Nearly tight, except for budgets that use the level up to its last digits at many consecutive steps (planned budgets do
        not): there the directed rounding accumulates.

        Parameters
        ----------
        k : int, >= 1
        last : bool
            Whether no step follows the k-th, so that the reserve may be used there.

        Raises
        ------
        BudgetError
            k is not a number of steps, or exceeds the number of steps left.
        """
        steps = whole_number(k, "k", least=1, error=BudgetError)
        with self._lock:
            if self._account.is_over or len(self) == self.horizon:
                return 0.0
            if self.horizon is not None and len(self) + steps > self.horizon:
                raise BudgetError(
                    f"expected k <= {self.horizon - len(self)}, the steps that the horizon leaves, got {k}"
                )
            return self._account.remaining(steps, last)

    def adopt(self, adversary: Adversaries, *, both: bool = False, reserve: float | None = None) -> Self:
        """Account exactly with other matrices from the next step on; the steps so far keep theirs (Theory, section 17).

        Parameters
        ----------
        adversary : Adversary, or an iterable or mapping of them
            The correlations from the next step on. A new name may be any user; users who are not named keep the old matrices.
        both : bool
            Satisfy the level whether the correlation has changed or not.
        reserve : float, optional
            Budget that stays admissible at every later step, as of an earlier call. Default: the largest that the level allows.

        Raises
        ------
        InputError
            The accounting method is not exact, there is a horizon, or the matrices do not fit. Nothing is changed.
        BudgetError
            The level does not allow the reserve. Nothing is changed.
        """
        kept, now = checked_reserve(reserve, self.alpha), Population.of(adversary)
        with self._lock:
            if kept:
                trial = copy(self._account)
                trial.adopt(now, both=both, reserve=kept)
                trial.require_reserve()
            self._account.adopt(now, both=both, reserve=kept)
        return self

    def __enter__(self) -> Self:
        accounting_blocks.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep what was spent, also after an error: noise may have been observed."""
        accounting_blocks.end(self)

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock; what changes when something is spent is copied, so that no thread sees it half changed."""
        with self._lock:
            return {"_account": copy(self._account)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()


def account_of(accountant: TemporalAccountant) -> Account:
    """The account behind an accountant, for planners and ledgers."""
    return accountant._account


def lock_of(accountant: TemporalAccountant) -> AbstractContextManager[Any]:
    """The lock of an accountant: while a thread holds it, its calls are atomic."""
    return accountant._lock
