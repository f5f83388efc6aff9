"""Chains with a longer memory: words of the last states, or a state and its age.

Notation
--------
u        a hidden state, of which outputs show the state only: a word of k states (order k), or a state and its age
Pr(c|u)  the next state; with it the next hidden state is known
pi       stationary distribution of the hidden states
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.correlation.adversary import Adversary
from temporaldp.correlation.estimation import all_transitions
from temporaldp.correlation.states import listed, names_of
from temporaldp.correlation.traces import Traces, codes_of
from temporaldp.correlation.trajectories import ABSENT
from temporaldp.correlation.transition import TransitionMatrix
from temporaldp.errors import EstimationError, MatrixError
from temporaldp.values import FloatArray, IntArray, compared_by_value, locked, real_number, whole_number

MOST_HIDDEN = 1_000
"""Hidden states up to which dense matrices over them are made: 8 MB each, and some dozens of them in accounting."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LiftedChain:
    """A stationary chain of hidden states; releases depend on the label of a hidden state, its state.

    Parameters
    ----------
    states : tuple of n names
        Names of the states.
    labels : int array, shape (m,)
        Number of the state of each hidden state.
    backward, forward : TransitionMatrix
        Over the m hidden states; by Bayes' rule from one another.
    shares : array, shape (n, m)
        ``Pr(hidden state | state)``.
    memory : str
        Description of the memory of a hidden state.
    """

    states: tuple[str, ...]
    labels: IntArray
    backward: TransitionMatrix
    forward: TransitionMatrix
    shares: FloatArray
    memory: str

    def __post_init__(self) -> None:
        locked((self.labels, self.shares))

    @classmethod
    def of_words(cls, probabilities: ArrayLike, states: Iterable[object] | None = None) -> LiftedChain:
        """Return the stationary chain of order k with known probabilities: the next state depends on the last k states.

        Parameters
        ----------
        probabilities : array_like, shape (n, ..., n), with k + 1 axes
            ``Pr(l[t+1] = c | l[t-1] = a, l[t] = b)`` at ``[a, b, c]`` for order 2: one axis for each of the last k states, the
            oldest first, and the last one for the next state, along which they sum to 1. Also of words that never occur.
        states : sequence of n distinct names, optional
            Defaults to ``"0", "1", ...``.

        Raises
        ------
        MatrixError
            The array has another shape, its entries are not probabilities, or the chain has several closed classes.
        EstimationError
            The words would not fit in memory, or a state is transient.

        Examples
        --------
        >>> from temporaldp import plan_budget
        >>> from temporaldp.correlation import LiftedChain
        >>> returning = [[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]      # [before, now, next]
        >>> chain = LiftedChain.of_words(returning, ["home", "work"])
        >>> chain.forward.states
        ('home > home', 'home > work', 'work > home', 'work > work')
        >>> plan_budget(chain, alpha=1.0, horizon=10).leakage.worst <= 1.0
        True
        """
        given = np.asarray(probabilities, dtype=np.float64)
        n, order = (given.shape[-1], given.ndim - 1) if given.ndim else (0, 0)
        if order < 1 or set(given.shape) != {n}:
            raise MatrixError(
                "expected an array of shape (n, ..., n), with an axis for each of the last states and one for the next state, "
                f"got shape {given.shape}"
            )
        known = names_of(n, states)
        return _stationary(known, _words(known, order), given.reshape(-1, n))

    @property
    def adversary(self) -> Adversary:
        """Adversary about the hidden states: leakage is at least that about the states, by every method.

        Planning and accounting functions accept the chain itself. A release also needs the states' names (``states=``).
        """
        return Adversary(self.backward, self.forward)

    def __repr__(self) -> str:
        return f"LiftedChain({len(self.labels)} hidden states of {len(self.states)} states: {self.memory})"


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
    words, n = _words(trajectories.states, order), trajectories.n_states
    codes = codes_of(trajectories)
    numbers = np.full(codes.shape, ABSENT)
    for t in range(order - 1, codes.shape[1]):
        window = codes[:, t - order + 1 : t + 1]
        whole = (window >= 0).all(axis=1) & trajectories.consecutive[t - order + 1 : t].all()
        numbers[whole, t] = np.ravel_multi_index(tuple(window[whole].T), (n,) * order)
    return _chain(trajectories, words, numbers, prior)


class _Hidden(NamedTuple):
    """Hidden states: the state that each shows, the next one by next state, their names, and what they remember."""

    labels: IntArray
    following: IntArray
    names: list[str]
    memory: str


def _words(states: tuple[str, ...], order: int) -> _Hidden:
    """All words of the last states."""
    n = len(states)
    whole_number(order, "order", least=1)
    if n**order > MOST_HIDDEN:
        raise EstimationError(
            f"order {order} over {n} states has {n**order} words, more than {MOST_HIDDEN}: a matrix over them would not "
            "fit; take a lower order, or group states into fewer"
        )
    words = np.array(np.unravel_index(np.arange(n**order), (n,) * order)).T
    following = np.arange(n**order)[:, None] * n % n**order + np.arange(n)
    names = [" > ".join(states[k] for k in word) for word in words]
    return _Hidden(words[:, -1], following, names, "the last state" if order == 1 else f"the last {order} states")


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
    codes = codes_of(trajectories)
    numbers = np.full(codes.shape, ABSENT)
    age = np.zeros(len(codes), dtype=np.int64)  # 0: the beginning of the run was not seen
    for t in range(1, codes.shape[1]):
        seen = (codes[:, t] >= 0) & (codes[:, t - 1] >= 0) & trajectories.consecutive[t - 1]
        changed = codes[:, t] != codes[:, t - 1]
        age = np.where(~seen, 0, np.where(changed, 1, np.where(age > 0, np.minimum(age + 1, longest), 0)))
        known = age > 0
        numbers[known, t] = codes[known, t] * longest + age[known] - 1
    labels, ages = np.divmod(np.arange(n * longest), longest)
    stays = labels * longest + np.minimum(ages + 1, longest - 1)
    following = np.where(labels[:, None] == np.arange(n), stays[:, None], np.arange(n) * longest)
    names = [f"{trajectories.states[k]}, {a + 1} steps" for k, a in zip(labels, ages, strict=True)]
    hidden = _Hidden(labels, following, names, f"the state and its age, up to {longest} steps")
    return _chain(trajectories, hidden, numbers, prior)


def _chain(trajectories: Traces, hidden: _Hidden, numbers: IntArray, prior: float) -> LiftedChain:
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
    return _stationary(trajectories.states, hidden, _rows(counts + prior * _rows(first)[hidden.labels]))


def _stationary(states: tuple[str, ...], hidden: _Hidden, probabilities: FloatArray) -> LiftedChain:
    """The chain of the hidden states that its stationary distribution has, from ``Pr(c|u)``, shape (m, n)."""
    m, n = probabilities.shape
    forward = np.zeros((m, m))
    np.add.at(forward, (np.repeat(np.arange(m), n), hidden.following.ravel()), probabilities.ravel())
    pi = TransitionMatrix(forward, hidden.names).stationary_distribution()
    kept = np.flatnonzero(pi > 0.0)
    inside = TransitionMatrix(_rows(forward[np.ix_(kept, kept)]), [hidden.names[k] for k in kept])
    labels = hidden.labels[kept]
    shares = np.where(labels == np.arange(n)[:, None], pi[kept], 0.0)
    lacking = np.flatnonzero(shares.sum(axis=1) == 0.0)
    if lacking.size:
        raise EstimationError(
            f"{listed([states[k] for k in lacking])} are transient: their probability in the chain's "
            "stationary distribution is 0; leave these states out"
        )
    backward = inside.reversed(pi[kept] / pi[kept].sum())
    return LiftedChain(states, labels, backward, inside, _rows(shares), hidden.memory)


def _rows(weights: NDArray[Any]) -> FloatArray:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
