"""Pairs of successive states, for counts of transitions: their adversary.

A table of transitions at a step depends on two states of a person. As a histogram of *pairs* (state before, state now)
it depends on one pair. Pairs form a Markov chain, and the leakage about a pair is at least that about either of its
states (Theory, section 15): a release that satisfies alpha-DP_T for pairs satisfies it for states.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import scipy

from temporaldp.base.errors import InputError
from temporaldp.core.correlation.adversary import Adversary, Matrix, exactly_known
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.core.correlation.transition import TransitionMatrix


def pair_states(states: Sequence[str]) -> tuple[str, ...]:
    """Names of all pairs, the state before first: pair ``i n + j`` is from state i to state j."""
    return tuple(f"{before} > {now}" for before in states for now in states)


def pair_adversary(adversary: Adversary) -> Adversary:
    """The adversary about pairs of states, for one who knows the correlation of states.

    The forward transition from (i, j) to (j, k) has the probability of that from j to k, the backward one to (h, i) that of
    the one from i to h. Matrices are sparse, of shape (n^2, n^2); sequences serve one step fewer.

    Raises
    ------
    InputError
        The adversary knows no correlation, or its matrices are not known exactly.

    Examples
    --------
    >>> from temporaldp import temporal_leakage
    >>> walk = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> pairs = pair_adversary(Adversary(walk, walk))
    >>> pairs.states
    ('0 > 0', '0 > 1', '1 > 0', '1 > 1')
    >>> temporal_leakage(pairs, [0.1] * 10).worst > temporal_leakage(Adversary(walk, walk), [0.1] * 10).worst
    True
    """
    if adversary.states is None:
        raise InputError("expected an adversary with a correlation, got one without: pairs then need no other")
    return Adversary(_each(adversary.backward, last=False), _each(adversary.forward, last=True), name=adversary.name)


def _each(correlation: Correlation, *, last: bool) -> Correlation:
    if correlation.n_steps is not None:  # one matrix fewer: without the last one, or without the first one
        first = 1 if last else 0
        correlation = correlation.between(first, first + correlation.n_steps - 2)
    elif not correlation.is_constant:
        raise InputError(
            f"expected a TransitionMatrix, or one for each transition, got {type(correlation).__name__}: pairs of states that "
            "follow a clock are not accounted for; give one of its matrices"
        )
    return correlation.mapped(partial(_lifted, last=last))


def _lifted(matrix: Matrix, *, last: bool) -> TransitionMatrix:
    """From pair (i, j): with `last`, to (j, k) by row j; otherwise to (h, i) by row i."""
    n = matrix.n_states
    entries = scipy.sparse.coo_array(exactly_known(matrix).probabilities)
    row, column, values = (np.tile(part, n) for part in (entries.row, entries.col, entries.data))
    other = np.repeat(np.arange(n), len(entries.data))
    source = other * n + row if last else row * n + other
    target = row * n + column if last else column * n + row
    lifted = scipy.sparse.csr_array((values, (source, target)), shape=(n * n, n * n))
    return TransitionMatrix(lifted, pair_states(matrix.states))
