"""The exact leakage of one user while budgets are chosen one by one: the largest so far, and what a level still allows.

Notation
--------
t          the next step; steps before it are spent
e          a budget for step t; rho, the reserve, is what every later step may spend
alpha, A   the level that is satisfied, and the level up to which budgets are admitted, a little lower
W          the largest TPL so far
K_B, K_F   incoming leakage about a pair of states from the past and from the future
c          coefficients of a rollout (`temporaldp.kernels.signs`)

*Filter.* e is admitted if and only if with the budgets so far, e, and rho at every later step, no TPL exceeds A. Only signs are
needed:

- *The step itself:* ``K_B + e + K_F <= A`` for all pairs, K_F that of rho: a closed form.
- *Each earlier step and pair:* K_B is known, so that ``K_F <= A - e_s - K_B`` is the sign of one rollout into the future. Its
  coefficients are kept, and take one more step at each spend. Once it is proved that nothing within alpha can raise the sum
  above alpha any more, whatever follows, the pair is dropped.
- *Each later step and pair:* K_F is known, so that ``K_B <= A - rho - K_F`` is the sign of a rollout into the past. Its first
  steps, all with rho, are the same at every spend, and are taken beforehand.

A budget up to rho needs no check: the one before was admitted with rho after it, and leakage does not fall with a budget.

*Odometer.* For each earlier step s and each pair a rollout into the future asks whether ``K_B + e_s + K_F <= W``. Where the
sign is not proved the value is computed, W is raised if need be, and the rollout begins again at the new W. Once no likelihoods
within W of one another could raise a sum above W, no others can raise it above the leakage of the later step that has them.

The proofs are in docs/theory.md, section 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.incoming import KEPT, LEAST_KEPT, Incoming, OnlineProblem, pair_values
from temporaldp.accounting.exact.online_series import ExactSeries
from temporaldp.accounting.exact.reserve import Reserve, largest_close
from temporaldp.accounting.kept_state import packed, unpacked
from temporaldp.accounting.protocol import Filter, Leakage, Odometer
from temporaldp.correlation import Adversary
from temporaldp.errors import BudgetError, InputError
from temporaldp.kernels.exact import Chain
from temporaldp.kernels.signs import LARGEST_LEVEL, Coefficients, largest_budget
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

ROOM_FOR_SUMS, ROOM_FOR_SERIES = 16.0 * U, 2.0**-40
"""Shares of the level by which a step, and the last one, stays below it by itself: a series rounds each of its sums up, and
what it proves by signs. If the second is doubled, the last step can spend a trillionth less."""

NUMBERS = ("n_steps", "largest", "time", "timed", "depth")
"""Fields of an odometer that are saved as they are."""

ABOVE, BLURRED = 1e-12, 1e-11
"""Share of W by which rollouts ask for more than W, and to which they are believed; and the share of W up to which what
rounding hides is added to the answer, where a rollout has gone on for longer than the correlation remembers."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactFilter(Filter):
    """What a level allows one user by the exact leakage; a spend returns another filter.

    Parameters
    ----------
    problem : OnlineProblem
    tail : Reserve
        What the reserve leaks.
    n_steps : int
        Number of steps so far.
    past : Incoming
        What arrives at the next step from those so far.
    pairs : int array, shape (m,)
        Pairs of states at earlier steps that what follows may still bring above the level.
    open : Coefficients
        Their rollouts into the future, up to the next step.
    keeps_reserve : bool
        Whether the budgets so far, followed by the reserve at every later step, satisfy the level.
    broken : bool
        Whether the budgets so far may exceed it by themselves.
    """

    problem: OnlineProblem
    tail: Reserve
    n_steps: int
    past: Incoming
    pairs: IntArray
    open: Coefficients
    keeps_reserve: bool = True
    broken: bool = False
    _largest: dict[bool, float] = field(default_factory=dict)

    @classmethod
    def at_start(cls, adversary: Adversary, *, alpha: float, reserve: float = 0.0, horizon: int | None = None) -> Self:
        """Before the first step.

        Parameters
        ----------
        adversary : Adversary
        alpha : float, > 0
            The level, in nats. Above 300 nats, 300 are satisfied.
        reserve : float
            Budget that stays admissible at every later step, in nats. Where it lasts, but only just (`sustainable_budget`),
            a few billionths of it are given up, so that there is room for rounding.
        horizon : int, optional
            Number of steps, where it is known.

        Raises
        ------
        BudgetError
            alpha does not allow the reserve over an infinite horizon, or not until the horizon where matrices vary.
        """
        problem = OnlineProblem(adversary, alpha, horizon)
        tail = largest_close(problem, reserve)
        if tail is None:
            raise BudgetError(
                f"expected a reserve that alpha = {alpha:g} allows at every step, got {reserve!r}; ask "
                "`sustainable_budget` for the largest, or leave it at 0"
            )
        past, nothing = Incoming.at_start(problem, problem.backward), Coefficients.none(problem.n)
        return cls(problem, tail, 0, past, np.zeros(0, np.int64), nothing)

    def adopted(self, adversary: Adversary) -> Self:
        """With another correlation from the next step on; no reserve is kept until it is asked for (`with_reserve`).

        The steps so far keep their matrices; what arrived from them, and their rollouts, are taken over.
        """
        problem = self.problem.adopted(self.n_steps, adversary)
        past, tail = self.past.adopted(problem, problem.backward, self.n_steps), largest_close(problem, 0.0)
        assert tail is not None
        return replace(self, problem=problem, past=past, tail=tail, keeps_reserve=not self.broken, _largest={})

    def with_reserve(self, reserve: float) -> tuple[Self, float] | None:
        """Keep a budget, or one smaller by some billionths, for every later step; None if the level does not allow it."""
        tail = largest_close(self.problem, reserve)
        if tail is None or self.broken or self.is_over:
            return None
        now = replace(self, tail=tail, keeps_reserve=False, _largest={})
        return (replace(now, keeps_reserve=True), tail.epsilon) if tail.epsilon <= now.largest() else None

    @property
    def reserve(self) -> float:
        """The budget that every later step may spend, in nats: a lower bound; 0 once no longer, or where nothing is kept."""
        return self.tail.epsilon if self.keeps_reserve else 0.0

    @property
    def is_over(self) -> bool:
        """Whether all steps of the horizon are over."""
        return self.problem.horizon is not None and self.n_steps >= self.problem.horizon

    def largest(self, last: bool = False) -> float:
        """The largest budget that is admitted next, in nats: a lower bound. `last`: no step follows.

        Never less than the reserve, as long as only what was admitted was spent.
        """
        return max(self._admitted(last), 0.0)

    def admits(self, epsilon: float, last: bool = False) -> bool:
        """Whether a budget may be spent next: proved. A step that publishes nothing always may."""
        if epsilon == 0.0 or (self.keeps_reserve and epsilon <= self.tail.epsilon):
            return not self.is_over
        return epsilon <= self._admitted(last)

    def after(self, epsilon: float) -> Self:
        """After one more budget, whether it was admitted or not: what is spent is spent."""
        problem, t = self.problem, self.n_steps
        keeps_reserve = (self.keeps_reserve and epsilon <= self.tail.epsilon) or epsilon <= self._admitted(False)
        # A budget that leaves no room for the reserve may still satisfy the level.
        broken = self.broken or not (keeps_reserve or epsilon == 0.0 or epsilon <= self._admitted(True))
        now = replace(self, n_steps=t + 1, keeps_reserve=keeps_reserve, broken=broken, _largest={})
        if broken or now.is_over:
            return now
        pairs, rollouts, zero = self.pairs, self.open, np.zeros(len(problem.pairs[0]))
        if problem.forward is not None:
            new = self._new_rollouts(epsilon)
            moved = rollouts.advanced(epsilon, problem.forward.at(t))
            every = np.arange(len(problem.pairs[0]))
            pairs, rollouts = problem.unsealed(np.concatenate((pairs, every)), Coefficients.joined((moved, new)))
        past = self.past.after(problem, problem.backward, epsilon, t + 1)
        for later in (zero, self.tail.arriving(t + 1)):
            past = past.closest(problem, problem.backward, later)
        return replace(now, past=past, pairs=pairs, open=rollouts)

    def _new_rollouts(self, epsilon: float) -> Coefficients:
        """Rollouts into the future from the next step, which ask what room a budget there leaves."""
        problem, past, t = self.problem, self.past, self.n_steps
        assert problem.forward is not None
        new = problem.rollouts(problem.forward, t, problem.level - epsilon - past.leakage)
        loose = np.flatnonzero(~past.close & ~(new.excess(problem.alpha) <= problem.slack))
        if loose.size:
            past = past.closer(problem, problem.backward, loose)
            new = problem.rollouts(problem.forward, t, problem.level - epsilon - past.leakage)
        return new

    def saved(self) -> dict[str, Any]:
        """The filter as JSON values, without the matrices."""
        return {
            "matrices": self.problem.order,
            "n_steps": self.n_steps,
            "reserve": self.tail.epsilon,
            "past": self.past.saved(),
            "open": [packed(array) for array in (self.pairs, *self.open.arrays)],
            "keeps_reserve": self.keeps_reserve,
            "broken": self.broken,
        }

    @classmethod
    def restored(
        cls, document: dict[str, Any], adversary: Adversary, *, alpha: float, horizon: int | None = None
    ) -> Self:
        """Undo `saved`, given the matrices of all steps; `InputError` where the reserve no longer lasts."""
        problem = OnlineProblem(adversary, alpha, horizon)
        problem.require_order(document["matrices"])
        tail, (pairs, *rollouts) = largest_close(problem, document["reserve"]), map(unpacked, document["open"])
        if tail is None or tail.epsilon != document["reserve"]:
            raise InputError(
                f"expected a reserve of {document['reserve']!r} to last, as it did when the state was kept"
            )
        past, n_steps = Incoming.restored(document["past"]), int(document["n_steps"])
        flags = bool(document["keeps_reserve"]), bool(document["broken"])
        return cls(problem, tail, n_steps, past, pairs, Coefficients(*rollouts), *flags)

    def _admitted(self, last: bool) -> float:
        """The largest budget that is admitted next; negative if none is, not even 0 with the reserve after it."""
        final = last or self.problem.horizon == self.n_steps + 1
        if final not in self._largest:
            self._largest[final] = -1.0 if self.broken or self.is_over else self._found(final)
        return self._largest[final]

    def _found(self, final: bool) -> float:
        """The largest budget: what the step itself allows, lowered until all signs are proved."""
        problem, t = self.problem, self.n_steps
        # What lasts with the reserve is admitted with it at the last step too, and nothing at all may always be last.
        least = self.tail.epsilon if self.keeps_reserve else 0.0 if final else -1.0
        if problem.n < 2:
            return problem.alpha
        top = problem.alpha * (1.0 - ROOM_FOR_SERIES) if final else problem.level
        later = 0.0 if final else self.tail.arriving(t)
        epsilon = (top - float((self.past.leakage + later).max())) - ROOM_FOR_SUMS * top
        if problem.forward is not None and len(self.open):
            ahead = self._alone() if final else self.tail.ahead(problem, t)
            epsilon = _lowered(*ahead, self.open, least, epsilon, problem.room)
        following = None if final else self.tail.later(problem, t)
        if problem.backward is not None and following is not None and len(following):
            behind = self.past.chain(problem.backward), self.past.largest
            epsilon = _lowered(*behind, following, least, epsilon, problem.room)
        return max(epsilon, least)

    def _alone(self) -> tuple[Chain, float]:
        """The next step, which nothing follows."""
        assert self.problem.forward is not None
        return self.problem.forward.chain(np.zeros(1, np.int64), np.zeros(1), np.zeros(1)), 0.0


def _lowered(chain: Chain, incoming: float, items: Coefficients, low: float, high: float, room: float) -> float:
    """The largest budget up to `high` of the last step of a chain for which all items are proved; see `largest_budget`."""
    if high <= low or high < 0.0:
        return low
    order = np.random.default_rng(0).permutation(len(items))
    return float(largest_budget(chain, *items.arrays[:5], order, incoming, low, high, room))


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """Pairs of states at earlier steps that what follows may still bring above W; their rollouts have come to the next step.

    `arrived` is K_B of each.
    """

    step: IntArray
    pair: IntArray
    arrived: FloatArray
    rollouts: Coefficients

    @classmethod
    def none(cls, n: int) -> Self:
        """No pairs."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, np.zeros(0), Coefficients.none(n))

    def __getitem__(self, which: IntArray | BoolArray) -> Open:
        return Open(self.step[which], self.pair[which], self.arrived[which], self.rollouts[which])

    def joined(self, other: Open) -> Open:
        """The items of both."""
        return Open(
            np.concatenate((self.step, other.step)),
            np.concatenate((self.pair, other.pair)),
            np.concatenate((self.arrived, other.arrived)),
            Coefficients.joined((self.rollouts, other.rollouts)),
        )


@dataclass(slots=True, eq=False, repr=False)
class ExactOdometer(Odometer):
    """The largest exact leakage about any step of one user so far.

    Parameters
    ----------
    problem : OnlineProblem
        Its level is not used.
    past : Incoming
        What arrives at the next step from those so far.
    open : Open
    spent : array, shape (k,)
        The last budgets, the last first: as many as open rollouts and the memory of the correlation reach back.
    n_steps : int
    largest : float
        W, in nats: an upper bound, attained to rounding.
    time, timed : int, float
        The first step that has it, but for rounding, and what was found there.
    depth : int
        Length of the longest rollout into the future.
    """

    problem: OnlineProblem
    past: Incoming
    open: Open
    spent: FloatArray = field(default_factory=lambda: np.zeros(0))
    n_steps: int = 0
    largest: float = 0.0
    time: int = 0
    timed: float = 0.0
    depth: int = 0
    _series: ExactSeries | None = None

    @classmethod
    def at_start(cls, adversary: Adversary) -> Self:
        """Before the first step."""
        problem = OnlineProblem(adversary)
        return cls(problem, Incoming.at_start(problem, problem.backward), Open.none(problem.n))

    def __copy__(self) -> Self:
        return replace(self)

    def extend(self, releases: Sequence[float]) -> None:
        """Add the budgets of the next steps."""
        for epsilon in releases:
            self._spend(epsilon)

    def worst(self) -> tuple[float, int]:
        """The largest TPL so far, in nats, from above and attained to rounding, and the first step (from 0) that has it.

        (0, 0) before the first step. Within 3e-12 of `temporal_leakage`.
        """
        return self.largest * (1.0 + 2.0 * ABOVE), self.time

    def worst_with(self, release: float) -> tuple[float, int]:
        """The largest TPL and its step if `release` were spent next; changes nothing."""
        trial = replace(self)
        trial.extend([release])
        return trial.worst()

    def adopted(self, adversary: Adversary) -> Self:
        """With another correlation from the next step on; the steps so far keep their matrices."""
        problem = self.problem.adopted(self.n_steps, adversary)
        past = self.past.adopted(problem, problem.backward, self.n_steps)
        return replace(self, problem=problem, past=past, _series=None)

    def leakage(self, spent: Sequence[float]) -> Leakage | None:
        """BPL, FPL and TPL of every step so far, from above; `spent` is all budgets so far.

        Within 3e-12 of `temporal_leakage`, in nats or as a share. The first call computes all steps, later ones those that
        what was spent since may have changed. None where budgets are too large for that.
        """
        if self.largest > LARGEST_LEVEL:
            return None
        series = self._series or ExactSeries.at_start(self.problem)
        self._series = series.after(spent)
        return Leakage(*self._series.found.copy())

    def saved(self) -> dict[str, Any]:
        """The odometer as JSON values, without the matrices."""
        items = self.open.step, self.open.pair, self.open.arrived, *self.open.rollouts.arrays
        numbers = {name: getattr(self, name) for name in NUMBERS}
        arrays = {"spent": packed(self.spent), "open": [packed(array) for array in items]}
        return {**numbers, **arrays, "past": self.past.saved(), "matrices": self.problem.order}

    @classmethod
    def restored(cls, document: dict[str, Any], adversary: Adversary) -> Self:
        """Undo `saved`, given the matrices of all steps."""
        step, pair, arrived, *rollouts = map(unpacked, document["open"])
        problem = OnlineProblem(adversary)
        problem.require_order(document["matrices"])
        past, items = Incoming.restored(document["past"]), Open(step, pair, arrived, Coefficients(*rollouts))
        numbers = {name: document[name] for name in NUMBERS}
        return cls(problem, past, items, unpacked(document["spent"]), **numbers)

    @property
    def _level(self) -> float:
        return self.largest * (1.0 + ABOVE)

    @property
    def _memory(self) -> int:
        """Steps of the past that are kept beyond the first open rollout."""
        return KEPT * self.past.depth + LEAST_KEPT

    def _spend(self, epsilon: float) -> None:
        t, problem = self.n_steps, self.problem
        self.n_steps += 1
        if self.largest + epsilon > LARGEST_LEVEL:  # too large for rollouts; no step gains more than this budget
            self.largest += epsilon
            return
        if problem.n < 2:
            if epsilon > self.largest:
                self.largest, self.time = epsilon, t
            return
        self.spent = np.concatenate(([epsilon], self.spent))
        if problem.forward is not None:
            moved = self.open.rollouts.advanced(epsilon, problem.forward.at(t))
            self.open = replace(self.open, rollouts=moved)
        arriving, self.past = self.past.leakage, self.past.after(problem, problem.backward, epsilon, t + 1)
        self._raise(epsilon, arriving)
        self._drop_sealed()

    def _raise(self, epsilon: float, arriving: FloatArray) -> None:
        """Raise W by the items that may exceed it now, those of the last step too, and let all of them ask about it."""
        t, n_pairs = self.n_steps - 1, len(arriving)
        failing = ~(self.open.rollouts.excess(0.0) <= ABOVE * self.largest)
        steps = np.concatenate((self.open.step[failing], np.full(n_pairs, t)))
        pairs = np.concatenate((self.open.pair[failing], np.arange(n_pairs)))
        arrived = np.concatenate((self.open.arrived[failing], arriving))
        some = np.flatnonzero((steps < t) | (epsilon + arrived > self._level))
        if some.size:
            arrived[some] = self._arriving(steps[some], pairs[some])
            following = self._following(steps[some], pairs[some])
            total = (arrived[some] + following + self.spent[t - steps[some]]) * (1.0 + 4.0 * U)
            best = float(total.max())
            if best > self.timed * (1.0 + ABOVE):
                self.time, self.timed = int(steps[some][total >= best * (1.0 - ABOVE)].min()), best
            self.largest = max(self.largest, best)
        if self.problem.forward is not None:
            self.open = self.open[~failing].joined(self._from_start(steps, pairs, arrived))

    def _arriving(self, steps: IntArray, pairs: IntArray) -> FloatArray:
        """What arrives from the past at steps about pairs, to rounding."""
        side, t = self.problem.backward, self.n_steps - 1
        if side is None:
            return np.zeros(len(steps))
        first = max(int(steps.min()) - self._memory, t + 1 - len(self.spent))
        budgets = self.spent[t - first :: -1].copy()
        if first:  # what lies before is part of the first release; no backward leakage was above W before this release
            budgets[0] = self.largest * (1.0 + 1e-9)
        spread = np.minimum(np.cumsum(budgets), self.largest + budgets[-1]) * (1.0 + 1e-9)
        into = np.array([side.number(step) for step in range(first, t + 1)])
        chain, (i, j) = side.chain(into, np.expm1(budgets), spread), self.problem.pairs
        return pair_values(chain, steps - first, (i[pairs], j[pairs]), np.zeros(len(steps)))[0]

    def _following(self, steps: IntArray, pairs: IntArray) -> FloatArray:
        """What arrives from the future at steps about pairs, to rounding."""
        side, t = self.problem.forward, self.n_steps - 1
        if side is None:
            return np.zeros(len(steps))
        length = int((t - steps).max()) + 1
        budgets = self.spent[:length]
        # No step's forward leakage was above W before this release, and this one adds its budget.
        spread = np.minimum(np.cumsum(budgets), self.largest + budgets[0]) * (1.0 + 1e-9)
        into = np.array([side.number(t - k) for k in range(length)])
        chain, (i, j) = side.chain(into, np.expm1(budgets), spread), self.problem.pairs
        found, _, depth = pair_values(chain, t - steps, (i[pairs], j[pairs]), np.zeros(len(steps)))
        self.depth = max(self.depth, depth)
        return found

    def _from_start(self, steps: IntArray, pairs: IntArray, arrived: FloatArray) -> Open:
        """Rollouts that ask about W, from their own steps to the next one."""
        side, t = self.problem.forward, self.n_steps - 1
        assert side is not None
        i, j = self.problem.pairs
        begun = Open.none(self.problem.n)
        for s in range(int(steps.min(initial=t + 1)), t + 1):
            matrix, here, budget = side.at(s), np.flatnonzero(steps == s), float(self.spent[t - s])
            level = self._level - budget - arrived[here]
            new = Coefficients.start(matrix[i[pairs[here]]], matrix[j[pairs[here]]], level)
            moved = replace(begun, rollouts=begun.rollouts.advanced(budget, matrix))
            begun = moved.joined(Open(steps[here], pairs[here], arrived[here], new))
        return begun

    def _drop_sealed(self) -> None:
        """Drop the items that can no longer matter, and budgets that none needs."""
        above = self.open.rollouts.excess(self._level)
        sealed = above <= ABOVE * self.largest
        old = self.open.rollouts.depth > max(KEPT * self.depth, self._memory)
        blurred = ~sealed & old & (above <= BLURRED * self.largest)
        self.largest = max(self.largest, self._level + float(above[blurred].max())) if blurred.any() else self.largest
        self.open = self.open[~sealed & ~blurred]
        self.spent = self.spent[: self.n_steps - int(self.open.step.min(initial=self.n_steps)) + self._memory]
