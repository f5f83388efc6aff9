"""Upper bounds of the leakage of matrix mechanisms by couplings of paths (Theory, section 23).

Notation
--------
C        strategy matrix, one column a step; what is published is a function of ``C x + noise``
t        the step whose state leaks; i and j are the two states there that are compared
q        state at the quilt, a step at a distance before or after t, given which all beyond it is independent of the state at t
w, l     probability of q given i, and its log ratio to that given j
u_k      probability that two coupled paths, from i and j to q, differ k steps away from t
mu       distance of the means of the outputs for two paths, in standard deviations of the noise

Paths from i and j to the same q can be coupled so that they differ k steps away with probability u_k, the total variation
distance of the two distributions there, for every k at once, and stay together once they have met (Griffeath 1975, Goldstein
1979). Beyond the quilt they are the same. The hockey-stick divergence is jointly convex, so that

    delta(epsilon) <= sum over both quilts of w w' E[delta_Gauss(epsilon - l - l'; mu)]

with the expectation over both couplings. Without a quilt on a side, w = 1, l = 0, and paths are coupled up to the end. Every
choice of two quilts gives a bound; the smallest counts. While two paths differ, the rows of their difference have scalar
products of at most 2, and of exactly 2 or -2 if there are only two states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

from temporaldp.base.values import ULP, FloatArray, real_number
from temporaldp.core.accounting.protocol import DIRECTIONS, Direction, Evidence, Leakage, Side
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import exactly_known
from temporaldp.core.correlation.protocol import Correlation

QUILTS = (1, 2, 3, 4, 6, 9, 14, 22, 34, 52, 80, 0)
"""Distances of quilts that are tried; 0 is none. If there were twice as many: bounds are tighter by a few percent."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CouplingLeakage(Evidence):
    """Leakage of every ordered pair of states at every step by couplings, upper bounds in nats.

    Parameters
    ----------
    states : tuple of str
    pairs : dict of str to array, shape (T, n, n)
        Of each direction: backward, forward, temporal.
    """

    states: tuple[str, ...]
    pairs: dict[Direction, FloatArray]

    def __len__(self) -> int:
        return len(self.pairs["temporal"])

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """Leakage of every ordered pair at a step, shape (n, n): row = the state, column = the one compared with.

        Raises
        ------
        InputError
            There is no such step or direction.
        """
        return np.asarray(self.pairs[direction][self.checked_step(step, direction)])


@dataclass(frozen=True, slots=True, eq=False)
class CoupledSide:
    """Couplings on one side of a step, for each of P ordered pairs of states.

    Parameters
    ----------
    weights : array, shape (P, Q, K)
        Probability of state q at the quilt and of a difference at exactly k further steps, k = 0, ..., K - 1.
    shifts : array, shape (P, Q)
        Log ratio of the probabilities of q.
    lengths : array of int, shape (K,)
        How many further steps differ.
    """

    weights: FloatArray
    shifts: FloatArray
    lengths: NDArray[np.int64]

    @property
    def has_merged(self) -> bool:
        """Whether the last length stands for shorter ones, too."""
        return len(self.lengths) > 1 and bool(self.lengths[-1] - self.lengths[-2] > 1)


class Couplings:
    """Couplings of the paths of one user over T steps, with exactly known matrices."""

    def __init__(self, user: Adversary, n_steps: int) -> None:
        self.n_steps, self.states = n_steps, user.states or ("0", "1")
        self.first, self.second = np.nonzero(~np.eye(len(self.states), dtype=bool))
        self._correlations: dict[Side, Correlation] = {"backward": user.backward, "forward": user.forward}
        self._matrices = {
            side: [exactly_known(one.at(t)).dense() for t in range(n_steps - 1)] if one else []
            for side, one in self._correlations.items()
        }
        self._sides: dict[tuple[Side, int, int], CoupledSide] = {}
        P = len(self.first)
        # A side without steps, or whose correlation is unknown to the adversary
        self.nothing = CoupledSide(np.ones((P, 1, 1)), np.zeros((P, 1)), np.zeros(1, np.int64))

    def side(self, side: Side, step: int, quilt: int) -> CoupledSide:
        """Couplings on one side of a step, with a quilt at a distance; none for 0 or beyond the first or last step."""
        matrices = self._matrices[side]
        if not matrices:
            return self.nothing
        available = step if side == "backward" else self.n_steps - 1 - step
        quilt = quilt if quilt <= available else 0
        key = (side, -1 if self._correlations[side].is_constant and quilt else step, quilt)
        if key not in self._sides:
            # Beyond 80 steps lengths of differences are not distinguished: they count as differences of all steps
            reach = quilt or min(available, 80)
            towards = range(step - 1, step - 1 - reach, -1) if side == "backward" else range(step, step + reach)
            coupled = self._coupled([matrices[s] for s in towards], bool(quilt))
            if not quilt:
                coupled.lengths[-1] = available
            self._sides[key] = coupled
        return self._sides[key]

    def _coupled(self, matrices: list[FloatArray], to_quilt: bool) -> CoupledSide:
        """Couplings along consecutive transitions away from a step: to each state at the end, or to whatever state."""
        n, reach = len(self.states), len(matrices)
        slack = 8.0 * ULP * n * (reach + 2)
        away = list(accumulate(matrices, np.matmul, initial=np.eye(n)))
        end = np.eye(n) if to_quilt else np.ones((n, 1))
        to_end = list(accumulate(reversed(matrices), lambda later, matrix: matrix @ later, initial=end))[::-1]
        reached = np.asarray(to_end[0])  # shape (n, Q): probability of q given the state at the step
        weights, compared = reached[self.first], reached[self.second]
        apart = [np.ones(weights.shape)]
        with np.errstate(divide="ignore", invalid="ignore"):
            for k in range(1, reach + (not to_quilt)):
                paths = away[k][:, :, None] * to_end[k][None, :, :] / reached[:, None, :]  # of the state k steps away
                distance = 0.5 * np.abs(paths[self.first] - paths[self.second]).sum(axis=1) + slack
                apart.append(np.fmin(distance, apart[-1]))
            shifts = np.log(weights / compared)
            shifts += 4.0 * ULP * np.where(np.isfinite(shifts), np.abs(shifts), 0.0) + slack
        shifts = np.where(weights > 0.0, shifts, 0.0)
        weights, differing = weights * (1.0 + slack), np.array(apart)
        if n > 8 and to_quilt:  # the worst state at the quilt stands for all, so that arrays stay small
            shifts, weights = shifts.max(axis=1, keepdims=True), np.ones((len(weights), 1))
            differing = differing.max(axis=2, keepdims=True)
        law = -np.diff(differing, axis=0, append=0.0)
        return CoupledSide(weights[:, :, None] * law.transpose(1, 2, 0), shifts, np.arange(len(law)))

    def signs(self, step: int) -> FloatArray:
        """Whether two paths over two states differ as at `step` (1), or in exchanged states (-1), as long as they differ."""
        signs = np.ones(self.n_steps)
        orders: dict[Side, range] = {"backward": range(step - 1, -1, -1), "forward": range(step, self.n_steps - 1)}
        for side, order in orders.items():
            sign = 1.0
            for s in order if self._matrices[side] else ():
                row, other = self._matrices[side][s]
                sign *= -1.0 if row[0] < other[0] else 1.0
                signs[s if side == "backward" else s + 1] = sign
        return signs


class StepCouplings:
    """Bounds about one step, from all outputs ("temporal"), those up to the step ("backward") or from it on ("forward").

    Parameters
    ----------
    couplings : Couplings
    strategy : array, shape (m, T)
        C, for noise of standard deviation 1.
    step : int
    direction : {"backward", "forward", "temporal"}
    """

    def __init__(self, couplings: Couplings, strategy: FloatArray, step: int, direction: Direction) -> None:
        self._couplings, self._step, self._direction = couplings, step, direction
        # A row of C x is published at the last step that it depends on; -1 for a row of zeros
        published = np.where(strategy != 0.0, np.arange(strategy.shape[1]), -1).max(axis=1)
        rows = strategy[
            {"backward": published <= step, "forward": published >= step, "temporal": published >= 0}[direction]
        ]
        rows = rows * couplings.signs(step) if len(couplings.states) == 2 else np.abs(rows)
        self._sums, self._most = (
            np.pad((one.T @ one).cumsum(axis=0).cumsum(axis=1), (1, 0)) for one in (rows, np.abs(rows))
        )
        self._slack = 8.0 * ULP * (couplings.n_steps + len(rows)) * self._most.max()

    def least(self, delta: float, start: tuple[int, int]) -> tuple[FloatArray, tuple[int, int]]:
        """The smallest epsilon of each pair over quilts near `start`, and the places of those with the least maximum."""
        last = len(QUILTS) - 1
        known: dict[tuple[int, int], FloatArray] = {}
        best, near = start, {start}
        while near:
            for a, b in near:
                known[a, b] = self.mixture(QUILTS[a], QUILTS[b]).epsilon(delta)
            best = min(known, key=lambda place: (known[place].max(), place))
            if math.isinf(known[best].max()):  # no quilt near the start has ratios below the level
                best = last, last
            a, b = best
            near = {
                best,
                (max(a - 1, 0), b),
                (min(a + 1, last), b),
                (a, max(b - 1, 0)),
                (a, min(b + 1, last)),
            } - known.keys()
        return np.min(list(known.values()), axis=0), best

    def mixture(self, before: int, after: int) -> _Mixture:
        """The mixture of Gaussian deltas with quilts at these distances."""
        step = self._step
        past = self._couplings.side("backward", step, before)
        future = self._couplings.nothing
        if self._direction != "backward":
            future = self._couplings.side("forward", step, after)
        start, stop = step - past.lengths[:, None], step + 1 + future.lengths[None, :]
        squares, most = (
            one[stop, stop] - one[start, stop] - one[stop, start] + one[start, start]
            for one in (self._sums, self._most)
        )
        # The last of many lengths stands for all that are not distinguished, among which signs may cancel in the longest alone
        if past.has_merged:
            squares[-1] = most[-1]
        if future.has_merged:
            squares[:, -1] = most[:, -1]
        # A longer difference counts as no smaller, so that probabilities may be rounded towards it.
        squares = np.maximum.accumulate(np.maximum.accumulate(np.maximum(squares, 0.0) + self._slack, axis=0), axis=1)
        # Above 0, so that quotients are defined; no delta of a double depends on it
        return _Mixture(past, future, np.sqrt(2.0 * squares) * (1.0 + 4.0 * ULP) + 1e-290)


@dataclass(frozen=True, slots=True, eq=False)
class _Mixture:
    """Delta of each pair as a mixture of deltas of two Gaussians at distances `mu`, of shape (K, K')."""

    past: CoupledSide
    future: CoupledSide
    mu: FloatArray

    def delta(self, epsilons: FloatArray) -> FloatArray:
        """Return an upper bound of the delta of each pair at its epsilon; shape (P,)."""
        entries = self.mu.size * self.past.shifts.shape[1] * self.future.shifts.shape[1]
        at_once = max(1, (1 << 16) // entries)
        parts = [self._delta(epsilons, slice(k, k + at_once)) for k in range(0, len(epsilons), at_once)]
        return np.concatenate(parts) + 1e-14  # sums of at most 1, each term rounded by a few units in the last place

    def _delta(self, epsilons: FloatArray, pairs: slice) -> FloatArray:
        """Means over both sides of ``Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu)``, with e the epsilon less both shifts."""
        past, future, mu = self.past.shifts[pairs], self.future.shifts[pairs], self.mu / math.sqrt(2.0)
        left = (epsilons[pairs, None, None] - past[:, :, None] - future[:, None, :])[..., None, None]
        with np.errstate(over="ignore", invalid="ignore"):
            near = left / (2.0 * mu) - 0.5 * mu
            # Beyond 700 nats e^left overflows, and the tail that it multiplies is 0
            value = 0.5 * (erfc(near) - np.exp(np.minimum(left, 700.0)) * erfc(near + mu))
        value = np.where(left == -np.inf, 1.0, np.clip(value, 0.0, 1.0))
        mean = np.einsum("pax,pby,pabxy->p", self.past.weights[pairs], self.future.weights[pairs], value, optimize=True)
        return np.asarray(mean * (1.0 + 1e-12))

    def epsilon(self, delta: float) -> FloatArray:
        """Epsilon of each pair at a delta, an upper bound of what the mixture yields; shape (P,).

        Rounded up by at most 1e-8 of it. Where one exceeds 600 nats it is inf, and the others are rounded up to a power of two.
        """
        low, high = np.zeros(len(self.past.weights)), np.ones(len(self.past.weights))
        while not (fits := self.delta(high) <= delta).all():
            if high.max() > 600.0:
                return np.where(fits, high, math.inf)
            low, high = np.where(fits, low, high), np.where(fits, high, 2.0 * high)
        while (high - low > 1e-8 * high + 1e-12).any():
            middle = 0.5 * (low + high)
            fits = self.delta(middle) <= delta
            low, high = np.where(fits, low, middle), np.where(fits, middle, high)
        return high


def coupling_leakage(user: Adversary, strategy: FloatArray, sigma: float, delta: float) -> Leakage:
    """Leakage of every step of ``C x + noise`` at a delta, upper bounds.

    Raises
    ------
    InputError
        delta is too small.
    """
    real_number(delta, "delta of a matrix mechanism", ge=1e-11, lt=1.0)  # a thousand times what sums are rounded by
    couplings = Couplings(user, strategy.shape[1])
    n = len(couplings.states)
    pairs: dict[Direction, FloatArray] = {direction: np.zeros((couplings.n_steps, n, n)) for direction in DIRECTIONS}
    for direction, found in pairs.items():
        best = 2, 2  # places in `QUILTS`
        for t in range(couplings.n_steps):
            about = StepCouplings(couplings, strategy / sigma, t, direction)
            found[t, couplings.first, couplings.second], best = about.least(delta, best)
    backward, forward, temporal = (found.max(axis=(1, 2)) for found in pairs.values())
    return Leakage(backward, forward, temporal, CouplingLeakage(couplings.states, pairs))
