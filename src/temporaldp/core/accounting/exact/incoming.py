"""Matrices and level of one user, which no budget changes, and the incoming leakage of the next step.

Notation
--------
t          the next step; steps before it are spent
alpha, A   the level that is satisfied, and the level up to which budgets are admitted, a little lower
K_B, K_F   incoming leakage about a pair of states from the past and from the future
c          coefficients of a rollout (`temporaldp.core.kernels.continued`)
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.progress import effort_is_over
from temporaldp.base.values import ROUNDOFF as U
from temporaldp.base.values import BoolArray, FloatArray, IntArray, compared_by_value
from temporaldp.core.accounting.exact.arrivals import pair_values, rows_of
from temporaldp.core.accounting.kept_state import packed, unpacked
from temporaldp.core.accounting.margins import FILTER_MARGIN, LARGEST_FILTER_MARGIN
from temporaldp.core.accounting.protocol import numbered
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import exactly_known
from temporaldp.core.correlation.protocol import Changing, Correlation
from temporaldp.core.kernels.chain import LARGEST_LEVEL, Chain, backward
from temporaldp.core.kernels.continued import Coefficients

LONGEST_MEMORY, DIGITS = 20_000, 30.0
"""Steps that a correlation is expected to remember, at most; and the nats by which what it remembers must have shrunk."""

KEPT, LEAST_KEPT = 2, 64
"""Steps of the past that are kept: so many times the longest rollout, and so many more. If doubled, a spend copies more."""


MANY = 256
"""Rollouts from which on it is worth looking for those that are dominated."""


def not_admitted(alpha: float, n_states: int, n_steps: float) -> float:
    """Nats by which a filter stays below its level where rollouts take up to so many steps."""
    return min(max(FILTER_MARGIN * alpha, 8.0 * backward(n_states, n_steps)), LARGEST_FILTER_MARGIN * alpha)


@compared_by_value
@dataclass(frozen=True, eq=False)
class Transitions:
    """The matrices of one direction, dense.

    Parameters
    ----------
    matrices : array, shape (k, n, n)
        Row = state at a step, column = state one step further away.
    which : int array, shape (T - 1,) or (period,), or None
        Number of the matrix of each transition, in order of time; None: constant but for the changes.
    starts : tuple of int
        Steps from which on the next matrix is valid, where the correlation changed.
    backwards : bool
        Whether it leads from a step to the one before.
    is_periodic : bool
        Whether the numbers repeat after the last one.
    """

    matrices: FloatArray
    which: IntArray | None
    starts: tuple[int, ...]
    backwards: bool
    is_periodic: bool = False

    @classmethod
    def of(cls, correlation: Correlation, *, backwards: bool) -> Self | None:
        """None for an unknown correlation."""
        if not correlation:
            return None
        known, which = list(correlation.matrices), None
        if correlation.n_steps is not None or correlation.period is not None:
            known, which = numbered(correlation.at(k) for k in range(correlation.period or len(known)))
        elif not correlation.is_constant and not isinstance(correlation, Changing):
            raise InputError(
                f"expected a number of steps for a correlation of kind {correlation.kind!r}: give a horizon"
            )
        scaled = [rows_of(exactly_known(matrix)) for matrix in known]
        rows = [one if isinstance(one, np.ndarray) else one.toarray() for one in scaled]
        starts = correlation.starts[1:] if isinstance(correlation, Changing) else ()
        return cls(np.stack(rows), which, starts, backwards, correlation.period is not None)

    def number(self, step: int) -> int:
        """Number of the matrix of the transition from a step; 0 where there is none."""
        transition = step - 1 if self.backwards else step
        if self.which is None:
            return bisect_right(self.starts, transition)
        if self.is_periodic:
            return int(self.which[transition % len(self.which)])
        return int(self.which[transition]) if 0 <= transition < len(self.which) else 0

    def at(self, step: int) -> FloatArray:
        """The matrix of the transition from a step."""
        return np.asarray(self.matrices[self.number(step)])

    def chain(self, into: IntArray, up: FloatArray, spread: FloatArray, *, infinite: bool = False) -> Chain:
        """Steps of this direction as `temporaldp.core.kernels.rollouts` takes them, the furthest first."""
        return Chain.of(self.matrices, into, up[:, None], 0.0 * up[:, None], spread, infinite=infinite)

    @property
    def memory(self) -> float:
        """Steps after which differences have shrunk to their last digits, roughly."""
        return max(self.memories)

    @cached_property
    def memories(self) -> list[float]:
        """The memory of each matrix by itself."""
        seconds = (float(np.sort(np.abs(np.linalg.eigvals(one)))[-2]) for one in self.matrices)
        return [
            LONGEST_MEMORY if second >= 1.0 else min(LONGEST_MEMORY, 1.0 - DIGITS / math.log(max(second, 1e-10)))
            for second in seconds
        ]


@dataclass(frozen=True, eq=False)
class OnlineProblem:
    """Data of one user that no spend changes.

    Parameters
    ----------
    adversary : Adversary
        With the changes of the correlation that were adopted.
    alpha : float
        The level that is satisfied, in nats.
    horizon : int or None
    backward, forward : Transitions or None
        The matrices of each direction; None where they are unknown.
    level : float
        The level up to which budgets are admitted, in nats; lower once a correlation with a longer memory is adopted.
    slack : float
        A little less than the distance of both levels at the first step, in nats: what every rollout may exceed its level by,
        also one that began before an adoption.
    """

    adversary: Adversary
    alpha: float
    horizon: int | None
    backward: Transitions | None
    forward: Transitions | None
    level: float
    slack: float

    @classmethod
    def of(cls, adversary: Adversary, alpha: float = math.inf, horizon: int | None = None) -> Self:
        """Return the problem of a level; above 300 nats, 300 are satisfied."""
        alpha, n_steps = min(alpha, LARGEST_LEVEL), adversary.n_steps or horizon
        sides = (
            Transitions.of(adversary.backward, backwards=True),
            Transitions.of(adversary.forward, backwards=False),
        )
        known = [side for side in sides if side is not None]
        if not known:
            return cls(adversary, alpha, n_steps, None, None, alpha, 0.0)
        n = known[0].matrices.shape[1]

        def apart(memory: float) -> float:
            return not_admitted(alpha, n, min(memory, LONGEST_MEMORY if n_steps is None else n_steps))

        level = alpha - apart(max(side.memory for side in known))
        first = apart(max(side.memories[0] if side.starts else side.memory for side in known))
        return cls(adversary, alpha, n_steps, *sides, level, first * (1.0 - 1e-3))

    def adopted(self, step: int, adversary: Adversary) -> OnlineProblem:
        """Return the problem with the matrices of another adversary from a step on."""
        if adversary.directions == self.adversary.current.directions:
            return self
        return OnlineProblem.of(self.adversary.changed(step, adversary), self.alpha, self.horizon)

    @cached_property
    def n(self) -> int:
        """Number of states; 0 if no correlation is known."""
        return next((side.matrices.shape[1] for side in self.sides if side is not None), 0)

    @property
    def sides(self) -> tuple[Transitions | None, Transitions | None]:
        """Both directions, backward first."""
        return self.backward, self.forward

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """All ordered pairs of different states."""
        i, j = np.nonzero(~np.eye(self.n, dtype=bool))
        return i, j

    @property
    def order(self) -> list[str | None]:
        """Hash of the numbers of each direction's matrices, in order of time; None for one that is constant but for changes.

        A saved state names matrices by number, in the order in which they first occur.
        """
        which = [None if side is None else side.which for side in self.sides]
        return [None if one is None else hashlib.sha256(one.tobytes()).hexdigest() for one in which]

    def require_order(self, order: list[str | None]) -> None:
        """Refuse a state that was saved with matrices in another order of steps: `ValueError`."""
        if order != self.order:
            raise ValueError("its matrices are in another order of steps")

    @property
    def room(self) -> float:
        """Nats of rounding with which a sign is accepted."""
        return min(0.25 * (self.alpha - self.level) * (1.0 - 1e-3), self.slack)

    def rollouts(self, side: Transitions, step: int, level: FloatArray) -> Coefficients:
        """Rollouts about every pair that leave a step, and compare K with a level each."""
        matrix, (i, j) = side.at(step), self.pairs
        return Coefficients.start(matrix[i], matrix[j], level)

    def unsealed(self, pairs: IntArray, items: Coefficients) -> tuple[IntArray, Coefficients]:
        """The pairs and rollouts that later steps within alpha may still raise above the level."""
        kept = np.flatnonzero(~(items.excess(self.alpha) <= self.slack))
        pairs, items = pairs[kept], items[kept]
        return items.undominated(pairs) if len(items) > max(MANY, 2 * len(self.pairs[0])) else (pairs, items)


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class Incoming:
    """Incoming leakage of a step for each pair of states, from the steps before it in one direction.

    Parameters
    ----------
    into : int array, shape (k + 1,)
        Number of the matrix of the transition from each step, the furthest first, and from the step itself.
    up, spread : array, shape (k,)
        The largest factor of each step's output less 1, and the log spread of the likelihoods of everything up to it. As many
        steps as the correlation remembers; what lies beyond is part of the furthest.
    leakage : array, shape (pairs,)
        In nats, from above.
    rho : array, shape (pairs,)
        Ratios less 1, roughly: where the next step's search begins.
    close : bool array, shape (pairs,)
        Where `leakage` is exact but for rounding. Most pairs are never near the level, so that a coarse bound is enough.
    depth : int
        Length of the longest rollout.
    """

    into: IntArray
    up: FloatArray
    spread: FloatArray
    leakage: FloatArray
    rho: FloatArray
    close: BoolArray
    depth: int = 0

    @classmethod
    def at_start(cls, problem: OnlineProblem, side: Transitions | None, step: int = 0) -> Incoming:
        """Return the incoming leakage of no steps: none."""
        into = np.array([0 if side is None else side.number(step)])
        m = len(problem.pairs[0])
        return cls(into, np.zeros(0), np.zeros(0), np.zeros(m), np.zeros(m), np.ones(m, bool))

    @property
    def largest(self) -> float:
        """Largest incoming leakage of any pair, in nats."""
        return float(self.leakage.max(initial=0.0))

    def chain(self, side: Transitions) -> Chain:
        """All steps, and the step itself with nothing released there."""
        return side.chain(self.into, np.append(self.up, 0.0), np.append(self.spread, self.largest))

    def after(
        self, problem: OnlineProblem, side: Transitions | None, epsilon: float, following: int, *, close: bool = False
    ) -> Incoming:
        """Incoming leakage of the step that follows in this direction, after a budget at this one."""
        if side is None:
            return self
        spread = np.append(self.spread, (epsilon + self.largest) * (1.0 + 4.0 * U))
        up, into = np.append(self.up, math.expm1(epsilon)), np.append(self.into, side.number(following))
        surplus = len(up) - KEPT * self.depth - LEAST_KEPT
        if surplus > 0:
            up, spread, into = up[surplus:], spread[surplus:], into[surplus:]
            up[0] = np.expm1(spread[0])
        moved = replace(self, into=into, up=up, spread=spread)
        if len(self.rho) > 128 or effort_is_over():
            return moved.computed(side, np.arange(len(self.rho)), close)
        return _about_few_pairs(moved, side)  # coarse bounds would not save time

    def adopted(self, problem: OnlineProblem, side: Transitions | None, step: int) -> Incoming:
        """Incoming leakage of the step through another matrix, exact to rounding."""
        if side is None:
            return self
        moved = replace(self, into=np.append(self.into[:-1], side.number(step)))
        return moved.computed(side, np.arange(len(self.rho)), True)

    def closer(self, problem: OnlineProblem, side: Transitions | None, which: IntArray) -> Incoming:
        """Compute the incoming leakage about some pairs to rounding."""
        which = which[~self.close[which]]
        return self.computed(side, which, True) if side is not None and which.size else self

    def closest(self, problem: OnlineProblem, side: Transitions | None, later: FloatArray) -> Incoming:
        """Compute those pairs to rounding that may have the largest sum with incoming leakage from later steps."""
        now = self
        while True:
            total = now.leakage + later
            best = float(total[now.close].max(initial=-math.inf))
            loose = np.flatnonzero(~now.close & (total > best))
            if not loose.size:
                return now
            # To rounding, those with the largest sums first
            now = now.closer(problem, side, loose[np.argsort(-total[loose])][:8])

    def computed(self, side: Transitions, which: IntArray, close: bool) -> Incoming:
        """Compute the incoming leakage about some pairs: `close`, to rounding."""
        i, j = np.nonzero(~np.eye(side.matrices.shape[1], dtype=bool))
        at = np.full(len(which), len(self.up))
        _, proved, found, depth = pair_values(self.chain(side), at, i[which], j[which], self.rho[which], close=close)
        leakage, rho, exact = self.leakage.copy(), self.rho.copy(), self.close.copy()
        leakage[which], rho[which], exact[which] = proved, found, close
        return replace(self, leakage=leakage, rho=rho, close=exact, depth=max(int(depth.max(initial=0)), self.depth))

    def saved(self) -> dict[str, Any]:
        """All fields as JSON values."""
        arrays = self.into, self.up, self.spread, self.leakage, self.rho, self.close
        return {"depth": self.depth, "arrays": list(map(packed, arrays))}

    @classmethod
    def restored(cls, document: dict[str, Any]) -> Incoming:
        """Return the incoming leakage that `saved` described."""
        into, up, spread, leakage, rho, close = map(unpacked, document["arrays"])
        return cls(into, up, spread, leakage, rho, close, int(document["depth"]))


@lru_cache(maxsize=64)  # the filter and the odometer of a user ask for the same
def _about_few_pairs(incoming: Incoming, side: Transitions) -> Incoming:
    return incoming.computed(side, np.arange(len(incoming.rho)), True)
