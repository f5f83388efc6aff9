"""The largest exact leakage so far of one user, while budgets are chosen one by one.

The largest TPL of recent steps is computed anew after every spend, when it is asked for. It needs few pairs: any other pair
is compared with the largest sum so far by the sign of one rollout. Once rollouts prove that no later likelihoods within a
ceiling of one another raise a step above the largest TPL, it is final; this is tried at every sixteenth step, so that no number
depends on when somebody asks. Likelihoods beyond the ceiling, which is at least the largest TPL, belong to later steps that
leak more than the final one.

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
from temporaldp.core.accounting.exact.arrivals import pair_values
from temporaldp.core.accounting.exact.incoming import LEAST_KEPT, Incoming, OnlineProblem, Transitions
from temporaldp.core.accounting.exact.search import COARSE
from temporaldp.core.accounting.kept_state import packed, unpacked
from temporaldp.core.accounting.protocol import Odometer
from temporaldp.core.correlation import Adversary
from temporaldp.core.kernels.chain import LARGEST_LEVEL, Chain, Items
from temporaldp.core.kernels.rollouts import upper
from temporaldp.core.kernels.roots import near_roots

NUMBERS = ("n_steps", "ceiling", "largest", "time")
"""Fields of an odometer that are saved as they are."""

FINAL = (1e-12, 1e-10, 1e-8)
"""Shares of the largest leakage, or of a nat where that is larger, by which later steps may raise final ones above it: the
first, but for steps older than twice, and four times, the memory of the correlation, where rounding hides more."""

LOOK_AHEAD = 16
"""Steps after which it is tried which ones are final. If doubled, catching up takes less time, and questions a little more."""

SAME_BUDGET = 1e-12
"""Relative difference up to which two steps count as leaking equally."""


@dataclass(slots=True, eq=False, repr=False)
class ExactOdometer(Odometer):
    """The largest TPL so far; few steps change with a further one.

    A step is final once no later steps whose forward leakage is at most a ceiling can raise it above the largest TPL.

    Parameters
    ----------
    problem : OnlineProblem
        Its level is not used.
    past : Incoming
        Incoming leakage at the next step.
    spent : array, shape (k,)
        Budgets of the steps that are not final, oldest first; the arrays below are of the same steps.
    arrived, rho : arrays, shape (k, pairs)
        Incoming leakage of each pair from the past, and ratios less 1 that steps so far roughly led to in the future.
    n_steps : int
    ceiling : float
        Bound of the forward leakage for which steps are final, in nats; at least the largest TPL.
    largest, time : float, int
        What final steps that may have the largest TPL leak at most, and the first of them.
    current : array, shape (k,), or None
        TPL of the steps that are not final where it may be the largest, in nats, upper bounds; None until it is needed.
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
        if self.current is None:
            self.current = self._largest_sums()
        best = max(self.largest, float(self.current.max(initial=0.0)))
        if self.largest >= best * (1.0 - SAME_BUDGET):
            return best, self.time
        first = int(np.argmax(self.current >= best * (1.0 - SAME_BUDGET)))
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
        self.past = self.past.after(problem, problem.backward, epsilon, self.n_steps, close=True)
        self.spent, self.current = np.append(self.spent, epsilon), None
        self.arrived, self.rho = np.concatenate((self.arrived, arrived)), np.concatenate((self.rho, 0.0 * arrived))
        if problem.forward is None or self.n_steps % LOOK_AHEAD == 0:
            self._close()

    def _keep(self, first: int) -> None:
        """Keep the steps from this one on, of those that are not final."""
        self.spent, self.arrived, self.rho = self.spent[first:], self.arrived[first:], self.rho[first:]
        self.current = None

    def _future(self, side: Transitions) -> tuple[Chain, FloatArray, Items]:
        """Rollouts into the steps that are not final, the last first; own part and past of each pair at each; and the items."""
        last, first = self.n_steps - 1, self.n_steps - len(self.spent)
        into = np.array([side.number(step) for step in range(last, first - 1, -1)], np.int64)
        epsilons, (i, j) = self.spent[::-1].copy(), self.problem.pairs
        chain = side.chain(into, np.expm1(epsilons), np.cumsum(epsilons) * (1.0 + len(epsilons) * U))
        step, pair = np.divmod(np.arange(self.arrived.size), len(i))
        return chain, (epsilons[:, None] + self.arrived[::-1]).ravel(), (0 * step, step, i[pair], j[pair])

    def _largest_sums(self) -> FloatArray:
        """TPL of the steps that are not final where it may be the largest so far; of others, less than that."""
        side = self.problem.forward
        if side is None or not self.arrived.size:
            before = self.arrived.max(axis=1, initial=0.0)
            return np.where(before > 0.0, (self.spent + before) * (1.0 + 4.0 * U), self.spent)
        (chain, own, items), rho, many = self._future(side), self.rho[::-1].ravel(), 8
        known = items[1] == 0  # nothing follows the last step
        total = np.where(known, own, -math.inf)
        most, likely = own + chain.arriving(*items[:2]), own + np.log1p(rho)
        best = max(self.largest, float(total.max()))
        chosen = np.argsort(-likely)[:many]
        while len(chosen):
            _, t, i, j = _some(items, chosen)
            total[chosen], known[chosen] = own[chosen] + pair_values(chain, t, i, j, rho[chosen]).proved, True
            best = max(best, float(total.max()))
            left = np.flatnonzero(~known & (most > best * (1.0 - 2.0 * SAME_BUDGET)))
            level = best * (1.0 - 2.0 * SAME_BUDGET) - own[left]
            bound, below, _ = upper(chain, _some(items, left), level)
            most[left] = own[left] + bound
            left, many = left[~below | (most[left] > best)], 8 * many
            chosen = left[np.argsort(-likely[left])][:many]
        return np.asarray(total.reshape(self.arrived.shape).max(axis=1)[::-1] * (1.0 + 4.0 * U))

    def _close(self) -> None:
        """Leave out the steps that are final now: no later steps raise them above the largest TPL and a share of it."""
        side, (worst, time) = self.problem.forward, self.worst()
        if side is None or not self.arrived.size:
            self.largest, self.time = worst, time
            self._keep(len(self.spent))
            return
        if worst > self.ceiling:  # seldom, for steps that are final already rest on the former ceiling
            self.ceiling = min(2.0 * worst, LARGEST_LEVEL)
        assert self.current is not None
        (chain, own, items), recent, n = self._future(side), float(self.current.max()), len(self.spent)
        # Step 0 of the second chain stands for all later steps.
        spread = np.full(n + 1, self.ceiling * (1.0 + 2.0 * FINAL[-1]) + 10.0 * FINAL[-1])
        after = side.chain(np.append(0, chain.into), np.append(math.expm1(spread[0]), chain.up), spread)
        shifted, own = (items[0], items[1] + 1, *items[2:]), own * (1.0 + 4.0 * U)
        for times, share in enumerate(FINAL):
            room = share * max(recent, 1.0)
            top = max(self.largest, recent + room)
            bound, level = upper(after, shifted, top - 0.5 * room - own)[0], top * (1.0 - 4.0 * U) - own
            final = np.all((bound <= level).reshape(self.arrived.shape), axis=1)
            done = int(np.argmin(np.append(final[::-1], False)))
            if n - done <= 2.0 * (times + 1) * side.memory + LEAST_KEPT + LOOK_AHEAD:
                break
        else:
            done = 0
        old = np.flatnonzero(items[1] >= n - done)
        level = worst * (1.0 - 2.0 * SAME_BUDGET) - own[old]
        bound, _, _ = upper(after, _some(shifted, old), level)
        if (bound > level + SAME_BUDGET * worst).any():  # one of them may be or become the worst
            self.time = time if top > self.largest * (1.0 + SAME_BUDGET) else self.time
            self.largest = top
        elif done and worst > self.largest:  # what is left out was compared with this number
            self.largest, self.time = worst, time
        # Pairs that may soon have the largest TPL. If doubled, more are found before they are asked for
        near, rho = np.flatnonzero(~upper(chain, items, 0.9 * worst - own)[1]), self.rho[::-1].ravel()
        rho[near], _ = near_roots(chain, _some(items, near), rho[near], COARSE)
        self.rho = rho.reshape(self.arrived.shape)[::-1]
        self._keep(done)


def _some(items: Items, which: IntArray) -> Items:
    user, t, i, j = items
    return user[which], t[which], i[which], j[which]
