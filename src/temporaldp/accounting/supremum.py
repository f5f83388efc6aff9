"""The level that leakage never exceeds, however long the release goes on."""

from __future__ import annotations

from dataclasses import dataclass

from temporaldp.accounting.population import Adversaries, named
from temporaldp.correlation import TransitionMatrix
from temporaldp.correlation.adversary import Correlation
from temporaldp.errors import InputError
from temporaldp.leakage.profile import positive


@dataclass(frozen=True, slots=True)
class LeakageSupremum:
    """Suprema over all horizons of BPL, FPL and TPL under a constant budget, in nats; ``inf`` where there is none.

    Parameters
    ----------
    epsilon : float
        Budget of every step.
    backward, forward, temporal : float
        Upper bounds at every step of every horizon, and approached as the horizon grows. With several users, each is the
        largest over the users.
    worst_user : str or None
        Who has the largest temporal supremum.
    """

    epsilon: float
    backward: float
    forward: float
    temporal: float
    worst_user: str | None = None

    @property
    def worst(self) -> float:
        """The temporal supremum: the alpha for which the release is alpha-DP_T for ever."""
        return self.temporal


def leakage_supremum(adversary: Adversaries, *, epsilon: float) -> LeakageSupremum:
    """Suprema of the leakage when every step spends epsilon, for ever (Theorem 5 of the paper, with `<` for its `<=`).

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        With constant matrices.
    epsilon : float, > 0
        In nats.

    Raises
    ------
    BudgetError
        epsilon is not positive and finite.
    InputError
        An adversary's matrices vary with time: nothing is known of the steps beyond them.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix
    >>> adversary = Adversary(backward=TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]))
    >>> round(leakage_supremum(adversary, epsilon=0.1).backward, 4), leakage_supremum(adversary, epsilon=0.3).backward
    (0.6459, inf)
    """
    budget = positive(epsilon, "epsilon")
    found = [(name, _limit(one.backward, budget), _limit(one.forward, budget)) for name, one in named(adversary)]
    worst_user, past, future = max(found, key=lambda entry: entry[1] + entry[2])
    return LeakageSupremum(
        epsilon=budget,
        backward=max(entry[1] for entry in found),
        forward=max(entry[2] for entry in found),
        temporal=past + (future - budget),
        worst_user=worst_user,
    )


def _limit(correlation: Correlation, epsilon: float) -> float:
    if correlation is None:
        return epsilon
    if not isinstance(correlation, TransitionMatrix):
        raise InputError(
            f"the supremum needs constant matrices, got a sequence of {len(correlation)}; nothing is known of later steps. "
            "Use temporal_leakage for the steps that the sequence covers"
        )
    return correlation.leakage_profile().supremum(epsilon=epsilon)
