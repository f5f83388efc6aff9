"""Rollouts of many pairs of states at once: the sign rule on batches, in NumPy.

Notation
--------
P         transition matrix into a step: row = state there, column = state one step further away
q, d      rows of the two states i and j
m_s(k)    likelihood of the output of step s given state k, up to a common factor: between 1 + down_s(k) and 1 + up_s(k)
N, D      likelihood of all outputs given i and given j; both linear in every m_s by itself
rho       a ratio less 1:  F(rho) = max over all m of N / (1 + rho) - D, whose sign is that of the theory's F
c, v      coefficients of F and of D / (1 + rho), rolled from the nearest step (s = t - 1) to the furthest (s = 0)
p, w      sums of the positive and of the negative entries of c, both >= 0
total     running sum of c: -rho / (1 + rho) plus what each step adds
a         log spread of the likelihoods of everything up to and including a step; growth = e^a, more = e^a - 1
K         incoming leakage of a pair, log(1 + root of F)

``c = q / (1 + rho) - d``; at each step multiply ``c_k`` by the largest factor where c_k > 0 and by the smallest elsewhere, then
``c <- c P``. F is the sum of what is left. It is convex and decreasing. After any number of steps
``p - w <= F <= growth p - w`` (for factors of at least 1, in units of the smallest D), so that a rollout ends where what lies
before no longer matters. As D >= 1, ``F <= x`` at a level proves ``K <= level + log(1 + x)``.

Rounding is bounded in two ways, and the better bound is used. *Backward:* what is computed is exactly F for matrices and
factors whose entries differ by at most gamma a step, so that a computed sign proves K to ``2 gamma`` a step. *Sums:* where all
factors are near 1, `total` keeps its digits however small budgets are, and `drift` bounds what all entries of c together can
be wrong by. Both hold for any order of summation. Proofs: Theory, sections 10 and 22.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from temporaldp.base.progress import effort_is_over
from temporaldp.base.values import ROUNDOFF as UNIT
from temporaldp.base.values import BoolArray, FloatArray, IntArray
from temporaldp.core.kernels.chain import LARGEST_EXPONENT, ROWS, Chain, Items

LONGEST = 20_000
"""Steps after which a rollout over an infinite horizon is given up. If doubled: suprema near the border of existence take four
times as long, and a few more of them are certified."""


def next_look(depth: int) -> int:
    """The depth of the next look at whether to go on: the further, the longer steps may be in vain, but not without end."""
    return depth + 1 + min(depth // 5, 16)


FIRST_JUMP = 64
"""Steps of rollouts before several are taken at once: coefficients that shrink quickly have done so, and round less."""


LEVEL_SHARE = 2.0**-34
"""Share of a level up to which rounding may hide whether a pair stays below it."""


class Look(NamedTuple):
    """What rollouts say of F with one more step, in units of the smallest D.

    ``low <= F <= high`` but for the backward error, `backward` nats of the root; ``summed <= F <= summed_high`` but for
    `bound`. The rest is what the step itself needs.
    """

    low: FloatArray
    high: FloatArray
    summed: FloatArray
    summed_high: FloatArray
    bound: FloatArray
    backward: FloatArray
    positive: FloatArray
    p: FloatArray
    w: FloatArray
    error: FloatArray
    widest: FloatArray

    def of(self, kept: BoolArray | IntArray) -> Look:
        """What is said of some items."""
        m = len(self.p)
        return Look(*(one[kept] if len(one) == m else one for one in self))

    def excess(self, unit: FloatArray | float = 1.0) -> FloatArray:
        """Nats by which K can exceed the level at most; `unit` is the smallest D."""
        by_sums = np.log1p(np.maximum(self.summed_high + self.bound, 0.0) / unit)
        return np.asarray(np.fmin(by_sums, np.log1p(np.maximum(self.high, 0.0) / unit) + self.backward))


@dataclass(frozen=True, slots=True, eq=False)
class Rollouts:
    """Rollouts of m items, each before a step of its own.

    Parameters
    ----------
    c : array, shape (m, n)
    total, error, drift : array, shape (m,)
        The sum of c kept by itself, its error bound, and the error bound of all entries of c together.
    depth : array, shape (m,)
        Number of steps taken: the backward error of c.
    gamma : float
        Relative error of an entry in one step.
    """

    c: FloatArray
    total: FloatArray
    error: FloatArray
    drift: FloatArray
    depth: FloatArray
    gamma: float

    @classmethod
    def start(cls, q: FloatArray, d: FloatArray, rho: FloatArray, gamma: float) -> Rollouts:
        """Before the first step, at ratios less 1; q and d, shape (m, n), are the rows of the two states."""
        scale = 1.0 / (1.0 + rho)
        scaled = rho * scale
        apart, ones = q - d, np.ones(q.shape[1])
        drift = (np.abs(apart) @ ones * (4.0 * gamma) + np.abs(apart @ ones)) * scale + 4.0 * gamma * scaled
        apart *= scale[:, None]
        apart -= scaled[:, None] * d
        return cls(apart, -scaled, UNIT * scaled, drift, np.zeros(len(scaled)), gamma)

    def __len__(self) -> int:
        return len(self.c)

    def __getitem__(self, which: BoolArray | IntArray | slice) -> Rollouts:
        sides = self.total[which], self.error[which], self.drift[which], self.depth[which]
        return Rollouts(self.c[which], *sides, self.gamma)

    def look(self, up: FloatArray, down: FloatArray | None, more: FloatArray, last: BoolArray | None = None) -> Look:
        """F with one more step.

        `up` and `down` are the factors less 1, shape (m, 1) or (m, n), `down` None where it is 0; `more` is the growth of
        everything up to the step less 1, shape (m,), and that of the step itself where it is the `last`.
        """
        sums, ones = (self.c.shape[1] + 4) * UNIT, np.ones(self.c.shape[1])
        positive = np.maximum(self.c, 0.0)
        p = positive @ ones
        beyond = more * p
        if not np.isfinite(more).all():
            beyond = np.where(p > 0.0, beyond, 0.0)
        if down is None and up.shape[1] == 1:
            w = p - self.c @ ones
            widest = up[:, 0]
            add = widest * p
            low, high = (p + add) - w, (p + beyond) - w
            summed, summed_high = self.total + add, self.total + beyond
        else:
            negative = positive - self.c
            w = negative @ ones
            raised = (positive * up) @ ones
            lowered = 0.0 * raised if down is None else (negative * down) @ ones
            widest = up.max(axis=1) if down is None else np.maximum(up, down).max(axis=1)
            low, high = (p + raised) - (w + lowered), (p + beyond) - w
            summed, summed_high = self.total + (raised - lowered), self.total + beyond
            if last is not None:
                high, summed_high = np.where(last, low, high), np.where(last, summed, summed_high)
        spill, off = self.drift + 2.0 * sums * (p + w), UNIT * np.abs(self.total)
        error = self.error + widest * spill + off
        bound = error + more * spill + 3.0 * off
        backward = 2.0 * (self.gamma * (self.depth + 2.0) + 2.0 * sums)
        return Look(low, high, summed, summed_high, bound, backward, positive, p, w, error, widest)

    def raised(self, seen: Look, up: FloatArray, down: FloatArray | None) -> FloatArray:
        """Coefficients times the factors of the step."""
        g = seen.positive * up
        g += self.c
        if down is not None:
            g -= (seen.positive - self.c) * down
        return g

    def after(self, seen: Look, c: FloatArray) -> Rollouts:
        """After that step, with the coefficients that lead on."""
        sides = (1.0 + seen.widest) * (seen.p + seen.w)
        drift = (1.0 + seen.widest) * self.drift + 2.0 * self.gamma * sides
        return Rollouts(c, seen.summed, seen.error, drift, self.depth + 1.0, self.gamma)

    def jumped(self, chain: Chain) -> tuple[Rollouts, IntArray]:
        """After several steps at once, and their number."""
        c, steps, gained, size = chain.jumped(self.c[None])
        widest, sums = float(np.maximum(chain.up, chain.down).max()), (self.c.shape[1] + 4) * UNIT
        grown = (1.0 + widest) ** steps
        drift = grown * (self.drift + 2.0 * self.gamma * (size + steps * np.abs(self.c).sum(axis=1)))
        total = self.total + gained[0]
        off = UNIT * (np.abs(self.total) + np.abs(total) + widest * size)
        error = self.error + widest * (steps * drift + 2.0 * sums * size) + steps * off
        return Rollouts(c[0], total, error, drift, self.depth + steps, self.gamma), steps


def shrinking(c: FloatArray) -> FloatArray:
    """Powers of two, which round nothing, that bring the entries of each row to at most 1."""
    return np.asarray(np.ldexp(1.0, -np.frexp(np.maximum(np.abs(c).max(axis=1), 1.0))[1]))


class Pause:
    """When several steps are taken at once: where few keep their signs, ever more single steps come before the next try."""

    def __init__(self, chain: Chain, first: int) -> None:
        self._length, self._left, self._always = first, first, not chain.most_at_once

    def is_over(self, n_items: int) -> bool:
        """Whether to try it now; asked once a step."""
        # Items up to which it saves time to take several steps at once
        if self._always or n_items > 64:
            return False
        self._left -= 1
        return self._left < 0

    def noted(self, steps: IntArray) -> None:
        """Note how many steps were taken."""
        # So many steps at once take as long as single ones; where they went well, three single ones follow
        self._length = min(2 * self._length, LONGEST) if steps.mean() < 8 else 3
        self._left = self._length


class _SignRun:
    """Rollouts of items through the steps of a chain, of which ever fewer are followed."""

    def __init__(self, chain: Chain, items: Items, rho: FloatArray) -> None:
        self.user, t, i, j = items
        self.chain, self.alive, self.depth = chain, np.arange(len(t)), np.zeros(len(t), np.int64)
        self.s = t if chain.infinite else t - 1
        self.now = Rollouts.start(chain.rows(self.user, t, i), chain.rows(self.user, t, j), rho, chain.gamma)
        self.unit: FloatArray | float = 1.0  # the smallest D in units of the coefficients
        self.pause = Pause(chain, FIRST_JUMP)

    def look(self) -> Look:
        """F with the next step."""
        chain, s = self.chain, self.s
        self.up, self.down = chain.up[s], None if chain.is_plain else chain.down[s]
        self.more, self.last = chain.growth_less_1[self.user, s], None
        if not chain.infinite and (last := s == 0).any():
            self.last, self.more = last, np.where(last, self.up[:, 0], self.more)
        self.depth = self.depth + 1
        return self.now.look(self.up, self.down, self.more, self.last)

    def follow(self, seen: Look, ended: BoolArray) -> None:
        """Take the step with the items that have not ended."""
        if ended.any():
            kept = np.flatnonzero(~ended)
            self.alive, self.user, self.s, self.up = self.alive[kept], self.user[kept], self.s[kept], self.up[kept]
            self.depth = self.depth[kept]
            self.now, seen = self.now[kept], seen.of(kept)
            self.down = None if self.down is None else self.down[kept]
            self.unit = self.unit[kept] if isinstance(self.unit, np.ndarray) else self.unit
        if not len(self.alive):
            return
        if self.pause.is_over(len(self.alive)):
            self.now, steps = self.now.jumped(self.chain)
            self.depth += steps - 1
            self.pause.noted(steps)
        else:
            g = self.now.raised(seen, self.up, self.down)
            self.now = self.now.after(seen, self.chain.through(self.user, self.s, g))
        # Coefficients beyond are scaled down: only ratios count.
        if not float(np.maximum(seen.p, seen.w).max()) < 1e140:
            shrink = shrinking(self.now.c)
            self.unit = self.unit * shrink
            now = self.now
            sides = now.total * shrink, now.error * shrink, now.drift * shrink
            self.now = Rollouts(now.c * shrink[:, None], *sides, now.depth, now.gamma)
        if not self.chain.infinite:
            self.s = self.s - 1


class Signs(NamedTuple):
    """What rollouts at a level each prove of K, from above and from below, and their depths."""

    proved: FloatArray
    attained: FloatArray
    depth: IntArray


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def signs(chain: Chain, items: Items, level: FloatArray, slack: float, deepest: int) -> Signs:
    """Follow rollouts until the sign of F is proved, or K exceeds the level by no more than rounding or a share `slack`."""
    run, m = _SignRun(chain, items, np.expm1(level)), len(level)
    above, below, depth = np.full(m, np.inf), np.zeros(m), np.zeros(m, np.int64)
    while len(run.alive) and not effort_is_over():
        seen, at = run.look(), level[run.alive]
        excess = seen.excess(run.unit)
        hidden = np.where(seen.backward <= LEVEL_SHARE * at, 1.01 * seen.backward, 0.0)
        ended = (excess <= np.maximum(slack * at, hidden)) | (
            (chain.is_plain or chain.infinite)
            & (seen.summed_high - seen.summed <= 0.25 * np.minimum(seen.bound, seen.backward * seen.p))
        )
        if chain.is_plain:  # F grows with the number of steps, so that a positive sign stays
            by_sums, by_ratio = seen.summed > seen.bound, seen.low > 0.0
            ended |= by_sums | (seen.low > 8.0 * seen.backward * seen.p)
        else:
            by_sums = np.zeros(len(at), bool) if run.last is None else run.last & (seen.summed > seen.bound)
            by_ratio = (
                seen.p > (1.0 + run.more) * seen.w
                if run.last is None
                else np.where(run.last, seen.low > 0.0, seen.p > (1.0 + run.more) * seen.w)
            )
            ended |= by_sums | by_ratio
        if run.last is not None:
            ended |= run.last
        ended |= run.depth >= deepest
        if ended.any():
            which = run.alive[ended]
            above[which] = (at + excess)[ended] * (1.0 + 4.0 * UNIT)
            least = np.where(by_sums, at, np.where(by_ratio, at - seen.backward, 0.0))
            below[which] = np.maximum(least[ended], 0.0) * (1.0 - 4.0 * UNIT)
            depth[which] = run.depth[ended]
        run.follow(seen, ended)
    return Signs(above, below, depth)


def computed_signs(chain: Chain, items: Items, level: FloatArray, deepest: int) -> tuple[IntArray, IntArray]:
    """Signs of F as they are computed at a level each, and their depths; 0 where there is none after so many steps.

    A sign proves K to the backward error of its depth.
    """
    user, t, i, j = items
    c = chain.rows(user, t, i)
    c *= np.exp(-level).astype(chain.matrices[0].dtype)[:, None]
    c -= chain.rows(user, t, j)
    return signs_of(chain, user, t if chain.infinite else t - 1, c, deepest)


@np.errstate(over="ignore", invalid="ignore")
def signs_of(chain: Chain, user: IntArray, s: IntArray, c: FloatArray, deepest: int) -> tuple[IntArray, IntArray]:
    """`computed_signs` of coefficients before a step s each, which are written over."""
    found, depths = np.zeros(len(c), np.int64), np.zeros(len(c), np.int64)
    alive, every_step, kind = np.arange(len(c)), chain.n >= ROWS, c.dtype
    ones, pause, at_once = np.ones(chain.n, kind), Pause(chain, FIRST_JUMP), np.zeros(len(c), np.int64)
    look_at, nearest = 1, deepest if chain.infinite else int(s.min(initial=deepest))
    for depth in range(1, deepest + 1 if len(alive) else 0):
        ends = not chain.infinite and nearest == 0
        look, positive = ends or every_step or depth in (look_at, deepest), np.maximum(c, 0.0)
        if look:
            look_at, p = next_look(depth), positive @ ones
            w, grown = p - c @ ones, 1.0 + chain.growth_less_1[user, s]
            sign = -((grown * p <= w) & (w < np.inf)).astype(np.int64)
            # For plain releases F grows with the number of steps.
            above = (
                (1.0 + (chain.up[0] if chain.repeats else chain.up[s, 0])) * p > w if chain.is_plain else p > grown * w
            )
            sign[above] = 1
            ended = sign != 0
        chain.raise_all(s, c, positive)
        if look:
            if ends:
                whole, last = c @ ones, s == 0
                sign, ended = np.where(last, np.sign(np.where(whole == 0.0, -1.0, whole)), sign), ended | last
            if ended.any():
                at = alive[ended]
                found[at], depths[at] = np.where(np.isnan(sign), 0, sign)[ended], depth + at_once[at]
            ended |= (at_once[alive] + depth >= deepest) | effort_is_over()
            if ended.any():
                kept = np.flatnonzero(~ended)
                if not len(kept):
                    break
                alive, user, s, c = alive[kept], user[kept], s[kept], c[kept]
                nearest = nearest if chain.infinite else int(s.min())
            if not float(np.maximum(p, w).max()) < 1e140:  # only ratios count
                c *= shrinking(c)[:, None]
        c = chain.through(user, s, c)
        if pause.is_over(len(alive)):
            moved, steps, _, _ = chain.jumped(c[None])
            pause.noted(steps)
            c, look_at = moved[0], depth + 1
            at_once[alive] += steps
        if not chain.infinite:
            s, nearest = s - 1, nearest - 1
    return found, depths


def _below(chain: Chain, items: Items, level: FloatArray) -> IntArray:
    """Depths at which rollouts prove ``K <= level`` with room for all of their rounding; 0 where they do not."""
    chain, depths = chain.rough, np.zeros(len(level), np.int64)
    margin = float(chain.blur(np.array(chain.few_steps)))
    asked = np.flatnonzero(level > 8.0 * margin)
    here = tuple(one[asked] for one in items)
    signs, found = computed_signs(chain, here, level[asked] - margin, chain.few_steps)  # type: ignore[arg-type]
    depths[asked] = np.where((signs < 0) & (found <= chain.few_steps), found, 0)
    return depths


def blocks(chain: Chain, m: int) -> Iterator[slice]:
    """Blocks of items, until the effort is over."""
    for some in chain.blocks(m):
        if effort_is_over():
            return
        yield some


def upper(
    chain: Chain, items: Items, level: FloatArray, slack: float = 0.0, *, deepest: int = LONGEST, roughly: bool = False
) -> tuple[FloatArray, BoolArray, IntArray]:
    """Upper bounds of K from rollouts at a level each, whether they prove it to rounding or a share `slack`, and depths.

    `roughly`: pairs whose K may be as near to the level as rounding without bounds of sums are left.
    """
    m, chain = len(level), replace(chain, rows_at_once=chain.n)
    proved, depth = chain.arriving(*items[:2]) * (1.0 + 4.0 * UNIT), np.zeros(m, np.int64)
    asked = np.flatnonzero((proved > level) & (level > 0.0) & (level <= LARGEST_EXPONENT))
    if deepest == LONGEST:
        for some in blocks(chain, len(asked)):
            here = asked[some]
            depth[here] = _below(chain, tuple(one[here] for one in items), level[here])  # type: ignore[arg-type]
        known = depth[asked] > 0
        proved[asked[known]] = level[asked[known]]
        asked = asked[~known & (not roughly)]
    for some in blocks(chain, len(asked)):
        here = asked[some]
        found = signs(chain, tuple(one[here] for one in items), level[here], slack, deepest)  # type: ignore[arg-type]
        proved[here], depth[here] = np.minimum(proved[here], found.proved), found.depth
    blur = 4.0 * chain.blur(depth)
    hidden = np.where(blur <= LEVEL_SHARE * level, blur, 0.0)
    return proved, proved <= level + np.maximum(slack * level, hidden), depth
