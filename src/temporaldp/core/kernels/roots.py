"""Leakage of pairs of states: Newton's steps to the root of F, and signs that prove both sides of it.

Notation as in `temporaldp.core.kernels.rollouts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from temporaldp.base.progress import effort_is_over
from temporaldp.base.values import ROUNDOFF as UNIT
from temporaldp.base.values import BoolArray, FloatArray, IntArray
from temporaldp.core.kernels.chain import LARGEST_EXPONENT, LARGEST_LEVEL, Chain, Items
from temporaldp.core.kernels.rollouts import (
    LEVEL_SHARE,
    LONGEST,
    Pause,
    blocks,
    computed_signs,
    next_look,
    signs,
    upper,
)

CLOSE_RATIO = 2.0**-41
"""Relative distance of both sides at which a pair is done."""

ENOUGH = 2.0**-20
"""Share of F to which what lies before a step is known where a step of Newton is taken."""

UNDERSHOT = 1.0 - 2.0**-5
"""Share by which Newton's steps are lengthened of what would lead to the root."""


SHRINKING, MISSED_SHARE = 0.5, 2.0**-10
"""Share of what was misjudged before from which on the next step takes other signs, and share of it that may be left."""


MOST_RUNS, MOST_LONG = 60, 3
"""Times that signs of a pair are looked for, and times that rollouts may reach `LONGEST`."""


def coarse_bounds(chain: Chain, items: Items, guess: FloatArray, close: float) -> tuple[FloatArray, IntArray]:
    """Upper bounds of K, mostly a share `close` above it, and depths; `guess` has ratios less 1."""
    proved, depth = chain.arriving(*items[:2]) * (1.0 + 4.0 * UNIT), np.zeros(len(guess), np.int64)
    for some in blocks(chain, len(guess)):
        here = tuple(one[some] for one in items)
        root, _ = near_roots(chain, here, guess[some], close)  # type: ignore[arg-type]
        level = np.log1p(root * (1.0 + close))
        proved[some], _, depth[some] = upper(chain, here, level)  # type: ignore[arg-type]
    return proved, depth


@dataclass(frozen=True, slots=True, eq=False)
class Foreseen:
    """What one step of Newton taught about the next, for m items.

    Parameters
    ----------
    later : array, shape (d, m)
        By how much the root moves after 2, 3, ... steps of a rollout.
    missed : array, shape (m,)
        By how much roots were misjudged whose signs were taken, at most: the error of a step, or several times as much.
    plain : bool array, shape (m,)
        Whether the next step takes the signs at the root so far: it was misjudged as much as before, or leakage gathers over so
        many steps that several were taken at once.
    """

    later: FloatArray
    missed: FloatArray
    plain: BoolArray

    @classmethod
    def nothing(cls, chain: Chain, m: int) -> Foreseen:
        """Before the first step."""
        return cls(np.zeros((0, m)), np.full(m, np.inf), np.full(m, chain.most_at_once > 0))

    def __getitem__(self, which: IntArray) -> Foreseen:
        return Foreseen(self.later[:, which], self.missed[which], self.plain[which])

    def after(self, roots: list[tuple[IntArray, list[FloatArray]]], found: FloatArray, jumped: BoolArray) -> Foreseen:
        """After a step: the roots that its steps led to, of which items; those found, and where several were taken at once."""
        later, depth = np.full((sum(len(some) for _, some in roots), len(found)), np.nan), 0
        for which, some in roots:
            steps = np.arange(depth, depth := depth + len(some))
            later[steps[:, None], which] = found[which] - np.reshape(some, (-1, len(which)))
        apart, taken = later.copy(), np.isfinite(later)
        apart[: len(self.later)] -= self.later[: len(later)]
        later, apart = np.where(taken, later, 0.0), np.where(taken, apart, 0.0)
        missed = np.where(self.plain, np.abs(found), np.abs(apart).max(axis=0, initial=0.0))
        plain = (missed > SHRINKING * self.missed) & ~self.plain
        return Foreseen(later, np.where(jumped, 0.0, missed), plain | jumped)


class Values(NamedTuple):
    """K of items: what is attained, what is proved, the ratio less 1 of the observation, and the largest depth."""

    attained: FloatArray
    proved: FloatArray
    rho: FloatArray
    depth: IntArray


def values(chain: Chain, items: Items, guess: FloatArray | None = None, *, close: float = CLOSE_RATIO) -> Values:
    """K of each item between two sides, which a share `close` or rounding keeps apart. `guess` has ratios less 1."""
    m = len(items[1])
    arriving = chain.arriving(*items[:2])
    attained, proved, rho, depth = np.zeros(m), arriving * (1.0 + 4.0 * UNIT), np.zeros(m), np.zeros(m, np.int64)
    open_ = np.flatnonzero(arriving > 0.0)
    guess = np.zeros(m) if guess is None else guess
    for some in blocks(chain, 2 * len(open_)):
        at = open_[some]
        if not len(at):
            break
        here = tuple(one[at] for one in items)
        found = _values(chain, here, arriving[at], guess[at], close)  # type: ignore[arg-type]
        attained[at], proved[at], rho[at], depth[at] = found
    return Values(attained, proved, rho, depth)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _values(chain: Chain, items: Items, arriving: FloatArray, guess: FloatArray, close: float) -> Values:
    """Roots by Newton's steps, then signs just below and above them; where these do not enclose K, signs further on.

    Once both sides are known the bracket is divided, also where Newton's steps do not reach the root, because leakage gathers
    over many steps.
    """
    m = len(guess)
    # No step raises a spread: the ratio for two states is at most that of any two likelihoods before.
    attained, proved = np.zeros(m), arriving * (1.0 + 4.0 * UNIT)
    alive, enclosed = np.arange(m), np.zeros((2, m), bool)
    root, depth = near_roots(chain, items, guess, close)
    middle = np.log1p(root)
    middle = np.where(middle > 0.0, middle, 2.0**-60 * arriving)
    apart, blur = 0.5 * close * middle, chain.blur(depth)
    enclosed[1] = middle + apart >= proved  # all that arrives is leaked
    asked = np.flatnonzero((blur <= LEVEL_SHARE * middle) & (middle <= LARGEST_LEVEL))
    if len(asked):  # signs as they are computed, a little apart from the root
        by = np.maximum(apart - blur, blur)[asked]
        levels = np.concatenate((middle[asked] - by, middle[asked] + by))
        here = tuple(np.tile(one[asked], 2) for one in items)
        sign, steps = computed_signs(chain, here, levels, LONGEST)  # type: ignore[arg-type]
        least, most = np.array([[-1.0], [1.0]]) * chain.blur(steps).reshape(2, -1) + levels.reshape(2, -1)
        positive, negative = sign[: len(asked)] > 0, sign[len(asked) :] < 0
        attained[asked] = np.where(positive, np.maximum(least, 0.0) * (1.0 - 4.0 * UNIT), 0.0)
        proved[asked] = np.where(negative, np.minimum(most * (1.0 + 4.0 * UNIT), proved[asked]), proved[asked])
        enclosed[:, asked] |= positive, negative
        depth[asked] = np.maximum(depth[asked], steps.reshape(2, -1).max(axis=0))
        alive = np.flatnonzero(~_is_done(attained, proved, chain.blur(depth), close))
    for attempt in range(MOST_RUNS if len(alive) else 0):
        here = tuple(np.tile(one[alive], 2) for one in items)
        low, high, known_low, known_high = attained[alive], proved[alive], *enclosed[:, alive]
        by, centre = apart[alive], middle[alive]
        outward = np.where(known_low, low, np.where(known_high, high, centre))
        way = np.where(known_low, 1.0, -1.0)
        levels = outward + way * by * np.where(
            known_low | known_high, np.array([[1.0], [8.0]]), np.array([[1.0], [-1.0]])
        )
        divided = known_low & known_high | (levels >= high).any(axis=0) | (levels <= low).any(axis=0)
        levels = np.where(divided, low + (high - low) * np.array([[1.0], [2.0]]) / 3.0, levels)
        levels = np.minimum(levels, LARGEST_EXPONENT)
        found = signs(chain, here, levels.ravel(), 0.0, LONGEST)  # type: ignore[arg-type]
        above, below, deep = (one.reshape(2, -1) for one in found)
        moved = np.maximum(low, below.max(axis=0)), np.minimum(high, above.min(axis=0))
        attained[alive], proved[alive] = moved
        depth[alive] = np.maximum(depth[alive], deep.max(axis=0))
        gap, blur = moved[1] - moved[0], chain.blur(depth[alive])
        near = np.maximum(by, 2.0 * blur)
        enclosed[:, alive] |= np.stack(((below > 0.0) & (below >= levels - near), above <= levels + near)).any(axis=1)
        apart[alive] = np.maximum(16.0 * by, np.where(enclosed[:, alive].any(axis=0), 0.0, 0.5 * blur))
        # Rounding hides the signs inside the bracket, or rollouts come to no end.
        stuck = divided & (gap > 0.8 * (high - low)) | (attempt > MOST_LONG) & (depth[alive] >= LONGEST)
        alive = alive[~_is_done(*moved, blur, close) & ~stuck]
        if not len(alive) or effort_is_over():
            break
    attained = np.minimum(attained, proved)
    rho = np.where(attained > 0.0, np.expm1(attained), np.minimum(root, np.expm1(proved)))
    return Values(attained, proved, rho, depth)


def _is_done(attained: FloatArray, proved: FloatArray, blur: FloatArray, close: float) -> BoolArray:
    """Whether both sides are close, or as close as rounding lets them be."""
    gap = proved - attained
    return np.asarray((gap <= 1.2 * close * proved) | (gap <= 5.0 * blur) & (blur <= LEVEL_SHARE * proved))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def near_roots(
    chain: Chain, items: Items, guess: FloatArray, close: float, deepest: int = LONGEST
) -> tuple[FloatArray, IntArray]:
    """Ratios less 1 where F is about 0, by Newton's steps without bounds of rounding; and depths of the last rollouts.

    After `deepest` steps, where F from above is: what lies before may be whatever its spread allows.

    Below a root that many steps decide, ever longer rollouts count, and Newton's steps shrink by a nearly constant factor, as
    at a multiple root. They are lengthened by what that factor implies, but for a margin that keeps them below the root.
    """
    m = len(guess)
    moves = chain.arriving(*items[:2]) > 0.0
    here, depth, alive = np.where(moves, np.maximum(guess, 0.0), 0.0), np.zeros(m, np.int64), np.flatnonzero(moves)
    longer, last, foreseen = np.ones(m), np.zeros(m), Foreseen.nothing(chain, len(alive))
    # Newton's steps without bounds of rounding
    for _ in range(40 if len(alive) else 0):
        before, times = here[alive], longer[alive]
        moved, deep, found = _newton(chain, tuple(one[alive] for one in items), before, deepest, foreseen)  # type: ignore[arg-type]
        by = np.where((moved >= 0.0) & (moved < np.inf), moved, np.where(moved < 0.0, 0.0, before)) - before
        shrunk = by / last[alive]
        times = np.where((shrunk > 0.125) & (shrunk < 0.999), np.clip(times / (1.0 - shrunk), 1.0, 1e3), times)
        here[alive] = before + np.where(by > 0.0, 1.0 + (times - 1.0) * UNDERSHOT, 1.0) * by
        longer[alive], last[alive], depth[alive] = times, by, deep
        # What is left, if steps shrink ever faster, the first one with the root of the third degree of what it moved; or where
        # they are lengthened. If too little, signs have to enclose the root.
        share = np.where(np.isinf(shrunk), np.cbrt(np.abs(by) / here[alive]), np.abs(shrunk) ** 1.5)
        share = np.where(times > 1.1, 2.0 * (1.0 - UNDERSHOT) * times, np.clip(share, ENOUGH, 1.0))
        left = np.fmax(share * np.abs(by), found.missed * MISSED_SHARE)
        known = np.maximum(0.25 * close * here[alive], 0.1 * chain.blur(deep) * (1.0 + here[alive]))
        kept = np.flatnonzero(left > known)
        if not len(kept) or effort_is_over():
            break
        alive, foreseen = alive[kept], found[kept]
    return here, depth


def _newton(
    chain: Chain, items: Items, rho: FloatArray, deepest: int, foreseen: Foreseen
) -> tuple[FloatArray, IntArray, Foreseen]:
    """Where Newton's step leads from a ratio less 1, depths of rollouts, and what is foreseen of the next step."""
    user, t, i, j = items
    scale, both, d = 1.0 / (1.0 + rho), np.empty((2, len(rho), chain.n)), chain.rows(user, t, j)
    np.multiply(chain.rows(user, t, i) - d, scale[:, None], out=both[0])
    both[0] -= (rho * scale)[:, None] * d
    np.multiply(d, scale[:, None], out=both[1])
    s, low = t if chain.infinite else t - 1, -rho * scale
    by, depth, foreseen = newton_steps(chain, user, s, both, low, scale, 2.0**-47 * rho, foreseen, deepest)
    return rho + by, depth, foreseen


def newton_steps(
    chain: Chain,
    user: IntArray,
    s: IntArray,
    both: FloatArray,
    low: FloatArray,
    slope: FloatArray,
    least: FloatArray,
    foreseen: Foreseen,
    deepest: int = LONGEST,
) -> tuple[FloatArray, IntArray, Foreseen]:
    """F over its slope for rollouts from step s on, without bounds of rounding; depths; and what is foreseen of the next.

    `both`, shape (2, m, n), has the coefficients of F and of its slope, which is > 0 and takes the same factors; `low` and
    `slope` are their sums. A share of F, or `least` times the slope, is neglected.

    Away from the root, coefficients far back all have one sign, so that Newton's steps by themselves gain but a digit each.
    Signs are therefore those at the root that the steps so far lead to, with what later ones added in the last call.
    """
    run, few = _RootRun(chain, user, s, both, np.stack((low, slope)), foreseen), deepest < LONGEST
    look_at, found, depths, depth = 1, np.zeros(len(low)), np.zeros(len(low), np.int64), 0
    while depth < deepest and not effort_is_over():
        first, depth = depth + 1, min(run.until(depth, look_at), deepest)
        last = depth == deepest
        run.follow(range(first, depth + 1), foreseen=not few, whole=few and last)
        if last or depth == look_at or run.ends:
            look_at, (by, slope) = next_look(depth), run.sums
            ended = run.are_settled(np.maximum(ENOUGH * np.abs(by), least[run.alive] * slope))
            ended |= last | (run.at_once + depth >= deepest)
            if last and few:
                by, slope = np.where(run.inside, run.whole, run.sums)
            if ended.any():
                at = run.alive[ended]
                found[at], depths[at] = run.before[ended] + (by / slope)[ended], depth + run.at_once[ended]
                run.jumped[at] = run.at_once[ended] > 0
                if ended.all():
                    break
                run.keep(np.flatnonzero(~ended))
        if not few and run.pause.is_over(len(run.alive)):
            run.jump()
            look_at = depth + 1
    return found, depths, foreseen.after(run.roots, found, run.jumped)


class _RootRun:
    """Rollouts of F and its slope, of which ever fewer are followed."""

    def __init__(
        self, chain: Chain, user: IntArray, s: IntArray, both: FloatArray, sums: FloatArray, foreseen: Foreseen
    ) -> None:
        m = len(s)
        self.chain, self.user, self.s, self.both, self.sums, self.later = chain, user, s, both, sums, foreseen.later
        self.alive, self.plain, self.jumped, self.ones = (
            np.arange(m),
            foreseen.plain,
            np.zeros(m, bool),
            np.ones(chain.n),
        )
        self.before, self.at_once = np.zeros(m), np.zeros(m, np.int64)
        self.is_aligned = chain.repeats or bool((s == s[:1]).all())
        """By how much the root has moved, and steps that were not taken one by one; whether all take the same factors."""
        self.roots: list[tuple[IntArray, list[FloatArray]]] = [(self.alive, [])]
        # Steps that are taken one by one before several are taken at once
        self.pause, self.has_jumped, self.is_moved = Pause(chain, 16), False, True
        self._nearest, self._is_any_plain = int(s.min(initial=np.iinfo(np.int64).max)), bool(self.plain.any())

    @property
    def ends(self) -> bool:
        """Whether some rollouts are at their last step."""
        return self._nearest == 0 and not self.chain.infinite

    @property
    def inside(self) -> BoolArray:
        """Which rollouts have further steps before them."""
        return np.full(len(self.s), True) if self.chain.infinite else self.s > 0

    def until(self, depth: int, look_at: int) -> int:
        """The depth up to which steps are taken without a look: to the next one, or where some rollouts end."""
        if self.chain.infinite:
            return depth + 1 if self.chain.most_at_once else look_at
        return min(look_at, depth + self._nearest + self.is_moved)

    def follow(self, depths: range, *, foreseen: bool, whole: bool) -> None:
        """Take steps. `foreseen`: by the signs at the root that these steps lead to, with what later ones add.

        `whole`: F and its slope with as much as everything before the last step may gain within its spread, rather than it.
        """
        chain, both, sums, roots = self.chain, self.both, self.sums, self.roots[-1][1]
        for depth in depths:
            if not self.is_moved:
                if (chain.is_steep or depth == depths[0]) and float(sums[1].max()) > 1e100:  # only ratios count
                    shrink = 1.0 / np.abs(both).max(axis=(0, 2))
                    both, sums = both * shrink[:, None], sums * shrink
                both = chain.through_pairs(self.user, self.s, both)
                if not chain.infinite:
                    self.s -= 1
                    self._nearest -= 1
            self.is_moved, at_root = False, both[0]
            if foreseen and depth > 1:
                root = sums[0] / sums[1]
                # Steps for which it is kept what later ones add
                if not self.has_jumped and depth <= 512:
                    roots.append(root)
                if not self.has_jumped and depth - 2 < len(self.later):
                    root = root + self.later[depth - 2]
                else:
                    root = np.maximum(root, -self.before)
                at_root = both[0] - self._kept_plain(root)[:, None] * both[1]
            if whole and depth == depths[-1]:
                gained = np.stack((np.maximum(at_root, 0.0) @ self.ones, (both[1] * (at_root > 0.0)) @ self.ones))
                self.whole = sums + chain.growth_less_1[self.user, self.s] * gained
            which: Any = slice(self._nearest, self._nearest + 1) if self.is_aligned else self.s
            middle, half = chain.middles[:, which]
            raising = np.copysign(half, at_root)
            raising += middle
            gained = both * raising
            both += gained
            sums += np.dot(gained.reshape(-1, chain.n), self.ones).reshape(sums.shape)
        self.both, self.sums, self.at_root, self.raising = both, sums, at_root, raising

    def _kept_plain(self, root: FloatArray) -> FloatArray:
        """These roots, but where signs are plain those at which the run began."""
        return np.where(self.plain, -self.before, root) if self._is_any_plain else root

    def are_settled(self, least: FloatArray) -> BoolArray:
        """Whether no further step adds as much as `least`, or there is none."""
        more, positive = self.chain.growth_less_1[self.user, self.s], np.maximum(self.at_root, 0.0)
        top = positive @ self.ones
        most = np.where(top > 0.0, more * top, 0.0)
        settled = np.abs(most - (positive * self.raising) @ self.ones) <= least
        if self._is_any_plain:  # where all coefficients are positive, F and its slope grow alike
            top, low = np.maximum(self.both[0], 0.0) @ self.ones, self.sums[0]
            settled |= self.plain & (low > 0.0) & (top - low <= ENOUGH * top)
        return np.asarray(settled | (self.s == 0) if self.ends else settled)

    def keep(self, kept: IntArray) -> None:
        """Follow these."""
        for name in ("alive", "user", "s", "plain", "before", "at_once"):
            setattr(self, name, getattr(self, name)[kept])
        self.both, self.sums, self.later = self.both[:, kept], self.sums[:, kept], self.later[:, kept]
        self.roots.append((self.alive, []))
        self._nearest, self._is_any_plain = int(self.s.min()), bool(self.plain.any())

    def jump(self) -> None:
        """Go on over several steps at once."""
        both = self.chain.through_pairs(self.user, self.s, self.both)
        root = self._kept_plain(np.maximum(self.sums[0] / self.sums[1], -self.before))
        both[0] -= root[:, None] * both[1]
        self.sums[0] -= root * self.sums[1]
        self.both, steps, gained = self.chain.jumped(both)[:3]
        self.pause.noted(steps)
        self.sums, self.at_once, self.before = self.sums + gained, self.at_once + steps, self.before + root
        self.is_moved = self.has_jumped = True
