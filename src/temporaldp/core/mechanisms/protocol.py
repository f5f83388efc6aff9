"""The mechanism protocol: a privacy profile, the delta of every epsilon, when one person's state is replaced.

A profile is the largest hockey-stick divergence between the outputs for any two states, in both orders; it is equivalent to a
dominating pair of distributions, and to a privacy loss distribution (Zhu, Dong, Wang, AISTATS 2022). Exact to rounding;
`bounds` gives both sides. What another program defines is checked once, by `checked_mechanism`, because a curve that is too
low would be taken for the truth.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import ULP, FloatArray, assign, real_number, whole_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from temporaldp.core.mechanisms.added_noise import AddedNoise
    from temporaldp.core.mechanisms.events import LossDistribution
    from temporaldp.core.mechanisms.output_table import OutputTable

ROUNDED = 16.0 * ULP
"""Relative error of a handful of operations on doubles."""

ROUNDED_UP = 1.0 + 8.0 * ULP
"""Factor. More than a few rounded operations can lose."""

INACCURACY = 1e-11
"""By how much a profile of another program may rise, and its lower bound at the pure epsilon exceed 0: rounding of its sums."""


LARGEST_LOG = 700.0
"""In nats: e^epsilon is a double."""


class Mechanism(Protocol):
    """Protocol of the mechanism of one release; a subclass defines what differs."""

    __slots__ = ()

    @property
    def coordinates(self) -> int:
        """Number of independent outputs of this kind in one release; 1 by default."""
        return 1

    @property
    def pure_epsilon(self) -> float:
        """The epsilon of the release with delta = 0, in nats; inf if there is none, the default."""
        return math.inf

    @property
    def limit(self) -> float:
        """Infimum of delta over all epsilons, of one coordinate, rounded up; 0 by default."""
        return 0.0

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta of one coordinate at each epsilon >= 0, from below and from above.

        Both sides fall, and the true delta lies between them. The upper one comes within a billionth of the accounting's delta
        of `limit`; elsewhere an error raises the result, hardly where it is below a thousandth of that delta. One that is not
        of this package is called with increasing epsilons up to its `pure_epsilon`, and at most 700.
        """

    @staticmethod
    def from_outputs(probabilities: ArrayLike) -> OutputTable:
        """The mechanism with finitely many outputs whose probabilities are given, shape (n, m): a row for each state.

        Examples
        --------
        >>> Mechanism.from_outputs([[0.75, 0.25], [0.25, 0.75]]).pure_epsilon.__round__(4)
        1.0986
        """
        from temporaldp.core.mechanisms.output_table import OutputTable

        return OutputTable(probabilities)  # type: ignore[arg-type]

    @staticmethod
    def from_density(noise: Any, *, sensitivity: float, pure_epsilon: float = math.inf) -> AddedNoise:
        """The mechanism that adds continuous noise of a known distribution to one number.

        Parameters
        ----------
        noise : frozen distribution of scipy.stats, or another object with `logpdf`, `cdf`, `sf`, `ppf` and `isf` of arrays
            With a density that rises to one mode and falls after it.
        sensitivity : float, > 0
            Largest change of the number when one person's state is replaced.
        pure_epsilon : float
            Largest privacy loss, in nats, where it is known; it is compared with the density. inf claims nothing.

        Raises
        ------
        InputError
            The distribution has no such functions, or they contradict each other or the pure epsilon.

        Examples
        --------
        >>> from scipy import stats
        >>> noise = Mechanism.from_density(stats.logistic(scale=10.0), sensitivity=1.0, pure_epsilon=0.1)
        >>> noise.pure_epsilon
        0.1
        """
        from temporaldp.core.mechanisms.added_noise import AddedNoise

        return AddedNoise(noise, sensitivity, pure_epsilon)

    @staticmethod
    def from_loss_distribution(distribution: Any, *, neighboring_relation: Any) -> LossDistribution:
        """The mechanism of a privacy loss distribution of dp-accounting; see `LossDistribution`."""
        from temporaldp.core.mechanisms.events import LossDistribution

        return LossDistribution.checked(distribution, neighboring_relation)


Mechanisms: TypeAlias = tuple[Mechanism, ...]
"""Those of one step. Given the data, their outputs are independent of each other."""


def epsilon_of_one(mechanism: Mechanism, *, delta: float) -> float:
    """Epsilon of one coordinate of a release at a delta, by bisection; an upper bound within 1e-6."""
    if mechanism.limit > delta:
        return math.inf
    low, high = 0.0, 1.0
    if holds_at(mechanism, 0.0, delta):
        return 0.0

    while not holds_at(mechanism, high, delta):
        low, high = high, 2.0 * high
        # Nats. Larger losses are not evaluated.
        if high > 1e6:
            return math.inf
    while high - low > 1e-6 * high and high >= 1e-12:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds_at(mechanism, middle, delta) else (middle, high)
    return float(high)


def holds_at(mechanism: Mechanism, epsilon: float, delta: float) -> bool:
    """Whether one coordinate is (epsilon, delta)-differentially private."""
    return bool(bounds_of(mechanism, np.array([epsilon]))[1][0] <= delta)


def bounds_of(mechanism: Mechanism, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`Mechanism.bounds` at increasing epsilons, without calling another program's beyond its range.

    From the pure epsilon on, delta is at most its limit; beyond `LARGEST_LOG`, at most what it is there.
    """
    pure = mechanism.pure_epsilon
    reach = min(pure, LARGEST_LOG)
    if is_ours(mechanism) or losses[-1] < reach:
        return mechanism.bounds(losses)
    inside = losses[losses < reach]
    low, high = (np.asarray(side, dtype=np.float64) for side in mechanism.bounds(np.append(inside, reach)))
    beyond = np.zeros(losses.size - inside.size)
    return np.append(low[:-1], beyond), np.append(high[:-1], beyond + (mechanism.limit if pure == reach else high[-1]))


def is_ours(one: object) -> bool:
    """Whether the class is one of this package."""
    return type(one).__module__.partition(".")[0] == __name__.partition(".")[0]


def checked_mechanism(mechanism: Any) -> Mechanism:
    """A mechanism, after its parts were compared with each other unless it is one of this package; `InputError` otherwise."""
    name = type(mechanism).__name__
    try:
        hash(mechanism)
    except TypeError:
        raise InputError(
            f"expected a mechanism that is hashable, because equal ones are computed once, got one of the class {name!r} that "
            "is not; write @dataclass(frozen=True) above the class, with fields that are numbers, texts or tuples"
        ) from None
    if not is_ours(mechanism):
        checked_profile(mechanism)
    return mechanism  # type: ignore[no-any-return]


@lru_cache(maxsize=1024)
def checked_profile(mechanism: Mechanism) -> None:
    """Raise `InputError` unless coordinates, pure epsilon and both sides of the profile are possible together."""
    name = type(mechanism).__name__
    whole_number(mechanism.coordinates, f"coordinates of {name}", least=1)
    pure = mechanism.pure_epsilon
    if not (isinstance(pure, int | float | np.number) and pure >= 0.0):
        raise InputError(f"expected pure_epsilon of {name} to be a number >= 0, or inf, got {pure!r}")
    real_number(mechanism.limit, f"limit of {name}", ge=0.0, le=1.0)
    reach = min(float(pure), LARGEST_LOG)
    alone = reach / mechanism.coordinates  # the pure epsilon of one coordinate, if the sum of all is right
    # Epsilons of every size at which a profile is looked at
    losses = np.unique(np.concatenate((np.linspace(0.0, reach, 257), reach * np.geomspace(1e-9, 1.0, 128), [alone])))
    sides = tuple(np.asarray(side, dtype=np.float64) for side in mechanism.bounds(losses))
    if len(sides) != 2 or any(side.shape != losses.shape for side in sides):
        raise InputError(
            f"expected bounds of {name} to return two arrays, delta from below and from above, each with a number for each of "
            f"the {losses.size} epsilons, got shapes {', '.join(str(side.shape) for side in sides)}"
        )
    low, high = sides
    if not ((high >= 0.0) & (high <= 1.0) & (low <= high)).all():
        raise InputError(
            f"expected a profile of {name} between 0 and 1, the first side below the second, got other numbers"
        )
    for side in sides:
        rises = np.flatnonzero(side[1:] > np.minimum.accumulate(side)[:-1] + INACCURACY)
        if rises.size:
            at = losses[int(rises[0]) + 1]
            raise InputError(
                f"expected a delta of {name} that falls as epsilon grows, but bounds returns a larger one at epsilon = {at:g} "
                "than before it"
            )
    # Largest upper bound of delta at the pure epsilon, where delta is 0
    at = int(np.searchsorted(losses, alone))
    if pure <= reach and (low[at] > INACCURACY or high[at] > 1e-6):
        each = "" if mechanism.coordinates == 1 else f" divided by its {mechanism.coordinates} coordinates"
        raise InputError(
            f"expected a delta of 0 at the pure_epsilon of {name}, {pure:g}{each}, but bounds returns at least {low[at]:g}, "
            f"and at most {high[at]:g}, there: a pure_epsilon that is too small would report too little leakage. Correct it; "
            "inf claims nothing"
        )
    # A profile is convex in e^epsilon; a share of the chord between the neighbours of each epsilon
    share = (
        np.exp(losses[1:-1] - losses[2:]) * np.expm1(losses[:-2] - losses[1:-1]) / np.expm1(losses[:-2] - losses[2:])
    )
    above = np.flatnonzero(low[1:-1] > 1.01 * ((1.0 - share) * high[:-2] + share * high[2:]) + INACCURACY)
    if above.size:
        raise InputError(
            f"expected a delta of {name} that is convex in e^epsilon, as that of every mechanism, but bounds returns at least "
            f"{low[int(above[0]) + 1]:g} at epsilon = {losses[int(above[0]) + 1]:g}, and at most {high[int(above[0]) + 2]:g} "
            "soon after it: one of them is wrong. A lower bound of 0 claims nothing"
        )


def probabilities_of(values: FloatArray) -> FloatArray:
    """The values clipped to [0, 1]."""
    return np.asarray(np.clip(values, 0.0, 1.0))


def both_sides(delta: FloatArray, gap: FloatArray, own: float) -> tuple[FloatArray, FloatArray]:
    """Both sides of a delta whose argument `gap` is a difference of numbers up to `own`, and so has an absolute error."""
    error = ROUNDED * np.where(gap > -ROUNDED * own, delta + own, 0.0)
    return probabilities_of(delta - error), probabilities_of(delta + error)


def require_positive(mechanism: Any, *names: str) -> None:
    """Raise an error for fields that are not finite numbers > 0; those of NumPy, which can be short, become Python's."""
    for name in names:
        value = getattr(mechanism, name)
        is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not (is_number and math.isfinite(value) and value > 0.0):
            raise InputError(f"expected {name} of {type(mechanism).__name__} to be a finite number > 0, got {value!r}")
        if isinstance(value, np.generic):
            assign(mechanism, **{name: int(value) if isinstance(value, np.integer) else float(value)})
