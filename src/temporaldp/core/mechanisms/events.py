"""Events and privacy loss distributions of Google's dp-accounting: as pure-DP budgets of one step, and as mechanisms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.extras import needing
from temporaldp.base.values import FloatArray, checked_relation
from temporaldp.core.mechanisms.guarantee import PrivacyGuarantee
from temporaldp.core.mechanisms.noise import GaussianNoise
from temporaldp.core.mechanisms.output_table import RandomizedResponse
from temporaldp.core.mechanisms.protocol import ROUNDED_UP, Mechanism, Mechanisms, checked_mechanism


def is_mechanism(release: Any) -> bool:
    """Whether a release is a mechanism, an event of dp-accounting, or several of them at one step, not a number or a box."""
    is_event = type(release).__module__.startswith("dp_accounting.")
    return is_event or hasattr(release, "bounds") or isinstance(release, tuple)


def epsilon_of(release: Any, where: str = "") -> float:
    """Epsilon of the mechanisms of one step, or of an event, under replacement of one person's state, in nats; rounded up.

    Of several mechanisms, which are released at one step, the sum.

    Raises
    ------
    BudgetError
        One of them has no pure epsilon.
    """
    found = math.fsum(one.pure_epsilon for one in release_of(release))
    if math.isinf(found):
        raise BudgetError(
            f"expected a release with a pure epsilon{where} (Laplace, randomised response, ...), got {release!r:.60}: account "
            "for it by ApproximateDP(1e-6)"
        )
    return found * ROUNDED_UP


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
            "give Mechanism.from_loss_distribution(distribution, neighboring_relation='replace_one')"
        )
    return _of_event(mechanism)


def _of_event(event: Any) -> Mechanisms:
    """The mechanisms of an event.

    The noise of an event is relative to the largest *contribution* of one person (the convention of dp-accounting, whose
    accountants refuse Laplace noise under replacement). Replacing a state removes one contribution and adds another, and so
    moves a result twice as far: Laplace 2 / noise_multiplier, discrete Laplace 2 x noise_parameter x sensitivity. A histogram
    of one state per person has contribution 1. Randomised response is defined by replacement: log(1 + k (1 - p) / p). Composed
    events are queries at the same step.
    """
    with needing("dp-accounting"):
        from dp_accounting import dp_event as known

    match event:
        case known.NoOpDpEvent():
            return ()
        case known.GaussianDpEvent(noise_multiplier=multiplier):
            return (GaussianNoise(_positive(multiplier, event), sensitivity=TWO_CONTRIBUTIONS),)
        case known.LaplaceDpEvent(noise_multiplier=multiplier):
            return (PrivacyGuarantee(TWO_CONTRIBUTIONS / _positive(multiplier, event) * ROUNDED_UP),)
        case known.DiscreteLaplaceDpEvent(noise_parameter=parameter, sensitivity=sensitivity):
            return (
                PrivacyGuarantee(
                    TWO_CONTRIBUTIONS * _positive(parameter, event) * _positive(sensitivity, event) * ROUNDED_UP
                ),
            )
        case known.RandomizedResponseDpEvent(noise_parameter=share, num_buckets=buckets) if (
            0.0 < share <= 1.0 < buckets
        ):
            epsilon = math.log1p(buckets * (1.0 - share) / share) * ROUNDED_UP
            return (RandomizedResponse(epsilon, buckets),) if epsilon else ()
        case known.ComposedDpEvent(events=events):
            return release_of(tuple(events))
        case known.SelfComposedDpEvent(event=inner, count=int(count)) if count >= 0:
            return release_of(inner) * count
        case known.RandomizedResponseDpEvent() | known.SelfComposedDpEvent():
            raise _meaningless(event)
    raise InputError(
        "expected an event of Laplace, discrete Laplace or Gaussian noise, randomised response, none, or a composition of "
        f"them, got {type(event).__name__}; give Mechanism.from_loss_distribution its privacy loss distribution"
    )


@dataclass(frozen=True, slots=True, eq=False)
class LossDistribution(Mechanism):
    """Pessimistic privacy loss distribution of dp-accounting, made by `Mechanism.from_loss_distribution`.

    The distribution itself does not state its neighbouring relation. One that was made for adding or removing a contribution is
    too small here, where a state is replaced: one contribution leaves and another one comes. The Gaussian noise of
    ``GaussianDpEvent(10)`` has the distribution ``from_gaussian_mechanism(10, neighboring_relation=NeighborRel.REPLACE_ONE)``,
    with twice the sensitivity.

    Parameters
    ----------
    distribution : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        With pessimistic estimates.

    Examples
    --------
    >>> from dp_accounting.pld import privacy_loss_distribution as pld
    >>> import temporaldp as tdp
    >>> walk = tdp.TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> known = pld.from_gaussian_mechanism(10.0, neighboring_relation=pld.NeighborRel.REPLACE_ONE)
    >>> released = tdp.Mechanism.from_loss_distribution(known, neighboring_relation="replace_one")
    >>> series = tdp.temporal_leakage(tdp.Adversary(walk, walk), [released] * 3, accounting=tdp.ApproximateDP(1e-6))
    >>> series.worst > 0.9
    True
    """

    distribution: Any

    @classmethod
    def checked(cls, distribution: Any, neighboring_relation: Any) -> LossDistribution:
        """The mechanism of a distribution that was made for replacement, with pessimistic estimates; else `InputError`."""
        checked_relation(neighboring_relation)
        if not hasattr(distribution, "get_delta_for_epsilon"):
            raise InputError(
                f"expected a privacy loss distribution of dp-accounting, got {type(distribution).__name__}"
            )
        # The direction of its rounding is not a public attribute: a distribution without it is refused.
        sides = (getattr(distribution, name, None) for name in ("_pmf_remove", "_pmf_add"))
        if not all(getattr(side, "_pessimistic_estimate", False) for side in sides):
            raise InputError(
                "expected a pessimistic privacy loss distribution, got an optimistic one, which is a lower bound, or one whose "
                "rounding is unknown"
            )
        return cls(distribution)

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
