"""The exact leakage of a sequence of releases: backward, forward and temporal, at every step, from both sides.

Each direction runs away from the first release that it sees, so that forward leakage is backward leakage of everything
reversed. Steps are taken in blocks; what a block proves bounds the likelihoods in which later rollouts end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.pair_bounds import Direction, Pairs
from temporaldp.accounting.exact.pair_search import FEW_PAIRS, REACHED, Maxima, PairSearch, widest
from temporaldp.kernels.chain import Chain
from temporaldp.mechanisms.likelihood_box import widths
from temporaldp.progress import part
from temporaldp.values import ROUNDOFF as U
from temporaldp.values import compared_by_value

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FIRST_BLOCK, LAST_BLOCK = 64, 256
"""Steps of the first block, which doubles up to the last."""

LARGEST_FACTOR = 300.0
"""Nats that one output may say about a value in rollouts, so that coefficients stay within the range of doubles."""

ROOM = 1.0 + 1e-6
"""Bounds on likelihoods are raised by this before they are used: steps that have all but settled then share an answer."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class Releases:
    """What the output of each step can say for each value: log of its largest and smallest factor.

    `lift` and `drop` have shape (T, n), or (T, 1) where all values are alike: epsilon and 0 for plain differential privacy.
    """

    lift: FloatArray
    drop: FloatArray

    def __len__(self) -> int:
        return len(self.lift)

    @classmethod
    def of_epsilons(cls, epsilons: FloatArray) -> Releases:
        """Plain differential privacy: every value's factor lies between 1 and e^epsilon."""
        return cls(epsilons[:, None], np.zeros((len(epsilons), 1)))

    def __getitem__(self, steps: slice) -> Releases:
        return Releases(self.lift[steps], self.drop[steps])

    @property
    def is_plain(self) -> bool:
        """Whether all values are alike."""
        return int(self.lift.shape[1]) == 1

    @property
    def attained(self) -> FloatArray:
        """What the outputs of each step by itself attain, shape (T,): the width, rounded down where it was rounded up."""
        return self.width if self.is_plain else self.width * (1.0 - 8.0 * U)

    @property
    def width(self) -> FloatArray:
        """The largest log ratio between any two values, shape (T,): what each step promises by itself."""
        return (self.lift - self.drop)[:, 0] if self.is_plain else widths(self.lift, self.drop)

    @property
    def widest(self) -> Pairs:
        """The pair of values that each step's own output tells apart best."""
        return widest(self.lift, self.drop)

    @property
    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Each value's largest and smallest factor less 1, scaled so that the least of a step is 1: 1 + x keeps its digits.

        One rounding each, where the machine has a longer mantissa.
        """
        least = self.drop.min(axis=1, keepdims=True).astype(np.longdouble)
        with np.errstate(over="ignore"):
            up, down = (np.expm1(side - least).astype(np.float64) for side in (self.lift, self.drop))
        return up, down

    @property
    def narrowed(self) -> tuple[Releases, float]:
        """Releases within these whose factors rollouts can carry, and nats by which what all of them leak can be less."""
        middle = self.drop.max(axis=1, keepdims=True)  # a point that all intervals have in common
        down = np.minimum(middle - self.drop.min(axis=1, keepdims=True), 0.5 * LARGEST_FACTOR)
        lift = np.minimum(self.lift, middle + (LARGEST_FACTOR - down))
        drop = np.maximum(self.drop, middle - down)
        beyond = float(((self.lift - lift).max(axis=1) + (drop - self.drop).max(axis=1)).sum())
        return (Releases(lift, drop), beyond * (1.0 + 1e-12)) if beyond > 0.0 else (self, 0.0)

    @property
    def reversed(self) -> Releases:
        """The last step first."""
        return self[::-1]


def arrivals(
    matrices: tuple[FloatArray, ...], into: IntArray, releases: Releases, ceiling: FloatArray, likely: Pairs
) -> tuple[Direction, Maxima]:
    """Rollouts in one direction, and the largest of what arrives at each step and its own part.

    Parameters
    ----------
    matrices : tuple of arrays, shape (n, n)
    into : int array, shape (T,)
        Number of the matrix of the transition into each step.
    releases : Releases
        In this direction's order of steps.
    ceiling : array, shape (T,)
        Bounds on the answers that are known already: the paper's.
    likely : two int arrays
        Pairs to begin with.
    """
    chain = Chain(matrices, into, *releases.factors)
    n_steps, width = len(releases), releases.width
    spread, used = np.zeros(n_steps), np.zeros(n_steps)
    maxima = Maxima.empty(n_steps)
    n_pairs = chain.n * (chain.n - 1)
    direction = Direction(chain, used, np.zeros((2, n_steps, n_pairs)) if n_pairs <= FEW_PAIRS else None)
    search = PairSearch((direction,), releases.lift, releases.drop)
    ceiling = ceiling * (1.0 + 16.0 * U * (2.0 + np.arange(n_steps)))  # each step of it has a dozen roundings
    run_starts = _run_starts(chain, releases)
    block, first = FIRST_BLOCK, 0
    while first < n_steps:
        steps = np.arange(first, min(n_steps, first + block))
        # Of a block's own steps only so much is known beforehand: what came before it, and its budgets.
        before = spread[first - 1] if first else 0.0
        used[steps] = np.minimum(ceiling[steps], before + np.cumsum(width[steps])) * ROOM
        last = max(first - 1, 0)
        candidates = [(np.array(i), np.array(j)) for i, j in zip(*likely, strict=True)]
        candidates.append((maxima.i[last], maxima.j[last]))
        guess = 0.5 * np.maximum(used[steps] - width[steps], 0.0)
        with part(first / n_steps, (first + len(steps)) / n_steps, "leakage of every step"):
            depth = search.largest(maxima, steps, candidates, guess, ceiling[steps])
        proved = float(maxima.proved[steps[-1]])
        maxima.lower(steps, ceiling[steps])
        spread[steps] = maxima.proved[steps]
        at = int(steps[-1])
        first, window = at + 1, slice(at - depth, at)
        # Where everything that the last step's rollouts saw stays as it is, so does the answer.
        same = depth > 0 and at - depth >= max(1, run_starts[at])
        if same and max(spread[window].max(), spread[at]) <= used[window].min():
            first = int(np.searchsorted(run_starts, run_starts[at], side="right"))
            maxima.copy_from(slice(at + 1, first), at)
            # What was lowered to a step's ceiling holds at a later step up to that step's own.
            rolled = np.inf if maxima.attained[at] >= ceiling[at] * REACHED or proved >= ceiling[at] else proved
            maxima.proved[at + 1 : first] = np.minimum(rolled, ceiling[at + 1 : first])
            spread[at + 1 : first] = maxima.proved[at + 1 : first]
            if direction.solved is not None:
                direction.solved[:, at + 1 : first] = direction.solved[:, at, None]
        used[:first] = spread[:first] * ROOM
        block = min(2 * block, LAST_BLOCK)
    return direction, maxima


def _run_starts(chain: Chain, releases: Releases) -> IntArray:
    """For each step the first of the run of steps, up to it, with the same budgets and matrices."""
    changed = np.zeros(len(releases), bool)
    for one in (releases.lift, releases.drop):
        changed[1:] |= (one[1:] != one[:-1]).any(axis=1)
    changed[2:] |= chain.into[2:] != chain.into[1:-1]
    return np.maximum.accumulate(np.where(changed, np.arange(len(releases)), 0))


def both_ways(
    past: Direction, before: Maxima, future: Direction, after: Maxima, releases: Releases, ceiling: FloatArray
) -> Maxima:
    """TPL: the largest over pairs of what arrives from both directions and the step's own part.

    `past` and `before` are in order of time; `future` and `after` in reverse, as `arrivals` gives them. `ceiling`, shape (T,),
    holds bounds on the answers that are known already, in order of time.
    """
    n_steps = len(releases)
    maxima = Maxima.empty(n_steps)
    search = PairSearch((past, future.reversed()), releases.lift, releases.drop)
    which = _numbered((before.same_as, after.same_as[::-1], *releases.lift.T, *releases.drop.T))
    firsts = np.unique(which, return_index=True)[1]
    deepest = np.zeros(n_steps, np.int64)
    rolled = np.full(n_steps, np.inf)

    def fill(steps: IntArray) -> None:
        for first in range(0, len(steps), LAST_BLOCK):
            block = steps[first : first + LAST_BLOCK]
            ahead = n_steps - 1 - block
            ends = [(before.i[block], before.j[block]), (after.i[ahead], after.j[ahead])]
            some = [(i[k], j[k]) for i, j in ends for k in (0, len(block) // 2, -1)]
            arriving = np.maximum(0.5 * (before.proved[block] + after.proved[ahead]) - releases.width[block], 0.0)
            with part(first / len(steps), (first + len(block)) / len(steps), "past and future together"):
                deepest[block] = search.largest(maxima, block, [*ends, *some], arriving, ceiling[block])
            known = (maxima.attained[block] >= ceiling[block] * REACHED) | (maxima.proved[block] >= ceiling[block])
            rolled[block] = np.where(known, np.inf, maxima.proved[block])

    fill(np.sort(firsts))
    # A pair that is no maximum of either direction may have looked back further than what settles their maxima.
    alone = _not_shared(past, future, which, deepest[firsts], releases)
    maxima.copy_from(np.arange(n_steps), firsts[which])
    rolled = rolled[firsts[which]]
    fill(alone)
    maxima.proved[:] = rolled
    maxima.lower(np.arange(n_steps), ceiling)
    return maxima


def _not_shared(past: Direction, future: Direction, which: IntArray, depths: IntArray, releases: Releases) -> IntArray:
    """The steps whose answer is not that of the first step with the same number, as rollouts there saw what differs."""
    n_steps = len(which)
    every = np.arange(n_steps)
    alone = np.zeros(n_steps, bool)
    counts = np.bincount(which)
    firsts, lasts = np.full(len(counts), n_steps), np.zeros(len(counts), np.int64)
    np.minimum.at(firsts, which, every)
    np.maximum.at(lasts, which, every)
    for direction, low, high, run_starts in (
        (past, firsts, lasts, _run_starts(past.chain, releases)),
        (future, n_steps - 1 - lasts, n_steps - 1 - firsts, _run_starts(future.chain, releases.reversed)),
    ):
        for group in np.flatnonzero((counts > 1) & (depths > 0)):
            start = int(low[group] - depths[group])
            seen = slice(max(start, 0), int(low[group]))
            largest = max(float(direction.spread[seen].max(initial=0.0)), float(direction.spread[high[group]]))
            if start < max(1, run_starts[low[group]]) or direction.spread[seen].min(initial=np.inf) * ROOM < largest:
                alone |= which == group
    alone[firsts] = False
    return np.flatnonzero(alone)


def _numbered(columns: Iterable[NDArray[Any]]) -> IntArray:
    """A number for each step, equal where all columns are; a column at a time, as whole rows sort slowly."""
    found: IntArray | None = None
    for column in columns:
        values, number = np.unique(column, return_inverse=True)
        found = number if found is None else np.unique(found * len(values) + number, return_inverse=True)[1]
    assert found is not None
    return found
