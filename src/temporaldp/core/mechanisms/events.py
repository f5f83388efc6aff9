"""Events and privacy loss distributions of Google's dp-accounting: as pure-DP budgets of one step, and as mechanisms."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.extras import needing
from temporaldp.base.values import FloatArray
from temporaldp.core.mechanisms.guarantee import PrivacyGuarantee
from temporaldp.core.mechanisms.noise import GaussianNoise
from temporaldp.core.mechanisms.output_table import RandomizedResponse
from temporaldp.core.mechanisms.protocol import Mechanism, Mechanisms, checked_mechanism


def epsilon_of(event: Any) -> float:
    """Epsilon of one step with this event under replacement of one person's state, in nats; rounded up.

    The noise of an event is relative to the largest *contribution* of one person (the convention of dp-accounting, whose
    accountants refuse Laplace noise under replacement). Replacing a state removes one contribution and adds another, and so
    moves a result twice as far: Laplace 2 / noise_multiplier, discrete Laplace 2 x noise_parameter x sensitivity. A histogram
    of one state per person has contribution 1. Randomised response is defined by replacement: log(1 + k (1 - p) / p). Composed
    events are queries at the same step: their sum.

    Raises
    ------
    InputError
        The argument is not an event of dp-accounting, not epsilon-DP with delta = 0, or has invalid parameters.
    """
    if not type(event).__module__.startswith("dp_accounting."):
        raise InputError(f"expected an event of dp_accounting, such as LaplaceDpEvent(2.0), got {type(event).__name__}")
    with needing("dp-accounting"):
        from dp_accounting import dp_event as known

    match event:
        case known.NoOpDpEvent():
            return 0.0
        case known.LaplaceDpEvent(noise_multiplier=multiplier):
            epsilon = TWO_CONTRIBUTIONS / _positive(multiplier, event)
        case known.DiscreteLaplaceDpEvent(noise_parameter=parameter, sensitivity=sensitivity):
            epsilon = TWO_CONTRIBUTIONS * _positive(parameter, event) * _positive(sensitivity, event)
        case known.RandomizedResponseDpEvent(noise_parameter=share, num_buckets=buckets):
            if not (0.0 < share <= 1.0 and buckets >= 2):
                raise _meaningless(event)
            epsilon = math.log1p(buckets * (1.0 - share) / share)
        case known.ComposedDpEvent(events=events):
            epsilon = math.fsum(map(epsilon_of, events))
        case known.SelfComposedDpEvent(event=inner, count=count):
            if not (isinstance(count, int) and count >= 0):
                raise _meaningless(event)
            epsilon = count * epsilon_of(inner) if count else 0.0
        case _:
            raise InputError(
                f"expected an event with pure differential privacy (Laplace, discrete Laplace, randomised response, none, or a "
                f"composition of them), got {type(event).__name__}; use ApproximateDP(delta) for any other mechanism"
            )
    # More than a few rounded operations can lose
    return float(epsilon) * (1.0 + 8.0 * sys.float_info.epsilon)


def releases_of(mechanisms: Sequence[Any]) -> tuple[Mechanisms, ...]:
    """Return the releases of each step as mechanisms of this package."""
    if isinstance(mechanisms, str | bytes) or not isinstance(mechanisms, Sequence) or not len(mechanisms):
        got = "none" if isinstance(mechanisms, Sequence) and not len(mechanisms) else type(mechanisms).__name__
        raise InputError(
            f"expected a sequence of mechanisms, one per step and at least one, got {got}; for T equal steps write "
            "[mechanism] * T"
        )
    return tuple(release_of(mechanism) for mechanism in mechanisms)


def release_from(given: Any) -> Mechanisms:
    """Return the release of one step at a delta: as `release_of`, or any mechanism with a guarantee, by its epsilon."""
    if isinstance(given, int | float | np.number) and not isinstance(given, bool):
        return (PrivacyGuarantee(float(given)),) if given else ()
    return release_of(given)


def release_of(mechanism: Any) -> Mechanisms:
    """Return the release of one step: mechanisms, from none, one or several mechanisms or events.

    Gaussian events are relative to the largest contribution of one person; replacing a state moves the result by two of them
    (as in dp-accounting under the same relation). Laplace events count by their pure epsilon alone, which is all that they
    determine for vectors.
    """
    if mechanism is None:
        return ()
    if isinstance(mechanism, tuple | list):
        return tuple(one for part in mechanism for one in release_of(part))
    if isinstance(mechanism, type):
        raise InputError(f"expected a mechanism, got the class {mechanism.__name__} itself; make one with its noise")
    if all(hasattr(mechanism, name) for name in ("bounds", "coordinates", "limit", "pure_epsilon")):
        return (checked_mechanism(mechanism),)
    if not type(mechanism).__module__.startswith("dp_accounting."):
        raise InputError(
            "expected a mechanism (GaussianNoise, PrivacyGuarantee, ...), an event of dp_accounting, or None, got "
            f"{type(mechanism).__name__}"
        )
    if hasattr(mechanism, "get_delta_for_epsilon"):
        raise InputError(
            "a privacy loss distribution does not state its neighbouring relation, and one for adding or removing a "
            "contribution is too small here: make it for replacement (NeighborRel.REPLACE_ONE, or twice the sensitivity), and "
            "give temporaldp.adapters.loss_distribution(distribution, neighboring_relation='replace_one')"
        )
    return _of_event(mechanism)


def _of_event(mechanism: Any) -> Mechanisms:
    with needing("dp-accounting"):
        from dp_accounting import dp_event as known

    match mechanism:
        case known.NoOpDpEvent():
            return ()
        case known.GaussianDpEvent(noise_multiplier=multiplier):
            return (GaussianNoise(_positive(multiplier, mechanism), sensitivity=TWO_CONTRIBUTIONS),)
        case known.RandomizedResponseDpEvent(num_buckets=buckets):
            return (RandomizedResponse(epsilon_of(mechanism), buckets),)
        case known.ComposedDpEvent(events=events):
            return release_of(tuple(events))
        case known.SelfComposedDpEvent(event=inner, count=count):
            if not (isinstance(count, int) and count >= 0):
                raise _meaningless(mechanism)
            return release_of(inner) * count
        case _:
            return (PrivacyGuarantee(epsilon_of(mechanism)),)


@dataclass(frozen=True, slots=True, eq=False)
class LossDistribution(Mechanism):
    """Pessimistic privacy loss distribution of dp-accounting under replacement, made by `adapters.loss_distribution`."""

    distribution: Any

    @property
    def limit(self) -> float:
        """Delta at the end of the grid, beyond which rounding errors of dp-accounting's sums dominate."""
        return self._delta(self._reach) + LOST_IN_SUMS

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon; constant beyond the grid."""
        reach = self._reach
        near = losses <= reach
        delta = np.full(losses.size, self._delta(reach))
        if near.any():
            order = np.argsort(losses[near])
            sorted_deltas = np.asarray(
                self.distribution.get_delta_for_epsilon(losses[near][order].tolist()), dtype=np.float64
            )
            delta[np.flatnonzero(near)[order]] = sorted_deltas
        infinite = self._delta(math.inf)
        low = np.where(near, delta, infinite) - LOST_IN_SUMS
        return np.clip(low, 0.0, 1.0), np.clip(delta + LOST_IN_SUMS, 0.0, 1.0)

    @property
    def _reach(self) -> float:
        """An epsilon, up to twice too large, at which delta is within what the sums lose of its limit."""
        infinite = self._delta(math.inf)
        # In nats. Above 512, dp-accounting's sums overflow.
        reach = 2.0**-20
        while reach < 512.0 and self._delta(reach) > infinite + LOST_IN_SUMS:
            reach *= 2.0
        return reach

    def _delta(self, epsilon: float) -> float:
        return float(self.distribution.get_delta_for_epsilon(epsilon))


LOST_IN_SUMS = 2e-12
"""What the sums of dp-accounting can lose over ten thousand losses: they are differences of sums up to 1."""

TWO_CONTRIBUTIONS = 2.0
"""One person's old value leaves, the new one comes."""


def _positive(value: float, event: Any) -> float:
    if not (value > 0.0 and math.isfinite(value)):
        raise _meaningless(event)
    return float(value)


def _meaningless(event: Any) -> InputError:
    return InputError(f"expected an event with parameters that make a private mechanism, got {event!r}")
