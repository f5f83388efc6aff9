"""Suprema of the exact leakage over all horizons, for a release that repeats; certified, or infinite.

**Certificate.** Suppose that no horizon's leakage exceeds a level, and let rollouts end in likelihoods within that level of one
another. If what they prove for every pair is at most the level, the supposition holds by induction on the horizon, since a
rollout of d steps at horizon t rests on the leakage at horizon t - d only. The paper's supremum, where it is finite, needs no
supposition.

**Existence** is decided beforehand (`has_supremum`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from temporaldp.base.progress import effort_is_over, part
from temporaldp.base.values import ROUNDOFF as U
from temporaldp.base.values import FloatArray, IntArray
from temporaldp.core.accounting.exact.arrivals import Releases, at_most_both, likely_pairs, rows_of
from temporaldp.core.accounting.exact.search import Cells, Side, largest
from temporaldp.core.correlation import TransitionMatrix
from temporaldp.core.correlation.transition import closed_classes
from temporaldp.core.kernels.chain import LARGEST_LEVEL, Chain
from temporaldp.core.kernels.rollouts import LONGEST
from temporaldp.core.kernels.roots import MOST_LONG

FIRST_LEVEL, LEVEL_RAISED, MOST_LEVELS = 4.0, 2.5, 12
"""Levels that are supposed: the first in units of a step's own part, each next one this many times what the last one led to,
and how many."""


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """The supremum of one direction, or both: `attained` is approached by some horizon, `proved` is exceeded by none.

    `pair` is ``i n + j``. `rollouts` of one direction end within what is proved; None where there is no supremum.
    """

    attained: float
    proved: float
    pair: int
    rollouts: Side | None = None


def exact_limit(matrix: TransitionMatrix, release: Releases, ceiling: float) -> Limit:
    """The supremum of incoming leakage through one direction with a step's own part; `ceiling` is the paper's."""
    likely = np.append(likely_pairs(matrix), release.widest)
    if not release.is_countable:
        return Limit(float(release.attained[0]), ceiling, int(likely[-1]))
    # Where the paper's supremum is finite, which the exact one does not exceed, existence needs no proof.
    is_open = release.is_plain and ceiling == math.inf
    exists = has_supremum(matrix.probabilities, float(release.width[0])) if is_open else True
    if not exists:
        return Limit(float(release.attained[0]) if exists is None else math.inf, math.inf, int(likely[0]))
    # Levels are supposed, unless the paper's is finite: each above what the last one led to.
    # Nats. A supremum of the paper's up to this needs no supposition that would be tighter: depths grow with its logarithm
    supposed = ceiling if ceiling < 30.0 else min(ceiling, FIRST_LEVEL * float(release.width[0]))
    attained, proved, pair, unfinished = float(release.attained[0]), math.inf, int(likely[0]), 0
    for attempt in range(MOST_LEVELS):
        if supposed > LARGEST_LEVEL or effort_is_over():
            break
        limit = supposed if supposed < ceiling else math.inf
        side = _side(infinite(matrix, release, supposed))
        with part(attempt / MOST_LEVELS, (attempt + 1) / MOST_LEVELS, "leakage over an infinite horizon"):
            attained, proved, pair, depth = _largest([side], release, limit, math.inf, likely)
        if proved <= supposed or supposed == ceiling:
            ceiling = min(proved, ceiling)
            if supposed <= LEVEL_RAISED * ceiling:
                side.chain = infinite(matrix, release, ceiling)
                return Limit(min(attained, ceiling), ceiling, pair, side)
            supposed = ceiling  # rollouts that end in a smaller spread are shorter, and lose fewer digits
        else:
            unfinished += depth >= LONGEST
            if unfinished >= MOST_LONG:
                break
            supposed = min(ceiling, LEVEL_RAISED * max(attained, supposed))
        likely = np.array([pair])
    return Limit(attained, ceiling, pair)


def infinite(matrix: TransitionMatrix, release: Releases, a: float = 0.0) -> Chain:
    """Rollouts of a release that repeats, in likelihoods within e^a of one another."""
    up, down = release.factors
    return Chain.of((rows_of(matrix),), np.zeros(1, np.int64), up, down, np.array([a]), infinite=True)


def _side(chain: Chain) -> Side:
    return Side(chain, chain)


def both_limits(past: Limit, future: Limit, release: Releases, ceiling: float) -> Limit:
    """Return the supremum of TPL: the largest sum over pairs of incoming leakage in both directions and a step's own part."""
    sides = [one.rollouts for one in (past, future) if one.rollouts]
    candidates = np.array([past.pair, future.pair])
    ceiling = float(np.min(at_most_both(past.proved, future.proved, release, ceiling)))
    attained, proved, pair, _ = _largest(list(sides), release, math.inf, ceiling, candidates)
    alone = max(past, future, key=lambda one: one.attained)  # more than both together, where the effort ended
    return Limit(alone.attained, proved, alone.pair) if attained < alone.attained else Limit(attained, proved, pair)


class Repeated:
    """Releases that repeat, one budget after another: each search begins with what the last one found about pairs.

    Parameters
    ----------
    matrices : sequence of TransitionMatrix
        Of the directions that are known.
    """

    def __init__(self, matrices: Sequence[TransitionMatrix]) -> None:
        self.matrices = matrices
        self._likely = np.concatenate([np.zeros(0, np.int64), *(likely_pairs(matrix) for matrix in matrices)])
        self._known: list[FloatArray | None] = [None] * len(matrices)

    def leakage_within(self, release: Releases, level: float) -> float:
        """TPL over an infinite horizon if it is at most `level`, an upper bound; otherwise more than the level.

        Suppose that no horizon's leakage exceeds the level. If what follows is at most the level, the supposition holds.
        """
        chains = (infinite(matrix, release, level) for matrix in self.matrices)
        sides = [Side(chain, chain, known=known) for chain, known in zip(chains, self._known, strict=True)]
        attained, proved, pair, _ = _largest(sides, release, level, math.inf, self._likely)
        self._likely, self._known = np.array([pair]), [side.known for side in sides]
        return attained if attained > level else proved


def _largest(
    sides: list[Side], release: Releases, limit: float, ceiling: float, candidates: IntArray
) -> tuple[float, float, int, int]:
    """The largest leakage of one or two directions over an infinite horizon: attained, proved, the pair, and the depth."""
    zero = np.zeros(1, np.int64)
    steps = np.zeros((len(sides), 1), np.int64)
    cells = Cells(zero, steps, release.lift, release.drop, np.array([ceiling]), candidates[None])
    found = largest(sides, cells, limit=limit)
    return float(found.attained[0]), float(found.proved[0]), int(found.pairs[0]), int(found.depths.max())


def has_supremum(matrix: Any, epsilon: float) -> bool | None:
    """Whether the exact leakage of releases that spend epsilon each has a supremum over all horizons; None where that is open.

    It has one if and only if there is one closed class of states, it is aperiodic, and ``epsilon < -log lambda``, lambda the
    spectral radius of the matrix on its other states (Theory, section 21). Otherwise two states exist that no later
    observation confuses, and leakage grows without bound. Classes and periods depend on which entries are 0 alone; of the
    inequality one side is proved, rounding included, unless rounding leaves it open.

    Parameters
    ----------
    matrix : array or sparse array, shape (n, n)
        Rows sum to 1, to rounding.
    epsilon : float, > 0
    """
    from scipy.sparse import csr_array

    graph = csr_array(matrix)
    label, closed = closed_classes(graph)
    if len(closed) > 1:
        return False
    inside = label == closed[0]
    if _period(graph[inside][:, inside]) > 1:
        return False
    # The block of the transient values is triangular by classes.
    blocks = (graph[members][:, members].toarray() for members in (label == one for one in np.setdiff1d(label, closed)))
    found = [_stays_below_one(block, epsilon) for block in blocks]
    return False if False in found else None if None in found else True


def _stays_below_one(block: FloatArray, epsilon: float) -> bool | None:
    """Whether ``e^epsilon`` times the spectral radius of a block is below 1, as far as that is proved.

    By Collatz and Wielandt it is if some v > 0 is above ``e^epsilon block v`` everywhere. The solution of
    ``v - e^epsilon block v = 1`` is one, if there is one, and so is that with v in place of 1, where entries are of different
    sizes; they are tried as they were computed. Eigenvalues would not do: of a class that hardly holds together they are known
    to half of their digits. It is above 1 if some v > 0 is below ``e^epsilon block v`` everywhere, as an eigenvector may be.
    """
    n = len(block)
    if not block.any():
        return True
    # Nats. Larger budgets outweigh every probability there is of coming back to a state that is left for good in the end
    if epsilon > 700.0:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        raised: FloatArray = math.exp(epsilon) * block
        v: FloatArray = np.ones(n)
        # Linear systems that are solved for a proof of existence, each from what the last one led to
        for _ in range(3):
            try:
                v[:] = np.linalg.solve(np.eye(n) - raised, v)
            except np.linalg.LinAlgError:
                break
            if not (v > 0.0).all():
                break
            v /= v.max()
            passed_on = raised @ v
            # n products and sums; what e^epsilon is known to, and rows are divided by: a few roundings more.
            if (v - passed_on > U * (2.0 * n + 16.0) * (v + passed_on)).all():
                return True
        values, vectors = np.linalg.eig(block)
        v = np.abs(vectors[:, int(np.argmax(values.real))])
        passed_on = raised @ v
    return False if (passed_on - v > U * (2.0 * n + 16.0) * (v + passed_on)).all() and v.all() else None


def _period(graph: Any) -> int:
    """The greatest common divisor of the lengths of all cycles of a strongly connected graph."""
    from scipy.sparse.csgraph import breadth_first_order

    order, before = breadth_first_order(graph, 0, directed=True)
    level = np.zeros(graph.shape[0], np.int64)
    for node in order[1:]:
        level[node] = level[before[node]] + 1
    rows, columns = graph.nonzero()
    return int(np.gcd.reduce(level[rows] + 1 - level[columns]))
