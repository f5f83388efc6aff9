"""What stays the same while one user's budgets are chosen: the matrices, the level, and what a reserve leaks after them.

Notation
--------
t          the next step; steps before it are spent
rho        the reserve: a budget for every later step
alpha, A   the level that is satisfied, and the level up to which budgets are admitted, a little lower
K_B, K_F   incoming leakage about a pair of states from the past and from the future
c          coefficients of a rollout (`temporaldp.kernels.signs`)
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.arrivals import rows_of
from temporaldp.accounting.kept_state import packed, unpacked
from temporaldp.correlation import Adversary
from temporaldp.correlation.adversary import exactly_known, known_at
from temporaldp.correlation.timeline import Timeline
from temporaldp.kernels.kernels import spread
from temporaldp.kernels.signs import LARGEST_LEVEL, Coefficients, backward
from temporaldp.values import ROUNDOFF as U

if TYPE_CHECKING:
    from temporaldp.kernels.exact import Chain

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

SLACK, LARGEST_SLACK = 1e-11, 1e-9
"""Share of alpha that is not admitted, so that no later step need look at a step that reached the level; and the most of it,
where the correlation remembers for so long that rounding takes more. If doubled, rollouts are kept for a few steps less."""

LONGEST_MEMORY, DIGITS = 20_000, 30.0
"""Steps that a correlation is expected to remember, at most; and the nats by which what it remembers must have shrunk."""

KEPT, LEAST_KEPT = 2, 64
"""Steps of the past that are kept: so many times the longest rollout, and so many more. If doubled, a spend copies more."""

MOST_AT_ONCE = 8
"""Pairs that are computed to rounding at once, those first about which most arrives."""

USUAL_DEPTH = 100
"""Steps of all rollouts about a pair together, about, for the choice of threads."""

MANY = 256
"""Rollouts from which on it is worth looking for those that are dominated."""

GIVEN_UP = (0.0, *(1e-11 * 4.0**k for k in range(9)))
"""Shares of a reserve that are given up, one after the other, until it lasts with room for rounding; the last is 7e-7."""

HOPELESS = 1e-3
"""Share by which the level may be exceeded at most for that to be tried."""

MOST_ENTRIES = 1 << 26
"""Entries of coefficients that the search for a reserve over an infinite horizon advances before it is given up: a second or
two. If doubled, a few more chains that hardly forget have a reserve."""


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """The matrices of one direction, dense.

    Parameters
    ----------
    matrices : array, shape (k, n, n)
        Row = state at a step, column = state one step further away.
    which : int array, shape (T - 1,), or None
        Number of the matrix of each transition, in order of time; None: constant but for the changes.
    starts : tuple of int
        Steps from which on the next matrix is valid, where the correlation changed.
    backwards : bool
        Whether it leads from a step to the one before.
    """

    matrices: FloatArray
    which: IntArray | None
    starts: tuple[int, ...]
    backwards: bool

    @classmethod
    def of(cls, timeline: Timeline, side: str) -> Self | None:
        """None for an unknown correlation."""
        known = [getattr(adversary, side) for adversary in timeline.known]
        which, backwards = None, side == "backward"
        if known[0] is None:
            return None
        if isinstance(known[0], tuple):
            distinct = {id(matrix): matrix for matrix in known[0]}
            numbers = {key: k for k, key in enumerate(distinct)}
            which = np.array([numbers[id(matrix)] for matrix in known[0]], dtype=np.int64)
            known = [exactly_known(matrix) for matrix in distinct.values()]
        scaled = [rows_of(known_at(matrix, 0)) for matrix in known]
        rows = [one if isinstance(one, np.ndarray) else one.toarray() for one in scaled]
        return cls(np.stack(rows), which, timeline.starts[1:], backwards)

    def number(self, step: int) -> int:
        """Number of the matrix that leads away from a step; 0 where none does."""
        if self.which is None:
            return bisect_right(self.starts, step)
        transition = step - 1 if self.backwards else step
        return int(self.which[transition]) if 0 <= transition < len(self.which) else 0

    def at(self, step: int) -> FloatArray:
        """The matrix that leads away from a step."""
        found: FloatArray = self.matrices[self.number(step)]
        return found

    def chain(self, into: IntArray, up: FloatArray, spread: FloatArray, *, endless: bool = False) -> Chain:
        """Steps of this direction as `temporaldp.kernels.exact` takes them, the furthest first."""
        from temporaldp.kernels.exact import Chain, rounding

        none, n = np.zeros(0, np.int64), self.matrices.shape[1]
        factors = np.stack((up, 0.0 * up), axis=1)[:, :, None]
        spreads = np.stack((spread, np.exp(spread), np.expm1(spread)), axis=1)
        return Chain(self.matrices.ravel(), none, none, n, np.array(into), factors, spreads, endless, True, rounding(n))

    @property
    def memory(self) -> float:
        """Steps after which differences have shrunk to their last digits, roughly."""
        second = max(float(np.sort(np.abs(np.linalg.eigvals(one)))[-2]) for one in self.matrices)
        return LONGEST_MEMORY if second >= 1.0 else min(LONGEST_MEMORY, 1.0 - DIGITS / math.log(max(second, 1e-10)))


@dataclass(frozen=True, eq=False)
class Problem:
    """What stays the same at every spend of one user.

    Parameters
    ----------
    timeline : Timeline
    alpha : float
        The level that is satisfied, in nats. Above 300 nats, 300 are.
    horizon : int or None
    """

    timeline: Timeline
    alpha: float = math.inf
    horizon: int | None = None
    backward: Transitions | None = field(init=False)
    forward: Transitions | None = field(init=False)
    level: float = field(init=False)

    def __post_init__(self) -> None:
        alpha = min(self.alpha, LARGEST_LEVEL)
        sides = [Transitions.of(self.timeline, side) for side in ("backward", "forward")]
        # The level stays where it was at the first step, whatever correlation is adopted.
        first = [Transitions.of(Timeline((0,), self.timeline.known[:1]), side) for side in ("backward", "forward")]
        memory = max((side.memory for side in first if side is not None), default=0.0)
        n_steps = self.timeline.known[0].n_steps or self.horizon
        steps = np.array(min(memory, LONGEST_MEMORY if n_steps is None else n_steps))
        n = next((side.matrices.shape[1] for side in sides if side is not None), 0)
        blur = 8.0 * float(backward(n, steps))
        slack = min(max(SLACK * alpha, blur), LARGEST_SLACK * alpha) if n else 0.0
        made = {"backward": sides[0], "forward": sides[1], "alpha": alpha, "horizon": n_steps, "level": alpha - slack}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def adopted(self, step: int, adversary: Adversary) -> Problem:
        """With the matrices of another adversary from a step on; the level stays."""
        if adversary is self.timeline.current:
            return self
        return Problem(self.timeline.changed(step, adversary), self.alpha, self.horizon)

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
            raise ValueError("its matrices stand in another order of steps")

    @property
    def slack(self) -> float:
        """Nats between both levels, a little less."""
        return (self.alpha - self.level) * (1.0 - 1e-3)

    @property
    def room(self) -> float:
        """Nats of rounding with which a sign is accepted."""
        return 0.25 * self.slack

    def rollouts(self, side: Transitions, step: int, level: FloatArray) -> Coefficients:
        """Rollouts about every pair that leave a step, and compare K with a level each."""
        matrix, (i, j) = side.at(step), self.pairs
        return Coefficients.start(matrix[i], matrix[j], level)

    def unsealed(self, pairs: IntArray, items: Coefficients) -> tuple[IntArray, Coefficients]:
        """The pairs and rollouts that what follows within alpha may still bring above the level."""
        kept = np.flatnonzero(~(items.excess(self.alpha) <= self.slack))
        pairs, items = pairs[kept], items[kept]
        return items.undominated(pairs) if len(items) > max(MANY, 2 * len(self.pairs[0])) else (pairs, items)


@dataclass(frozen=True, slots=True, eq=False)
class Incoming:
    """What arrives at a step about each pair of states from the steps before it in one direction.

    Parameters
    ----------
    into : int array, shape (k + 1,)
        Number of the matrix that leads away from each step, the furthest first, and from the step itself.
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
    def at_start(cls, problem: Problem, side: Transitions | None, step: int = 0) -> Self:
        """Nothing arrives from no steps."""
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
        self, problem: Problem, side: Transitions | None, epsilon: float, following: int, *, close: bool = False
    ) -> Self:
        """What arrives at the step that follows in this direction, after a budget at this one."""
        if side is None:
            return self
        spread = np.append(self.spread, (epsilon + self.largest) * (1.0 + 4.0 * U))
        up, into = np.append(self.up, math.expm1(epsilon)), np.append(self.into, side.number(following))
        surplus = len(up) - KEPT * self.depth - LEAST_KEPT
        if surplus > 0:
            up, spread, into = up[surplus:], spread[surplus:], into[surplus:]
            up[0] = np.expm1(spread[0])
        moved = replace(self, into=into, up=up, spread=spread)
        return moved._computed(problem, side, np.arange(len(self.rho)), close)

    def adopted(self, problem: Problem, side: Transitions | None, step: int) -> Self:
        """What arrives at the step through another matrix, to rounding."""
        if side is None:
            return self
        moved = replace(self, into=np.append(self.into[:-1], side.number(step)))
        return moved._computed(problem, side, np.arange(len(self.rho)), True)

    def closer(self, problem: Problem, side: Transitions | None, which: IntArray) -> Self:
        """With what arrives about some pairs computed to rounding."""
        which = which[~self.close[which]]
        return self._computed(problem, side, which, True) if side is not None and which.size else self

    def closest(self, problem: Problem, side: Transitions | None, later: FloatArray) -> Self:
        """With those pairs computed to rounding that may have the largest sum with what arrives later."""
        now = self
        while True:
            total = now.leakage + later
            best = float(total[now.close].max(initial=-math.inf))
            loose = np.flatnonzero(~now.close & (total > best))
            if not loose.size:
                return now
            now = now.closer(problem, side, loose[np.argsort(-total[loose])][:MOST_AT_ONCE])

    def _computed(self, problem: Problem, side: Transitions, which: IntArray, close: bool) -> Self:
        i, j = problem.pairs
        at = np.full(len(which), len(self.up))
        proved, found, depth = pair_values(self.chain(side), at, (i[which], j[which]), self.rho[which], close=close)
        leakage, rho, exact = self.leakage.copy(), self.rho.copy(), self.close.copy()
        leakage[which], rho[which], exact[which] = proved, found, close
        return replace(self, leakage=leakage, rho=rho, close=exact, depth=max(depth, self.depth))

    def saved(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {"depth": self.depth, "arrays": [packed(getattr(self, name)) for name in self.__slots__[:-1]]}

    @classmethod
    def restored(cls, document: dict[str, Any]) -> Self:
        """Undo `saved`."""
        into, up, spread, leakage, rho, close = map(unpacked, document["arrays"])
        return cls(into, up, spread, leakage, rho, close, int(document["depth"]))


def pair_values(
    chain: Chain, steps: IntArray, pairs: tuple[IntArray, IntArray], guess: FloatArray, *, close: bool = True
) -> tuple[FloatArray, FloatArray, int]:
    """Incoming leakage of pairs at steps of a chain, from above, the ratios less 1, and the depth of the deepest rollout.

    To rounding, or within some thousandths of it.
    """
    from temporaldp.kernels.compiled import signs

    proved, rho = np.zeros(len(steps)), np.zeros(len(steps))

    def fill(first: int, last: int) -> int:
        some = slice(first, last)
        i, j = pairs[0][some], pairs[1][some]
        return int(signs.pair_values(chain, steps[some], i, j, guess[some], close, proved[some], rho[some]))

    depth = max(spread(fill, len(steps), step=1, work=USUAL_DEPTH * len(steps) * chain.n**2))
    return proved, rho, depth


@dataclass(frozen=True, slots=True, eq=False)
class Reserve:
    """The same budget at every later step, over an infinite horizon or up to a finite one, and what it leaks.

    Parameters
    ----------
    epsilon : float
        Budget of each step, in nats.
    future : array, shape (1, pairs) or (T, pairs)
        What arrives from the reserve at every step, or at each.
    rollouts : Coefficients or None
        Over an infinite horizon, rollouts into the past from all later steps that what lies there may bring above the level.
    reach : int
        Over a finite horizon, number of later steps with such rollouts, at most.
    kept : int
        Over a finite horizon, number of later steps that the correlation remembers.
    """

    epsilon: float
    future: FloatArray
    rollouts: Coefficients | None = None
    reach: int = 0
    kept: int = 0

    def arriving(self, t: int) -> FloatArray:
        """What arrives at step t about each pair, in nats, from above."""
        found: FloatArray = self.future[min(t, len(self.future) - 1)]
        return found

    def ahead(self, problem: Problem, t: int) -> tuple[Chain, float]:
        """The steps after t, the furthest first, then t with nothing released there; and what arrives from them at t."""
        side, largest = problem.forward, self.future.max(axis=1, initial=0.0)
        assert side is not None
        if self.epsilon == 0.0:
            return side.chain(np.array([side.number(t)]), np.zeros(1), np.zeros(1)), 0.0
        if len(self.future) == 1:
            number, both = side.number(t), np.array([math.expm1(self.epsilon), 0.0])
            spread = np.array([self._spread(problem, largest[0]), 0.0])
            return side.chain(np.array([number, number]), both, spread, endless=True), float(largest[0])
        last = min(len(self.future) - 1, t + self.kept)
        steps = range(last, t, -1)
        into = np.array([side.number(s) for s in (*steps, t)])
        spread = np.array([*(self._spread(problem, largest[s]) for s in steps), 0.0])
        up = np.append(np.full(len(steps), math.expm1(self.epsilon)), 0.0)
        if last < len(self.future) - 1:
            up[0] = np.expm1(spread[0])
        return side.chain(into, up, spread), float(largest[t])

    def _spread(self, problem: Problem, largest: float) -> float:
        return min((self.epsilon + largest) * (1.0 + 4.0 * U), problem.alpha)

    def later(self, problem: Problem, t: int) -> Coefficients | None:
        """Rollouts into the past from all later steps, come to step t, that what lies there may bring above the level."""
        if self.reach:
            return _from_later(problem, self, min(len(self.future) - 1, t + self.reach), t)[0]
        return self.rollouts


def largest_close(problem: Problem, reserve: float) -> Reserve | None:
    """A reserve, or one smaller by some billionths, with what it leaks by itself; None if the level does not allow it."""
    if reserve > problem.level:
        return None
    if reserve <= 0.0 or problem.n < 2:
        return Reserve(max(reserve, 0.0), np.zeros((1, len(problem.pairs[0]))))
    make = _infinite if all(side is None or side.which is None for side in problem.sides) else _finite
    for share in GIVEN_UP:
        found = make(problem, reserve * (1.0 - share))
        if not isinstance(found, float):
            return found
        if found > problem.alpha * (1.0 + HOPELESS):
            return None
    return None


def _infinite(problem: Problem, epsilon: float) -> Reserve | float:
    """The reserve over an infinite horizon; or what it leaks, if that is too much."""
    sides, steps = [], np.zeros(len(problem.pairs[0]), np.int64)
    for side in problem.sides:
        found = np.zeros(len(steps))
        if side is not None:
            # Suppose that no horizon's leakage exceeds alpha: what is proved then proves it (docs/theory.md, Proposition 12).
            last, up = np.array([len(side.matrices) - 1]), np.array([math.expm1(epsilon)])
            chain = side.chain(last, up, np.array([problem.alpha]), endless=True)
            found = pair_values(chain, steps, problem.pairs, np.full(len(steps), up[0]))[0]
        sides.append(found)
    past, future = sides
    worst = float((past + future).max()) + epsilon
    if not worst <= problem.level - problem.slack:
        return worst
    rollouts = _endless_rollouts(problem, epsilon, problem.level - epsilon - future)
    # Where rollouts come to no end, a billionth less would not end them.
    return math.inf if rollouts is None else Reserve(epsilon, future[None], rollouts)


def _endless_rollouts(problem: Problem, epsilon: float, level: FloatArray) -> Coefficients | None:
    """Rollouts into the past from every later step, through steps with the reserve; None if there is no end of them."""
    side = problem.backward
    if side is None:
        return Coefficients.none(problem.n)
    last = side.starts[-1] if side.starts else 0
    pairs, items = np.arange(len(level)), problem.rollouts(side, last, level)
    kept = [(pairs[:0], items[:0])]
    work = 0
    while work <= MOST_ENTRIES:
        pairs, items = problem.unsealed(pairs, items)
        kept.append((pairs, items))
        if not len(items) or len(kept) > MANY:
            numbers, parts = zip(*kept, strict=True)
            kept = [problem.unsealed(np.concatenate(numbers), Coefficients.joined(parts))]
        if not len(items):
            return kept[0][1]
        items = items.advanced(epsilon, side.at(last))
        work += items.c.size * problem.n + 1000 * problem.n
    return None


def _finite(problem: Problem, epsilon: float) -> Reserve | float:
    """The reserve until the matrices end; or what it leaks, if that is too much."""
    n_steps = problem.horizon
    assert n_steps is not None
    side = problem.forward
    ahead = [Incoming.at_start(problem, side, n_steps - 1)]
    for step in range(n_steps - 1, 0, -1):
        ahead.append(ahead[-1].after(problem, side, epsilon, step - 1, close=True))
    future = np.array([one.leakage for one in reversed(ahead)])
    past, worst = Incoming.at_start(problem, problem.backward), 0.0
    for step in range(n_steps):
        worst = max(worst, float((past.leakage + future[step]).max()) + epsilon)
        past = past.after(problem, problem.backward, epsilon, step + 1, close=True)
    if not worst <= problem.level - problem.slack:
        return worst
    found = Reserve(epsilon, future, kept=KEPT * ahead[-1].depth + LEAST_KEPT)
    if problem.backward is None:
        return found
    return replace(found, reach=_from_later(problem, found, n_steps - 1, 0)[1])


def _from_later(problem: Problem, reserve: Reserve, last: int, step: int) -> tuple[Coefficients, int]:
    """Rollouts into the past from the steps up to `last`, come to `step`; and how far the furthest of them came anywhere."""
    side = problem.backward
    assert side is not None
    numbers, items, reach = np.zeros(0, np.int64), Coefficients.none(problem.n), 0
    every = np.arange(len(problem.pairs[0]))
    for s in range(last, step, -1):
        new = problem.rollouts(side, s, problem.level - reserve.epsilon - reserve.arriving(s))
        items = Coefficients.joined((items, new))
        # Numbers tell steps apart, so that no rollout is dominated by one from another step.
        numbers = np.concatenate((numbers, s * len(every) + every))
        kept = np.flatnonzero(~(items.excess(problem.alpha) <= problem.slack))
        numbers, items = numbers[kept], items[kept]
        reach = max(reach, int(numbers.max(initial=0)) // len(every) - (s - 1))
        if s > step + 1:
            items = items.advanced(reserve.epsilon, side.at(s - 1))
    return items, reach
