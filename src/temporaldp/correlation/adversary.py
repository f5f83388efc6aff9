"""The adversary of the paper's Definition 4: who knows everybody else's data and how values follow one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.correlation.interval_matrix import IntervalMatrix
from temporaldp.correlation.periodic import Matrix, PeriodicMatrices
from temporaldp.correlation.states import require_same_states
from temporaldp.correlation.transition import FloatArray, TransitionMatrix, distribution
from temporaldp.display import summary
from temporaldp.errors import InputError, MatrixError

Correlation: TypeAlias = Matrix | tuple[Matrix, ...] | PeriodicMatrices | None

STATIONARY_TOLERANCE = 1e-12
"""Relative distance per entry within which a distribution is the chain's stationary one: rounding, not movement."""


@dataclass(frozen=True, slots=True)
class Adversary:
    """An adversary who targets one user and knows that user's temporal correlations.

    Parameters
    ----------
    backward : TransitionMatrix, IntervalMatrix, sequence of them, PeriodicMatrices, or None
        ``Pr(l[t-1] | l[t])``: row = the value now, column = the value before. A sequence has one matrix per
        transition: element k (from 0) relates time k + 1 (rows) to time k (columns), so T - 1 of them serve T steps.
        With `PeriodicMatrices` it depends on the clock, for any number of steps. With an `IntervalMatrix` all is accounted
        for every matrix of the set. None: unknown to the adversary, who then learns nothing from past releases.
    forward : TransitionMatrix, IntervalMatrix, sequence of them, PeriodicMatrices, or None
        ``Pr(l[t+1] | l[t])``: row = the value now, column = the value after. Element k relates time k (rows) to
        time k + 1 (columns). None: nothing is learnt from future releases.
    name : str, optional
        Of the user who is targeted; reports use it.

    Raises
    ------
    StateError
        The matrices do not name the same states in the same order.
    InputError
        Sequences of different length, clocks of different period or phase, or something that is no matrix.

    Examples
    --------
    >>> Adversary(forward=TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])).states
    ('0', '1')
    """

    backward: Correlation = None
    forward: Correlation = None
    name: str | None = None

    def __init__(
        self,
        backward: Matrix | Sequence[Matrix] | PeriodicMatrices | None = None,
        forward: Matrix | Sequence[Matrix] | PeriodicMatrices | None = None,
        *,
        name: str | None = None,
    ) -> None:
        known = {"backward": _correlation(backward, "backward"), "forward": _correlation(forward, "forward")}
        for field, value in known.items():
            object.__setattr__(self, field, value)
        object.__setattr__(self, "name", name)
        matrices = self.matrices
        for matrix in matrices[1:]:
            require_same_states(matrices[0].states, matrix.states, what="another matrix of the same adversary")
        lengths = {len(value) for value in known.values() if isinstance(value, tuple)}
        if len(lengths) > 1:
            raise InputError(f"backward and forward sequences must be equally long, got {sorted(lengths)} matrices")
        clocks = {(one.period, one.phase) for one in known.values() if isinstance(one, PeriodicMatrices)}
        if len(clocks) > 1 or (clocks and lengths):
            raise InputError(
                "expected one clock for both directions: matrices of the same period that begin at the same phase, and no "
                "sequence for a number of steps beside them"
            )

    @classmethod
    def from_forward(
        cls,
        forward: TransitionMatrix | Sequence[TransitionMatrix],
        *,
        initial: ArrayLike,
        horizon: int | None = None,
        name: str | None = None,
    ) -> Adversary:
        """The adversary who knows how a chain starts and how it moves on; Bayes' rule gives the backward matrices.

        Those vary with time unless `initial` is stationary under a constant `forward`.

        Parameters
        ----------
        forward : TransitionMatrix, or sequence of T - 1 of them
        initial : array_like, shape (n,)
            Distribution of the first value.
        horizon : int, optional
            Number of steps T. Needed when `forward` is constant and `initial` is not stationary.

        Raises
        ------
        MatrixError
            A state has probability 0 at some time: given it, there is no past to speak of.
        InputError
            `horizon` is missing or contradicts the length of `forward`.

        Examples
        --------
        >>> chain = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
        >>> adversary = Adversary.from_forward(chain, initial=[0.5, 0.5], horizon=4)
        >>> len(adversary.backward), adversary.n_steps
        (3, 4)
        """
        given = _correlation(forward, "forward")
        if given is None or isinstance(given, PeriodicMatrices):
            raise InputError(f"expected a forward matrix or a sequence of them, got {type(given).__name__}")
        chain = tuple(map(exactly_known, given)) if isinstance(given, tuple) else exactly_known(given)
        first = chain[0] if isinstance(chain, tuple) else chain
        marginal = distribution(initial, first.states)
        if isinstance(chain, tuple):
            if horizon is not None and horizon != len(chain) + 1:
                raise InputError(
                    f"{len(chain)} forward matrices serve {len(chain) + 1} steps, but horizon is {horizon}"
                )
            steps = chain
        elif _is_stationary(marginal, chain):
            return cls(chain.reversed(marginal), chain, name=name)
        elif horizon is None:
            raise InputError(
                "the initial distribution is not stationary, so the backward matrix changes with every step: "
                "give horizon=T, or start from forward.stationary_distribution()"
            )
        elif horizon < 2:
            raise InputError(f"expected a horizon of at least 2 steps (one transition), got {horizon}")
        else:
            steps = (chain,) * (horizon - 1)
        backward = []
        for matrix in steps:
            backward.append(matrix.reversed(marginal))
            marginal = np.asarray(marginal @ matrix.probabilities)
            marginal = marginal / marginal.sum()
        return cls(tuple(backward), chain, name=name)

    def _repr_html_(self) -> str:
        """Both directions, for notebooks: a matrix as a table, whatever else it is as its words."""
        known = {"backward": self.backward, "forward": self.forward}
        parts = [
            one._repr_html_()
            if isinstance(one, TransitionMatrix)
            else summary("", {"": "unknown" if one is None else repr(one)})
            for one in known.values()
        ]
        boxes = "".join(f"<div><em>{side}</em>{part}</div>" for side, part in zip(known, parts, strict=True))
        return f'<div style="display: flex; flex-wrap: wrap; gap: 2em">{boxes}</div>'

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """All matrices the adversary knows, backward ones first."""
        known: list[Matrix] = []
        for value in (self.backward, self.forward):
            known += matrices_of(value)
        return tuple(known)

    @property
    def is_uncertain(self) -> bool:
        """Whether some matrix is known up to intervals only: then there is no exact leakage, only bounds for the whole set."""
        return any(isinstance(matrix, IntervalMatrix) for matrix in self.matrices)

    @property
    def states(self) -> tuple[str, ...] | None:
        """The states that all matrices name; None for an adversary who knows no correlation."""
        return self.matrices[0].states if self.matrices else None

    @property
    def n_states(self) -> int | None:
        """Number of states; None for an adversary who knows no correlation."""
        return None if self.states is None else len(self.states)

    @property
    def n_steps(self) -> int | None:
        """Number of steps T that the sequences of matrices serve; None if every matrix is constant."""
        lengths = [len(value) + 1 for value in (self.backward, self.forward) if isinstance(value, tuple)]
        return lengths[0] if lengths else None

    @property
    def period(self) -> int | None:
        """Number of phases after which matrices come again; None if they do not depend on a clock."""
        clocks = [one for one in (self.backward, self.forward) if isinstance(one, PeriodicMatrices)]
        return clocks[0].period if clocks else None

    def between(self, first: int, n_steps: int) -> Adversary:
        """The adversary of `n_steps` steps from step `first` on, with the matrices of the transitions between them."""
        last = first + n_steps - 1

        def part(one: Correlation) -> Correlation:
            if isinstance(one, PeriodicMatrices):
                return one.between(first, last) or None
            return one[first:last] or None if isinstance(one, tuple) else one

        return Adversary(part(self.backward), part(self.forward), name=self.name)

    def over(self, n_steps: int) -> Adversary:
        """The adversary of a release of `n_steps` steps: the matrices of a clock are written out, one for each step."""
        return self if self.period is None else self.between(0, n_steps)


def matrices_of(correlation: Correlation) -> tuple[Matrix, ...]:
    """The matrices of a direction, each as often as it is given; none of an unknown one."""
    if correlation is None:
        return ()
    if isinstance(correlation, PeriodicMatrices):
        return correlation.matrices
    return correlation if isinstance(correlation, tuple) else (correlation,)


def matrix_at(correlation: Correlation, transition: int) -> Matrix | None:
    """The matrix of a transition, counted from 0 in the order of time."""
    if isinstance(correlation, PeriodicMatrices):
        return correlation.between(transition, transition + 1)[0]
    return correlation[transition] if isinstance(correlation, tuple) else correlation


def known_at(correlation: Correlation, transition: int) -> TransitionMatrix:
    """The matrix of a transition through a correlation that is not unknown, if it is known exactly; else `InputError`."""
    matrix = matrix_at(correlation, transition)
    assert matrix is not None
    return exactly_known(matrix)


def exactly_known(matrix: Matrix) -> TransitionMatrix:
    """The matrix, where only one that is known exactly will do; `InputError` for intervals."""
    if isinstance(matrix, IntervalMatrix):
        raise InputError(
            "expected a matrix that is known exactly, got an IntervalMatrix: for a set of matrices there are bounds, by "
            "temporal_leakage, leakage_supremum and plan_budget; or take one of its matrices, such as matrix.central()"
        )
    return matrix


def _is_stationary(marginal: FloatArray, chain: TransitionMatrix) -> bool:
    """Whether the chain stays at `marginal` for ever. A small change in one step is not enough: it could add up."""
    if not np.allclose(marginal @ chain.probabilities, marginal, rtol=STATIONARY_TOLERANCE, atol=0.0):
        return False
    try:
        return np.allclose(marginal, chain.stationary_distribution(), rtol=STATIONARY_TOLERANCE, atol=0.0)
    except MatrixError:  # several closed classes: many stationary distributions, and this one must stay put exactly
        return np.array_equal(marginal @ chain.probabilities, marginal)


def _correlation(value: Matrix | Sequence[Matrix] | PeriodicMatrices | None, which: str) -> Correlation:
    if value is None or isinstance(value, TransitionMatrix | IntervalMatrix | PeriodicMatrices):
        return value
    matrices = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    for position, matrix in enumerate(matrices):
        if not isinstance(matrix, TransitionMatrix | IntervalMatrix):
            raise InputError(
                f"expected {which} to be a TransitionMatrix (or an IntervalMatrix), a sequence of them, PeriodicMatrices or "
                f"None, got {type(matrix).__name__} (item {position}); wrap it: TransitionMatrix(probabilities)"
            )
    if not matrices:
        raise InputError(f"the {which} sequence is empty; it needs one matrix per transition, or None")
    return matrices
