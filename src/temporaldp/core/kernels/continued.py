"""Rollouts that are continued step by step: what online accounting asks at every spend.

Notation as in `temporaldp.core.kernels.rollouts`; h is the largest factor less 1 of the output of the step in question.

A rollout need not start again when one more release follows: its coefficients are kept, and take that step. Rounding is
bounded as there (Theory, section 22), backward and by sums; plain releases only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from temporaldp.base.values import ROUNDOFF as UNIT
from temporaldp.base.values import BoolArray, FloatArray, IntArray
from temporaldp.core.kernels.chain import LARGEST_EXPONENT, ROWS, Chain, product, rounding
from temporaldp.core.kernels.rollouts import LONGEST, Rollouts, signs_of
from temporaldp.core.kernels.roots import ENOUGH, MISSED_SHARE, Foreseen, newton_steps


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Rollouts of m items that have come to one and the same step.

    Parameters
    ----------
    now : Rollouts
    weight : array, shape (m,)
        Largest ratio of other items' coefficients, which this item represents, to its own.
    """

    now: Rollouts
    weight: FloatArray

    @classmethod
    def start(cls, q: FloatArray, d: FloatArray, level: FloatArray) -> Coefficients:
        """Before the first step, for the levels log r; q and d, shape (m, n), are the rows of the two states."""
        rho = np.expm1(np.maximum(level, 0.0))
        return cls(Rollouts.start(q, d, rho, rounding(q.shape[1])), np.ones(len(q)))

    @classmethod
    def none(cls, n: int) -> Coefficients:
        """Return no rollouts."""
        return cls.start(np.zeros((0, n)), np.zeros((0, n)), np.zeros(0))

    def __len__(self) -> int:
        return len(self.weight)

    def __getitem__(self, which: BoolArray | IntArray | slice) -> Coefficients:
        return Coefficients(self.now[which], self.weight[which])

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """The numbers of all items."""
        now = self.now
        return now.c, now.total, now.error, now.drift, now.depth, self.weight

    @classmethod
    def of(cls, arrays: Sequence[FloatArray]) -> Coefficients:
        """Undo `arrays`."""
        c, total, error, drift, depth, weight = arrays
        return cls(Rollouts(c, total, error, drift, depth, rounding(c.shape[1])), weight)

    @classmethod
    def joined(cls, parts: Sequence[Coefficients]) -> Coefficients:
        """The items of all parts."""
        return cls.of([np.concatenate(each) for each in zip(*(one.arrays for one in parts), strict=True)])

    def advanced(self, epsilon: float, matrix: FloatArray) -> Coefficients:
        """After one more step: its budget, and the matrix that leads on."""
        up = np.array([[np.expm1(epsilon)]])
        seen = self.now.look(up, None, up[0])
        c = product(self.now.raised(seen, up, None), matrix, ROWS)
        return Coefficients(self.now.after(seen, c), self.weight)

    @np.errstate(over="ignore", invalid="ignore")  # inf bounds nothing, and the other bound counts
    def excess(self, spread: float) -> FloatArray:
        """Nats by which K can exceed log r at most, whatever follows within a spread; backward error included."""
        more = np.array([np.expm1(spread) if spread <= LARGEST_EXPONENT else np.inf])
        seen = self.now.look(np.zeros((1, 1)), None, more)
        weighed = seen._replace(
            high=seen.high * self.weight, summed_high=seen.summed_high * self.weight, bound=seen.bound * self.weight
        )
        return weighed.excess()

    def undominated(self, pairs: IntArray) -> tuple[IntArray, Coefficients]:
        """The pairs and items that are left once the tightest item of each pair represents those that it dominates.

        Where ``c <= factor c'`` everywhere, with a factor > 0, no observation raises the first above 0 before the second. The
        second then takes over the rounding of the first.
        """
        now, zero = self.now, np.zeros(1)
        seen = now.look(zero[None], None, zero)
        p, w = seen.p, seen.w
        with np.errstate(divide="ignore", invalid="ignore"):
            tight = np.where(w > 0.0, p / w, np.inf)
        order = np.lexsort((tight, pairs))
        last = order[np.flatnonzero(np.diff(pairs[order], append=-1))]
        best = np.zeros(int(pairs.max(initial=0)) + 1, np.int64)
        best[pairs[last]] = last
        onto = best[pairs]
        factor, under = _factor(now.c, now.c[onto])
        under &= np.arange(len(self)) != onto
        # The first one's c is known to its drift, and at most `factor` times the second's; of that, the sum is kept by itself.
        apart = np.abs(p - w - now.total) + 2.0 * (now.c.shape[1] + 4) * UNIT * (p + w)
        with np.errstate(over="ignore"):
            drift = now.drift / factor
        c, total, *arrays = (one.copy() for one in self.arrays)
        taken_over = (drift + apart[onto], drift, now.depth, self.weight * factor)
        for array, found in zip(arrays, taken_over, strict=True):
            np.maximum.at(array, onto[under], found[under])
        return pairs[~under], Coefficients.of((c, total, *arrays))[~under]


def _factor(c: FloatArray, other: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The smallest factor > 0 with ``c <= factor other``, row by row, and whether there is one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = c / other
    low = np.where(other > 0.0, ratio, 0.0).max(axis=1) * (1.0 + 4.0 * UNIT)
    high = np.where(other < 0.0, ratio, np.inf).min(axis=1) * (1.0 - 4.0 * UNIT)
    low = np.maximum(low, np.finfo(np.float64).tiny)
    return low, (low <= high) & ~((other == 0.0) & (c > 0.0)).any(axis=1) & (low > 1e-100) & (low < 1e100)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def largest_budget(chain: Chain, items: Coefficients, incoming: float, low: float, high: float, room: float) -> float:
    """The largest budget up to `high` of the chain's last step for which all items are proved; `low` is known to be.

    `incoming` is the log spread of what the steps before it in the chain contribute; `room` are the nats of backward error
    that a sign may have. A negative `low`, where nothing is known, is the answer if not even 0 is proved.
    """
    least, root, now = np.expm1(max(low, 0.0)), np.expm1(high), items.now
    now = now[_unproved(chain, now, root, incoming, room)]
    if not len(now):
        return high
    root = float(_roots_from_above(chain, now, root, least).min())
    # Budgets below the largest one for which a proof is tried
    for attempt in range(12):
        h = root * (1.0 - 1e-12 * 8.0**attempt) - 1e-18
        if h <= least:
            break
        now = now[_unproved(chain, now, h, incoming, room)]
        if not len(now):
            return float(np.log1p(h))
    if low >= 0.0:
        return low
    return low if _unproved(chain, now, 0.0, incoming, room).any() else 0.0


def _roots_from_above(chain: Chain, items: Rollouts, high: float, least: float) -> FloatArray:
    """Roots of F in h of the items with the smallest, bounds of the others, by Newton's steps; `least` where none is larger.

    F is convex and rising in h, so that the steps stay above the root whatever signs they take.
    """
    slope, last = np.maximum(items.c, 0.0), chain.up.shape[0] - 1
    rise = slope @ np.ones(chain.n)
    if last == 0 and not chain.infinite:
        return np.asarray(np.maximum(-items.total / rise, least))
    h, before, alive = np.full(len(items), high), np.full(len(items), high), np.arange(len(items))
    foreseen = Foreseen.nothing(chain, len(items))
    # A dozen steps usually
    for _ in range(60):
        now, neglected = h[alive], np.maximum(ENOUGH * before, 2.0**-51 * h[alive])
        both = np.stack((items.c[alive] + now[:, None] * slope[alive], slope[alive]))
        user, s = np.zeros(len(alive), np.int64), np.full(len(alive), last)
        both, low = chain.through_pairs(user, s, both), items.total[alive] + now * rise[alive]
        by, _, foreseen = newton_steps(chain, user, np.maximum(s - 1, 0), both, low, rise[alive], neglected, foreseen)
        by = np.clip(by, 0.0, now - least)
        h[alive] = now - by
        # What is left, if steps go on to shrink at least as fast
        left = np.maximum(by * np.minimum(by / before, 1.0), np.maximum(neglected, MISSED_SHARE * foreseen.missed))
        kept = np.flatnonzero((left > 1e-12 * h[alive]) & (h[alive] > least) & (h[alive] - 4.0 * left <= h.min()))
        if not len(kept):
            break
        alive, before, foreseen = alive[kept], np.maximum(by, 1e-300)[kept], foreseen[kept]
    return h


def _unproved(chain: Chain, items: Rollouts, h: float, incoming: float, room: float) -> BoolArray:
    """The items whose signs are not proved where the last step may raise by h."""
    found, s = np.zeros(len(items), bool), chain.up.shape[0] - 1
    spread = (np.log1p(h) + incoming) * (1.0 + 4.0 * UNIT)
    sign = _signs(chain, items, h, spread, room)
    found[sign > 0] = True
    alive = np.flatnonzero(sign == 0)
    now = items[alive]
    up, more = np.array([[h]]), np.array([np.expm1(spread) if spread <= LARGEST_EXPONENT else np.inf])
    for _ in range(LONGEST if len(alive) else 0):
        is_last = s == 0 and not chain.infinite
        seen = now.look(up, None, up[0] if is_last else more)
        by_sums = seen.summed_high + seen.bound
        left = ~(np.where(seen.backward <= room, np.minimum(seen.high, by_sums), by_sums) <= 0.0)
        # F does not fall with further steps, and at some time what lies before them is less than rounding.
        unknown = seen.summed_high - seen.summed
        failed = left & (
            (np.maximum(seen.summed - seen.bound, seen.low) > 0.0) | (unknown <= 0.25 * seen.bound) | is_last
        )
        found[alive[failed]] = True
        left &= ~failed
        if not left.any():
            break
        alive, now, seen = alive[left], now[left], seen.of(left)
        now = now.after(seen, product(now.raised(seen, up, None), chain.matrices[chain.into[0, s]], ROWS))
        s = max(s - 1, 0)
        up, more = chain.up[s][None], chain.growth_less_1[0, s][None]
    else:
        found[alive] = True
    return found


def _signs(chain: Chain, items: Rollouts, h: float, spread: float, room: float) -> IntArray:
    """Signs of F as they are computed where the last step may raise by h; 0 where they prove nothing with that room."""
    last, user = chain.up.shape[0] - 1, np.zeros(len(items), np.int64)
    c, before = items.c.copy(), 0
    if chain.infinite:  # the last step is taken here, the one that repeats follows
        c += h * np.maximum(c, 0.0)
        c, before = product(c, chain.matrices[chain.into[0, last]], ROWS), 1
        chain = replace(
            chain, into=chain.into[:, :1], up=chain.up[:1], down=chain.down[:1], spreads=chain.spreads[:, :1]
        )
    else:
        up, spreads = chain.up.copy(), chain.spreads.copy()
        up[last], spreads[0, last] = h, spread
        chain = replace(chain, up=up, spreads=spreads)
    sign, depth = signs_of(chain, user, user + len(chain.up) - 1, c, chain.few_steps)
    error = 2.0 * (chain.gamma * (items.depth + depth + before + 2.0) + 2.0 * (chain.n + 4) * UNIT)
    return np.where((sign < 0) & (error > room), 0, sign)
