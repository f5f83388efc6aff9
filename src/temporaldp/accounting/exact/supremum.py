"""The exact leakage that no horizon exceeds, under a release that repeats for ever; with a certificate, or infinite.

**Certificate.** Suppose that no horizon's leakage exceeds a level, and let rollouts end in likelihoods within that level of one
another. If what they prove for every pair is at most the level, the supposition holds by induction on the horizon, since a
rollout of d steps at horizon t rests on the leakage at horizon t - d only. The paper's supremum, where it is finite, needs no
supposition.

**Existence** is decided beforehand (`has_supremum`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.arrivals import ROOM, Releases
from temporaldp.accounting.exact.pair_bounds import Direction, Pairs, every_pair_at, not_ruled_out
from temporaldp.accounting.exact.pair_search import FEW_PAIRS, Maxima, PairSearch
from temporaldp.kernels.chain import Chain
from temporaldp.kernels.rollouts import LARGEST_LEAKAGE, LONGEST
from temporaldp.progress import progressed

FloatArray = NDArray[np.float64]

SMALL = 30.0
"""Nats. A bound of the paper's up to this needs no supposition that would be tighter: rollouts grow with its logarithm."""

DEEP_ENOUGH = (1, 2, 4, 8, 32)
"""Steps back that are looked for a proof that somebody's leakage stays below that of somebody else."""

TRIES, RAISED = 12, 2.5
"""Levels that are supposed, each so many times what the last one led to: rollouts grow with the logarithm of a level only."""

MOST_GIVEN_UP = 3
"""Levels whose rollouts came to no end, and proved nothing, after which there is no certificate."""


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """The supremum through one direction, or through both: `attained` is approached by some horizon, `proved` exceeded by none.

    `direction` (None where there is no supremum) has endless rollouts that end within what is proved.
    """

    attained: float
    proved: float
    i: int
    j: int
    direction: Direction | None


def exact_limit(matrix: FloatArray, release: Releases, ceiling: float, likely: Pairs) -> Limit:
    """The supremum of what arrives through one direction and a step's own part.

    Parameters
    ----------
    matrix : array, shape (n, n)
        Rows sum to 1, to rounding.
    release : Releases
        One step.
    ceiling : float
        The paper's supremum; may be inf.
    likely : two int arrays
        Pairs to begin with.
    """
    ceiling *= 1.0 + 1e-12  # known to rounding
    if release.narrowed[1] > 0.0:  # too loud for rollouts
        (i,), (j,) = release.widest
        return Limit(float(release.attained[0]), ceiling, int(i), int(j), None)
    chain = Chain((matrix,), np.zeros(1, np.int64), *release.factors, endless=True)
    own = float(release.width[0])
    n_pairs = chain.n * (chain.n - 1)
    steps = np.zeros(1, np.int64)
    maxima = Maxima.empty(1)
    candidates = [(np.array([i]), np.array([j])) for i, j in zip(*likely, strict=True)]
    supposed = ceiling if ceiling < SMALL else min(ceiling, 4.0 * own)
    given_up = 0
    for attempt in range(TRIES):
        progressed("leakage for ever", attempt / TRIES)
        kept = np.zeros((2, 1, n_pairs)) if n_pairs <= FEW_PAIRS else None
        direction = Direction(chain, np.array([supposed]), kept)
        search = PairSearch((direction,), release.lift, release.drop)
        depth = search.largest(maxima, steps, candidates, np.array([max(0.7 * supposed - own, 0.0)]))
        attained, proved = float(maxima.attained[0]), float(maxima.proved[0])
        pair = int(maxima.i[0]), int(maxima.j[0])
        if proved <= supposed or supposed == ceiling:
            proved = min(proved, ceiling)
            direction = replace(direction, spread=np.array([min(proved, supposed)]))
            return Limit(min(attained, proved), proved, *pair, direction)
        given_up += depth >= LONGEST
        if not math.isfinite(proved) or supposed > LARGEST_LEAKAGE or given_up == MOST_GIVEN_UP:
            break
        candidates = [(maxima.i.copy(), maxima.j.copy())]
        supposed = min(ceiling, RAISED * max(proved, supposed))
    return Limit(float(maxima.attained[0]), ceiling, int(maxima.i[0]), int(maxima.j[0]), None)


def both_limits(past: Limit, future: Limit, release: Releases) -> Limit:
    """The supremum of TPL: the largest over pairs of what arrives through both directions and a step's own part."""
    assert past.direction is not None
    assert future.direction is not None
    search = PairSearch((past.direction, future.direction), release.lift, release.drop)
    maxima = Maxima.empty(1)
    own = float(release.width[0])
    candidates = [(np.array([one.i]), np.array([one.j])) for one in (past, future)]
    guess = max(0.5 * (past.proved + future.proved) - own, 0.0)
    search.largest(maxima, np.zeros(1, np.int64), candidates, np.array([guess]))
    return Limit(float(maxima.attained[0]), float(maxima.proved[0]), int(maxima.i[0]), int(maxima.j[0]), None)


def never_above(users: Sequence[tuple[Any, ...]], release: Releases, levels: FloatArray) -> NDArray[np.bool_]:
    """Whose BPL, FPL and TPL are proved never to exceed three levels times `RISE`, shape (users,): by signs, all users at once.

    Parameters
    ----------
    users : sequence of two matrices each
        The backward and the forward one, None where nothing arrives. All of one shape, with rows that sum to 1, to rounding.
    release : Releases
        One step.
    levels : array, shape (3,)
        For all users alike. The third is no less than the others. Levels a little higher are supposed, so that what is proved
        is within them.
    """
    below, own = np.ones(len(users), bool), float(release.width[0])
    up, down = (np.repeat(one, len(users), axis=0) for one in release.factors)
    every, directions = np.arange(len(users)), []
    for way, level in enumerate(levels[:2]):
        known = np.array([user[way] is not None for user in users])
        if not known.any():
            return below
        filler = users[int(np.argmax(known))][way]
        matrices = tuple(filler if user[way] is None else user[way] for user in users)
        chain = Chain(matrices, every, up, down, endless=True)
        directions.append(Direction(chain, np.full(len(users), level * ROOM), None))
        search = PairSearch(directions[-1:], release.lift, release.drop)
        items = every_pair_at(every[known], search.pairs())
        left, _ = not_ruled_out(directions[-1:], items, np.full(len(items), level - own), DEEP_ENOUGH)
        below[left.t] = False
    both = np.array([user[0] is not None and user[1] is not None for user in users])
    items = every_pair_at(every[both & below], search.pairs())
    left, _ = not_ruled_out(directions, items, np.full(len(items), levels[2] - own), DEEP_ENOUGH)
    below[left.t] = False
    return below


def leakage_if_held(past: FloatArray | None, future: FloatArray | None, release: Releases, level: float) -> float:
    """TPL for ever, supposing that no horizon's exceeds a level: if the answer is at most the level, the supposition holds.

    `past` and `future` are matrices whose rows sum to 1, or None where nothing arrives. An upper bound; above the level it says
    no more than that.
    """
    if release.narrowed[1] > 0.0:
        return math.inf
    directions = []
    steps, maxima = np.zeros(1, np.int64), Maxima.empty(1)
    guess = np.array([max(0.5 * (level - float(release.width[0])), 0.0)])
    for matrix in (past, future):
        if matrix is None:
            continue
        chain = Chain((matrix,), steps, *release.factors, endless=True)
        n_pairs = chain.n * (chain.n - 1)
        kept = np.zeros((2, 1, n_pairs)) if n_pairs <= FEW_PAIRS else None
        directions.append(Direction(chain, np.array([level]), kept))
        if kept is not None:
            PairSearch(directions[-1:], release.lift, release.drop).largest(maxima, steps, [], guess)
    if not directions:
        return float(release.width[0])
    if len(directions) == 2 or not maxima.proved[0] < math.inf:
        PairSearch(directions, release.lift, release.drop).largest(maxima, steps, [], guess)
    return float(maxima.proved[0])
