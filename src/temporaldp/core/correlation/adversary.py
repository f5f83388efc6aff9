"""The adversary of the paper's Definition 4, who has the data of all other users and the temporal correlation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.display import summary
from temporaldp.base.errors import InputError, MatrixError
from temporaldp.base.names import require_same_states
from temporaldp.base.values import FloatArray, assign, whole_number
from temporaldp.core.correlation.interval_matrix import IntervalMatrix
from temporaldp.core.correlation.protocol import Constant, Correlation, NoCorrelation, Periodic, PerStep
from temporaldp.core.correlation.transition import TransitionMatrix, distribution

Matrix: TypeAlias = TransitionMatrix | IntervalMatrix
Known: TypeAlias = Correlation | ArrayLike | Sequence[Matrix | ArrayLike] | None
"""Arguments that are accepted as a correlation."""

STATIONARY_TOLERANCE = 1e-12
"""Relative distance per entry within which a distribution is the chain's stationary one: rounding, not movement."""


APART = 0.05
"""Total variation of stationary distributions, and difference of entries, from which on they contradict each other: more than
what a few hundred observed transitions leave open."""


@dataclass(frozen=True, slots=True)
class Adversary:
    """An adversary who targets one user and knows that user's temporal correlations.

    Parameters
    ----------
    backward : TransitionMatrix, IntervalMatrix, sequence of them, array_like of shape (n, n) or (T - 1, n, n), Periodic, None
        ``Pr(l[t-1] | l[t])``: row = the state now, column = the state before. A sequence has one matrix per
        transition: element k (from 0) relates time k + 1 (rows) to time k (columns), so T - 1 of them serve T steps.
        With `Periodic` it depends on the clock, for any number of steps. With an `IntervalMatrix` leakage is an
        upper bound for every matrix of the set. None: past releases add no leakage.
    forward : TransitionMatrix, IntervalMatrix, sequence of them, array_like of shape (n, n) or (T - 1, n, n), Periodic, None
        ``Pr(l[t+1] | l[t])``: row = the state now, column = the state after. Element k relates time k (rows) to
        time k + 1 (columns). None: later releases add no leakage.
    name : str, optional
        Name of the targeted user, for reports.

    Raises
    ------
    StateError
        The matrices do not name the same states in the same order.
    InputError
        The sequences differ in length, the clocks differ in period or phase, or an element is not a matrix.

    Notes
    -----
    Swapped matrices cannot be detected: those of a stationary chain are those of the same chain with time reversed.
    `contradiction` reports matrices that are not the two directions of one stationary chain.

    Examples
    --------
    >>> Adversary(forward=TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])).states
    ('0', '1')
    """

    backward: Correlation
    forward: Correlation
    name: str | None

    def __init__(
        self,
        backward: Known = None,
        forward: Known = None,
        *,
        name: str | None = None,
    ) -> None:
        past, future = _correlation(backward, "backward"), _correlation(forward, "forward")
        assign(self, backward=past, forward=future, name=name)
        matrices = self.matrices
        for matrix in matrices[1:]:
            require_same_states(matrices[0].states, matrix.states, what="another matrix of the same adversary")
        lengths = {one.n_steps - 1 for one in self.directions if one.n_steps is not None}
        if len(lengths) > 1:
            raise InputError(f"backward and forward sequences must be equally long, got {sorted(lengths)} matrices")
        clocks = {(one.period, one.kind) for one in self.directions if one.period is not None}
        if len(clocks) > 1 or (clocks and lengths):
            raise InputError(
                "expected one clock for both directions: matrices of the same period that begin at the same phase, and no "
                "sequence for a number of steps beside them"
            )

    @classmethod
    def from_forward(
        cls,
        forward: Known,
        *,
        initial: ArrayLike | None = None,
        horizon: int | None = None,
        name: str | None = None,
    ) -> Adversary:
        """The adversary who knows the initial distribution and the forward matrices; Bayes' rule gives the backward ones.

        Backward matrices vary with time unless `initial` is stationary under a constant `forward`.

        Parameters
        ----------
        forward : TransitionMatrix or array_like of shape (n, n), sequence of T - 1 of them, or Periodic
        initial : array_like, shape (n,), optional
            Distribution of the first state. Default: the stationary one of a constant or periodic `forward`.
        horizon : int, optional
            Number of steps T. Needed when `forward` is constant or periodic and `initial` is not stationary.

        Raises
        ------
        MatrixError
            A state has probability 0 at some step, so that the past given this state is undefined.
        InputError
            `horizon` is missing or contradicts the length of `forward`.

        Examples
        --------
        >>> chain = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
        >>> adversary = Adversary.from_forward(chain, initial=[0.5, 0.5], horizon=4)
        >>> len(adversary.backward.matrices), adversary.n_steps
        (3, 4)
        """
        given = _correlation(forward, "forward")
        if not given:
            raise InputError("expected a forward matrix, a sequence of them or Periodic, got None")
        period, known = given.period or 1, tuple(map(exactly_known, given.matrices))
        if given.n_steps is not None:
            if initial is None:
                raise InputError(
                    "expected the distribution of the first state (initial=...) of a chain that varies with time"
                )
            if horizon is not None and horizon != given.n_steps:
                raise InputError(f"{len(known)} forward matrices serve {given.n_steps} steps, but horizon is {horizon}")
            return cls(_backward(known, distribution(initial, known[0].states)), given, name=name)
        chain = [exactly_known(given.at(phase)) for phase in range(period)]
        cycle = reduce(TransitionMatrix.__matmul__, chain)
        marginal = distribution(cycle.stationary_distribution() if initial is None else initial, cycle.states)
        if _is_stationary(marginal, cycle):
            turned = _backward(chain, marginal)
            if given.is_constant:
                return cls(turned[0], given, name=name)
            first = given.phase  # type: ignore[attr-defined]
            return cls(Periodic(turned[-first:] + turned[:-first], phase=first), given, name=name)
        if horizon is None:
            raise InputError(
                "the initial distribution is not stationary, so the backward matrix changes with every step: "
                "give horizon=T, or leave the initial distribution out"
            )
        sequence = given.between(0, whole_number(horizon, "horizon", least=2) - 1)
        steps = [exactly_known(given.at(step)) for step in range(horizon - 1)]
        return cls(_backward(steps, marginal), given if given.is_constant else sequence, name=name)

    def _repr_html_(self) -> str:
        """Both directions, for notebooks: a matrix as a table, whatever else it is as its words."""
        known = {"backward": self.backward, "forward": self.forward}
        parts = [
            one._repr_html_()
            if isinstance(one, TransitionMatrix)
            else summary("", {"": repr(one) if one else "unknown"})
            for one in known.values()
        ]
        boxes = "".join(f"<div><em>{side}</em>{part}</div>" for side, part in zip(known, parts, strict=True))
        return f'<div style="display: flex; flex-wrap: wrap; gap: 2em">{boxes}</div>'

    @property
    def is_lifted(self) -> bool:
        """Whether states are hidden ones, and leakage is about what they show (`LiftedAdversary`)."""
        return False

    @property
    def shown(self) -> Adversary:
        """The adversary who knows the transitions of states that outputs show alone: itself, unless states are hidden."""
        return self

    def document(self) -> dict[str, Any]:
        """Both directions as JSON values, for `adversary_from`; without the name."""
        return {"backward": self.backward.document(), "forward": self.forward.document()}

    def digest(self, salt: str = "") -> str:
        """SHA-256 of what the adversary knows, after `salt`, as hexadecimal digits; without the name."""
        whole, known = hashlib.sha256(salt.encode("ascii")), dict[int, bytes]()
        for direction in self.directions:
            whole.update(f"|{direction.kind} {len(direction.matrices)}".encode("ascii"))
            for matrix in direction.matrices:
                if id(matrix) not in known:  # a clock over years has few matrices
                    own = hashlib.sha256()
                    matrix.update_digest(own)
                    known[id(matrix)] = own.digest()
                whole.update(known[id(matrix)])
        self.update_digest(whole)
        return whole.hexdigest()

    def update_digest(self, digest: Any) -> None:
        """Add to a hash what identifies the adversary beside the matrices: nothing."""

    @property
    def directions(self) -> tuple[Correlation, Correlation]:
        """The backward and the forward correlation."""
        return self.backward, self.forward

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """All matrices the adversary knows, backward ones first."""
        return self.backward.matrices + self.forward.matrices

    @property
    def is_uncertain(self) -> bool:
        """Whether some matrix is known up to intervals only, so that leakage is an upper bound for the whole set."""
        return any(matrix.is_set for matrix in self.matrices)

    @property
    def is_constant(self) -> bool:
        """Whether each direction is one matrix that is known exactly, or unknown."""
        return all(one.is_constant for one in self.directions) and not self.is_uncertain

    @property
    def is_interchangeable(self) -> bool:
        """Whether there are two states, and exchanging them changes nothing: the paper's bound is then exact (Theory, 10)."""
        if not self.is_constant or self.is_lifted:
            return False
        known = [matrix.dense() for matrix in self.matrices if isinstance(matrix, TransitionMatrix)]
        return all(len(rows) == 2 and np.array_equal(rows, rows[::-1, ::-1]) for rows in known)

    @property
    def contradiction(self) -> str | None:
        """Reason why the two matrices cannot belong to one stationary chain; None if they can or if this is unknown.

        A process that is not stationary may have such matrices too. Matrices that were swapped do not contradict each other. Of
        sets this is known where they were estimated: the shares of states in the traces change.
        """
        backward, forward = (one.at(0) if one.is_constant else None for one in self.directions)
        if isinstance(backward, IntervalMatrix):
            return backward.provenance.warning
        if not isinstance(backward, TransitionMatrix) or not isinstance(forward, TransitionMatrix):
            return None
        try:
            past, future = (matrix.stationary_distribution() for matrix in (backward, forward))
            apart = np.abs(past - future)
            if apart.sum() > 2.0 * APART:
                state = int(apart.argmax())
                return (
                    "the backward and the forward matrix are not those of one stationary chain: state "
                    f"{forward.states[state]!r} has the share {past[state]:.3g} under the backward one and "
                    f"{future[state]:.3g} under the forward one. Unless the process begins and ends differently, check that "
                    "both are from the same data, with the given state in rows"
                )
            differing = np.abs(forward.reversed(future).dense() - backward.dense())
        except MatrixError:  # several closed classes, or states that are left for good
            return None
        if backward != forward:
            moved = 0.5 * float(future @ differing.sum(axis=1))  # total variation of pairs of successive states
            if moved <= APART:
                return None
            return (
                f"the backward and the forward matrix are not those of one stationary chain: {moved:.0%} of all pairs of "
                "successive states would differ. Unless the process begins and ends differently, check that both are from "
                "the same data, with the given state in rows; Adversary.from_forward(matrix) computes the backward one"
            )
        if differing.max() <= APART:
            return None
        return (
            "the backward and the forward matrix are the same one, and a stationary chain with this forward matrix has another "
            "backward matrix: Adversary.from_forward(matrix) computes it"
        )

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
        """Number of steps T that the sequences of matrices cover; None if every matrix is constant."""
        return next((one.n_steps for one in self.directions if one.n_steps is not None), None)

    @property
    def period(self) -> int | None:
        """Number of phases after which matrices repeat; None if they do not depend on a clock."""
        return next((one.period for one in self.directions if one.period is not None), None)

    def changed(self, step: int, adversary: Adversary) -> Adversary:
        """Return the adversary with another correlation from a step on, under the same name.

        The matrices of a step are those that are valid at it: the backward one relates its state to the one before, the forward
        one to the next. So the last step before a change has its old forward matrix, and the first one after it the new
        backward matrix.

        Raises
        ------
        InputError
            Matrices that vary with time, that are sets, for other states, or known in other directions.

        Examples
        --------
        >>> calm, busy = (TransitionMatrix([[p, 1.0 - p], [1.0 - p, p]]) for p in (0.6, 0.9))
        >>> whole = Adversary(calm, calm).changed(2, Adversary(busy, busy)).between(0, 4)
        >>> [matrix is busy for matrix in whole.backward.matrices], [matrix is busy for matrix in whole.forward.matrices]
        ([False, True, True], [False, False, True])
        """
        if self.n_steps is not None or self.period is not None or self.is_uncertain or not adversary.is_constant:
            raise InputError(
                "expected constant matrices before and after a change, known exactly: a sequence or a clock determines already "
                "how the correlation changes, and for sets of matrices there is no exact leakage"
            )
        if self.is_lifted or adversary.is_lifted:
            raise InputError(
                "a chain with a longer memory cannot be adopted during a release: begin another release, with a plan for it"
            )
        for side, before, now in zip(("backward", "forward"), self.directions, adversary.directions, strict=True):
            if bool(before) != bool(now):
                raise InputError(
                    f"expected the same directions as before, but the {side} correlation was "
                    f"{'known' if before else 'unknown'} and is now {'known' if now else 'unknown'}; where nothing is known "
                    "in a direction, give a matrix with equal rows"
                )
        if self.states is not None and adversary.states is not None:
            require_same_states(self.states, adversary.states, what="the new correlation")
        backward, forward = (
            before.changed(max(first, 0), now.matrices[0]) if before else before
            for before, now, first in zip(self.directions, adversary.directions, (step - 1, step), strict=True)
        )
        return Adversary(backward, forward, name=self.name)

    @property
    def current(self) -> Adversary:
        """The adversary with the matrices after the last change alone."""
        return self._turned(lambda one: one.current)

    def between(self, first: int, n_steps: int) -> Adversary:
        """The adversary of `n_steps` steps from step `first` on, with the matrices of the transitions between them."""
        return self._turned(lambda one: one.between(first, first + n_steps - 1))

    def over(self, n_steps: int) -> Adversary:
        """The adversary of a release of `n_steps` steps, with one matrix per transition unless matrices are constant."""
        return self._turned(lambda one: one.over(n_steps))

    def _turned(self, change: Callable[[Correlation], Correlation]) -> Adversary:
        is_same = all(one.is_constant for one in self.directions)
        return self if is_same else Adversary(*map(change, self.directions), name=self.name)


def _backward(steps: Sequence[TransitionMatrix], marginal: FloatArray) -> tuple[TransitionMatrix, ...]:
    """The backward matrix of each transition, from the distribution of the first state, by Bayes' rule."""
    turned = []
    for matrix in steps:
        turned.append(matrix.reversed(marginal))
        marginal = np.asarray(marginal @ matrix.probabilities)
        marginal = marginal / marginal.sum()
    return tuple(turned)


def exactly_known(matrix: Matrix | None) -> TransitionMatrix:
    """The matrix, if it is known exactly; `InputError` for intervals."""
    if not isinstance(matrix, TransitionMatrix):
        raise InputError(
            "expected a matrix that is known exactly, got a set of matrices (an IntervalMatrix, or the model 'confidence'): "
            "for sets there are temporal_leakage, leakage_supremum and plan_budget with delta = 0; or take one matrix of the "
            "set, such as matrix.central()"
        )
    return matrix


def _is_stationary(marginal: FloatArray, chain: TransitionMatrix) -> bool:
    """Whether `marginal` is stationary. A small change in one step is not enough: it could add up."""
    if not np.allclose(marginal @ chain.probabilities, marginal, rtol=STATIONARY_TOLERANCE, atol=0.0):
        return False
    try:
        return np.allclose(marginal, chain.stationary_distribution(), rtol=STATIONARY_TOLERANCE, atol=0.0)
    except MatrixError:  # several closed classes: many stationary distributions, and this one must stay put exactly
        return np.array_equal(marginal @ chain.probabilities, marginal)


def _is_table(value: object) -> bool:
    """Whether a value is an array or a data frame of two dimensions."""
    return not isinstance(value, Correlation | str) and np.ndim(value) == 2  # type: ignore[arg-type]


def _correlation(value: Known, which: str) -> Correlation:
    if value is None:
        return NoCorrelation()
    if isinstance(value, Correlation):
        return value
    if _is_table(value):
        return TransitionMatrix(value)
    several = isinstance(value, np.ndarray | Sequence | Iterator) and not isinstance(value, str)
    given: tuple[Any, ...] = tuple(value) if several and getattr(value, "ndim", 1) else (value,)  # type: ignore[arg-type]
    matrices = tuple(TransitionMatrix(one) if _is_table(one) else one for one in given)
    for position, matrix in enumerate(matrices):
        if not isinstance(matrix, Constant):
            raise InputError(
                f"expected {which} to be a TransitionMatrix (or an IntervalMatrix), a sequence of them, Periodic or None, got "
                f"{type(matrix).__name__} (item {position})"
            )
    if not matrices:
        raise InputError(f"the {which} sequence is empty; it needs one matrix per transition, or None")
    return PerStep(matrices)
