"""The largest exact leakage so far of one user, while budgets are chosen one by one.

TPL of recent steps is computed anew after every spend, when it is asked for. The largest one alone needs few pairs: any other
pair is compared with the largest sum so far by the sign of one rollout. Once rollouts prove that no later likelihoods within a
ceiling of one another raise a step, it is final; this is tried at every sixteenth step, so that the numbers of all steps do not
depend on when somebody asks. Likelihoods beyond the ceiling, which is at least the largest TPL, belong to later steps that leak
more than the final one.

The proofs are in Theory, section 11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from temporaldp.base.values import ROUNDOFF as U
from temporaldp.base.values import FloatArray, IntArray
from temporaldp.core.accounting.exact.arrivals import Releases, one_direction, pair_values
from temporaldp.core.accounting.exact.incoming import LEAST_KEPT, Incoming, OnlineProblem, Transitions
from temporaldp.core.accounting.exact.search import Cells, largest
from temporaldp.core.accounting.kept_state import packed, unpacked
from temporaldp.core.accounting.protocol import Odometer
from temporaldp.core.correlation import Adversary
from temporaldp.core.kernels.chain import LARGEST_LEVEL, Chain
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


@dataclass(slots=True, eq=False, repr=False)
class ExactOdometer(Odometer):
    """The largest TPL so far; few steps change with a further one.

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
    current : array, shape (k,), or None
        TPL of the steps that are not final, in nats, upper bounds; None until they are needed.
    _tried : tuple, or None
        The last budget that `worst_with` was asked for, and the odometer after it: mostly it is spent next.
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
    current: FloatArray | None = None
    _tried: tuple[float, ExactOdometer] | None = None

    @classmethod
    def at_start(cls, adversary: Adversary) -> Self:
        """The state before the first step."""
        problem = OnlineProblem.of(adversary)
        past, nothing = Incoming.at_start(problem, problem.backward), np.zeros((0, len(problem.pairs[0])))
        return cls(problem, past, np.zeros(0), nothing, nothing)

    def __copy__(self) -> Self:
        return replace(self, _tried=None)

    def extend(self, releases: Sequence[float]) -> None:
        """Add the budgets of the next steps."""
        for epsilon in releases:
            tried, self._tried = self._tried, None
            if tried is not None and tried[0] == epsilon:
                for name in self.__dataclass_fields__:
                    setattr(self, name, getattr(tried[1], name))
                continue
            # No step gains more than the budgets from it on.
            most = max(self.largest, float(self.arrived.max(initial=0.0)) + math.fsum(self.spent)) + epsilon
            if most <= LARGEST_LEVEL or self.worst()[0] + epsilon <= LARGEST_LEVEL:
                self._add(epsilon)
            else:  # too large for rollouts
                self.largest, self.time = self.worst()
                self.largest += epsilon
                self.n_steps += 1
                self._keep(len(self.spent))

    def worst(self) -> tuple[float, int]:
        """The largest TPL so far, in nats, an upper bound, and the first step (from 0) that has it, but for rounding.

        (0, 0) before the first step. Within 3e-12 of `temporal_leakage`.
        """
        temporal = self._largest_sums() if self.current is None else self.current
        best = max(self.largest, float(temporal.max(initial=0.0)))
        if self.largest >= best * (1.0 - SAME_BUDGET):
            return best, self.time
        first = int(np.argmax(temporal >= best * (1.0 - SAME_BUDGET)))
        return best, self.n_steps - len(self.spent) + first

    def worst_with(self, release: float) -> tuple[float, int]:
        """The largest TPL and its step if `release` were spent next; changes nothing."""
        trial = copy(self)
        trial.extend([release])
        self._tried = release, trial
        return trial.worst()

    def adopted(self, adversary: Adversary) -> Self:
        """Return the odometer with another correlation from the next step on; steps so far keep their matrices."""
        problem = self.problem.adopted(self.n_steps, adversary)
        past = self.past.adopted(problem, problem.backward, self.n_steps)
        return replace(copy(self), problem=problem, past=past)

    def saved(self) -> dict[str, Any]:
        """The odometer as JSON values, without the matrices."""
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
        return cls(problem, past, spent, arrived, rho, **numbers)

    def _add(self, epsilon: float) -> None:
        """Add the budget of the next step."""
        problem, arrived = self.problem, self.past.leakage[None]
        self.n_steps += 1
        if problem.n < 2:
            self._close(np.array([epsilon]), self.n_steps - 1)
            return
        self.past = self.past.after(problem, problem.backward, epsilon, self.n_steps, close=True)
        self.spent, self.current = np.append(self.spent, epsilon), None
        self.arrived, self.rho = np.concatenate((self.arrived, arrived)), np.concatenate((self.rho, 0.0 * arrived))
        if problem.forward is None or self.n_steps % LOOK_AHEAD == 0:
            found, self.rho = self._computed()
            done = len(self.spent) if problem.forward is None else self._count_final(problem.forward, found)
            self._close(found[2, :done], self.n_steps - len(self.spent))
            self._keep(done)

    def _keep(self, first: int) -> None:
        """Keep the steps from this one on, of those that are not final."""
        self.spent, self.arrived, self.rho = self.spent[first:], self.arrived[first:], self.rho[first:]
        self.current = None

    def _future(self, side: Transitions) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """The steps that are not final, the last first: numbers of the matrices into each, factors, budgets, arrived."""
        last, first = self.n_steps - 1, self.n_steps - len(self.spent)
        into = np.array([side.number(step) for step in range(last, first - 1, -1)], np.int64)
        epsilons = self.spent[::-1].copy()
        return into, np.expm1(epsilons), epsilons, self.arrived[::-1].copy()

    def _largest_sums(self) -> FloatArray:
        """TPL of the steps that are not final where it may be the largest so far; of others, less than that."""
        side = self.problem.forward
        # Coefficients of all pairs at all steps that are not final, up to which each is compared by itself
        if side is None or not 0 < self.rho.size * self.problem.n <= (1 << 17):
            self.current = self._computed()[0][2]
            return self.current
        into, up, epsilons, arrived = self._future(side)
        chain, (i, j) = side.chain(into, up, np.cumsum(epsilons) * (1.0 + len(epsilons) * U)), self.problem.pairs
        # Own part and incoming leakage of each pair at each step, the last step first, after which nothing follows
        step, pair = np.divmod(np.arange(self.rho.size), len(i))
        own, rho = (epsilons[:, None] + arrived).ravel(), self.rho[::-1].ravel()
        total, known = np.where(step == 0, own, -math.inf), step == 0
        most, likely, many = own + chain.arriving(0 * step, step), own + np.log1p(rho), 8
        best = max(self.largest, float(total.max()))
        chosen = np.argsort(-likely)[:many]
        while len(chosen):
            found = pair_values(chain, step[chosen], i[pair[chosen]], j[pair[chosen]], rho[chosen]).proved
            total[chosen], known[chosen] = own[chosen] + found, True
            best = max(best, float(total.max()))
            left = np.flatnonzero(~known & (most > best * (1.0 - 2.0 * SAME_BUDGET)))
            level = best * (1.0 - 2.0 * SAME_BUDGET) - own[left]
            bound, below, _ = upper(chain, (0 * left, step[left], i[pair[left]], j[pair[left]]), level)
            most[left] = own[left] + bound
            left, many = left[~below | (most[left] > best)], 8 * many
            chosen = left[np.argsort(-likely[left])][:many]
        return np.asarray(total.reshape(-1, len(i)).max(axis=1)[::-1] * (1.0 + 4.0 * U))

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
        spread = np.full(len(into) + 1, self.ceiling * (1.0 + 2.0 * FINAL[-1]) + 10.0 * FINAL[-1])
        chain = side.chain(np.append(0, into), np.append(math.expm1(spread[0]), up), spread)
        for times, share in enumerate(FINAL):
            done = self._n_final(chain, epsilons, arrived, forward, temporal, share)
            if len(into) - done <= 2.0 * (times + 1) * side.memory + LEAST_KEPT + LOOK_AHEAD:
                found[2, :done] += share * np.maximum(found[2, :done], 1.0)
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
        """Take note of the TPL of final steps, of which the oldest has this number."""
        best = float(values.max(initial=0.0))
        if best > self.largest * (1.0 + SAME_BUDGET):
            self.time = first + int(np.argmax(values >= best * (1.0 - SAME_BUDGET)))
        self.largest = max(self.largest, best)
