"""From adversaries to exact leakage: matrices in the order in which rollouts take them, and what can be told of the result."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.arrivals import Releases
from temporaldp.accounting.exact.pair_bounds import Direction, Pairs, every_pair_at, own_part
from temporaldp.accounting.protocol import Direction as DirectionName
from temporaldp.correlation import TransitionMatrix
from temporaldp.correlation.adversary import exactly_known
from temporaldp.correlation.protocol import Correlation
from temporaldp.errors import InputError
from temporaldp.kernels.best_observation import observation
from temporaldp.kernels.chain import Items
from temporaldp.kernels.rollouts import solve
from temporaldp.values import ROUNDOFF as U
from temporaldp.values import compared_by_value, whole_number

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MOST_LIKELY = 6
"""Pairs of the leakage profile that a search begins with."""


@compared_by_value
class Attained(NamedTuple):
    """Leakage that observations reach, at every step: the lower side of each exact number. Arrays of shape (T,), in nats."""

    backward: FloatArray
    forward: FloatArray
    temporal: FloatArray


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Observation:
    """The observation of all releases that tells two values at one step apart best.

    Parameters
    ----------
    time : int
        The step that is leaked about, from 0.
    value, other_value : str
        The value that the observation speaks for, and the one that it speaks against.
    states : tuple of str
    high : bool array, shape (T, n)
        Which values each step's output speaks for as strongly as it can: in a histogram, whose counts come out high.
    leakage : float
        Log of the ratio of the observation's likelihoods, in nats: a lower bound by rounding.
    """

    time: int
    value: str
    other_value: str
    states: tuple[str, ...]
    high: BoolArray
    leakage: float

    def __len__(self) -> int:
        return len(self.high)

    def __repr__(self) -> str:
        return (
            f"Observation({self.value!r} rather than {self.other_value!r} at step {self.time}, {self.leakage:.6g} nats from "
            f"{len(self)} steps)"
        )

    def counts_high(self, step: int) -> tuple[str, ...]:
        """The values whose counts come out high at a step."""
        return tuple(state for state, high in zip(self.states, self.high[step], strict=True) if high)


@compared_by_value
@dataclass(frozen=True, eq=False, repr=False)
class ExactLeakage:
    """What can be told of the exact leakage about one user beyond the largest numbers.

    Parameters
    ----------
    states : tuple of str
    releases : Releases
    past, future : Direction or None
        Rollouts in both directions; None for a correlation that nobody knows.
    attained : Attained
    pairs : dict of (T,) int arrays
        For each of "backward", "forward" and "temporal", the positions of the two values.
    beyond : float
        Nats by which what is proved of these releases may be less than what others leak that were too loud for rollouts.
    """

    states: tuple[str, ...]
    releases: Releases
    past: Direction | None = field(compare=False)
    future: Direction | None = field(compare=False)
    attained: Attained
    pairs: dict[str, Pairs]
    beyond: float = 0.0

    def __len__(self) -> int:
        return len(self.releases)

    def __repr__(self) -> str:
        return f"ExactLeakage({len(self)} steps, {len(self.states)} states)"

    def worst_pair(self, step: int, direction: DirectionName = "temporal") -> tuple[str, str]:
        """The value that is leaked about most at a step, and the one it is told from."""
        i, j = self._pair(self._step(step), direction)
        return self.states[i], self.states[j]

    def metric(self, step: int, direction: DirectionName = "temporal") -> FloatArray:
        """Exact leakage of every ordered pair at a step, shape (n, n): row = the value, column = the one it is told from.

        Upper sides, in nats; zero on the diagonal. Row and column follow `states`.

        Raises
        ------
        InputError
            There is no such step or direction.
        """
        at = self._step(step)
        n = len(self.states)
        i, j = np.nonzero(~np.eye(n, dtype=bool))
        pairs = i.astype(np.int64), j.astype(np.int64)
        items = every_pair_at(np.array([at]), pairs)
        found = np.zeros((n, n))
        found[pairs] = own_part(self.releases.lift, self.releases.drop, items)
        for one in self._directions(direction):
            turned = one.turn(items)
            found[pairs] += solve(one.chain, turned, one.spread).proved
        found[pairs] += self.beyond
        return found * (1.0 + 4.0 * U)

    def witness(self, step: int) -> Observation:
        """The observation that gives most away about a step: which values' counts come out high, step by step."""
        at = self._step(step)
        i, j = self._pair(at, "temporal")
        item = Items(np.array([at]), np.array([i]), np.array([j]))
        leakage = float(own_part(self.releases.lift, self.releases.drop, item)[0])
        high = np.zeros((len(self), len(self.states)), bool)
        high[at, i] = True
        if self.past is not None and at > 0:
            high[:at], arrives = _observed(self.past, item)
            leakage += arrives
        if self.future is not None and at < len(self) - 1:
            turned, arrives = _observed(self.future, item)
            high[at + 1 :] = turned[::-1]
            leakage += arrives
        high &= np.any(self.releases.lift > self.releases.drop, axis=1, keepdims=True)
        return Observation(at, self.states[i], self.states[j], self.states, high, leakage * (1.0 - 4.0 * U))

    def _directions(self, direction: str) -> Sequence[Direction]:
        known = {"backward": (self.past,), "forward": (self.future,), "temporal": (self.past, self.future)}
        if direction not in known:
            raise InputError(f"expected direction to be backward, forward or temporal, got {direction!r}")
        return [one for one in known[direction] if one is not None]

    def _pair(self, step: int, direction: str) -> tuple[int, int]:
        if direction not in self.pairs:
            raise InputError(f"expected direction to be backward, forward or temporal, got {direction!r}")
        i, j = self.pairs[direction]
        return int(i[step]), int(j[step])

    def _step(self, step: int) -> int:
        at = whole_number(step, "a step")
        if not -len(self) <= at < len(self):
            raise InputError(f"expected a step from 0 to {len(self) - 1}, got {step}")
        return range(len(self))[at]


def _observed(direction: Direction, item: Items) -> tuple[BoolArray, float]:
    """Which values each step's output speaks for, in the chain's own order of steps, and what arrives of that."""
    turned = direction.turn(item)
    found = solve(direction.chain, turned, direction.spread)
    (t,), (i,), (j,) = turned.arrays
    return observation(direction.chain, int(t), int(i), int(j), float(found.rho[0])), float(found.attained[0])


def ordered_matrices(correlation: Correlation, n_steps: int, *, turned: bool) -> tuple[tuple[Any, ...], IntArray]:
    """The different matrices of one direction, and which of them leads into each step; the last step first if `turned`."""
    into = np.zeros(n_steps, np.int64)
    if correlation.is_constant:
        return (rows_of(exactly_known(correlation.at(0))),), into
    ordered = tuple(map(exactly_known, (correlation.in_reverse() if turned else correlation).matrices))
    distinct = {id(matrix): matrix for matrix in ordered}
    numbers = {key: k for k, key in enumerate(distinct)}
    into[1:] = [numbers[id(matrix)] for matrix in ordered]
    return tuple(map(rows_of, distinct.values())), into


def rows_of(matrix: TransitionMatrix) -> Any:
    """The probabilities with rows divided by their sums, which tolerate an error in the last digits; sums have one rounding."""
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


def likely_pairs(matrix: TransitionMatrix) -> Pairs:
    """Pairs that the leakage profile is made of: told apart best by one step."""
    witnesses = matrix.leakage_profile().witnesses
    if not len(witnesses):
        return np.array([0]), np.array([1])
    position = {state: k for k, state in enumerate(matrix.states)}
    chosen = np.unique(np.linspace(0, len(witnesses) - 1, MOST_LIKELY).astype(int))
    pairs = {(position[witnesses[int(k)].value], position[witnesses[int(k)].other_value]) for k in chosen}
    i, j = zip(*sorted(pairs), strict=True)
    return np.array(i), np.array(j)
