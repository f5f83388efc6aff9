"""Why a step leaks: the two values that are told apart, and by what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Witness:
    """The pair of values and the event at the other time that make a vertex of a leakage profile.

    Parameters
    ----------
    value, other_value : str
        The two values told apart.
    evidence : tuple of str
        The set S of values at the other time that speaks for `value`.
    probability, other_probability : float
        ``Pr(S | value)`` and ``Pr(S | other_value)``: the vertex's q and d.
    """

    value: str
    other_value: str
    evidence: tuple[str, ...]
    probability: float
    other_probability: float
