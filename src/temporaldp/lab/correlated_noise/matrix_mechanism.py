"""Matrix mechanisms: continual counts whose noise is shared between steps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import InputError
from temporaldp.base.values import ULP, FloatArray, compared_by_value, copy_in, positive, real_number, whole_number
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.accounting.protocol import Accounting, Leakage
from temporaldp.core.accounting.sequence import SequenceMechanism
from temporaldp.core.accounting.series import temporal_leakage
from temporaldp.core.correlation import Adversary
from temporaldp.core.mechanisms.noise import GaussianNoise, LaplaceNoise
from temporaldp.core.mechanisms.protocol import epsilon_of_one
from temporaldp.lab.correlated_noise.coupling import coupling_leakage


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MatrixMechanism(SequenceMechanism):
    """Counts of T steps by ``C x + noise``: x has one histogram per step, and the noise on each entry is independent.

    With C the identity each step has independent noise. Other matrices spread the counts of one step over several outputs, so
    that running counts have less error at the same event-level guarantee (Li et al., VLDB Journal 2015; Denisov et al., NeurIPS
    2022). With Laplace noise the leakage of every step is that of its event-level epsilons (`event_epsilons`; exact over all
    mechanisms with these epsilons). With Gaussian noise, ``ApproximateDP(delta)`` gives an upper bound by couplings of paths
    (Theory, section 23).

    Parameters
    ----------
    matrix : array_like, shape (m, T)
        The strategy matrix C. A row is published at the last step with an entry other than 0.
    noise : LaplaceNoise or GaussianNoise
        The noise on each entry of C x, as it would protect the counts of one step by themselves: ``LaplaceNoise(scale,
        sensitivity=1, coordinates=2)`` and ``GaussianNoise(standard_deviation, sensitivity=sqrt(2))`` for histograms.

    Raises
    ------
    InputError
        C is not a matrix of finite numbers, does not determine the running counts, or the noise is too large or too small.

    Examples
    --------
    >>> from temporaldp import Adversary, ApproximateDP, GaussianNoise, LaplaceNoise, TransitionMatrix, temporal_leakage
    >>> adversary = Adversary.from_forward(TransitionMatrix([[0.9, 0.1], [0.2, 0.8]]))
    >>> pure = MatrixMechanism.tree(12, LaplaceNoise(40.0, sensitivity=1.0, coordinates=2))
    >>> series = temporal_leakage(adversary, pure)
    >>> series.epsilons[6].round(3).item(), series.temporal[6].round(3).item()
    (0.2, 1.029)

    >>> tree = MatrixMechanism.tree(12, GaussianNoise(1.0, sensitivity=math.sqrt(2.0))).calibrated(0.894, delta=1e-3)
    >>> series = temporal_leakage(adversary, tree, accounting=ApproximateDP(delta=1e-3))
    >>> series.epsilons[6].round(3).item(), series.temporal[6].round(2).item()
    (0.894, 4.52)
    """

    matrix: FloatArray
    noise: LaplaceNoise | GaussianNoise

    def __post_init__(self) -> None:
        copy_in(self, "matrix")
        if self.matrix.ndim != 2 or not self.matrix.size or not np.isfinite(self.matrix).all():
            raise InputError(
                f"expected the matrix of MatrixMechanism to have shape (m, T) and finite entries, got shape {self.matrix.shape}"
            )
        entry, deviation = float(np.abs(self.matrix).max()), self.noise.standard_deviation
        if not all(
            1e-50 <= scale <= 1e50 for scale in (entry, deviation)
        ):  # beyond, squares leave the range of doubles
            raise InputError(
                "expected the largest entry of the matrix and the noise's standard deviation from 1e-50 to 1e+50, got "
                f"{entry:g} and {deviation:g}; rescale both by one factor"
            )
        if np.linalg.matrix_rank(self.matrix) < self.matrix.shape[1]:
            raise InputError(
                "expected a matrix of full column rank, so that the running counts follow from C x; got rank "
                f"{np.linalg.matrix_rank(self.matrix)} for {self.matrix.shape[1]} steps"
            )

    def __repr__(self) -> str:
        return f"MatrixMechanism({self.matrix.shape[0]} x {self.matrix.shape[1]}, {self.noise!r})"

    @classmethod
    def independent(cls, n_steps: int, noise: LaplaceNoise | GaussianNoise) -> MatrixMechanism:
        """Return the mechanism that adds independent noise to the histogram of every step."""
        return cls.banded(n_steps, [1.0], noise)

    @classmethod
    def tree(cls, n_steps: int, noise: LaplaceNoise | GaussianNoise) -> MatrixMechanism:
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
        return cls(np.array(blocks, dtype=np.float64), noise)

    @classmethod
    def banded(
        cls, n_steps: int, coefficients: ArrayLike | Iterable[float], noise: LaplaceNoise | GaussianNoise
    ) -> MatrixMechanism:
        """A lower triangular Toeplitz matrix.

        Parameters
        ----------
        n_steps : int
            T.
        coefficients : array_like, shape (b,)
            Of the diagonal, which is not 0, and of the b - 1 diagonals below it.
        noise : LaplaceNoise or GaussianNoise
        """
        from scipy.linalg import toeplitz

        T, given = whole_number(n_steps, "n_steps", least=1), np.asarray(coefficients, dtype=np.float64)
        if given.ndim != 1 or not 1 <= given.size <= T or given[0] == 0.0:
            raise InputError(
                f"expected from 1 to {T} coefficients, the first of them not 0, got an array of shape {given.shape}"
            )
        return cls(toeplitz(np.pad(given, (0, T - given.size)), np.zeros(T)), noise)

    @property
    def n_steps(self) -> int:
        """Number of steps T."""
        return int(self.matrix.shape[1])

    @property
    def _columns(self) -> FloatArray:
        """How much C amplifies a change of each step, in the norm that the noise is about: shape (T,)."""
        return np.asarray(
            np.linalg.norm(self.matrix, ord=self.noise.norm, axis=0) * (1.0 + 8.0 * len(self.matrix) * ULP)
        )

    @property
    def running_count_error(self) -> FloatArray:
        """Standard deviation of each running count, shape (T,), in counts, by the best linear estimator from all outputs."""
        return self._error_of(np.tril(np.ones((self.n_steps, self.n_steps))))

    @property
    def count_error(self) -> FloatArray:
        """Standard deviation of the count of each step, shape (T,), by the best linear estimator from all outputs."""
        return self._error_of(np.eye(self.n_steps))

    def _error_of(self, workload: FloatArray) -> FloatArray:
        return np.asarray(
            self.noise.standard_deviation * np.linalg.norm(workload @ np.linalg.pinv(self.matrix), axis=1)
        )

    def calibrated(self, epsilon: float, *, delta: float = 0.0) -> MatrixMechanism:
        """Return a mechanism with this matrix and the least noise that is (epsilon, delta)-DP at event level.

        Raises
        ------
        InputError
            No noise of this kind is.
        """
        positive(epsilon, "epsilon")
        real_number(delta, "delta", ge=0.0, lt=1.0)
        return replace(self, noise=self.noise.calibrated(epsilon, delta, amplified=float(self._columns.max())))

    def event_epsilons(self, n_steps: int) -> FloatArray:
        """Pure epsilon of the step's noise times the L1 norm of each column of C, shape (T,); inf for Gaussian noise."""
        return self.noise.pure_epsilon * self._columns

    def event_level(self, n_steps: int, delta: float) -> FloatArray:
        """Epsilon of all outputs at a delta when one state at one step is replaced, for each step, shape (T,).

        Of Laplace noise the pure epsilon, which holds at every delta.
        """
        if math.isfinite(self.noise.pure_epsilon):
            return self.event_epsilons(n_steps)
        norms, place = np.unique(self._columns, return_inverse=True)
        each = [replace(self.noise, sensitivity=self.noise.sensitivity * norm) for norm in norms.tolist()]
        return np.array([epsilon_of_one(one, delta=delta) for one in each])[place]

    def leakage(self, user: Adversary, n_steps: int, accounting: Accounting[Any, Any]) -> Leakage:
        """Leakage of Gaussian noise of every step at a delta by couplings of paths: an upper bound.

        For independent noise, the bound by privacy curves (`ApproximateDP`) if it is smaller at the worst step.

        Raises
        ------
        InputError
            The noise has pure event-level epsilons, or the matrices are not known exactly.
        """
        if math.isfinite(self.noise.pure_epsilon):
            return super(MatrixMechanism, self).leakage(user, n_steps, accounting)
        if user.is_uncertain:
            raise InputError(
                "expected matrices that are known exactly for Gaussian noise that is shared between steps, got an "
                "IntervalMatrix; use Laplace noise, whose event-level epsilons hold for every matrix"
            )
        delta = accounting.delta
        sigma = self.noise.standard_deviation * math.sqrt(2.0) / self.noise.sensitivity
        found = coupling_leakage(user, self.matrix, sigma, delta)
        diagonal = np.diag(self.matrix)
        if not (np.array_equal(self.matrix, np.diag(diagonal)) and np.isfinite(found.temporal).all()):
            return found
        releases = [
            replace(self.noise, sensitivity=self.noise.sensitivity * entry) for entry in np.abs(diagonal).tolist()
        ]
        series = temporal_leakage(user, releases, accounting=ApproximateDP(delta))
        by_curves = Leakage(series.backward, series.forward, series.temporal, series.evidence)
        return min(found, by_curves, key=lambda one: one.temporal.max())
