"""Matrix mechanisms of least error at a given temporal leakage."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from temporaldp.accounting.curve.method import ApproximateDP
from temporaldp.accounting.monotone_search import largest_in_few_tries
from temporaldp.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.correlated_noise.coupling import START, Couplings, StepCouplings, checked_delta
from temporaldp.correlated_noise.matrix_mechanism import MatrixMechanism
from temporaldp.correlation import Adversary
from temporaldp.errors import InputError
from temporaldp.progress import part, progressed
from temporaldp.values import FloatArray, positive, whole_number

Objective: TypeAlias = Literal["running count", "count"]

MOST_COEFFICIENTS = 8
"""Of a planned Toeplitz matrix. If doubled: searches take four times as long, for a few percent less error."""

EVALUATIONS = 150
"""Matrices that a search looks at. If doubled: less than one percent less error, in twice the time."""

SEARCHED_STEPS = 3
"""Steps with the largest leakage that a search looks at; the noise is calibrated at all steps afterwards."""

MARGIN = 1.0 + 1e-7
"""Times the noise that satisfies a level, so that leakage, which is rounded up, does so too."""

CALIBRATION = 1e-4
"""Relative distance within which the noise of independent releases is the least."""

LESS_NOISE = 16.0
"""Times as little noise as couplings need is tried for independent releases, at most."""

ERRORS: dict[Objective, Callable[[MatrixMechanism], FloatArray]] = {
    "running count": lambda mechanism: mechanism.running_count_error,
    "count": lambda mechanism: mechanism.count_error,
}
"""Standard deviations of what each objective is about, step by step."""


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """A matrix mechanism whose temporal leakage is at most alpha at a delta, and other mechanisms at the same level.

    Parameters
    ----------
    mechanism : MatrixMechanism
        The one with the least error among lower triangular Toeplitz matrices that were searched.
    leakage : LeakageSeries
        Its leakage; ``leakage.worst`` is at most alpha.
    alternatives : dict of str to MatrixMechanism
        Independent noise, the binary tree and the square root, each with the least noise that satisfies alpha.
    objective : {"running count", "count"}
    alpha, delta : float
    """

    mechanism: MatrixMechanism
    leakage: LeakageSeries
    alternatives: dict[str, MatrixMechanism]
    objective: Objective
    alpha: float
    delta: float

    @property
    def errors(self) -> dict[str, float]:
        """Root mean square error of the objective over all steps by each mechanism, in counts; "planned" is `mechanism`."""
        return {
            name: _error(mechanism, self.objective)
            for name, mechanism in {"planned": self.mechanism, **self.alternatives}.items()
        }

    def __repr__(self) -> str:
        errors = ", ".join(f"{name} {error:.4g}" for name, error in self.errors.items())
        return (
            f"MatrixPlan({self.leakage.worst:.4g} nats at delta {self.delta:g}; error of a {self.objective}: {errors})"
        )


def plan_matrix(
    adversary: Adversary, alpha: float, delta: float, horizon: int, objective: Objective = "running count"
) -> MatrixPlan:
    """Plan the Toeplitz matrix mechanism of least error whose temporal leakage is at most alpha at every step.

    The search covers up to 8 coefficients and starts from independent noise and from the square root. Leakage is bounded by
    couplings (Theory, section 23); that of independent noise by the smaller of that bound and privacy curves. The result
    always satisfies alpha; it need not be optimal.

    Parameters
    ----------
    adversary : Adversary
        With exactly known matrices.
    alpha : float, > 0
        Largest temporal leakage of any step, in nats.
    delta : float
    horizon : int
        Number of steps T.
    objective : {"running count", "count"}
        Quantity whose error is minimised: running counts, or the count of each step.

    Returns
    -------
    MatrixPlan

    Raises
    ------
    InputError
        An argument is not admissible, or no noise satisfies alpha at this delta.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> adversary = Adversary.from_forward(TransitionMatrix([[0.9, 0.1], [0.2, 0.8]]))
    >>> plan = plan_matrix(adversary, alpha=1.0, delta=1e-3, horizon=8)
    >>> plan.leakage.worst <= 1.0, plan.errors["planned"] <= min(plan.errors.values())
    (True, True)
    """
    positive(alpha, "alpha")
    T = whole_number(horizon, "horizon", least=1)
    if objective not in ERRORS:
        raise InputError(f"expected the objective {' or '.join(map(repr, ERRORS))}, got {objective!r}")
    user = adversary.over(T)
    couplings = Couplings(user, T)
    level = _Level(couplings, alpha, checked_delta(delta))

    independent = _independent(user, level.calibrated(MatrixMechanism.independent(T, 1.0)), alpha, delta)
    alternatives = {
        "independent": independent,
        "tree": level.calibrated(MatrixMechanism.tree(T, 1.0)),
        "square root": level.calibrated(MatrixMechanism.square_root(T, 1.0)),
    }
    found = [independent]
    for k, start in enumerate(
        (np.zeros(MOST_COEFFICIENTS - 1), alternatives["square root"].matrix[1:MOST_COEFFICIENTS, 0])
    ):
        with part(k / 2, (k + 1) / 2, "search of coefficients"):
            found.append(
                level.calibrated(_searched(level, T, np.resize(start, min(MOST_COEFFICIENTS, T) - 1), objective))
            )
    if T <= MOST_COEFFICIENTS:
        found.append(alternatives["square root"])
    best = min(found, key=lambda one: _error(one, objective))
    leakage = temporal_leakage(user, best, accounting=ApproximateDP(delta))
    while leakage.worst > alpha:  # the search over quilts took another path
        best = replace(best, sigma=best.sigma * MARGIN)
        leakage = temporal_leakage(user, best, accounting=ApproximateDP(delta))
    return MatrixPlan(best, leakage, alternatives, objective, alpha, delta)


@dataclass(frozen=True, slots=True)
class _Level:
    """A level alpha at a delta for one user."""

    couplings: Couplings
    alpha: float
    delta: float

    def sigmas(
        self, strategy: FloatArray, steps: Sequence[int], starts: dict[int, tuple[int, int]] | None = None
    ) -> FloatArray:
        """The standard deviation of the noise that satisfies the level at each of some steps.

        `starts` has the quilts from which the search at a step starts, and keeps those that show its answer.
        """
        found, best, known = [], START, {} if starts is None else starts
        for step in steps:
            about = StepCouplings(self.couplings, strategy, step, "temporal")
            each, best = about.least(lambda mixture: mixture.sigma(self.alpha, self.delta), known.get(step, best))
            known[step] = best
            found.append(float(each.max()))
        return np.array(found)

    def calibrated(self, mechanism: MatrixMechanism) -> MatrixMechanism:
        """The mechanism with the least noise that satisfies the level at every step."""
        sigma = self.sigmas(mechanism.matrix, range(mechanism.n_steps)).max()
        if not math.isfinite(sigma):
            raise InputError(
                f"expected alpha and delta that some noise satisfies, got alpha = {self.alpha:g}, delta = {self.delta:g}"
            )
        return replace(mechanism, sigma=float(sigma) * MARGIN)


def _searched(level: _Level, n_steps: int, start: FloatArray, objective: Objective) -> MatrixMechanism:
    """The Toeplitz matrix of least error that a search by simplices finds, for coefficients after a first one of 1."""
    from scipy.optimize import minimize

    def mechanism(coefficients: FloatArray) -> MatrixMechanism:
        return MatrixMechanism.banded(n_steps, [1.0, *coefficients], 1.0)

    sigmas = level.sigmas(mechanism(start).matrix, range(n_steps))
    steps = sorted(np.argsort(-sigmas, kind="stable")[:SEARCHED_STEPS].tolist())
    looked_at, starts = 0, dict[int, tuple[int, int]]()

    def error(coefficients: FloatArray) -> float:
        nonlocal looked_at
        looked_at += 1
        progressed("search of coefficients", min(looked_at / EVALUATIONS, 1.0))
        one = mechanism(coefficients)
        return _error(one, objective) * float(level.sigmas(one.matrix, steps, starts).max())

    if not start.size:
        return mechanism(start)
    simplex = np.vstack([start, start + 0.25 * np.eye(start.size)])
    options = {"maxfev": EVALUATIONS, "initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-4}
    return mechanism(minimize(error, start, method="Nelder-Mead", options=options).x)


def _independent(user: Adversary, by_couplings: MatrixMechanism, alpha: float, delta: float) -> MatrixMechanism:
    """Independent noise with the least standard deviation that satisfies alpha by couplings or by privacy curves."""

    def worst(precision: float) -> float:
        return temporal_leakage(user, replace(by_couplings, sigma=1.0 / precision), accounting=by_curves).worst

    by_curves, least = ApproximateDP(delta), 1.0 / by_couplings.sigma
    return replace(by_couplings, sigma=1.0 / largest_in_few_tries(worst, least, LESS_NOISE * least, alpha, CALIBRATION))


def _error(mechanism: MatrixMechanism, objective: Objective) -> float:
    """Root mean square error over all steps, in counts."""
    return float(np.sqrt(np.mean(ERRORS[objective](mechanism) ** 2)))
