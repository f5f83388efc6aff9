"""Pairs of values that are proved to stay below a level, by bounds from a few steps back and by signs, which cost less.

What is not ruled out here is solved by `temporaldp.accounting.exact.pair_search`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from temporaldp.kernels.chain import Chain, Items
from temporaldp.kernels.rollouts import LARGEST_LEAKAGE, bound, evaluate
from temporaldp.kernels.two_steps import applies, stay_below
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Pairs = tuple[IntArray, IntArray]

MANY_VALUES = 64
"""Values from which on most pairs are ruled out without a product for each of them."""

MOST_BOUNDED = 50_000
"""Pairs that are bounded at once. Of more, signs rule out most first, and candidates are looked for among so many of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """Rollouts in one direction.

    Parameters
    ----------
    chain : Chain
    spread : array, shape (T,)
        Bounds on the log spread of likelihoods, in which rollouts end.
    solved : array, shape (2, T, n (n - 1)), or None
        What arrives about every pair, attained and proved, where there are few pairs: filled as steps are solved.
    turned : bool
        Whether the chain counts steps from the other end.
    """

    chain: Chain
    spread: FloatArray
    solved: FloatArray | None
    turned: bool = False

    def reversed(self) -> Direction:
        """These rollouts for items that count steps from the other end."""
        return replace(self, turned=not self.turned)

    def turn(self, items: Items) -> Items:
        """Items with steps as the chain counts them."""
        return Items(len(self.chain.up) - 1 - items.t, items.i, items.j) if self.turned else items

    def known(self, steps: IntArray, values: FloatArray | None = None) -> FloatArray:
        """What arrives about every pair at these steps, shape (2, pairs at steps); written first if it is given."""
        assert self.solved is not None
        at = len(self.chain.up) - 1 - steps if self.turned else steps
        if values is not None:
            self.solved[:, at] = values.reshape(2, len(steps), -1)
        return self.solved[:, at].reshape(2, -1)

    def worst(self, steps: IntArray) -> Direction | None:
        """One step that repeats for ever, and leaks at least as much as each of these; None where matrices vary."""
        if self.chain.endless:
            return self
        if len(self.chain.matrices) > 1:
            return None
        at = len(self.chain.up) - 1 - steps if self.turned else steps
        before = slice(0, max(1, int(at.max())))
        up, down = self.chain.up[before].max(axis=0)[None], self.chain.down[before].min(axis=0)[None]
        chain = Chain(self.chain.matrices, np.zeros(1, np.int64), up, down, endless=True)
        return Direction(chain, self.spread[before].max()[None], None)

    def bound(self, items: Items, depth: int, start: FloatArray) -> FloatArray:
        """Upper bounds of what arrives, from so many steps."""
        return bound(self.chain, self.turn(items), self.spread, depth=depth, start=start)


def not_ruled_out(
    directions: Sequence[Direction], items: Items, room: FloatArray, depths: Sequence[int]
) -> tuple[Items, int]:
    """The items that bounds from so many steps, deeper and deeper, do not prove to stay within `room`; and the last depth.

    One direction needs no bounds, only signs: the first step, which takes no product, and then all others in one rollout.
    """
    above = _above_two_steps(directions, items, room)
    items, room = items[above], room[above]
    if len(directions) == 1:
        depth = 0
        for most in (1, depths[-1]):
            above, depth = _above(directions, items, room, [np.ones(len(items))], most)
            items, room = items[above], room[above]
        return items, max(1, depth)
    if len(items) > MOST_BOUNDED:
        sizes = np.array([float(one.spread.max()) for one in directions])
        shares = [np.full(len(items), part) for part in sizes / max(float(sizes.sum()), np.finfo(np.float64).tiny)]
        for most in (1, 2):
            above, _ = _above(directions, items, room, shares, most)
            items, room, shares = items[above], room[above], [one[above] for one in shares]
    start = np.expm1(np.clip(0.5 * room, 0.0, 30.0))
    known = [one.bound(items, 1, start) for one in directions]
    for depth in depths:
        kept = ~(sum(known) <= room)
        items, room, known = items[kept], room[kept], [one[kept] for one in known]
        if depth == 1 or not len(items):
            continue
        # A pair that stays below its share of the room in both directions is ruled out: a sign is cheaper than a bound.
        with np.errstate(invalid="ignore"):
            share = np.where(np.isfinite(sum(known)), known[0] / sum(known), 0.5)
        above, _ = _above(directions, items, room, (share, 1.0 - share), depth)
        items, room, known = items[above], room[above], [one[above] for one in known]
        starts = [np.expm1(np.where(np.isfinite(one), np.minimum(0.7 * one, 30.0), 1.0)) for one in known]
        known = [
            np.minimum(old, one.bound(items, depth, at)) for one, old, at in zip(directions, known, starts, strict=True)
        ]
    return items[~(sum(known) <= room)], depths[-1]


def _above_two_steps(directions: Sequence[Direction], items: Items, room: FloatArray) -> NDArray[np.bool_]:
    """Which items the two nearest steps do not prove to stay below their share of the room, where that costs little.

    It does for plain releases that repeat for ever, if most pairs of many values are asked about and have the same room.
    """
    above = np.zeros(len(items), bool)
    chains = [one.chain for one in directions]
    n = chains[0].n
    most = n >= MANY_VALUES and 2 * len(items) > n * (n - 1) and float(room.min()) == float(room.max())
    if not most or not all(
        one.endless and one.plain and len(one.matrices) == 1 and applies(one.matrices[0], len(items)) for one in chains
    ):
        return ~above
    steps, spreads = [float(one.up[0, 0]) for one in chains], [float(one.spread[0]) for one in directions]
    arriving = [max(a - math.log1p(h), 0.0) for a, h in zip(spreads, steps, strict=True)]
    left = float(room[0])
    for chain, h, a, part in zip(chains, steps, spreads, arriving, strict=True):
        share = part / max(sum(arriving), np.finfo(np.float64).tiny) * (1.0 - 4.0 * U)
        above |= ~stay_below(chain.matrices[0], h, a, share * left)[items.i, items.j]
    return above


def _above(
    directions: Sequence[Direction], items: Items, room: FloatArray, shares: Sequence[FloatArray], most: int
) -> tuple[NDArray[np.bool_], int]:
    """Which items are not proved to stay below their share of the room in every direction; and how far one had to look."""
    above, deepest = np.zeros(len(items), bool), 0
    for one, share in zip(directions, shares, strict=True):
        here = np.flatnonzero(~above)
        turned = one.turn(items[here])
        rho = np.expm1(np.clip(room[here] * share[here], 0.0, LARGEST_LEAKAGE))
        values = evaluate(one.chain, turned, rho, one.spread, slope=False, most=most)
        above[here] = ~(values.below | one.chain.silent(turned.t, one.spread))
        deepest = max(deepest, int(values.depth.max(initial=0)))
    return above, deepest


def own_part(lift: FloatArray, drop: FloatArray, items: Items) -> FloatArray:
    """The largest log ratio of each item's own output: value i as high, value j as low as they go."""
    wide = lift.shape[1] > 1
    return np.asarray(lift[items.t, items.i if wide else 0] - drop[items.t, items.j if wide else 0])


def every_pair_at(steps: IntArray, pairs: Pairs) -> Items:
    """Each pair at each step, step by step."""
    i, j = pairs
    return Items(np.repeat(steps, len(i)), np.tile(i, len(steps)), np.tile(j, len(steps)))
