"""Matrix mechanisms: continual counts whose Gaussian noise is shared between steps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.accounting.curve.method import ApproximateDP
from temporaldp.accounting.monotone_search import bisected
from temporaldp.accounting.protocol import Leakage
from temporaldp.accounting.sequence import SequenceMechanism
from temporaldp.accounting.series import temporal_leakage
from temporaldp.correlated_noise.coupling import coupling_leakage
from temporaldp.correlated_noise.paths import PathLikelihoods
from temporaldp.correlated_noise.simulation import SimulatedLeakage, confidence_bounds
from temporaldp.correlation import Adversary
from temporaldp.errors import InputError
from temporaldp.mechanisms.noise import GaussianNoise, gaussian_delta
from temporaldp.mechanisms.protocol import epsilon_of_one, require_positive
from temporaldp.values import FloatArray, compared_by_value, copy_in, positive, real_number, whole_number

LEAST_MU, LARGEST_MU = 1e-9, 1e3
"""Sensitivities over standard deviations among which a calibration searches."""

LEAST_SCALE = 1e-50
"""Of entries and noise: beyond, squares leave the range of doubles."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MatrixMechanism(SequenceMechanism):
    """Counts of T steps by ``C x + noise``: x has one histogram per step, and the noise is independent Gaussian.

    With C the identity this is fresh noise at every step. Other matrices spread the counts of one step over several outputs, so
    that running counts have less error at the same event-level guarantee (Li et al., VLDB Journal 2015; Denisov et al., NeurIPS
    2022). `temporal_leakage` with ``ApproximateDP(delta)`` gives an upper bound of the leakage of every step by couplings of
    paths (Theory, section 23).

    Parameters
    ----------
    matrix : array_like, shape (m, T)
        The strategy matrix C. A row is published at the last step with an entry other than 0.
    sigma : float, > 0
        Standard deviation of the noise on each entry of C x, in counts.

    Raises
    ------
    InputError
        C is not a matrix of finite numbers, does not determine the running counts, or sigma is not admissible.

    Examples
    --------
    >>> from temporaldp import Adversary, ApproximateDP, TransitionMatrix, temporal_leakage
    >>> adversary = Adversary.from_forward(TransitionMatrix([[0.9, 0.1], [0.2, 0.8]]))
    >>> tree = MatrixMechanism.tree(12, sigma=1.0).calibrated(0.894, delta=1e-3)
    >>> series = temporal_leakage(adversary, tree, accounting=ApproximateDP(delta=1e-3))
    >>> series.epsilons[6].round(3).item(), series.temporal[6].round(2).item()
    (0.894, 4.52)
    """

    matrix: FloatArray
    sigma: float

    def __post_init__(self) -> None:
        require_positive(self, "sigma")
        copy_in(self, "matrix")
        if self.matrix.ndim != 2 or not self.matrix.size or not np.isfinite(self.matrix).all():
            raise InputError(
                f"expected the matrix of MatrixMechanism to have shape (m, T) and finite entries, got shape {self.matrix.shape}"
            )
        if not all(LEAST_SCALE <= scale <= 1.0 / LEAST_SCALE for scale in (np.abs(self.matrix).max(), self.sigma)):
            raise InputError(
                f"expected the largest entry of the matrix and sigma from {LEAST_SCALE:g} to {1.0 / LEAST_SCALE:g}, got "
                f"{np.abs(self.matrix).max():g} and {self.sigma:g}; rescale both by one factor"
            )
        if np.linalg.matrix_rank(self.matrix) < self.matrix.shape[1]:
            raise InputError(
                "expected a matrix of full column rank, so that the running counts follow from C x; got rank "
                f"{np.linalg.matrix_rank(self.matrix)} for {self.matrix.shape[1]} steps"
            )

    def __repr__(self) -> str:
        return f"MatrixMechanism({self.matrix.shape[0]} x {self.matrix.shape[1]}, sigma={self.sigma:.6g})"

    @classmethod
    def independent(cls, n_steps: int, sigma: float) -> MatrixMechanism:
        """Return the mechanism that adds independent noise to the histogram of every step."""
        return cls.banded(n_steps, [1.0], sigma)

    @classmethod
    def tree(cls, n_steps: int, sigma: float) -> MatrixMechanism:
        """Return the mechanism that adds noise to sums of 1, 2, 4, ... steps (Dwork et al., STOC 2010; Chan et al., 2011).

        The last block of each length is truncated at the last step, so that every column has the same norm.
        """
        T = whole_number(n_steps, "n_steps", least=1)
        steps = np.arange(T)
        blocks = [
            (steps >= first) & (steps < first + (1 << level))
            for level in range(T.bit_length())
            for first in range(0, T, 1 << level)
        ]
        return cls(np.array(blocks, dtype=np.float64), sigma)

    @classmethod
    def square_root(cls, n_steps: int, sigma: float) -> MatrixMechanism:
        """The Toeplitz matrix whose square is the matrix of running counts (Fichtenberger, Henzinger and Upadhyay, 2023)."""
        T = whole_number(n_steps, "n_steps", least=1)
        k = np.arange(1, T)
        return cls.banded(T, np.cumprod(np.concatenate(([1.0], (2 * k - 1) / (2 * k)))), sigma)

    @classmethod
    def banded(cls, n_steps: int, coefficients: ArrayLike | Iterable[float], sigma: float) -> MatrixMechanism:
        """A lower triangular Toeplitz matrix.

        Parameters
        ----------
        n_steps : int
            T.
        coefficients : array_like, shape (b,)
            Of the diagonal, which is not 0, and of the b - 1 diagonals below it.
        sigma : float, > 0
        """
        from scipy.linalg import toeplitz

        T, given = whole_number(n_steps, "n_steps", least=1), np.asarray(coefficients, dtype=np.float64)
        if given.ndim != 1 or not 1 <= given.size <= T or given[0] == 0.0:
            raise InputError(
                f"expected from 1 to {T} coefficients, the first of them not 0, got an array of shape {given.shape}"
            )
        return cls(toeplitz(np.pad(given, (0, T - given.size)), np.zeros(T)), sigma)

    @property
    def n_steps(self) -> int:
        """Number of steps T."""
        return int(self.matrix.shape[1])

    @property
    def sensitivity(self) -> float:
        """Largest change of C x in L2 norm when one entry of x changes by 1: the largest norm of a column.

        Replacing one person's state at one step changes two counts, and C x by sqrt(2) times as much.
        """
        return float(np.linalg.norm(self.matrix, axis=0).max())

    @property
    def running_count_error(self) -> FloatArray:
        """Standard deviation of each running count, shape (T,), in counts, by the best linear estimator from all outputs."""
        return self._error_of(np.tril(np.ones((self.n_steps, self.n_steps))))

    @property
    def count_error(self) -> FloatArray:
        """Standard deviation of the count of each step, shape (T,), by the best linear estimator from all outputs."""
        return self._error_of(np.eye(self.n_steps))

    def _error_of(self, workload: FloatArray) -> FloatArray:
        return np.asarray(self.sigma * np.linalg.norm(workload @ np.linalg.pinv(self.matrix), axis=1))

    def calibrated(self, epsilon: float, *, delta: float) -> MatrixMechanism:
        """Return a mechanism with this matrix and the least noise that is (epsilon, delta)-DP at event level."""
        positive(epsilon, "epsilon")
        real_number(delta, "delta", gt=0.0, lt=1.0)

        def admits(mu: float) -> bool:
            return bool(gaussian_delta(np.array([epsilon]), mu)[1][0] <= delta)

        mu = bisected(admits, 0.0, LARGEST_MU, 1e-12, most=100)
        if mu < LEAST_MU:
            raise InputError(f"expected a delta that Gaussian noise satisfies at epsilon = {epsilon:g}, got {delta!r}")
        return replace(self, sigma=math.sqrt(2.0) * self.sensitivity / mu)

    def event_level(self, n_steps: int, delta: float) -> FloatArray:
        """Epsilon of the whole output when one state at one step is replaced, for each step, shape (T,); inf at delta = 0."""
        norms = math.sqrt(2.0) * np.linalg.norm(self.matrix, axis=0)
        if not delta:
            return np.full(n_steps, math.inf)
        known = {
            norm: epsilon_of_one(GaussianNoise(self.sigma, norm), delta=delta) for norm in np.unique(norms).tolist()
        }
        return np.array([known[norm] for norm in norms.tolist()])

    def own_leakage(self, user: Adversary, n_steps: int, delta: float) -> Leakage:
        """Leakage of every step at a delta by couplings of paths: an upper bound.

        For independent noise, the bound by privacy curves (`ApproximateDP`) if it is smaller at the worst step.

        Raises
        ------
        InputError
            delta is 0: the leakage of Gaussian noise is infinite.
        """
        if not delta:
            raise InputError("expected ApproximateDP(delta): Gaussian noise has infinite leakage without a delta")
        found = coupling_leakage(user, self.matrix, self.sigma, delta)
        diagonal = np.diag(self.matrix)
        if not (np.array_equal(self.matrix, np.diag(diagonal)) and np.isfinite(found.temporal).all()):
            return found
        releases = [GaussianNoise(self.sigma / entry, math.sqrt(2.0)) for entry in np.abs(diagonal).tolist()]
        series = temporal_leakage(user, releases, accounting=ApproximateDP(delta))
        by_curves = Leakage(series.backward, series.forward, series.temporal, series.evidence)
        return min(found, by_curves, key=lambda one: one.temporal.max())


def simulate_leakage(
    adversary: Adversary,
    mechanism: MatrixMechanism,
    *,
    delta: float,
    step: int | None = None,
    failure: float | None = None,
    draws: int = 100_000,
    seed: int = 0,
) -> SimulatedLeakage:
    """Leakage of a matrix mechanism about one step at a delta, between confidence bounds.

    The likelihoods of drawn outputs are summed over all paths, or over all words of as many states as the matrix has bands
    (Theory, section 24). The upper bound is never above that by couplings.

    Parameters
    ----------
    adversary : Adversary
        With exactly known matrices.
    mechanism : MatrixMechanism
        With few bands (4 of them for 5 states), or few steps (12 for 2 states).
    delta : float
    step : int, optional
        From 0. Default: the one with the largest bound by couplings.
    failure : float, optional
        Probability over the draws that a bound is wrong. Default: a thousandth of delta.
    draws : int
        Outputs given each state, at least 10; some 100 / delta give useful bounds. With too few, `upper` is the bound by
        couplings and `lower` is 0.
    seed : int

    Raises
    ------
    InputError
        The likelihoods cannot be enumerated, matrices are not known exactly, or there is no such step.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> adversary = Adversary.from_forward(TransitionMatrix([[0.9, 0.1], [0.2, 0.8]]))
    >>> tree = MatrixMechanism.tree(4, sigma=4.0)
    >>> found = simulate_leakage(adversary, tree, delta=0.01, draws=20_000)
    >>> 0.0 < found.lower < found.upper < 4.0
    True
    """
    chance = 1e-3 * delta if failure is None else failure
    real_number(chance, "failure probability", gt=0.0, lt=1.0)
    whole_number(draws, "draws", least=10)
    if step is not None and whole_number(step, "step", least=0) >= mechanism.n_steps:
        raise InputError(f"expected a step from 0 to {mechanism.n_steps - 1}, got {step}")
    series = temporal_leakage(adversary, mechanism, accounting=ApproximateDP(delta))
    at = series.worst_time if step is None else int(step)
    paths = PathLikelihoods(adversary.over(mechanism.n_steps), mechanism.matrix, mechanism.sigma, at)
    ((lower, upper),) = confidence_bounds(paths.drawn, paths.n, delta, chance, draws, np.random.default_rng(seed))
    return SimulatedLeakage(at, delta, chance, lower, min(upper, float(series.temporal[at])), draws)
