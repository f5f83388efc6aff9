"""Which pair of values is told apart best at each step, by the past, by the future, or by both: few pairs are ever solved.

Candidates are solved first. Every other pair is screened: rolled until it is proved to stay below what the candidates attain.
Those that are not ruled out are solved too. So each maximum is attained by a pair that is known, and proved for all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.pair_bounds import (
    MOST_BOUNDED,
    Direction,
    Pairs,
    every_pair_at,
    not_ruled_out,
    own_part,
)
from temporaldp.kernels.chain import Items
from temporaldp.kernels.rollouts import BACKWARD_SHARE, LARGEST_LEAKAGE, Arrivals, solve
from temporaldp.progress import progressed
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FEW_PAIRS = 60
"""Ordered pairs up to which every one is solved at every step: less work than choosing."""

BLOCK_ITEMS = 1 << 15
"""Pairs at steps that are screened at once."""

ALIKE = 1.5
"""Steps whose levels and budgets are within this factor of one another are screened together first."""

SHALLOW, DEEPENING = (1, 2, 4), (1, 2, 4, 8)
"""How many steps back pairs are bounded, one after the other: steps that are alike at once, then each by itself."""

CANDIDATES, PROMISING_DEPTH = 5, 3
"""Pairs that are solved first: those with the largest bounds from so many steps back."""

MOST_DEEPLY_BOUNDED = 1_000
"""Pairs that get past a bound from one step back, where candidates are looked for."""

EFFORT = 2.5e12
"""Products that may be spent on ruling out all pairs two steps back, some minutes on two cores. That is enough for 1,100 values
for ever, and for 800 where steps fall into three groups. Beyond, the bound that is known already, one step deep, is the answer
from above; candidates are solved as always."""

TIED = 1.0 - 1e-11
"""Pairs within this share of the largest count as tied, and the first is named."""

CLOSE_ENOUGH, CLOSE_ENOUGH_FOR_EVER, MOST_REFINED = 9e-13, 2e-10, 20_000
"""Relative distance of both sides of a maximum from which on it is computed in extended precision, for a horizon and for ever;
and for how many items."""

REACHED = 1.0 - 8e-13
"""Share of a known bound from which on a candidate counts as reaching it."""

RISE = 1.0 + 2.0 * BACKWARD_SHARE
"""What is ruled out below a level is proved to be at most this much above it."""


@dataclass(frozen=True, slots=True, eq=False)
class Maxima:
    """The largest over pairs of values at each step, from both sides; arrays of shape (T,).

    `attained` by the pair (i, j), `proved` for all pairs. `same_as` is the step whose answer this is, where nothing differs.
    """

    attained: FloatArray
    proved: FloatArray
    i: IntArray
    j: IntArray
    same_as: IntArray

    @classmethod
    def empty(cls, n_steps: int) -> Maxima:
        """Room for all steps."""
        first, second = np.zeros(n_steps, np.int64), np.ones(n_steps, np.int64)
        return cls(np.zeros(n_steps), np.full(n_steps, np.inf), first, second, np.arange(n_steps))

    def record(
        self, steps: IntArray, items: Items, attained: FloatArray, proved: FloatArray, rest: FloatArray | float
    ) -> None:
        """The largest over `items` at each of `steps` (increasing); `rest` is proved for all others there."""
        rows = np.searchsorted(steps, items.t)
        best = np.full(len(steps), -np.inf)
        np.maximum.at(best, rows, attained)
        upper = np.full(len(steps), rest)
        np.maximum.at(upper, rows, proved)
        chosen = np.flatnonzero(attained >= best[rows] * TIED)[::-1]  # of ties the first
        self.i[items.t[chosen]], self.j[items.t[chosen]] = items.i[chosen], items.j[chosen]
        self.attained[steps], self.proved[steps] = best, upper

    @property
    def pair(self) -> Pairs:
        """The two values, at every step."""
        return self.i, self.j

    def reversed(self) -> Maxima:
        """The last step first; which step's answer is whose is left as it is."""
        return Maxima(self.attained[::-1], self.proved[::-1], self.i[::-1], self.j[::-1], self.same_as[::-1])

    def lower(self, steps: IntArray, known: FloatArray) -> None:
        """Apply another bound that is known to hold."""
        self.proved[steps] = np.minimum(self.proved[steps], known)
        self.attained[steps] = np.minimum(self.attained[steps], self.proved[steps])

    def copy_from(self, steps: slice | IntArray, known: int | IntArray) -> None:
        """The answer at each of `steps` is that of a step that is known."""
        for one in (self.attained, self.proved, self.i, self.j, self.same_as):
            one[steps] = one[known]


ARRIVALS = ("attained", "proved", "rho", "depth")


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """Leakage of items from both sides, how deep rollouts went at most, and what arrives from each direction."""

    attained: FloatArray
    proved: FloatArray
    depth: int
    arrivals: Sequence[Arrivals]

    def joined(self, other: Solved) -> Solved:
        """The items of both."""
        attained = np.concatenate((self.attained, other.attained))
        proved = np.concatenate((self.proved, other.proved))
        arrivals = [
            Arrivals(*(np.concatenate((getattr(one, name), getattr(two, name))) for name in ARRIVALS))
            for one, two in zip(self.arrivals, other.arrivals, strict=True)
        ]
        return Solved(attained, proved, max(self.depth, other.depth), arrivals)


@dataclass(frozen=True, slots=True, eq=False)
class PairSearch:
    """The largest over pairs of what arrives by one or two directions, and the step's own part.

    Parameters
    ----------
    directions : sequence of Direction
        Past and future are independent given the value at the step, so that a pair's arrivals add up.
    lift, drop : array, shape (T, n) or (T, 1)
        Log of the largest and smallest factor of each value at each step.
    """

    directions: Sequence[Direction]
    lift: FloatArray
    drop: FloatArray

    @property
    def n_pairs(self) -> int:
        """Ordered pairs of different values."""
        n = self.directions[0].chain.n
        return n * (n - 1)

    def pairs(self, every: int = 1) -> Pairs:
        """All ordered pairs of different values, or every so many-th."""
        i, j = np.divmod(np.arange(0, self.n_pairs, every), self.directions[0].chain.n - 1)
        return i, j + (j >= i)

    def largest(
        self,
        maxima: Maxima,
        steps: IntArray,
        likely: Sequence[Pairs],
        guess: FloatArray,
        ceiling: FloatArray | float = math.inf,
    ) -> int:
        """Fill `maxima` at these steps; how many steps back rollouts went, at most.

        Parameters
        ----------
        maxima : Maxima
        steps : int array
        likely : sequence of pairs of int arrays
            Candidates: two arrays of one value a step, or of one value for all steps.
        guess : array like `steps`
            What may arrive, roughly: where the search for roots begins.
        ceiling : array like `steps`, or float
            Bounds that are known already. A step at which a candidate reaches its ceiling needs no other pair.
        """
        if self.n_pairs <= FEW_PAIRS:
            items = every_pair_at(steps, self.pairs())
            found = self.refined(self._every_pair(items, steps, np.repeat(guess, self.n_pairs)), items, steps)
            maxima.record(steps, items, found.attained, found.proved, -np.inf)
            return found.depth
        likely = [*likely, widest(self.lift[steps], self.drop[steps]), *self._promising(steps)]
        each = [np.broadcast_to(one, (len(steps),)) for pair in likely for one in pair]
        items = Items(np.tile(steps, len(likely)), np.concatenate(each[::2]), np.concatenate(each[1::2]))
        first = self.solved(items, [np.tile(guess, len(likely))] * len(self.directions))
        products = float(self.n_pairs) * self.directions[0].chain.n ** 2 * len(self.directions)
        if products <= EFFORT:
            first = self.refined(first, items, steps)
        maxima.record(steps, items, first.attained, first.proved, -np.inf)
        level = maxima.attained[steps]
        open_ = np.flatnonzero(level < ceiling * REACHED)
        rest = np.array(np.broadcast_to(ceiling, level.shape))
        groups = self._alike(steps[open_], level[open_]) if open_.size else []
        if not open_.size or len(groups) * products > EFFORT:
            maxima.record(steps, items, first.attained, first.proved, rest)
            return first.depth
        rest[open_] = level[open_] * RISE
        more, depth = self._open(steps[open_], level[open_], groups, first.depth)
        # Pairs that are not ruled out are mostly tied with the best one: their roots are looked for where its roots are.
        best = np.flatnonzero(first.attained == level[np.searchsorted(steps, items.t)])
        where = np.zeros(len(steps), np.int64)
        where[np.searchsorted(steps, items.t[best])] = best
        near = where[np.searchsorted(steps, more.t)]
        second = self.solved(more, [one.proved[near] for one in first.arrivals])
        items = Items(*(np.concatenate(both) for both in zip(items.arrays, more.arrays, strict=True)))
        both = self.refined(first.joined(second), items, steps)
        maxima.record(steps, items, both.attained, both.proved, rest)
        return max(depth, both.depth)

    def _promising(self, steps: IntArray) -> list[Pairs]:
        """The pairs with the largest bounds, if all of these steps were like the worst of them."""
        worst = [one.worst(steps) for one in self.directions]
        if any(one is None for one in worst):
            return []
        items = every_pair_at(np.zeros(1, np.int64), self.pairs(-(-self.n_pairs // MOST_BOUNDED)))
        own = own_part(self.lift[steps].max(axis=0)[None], self.drop[steps].min(axis=0)[None], items)
        for depth, kept in ((1, MOST_DEEPLY_BOUNDED), (PROMISING_DEPTH, CANDIDATES)):
            total = own
            for one in worst:
                assert one is not None
                start = np.full(len(items), math.expm1(min(30.0, 0.5 * float(one.spread[0]))))
                total = total + one.bound(items, depth, start)
            best = np.argsort(-total, kind="stable")[:kept]
            items, own = items[best], own[best]
        return [(items.i[[k]], items.j[[k]]) for k in range(len(items))]

    def solved(self, items: Items, guesses: Sequence[FloatArray], *, extended: bool = False) -> Solved:
        """Leakage of each item; `guesses` are what may arrive from each direction."""
        found = [
            solve(one.chain, one.turn(items), one.spread, np.expm1(np.minimum(guess, 30.0)), extended=extended)
            for one, guess in zip(self.directions, guesses, strict=True)
        ]
        own = own_part(self.lift, self.drop, items)
        attained = own + sum(one.attained for one in found)
        proved = own + sum(one.proved for one in found)
        depth = max(int(one.depth.max(initial=0)) for one in found)
        return Solved(attained * (1.0 - 4.0 * U), proved * (1.0 + 4.0 * U), depth, found)

    def refined(self, found: Solved, items: Items, steps: IntArray) -> Solved:
        """Where both sides of a step's largest are not close enough, whatever may be the largest is solved more precisely."""
        if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
            return found
        rows = np.searchsorted(steps, items.t)
        best, upper = np.zeros(len(steps)), np.zeros(len(steps))
        np.maximum.at(best, rows, found.attained)
        np.maximum.at(upper, rows, found.proved)
        close = CLOSE_ENOUGH_FOR_EVER if self.directions[0].chain.endless else CLOSE_ENOUGH
        wide = upper - best > close * upper
        loose = np.flatnonzero(wide[rows] & (found.proved > best[rows]) & (best[rows] > 0.0))
        if not loose.size or loose.size > MOST_REFINED:
            return found
        again = self.solved(items[loose], [one.proved[loose] for one in found.arrivals], extended=True)
        attained, proved = found.attained.copy(), found.proved.copy()
        attained[loose] = np.maximum(attained[loose], again.attained)
        proved[loose] = np.minimum(proved[loose], again.proved)
        return Solved(attained, proved, max(found.depth, again.depth), found.arrivals)

    def _every_pair(self, items: Items, steps: IntArray, guess: FloatArray) -> Solved:
        """Every pair's leakage; what arrives is kept, so that the two directions together need no more rollouts."""
        own = own_part(self.lift, self.drop, items)
        if len(self.directions) == 1:
            found = self.solved(items, [guess])
            (one,) = self.directions
            one.known(steps, np.stack((found.arrivals[0].attained, found.arrivals[0].proved)))
            return replace(found, depth=int(found.arrivals[0].depth[items.t == steps[-1]].max()))
        arrivals = [
            Arrivals(
                known[0], known[1], np.expm1(np.minimum(known[1], LARGEST_LEAKAGE)), np.zeros(len(items), np.int64)
            )
            for known in (one.known(steps) for one in self.directions)
        ]
        attained, proved = own + sum(one.attained for one in arrivals), own + sum(one.proved for one in arrivals)
        return Solved(attained * (1.0 - 4.0 * U), proved * (1.0 + 4.0 * U), 0, arrivals)

    def _open(self, steps: IntArray, level: FloatArray, groups: list[slice], usual: int) -> tuple[Items, int]:
        """Pairs that bounds do not rule out at their step, and how many steps back these went.

        Steps of a group, which are much alike, come at once first. Bounds go as far back as is `usual`: what is open
        then is almost tied.
        """
        depths = [*(depth for depth in DEEPENING if depth < usual), max(1, usual)]
        kept, deepest = [], 0
        for group in groups:
            some = self._common(steps[group], level[group])
            length = max(1, BLOCK_ITEMS // max(1, len(some[0])))
            for first in range(group.start, group.stop, length):
                block = slice(first, min(group.stop, first + length))
                items = every_pair_at(steps[block], some)
                own = own_part(self.lift, self.drop, items)
                left, depth = not_ruled_out(self.directions, items, np.repeat(level[block], len(some[0])) - own, depths)
                kept.append(left)
                deepest = max(deepest, depth)
                progressed("pairs of values", block.stop / len(steps))
        return Items(*(np.concatenate(parts) for parts in zip(*(one.arrays for one in kept), strict=True))), deepest

    def _alike(self, steps: IntArray, level: FloatArray) -> list[slice]:
        """Runs of steps with levels and budgets much alike."""
        width = (self.lift.max(axis=1) - self.drop.min(axis=1))[steps]
        room = np.maximum(level - width, 0.0)
        found, first = [], 0
        for k in range(1, len(steps) + 1):
            whole = slice(first, k + 1)
            if k == len(steps) or any(one[whole].max() > ALIKE * one[whole].min() for one in (room, width)):
                found.append(slice(first, k))
                first = k
        return found

    def _common(self, steps: IntArray, level: FloatArray) -> Pairs:
        """Pairs that are not ruled out at all of these steps at once, by the worst budget, level and spread among them."""
        worst = [one.worst(steps) for one in self.directions]
        if len(steps) == 1 or any(one is None for one in worst):
            return self.pairs()
        lift, drop = self.lift[steps].max(axis=0)[None], self.drop[steps].min(axis=0)[None]
        items = every_pair_at(np.zeros(1, np.int64), self.pairs())
        room = level.min() - own_part(lift, drop, items)
        return not_ruled_out([one for one in worst if one is not None], items, room, SHALLOW)[0].arrays[1:]


def widest(lift: FloatArray, drop: FloatArray) -> Pairs:
    """The pair of values that each step's own output tells apart best."""
    n = lift.shape[1]
    if n == 1:
        return np.zeros(len(lift), np.int64), np.ones(len(lift), np.int64)
    apart = lift[:, :, None] - drop[:, None, :]
    apart[:, np.arange(n), np.arange(n)] = -np.inf
    i, j = np.divmod(apart.reshape(len(lift), -1).argmax(axis=1), n)
    return i, j
