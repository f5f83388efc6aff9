"""One direction of a correlation seen from the next step: the matrices, the steps so far, and what arrives from them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.evidence import rows_of
from temporaldp.correlation import Adversary
from temporaldp.correlation.adversary import exactly_known
from temporaldp.correlation.protocol import Correlation
from temporaldp.kernels.chain import Chain, Items
from temporaldp.kernels.rollouts import dense, solve
from temporaldp.kernels.signs import LARGEST_LEVEL, Coefficients, Path, backward, proved_below, values
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

SLACK, LARGEST_SLACK = 1e-11, 1e-9
"""Share of alpha that is not admitted, so that a step on the level can be left behind one day; and the most of it, where the
correlation remembers for so long that rounding takes more."""

USUAL_ROUNDS, CLOSE, MOST_ANTICIPATED = 40, 1e-11, 3.0
"""Newton's steps from what arrived at the step before, some ten being usual; the relative step that is the last; and by how
much a secant's step may differ from Newton's."""

COARSE, FEW = 2e-3, 300
"""The relative step that is the last where an upper bound need not be close; and pairs up to which all are computed closely."""

RAISES = (4e-12, 1e-10)
"""Shares of a root by which a proof is looked for above it."""

KEPT, LEAST_KEPT = 2, 64
"""Steps of the past that are kept: so many times the longest rollout, and so many more."""

MANY = 256
"""Rollouts from which on it is worth looking for those that others stand for."""

LONGEST_MEMORY, DIGITS = 20_000, 30.0
"""Steps that a correlation is expected to remember, at most; and the nats by which what it remembers must have shrunk."""


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """The matrices of one direction, dense.

    Parameters
    ----------
    matrices : array, shape (k, n, n)
        Row = a value at a step, column = the value one step further away.
    which : int array, shape (T - 1,), or None
        Number of the matrix of each transition, in order of time; None: one matrix, for ever.
    backwards : bool
        Whether it leads from a step to the one before.
    changes : tuple of int
        Steps from which on the next matrix is valid, where the correlation changed; `which` is None then.
    """

    matrices: FloatArray
    which: IntArray | None
    backwards: bool
    changes: tuple[int, ...] = ()

    @classmethod
    def of(cls, correlation: Correlation, *, backwards: bool) -> Self | None:
        """None for a correlation that nobody knows."""
        if not correlation:
            return None
        if correlation.is_constant:
            return cls(np.ascontiguousarray(dense(rows_of(exactly_known(correlation.at(0)))))[None], None, backwards)
        distinct = {id(matrix): matrix for matrix in correlation.matrices}
        numbers = {key: k for k, key in enumerate(distinct)}
        which = np.array([numbers[id(matrix)] for matrix in correlation.matrices], dtype=np.int64)
        return cls(np.stack([dense(rows_of(exactly_known(matrix))) for matrix in distinct.values()]), which, backwards)

    def leads_on(self, step: int) -> int:
        """Number of the matrix that leads away from a step; 0 where none does."""
        if self.which is None:
            return bisect_right(self.changes, step)
        transition = step - 1 if self.backwards else step
        return int(self.which[transition]) if 0 <= transition < len(self.which) else 0

    def changed(self, step: int, later: Way) -> Way:
        """With the one matrix of another way from a step on."""
        return replace(self, matrices=np.concatenate((self.matrices, later.matrices)), changes=(*self.changes, step))

    @property
    def memory(self) -> float:
        """Steps after which differences have shrunk to their last digits, roughly."""
        second = max(float(np.sort(np.abs(np.linalg.eigvals(one)))[-2]) for one in self.matrices)
        return LONGEST_MEMORY if second >= 1.0 else min(LONGEST_MEMORY, 1.0 - DIGITS / math.log(max(second, 1e-10)))


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What stays the same at every spend of one user.

    Parameters
    ----------
    backward, forward : Way or None
    n : int
        Number of values.
    values : two int arrays, shape (n (n - 1),)
        All ordered pairs of different values.
    n_steps : int or None
        The horizon.
    alpha : float
        The level that is held, in nats.
    level : float
        The level up to which budgets are admitted.
    """

    backward: Way | None
    forward: Way | None
    n: int
    values: tuple[IntArray, IntArray]
    n_steps: int | None
    alpha: float
    level: float

    @classmethod
    def of(cls, adversary: Adversary, alpha: float, n_steps: int | None) -> Self:
        """One user's problem at a level."""
        sides = Way.of(adversary.backward, backwards=True), Way.of(adversary.forward, backwards=False)
        known = [way for way in sides if way is not None]
        n = known[0].matrices.shape[1] if known else 0
        i, j = np.nonzero(~np.eye(n, dtype=bool))
        alpha = min(alpha, LARGEST_LEVEL)
        steps = min(max((way.memory for way in known), default=0.0), LONGEST_MEMORY if n_steps is None else n_steps)
        blur = 8.0 * float(backward(n, np.array(steps)))
        slack = min(max(SLACK * alpha, blur), LARGEST_SLACK * alpha) if known else 0.0
        return cls(*sides, n, (i, j), n_steps, alpha, alpha - slack)

    @property
    def ways(self) -> tuple[Way | None, Way | None]:
        """Both directions, backward first."""
        return self.backward, self.forward

    def changed(self, step: int, later: Problem) -> Problem:
        """With the matrices of another problem from a step on; the level stays."""
        ways = [
            None if now is None or then is None else now.changed(step, then)
            for now, then in ((self.backward, later.backward), (self.forward, later.forward))
        ]
        return replace(self, backward=ways[0], forward=ways[1])

    @property
    def slack(self) -> float:
        """Nats between both levels, a little less."""
        return (self.alpha - self.level) * (1.0 - 1e-3)

    @property
    def room(self) -> float:
        """Nats of rounding with which a sign is believed."""
        return 0.25 * self.slack

    def undominated(self, pairs: IntArray, items: Coefficients) -> tuple[IntArray, Coefficients]:
        """The items without those that the tightest one of their pair stands for.

        Where ``c <= factor c'`` everywhere, with a factor > 0, no observation brings the first above 0 before the second. The
        second then takes over the first one's rounding.
        """
        if len(items) <= max(MANY, 2 * len(self.values[0])):
            return pairs, items
        positive = np.maximum(items.c, 0.0).sum(axis=1)
        negative = positive - items.c.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            tight = np.where(negative > 0.0, positive / negative, np.inf)
        order = np.lexsort((tight, pairs))
        last = np.flatnonzero(np.diff(pairs[order], append=-1))
        best = np.zeros(len(self.values[0]), np.int64)
        best[pairs[order[last]]] = order[last]
        factor, under = _factor(items.c, items.c[best[pairs]])
        under &= np.arange(len(items)) != best[pairs]
        gone = np.flatnonzero(under)
        arrays = [one.copy() for one in items.arrays]
        onto = best[pairs[gone]]
        # The first one's c is known to its drift, and at most `factor` times the second's; of that, the sum is kept by itself.
        apart = np.abs(positive - negative - items.total) + 2.0 * (self.n + 4) * U * (positive + negative)
        drift = items.drift[gone] / factor[gone]
        taken_over = (drift + apart[onto], drift, items.depth[gone], items.weight[gone] * factor[gone])
        for at, found in enumerate(taken_over, start=2):
            np.maximum.at(arrays[at], onto, found)
        return pairs[~under], Coefficients(*arrays)[~under]


def _factor(c: FloatArray, other: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The smallest factor > 0 with ``c <= factor other``, row by row, and whether there is one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = c / other
    low = np.where(other > 0.0, ratio, 0.0).max(axis=1) * (1.0 + 4.0 * U)
    high = np.where(other < 0.0, ratio, np.inf).min(axis=1) * (1.0 - 4.0 * U)
    low = np.maximum(low, np.finfo(np.float64).tiny)
    return low, (low <= high) & ~((other == 0.0) & (c > 0.0)).any(axis=1) & (low > 1e-100) & (low < 1e100)


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """What arrives at the next step about each pair of values from the steps so far, in one direction.

    Parameters
    ----------
    path : Path or None
        The steps so far, the nearest first, as many as the correlation remembers; None before the first.
    arriving : array, shape (pairs,)
        In nats, from above.
    close : bool array, shape (pairs,)
        Where that is the exact number but for rounding.
    rho : array, shape (pairs,)
        The ratios less 1, roughly: where the next step's search begins.
    depth : int
        How far rollouts went at most.
    """

    path: Path | None
    arriving: FloatArray
    close: BoolArray
    rho: FloatArray
    depth: int

    @classmethod
    def at_start(cls, n: int) -> Self:
        """Nothing arrives from no steps."""
        m = n * (n - 1)
        return cls(None, np.zeros(m), np.ones(m, bool), np.zeros(m), 0)

    def after(self, way: Way, pair: tuple[IntArray, IntArray], step: int, epsilon: float, following: int) -> Self:
        """With a budget spent at one more step, what arrives at the step that follows in this direction."""
        h, spread = math.expm1(epsilon), (epsilon + float(self.arriving.max())) * (1.0 + 4.0 * U)
        lead = np.array([way.leads_on(step)])
        if self.path is None:
            path = Path(way.matrices, lead, np.array([h]), np.array([spread]), ends=True)
        else:
            path = self.path.after(h, spread, int(lead[0]))
        length = KEPT * self.depth + LEAST_KEPT
        if len(path.up) > length:
            path = path._replace(
                leads=path.leads[:length], up=path.up[:length], spread=path.spread[:length], ends=False
            )
        every = np.arange(len(pair[0]))
        # Of many pairs most are never close to the level.
        return replace(self, path=path)._computed(way, pair, following, every, CLOSE if len(every) <= FEW else COARSE)

    def changed(self, way: Way, pair: tuple[IntArray, IntArray], following: int) -> Self:
        """With another matrix from the step that follows on: what arrives there through it, to rounding."""
        if self.path is None:
            return self
        every = np.arange(len(pair[0]))
        moved = replace(self, path=self.path._replace(matrices=way.matrices))
        return moved._computed(way, pair, following, every, CLOSE)

    def closer(self, way: Way, pair: tuple[IntArray, IntArray], following: int, which: IntArray) -> Self:
        """With what arrives about some pairs computed to rounding."""
        which = which[~self.close[which]]
        return self._computed(way, pair, following, which, CLOSE) if which.size else self

    def _computed(
        self, way: Way, pair: tuple[IntArray, IntArray], following: int, which: IntArray, last: float
    ) -> Self:
        """With what arrives about some pairs computed, up to steps of Newton's method of a relative length."""
        assert self.path is not None
        matrix, some = way.matrices[way.leads_on(following)], (pair[0][which], pair[1][which])
        solver = self._solver(way, some, self.path, following)
        proved, found, depth = arrivals(matrix[some[0]], matrix[some[1]], self.path, self.rho[which], solver, last)
        arriving, rho, close = self.arriving.copy(), self.rho.copy(), self.close.copy()
        arriving[which], rho[which], close[which] = proved, found, last == CLOSE
        return replace(self, arriving=arriving, rho=rho, close=close, depth=max(depth, self.depth))

    @staticmethod
    def _solver(
        way: Way, pair: tuple[IntArray, IntArray], path: Path, following: int
    ) -> Callable[[IntArray], tuple[FloatArray, FloatArray]]:
        """The general method, for pairs that Newton's steps from the last roots do not settle: proved, and ratios less 1."""

        def solved(which: IntArray) -> tuple[FloatArray, FloatArray]:
            length = len(path.up)
            chain, spread = chain_of(way, path, following)
            items = Items(np.full(len(which), length), pair[0][which], pair[1][which])
            found = solve(chain, items, spread)
            return found.proved, found.rho

        return solved


def chain_of(way: Way, path: Path, following: int) -> tuple[Chain, FloatArray]:
    """The path as `temporaldp.kernels.rollouts` takes it, furthest step first, and the step that follows; and the spreads.

    What lies beyond a path without an end is one more release: its largest factor is the spread.
    """
    up, spread, leads = path.up[::-1], path.spread[::-1], path.leads[::-1]
    up, spread = np.concatenate((up, [0.0])), np.concatenate((spread, spread[-1:]))
    into = np.concatenate((leads, [way.leads_on(following)]))
    if not path.ends:
        up[0] = math.expm1(spread[0])
    return Chain(tuple(way.matrices), into, up[:, None], 0.0 * up[:, None]), spread


def arrivals(
    q: FloatArray,
    d: FloatArray,
    path: Path,
    guess: FloatArray,
    solver: Callable[[IntArray], tuple[FloatArray, FloatArray]],
    close: float = CLOSE,
) -> tuple[FloatArray, FloatArray, int]:
    """What arrives about each of m pairs, proved from above, the ratios less 1, and how deep rollouts went.

    `close` is the relative length of a step of Newton's method that is the last.
    """
    m, n = q.shape
    ceiling = float(path.spread[0]) * (1.0 + 4.0 * U)
    if ceiling <= 0.0:
        return np.zeros(m), np.zeros(m), 0
    rho, going, depth = guess.copy(), np.arange(m), 0
    fine = 2.0**-50 if close == CLOSE else 0.1 * close
    before, step_before = np.full(m, np.nan), np.full(m, np.nan)
    for _ in range(USUAL_ROUNDS):
        here = rho[going]
        scale = 1.0 / (1.0 + here)
        z = -d[going] * scale[:, None]
        c = (q[going] - d[going]) * scale[:, None] + here[:, None] * z
        value, slope, deep = values(c, z, -here * scale, path, fine * here)
        depth = max(depth, int(deep.max()))
        step = -value / slope
        # Ever more steps count on the way to the root, so that Newton's steps shrink by a factor only; the secant of the last
        # two of them, which is Newton's step times a little more or less than 1, leads further.
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = (here - before[going]) / (step_before[going] - step)
        factor = np.where((factor > 1.0 / MOST_ANTICIPATED) & (factor < MOST_ANTICIPATED), factor, 1.0)
        before[going], step_before[going] = here, step
        rho[going] = np.maximum(here + factor * step, 0.0)
        going = going[np.abs(step) > close * here]
        if not going.size:
            break
    proved, left = np.full(m, ceiling), np.arange(m)
    root = np.log1p(rho)
    blur = 3.0 * float(backward(n, np.array(depth + 1.0)))
    if going.size:
        proved[going], rho[going] = solver(going)
        left = np.setdiff1d(left, going)
    # Just above the root by sums, where they have more digits; or as far above it as rounding can hide a ratio's sign.
    small = blur > RAISES[0] * root
    tries = [(root * (1.0 + share), 0.0, small) for share in RAISES]
    if close != CLOSE:
        tries = [(root * (1.0 + share * close), 0.0, np.ones(m, bool)) for share in (4.0, 64.0)]
    tries.append((root + blur, blur, np.ones(m, bool)))
    for level, room, of in tries:
        some = left[of[left]]
        items = Coefficients.start(q[some], d[some], np.expm1(level[some]))
        sure = some[proved_below(items, path, room)]
        proved[sure] = np.minimum(level[sure] * (1.0 + 4.0 * U) + room, ceiling)
        left = np.setdiff1d(left, sure, assume_unique=True)
        if not left.size:
            return proved, rho, depth
    proved[left] = np.minimum(solver(left)[0], ceiling)
    return proved, rho, depth
