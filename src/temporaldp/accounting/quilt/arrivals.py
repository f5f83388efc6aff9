"""Incoming leakage by Markov quilts, one step at a time.

Notation
--------
a        distance of a quilt: the state a steps away, given which everything beyond it is independent of the state now
M_a      product of the a matrices between the state now and the quilt: row = the state now, column = the state at the quilt
L_a      ``max_x log M_a[i, x] / M_a[j, x]``, the most that the quilt reveals about state i against state j
c_a      sum of the epsilons of the a - 1 steps strictly between

Incoming leakage about a pair is at most ``min_a c_a + L_a``, or the sum of all epsilons of that side (Theory, section 20).
At the next step every distance grows by one, and a quilt at distance 1 is added. A quilt whose c_a alone is no less than
another's ``c_b + max L_b`` can never become the smaller one, since L only decreases, and is dropped.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from temporaldp.accounting.protocol import Side
from temporaldp.correlation import Adversary
from temporaldp.values import ULP, FloatArray


class Product:
    """A product of matrices, between entrywise bounds, and its leakage about each pair of states.

    Parameters
    ----------
    low, high : array, shape (n, n)
        Entries rounded down and up; they differ by more than rounding where matrices are known up to intervals.
    """

    def __init__(self, low: FloatArray, high: FloatArray) -> None:
        self._low, self._high = low, high
        self._next: dict[int, tuple[Any, Product]] = {}

    @cached_property
    def ratios(self) -> FloatArray:
        """Largest log ratio of each ordered pair of rows, shape (n, n), rounded up; ``inf`` where only one reaches a state."""
        with np.errstate(divide="ignore"):
            high, low = np.log(self._high), np.log(self._low)
        found: FloatArray = np.zeros(high.shape)
        for k in range(len(high)):
            reached = high[:, k] > -math.inf
            found[reached] = np.maximum(found[reached], high[reached, k, None] - low[None, :, k])
        found += 4.0 * ULP * np.where(np.isfinite(found), 1.0 + found, 0.0)
        np.fill_diagonal(found, 0.0)
        return found

    @cached_property
    def key(self) -> bytes:
        """A digest of the entries, by which equal products are recognised."""
        return hashlib.blake2b(self._low.tobytes() + self._high.tobytes(), digest_size=16).digest()

    @cached_property
    def largest(self) -> float:
        """The largest ratio of any pair."""
        return float(self.ratios.max())

    def after(self, matrix: Any) -> Product:
        """Return the matrix times this product; cached."""
        found = self._next.get(id(matrix))
        if found is None or found[0] is not matrix:  # a copy of this object has the keys of another process
            low, high = matrix.bounds
            down, up = 1.0 - (len(low) + 2) * ULP, 1.0 + (len(low) + 2) * ULP
            # A row of the matrix is a distribution: a mean of entries lies between the least and the largest of them.
            least = np.maximum(low @ self._low * down, self._low.min(axis=0))
            most = np.minimum(high @ self._high * up, self._high.max(axis=0))
            found = self._next[id(matrix)] = matrix, Product(least, most)
        return found[1]


@dataclass(frozen=True)
class QuiltArrival:
    """Incoming leakage of one side at one step.

    Parameters
    ----------
    whole : float
        Sum of all epsilons of that side, without a quilt; ``inf`` where a quilt is always better.
    quilts : tuple of (float, Product)
        c_a and M_a, by distance.
    """

    whole: float
    quilts: tuple[tuple[float, Product], ...] = ()

    @cached_property
    def settled(self) -> float:
        """The smallest ``c_a + max L_a``: the bound of a quilt at every later step, without the epsilons of later steps."""
        return min((cost + product.largest for cost, product in self.quilts), default=math.inf)

    @cached_property
    def pairs(self) -> FloatArray | float:
        """Incoming leakage of each ordered pair, shape (n, n), in nats; a number where it is the same for all."""
        found: FloatArray | float = self.whole
        for cost, product in self.quilts:
            found = np.minimum(found, cost + product.ratios)
        return found


class QuiltSteps:
    """Incoming leakage about one user by quilts; implements `temporaldp.accounting.stepwise.Steps`."""

    def __init__(self, user: Adversary) -> None:
        self._user = user
        self.nothing = QuiltArrival(0.0)
        self._first: dict[int, tuple[Any, Product]] = {}

    def arriving(self, side: Side, transition: int, release: float, before: QuiltArrival) -> QuiltArrival:
        """Incoming leakage one step further, without the quilts that no step can need."""
        matrix = getattr(self._user, side).at(transition)
        if matrix is None:
            return self.nothing
        kept: list[tuple[float, Product]] = []
        best = math.inf
        for cost, product in self._candidates(matrix, release, before):
            if cost >= best:
                break
            kept.append((cost, product))
            best = min(best, cost + product.largest)
        whole = _sum(before.whole, release)
        return QuiltArrival(whole if whole < best else math.inf, tuple(kept))

    def _candidates(self, matrix: Any, release: float, before: QuiltArrival) -> Iterator[tuple[float, Product]]:
        first = self._first.get(id(matrix))
        if first is None or first[0] is not matrix:
            first = self._first[id(matrix)] = matrix, Product(*matrix.bounds)
        yield 0.0, first[1]
        for cost, product in before.quilts:
            yield _sum(cost, release), product.after(matrix)

    def leakage(self, past: QuiltArrival, release: float, future: QuiltArrival) -> float:
        """The largest of any pair."""
        return _sum(float(np.max(np.add(past.pairs, future.pairs))), release)

    def never_more(self, one: QuiltArrival, other: QuiltArrival) -> bool:
        """Whether `one` has every quilt of `other` at no larger a cost, or one that no later step makes worse than it."""
        costs = {product.key: cost for cost, product in one.quilts}
        return min(one.whole, one.settled) <= other.whole and all(
            min(costs.get(product.key, math.inf), one.settled) <= cost for cost, product in other.quilts
        )

    def raised(self, arrived: QuiltArrival) -> QuiltArrival:
        """Raise the bound by more than the rounding of sums of epsilons."""
        return QuiltArrival(_raise(arrived.whole), tuple((_raise(cost), product) for cost, product in arrived.quilts))


def has_quilts(matrix: Any) -> bool:
    """Whether every pair of states has a finite ratio at some distance, if the matrix is the same at every step."""
    low, high = (bound > 0.0 for bound in matrix.bounds)
    reached = sure = np.eye(len(low), dtype=bool)
    finite, seen = reached, set()
    while (reached.tobytes(), sure.tobytes()) not in seen:
        seen.add((reached.tobytes(), sure.tobytes()))
        reached, sure = high @ reached, low @ sure
        finite = finite | ~(reached @ ~sure.T)  # no value that i can reach and j may not
    return bool(finite.all())


def _sum(one: float, other: float) -> float:
    """The sum, rounded up."""
    return math.nextafter(one + other, math.inf)


def _raise(cost: float) -> float:
    return cost * (1.0 + 8.0 * ULP) + 1e-15
