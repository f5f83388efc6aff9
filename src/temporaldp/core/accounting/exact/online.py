"""Exact leakage of one user while budgets are chosen one by one: the largest so far, and the budgets that a level still allows.

Notation
--------
t          the next step; steps before it are spent
e          a budget for step t; rho, the reserve, is what every later step may spend
alpha, A   the level that is satisfied, and the level up to which budgets are admitted, a little lower
W          the largest TPL so far
K_B, K_F   incoming leakage about a pair of states from the past and from the future
c          coefficients of a rollout (`temporaldp.core.kernels.continued`)

*Filter.* e is admitted if and only if with the budgets so far, e, and rho at every later step, no TPL exceeds A. Only signs are
needed:

- *The step itself:* ``K_B + e + K_F <= A`` for all pairs, K_F that of rho: a closed form.
- *Each earlier step and pair:* K_B is known, so that ``K_F <= A - e_s - K_B`` is the sign of one rollout into the future. Its
  coefficients are kept, and take one more step at each spend. Once it is proved that nothing within alpha can raise the sum
  above alpha any more, whatever follows, the pair is dropped.
- *Each later step and pair:* K_F is known, so that ``K_B <= A - rho - K_F`` is the sign of a rollout into the past. Its first
  steps, all with rho, are the same at every spend, and are taken beforehand.

A budget up to rho needs no check: the one before was admitted with rho after it, and leakage does not fall with a budget.

*Odometer.* TPL of recent steps is computed anew after every spend, when it is asked for. Once rollouts prove that no later
likelihoods within a ceiling of one another raise a step, it is final; this is tried at every sixteenth step, so that the
numbers do not depend on when somebody asks. Likelihoods beyond the ceiling, which is at least W, belong to later steps that
leak more than the final one.

The proofs are in Theory, section 11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import ROUNDOFF as U
from temporaldp.base.values import FloatArray, IntArray
from temporaldp.core.accounting.exact.arrivals import Releases, one_direction, pair_values
from temporaldp.core.accounting.exact.incoming import LEAST_KEPT, Incoming, OnlineProblem, Transitions
from temporaldp.core.accounting.exact.reserve import Reserve, largest_close
from temporaldp.core.accounting.exact.search import Cells, largest
from temporaldp.core.accounting.kept_state import packed, unpacked
from temporaldp.core.accounting.protocol import Filter, Leakage, Odometer
from temporaldp.core.correlation import Adversary
from temporaldp.core.kernels.chain import LARGEST_LEVEL, Chain
from temporaldp.core.kernels.continued import Coefficients, largest_budget
from temporaldp.core.kernels.rollouts import upper

NUMBERS = ("n_steps", "ceiling", "largest", "time")
"""Fields of an odometer that are saved as they are."""

FINAL = (1e-12, 1e-10, 1e-8)
"""Shares of a step's leakage, or of a nat where that is larger, by which later steps may still raise it once it is final: the
first, but for steps older than twice, and four times, the memory of the correlation, where rounding hides more."""

LOOK_AHEAD = 16
"""Steps after which it is tried which ones are final. If doubled, catching up takes less time, and questions a little more."""


SAME_BUDGET = 1e-12
"""Relative difference up to which two steps count as leaking equally."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactFilter(Filter):
    """Filter of one user by the exact leakage; a spend returns another filter.

    Parameters
    ----------
    problem : OnlineProblem
    tail : Reserve
        Leakage of the reserve.
    n_steps : int
        Number of steps so far.
    past : Incoming
        Incoming leakage of the next step, from those so far.
    pairs : int array, shape (m,)
        Pairs of states at earlier steps that later steps may still raise above the level.
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
    _largest: dict[tuple[bool, float], float] = field(default_factory=dict)

    @classmethod
    def at_start(cls, adversary: Adversary, *, alpha: float, reserve: float = 0.0, horizon: int | None = None) -> Self:
        """The filter before the first step.

        Parameters
        ----------
        adversary : Adversary
        alpha : float, > 0
            The level, in nats. Above 300 nats, 300 are satisfied.
        reserve : float
            Budget that stays admissible at every later step, in nats. If it is barely sustainable (`sustainable_budget`), it is
            reduced by a few billionths, so that there is room for rounding.
        horizon : int, optional
            Number of steps, where it is known.

        Raises
        ------
        BudgetError
            alpha does not allow the reserve over an infinite horizon, or not until the horizon where matrices vary.
        """
        problem = OnlineProblem.of(adversary, alpha, horizon)
        tail = largest_close(problem, reserve)
        if tail is None:
            raise BudgetError(
                f"expected a reserve that alpha = {alpha:g} allows at every step, got {reserve!r}; ask "
                "`sustainable_budget` for the largest, or leave it at 0"
            )
        past, nothing = Incoming.at_start(problem, problem.backward), Coefficients.none(problem.n)
        return cls(problem, tail, 0, past, np.zeros(0, np.int64), nothing)

    def adopted(self, adversary: Adversary) -> Self:
        """Return the filter with another correlation from the next step on.

        It has no reserve until `with_reserve`. Earlier steps keep their matrices, incoming leakage and rollouts.
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
        """The budget that every later step may spend, in nats: a lower bound; 0 if there is none."""
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
        """Whether a budget is proved to be admissible next. A step without a release always is."""
        if epsilon == 0.0 or (self.keeps_reserve and epsilon <= self.tail.epsilon):
            return not self.is_over
        return epsilon <= self._admitted(last, epsilon)

    def after(self, epsilon: float) -> Self:
        """The filter after one more budget, also one that is not admitted."""
        problem, t = self.problem, self.n_steps
        keeps_reserve = (self.keeps_reserve and epsilon <= self.tail.epsilon) or epsilon <= self._admitted(
            False, epsilon
        )
        # A budget that leaves no room for the reserve may still satisfy the level.
        broken = self.broken or not (keeps_reserve or epsilon == 0.0 or epsilon <= self._admitted(True, epsilon))
        now = replace(self, n_steps=t + 1, keeps_reserve=keeps_reserve, broken=broken, _largest={})
        if broken or now.is_over:
            return now
        pairs, rollouts, zero = self.pairs, self.open, np.zeros(len(problem.pairs[0]))
        if problem.forward is not None:
            new = self._new_rollouts(problem.forward, epsilon)
            moved = rollouts.advanced(epsilon, problem.forward.at(t))
            every = np.arange(len(problem.pairs[0]))
            pairs, rollouts = problem.unsealed(np.concatenate((pairs, every)), Coefficients.joined((moved, new)))
        past = self.past.after(problem, problem.backward, epsilon, t + 1)
        for later in (zero, self.tail.arriving(t + 1)):
            past = past.closest(problem, problem.backward, later)
        return replace(now, past=past, pairs=pairs, open=rollouts)

    def _new_rollouts(self, side: Transitions, epsilon: float) -> Coefficients:
        """Rollouts into the future from the next step, which ask what room a budget there leaves."""
        problem, past, t = self.problem, self.past, self.n_steps
        new = problem.rollouts(side, t, problem.level - epsilon - past.leakage)
        if past.close.all():
            return new
        loose = np.flatnonzero(~past.close & ~(new.excess(problem.alpha) <= problem.slack))
        if loose.size:
            past = past.closer(problem, problem.backward, loose)
            new = problem.rollouts(side, t, problem.level - epsilon - past.leakage)
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
        problem = OnlineProblem.of(adversary, alpha, horizon)
        problem.require_order(document["matrices"])
        tail, (pairs, *rollouts) = largest_close(problem, document["reserve"]), map(unpacked, document["open"])
        if tail is None or tail.epsilon != document["reserve"]:
            raise InputError(
                f"expected a reserve of {document['reserve']!r} to last, as it did when the state was kept"
            )
        past, n_steps = Incoming.restored(document["past"]), int(document["n_steps"])
        flags = bool(document["keeps_reserve"]), bool(document["broken"])
        return cls(problem, tail, n_steps, past, pairs, Coefficients.of(rollouts), *flags)

    def _admitted(self, last: bool, most: float = math.inf) -> float:
        """The largest budget that is admitted next, or, if that is not known, of those up to `most`; negative if none is."""
        final = last or self.problem.horizon == self.n_steps + 1
        at = final, math.inf if (final, math.inf) in self._largest else most
        if at not in self._largest:
            self._largest[at] = -1.0 if self.broken or self.is_over else self._found(*at)
        return self._largest[at]

    def _found(self, final: bool, most: float) -> float:
        """The largest budget up to `most`: what the step itself allows, lowered until all signs are proved."""
        problem, t = self.problem, self.n_steps
        # What lasts with the reserve is admitted with it at the last step too, and nothing at all may always be last.
        least = self.tail.epsilon if self.keeps_reserve else 0.0 if final else -1.0
        if problem.n < 2:
            return problem.alpha
        top = problem.alpha * (1.0 - 2.0**-40) if final else problem.level
        later = 0.0 if final else self.tail.arriving(t)
        # Shares of the level by which a step, and the last one, stays below it by itself: a series rounds each of its
        # sums up, and what it proves by signs. If the second is doubled, the last step can spend a trillionth less.
        epsilon = min(most, (top - float((self.past.leakage + later).max())) - 16.0 * U * top)
        if problem.forward is not None and len(self.open):
            # Nothing follows a final step.
            alone = problem.forward.chain(np.zeros(1, np.int64), np.zeros(1), np.zeros(1)), 0.0
            ahead = alone if final else self.tail.ahead(problem, problem.forward, t)
            epsilon = _lowered(*ahead, self.open, least, epsilon, problem.room)
        following = None if final else self.tail.later(problem, t)
        if problem.backward is not None and following is not None and len(following):
            behind = self.past.chain(problem.backward), self.past.largest
            epsilon = _lowered(*behind, following, least, epsilon, problem.room)
        return max(epsilon, least)


def _lowered(chain: Chain, incoming: float, items: Coefficients, low: float, high: float, room: float) -> float:
    """The largest budget up to `high` of the last step of a chain for which all items are proved; see `largest_budget`."""
    if high <= low or high < 0.0:
        return low
    return largest_budget(chain, items, incoming, low, high, room)


@dataclass(slots=True, eq=False, repr=False)
class ExactOdometer(Odometer):
    """BPL, FPL and TPL of every step so far, few of which change with a further step.

    A step is final once no later steps whose forward leakage is at most a ceiling can raise it.

    Parameters
    ----------
    problem : OnlineProblem
        Its level is not used.
    past : Incoming
        Incoming leakage at the next step.
    spent : array, shape (k,)
        Budgets of the steps that are not final, oldest first; the arrays below are of the same steps.
    arrived, rho : arrays, shape (k, pairs)
        Backward leakage of each pair, and ratios less 1 where the search for forward leakage begins.
    n_steps : int
    ceiling : float
        Bound of the forward leakage for which steps are final, in nats; at least the largest TPL.
    largest, time : float, int
        The largest TPL of final steps, and the first step that has it.
    final : list of arrays, shape (3, steps), or None
        BPL, FPL and TPL of final steps; None where they are not known, after a state was restored or the ceiling was exceeded.
    current : array, shape (3, k), or None
        BPL, FPL and TPL of the steps that are not final, in nats, upper bounds; None until they are needed.
    """

    problem: OnlineProblem
    past: Incoming
    spent: FloatArray
    arrived: FloatArray
    rho: FloatArray
    n_steps: int = 0
    ceiling: float = 0.0
    largest: float = 0.0
    time: int = 0
    final: list[FloatArray] | None = field(default_factory=list)
    current: FloatArray | None = None

    @classmethod
    def at_start(cls, adversary: Adversary) -> Self:
        """The state before the first step."""
        problem = OnlineProblem.of(adversary)
        past, nothing = Incoming.at_start(problem, problem.backward), np.zeros((0, len(problem.pairs[0])))
        return cls(problem, past, np.zeros(0), nothing, nothing)

    def __copy__(self) -> Self:
        return replace(self, final=None if self.final is None else list(self.final))

    def extend(self, releases: Sequence[float]) -> None:
        """Add the budgets of the next steps."""
        for epsilon in releases:
            # No step gains more than the budgets from it on.
            most = max(self.largest, float(self.arrived.max(initial=0.0)) + math.fsum(self.spent)) + epsilon
            if most <= LARGEST_LEVEL or self.worst()[0] + epsilon <= LARGEST_LEVEL:
                self._add(epsilon)
            else:  # too large for rollouts
                self.largest, self.time = self.worst()
                self.largest += epsilon
                self.final = None
                self.n_steps += 1
                self._keep(len(self.spent))

    def worst(self) -> tuple[float, int]:
        """The largest TPL so far, in nats, an upper bound, and the first step (from 0) that has it, but for rounding.

        (0, 0) before the first step. Within 3e-12 of `temporal_leakage`.
        """
        temporal = self._current()[2]
        best = max(self.largest, float(temporal.max(initial=0.0)))
        if self.largest >= best * (1.0 - SAME_BUDGET):
            return best, self.time
        first = int(np.argmax(temporal >= best * (1.0 - SAME_BUDGET)))
        return best, self.n_steps - len(self.spent) + first

    def worst_with(self, release: float) -> tuple[float, int]:
        """The largest TPL and its step if `release` were spent next; changes nothing."""
        trial = copy(self)
        trial.extend([release])
        return trial.worst()

    def adopted(self, adversary: Adversary) -> Self:
        """Return the odometer with another correlation from the next step on; steps so far keep their matrices."""
        problem = self.problem.adopted(self.n_steps, adversary)
        past = self.past.adopted(problem, problem.backward, self.n_steps)
        return replace(copy(self), problem=problem, past=past)

    def leakage(self, spent: Sequence[float]) -> Leakage | None:
        """BPL, FPL and TPL of every step so far, upper bounds; `spent` is all budgets so far.

        Within 3e-12 of `temporal_leakage`, in nats or as a share. None where the leakage of final steps is not known, or some
        step leaks more than the ceiling that they rest on.
        """
        current, has_final = self._current(), self.n_steps > len(self.spent)
        if self.final is None or (has_final and float(current[1:].max(initial=0.0)) > self.ceiling):
            return None
        self.final = [np.concatenate((*self.final, np.zeros((3, 0))), axis=1)]
        return Leakage(*np.concatenate((self.final[0], current), axis=1))

    def saved(self) -> dict[str, Any]:
        """The odometer as JSON values, without the matrices and what is final."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        arrays = [packed(one) for one in (self.spent, self.arrived, self.rho)]
        return {**numbers, "arrays": arrays, "past": self.past.saved(), "matrices": self.problem.order}

    @classmethod
    def restored(cls, document: dict[str, Any], adversary: Adversary) -> Self:
        """Undo `saved`, given the matrices of all steps."""
        problem = OnlineProblem.of(adversary)
        problem.require_order(document["matrices"])
        spent, arrived, rho = map(unpacked, document["arrays"])
        numbers = {name: document[name] for name in NUMBERS}
        past = Incoming.restored(document["past"])
        return cls(problem, past, spent, arrived, rho, **numbers, final=None)

    def _add(self, epsilon: float) -> None:
        """Add the budget of the next step."""
        problem, arrived = self.problem, self.past.leakage[None]
        self.n_steps += 1
        if problem.n < 2:
            self._close(np.full((3, 1), epsilon), self.n_steps - 1)
            return
        self.past = self.past.after(problem, problem.backward, epsilon, self.n_steps, close=True)
        self.spent, self.current = np.append(self.spent, epsilon), None
        self.arrived, self.rho = np.concatenate((self.arrived, arrived)), np.concatenate((self.rho, 0.0 * arrived))
        if problem.forward is None or self.n_steps % LOOK_AHEAD == 0:
            found, self.rho = self._computed()
            done = len(self.spent) if problem.forward is None else self._count_final(problem.forward, found)
            self._close(found[:, :done], self.n_steps - len(self.spent))
            self._keep(done)

    def _keep(self, first: int) -> None:
        """Keep the steps from this one on, of those that are not final."""
        self.spent, self.arrived, self.rho = self.spent[first:], self.arrived[first:], self.rho[first:]
        self.current = None

    def _current(self) -> FloatArray:
        """BPL, FPL and TPL of the steps that are not final, shape (3, k). A call changes no later number."""
        if self.current is None:
            self.current, _ = self._computed()
        return self.current

    def _future(self, side: Transitions) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """The steps that are not final, the last first: numbers of the matrices into each, factors, budgets, arrived."""
        last, first = self.n_steps - 1, self.n_steps - len(self.spent)
        into = np.array([side.number(step) for step in range(last, first - 1, -1)], np.int64)
        epsilons = self.spent[::-1].copy()
        return into, np.expm1(epsilons), epsilons, self.arrived[::-1].copy()

    def _computed(self) -> tuple[FloatArray, FloatArray]:
        """BPL, FPL and TPL of the steps that are not final, and the ratios less 1 where the next search begins."""
        alone = (self.spent + self.arrived.max(axis=1, initial=0.0)) * (1.0 + 4.0 * U)
        side, rho = self.problem.forward, self.rho[::-1].copy()
        if side is None or not len(alone):
            return np.stack((alone, self.spent, alone)), self.rho
        into, up, epsilons, arrived = self._future(side)
        chain = side.chain(into, up, np.cumsum(epsilons) * (1.0 + len(epsilons) * U))
        n, (i, j) = self.problem.n, self.problem.pairs
        # Coefficients of all pairs at all steps that are not final, up to which each is computed by itself. If doubled,
        # less is compared and more is computed.
        if rho.size * n <= (1 << 14):  # all pairs of all steps, from what was found last time
            step, pair = np.divmod(np.arange(rho.size), len(i))
            values = pair_values(chain, step, i[pair], j[pair], rho.ravel())
            ahead = values.proved.reshape(rho.shape)
            forward, temporal = ahead.max(axis=1), (arrived + ahead).max(axis=1)
            found = np.stack((alone[::-1], epsilons + forward, epsilons + temporal)) * (1.0 + 4.0 * U)
            return found[:, ::-1], values.rho.reshape(rho.shape)[::-1]
        releases = Releases(epsilons[:, None], 0.0 * epsilons[:, None])
        future = one_direction(chain, releases, chain.spreads, np.ones((1, 1), np.int64))
        extra = np.full((len(into), n * n), -np.inf)
        extra[:, i * n + j] = arrived
        every, zero = np.arange(len(into)), np.zeros(len(into), np.int64)
        likely = np.stack((extra.argmax(axis=1), future.largest.pairs[0]), axis=1)
        cells = Cells(zero, every[None], releases.lift, releases.drop, np.full(len(into), np.inf), likely, extra)
        temporal = largest([future.side], cells).proved
        return np.stack((alone, future.largest.proved[0][::-1], temporal[::-1])), rho[::-1]

    def _count_final(self, side: Transitions, found: FloatArray) -> int:
        """Number of steps, the oldest first, that are final now; by how much later ones may still raise them is added."""
        into, up, epsilons, arrived = self._future(side)
        forward, temporal = found[1, ::-1].copy(), found[2, ::-1].copy()
        needed = max(float(found[1:].max()), self.largest)
        if needed > self.ceiling:  # seldom, for steps that are final already rest on the former ceiling
            self.ceiling = min(2.0 * needed, LARGEST_LEVEL)
            self.final = None if self.n_steps > len(into) else self.final
        spread = np.full(len(into) + 1, self.ceiling * (1.0 + 2.0 * FINAL[-1]) + 10.0 * FINAL[-1])
        chain = side.chain(np.append(0, into), np.append(math.expm1(spread[0]), up), spread)
        for times, share in enumerate(FINAL):
            done = self._n_final(chain, epsilons, arrived, forward, temporal, share)
            if len(into) - done <= 2.0 * (times + 1) * side.memory + LEAST_KEPT + LOOK_AHEAD:
                found[1:, :done] += share * np.maximum(found[1:, :done], 1.0)
                return done
        return 0

    def _n_final(
        self,
        chain: Chain,
        epsilons: FloatArray,
        arrived: FloatArray,
        forward: FloatArray,
        temporal: FloatArray,
        share: float,
    ) -> int:
        """Number of steps, from the end of a chain on, whose FPL and TPL no later steps raise by more than a share of them.

        Or of a nat, where they are less than one. Step 0 of the chain stands for all later steps.
        """
        room = 0.5 * share * np.maximum(forward, 1.0)
        level = np.minimum((forward + room - epsilons)[:, None], (temporal + room - epsilons)[:, None] - arrived)
        n_steps, n_pairs = arrived.shape
        t, (i, j) = np.repeat(np.arange(1, n_steps + 1), n_pairs), (np.tile(one, n_steps) for one in self.problem.pairs)
        bound = upper(chain, (0 * t, t, i, j), level.ravel())[0].reshape(level.shape)
        final = np.all((level >= 0.0) & (bound <= level + room[:, None]), axis=1)
        return int(np.argmin(np.append(final[::-1], False)))

    def _close(self, values: FloatArray, first: int) -> None:
        """Take note of final steps, of which the oldest has this number."""
        best = float(values[2].max(initial=0.0))
        if best > self.largest * (1.0 + SAME_BUDGET):
            self.time = first + int(np.argmax(values[2] >= best * (1.0 - SAME_BUDGET)))
        self.largest = max(self.largest, best)
        if self.final is not None:
            self.final.append(values)
