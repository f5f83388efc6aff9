"""The budgets that a level still allows, by the exact leakage of one user, while budgets are chosen one by one.

Notation
--------
t          the next step; steps before it are spent
e          a budget for step t; rho, the reserve, is what every later step may spend
alpha, A   the level that is satisfied, and the level up to which budgets are admitted, a little lower
K_B, K_F   incoming leakage about a pair of states from the past and from the future
c          coefficients of a rollout (`temporaldp.core.kernels.continued`)

e is admitted if and only if with the budgets so far, e, and rho at every later step, no TPL exceeds A. Only signs are needed:

- *The step itself:* ``K_B + e + K_F <= A`` for all pairs, K_F that of rho: a closed form.
- *Each earlier step and pair:* K_B is known, so that ``K_F <= A - e_s - K_B`` is the sign of one rollout into the future. Its
  coefficients are kept, and take one more step at each spend. Once it is proved that nothing within alpha can raise the sum
  above alpha, whatever follows, the pair is dropped.
- *Each later step and pair:* K_F is known, so that ``K_B <= A - rho - K_F`` is the sign of a rollout into the past. Its first
  steps, all with rho, are the same at every spend, and are taken beforehand.

A budget up to rho needs no check: the one before was admitted with rho after it, and leakage does not fall with a budget.

The proofs are in Theory, section 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import ROUNDOFF as U
from temporaldp.base.values import IntArray
from temporaldp.core.accounting.exact.incoming import Incoming, OnlineProblem, Transitions
from temporaldp.core.accounting.exact.reserve import Reserve, largest_close
from temporaldp.core.accounting.kept_state import packed, unpacked
from temporaldp.core.accounting.protocol import Filter
from temporaldp.core.correlation import Adversary
from temporaldp.core.kernels.chain import Chain
from temporaldp.core.kernels.continued import Coefficients, largest_budget


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
            Budget that stays admissible at every later step, in nats; 0 where matrices vary with time. If it is barely
            sustainable (`sustainable_budget`), it is reduced by a few billionths, so that there is room for rounding.
        horizon : int, optional
            Number of steps, where it is known.

        Raises
        ------
        BudgetError
            alpha does not allow the reserve over an infinite horizon.
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
        for later in (zero, self.tail.future):
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
        later = 0.0 if final else self.tail.future
        # Shares of the level by which a step, and the last one, stays below it by itself: a series rounds each of its
        # sums up, and what it proves by signs. If the second is doubled, the last step can spend a trillionth less.
        epsilon = min(most, (top - float((self.past.leakage + later).max())) - 16.0 * U * top)
        if problem.forward is not None and len(self.open):
            # Nothing follows a final step.
            alone = problem.forward.chain(np.zeros(1, np.int64), np.zeros(1), np.zeros(1)), 0.0
            ahead = alone if final else self.tail.ahead(problem, problem.forward, t)
            epsilon = _lowered(*ahead, self.open, least, epsilon, problem.room)
        following = None if final else self.tail.rollouts
        if problem.backward is not None and following is not None and len(following):
            behind = self.past.chain(problem.backward), self.past.largest
            epsilon = _lowered(*behind, following, least, epsilon, problem.room)
        return max(epsilon, least)


def _lowered(chain: Chain, incoming: float, items: Coefficients, low: float, high: float, room: float) -> float:
    """The largest budget up to `high` of the last step of a chain for which all items are proved; see `largest_budget`."""
    if high <= low or high < 0.0:
        return low
    return largest_budget(chain, items, incoming, low, high, room)
