"""The largest leakage over all pairs of states, for many users and steps at once: branch and bound on rollouts.

Notation
--------
cell      a user and a step: there the largest sum over pairs of incoming leakage from one or two sides and the step's own part
code      a pair of states (i, j) as ``i n + j``
best      what an observation attains in a cell; all other pairs are compared with a little more

Likely pairs are computed first. Any other pair is compared with the best so far: by a bound that holds at all steps, or the
sign of a rollout for several steps at once, then by the signs of rollouts from each side, which end as soon as what lies before
no longer matters. Pairs that are not proved to stay below are computed, the ones with the largest bounds first, and the others
compared again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from temporaldp.base.progress import effort_is_over, progressed
from temporaldp.base.values import ROUNDOFF as U
from temporaldp.base.values import BoolArray, FloatArray, IntArray
from temporaldp.core.kernels.chain import LARGEST_EXPONENT, Chain
from temporaldp.core.kernels.rollouts import LEVEL_SHARE, blocks, upper
from temporaldp.core.kernels.roots import CLOSE_RATIO, coarse_bounds, near_roots, values

STATIC_DEPTH, MANY_STATES = 4, 32
"""Steps of the rollouts that bound pairs at all steps at once, and states from which on they are half as many. If doubled:
fewer pairs are left, bounds take twice as long."""


STEPS, FEWEST_STEPS, CELLS = 256, 4, 4096
"""Steps that are computed at once, those of many users, and cells at once. If doubled, fewer calls; the search for a step's
value begins further away from it, and steps that have settled are noticed later."""


COARSE = 1e-3
"""Share of a pair's leakage to which one side is computed before the other side is compared with what it leaves."""


RISE = 1.0 + 2.0**-41
"""Raises a bound by more than its rounding."""

SPREAD_ROOM = 1.0 + 1e-6
"""Raises a spread before rollouts end in it, so that steps that have almost settled share one answer."""


class Side:
    """One direction: its rollouts, and what is known of every pair.

    Parameters
    ----------
    chain : Chain
    worst : Chain, optional
        The widest factors of any step, over an infinite horizon; None where matrices vary.
    static : array, shape (users, n n), optional
        Bounds of K of each pair at all steps, from `worst`; inf where there is none.
    known : array, shape (users, n n), optional
        K of each pair, roughly: its last value or its bound.
    """

    def __init__(
        self,
        chain: Chain,
        worst: Chain | None,
        static: FloatArray | None = None,
        known: FloatArray | None = None,
    ) -> None:
        self.chain, self.worst, self._static = chain, worst, static
        self.known = np.ones((len(chain.into), chain.n**2)) if known is None else known

    @property
    def static(self) -> FloatArray:
        """Bounds of K of each pair at all steps."""
        if self._static is None:
            shape = len(self.chain.into), self.chain.n**2
            self._static = np.full(shape, np.inf) if self.worst is None else static_bounds(self.worst)
            if self.worst is not None:
                fresh = self.known == 1.0
                self.known[fresh] = self._static[fresh]
        return self._static

    def of_users(self, which: IntArray) -> Side:
        """Return this side for some users alone."""
        chain, worst = (
            None if one is None else replace(one, into=one.into[which], spreads=one.spreads[which])
            for one in (self.chain, self.worst)
        )
        assert chain is not None
        return Side(chain, worst, None if self._static is None else self._static[which], self.known[which])


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of a search.

    Parameters
    ----------
    user : int array, shape (k,)
    steps : int array, shape (sides, k)
        The step as each side counts it.
    lift, drop : array, shape (k, n) or (k, 1)
        The own part of a pair is ``lift[i] - drop[j]``.
    ceiling : array, shape (k,)
        Bounds of the results that are known.
    candidates : int array, shape (k, c)
        Codes of likely pairs.
    extra : array, shape (k, n n), or None
        What else is added for each pair.
    """

    user: IntArray
    steps: IntArray
    lift: FloatArray
    drop: FloatArray
    ceiling: FloatArray
    candidates: IntArray
    extra: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.user)

    def __getitem__(self, which: slice | IntArray) -> Cells:
        return Cells(
            self.user[which], self.steps[:, which], self.lift[which], self.drop[which], self.ceiling[which],
            self.candidates[which], None if self.extra is None else self.extra[which],
        )  # fmt: skip

    def own(self, cell: IntArray, code: IntArray, n: int) -> FloatArray:
        """The part of pairs that does not come from the sides."""
        if self.lift.shape[1] == 1:
            found = (self.lift - self.drop)[cell, 0]
        else:
            found = self.lift[cell, code // n] - self.drop[cell, code % n]
        return np.asarray(found if self.extra is None else found + self.extra[cell, code])

    def every_own(self, n: int) -> FloatArray:
        """`own` of all pairs, shape (k, n n) or (k, 1)."""
        found = self.lift - self.drop
        if self.lift.shape[1] > 1:
            found = (self.lift[:, :, None] - self.drop[:, None, :]).reshape(len(self), n * n)
        return found if self.extra is None else found + self.extra


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The largest leakage of each cell, shape (k,): attained by a pair, proved for all; depths of the sides, (sides, k)."""

    attained: FloatArray
    proved: FloatArray
    pairs: IntArray
    depths: IntArray


def static_bounds(worst: Chain) -> FloatArray:
    """Bounds of each pair over an infinite horizon, from few steps, shape (users, n n); 0 for a state and itself."""
    n, users = worst.n, len(worst.into)
    last = STATIC_DEPTH if n < MANY_STATES else STATIC_DEPTH // 2
    found = np.repeat(worst.spreads, n * n, axis=1)
    found[:, :: n + 1] = 0.0
    code = np.flatnonzero(~np.eye(n, dtype=bool).ravel())
    user, code = np.repeat(np.arange(users), len(code)), np.tile(code, users)
    zero = np.zeros(len(code), np.int64)
    for some in blocks(worst, len(code)):
        at, here = user[some], code[some]
        items = at, zero[some], here // n, here % n
        rho = np.expm1(np.minimum(0.5 * worst.spreads[at, 0], 30.0))
        rho, _ = near_roots(worst, items, rho, 8.0, last)  # one step of Newton: whatever F is there proves a bound
        bound = upper(worst, items, np.log1p(rho * (1.0 + COARSE)), deepest=last)[0]
        found[at, here] = np.minimum(bound, worst.spreads[at, 0]) * RISE
    return found


def largest(sides: list[Side], cells: Cells, *, limit: float = np.inf) -> Found:
    """The largest leakage of each cell. Once a pair exceeds `limit` the others do not matter, and nothing is proved."""
    n, k = sides[0].chain.n, len(cells)
    search = _PairSearch(sides, cells, limit)
    first = cells.candidates
    if len(sides) == 2 and n < MANY_STATES:  # where bounds of all pairs cost less than another round
        first = np.hstack((first, _likeliest(sides, cells.user)))
    search.begin(first)
    if len(sides) == 2 and n >= MANY_STATES and not search.is_done(np.arange(k)).all():
        search.begin(_likeliest(sides, cells.user))
    # Pairs of some cells that are looked at at once
    step = max(1, (1 << 21) // n**2)
    for begin in range(0, k, step):
        search.compare(np.arange(begin, min(begin + step, k)))
    return search.found()


def _likeliest(sides: list[Side], user: IntArray) -> IntArray:
    """The pair with the largest bound of both sides together, shape (k, 1)."""
    likely = np.minimum(sides[0].static, sides[0].known) + np.minimum(sides[1].static, sides[1].known)
    return np.asarray(likely.argmax(axis=1)[user, None])


class _PairSearch:
    """What is found so far."""

    def __init__(self, sides: list[Side], cells: Cells, limit: float) -> None:
        k = len(cells)
        self.sides, self.cells, self.limit, self.n = sides, cells, limit, sides[0].chain.n
        self.best, self.top, self.pairs = np.full(k, -1.0), np.zeros(k), np.ones(k, np.int64)
        self.depths = np.zeros((len(sides), k), np.int64)
        self.part = np.zeros(k)  # what the best pair takes of the first side
        # By how much more than the best pair others may leak, as a share, without being computed: at a known horizon,
        # and over an infinite one. Both sides of a result differ by as much.
        self.share = 1.0 + (1e-10 if sides[0].chain.infinite else (2.0**-41))

    def items(self, side: int, cell: IntArray, code: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Items of a side."""
        return self.cells.user[cell], self.cells.steps[side, cell], code // self.n, code % self.n

    def deepen(self, side: int, cell: IntArray, depth: IntArray) -> None:
        """Note the depths of rollouts."""
        np.maximum.at(self.depths[side], cell, depth)

    def value(self, side: int, cell: IntArray, code: IntArray, close: float) -> tuple[FloatArray, FloatArray]:
        """K of pairs from a side: attained and proved."""
        one, user = self.sides[side], self.cells.user[cell]
        guess = np.minimum(one.known[user, code], one.chain.arriving(user, self.cells.steps[side, cell]))
        found = values(
            one.chain, self.items(side, cell, code), np.expm1(np.minimum(guess, LARGEST_EXPONENT)), close=close
        )
        self.deepen(side, cell, found.depth)
        one.known[user, code] = found.proved
        return found.attained, found.proved

    def coarse(self, side: int, cell: IntArray, code: IntArray) -> FloatArray:
        """Bounds of K of pairs from a side, a share `COARSE` above it."""
        one, user = self.sides[side], self.cells.user[cell]
        guess = np.minimum(one.known[user, code], one.chain.arriving(user, self.cells.steps[side, cell]))
        guess = np.expm1(np.minimum(guess, LARGEST_EXPONENT))
        found, depth = coarse_bounds(one.chain, self.items(side, cell, code), guess, COARSE)
        self.deepen(side, cell, depth)
        one.known[user, code] = found
        return found

    def compute(self, cell: IntArray, code: IntArray) -> None:
        """Compute pairs to rounding."""
        if not len(cell):
            return
        low = high = self.cells.own(cell, code, self.n)
        parts = []
        for side in range(len(self.sides)):
            attained, above = self.value(side, cell, code, CLOSE_RATIO)
            low, high = low + attained, high + above
            parts.append(attained)
        low, high = low * (1.0 - 4.0 * U), high * (1.0 + 4.0 * U)
        order = np.lexsort((-low, cell))
        first = order[np.flatnonzero(np.diff(cell[order], prepend=-1))]
        better = first[low[first] > self.best[cell[first]]]
        self.best[cell[better]], self.pairs[cell[better]] = low[better], code[better]
        self.part[cell[better]] = parts[0][better]
        np.maximum.at(self.top, cell, high)

    def begin(self, candidates: IntArray) -> None:
        """Compute candidates, shape (k, c): all of them at the middle step of each user, and the best of them at the others."""
        order, user, k = np.sort(candidates, axis=1), self.cells.user, len(self.cells)
        fresh = (np.diff(order, axis=1, prepend=-1) > 0) & (order % (self.n + 1) > 0)
        middle = (np.searchsorted(user, user) + np.searchsorted(user, user, "right")) // 2
        fresh &= (np.arange(k) == middle)[:, None]
        cell, place = np.nonzero(fresh)
        known = np.where(self.best >= 0.0, self.pairs, -1)
        self.compute(cell, order[cell, place])
        others = (np.arange(k) != middle) & (self.best[middle] >= 0.0) & (known != self.pairs[middle])
        self.compute(np.flatnonzero(others), self.pairs[middle[others]])

    def is_reached(self, cell: IntArray) -> BoolArray:
        """Whether the best of a cell is its bound, but for rounding."""
        ceiling, best = self.cells.ceiling[cell], self.best[cell]
        blur = sum(side.chain.blur(self.depths[k, cell]) for k, side in enumerate(self.sides))
        hidden = np.where(blur <= LEVEL_SHARE * ceiling, 5.0 * blur, 0.0)
        with np.errstate(invalid="ignore"):
            # Share of a known bound from which on a pair counts as reaching it
            return np.asarray((best >= ceiling * (1.0 - 8e-13)) | (best >= ceiling - hidden))

    def is_done(self, cell: IntArray) -> BoolArray:
        """Whether nothing is left to do in a cell: its bound is reached, or its limit exceeded."""
        return np.asarray(self.is_reached(cell) | (self.best[cell] > self.limit))

    def compare(self, block: IntArray) -> None:
        """Compare all pairs of some cells with the best."""
        first, size = int(block[0]), len(block)
        block = block[~self.is_done(block)]
        if not len(block):
            return
        worst = self.sides[0].worst
        alike = worst is not None and worst.is_plain and (self.sides[0].chain.up == worst.up).all()
        if worst is not None and alike and len(self.sides) == 1 and self.cells.extra is None and not effort_is_over():
            last = block[np.flatnonzero(np.diff(self.cells.user[block], append=-1))]
            codes = np.flatnonzero(np.arange(self.n**2) % (self.n + 1))
            new = last[self.best[last] < 0.0]
            self.try_likely(block, np.repeat(new, len(codes)), np.tile(codes, len(new)))
            cell, code, bound = self.in_bands(block)
            # Pairs of the last step from which on it is worth looking for a better one than the best so far
            here = np.isin(cell, last[np.bincount(cell, minlength=len(self.cells))[last] > 64])
            self.try_likely(block, cell[here], code[here])
            left = ~self.is_done(cell)
            cell, code, bound = cell[left], code[left], bound[left]
        else:
            cell, code, bound = self.bounded(block)
        # Pairs of a cell that are computed before the others are compared again; four times as many each time
        many, pairs = 1, len(cell)
        while len(cell):
            progressed("comparing states", (first + size * (1.0 - len(cell) / pairs)) / len(self.cells))
            if effort_is_over():
                np.maximum.at(self.top, cell, bound)
                return
            bound, below = self.below(cell, code, bound)
            np.maximum.at(self.top, cell[below], bound[below])
            cell, code, bound = cell[~below], code[~below], bound[~below]
            chosen = self.first(cell, bound, many)
            self.compute(cell[chosen], code[chosen])
            left = np.ones(len(cell), bool)
            left[chosen] = False
            left &= ~self.is_done(cell)
            cell, code, bound = cell[left], code[left], bound[left]
            many *= 4

    def bounded(self, block: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The cells and codes of pairs whose bounds at all steps exceed the best, and the bounds."""
        user, n = self.cells.user[block], self.n
        bound = self.cells[block].every_own(n)
        for k, side in enumerate(self.sides):
            arriving = side.chain.arriving(user, self.cells.steps[k, block])
            bound = bound + np.minimum(side.static[user], arriving[:, None])
        bound[:, :: n + 1] = -np.inf
        known = self.best[block] >= 0.0
        bound[known, self.pairs[block[known]]] = -np.inf
        open_ = bound > (self.best[block] * self.share)[:, None]
        self.top[block] = np.maximum(self.top[block], np.where(open_, -np.inf, bound).max(axis=1) * RISE)
        at, code = np.nonzero(open_)
        return block[at], code, bound[at, code]

    def in_bands(self, block: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The cells and codes of pairs that are not proved to stay below the best of their band of cells, and their bounds.

        From one side of plain releases with equal budgets, leakage does not fall with the horizon. What stays below the
        smallest level of some cells at the last of their steps stays below in each.
        """
        side, cells, n = self.sides[0], self.cells, self.n
        own = (cells.lift - cells.drop)[block, 0]
        room = self.best[block] * self.share - own
        order = np.lexsort((room, cells.user[block]))
        block, own, room = block[order], own[order], room[order]
        arriving = side.chain.arriving(cells.user[block], cells.steps[0, block])
        user, first = cells.user[block], [0]
        for k in range(1, len(block)):
            # Levels of steps that are this close are compared at once, the smallest with what the last step proves. If
            # doubled: half as many comparisons, more pairs are left.
            if user[k] != user[k - 1] or room[k] > room[first[-1]] * (1.0 + 2.0**-5):
                first.append(k)
        start = np.array(first)
        count = np.diff(np.append(start, len(block)))
        last = np.maximum.reduceat(cells.steps[0, block], start)
        code = np.flatnonzero(np.arange(n * n) % (n + 1))
        band, code = np.repeat(np.arange(len(start)), len(code)), np.tile(code, len(start))
        items = user[start][band], last[band], code // n, code % n
        found, below, depth = upper(side.chain, items, room[start[band]], self.share - 1.0, roughly=True)
        top, deep = np.zeros(len(start)), np.zeros(len(start), np.int64)
        np.maximum.at(top, band[below], found[below])
        np.maximum.at(deep, band[below], depth[below])
        self.top[block] = np.maximum(self.top[block], (np.repeat(top, count) + own) * (1.0 + 4.0 * U))
        self.deepen(0, block, np.repeat(deep, count))
        band, code = band[~below], code[~below]
        # Pairs that are left of a band are left of each of its cells.
        many = count[band]
        place = np.repeat(start[band] - np.cumsum(many) + many, many) + np.arange(many.sum())
        code = np.repeat(code, many)
        fresh = (self.pairs[block[place]] != code) | (self.best[block[place]] < 0.0)
        place, code = place[fresh], code[fresh]
        return block[place], code, (own + arriving)[place] * (1.0 + 4.0 * U)

    def try_likely(self, block: IntArray, cell: IntArray, code: IntArray) -> None:
        """Of some pairs of a cell of each user, compute the one that short rollouts find best, at all steps of the user."""
        if not len(cell):
            return
        chain, users = self.sides[0].chain, self.cells.user
        items = self.items(0, cell, code)
        guess = np.expm1(np.minimum(0.5 * chain.arriving(*items[:2]), 30.0))
        found = np.zeros(len(cell))
        for at in blocks(chain, len(cell)):
            here = tuple(one[at] for one in items)
            found[at], _ = near_roots(chain, here, guess[at], 1.0, 2)  # type: ignore[arg-type]
        order = np.lexsort((-found, users[cell]))
        best = order[np.flatnonzero(np.diff(users[cell[order]], prepend=-1))]
        chosen = np.full(len(chain.into), -1)
        chosen[users[cell[best]]] = code[best]
        some = block[chosen[users[block]] >= 0]
        self.compute(some, chosen[users[some]])

    def first(self, cell: IntArray, bound: FloatArray, many: int) -> IntArray:
        """The pairs of each cell with the largest bounds, so many; all where they are few."""
        if len(cell) * self.n <= 1 << 12:
            return np.arange(len(cell))
        order = np.lexsort((-bound, cell))
        starts = np.flatnonzero(np.diff(cell[order], prepend=-1))
        rank = np.arange(len(cell)) - np.repeat(starts, np.diff(np.append(starts, len(cell))))
        return order[rank < many]

    def below(self, cell: IntArray, code: IntArray, bound: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Bounds of pairs, and whether they are proved to stay below the best of their cells."""
        own = self.cells.own(cell, code, self.n)
        room = self.best[cell] * self.share - own
        if len(self.sides) == 1:
            found, below, depth = upper(self.sides[0].chain, self.items(0, cell, code), room, self.share - 1.0)
            self.deepen(0, cell, depth)
            return np.minimum(bound, (own + found) * (1.0 + 4.0 * U)), below
        is_below = np.zeros(len(cell), bool)
        asked = np.flatnonzero(room > 0.0)
        is_below[asked] = self.divided_alike(cell, code, own, bound, asked)
        asked = asked[~is_below[asked]]
        # What the past takes is computed roughly, and the future compared with the rest.
        at, what = cell[asked], code[asked]
        part = self.coarse(0, at, what)
        found, enough, depth = upper(self.sides[1].chain, self.items(1, at, what), room[asked] - part, self.share - 1.0)
        self.deepen(1, at, depth)
        bound[asked] = np.minimum(bound[asked], (own[asked] + part + found) * (1.0 + 4.0 * U))
        is_below[asked[enough]] = True
        return bound, is_below

    def divided_alike(
        self, cell: IntArray, code: IntArray, own: FloatArray, bound: FloatArray, asked: IntArray
    ) -> BoolArray:
        """Of some pairs, whether they take no more than the best pair of their cell from either side, but for rounding."""
        at, what = cell[asked], code[asked]
        total, hidden = own[asked].copy(), np.zeros(len(asked))
        for side, level in enumerate((self.part[at], self.best[at] - own[asked] - self.part[at])):
            found, _, depth = upper(self.sides[side].chain, self.items(side, at, what), level, self.share - 1.0)
            self.deepen(side, at, depth)
            total, hidden = total + found, hidden + 4.0 * self.sides[side].chain.blur(depth)
        bound[asked] = np.minimum(bound[asked], total * (1.0 + 4.0 * U))
        hidden = np.where(hidden <= LEVEL_SHARE * self.best[at], hidden, 0.0)
        return np.asarray(bound[asked] <= self.best[at] * (2.0 * self.share - 1.0) + hidden)

    def found(self) -> Found:
        """All numbers. Where the effort ended before any pair was computed, the own part of one is attained."""
        ceiling, best = self.cells.ceiling, np.maximum(self.best, 0.0)
        alone = np.flatnonzero(self.best < 0.0)
        best[alone] = np.maximum(best[alone], self.cells.own(alone, self.pairs[alone], self.n) * (1.0 - 4.0 * U))
        reached = self.is_reached(np.arange(len(ceiling))) & (self.best <= self.limit)
        proved = np.where(reached, ceiling, np.minimum(np.maximum(self.top, self.best), ceiling))
        proved = np.where(self.best > self.limit, np.inf, proved)
        return Found(np.minimum(best, proved), proved, self.pairs, self.depths)
