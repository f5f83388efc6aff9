"""Events of Google's dp-accounting as pure-DP budgets of one step."""

from __future__ import annotations

import math
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
    """What one step with this event spends, in nats, under the relation that the event's own parameters are stated for.

    Laplace: 1 / noise_multiplier. Discrete Laplace: noise_parameter x sensitivity. Randomised response: log(1 + k (1 - p) / p).
    Composed events are queries at the same step: their sum.

    Raises
    ------
    InputError
        It is no event of dp-accounting, or one that is not epsilon-DP with delta = 0.
    """
    from dp_accounting import dp_event as known

    if not isinstance(event, known.DpEvent):
        raise InputError(f"expected an event of dp_accounting, such as LaplaceDpEvent(2.0), got {type(event).__name__}")
    match event:
        case known.NoOpDpEvent():
            return 0.0
        case known.LaplaceDpEvent(noise_multiplier=multiplier):
            epsilon = 1.0 / multiplier if multiplier > 0.0 else math.inf
        case known.DiscreteLaplaceDpEvent(noise_parameter=parameter, sensitivity=sensitivity):
            epsilon = parameter * sensitivity
        case known.RandomizedResponseDpEvent(noise_parameter=share, num_buckets=buckets):
            epsilon = math.log1p(buckets * (1.0 - share) / share) if share > 0.0 else math.inf
        case known.ComposedDpEvent(events=events):
            return math.fsum(map(epsilon_of, events))
        case known.SelfComposedDpEvent(event=inner, count=count):
            epsilon = count * epsilon_of(inner)
        case _:
            raise InputError(
                f"expected an event with pure differential privacy (Laplace, discrete Laplace, randomised response, none, or a "
                f"composition of them), got {type(event).__name__}, which has no epsilon with delta = 0"
            )
    return math.nextafter(float(epsilon), math.inf)
