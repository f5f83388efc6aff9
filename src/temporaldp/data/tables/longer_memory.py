"""Chains with a longer memory, estimated from traces."""

from __future__ import annotations

import numpy as np

from temporaldp.base.errors import EstimationError
from temporaldp.base.names import listed
from temporaldp.base.values import IntArray, real_number, whole_number
from temporaldp.core.correlation.lifted_chain import (
    MOST_HIDDEN,
    HiddenStates,
    LiftedChain,
    hidden_words,
    rows_of,
    stationary_chain,
)
from temporaldp.data.tables.estimation import all_transitions
from temporaldp.data.tables.traces import Traces, codes_of
from temporaldp.data.tables.trajectories import ABSENT


def estimate_words(trajectories: Traces, *, order: int, prior: float = 1.0) -> LiftedChain:
    """Estimate the stationary chain of order k: the next state depends on the last k states.

    ``Pr(c | word) = (N[word, c] + prior P[last, c]) / (N[word] + prior)`` with the first-order estimate P: a rare
    word is assumed to continue like its last state.

    Parameters
    ----------
    trajectories : Traces
    order : int, >= 1
    prior : float, > 0
        Weight of the first-order estimate in every word, in transitions.

    Raises
    ------
    EstimationError
        The words would not fit in memory, a state is never left, or the chain has several closed classes, and so no unique
        stationary distribution.

    Examples
    --------
    >>> from temporaldp import load_sample
    >>> estimate_words(load_sample(), order=2)
    LiftedChain(25 hidden states of 5 states: the last 2 states)
    """
    words, n = hidden_words(trajectories.states, order), trajectories.n_states
    codes = codes_of(trajectories)
    numbers = np.full(codes.shape, ABSENT)
    for t in range(order - 1, codes.shape[1]):
        window = codes[:, t - order + 1 : t + 1]
        whole = (window >= 0).all(axis=1) & trajectories.consecutive[t - order + 1 : t].all()
        numbers[whole, t] = np.ravel_multi_index(tuple(window[whole].T), (n,) * order)
    return _chain(trajectories, words, numbers, prior)


def estimate_dwell_times(trajectories: Traces, *, longest: int = 6, prior: float = 1.0) -> LiftedChain:
    """Estimate the stationary semi-Markov chain: the next state depends on the state and its age.

    Parameters
    ----------
    trajectories : Traces
    longest : int, >= 1
        Steps from which on a state counts as old. Runs whose beginning was not observed are left out.
    prior : float, > 0
        As for `estimate_words`.

    Examples
    --------
    >>> from temporaldp import load_sample
    >>> estimate_dwell_times(load_sample(), longest=3)
    LiftedChain(15 hidden states of 5 states: the state and its age, up to 3 steps)
    """
    n = trajectories.n_states
    whole_number(longest, "longest age", least=1)
    if n * longest > MOST_HIDDEN:
        raise EstimationError(
            f"{longest} ages of {n} states are {n * longest} hidden states, more than {MOST_HIDDEN}: a matrix over them would "
            "not fit; take a shorter longest age, or group states into fewer"
        )
    age = ages_of(trajectories, longest)
    numbers = np.where(age > 0, codes_of(trajectories) * longest + age - 1, ABSENT)
    labels, ages = np.divmod(np.arange(n * longest), longest)
    stays = labels * longest + np.minimum(ages + 1, longest - 1)
    following = np.where(labels[:, None] == np.arange(n), stays[:, None], np.arange(n) * longest)
    names = [f"{trajectories.states[k]}, {a + 1} steps" for k, a in zip(labels, ages, strict=True)]
    hidden = HiddenStates(labels, following, names, f"the state and its age, up to {longest} steps")
    return _chain(trajectories, hidden, numbers, prior)


def ages_of(trajectories: Traces, longest: int) -> IntArray:
    """Steps since which each user is in a state, up to `longest`, shape (N, T); 0 where the beginning was not observed."""
    codes = np.ascontiguousarray(codes_of(trajectories).T)
    ages = np.zeros(codes.shape, dtype=np.int64)
    for t in range(1, len(codes)):
        seen = (codes[t] >= 0) & (codes[t - 1] >= 0) & trajectories.consecutive[t - 1]
        older = np.where(ages[t - 1] > 0, np.minimum(ages[t - 1] + 1, longest), 0)
        ages[t] = np.where(~seen, 0, np.where(codes[t] != codes[t - 1], 1, older))
    return ages.T


def _chain(trajectories: Traces, hidden: HiddenStates, numbers: IntArray, prior: float) -> LiftedChain:
    """The chain that traces show, from the number of the hidden state of each user at each time; -1 where it is unknown."""
    real_number(prior, "prior", gt=0.0)
    n, m = trajectories.n_states, len(hidden.labels)
    first = all_transitions(trajectories)
    unseen = np.flatnonzero(first.sum(axis=1) == 0)
    if unseen.size:
        raise EstimationError(
            f"the traces show no next state for {listed([trajectories.states[k] for k in unseen])}; give longer traces, or "
            "leave these states out"
        )
    now, after = numbers[:, :-1], codes_of(trajectories)[:, 1:]
    seen = (now >= 0) & (after >= 0) & trajectories.consecutive
    counts = np.bincount(now[seen] * n + after[seen], minlength=m * n).reshape(m, n)
    return stationary_chain(trajectories.states, hidden, rows_of(counts + prior * rows_of(first)[hidden.labels]))
