"""Chains with a longer memory: words of the last states, or a state and its age.

Notation
--------
u        a hidden state, of which outputs show the state only: a word of k states (order k), or a state and its age
Pr(c|u)  the next state; with it the next hidden state is known
pi       stationary distribution of the hidden states
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import EstimationError, MatrixError
from temporaldp.base.names import listed, printable, state_names
from temporaldp.base.values import FloatArray, IntArray, assign, compared_by_value, locked, whole_number
from temporaldp.core.correlation.adversary import Adversary
from temporaldp.core.correlation.transition import TransitionMatrix
from temporaldp.core.kernels.merged import Hidden

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
        assign(self, states=state_names(self.states), memory=printable(str(self.memory), "memory of a chain"))
        shape = len(self.states), len(self.forward.states)
        fits = self.labels.shape == shape[1:] and self.shares.shape == shape
        fits = fits and self.labels.dtype.kind == "i" and bool(np.isin(self.labels, np.arange(shape[0])).all())
        if not (
            fits
            and (np.where(np.arange(shape[0])[:, None] == self.labels, self.shares >= 0.0, self.shares == 0.0)).all()
        ):
            raise MatrixError(
                f"expected the number of a state for each of {shape[1]} hidden states, and of each state the shares of the "
                f"hidden states that show it, got arrays of shapes {self.labels.shape} and {self.shares.shape}"
            )
        if not np.allclose(self.shares.sum(axis=1), 1.0, atol=1e-9):
            raise MatrixError("expected the shares of the hidden states of a state to have the sum 1")
        locked((self.labels, self.shares))

    def hidden(self, side: str) -> Hidden:
        """The chain in one direction, "backward" or "forward", as rollouts take it."""
        overall = self.forward.stationary_distribution()
        return Hidden.of(getattr(self, side).dense(), self.labels, self.shares, overall)

    @property
    def adversary(self) -> LiftedAdversary:
        """The adversary who knows this chain. Planning and accounting functions accept the chain itself.

        `Exact()` bounds leakage about the states; by other methods it is that about the hidden states, which is at least as
        large.
        """
        return LiftedAdversary(self)

    def __repr__(self) -> str:
        return f"LiftedChain({len(self.labels)} hidden states of {len(self.states)} states: {self.memory})"


@dataclass(frozen=True, slots=True, init=False)
class LiftedAdversary(Adversary):
    """An adversary who knows a chain with a longer memory: matrices over hidden states, of which releases show the labels."""

    chain: LiftedChain

    def __init__(self, chain: LiftedChain) -> None:
        Adversary.__init__(self, chain.backward, chain.forward)
        assign(self, chain=chain)

    @property
    def is_lifted(self) -> bool:
        """True."""
        return True

    @property
    def shown(self) -> Adversary:
        """The adversary who knows the transitions of the states that hidden states show, and no longer memory."""
        of_label = np.eye(len(self.chain.states))[self.chain.labels]
        rows = [self.chain.shares @ side.dense() @ of_label for side in (self.chain.backward, self.chain.forward)]
        return Adversary(*(TransitionMatrix(rows_of(one), self.chain.states) for one in rows))

    def document(self) -> dict[str, Any]:
        """The chain as JSON values, for `adversary_from`."""
        chain = self.chain
        parts = {"labels": chain.labels.tolist(), "shares": chain.shares.tolist(), "memory": chain.memory}
        return Adversary.document(self) | {"states": list(chain.states), **parts}

    def update_digest(self, digest: Any) -> None:
        """Add what hidden states show to a hash, which the matrices do not determine."""
        digest.update(repr(self.chain.states).encode("utf-8"))
        digest.update(self.chain.labels.astype("<i8").tobytes() + self.chain.shares.astype("<f8").tobytes())


class HiddenStates(NamedTuple):
    """Hidden states: the state that each shows, the next one by next state, their names, and what they remember."""

    labels: IntArray
    following: IntArray
    names: list[str]
    memory: str


def hidden_words(states: tuple[str, ...], order: int) -> HiddenStates:
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
    return HiddenStates(words[:, -1], following, names, "the last state" if order == 1 else f"the last {order} states")


def stationary_chain(states: tuple[str, ...], hidden: HiddenStates, probabilities: FloatArray) -> LiftedChain:
    """The chain of the hidden states that its stationary distribution has, from ``Pr(c|u)``, shape (m, n)."""
    m, n = probabilities.shape
    forward = np.zeros((m, m))
    np.add.at(forward, (np.repeat(np.arange(m), n), hidden.following.ravel()), probabilities.ravel())
    pi = TransitionMatrix(forward, hidden.names).stationary_distribution()
    kept = np.flatnonzero(pi > 0.0)
    labels = hidden.labels[kept]
    shares = np.where(labels == np.arange(n)[:, None], pi[kept], 0.0)
    lacking = np.flatnonzero(shares.sum(axis=1) == 0.0)
    if lacking.size:
        raise EstimationError(
            f"{listed([states[k] for k in lacking])} are transient: people who leave them do not come back: their "
            "probability in the chain's stationary distribution is 0; leave these states out"
        )
    inside = TransitionMatrix(rows_of(forward[np.ix_(kept, kept)]), [hidden.names[k] for k in kept])
    backward = inside.reversed(pi[kept] / pi[kept].sum())
    return LiftedChain(states, labels, backward, inside, rows_of(shares), hidden.memory)


def rows_of(weights: NDArray[Any]) -> FloatArray:
    """Rows of weights, each divided by its sum."""
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
