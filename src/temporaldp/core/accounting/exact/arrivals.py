"""The exact leakage of a sequence of releases: backward, forward and temporal, at every step, from both sides.

Each direction starts from its first release, so that forward leakage is backward leakage with time reversed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from temporaldp.base.progress import part, progressed
from temporaldp.base.values import ROUNDOFF as U
from temporaldp.base.values import SAME_SIDES, FloatArray, IntArray, compared_by_value
from temporaldp.core.accounting.exact.search import (
    CELLS,
    COARSE,
    FEWEST_STEPS,
    SPREAD_ROOM,
    STEPS,
    Cells,
    Side,
    largest,
)
from temporaldp.core.accounting.paper.arrivals import added
from temporaldp.core.accounting.protocol import numbered
from temporaldp.core.correlation import Adversary, TransitionMatrix
from temporaldp.core.correlation.adversary import exactly_known
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.core.kernels.chain import LARGEST_LEVEL, Chain
from temporaldp.core.kernels.roots import CLOSE_RATIO, Values, values
from temporaldp.core.mechanisms.likelihood_box import widths

USERS_BLOCK = 1 << 9
"""Users whose series are computed between two reports of progress."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Largest:
    """The largest leakage over pairs at each step, shape (users, T): attained by the pair ``i n + j``, proved for all pairs."""

    attained: FloatArray
    proved: FloatArray
    pairs: IntArray

    @property
    def reversed(self) -> Largest:
        """The last step first."""
        return Largest(self.attained[:, ::-1].copy(), self.proved[:, ::-1].copy(), self.pairs[:, ::-1].copy())


@dataclass(frozen=True, slots=True, eq=False)
class ExactArrivals:
    """One direction of some users, and the largest incoming leakage with a step's own part, in the direction's own order."""

    side: Side
    largest: Largest


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
    chain = rollouts(correlation, releases, np.minimum(ceiling, _added(releases, turned=turned)), turned=turned)
    likely = np.append(likely_pairs(exactly_known(correlation.at(0))), releases.widest[-1 if turned else 0])
    return one_direction(chain, releases[:: -1 if turned else 1], ceiling[None, :: -1 if turned else 1], likely[None])


def _added(releases: Releases, *, turned: bool) -> FloatArray:
    """The budgets up to each step, in order of time, from the last step on if `turned`: no leakage exceeds them."""
    width = releases.width[:: -1 if turned else 1]
    return np.asarray((np.cumsum(width) * (1.0 + len(width) * U))[:: -1 if turned else 1])


def one_direction(chain: Chain, releases: Releases, ceiling: FloatArray, likely: IntArray) -> ExactArrivals:
    """The largest incoming leakage of each step with its own part; all in the direction's own order."""
    side = Side(chain, worst_step(chain, ceiling.max(axis=1)))
    found = _filled([side], releases, ceiling, likely)
    if side.worst is not None:  # bounds at all steps that are still to be computed rest on what is proved of all
        side.worst = replace(side.worst, spreads=found.proved.max(axis=1)[:, None])
    return ExactArrivals(side, found)


def _filled(
    sides: list[Side], releases: Releases, ceiling: FloatArray, likely: IntArray, *proved: FloatArray
) -> Largest:
    """Fill all steps from one side or two; the second counts steps from the last one on, and `proved` is what each arrives at.

    Spreads of a single side are those that are known beforehand, and lowered to what is proved.
    """
    n_users, n_steps = ceiling.shape
    found, runs, until = (
        Largest(np.zeros(ceiling.shape), np.full(ceiling.shape, np.inf), np.ones(ceiling.shape, np.int64)),
        [_runs(one.chain) for one in sides],
        np.zeros(n_users, np.int64),
    )
    at_once = max(FEWEST_STEPS, min(STEPS, CELLS // max(n_users, 1)))
    for first in range(0, n_steps, at_once):
        last = min(n_steps, first + at_once)
        user, t = np.nonzero(np.arange(first, last) >= until[:, None])
        if not len(user):
            continue
        t += first
        candidates = np.hstack((likely[user], found.pairs[user, first - 1][:, None] if first else likely[user, :1]))
        steps = np.stack((t, n_steps - 1 - t))[: len(sides)]
        cells = Cells(user, steps, releases.lift[t], releases.drop[t], ceiling[user, t], candidates)
        with part(first / n_steps, last / n_steps, "leakage of every step"):
            here = largest(sides, cells)
        found.attained[user, t], found.proved[user, t], found.pairs[user, t] = (
            here.attained,
            here.proved,
            here.pairs,
        )
        chains = [one.chain for one in sides]
        for place in np.flatnonzero(t == last - 1).tolist():
            one, depths = int(user[place]), here.depths[:, place].tolist()
            end = _end_of_answer(chains, proved or (found.proved,), runs, one, last - 1, depths)
            # Where the bound was reached, no other pair was compared: one may leak more where the bound is higher
            is_bound = here.proved[place] >= ceiling[one, last - 1]
            if is_bound:
                higher = ceiling[one, last:end] > here.proved[place] * (1.0 + 1e-12)
                end = last + int(np.argmax(np.append(higher, True)))
            if end > last:
                found.attained[one, last:end], found.pairs[one, last:end] = here.attained[place], here.pairs[place]
                found.proved[one, last:end] = np.minimum(
                    np.inf if is_bound else here.proved[place], ceiling[one, last:end]
                )
                until[one] = end
        if len(sides) == 1:
            # Sums of the budgets ahead: differences of sums from the first one on would lose small budgets after large ones.
            grown = (found.proved[:, last - 1, None] + np.cumsum(releases.width[last:])) * (1.0 + n_steps * U)
            beyond = np.where(np.arange(last, n_steps) < until[:, None], found.proved[:, last:], grown)
            spreads = np.hstack((found.proved[:, :last], beyond)) * SPREAD_ROOM
            sides[0].chain = replace(chains[0], spreads=np.minimum(spreads, chains[0].spreads))
    return found


def _end_of_answer(
    chains: Sequence[Chain],
    proved: Sequence[FloatArray],
    runs: Sequence[IntArray],
    user: int,
    t: int,
    depths: Sequence[int],
) -> int:
    """The first step after t that does not share its answer.

    Where budgets and matrices are those of the steps that the rollouts of t reached, and the spreads that they ended in bound
    those of a later step, too, the same rollouts prove the same of it.
    """
    n_steps = len(chains[0].up)
    end = n_steps
    for side, (chain, depth, step) in enumerate(zip(chains, depths, (t, n_steps - 1 - t), strict=False)):
        run, known = runs[side][user], proved[side][user]
        start = max(1, int(run[step]))
        if not 0 < depth <= step - start:
            return t
        room = chain.spreads[user, step - depth : step].min()
        if side == 0:
            if known[step - depth : step + 1].max() > room:
                return t
            another = np.flatnonzero(run[t + 1 :] > t)
            wider = np.flatnonzero((known[t + 1 :] > room) & (known[t + 1 :] < np.inf))
            end = min([end, *(t + 1 + another[:1]).tolist(), *(t + 2 + wider[:1]).tolist()])
        else:  # the windows of later steps lie before that of t, as this side counts them
            if known[start:step].max() > room:
                return t
            end = min(end, n_steps - start - depth)
    return end


def worst_step(chain: Chain, a: FloatArray) -> Chain | None:
    """The widest factors of any step over an infinite horizon, for spreads up to a of each user; None if matrices vary."""
    if (chain.into[:, 1:] != chain.into[:, -1:]).any():
        return None
    up, down = chain.up.max(axis=0, keepdims=True), chain.down.min(axis=0, keepdims=True)
    return replace(chain, into=chain.into[:, -1:], up=up, down=down, spreads=a[:, None], infinite=True)


def both_directions(past: ExactArrivals, future: ExactArrivals, releases: Releases, ceiling: FloatArray) -> Largest:
    """TPL: the largest sum over pairs of incoming leakage from both directions and the step's own part.

    `ceiling`, shape (users, T), has known upper bounds of the results.
    """
    progressed("past and future together", 0.0)
    ends = (one.largest.pairs[:, -1] for one in (past, future))
    sides, known = [past.side, future.side], (past.largest.proved, future.largest.proved)
    before, after = past.largest, future.largest.reversed
    ceiling = at_most_both(before.proved, after.proved, releases, ceiling)
    found = _filled(sides, releases, ceiling, np.stack(list(ends), axis=1), *known)
    for one in (before, after):  # what either side attains alone, where the effort ended before
        more = found.attained < one.attained * (1.0 - SAME_SIDES)
        found.attained[more], found.pairs[more] = one.attained[more], one.pairs[more]
    return found


def at_most_both(past: Any, future: Any, releases: Releases, ceiling: Any) -> Any:
    """Bounds of TPL: those that are known, and the sum of both directions, which has the step's own part twice.

    Only the own part of plain releases is the same for all pairs.
    """
    if not releases.is_plain:
        return ceiling
    return np.minimum(ceiling, (added(past, future) - releases.width) * (1.0 + 4.0 * U))


def _runs(chain: Chain) -> IntArray:
    """For each user and step the first of the run of steps, up to it, with the same budgets and matrices."""
    n_steps = chain.into.shape[1]
    changed = np.zeros(chain.into.shape, bool)
    for factors in (chain.up, chain.down):
        changed[:, 1:] |= (factors[1:] != factors[:-1]).any(axis=1)
    changed[:, 2:] |= chain.into[:, 2:] != chain.into[:, 1:-1]
    return np.asarray(np.maximum.accumulate(np.where(changed, np.arange(n_steps), 0), axis=1))


def pair_values(
    chain: Chain, t: IntArray, i: IntArray, j: IntArray, guess: FloatArray | None = None, *, close: bool = True
) -> Values:
    """Incoming leakage of pairs of states at steps of the first user, arrays of shape (m,), in nats.

    `guess` has ratios less 1, where the search begins. Without `close`, both sides are within some thousandths.
    """
    return values(chain, (np.zeros(len(t), np.int64), t, i, j), guess, close=CLOSE_RATIO if close else COARSE)


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
    n_users, doing = len(numbers), "leakage of every person"
    attained, proved = (np.array(np.broadcast_to(one, ceilings.shape)) for one in (releases.attained, releases.width))
    pairs = np.array(np.broadcast_to(releases.widest, ceilings.shape))
    for first in range(0, n_users, USERS_BLOCK):
        known, sides = numbers[first : first + USERS_BLOCK], []
        done, left = first / n_users, min(USERS_BLOCK, n_users - first) / n_users
        for k, order in ((0, 1), (1, -1)):
            members = np.flatnonzero(known[:, k] >= 0)
            with part(done + k * left / 3.0, done + (k + 1) * left / 3.0, doing):
                found = _population_side(
                    matrices, known[members, k], releases[::order], ceilings[first + members, k, ::order]
                )
            sides.append(found)
            for direction in (k, 2):
                _written(attained, proved, pairs, (first + members, direction), found.largest, order)
        both = np.flatnonzero((known >= 0).all(axis=1))
        with part(done + 2.0 * left / 3.0, done + left, doing):
            if len(both):
                places = [np.searchsorted(np.flatnonzero(known[:, k] >= 0), both) for k in range(2)]
                past, future = (_of_users(side, place) for side, place in zip(sides, places, strict=True))
                found_both = both_directions(past, future, releases, ceilings[first + both, 2])
                _written(attained, proved, pairs, (first + both, 2), found_both)
    return attained, proved, pairs


def _written(
    attained: FloatArray, proved: FloatArray, pairs: IntArray, place: Any, found: Largest, order: int = 1
) -> None:
    """Write what was found of some users and a direction."""
    attained[place], proved[place] = found.attained[:, ::order], found.proved[:, ::order]
    pairs[place] = found.pairs[:, ::order]


def _population_side(matrices: FloatArray, number: IntArray, releases: Releases, ceiling: FloatArray) -> ExactArrivals:
    """One direction of many users with a constant matrix each, all in the direction's order of steps."""
    n_steps = len(releases)
    up, down = releases.factors
    spreads = np.minimum(ceiling, np.cumsum(releases.width) * (1.0 + n_steps * U))
    chain = Chain(matrices, np.repeat(number[:, None], n_steps, axis=1), up, down, spreads)
    return one_direction(chain, releases, ceiling, np.zeros((len(number), 0), np.int64))


def _of_users(one: ExactArrivals, which: IntArray) -> ExactArrivals:
    """Some of the users."""
    found = one.largest
    return ExactArrivals(
        one.side.of_users(which),
        Largest(found.attained[which], found.proved[which], found.pairs[which]),
    )


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
    """Pairs ``i n + j`` with which a search begins: those that one step distinguishes best, and two states far apart."""
    witnesses, n = matrix.leakage_profile().witnesses, len(matrix.states)
    position = {state: k for k, state in enumerate(matrix.states)}
    # Pairs of the leakage profile, of which there may be many
    chosen = [witnesses[int(k)] for k in np.unique(np.linspace(0, len(witnesses) - 1, 6).astype(int)) if len(witnesses)]
    pairs = [position[one.state] * n + position[one.other_state] for one in chosen]
    return np.unique([*pairs, *_far_apart(matrix.probabilities)])


def _far_apart(probabilities: Any) -> list[int]:
    """Two states, in both orders, that many transitions lie between: their observations stay apart longest."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    graph, n = csr_array(probabilities), probabilities.shape[0]
    last = 0
    for _ in range(2):
        first, last = last, int(breadth_first_order(graph, last, directed=False)[0][-1])
    return [first * n + last, last * n + first] if first != last else [1 % (n * n)]
