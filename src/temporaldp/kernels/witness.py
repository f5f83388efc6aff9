"""The pair of states and the event that make a step leak."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Witness:
    """The pair of states and the event at the other time that make a vertex of a leakage profile.

    Parameters
    ----------
    state, other_state : str
        The states of the two rows.
    evidence : tuple of str
        The set S of states at the other time that is more likely given `state`.
    probability, other_probability : float
        ``Pr(S | state)`` and ``Pr(S | other_state)``, the q and d of the vertex.
    """

    state: str
    other_state: str
    evidence: tuple[str, ...]
    probability: float
    other_probability: float
