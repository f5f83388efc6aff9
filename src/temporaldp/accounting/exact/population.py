"""The exact leakage of many users at once, each with constant matrices, under the same epsilons: machine code on all threads.

What is computed is what `exact_leakage` computes, to rounding. Rollouts that tell more about one user are made when asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.arrivals import ROOM, Releases
from temporaldp.accounting.exact.evidence import Attained, ExactLeakage, ordered_matrices
from temporaldp.accounting.exact.pair_bounds import Direction, Pairs
from temporaldp.correlation import Adversary, TransitionMatrix
from temporaldp.kernels.batch import BATCHED, compute_profiles
from temporaldp.kernels.chain import Chain
from temporaldp.kernels.kernels import chosen_kernels, spread
from temporaldp.progress import progressed
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

WORTH_COMPILING, WORTH_COMPILING_ALONE = 1 << 19, 1 << 22
"""Entries of all pairs at all steps (``users T n^3``) from which the kernel is worth loading: user by user, some seconds. For
one user other ways take less than a second below the second number."""

LEAST_STATES = 5
"""Values that a step counts for at least: user by user, a step of fewer takes as long, about a millisecond."""

LONGEST_ALONE = 200
"""Steps of one user that the kernel solves faster than others: where leakage takes longer to settle, each step of many."""

WORTH_SETTLING, LONGEST_WORK = 64, 1_000
"""Steps with equal budgets from which on leakage may settle, so that few are solved; and steps that count as work, since no
way solves more of them then."""

LARGEST_SUM = 300.0
"""Nats that all steps that are solved may spend together: ratios and coefficients then stay within the range of doubles."""

MOST_KEPT = 1 << 19
"""Pairs at steps of one user, ``n^2 T``, about which the kernel has room to remember what it found: 160 bytes each."""

BLOCK = 1 << 13
"""Users between two reports of progress."""

ENTRY_WORK = 4
"""Entries of a pass over pairs of rows that take as long as one pair at one step, for the choice of threads."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Population:
    """Both sides of BPL, FPL and TPL of different users, shape (m, 3, T), and the pairs that attain them, ``i n + j``.

    `which` says for each user who was asked about which row is theirs: equal correlations share one.
    """

    proved: FloatArray
    attained: FloatArray
    pairs: NDArray[np.int32]
    which: IntArray
    releases: Releases


class MemberLeakage(ExactLeakage):
    """What can be told of one user's exact leakage; nothing but the numbers is kept until it is asked for."""

    def __init__(self, adversary: Adversary, population: Population, row: int) -> None:
        object.__setattr__(self, "_adversary", adversary)
        object.__setattr__(self, "_population", population)
        object.__setattr__(self, "_row", row)

    _adversary: Adversary
    _population: Population
    _row: int

    @property
    def states(self) -> tuple[str, ...]:
        """The states that the user's matrices name."""
        assert self._adversary.states is not None
        return self._adversary.states

    @property
    def releases(self) -> Releases:
        """What each step's output can say."""
        return self._population.releases

    @property
    def attained(self) -> Attained:
        """What observations reach."""
        return Attained(*self._population.attained[self._row])

    @property
    def pairs(self) -> dict[str, Pairs]:
        """The positions of the two values, at every step."""
        n = len(self.states)
        names = ("backward", "forward", "temporal")
        return {name: np.divmod(self._population.pairs[self._row, k], n) for k, name in enumerate(names)}

    @property
    def past(self) -> Direction | None:
        """Rollouts through the backward correlation."""
        return self._direction(self._adversary.backward, self.releases, self._population.proved[self._row, 0])

    @property
    def future(self) -> Direction | None:
        """Rollouts through the forward correlation."""
        proved = self._population.proved[self._row, 1, ::-1]
        found = self._direction(self._adversary.forward, self.releases.reversed, proved)
        return None if found is None else found.reversed()

    def _direction(self, correlation: object, releases: Releases, proved: FloatArray) -> Direction | None:
        if not correlation:
            return None
        assert isinstance(correlation, TransitionMatrix)
        matrices, into = ordered_matrices(correlation, len(releases), turned=False)
        return Direction(Chain(matrices, into, *releases.factors), proved * ROOM, None)


def worth_the_kernel(users: Sequence[Adversary], epsilons: FloatArray) -> bool:
    """Whether the kernel applies and is worth loading; by the problem alone, so that numbers never depend on luck."""
    if not len(epsilons) or not 0.0 < float(epsilons.max()) <= LARGEST_SUM:
        return False
    sizes = {len(one.states) for one in users if one.states is not None}
    if len(sizes) != 1:
        return False
    n, n_steps = sizes.pop(), len(epsilons)
    work = len(users) * min(n_steps, LONGEST_WORK) * max(n, LEAST_STATES) ** 3
    if n > BATCHED or work < (WORTH_COMPILING_ALONE if len(users) == 1 else WORTH_COMPILING):
        return False
    settles = n_steps >= WORTH_SETTLING and bool((epsilons == epsilons[0]).all())
    if not settles and _most_rows(len(users), n, epsilons) < n_steps:
        return False
    return chosen_kernels(work) == "numba" and are_constant_and_dense(users)


def are_constant_and_dense(users: Sequence[Adversary]) -> bool:
    """Whether every correlation is unknown, or one dense matrix for all transitions."""
    return all(
        matrix is None or (isinstance(matrix, TransitionMatrix) and not matrix.is_sparse)
        for one in users
        for matrix in (one.backward, one.forward)
    )


def relative_error(n: int) -> float:
    """Of an entry in one step."""
    # Roundings of a sum of products, by eights and then by fours; of two factors; of the rows' own last digits.
    return (n // 8 + n % 8 // 4 + n % 4 + 8) * U


def _most_rows(n_users: int, n: int, epsilons: FloatArray) -> int:
    """Steps of one user that the kernel can, and should, solve; with equal budgets leakage may settle within them."""
    by_leakage = int(LARGEST_SUM / float(epsilons.mean()))
    return min(by_leakage, MOST_KEPT // (n * n), LONGEST_ALONE if n_users == 1 else len(epsilons))


def exact_population(users: Sequence[Adversary], epsilons: FloatArray) -> Population:
    """The exact leakage of users for whom `worth_the_kernel` holds."""
    from temporaldp.kernels.compiled.population import population

    stack, past, future = numbered(users)
    n, n_steps = stack.shape[1], len(epsilons)
    profiles = compute_profiles(stack, tuple(map(str, range(n))))
    d, x = (np.ascontiguousarray(profiles.points[:, k]) for k in (0, 1))
    matrices = stack / stack.sum(axis=2, keepdims=True)
    keys, which = np.unique((past + 1) * (len(stack) + 1) + future + 1, return_inverse=True)
    past, future = keys // (len(stack) + 1) - 1, keys % (len(stack) + 1) - 1
    shape = (len(keys), 3, n_steps)
    proved, attained, pairs = np.empty(shape), np.empty(shape), np.empty(shape, np.int32)
    gamma = relative_error(n)
    most = _most_rows(len(users), n, epsilons)

    def work_on(first: int, last: int) -> None:
        """Some users of the block that begins at `start`."""
        population(
            matrices, d, x, profiles.starts, past, future, epsilons, gamma, most, start + first, start + last, proved,
            attained, pairs,
        )  # fmt: skip

    for start in range(0, len(keys), BLOCK):
        progressed("leakage of every person", start / len(keys))
        n_here = min(BLOCK, len(keys) - start)
        spread(work_on, n_here, step=1, work=n_here * n_steps * n**3 * ENTRY_WORK)
    for one in (proved, attained, pairs):
        one.flags.writeable = False
    releases = Releases(epsilons[:, None], np.zeros((n_steps, 1)))
    return Population(proved, attained, pairs, which.ravel(), releases)


def numbered(users: Sequence[Adversary]) -> tuple[FloatArray, IntArray, IntArray]:
    """The different matrices, and for each user the number of the backward and of the forward one, -1 where it is unknown."""
    numbers: dict[int, int] = {}
    different: list[FloatArray] = []
    which = np.full((2, len(users)), -1, np.int64)
    for user, one in enumerate(users):
        for way, matrix in enumerate((one.backward, one.forward)):
            if isinstance(matrix, TransitionMatrix):
                if id(matrix) not in numbers:
                    numbers[id(matrix)] = len(different)
                    different.append(matrix.dense())
                which[way, user] = numbers[id(matrix)]
    return np.stack(different), which[0], which[1]
