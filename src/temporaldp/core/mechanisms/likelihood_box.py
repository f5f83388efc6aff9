"""Releases as boxes of likelihoods: an independent range for each state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.display import bound
from temporaldp.base.errors import BudgetError, InputError, StateError
from temporaldp.base.names import require_unnamed
from temporaldp.base.values import LARGEST, ROUNDOFF, FloatArray, assign, compared_by_value, read_only, real_number


@compared_by_value
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class LikelihoodBox:
    """A release whose likelihood, relative to a common factor, is between ``e^low[k]`` and ``e^high[k]`` for state k.

    The factors of states are independent, as with independent noise for each state: the exact leakage is then that of the
    release itself, not a worst case. Pure differential privacy with epsilon is ``low = 0,
    high = epsilon`` for every state.

    Parameters
    ----------
    low, high : array_like, shape (n,)
        In nats, up to a constant that is common to all; in the order of the correlation's states. ``max(low) <= min(high)``, so
        that an output may carry no information. The log ratio between states i and j is at most ``high[i] - low[j]``.

    Raises
    ------
    InputError
        The arrays differ in length, are not finite, or the intervals have no common point.

    Examples
    --------
    >>> scales = np.array([2.0, 4.0, np.inf])     # Laplace noise on each count of a histogram; the third is not published
    >>> box = LikelihoodBox(0.0 - 1.0 / scales, 1.0 / scales)
    >>> box.epsilon
    0.75
    """

    low: FloatArray
    high: FloatArray

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        for name, given in (("low", low), ("high", high)):
            require_unnamed(given, name)
            try:
                array = np.array(given, dtype=np.float64)
            except (TypeError, ValueError):
                raise InputError(f"expected {name} to be numbers, one per state, got {given!r}") from None
            if array.ndim != 1 or len(array) < 2 or not (np.abs(array) <= LARGEST).all():
                raise InputError(
                    f"expected {name} of shape (n,), finite numbers of nats, one per state and at least 2, got "
                    f"{np.array2string(array, threshold=6)}"
                )
            assign(self, **{name: read_only(array)})
        if self.low.shape != self.high.shape:
            raise InputError(f"expected low and high of one length, got {len(self.low)} and {len(self.high)}")
        if self.low.max() > self.high.min():
            k, m = int(np.argmax(self.low)), int(np.argmin(self.high))
            raise InputError(
                f"expected intervals with a common point, got low[{k}] = {self.low[k]:g} above high[{m}] = {self.high[m]:g}: "
                "an uninformative output must be possible; shift low and high of a state by the same amount"
            )

    @classmethod
    def add_or_remove(cls, epsilon: float, n_states: int, *, absent: int) -> LikelihoodBox:
        """Counts of all states but that of absent people, each epsilon-DP under adding or removing a person.

        One noisy count for each state but ``absent`` (its position), Laplace noise of scale 1 / epsilon. Absent against present
        costs epsilon, two present states 2 epsilon.
        """
        level = real_number(epsilon, "epsilon", ge=0.0, error=BudgetError)
        if not 0 <= absent < n_states:
            raise InputError(f"expected absent to be a position from 0 to {n_states - 1}, got {absent}")
        high = np.full(n_states, level)
        high[absent] = 0.0
        return cls(0.0 - high, high)

    @property
    def epsilon(self) -> float:
        """Largest log ratio between two different states: the epsilon of the release by itself, in nats."""
        apart = self.high[:, None] - self.low[None, :]
        np.fill_diagonal(apart, 0.0)
        return float(apart.max())

    def __repr__(self) -> str:
        return f"LikelihoodBox({len(self.low)} values, epsilon {bound(self.epsilon)})"


def intervals(releases: Sequence[Any], n_states: int | None) -> tuple[FloatArray, FloatArray] | None:
    """Arrays high and low of each step, shape (T, n) each, if some release is a box; None otherwise.

    A number is the box of pure differential privacy, None a step without a release.

    Raises
    ------
    BudgetError
        A release is neither a box nor a number.
    StateError
        A box has another number of states than the correlation has states.
    """
    given = [one for one in releases if isinstance(one, LikelihoodBox)]
    if not given:
        return None
    n = len(given[0].low) if n_states is None else n_states
    high, low = np.zeros((len(releases), n)), np.zeros((len(releases), n))
    for step, one in enumerate(releases):
        if isinstance(one, LikelihoodBox):
            if len(one.low) != n:
                raise StateError(
                    f"releases[{step}] is a box of {len(one.low)} values, and the correlation has {n} states"
                )
            high[step], low[step] = one.high, one.low
        elif isinstance(one, int | float | np.number) and not isinstance(one, bool) and 0.0 <= one <= LARGEST:
            high[step] = one
        elif one is not None:
            raise BudgetError(
                f"expected a LikelihoodBox, a number from 0 to {LARGEST:g} or None at each step, got {one!r} at step {step}"
            )
    return high, low


def widths(high: FloatArray, low: FloatArray) -> FloatArray:
    """The largest log ratio between two different states at each step, shape (T,), rounded up; arguments as of `intervals`."""
    apart = high[:, :, None] - low[:, None, :]
    every = np.arange(high.shape[1])
    apart[:, every, every] = 0.0
    return np.asarray(apart.max(axis=(1, 2))) * (1.0 + 4.0 * ROUNDOFF)
