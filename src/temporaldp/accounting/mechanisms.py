"""Mechanisms as privacy profiles: the delta for every epsilon, under replacement of one person's value.

A profile is the largest hockey-stick divergence between the outputs for any two values, both ways round; it says as much as a
dominating pair of distributions, or a privacy loss distribution (Zhu, Dong, Wang, AISTATS 2022). Exact to rounding; `bounds`
gives both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.grid import ROUNDED, ULP
from temporaldp.correlation.transition import ROW_SUM_TOLERANCE
from temporaldp.errors import InputError, StateError
from temporaldp.values import compared_by_value, whole_number

FloatArray = NDArray[np.float64]


LARGEST_EPSILON = 1e6
"""Nats. Beyond, nobody asks."""


class Mechanism(Protocol):
    """What accounting asks of the mechanism of one release."""

    @property
    def coordinates(self) -> int:
        """How many independent outputs of this kind one release has."""

    @property
    def pure_epsilon(self) -> float:
        """The epsilon of the release with delta = 0, in nats; inf if there is none."""

    @property
    def limit(self) -> float:
        """The delta that no epsilon goes below, of one coordinate; rounded up."""

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta of one coordinate at each epsilon >= 0, from below and from above."""


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Gaussian noise on a number or a vector.

    Parameters
    ----------
    standard_deviation : float, > 0
        Of each coordinate's noise.
    sensitivity : float, > 0
        The most that replacing one person's value moves the result, in L2 norm: sqrt(2) for a histogram, in which one count
        falls by 1 and another rises by 1. It has no default, because most tables of sensitivities are about adding or removing
        a person.

    Notes
    -----
    ``delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu)``, mu = sensitivity /
    standard_deviation (Balle and Wang, ICML 2018, Theorem 8). The same whatever the dimension, and tight.

    Examples
    --------
    >>> noise = GaussianNoise(10.0, sensitivity=1.0)
    >>> round(epsilon_of_one(noise, delta=1e-6), 3)
    0.397
    """

    standard_deviation: float
    sensitivity: float

    def __post_init__(self) -> None:
        require_positive(self, "standard_deviation", "sensitivity")

    @property
    def coordinates(self) -> int:
        """1: several coordinates are one with their L2 distance."""
        return 1

    @property
    def pure_epsilon(self) -> float:
        """There is none."""
        return math.inf

    @property
    def limit(self) -> float:
        """Delta falls to 0."""
        return 0.0

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon, by Mills ratios R: ``phi(x) (R(x) - R(x + mu))`` with ``x = epsilon / mu - mu / 2``."""
        from scipy.special import erfcx

        mu = self.sensitivity / self.standard_deviation
        near = losses / mu - 0.5 * mu
        # erfcx overflows far on the left, where delta is 1 but for less than e^-200.
        left = near < -20.0
        at = np.where(left, 0.0, near)
        density = np.exp(-0.5 * at * at) * (1.0 + at * at * 4.0 * ULP)
        first, second = (0.5 * erfcx(x / math.sqrt(2.0)) for x in (at, at + mu))
        slack = ROUNDED * (1.0 + at * at) * (1.0 + mu)
        up = density * (first * (1.0 + slack) - second * (1.0 - slack))
        low = density * (first * (1.0 - slack) - second * (1.0 + slack))
        return probabilities_of(np.where(left, 1.0 - ROUNDED, low)), probabilities_of(np.where(left, 1.0, up))


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Laplace noise on one number.

    Parameters
    ----------
    scale : float, > 0
        b, the mean absolute noise.
    sensitivity : float, > 0
        The most that replacing one person's value moves each of `coordinates` numbers.
    coordinates : int
        How many numbers move. A histogram: sensitivity 1 in 2 coordinates.

    Notes
    -----
    ``delta(epsilon) = 1 - exp((epsilon - sensitivity / scale) / 2)``.
    """

    scale: float
    sensitivity: float
    coordinates: int = 1

    def __post_init__(self) -> None:
        require_positive(self, "scale", "sensitivity")
        whole_number(self.coordinates, "coordinates", least=1)

    @property
    def pure_epsilon(self) -> float:
        """Coordinates times sensitivity / scale, rounded up."""
        return self.coordinates * (self.sensitivity / self.scale) * (1.0 + ROUNDED)

    @property
    def limit(self) -> float:
        """Delta is 0 from the pure epsilon on."""
        return 0.0

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon."""
        own = self.sensitivity / self.scale
        gap = own - losses
        return _sides(-np.expm1(-0.5 * np.maximum(gap, 0.0)), gap, own)


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """Everybody reports the true value or, with equal chances, one of the others.

    Parameters
    ----------
    epsilon : float, > 0
        The true value is e^epsilon times as likely as each other one.
    n_values : int
        How many values there are, at least 2.
    """

    epsilon: float
    n_values: int = 2

    def __post_init__(self) -> None:
        require_positive(self, "epsilon")
        whole_number(self.n_values, "n_values", least=2)

    @property
    def coordinates(self) -> int:
        """One answer."""
        return 1

    @property
    def pure_epsilon(self) -> float:
        """Epsilon."""
        return self.epsilon

    @property
    def limit(self) -> float:
        """Delta is 0 from epsilon on."""
        return 0.0

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon."""
        true = 1.0 / (1.0 + (self.n_values - 1) * math.exp(-self.epsilon))
        gap = self.epsilon - losses
        return _sides(true * -np.expm1(-np.maximum(gap, 0.0)), gap, self.epsilon)


@dataclass(frozen=True, slots=True)
class PrivacyGuarantee:
    """Any mechanism of which only a guarantee is known: (epsilon, delta)-differential privacy under replacement.

    Parameters
    ----------
    epsilon : float, >= 0
        In nats.
    delta : float, from 0 to 1

    Notes
    -----
    Dominated by the mechanism that reveals everything with probability delta and else answers by randomised response (Kairouz,
    Oh, Viswanath, ICML 2015).
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        numbers = all(isinstance(value, int | float | np.number) for value in (self.epsilon, self.delta))
        if not (numbers and 0.0 <= self.epsilon < math.inf and 0.0 <= self.delta < 1.0):
            raise InputError(
                f"expected epsilon >= 0 and delta from 0 to below 1, got epsilon={self.epsilon!r}, delta={self.delta!r}"
            )

    @property
    def coordinates(self) -> int:
        """One release."""
        return 1

    @property
    def pure_epsilon(self) -> float:
        """Epsilon, if delta is 0."""
        return self.epsilon if self.delta == 0.0 else math.inf

    @property
    def limit(self) -> float:
        """Delta."""
        return self.delta

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The delta at each epsilon."""
        gap = self.epsilon - losses
        rest = 1.0 - self.delta
        low, up = _sides(rest * -np.expm1(-np.maximum(gap, 0.0)) / (1.0 + math.exp(-self.epsilon)), gap, self.epsilon)
        above = np.where(up > 0.0, (self.delta + up) * (1.0 + ROUNDED), self.delta)  # from epsilon on, delta itself
        return probabilities_of((self.delta + low) * (1.0 - ROUNDED)), probabilities_of(above)


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class OutputTable:
    """Any mechanism with finitely many outputs, by its table of probabilities.

    Parameters
    ----------
    probabilities : array_like, shape (n, m)
        Row x: the probability of each output if the value is x. Rows sum to 1.

    Notes
    -----
    The profile is the largest over all ordered pairs of rows.
    """

    probabilities: FloatArray

    def __post_init__(self) -> None:
        table = _checked_table(self.probabilities)
        table.flags.writeable = False
        object.__setattr__(self, "probabilities", table)

    @property
    def coordinates(self) -> int:
        """One output."""
        return 1

    @property
    def pure_epsilon(self) -> float:
        """The largest log ratio of two probabilities of one output."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.probabilities[:, self.probabilities.any(axis=0)])
        spread = np.where(np.isneginf(logs.min(axis=0)), np.inf, logs.max(axis=0) - logs.min(axis=0))
        finite = np.abs(logs[np.isfinite(logs)]).max(initial=0.0)
        return float(spread.max() * (1.0 + ROUNDED) + ROUNDED * finite)

    @property
    def limit(self) -> float:
        """The largest probability, for one value, of outputs that are impossible for another."""
        return float(max(row[other == 0.0].sum() for row in self.probabilities for other in self.probabilities))

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon."""
        ratio = np.exp(np.minimum(losses, 700.0))[:, None]
        low, up = np.zeros(losses.size), np.zeros(losses.size)
        for row in self.probabilities:
            for other in self.probabilities:
                if row is other:
                    continue
                over = row * (1.0 + ROUNDED) - ratio * (other * (1.0 - ROUNDED))
                under = row * (1.0 - ROUNDED) - ratio * (other * (1.0 + ROUNDED))
                np.maximum(up, np.maximum(over, 0.0).sum(axis=1), out=up)
                np.maximum(low, np.maximum(under, 0.0).sum(axis=1), out=low)
        return probabilities_of(low), probabilities_of(up)


def epsilon_of_one(mechanism: Mechanism, *, delta: float) -> float:
    """The epsilon of one coordinate of a release at a delta, by halving; an upper bound within 1e-6 of it."""
    if mechanism.limit > delta:
        return math.inf
    low, high = 0.0, 1.0
    if holds_at(mechanism, 0.0, delta):
        return 0.0

    while not holds_at(mechanism, high, delta):
        low, high = high, 2.0 * high
        if high > LARGEST_EPSILON:
            return math.inf
    while high - low > 1e-6 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds_at(mechanism, middle, delta) else (middle, high)
        if high < 1e-12:
            break
    return float(high)


def holds_at(mechanism: Mechanism, epsilon: float, delta: float) -> bool:
    """Whether one coordinate is (epsilon, delta)-differentially private."""
    return bool(mechanism.bounds(np.array([epsilon]))[1][0] <= delta)


def _sides(delta: FloatArray, gap: FloatArray, own: float) -> tuple[FloatArray, FloatArray]:
    """Both sides of a delta whose argument `gap` is a difference of numbers up to `own`, and so has an absolute error."""
    error = ROUNDED * np.where(gap > -ROUNDED * own, delta + own, 0.0)
    return probabilities_of(delta - error), probabilities_of(delta + error)


def probabilities_of(values: FloatArray) -> FloatArray:
    """The values, none below 0 or above 1."""
    return np.asarray(np.clip(values, 0.0, 1.0))


def require_positive(mechanism: Any, *names: str) -> None:
    """Refuse fields that are no finite numbers > 0."""
    for name in names:
        value = getattr(mechanism, name)
        if not (isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value) and value > 0.0):
            raise InputError(f"expected {name} of {type(mechanism).__name__} to be a finite number > 0, got {value!r}")


def require_whole(mechanism: Any, name: str) -> None:
    """Refuse a field that is no whole number."""
    value = getattr(mechanism, name)
    if int(value) != value:
        raise InputError(f"expected {name} of {type(mechanism).__name__} to be a whole number, got {value!r}")


def _checked_table(probabilities: ArrayLike) -> FloatArray:
    try:
        table = np.array(probabilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("expected a table of probabilities, one row per value and one column per output") from None
    if table.ndim != 2 or table.shape[0] < 2:
        raise InputError(f"expected a table of shape (n, m) with n >= 2 values, got shape {table.shape}")
    if not ((table >= 0.0).all() and np.allclose(table.sum(axis=1), 1.0, rtol=0.0, atol=ROW_SUM_TOLERANCE)):
        bad = int(np.argmax(np.abs(table.sum(axis=1) - 1.0)))
        raise InputError(f"expected probabilities >= 0 and rows that sum to 1, row {bad} sums to {table[bad].sum():g}")
    return table


def require_values(releases: Iterable[Iterable[Mechanism]], n_states: int | None) -> None:
    """A table of outputs has a row for every value that the adversary tells apart.

    Raises
    ------
    StateError
        It has more or fewer.
    """
    for mechanism in {id(one): one for release in releases for one in release}.values():
        if isinstance(mechanism, OutputTable) and n_states is not None and len(mechanism.probabilities) != n_states:
            raise StateError(
                f"the table of outputs has {len(mechanism.probabilities)} rows, one per value, but the correlation has "
                f"{n_states} states"
            )
