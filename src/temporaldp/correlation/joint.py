"""What is known of several values of one person together, where they have nothing to do with one another."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np

from temporaldp.correlation.adversary import Adversary
from temporaldp.correlation.timeline import is_constant
from temporaldp.correlation.transition import TransitionMatrix
from temporaldp.errors import InputError

MOST_STATES = 1_000
"""Of all values together."""


def independent_adversary(*adversaries: Adversary) -> Adversary:
    """What is known about several values of each person, a joint one, if they develop independently of one another.

    The matrix of the joint value is the Kronecker product. Independence is an assumption about the people: where one value
    says something about the other (who sleeps is at home), estimate the joint matrix instead, from histories of both. With
    this one, leakage is then reported too low.

    Parameters
    ----------
    *adversaries : Adversary
        One for each value, with constant matrices, known in the same directions.

    Raises
    ------
    InputError
        There is none, matrices vary, directions differ, or there are more than 1,000 joint values.

    Examples
    --------
    >>> asleep, away = (TransitionMatrix([[p, 1.0 - p], [1.0 - p, p]], states=list(s)) for p, s in ((0.9, "AS"), (0.6, "HO")))
    >>> both = independent_adversary(Adversary(asleep, asleep), Adversary(away, away))
    >>> both.states
    ('A, H', 'A, O', 'S, H', 'S, O')
    >>> both.backward.probabilities[0].round(2).tolist()
    [0.54, 0.36, 0.06, 0.04]
    """
    if not adversaries or not all(isinstance(one, Adversary) and is_constant(one) for one in adversaries):
        raise InputError("expected one adversary or more, each with constant matrices that are known exactly")
    return Adversary(_joint(adversaries, "backward"), _joint(adversaries, "forward"))


def _joint(adversaries: tuple[Adversary, ...], side: Literal["backward", "forward"]) -> TransitionMatrix | None:
    import scipy.sparse

    known = [getattr(one, side) for one in adversaries]
    if all(one is None for one in known):
        return None
    if any(one is None for one in known):
        raise InputError(f"expected all {side} correlations or none of them; where nothing is learnt, give equal rows")
    states = [", ".join(parts) for parts in itertools.product(*(map(str, one.states) for one in known))]
    if len(states) > MOST_STATES:
        raise InputError(f"expected at most {MOST_STATES} joint values, got {len(states)}: publish coarser values")
    rows = np.ones((1, 1))
    for one in known:
        rows = np.kron(rows, scipy.sparse.csr_array(one.probabilities).toarray())
    return TransitionMatrix(rows / rows.sum(axis=1, keepdims=True), states=states)
