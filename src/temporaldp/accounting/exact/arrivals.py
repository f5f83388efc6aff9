"""The exact leakage of a sequence of releases: backward, forward and temporal, at every step, from both sides.

Each direction starts from its first release, so that forward leakage is backward leakage with time reversed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from temporaldp.accounting.protocol import numbered
from temporaldp.correlation import Adversary, TransitionMatrix
from temporaldp.correlation.adversary import exactly_known
from temporaldp.correlation.protocol import Correlation
from temporaldp.kernels import exact, signs
from temporaldp.kernels.exact import Chain
from temporaldp.kernels.signs import LARGEST_LEVEL
from temporaldp.kernels.threads import spread
from temporaldp.mechanisms.likelihood_box import widths
from temporaldp.progress import progressed
from temporaldp.values import ROUNDOFF as U
from temporaldp.values import FloatArray, IntArray, compared_by_value

BLOCK = 64
"""Steps between two reports of progress, and steps that a thread takes at once."""

CALL_WORK = 1_000_000
"""Cube of the states times steps of one call, about a third of a second: an interrupt waits for its end."""

EFFORT = 2.5e12
"""Products that may be spent on comparing all pairs once, some minutes: 1,200 states. Beyond, the paper's bound is the answer
from above, and only candidates are computed."""

USERS_BLOCK = 1 << 13
"""Users whose series are computed between two reports of progress."""

STEP_WORK = 64
"""Products of a state's pairs at one step that cost as much as one entry of other kernels, for the choice of threads."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class Releases:
    """Largest and smallest likelihood factor of each step's output for each state, in logarithms.

    `lift` and `drop` have shape (T, n), or (T, 1) where all states are alike: epsilon and 0 for plain differential privacy.
    """

    lift: FloatArray
    drop: FloatArray

    def __len__(self) -> int:
        return len(self.lift)

    def __getitem__(self, steps: slice) -> Releases:
        return Releases(self.lift[steps], self.drop[steps])

    @property
    def is_plain(self) -> bool:
        """Whether all states are alike."""
        return int(self.lift.shape[1]) == 1

    @property
    def attained(self) -> FloatArray:
        """Leakage that outputs of each step by itself attain, shape (T,): the width, rounded down."""
        return self.width if self.is_plain else self.width * (1.0 - 8.0 * U)

    @property
    def width(self) -> FloatArray:
        """The largest log ratio between any two states, shape (T,): the privacy loss of each step by itself."""
        return (self.lift - self.drop)[:, 0] if self.is_plain else widths(self.lift, self.drop)

    @property
    def widest(self) -> IntArray:
        """Pair of states, as ``i n + j``, that the output of each step distinguishes best, shape (T,)."""
        if self.is_plain:
            return np.ones(len(self), np.int64)
        apart = self.lift[:, :, None] - self.drop[:, None, :] - np.diag(np.full(self.lift.shape[1], np.inf))
        return np.asarray(apart.reshape(len(self), -1).argmax(axis=1))

    @property
    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Each state's largest and smallest factor less 1, scaled so that the least of a step is 1: 1 + x keeps its digits.

        One rounding each, where the machine has a longer mantissa.
        """
        least = self.drop.min(axis=1, keepdims=True).astype(np.longdouble)
        with np.errstate(over="ignore"):
            up, down = (np.expm1(side - least).astype(np.float64) for side in (self.lift, self.drop))
        return up, down

    @property
    def is_countable(self) -> bool:
        """Whether rollouts can represent all factors."""
        return float(self.width.max(initial=0.0)) <= LARGEST_LEVEL

    @property
    def sides(self) -> tuple[FloatArray, FloatArray]:
        """`lift` and `drop` as kernels take them."""
        return np.ascontiguousarray(self.lift), np.ascontiguousarray(self.drop)


@dataclass(frozen=True, slots=True, eq=False)
class Largest:
    """The largest leakage over pairs at each step, shape (T,): attained by the pair ``i n + j``, proved for all pairs."""

    attained: FloatArray
    proved: FloatArray
    pairs: IntArray

    @classmethod
    def empty(cls, n_steps: int) -> Largest:
        """Room for all steps."""
        return cls(np.zeros(n_steps), np.full(n_steps, np.inf), np.ones(n_steps, np.int64))

    @property
    def reversed(self) -> Largest:
        """The last step first."""
        return Largest(self.attained[::-1].copy(), self.proved[::-1].copy(), self.pairs[::-1].copy())


@dataclass(frozen=True, slots=True, eq=False)
class ExactArrivals:
    """Rollouts of one direction, and the largest incoming leakage with a step's own part, in the direction's order of steps.

    `worst` and `static` bound each pair at all steps; see `worst_step` and `static_bounds`.
    """

    chain: Chain
    largest: Largest
    worst: Chain
    static: FloatArray


def rollouts(correlation: Correlation, releases: Releases, spreads: FloatArray, *, turned: bool) -> Chain:
    """Rollouts in one direction: `releases` and `spreads` in order of time, the chain from the last step on if `turned`."""
    matrices, into = ordered_matrices(correlation, len(releases), turned=turned)
    order = slice(None, None, -1 if turned else 1)
    return Chain.of(matrices, into, *releases[order].factors, spreads[order])


def arrivals(correlation: Correlation, releases: Releases, ceiling: FloatArray, *, turned: bool) -> ExactArrivals:
    """The largest incoming leakage of each step in one direction, with the step's own part.

    Parameters
    ----------
    correlation : TransitionMatrix, or a tuple with one for each transition
    releases : Releases
    ceiling : array, shape (T,)
        Known upper bounds of the results: the paper's.
    turned : bool
        Whether the direction starts from the last step; results are in the direction's own order of steps.
    """
    n_steps = len(releases)
    chain = rollouts(correlation, releases, np.zeros(n_steps), turned=turned)
    order = slice(None, None, -1 if turned else 1)
    ceiling = ceiling[order].copy()
    lift, drop = releases[order].sides
    runs = _runs(chain)[None]
    found, likely = (
        Largest.empty(n_steps),
        np.append(likely_pairs(exactly_known(correlation.at(0))), releases[order].widest[:1]),
    )
    worst, first = worst_step(chain, float(ceiling.max())), 0
    static = static_bounds(worst)[None]
    while first < n_steps:
        progressed("leakage of every step", first / n_steps)
        last = min(n_steps, first + BLOCK)
        first = _fill((chain,), (worst,), (lift, drop), ceiling, runs, static, likely, found, first, last)
        likely = found.pairs[first - 1 : first].copy()
    return ExactArrivals(chain, found, worst, static[0])


def _fill(
    chains: tuple[Chain, ...],
    worst: tuple[Chain, ...],
    sides: tuple[FloatArray, FloatArray],
    ceiling: FloatArray,
    runs: IntArray,
    static: FloatArray,
    candidates: IntArray,
    found: Largest,
    first: int,
    last: int,
) -> int:
    """Fill steps first .. last - 1 of what is found from one or two sides; the next step to fill."""
    n, scratch = chains[0].n, np.zeros((2, len(chains)), np.int64)
    shares = np.ones((len(chains), n, n))
    if static.size and len(chains) > 1:
        most = np.array([chain.spreads[:, 0].max() for chain in chains])[:, None, None]
        np.divide(np.minimum(static, most), most, out=shares, where=most > 0.0)
    work, several = np.empty((4, n)), max(1, CALL_WORK // n**3)
    while first < last:
        first = int(exact.series(
            (chains[0], chains[-1]), (worst[0], worst[-1]), scratch[0], *sides, ceiling, runs, static, shares, candidates,
            work, scratch[1], found.attained, found.proved, found.pairs, first, min(last, first + several),
        ))  # fmt: skip
    return first


def worst_step(chain: Chain, a: float) -> Chain:
    """The widest factors of any step over an infinite horizon, for spreads up to a; the chain itself if matrices vary."""
    if (chain.into[1:] != chain.into[-1]).any():
        return chain
    up, down = chain.factors[:, 0].max(axis=0), chain.factors[:, 1].min(axis=0)
    above = np.array([[a, *((math.exp(a), math.expm1(a)) if a <= exact.LARGEST_EXPONENT else (math.inf, math.inf))]])
    return chain._replace(into=chain.into[-1:], factors=np.stack((up, down))[None], spreads=above, infinite=True)


def static_bounds(worst: Chain) -> FloatArray:
    """Bounds of each pair at all steps, shape (n, n); inf where matrices vary. Empty where there are too many pairs."""
    n = worst.n
    if float(n) ** 4 > EFFORT:
        return np.zeros((0, 0))
    if not worst.infinite:
        return np.full((n, n), np.inf)
    found = np.zeros((n, n))
    # A pair begins with what was found of the last one in its block. Blocks must not depend on the number of threads: all rows
    # where one thread is enough, else one row.
    rows = n if n**4 < (1 << 22) else 1

    def fill(first: int, last: int) -> None:
        for row in range(first, last, rows):
            exact.static_bounds(worst, row, row + rows, np.empty((4, n)), found)

    spread(fill, n, step=1, work=n**4)
    return found


def both_directions(past: ExactArrivals, future: ExactArrivals, releases: Releases, ceiling: FloatArray) -> Largest:
    """TPL: the largest sum over pairs of incoming leakage from both directions and the step's own part.

    `ceiling`, shape (T,), has known upper bounds of the results.
    """
    n_steps, n = len(releases), past.chain.n
    found, chains = Largest.empty(n_steps), (past.chain, future.chain)
    runs = np.stack([_runs(chain) for chain in chains])
    worst, static = (past.worst, future.worst), np.stack((past.static, future.static))
    before, after = past.largest.pairs, future.largest.reversed.pairs
    # Whole runs, so that what is solved never depends on the number of threads.
    starts = np.unique(runs[0][np.arange(0, n_steps, BLOCK)]).tolist()

    def fill(first: int, last: int) -> None:
        for start, end in itertools.pairwise([*starts[first:last], *[*starts, n_steps][last : last + 1]]):
            candidates = np.array([before[start], after[start]])
            _fill(chains, worst, releases.sides, ceiling, runs, static.copy(), candidates, found, start, end)

    progressed("past and future together", 0.0)
    spread(fill, len(starts), step=1, work=STEP_WORK * len(np.unique(runs[0])) * n**3)
    return found


def _runs(chain: Chain) -> IntArray:
    """For each step the first of the run of steps, up to it, with the same budgets and matrices."""
    n_steps = len(chain.factors)
    changed = np.zeros(n_steps, bool)
    changed[1:] = (chain.factors[1:] != chain.factors[:-1]).any(axis=(1, 2))
    changed[2:] |= chain.into[2:] != chain.into[1:-1]
    return np.maximum.accumulate(np.where(changed, np.arange(n_steps), 0))


def pair_values(
    chain: Chain, t: IntArray, i: IntArray, j: IntArray, guess: FloatArray | None = None, *, close: bool = True
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Incoming leakage of pairs of states at steps: attained and proved, the observation's ratio less 1, the largest depth.

    All arrays have shape (m,); leakage is in nats. `guess` has ratios less 1, where the search begins. Without `close`, proved
    bounds are within some thousandths, and no leakage is attained.
    """
    t, i, j = (np.ascontiguousarray(one) for one in (t, i, j))  # one layout, compiled once
    attained, proved, rho = np.zeros((3, len(t)))
    start = rho.copy() if guess is None else guess

    def fill(first: int, last: int) -> int:
        some = slice(first, last)
        arrays = start[some], close, attained[some], proved[some], rho[some]
        return int(signs.pair_values(chain, t[some], i[some], j[some], *arrays))

    # Rollouts about a pair have about 100 steps together.
    depth = max(spread(fill, len(t), step=1, work=100 * len(t) * chain.n**2))
    return attained, proved, rho, depth


def dense_matrices(users: Sequence[Adversary]) -> tuple[FloatArray, IntArray] | None:
    """The different matrices of many users, shape (m, n, n), and the numbers of each user's two, shape (users, 2).

    The number of an unknown correlation is -1. None where matrices vary, are sparse, or differ in size.
    """
    known, numbers = numbered(side or None for user in users for side in user.directions)
    matrices = [one for one in known if isinstance(one, TransitionMatrix) and not one.is_sparse]
    if not known or len(matrices) < len(known) or len({one.n_states for one in matrices}) > 1:
        return None
    return np.stack([rows_of(one) for one in matrices]), numbers.reshape(-1, 2)


def population_series(
    matrices: FloatArray, numbers: IntArray, releases: Releases, ceilings: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """The exact leakage of many users under the same plain releases: attained, proved and pairs, each of shape (users, 3, T).

    Matrices and their numbers are those of `dense_matrices`. `ceilings` are upper bounds of the results, of their
    shape.
    """
    n_users, n_steps, n = len(numbers), len(releases), matrices.shape[1]
    lift, drop, factors = (
        np.stack((one, one[::-1])) for one in (releases.lift, releases.drop, np.stack(releases.factors, axis=1))
    )
    changed = np.diff(releases.lift[:, 0], prepend=releases.lift[0]) != 0.0
    runs = np.stack([
        np.maximum.accumulate(np.where(one, np.arange(n_steps), 0)) for one in (changed, np.roll(changed[::-1], 1))
    ])  # fmt: skip
    attained, proved, pairs = np.empty(ceilings.shape), np.empty(ceilings.shape), np.empty(ceilings.shape, np.int64)
    data, worst = matrices.ravel(), factors[:1].max(axis=1)

    def fill(start: int, first: int, last: int) -> None:
        exact.population(
            data, n, numbers, factors, worst, lift, drop, ceilings, runs, exact.rounding(n), start + first,
            start + last, attained, proved, pairs,
        )  # fmt: skip

    for start in range(0, n_users, USERS_BLOCK):
        progressed("leakage of every person", start / n_users)
        here = min(USERS_BLOCK, n_users - start)
        spread(partial(fill, start), here, step=1, work=STEP_WORK * here * n_steps * n**3)
    progressed("leakage of every person", 1.0)
    return attained, proved, pairs


def ordered_matrices(correlation: Correlation, n_steps: int, *, turned: bool) -> tuple[tuple[Any, ...], IntArray]:
    """The distinct matrices of one direction, and the number of that into each step; the last step first if `turned`."""
    into = np.zeros(n_steps, np.int64)
    if correlation.is_constant:
        return (rows_of(exactly_known(correlation.at(0))),), into
    matrices, into[1:] = numbered((correlation.in_reverse() if turned else correlation).matrices)
    return tuple(rows_of(exactly_known(matrix)) for matrix in matrices), into


def rows_of(matrix: TransitionMatrix) -> Any:
    """The probabilities with each row divided by its sum, which may differ from 1 by rounding; a sum is rounded once."""
    rows = matrix.probabilities
    if isinstance(rows, np.ndarray):
        sums = np.array([math.fsum(row) for row in rows.tolist()])
        return np.ascontiguousarray(rows / sums[:, None])
    ends = rows.indptr.tolist()
    data = rows.data.tolist()
    sums = np.array([math.fsum(data[a:b]) for a, b in itertools.pairwise(ends)])
    scaled = rows.copy()
    scaled.data = scaled.data / np.repeat(sums, np.diff(scaled.indptr))
    return scaled


def likely_pairs(matrix: TransitionMatrix) -> IntArray:
    """Pairs ``i n + j`` of the leakage profile, which one step distinguishes best."""
    witnesses, n = matrix.leakage_profile().witnesses, len(matrix.states)
    if not len(witnesses):
        return np.ones(1, np.int64)
    position = {state: k for k, state in enumerate(matrix.states)}
    # Pairs of the leakage profile that a search begins with
    chosen = [witnesses[int(k)] for k in np.unique(np.linspace(0, len(witnesses) - 1, 6).astype(int))]
    return np.unique([position[one.state] * n + position[one.other_state] for one in chosen])
