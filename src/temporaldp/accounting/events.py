"""Events of Google's dp-accounting as pure-DP budgets of one step."""

from __future__ import annotations

import math
import sys
from typing import Any

from temporaldp.errors import InputError

REPLACE_ONE = "replace_one"
"""Neighbouring databases differ in the value of one person at one step; how many people there are is public."""


def checked_relation(relation: Any) -> str:
    """The neighbouring relation, as a word or as dp-accounting's enumeration; only "replace_one" has a theory here."""
    name = str(getattr(relation, "name", relation)).lower()
    if name != REPLACE_ONE:
        raise InputError(
            f"expected neighboring_relation to be {REPLACE_ONE!r} (the paper's theorems are about replacing one person's "
            f"value), got {relation!r}; restate sensitivities under replacement: a histogram's L1 sensitivity is 2"
        )
    return REPLACE_ONE


def epsilon_of(event: Any) -> float:
    """What one step with this event spends under replacement of one person's value, in nats; rounded up.

    An event's noise is relative to the largest *contribution* of one person (dp-accounting's own convention, whose accountants
    refuse Laplace noise under replacement). Replacing a value takes one contribution away and adds another, so it moves a
    result twice as far: Laplace 2 / noise_multiplier, discrete Laplace 2 x noise_parameter x sensitivity. A histogram of one
    value a person has contribution 1. Randomised response is about replacement as it is: log(1 + k (1 - p) / p). Composed
    events are queries at the same step: their sum.

    Raises
    ------
    InputError
        It is no event of dp-accounting, one that is not epsilon-DP with delta = 0, or its parameters mean nothing.
    """
    if not type(event).__module__.startswith("dp_accounting."):
        raise InputError(f"expected an event of dp_accounting, such as LaplaceDpEvent(2.0), got {type(event).__name__}")
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
                f"composition of them), got {type(event).__name__}"
            )
    return float(epsilon) * ROUNDED_UP


TWO_CONTRIBUTIONS = 2.0
"""One person's old value leaves, the new one comes."""

ROUNDED_UP = 1.0 + 8.0 * sys.float_info.epsilon
"""Relative. More than a few rounded operations can lose."""


def _positive(value: float, event: Any) -> float:
    if not (value > 0.0 and math.isfinite(value)):
        raise _meaningless(event)
    return float(value)


def _meaningless(event: Any) -> InputError:
    return InputError(f"expected an event with parameters that make a private mechanism, got {event!r}")
