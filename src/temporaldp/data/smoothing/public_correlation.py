"""Correlations that a publication may depend on: public ones, and those learned with differential privacy."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.names import require_same_states, require_unnamed
from temporaldp.base.values import assign, compared_by_value, real_array, refuse
from temporaldp.core.correlation import Adversary, Provenance, TransitionMatrix
from temporaldp.core.correlation.adversary import Known, exactly_known
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.data.tables import Traces, estimate_transition_matrix

WHERE_FROM = (
    "learn it from public or historical traces (PublicCorrelation.from_history, --history), or with differential privacy "
    "(`temporaldp learn`), which pays for it"
)


@compared_by_value
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class PublicCorrelation:
    """A correlation from a source that is declared public, or learned with differential privacy.

    What is published with it is post-processing and costs no privacy. A correlation that was learned from the protected traces
    would reveal information about them outside of the guarantee, and is refused unless its source is misstated.

    Parameters
    ----------
    forward : TransitionMatrix, sequence of T - 1 of them, or Periodic
        ``Pr(l[t+1] | l[t])``: row = the state now, column = the state after. A sequence has one matrix per transition. Of an
        `IntervalMatrix`, as from `learn_correlation`, the central matrix is taken; the releases determine its error.
    initial : array of n whole numbers, optional
        Number of other people who began in each state, where that is public and the release begins alike: the first counts are
        then estimated from it too. Default: unknown.
    provenance : str or Provenance
        Description of the source. The `Provenance` of what was estimated from the protected traces is refused, unless it was
        learned with differential privacy.

    Raises
    ------
    InputError
        It comes from the protected traces, or its origin is not stated.

    Examples
    --------
    >>> PublicCorrelation(TransitionMatrix([[0.9, 0.1], [0.2, 0.8]]), provenance="a survey of 2019")
    PublicCorrelation(2 states, a survey of 2019)
    """

    forward: Correlation
    provenance: Provenance
    initial: tuple[float, ...] | None

    def __init__(
        self,
        forward: Known,
        *,
        provenance: str | Provenance,
        initial: ArrayLike | None = None,
    ) -> None:
        chain = Adversary(forward=forward).forward
        if not chain:
            raise InputError("expected a forward matrix, or one for each transition, got None")
        assign(self, forward=chain.mapped(lambda matrix: matrix.central()))
        known = _public(provenance)
        require_unnamed(initial, "initial counts")
        began = None if initial is None else real_array(initial, "initial counts", shape=(len(self.states),), ge=0.0)
        if began is not None and not began.any():
            raise InputError("expected initial counts that are not all 0")
        assign(self, provenance=known, initial=None if began is None else tuple(began.tolist()))

    @classmethod
    def from_history(
        cls,
        history: Traces,
        *,
        prior: float | None = None,
        same_start: bool = False,
        name: str = "a history",
    ) -> PublicCorrelation:
        """Estimate from traces that the release does not protect: public ones, or those of other people or times.

        Parameters
        ----------
        history : Trajectories or other traces
        prior : float, optional
            Number added to the count of every transition. Default: one per row, spread evenly, so that none is impossible.
        same_start : bool
            Whether the release begins as the history does (a night, a year, a course), so that the history's first counts say
            something about the release's.
        name : str
            Description of the traces.
        """
        added = 1.0 / history.n_states if prior is None else prior
        learned = estimate_transition_matrix(history, direction="forward", prior=added)
        found = f"Learned from {name}: {history.n_users} people, {history.n_times} steps, prior {added:g} per cell."
        initial = history.histogram()[0] if same_start else None
        return cls(learned, provenance=Provenance("history", found, step=history.step), initial=initial)

    @classmethod
    def of(
        cls, adversary: Adversary, provenance: str | Provenance, *, initial: ArrayLike | None = None
    ) -> PublicCorrelation:
        """Return an adversary's forward correlation, or the constant backward one reversed.

        Parameters
        ----------
        adversary : Adversary
        provenance : str or Provenance
        initial : array of n whole numbers, optional
            Number of other people who began in each state, where the release begins alike.

        Raises
        ------
        InputError
            Neither is known, or the source is not public.
        MatrixError
            The backward matrix has no stationary distribution that reaches every state.
        """
        if adversary.forward:
            return cls(adversary.forward, provenance=provenance, initial=initial)
        if not (adversary.backward and adversary.backward.is_constant):
            raise InputError("expected an adversary with a forward correlation, or with one constant backward matrix")
        backward = adversary.backward.matrices[0].central()
        reversed_chain = backward.reversed(backward.stationary_distribution())
        return cls(reversed_chain, provenance=provenance, initial=initial)

    @property
    def states(self) -> tuple[str, ...]:
        """The states that all matrices name."""
        states: tuple[str, ...] = self.forward.matrices[0].states
        return states

    def matrix(self, transition: int) -> TransitionMatrix:
        """The matrix of one transition (from 0).

        Raises
        ------
        BudgetError
            There are matrices for fewer steps.
        """
        if self.forward.n_steps is not None and transition >= self.forward.n_steps - 1:
            raise BudgetError(
                f"the correlation has {self.forward.n_steps - 1} matrices, for {self.forward.n_steps} steps, but step "
                f"{transition + 2} was asked for; give one matrix per transition, or a constant one"
            )
        return exactly_known(self.forward.at(transition))

    def reordered(self, states: tuple[str, ...]) -> PublicCorrelation:
        """Return the correlation with its states in this order, which must name the same states."""
        if set(states) != set(self.states):
            require_same_states(self.states, states, what="the released histograms")
        order = [self.states.index(state) for state in states]
        initial = None if self.initial is None else [self.initial[k] for k in order]
        ordered = self.forward.mapped(lambda matrix: matrix.reordered(states))
        return PublicCorrelation(ordered, provenance=self.provenance, initial=initial)

    def __repr__(self) -> str:
        return f"PublicCorrelation({len(self.states)} states, {self.provenance.sentence})"


def _public(provenance: str | Provenance) -> Provenance:
    found = Provenance("matrices", provenance) if isinstance(provenance, str) else provenance
    if not isinstance(found, Provenance):
        raise InputError(f"expected a source in words, or a Provenance, got {type(provenance).__name__}")
    refuse(
        (
            found.source == "protected",
            InputError(
                "expected a correlation that is public or learned with differential privacy, got one that was learned from "
                "the protected traces: counts smoothed by it would reveal information about them outside of the guarantee. "
                f"Instead, {WHERE_FROM}"
            ),
        ),
        (
            not found.sentence.strip(),
            InputError(f"the origin of the correlation is not stated: give provenance=..., or {WHERE_FROM}"),
        ),
    )
    return found


def require_public(correlation: object) -> PublicCorrelation:
    """The correlation, if it is public; the `InputError` for others describes how to make one."""
    if isinstance(correlation, PublicCorrelation):
        return correlation
    raise InputError(
        f"expected a PublicCorrelation, got {type(correlation).__name__}, which does not say where it comes from: "
        f"PublicCorrelation(matrix, provenance=...) for what is public; otherwise {WHERE_FROM}"
    )
