"""Event-level epsilons of outputs that concern several steps: windows, several tables, and memoised answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import ULP, FloatArray, real_array, whole_number
from temporaldp.core.accounting.sequence import SequenceMechanism, SharedEpsilons, is_shared
from temporaldp.core.mechanisms.protocol import checked_mechanism, require_positive


@dataclass(frozen=True, slots=True)
class Windows(SequenceMechanism):
    """One output for each window of consecutive steps: rolling averages, weekly totals, monthly active users.

    The output after step t is a function of the last `length` steps up to t. A step lies in several windows if they overlap:
    its event-level epsilon is the number of windows that contain it times `epsilon` (Theory, section 20).

    Parameters
    ----------
    length : int
        Steps in a window.
    epsilon : float, > 0
        Epsilon of one output when the state of one person at one step of its window is replaced: sensitivity over scale for
        Laplace noise. A replaced state changes a histogram of totals by 2 in L1 norm, of averages by ``2 / length`` if cut
        windows are divided by `length`, too (or else leave them out, ``partial=False``), and a number of active people by 1.
    every : int
        Steps between two outputs: 1 for rolling windows, `length` for windows that do not overlap. The first output follows
        step number `every`.
    partial : bool
        Whether windows that begin before the first step are published, cut at the first step.

    Examples
    --------
    Weekly totals of 14 days:

    >>> Windows(7, epsilon=0.3, every=7).event_epsilons(14)[[0, 13]]
    array([0.3, 0.3])

    Rolling averages over 7 days, published daily: each day lies in seven of them, but for the last days.

    >>> Windows(7, epsilon=0.01).event_epsilons(30).round(2)[[0, 22, 23, 24, 29]]
    array([0.07, 0.07, 0.07, 0.06, 0.01])
    """

    length: int
    epsilon: float
    every: int = 1
    partial: bool = True

    def __post_init__(self) -> None:
        whole_number(self.length, "length", least=1)
        whole_number(self.every, "every", least=1)
        require_positive(self, "epsilon")

    def event_epsilons(self, n_steps: int) -> FloatArray:
        """The number of windows that contain each step, times the epsilon of one: shape (T,), in nats, rounded up."""
        ends = np.arange(self.every, n_steps + 1, self.every)
        starts = ends - self.length
        if not self.partial:
            ends, starts = ends[starts >= 0], starts[starts >= 0]
        changes = np.bincount(np.maximum(starts, 0), minlength=n_steps + 1)
        changes = changes - np.bincount(ends, minlength=n_steps + 1)
        windows = changes.cumsum()[:n_steps]
        found = np.where(windows > 1, windows * self.epsilon * (1.0 + ULP), windows * self.epsilon)
        return found.view(SharedEpsilons)


def event_epsilons(horizon: int, *outputs: Any) -> FloatArray:
    """Event-level epsilon of everything that is published together, at each step: the budgets that other functions take.

    The epsilon at a step bounds how much replacing one person's state at that step alone changes the probability of all
    outputs. At delta = 0 it is all that `temporal_leakage` needs, however the noise is shared between steps. `ApproximateDP`
    and chains with a longer memory refuse it unless all outputs are numbers: there, shared noise or a stored answer can
    reveal more. Epsilons of several outputs add up (Theory, section 20). An upper bound, rounded up. Only outputs until the
    horizon count: a window that ends after it is left out.

    Parameters
    ----------
    horizon : int
        Number of steps T.
    *outputs
        What is published, each of:

        - a number: an output at every step, about that step alone, with this epsilon;
        - an array of shape (T,): the same with an epsilon for each step;
        - a mechanism with a pure epsilon, such as `LaplaceNoise`: an output at every step. For a memoised answer, give the
          second randomisation, which is drawn anew for each report: `RandomizedResponse`, or an `OutputTable` with a row for
          each stored answer;
        - `Windows`, `MatrixMechanism` with Laplace noise, or another `SequenceMechanism`.

    Returns
    -------
    array, shape (T,)
        In nats.

    Raises
    ------
    BudgetError
        An epsilon is negative or not finite, or an array has another number of steps.
    InputError
        No outputs, or a mechanism that has no pure epsilon, or one that its profile contradicts.

    Examples
    --------
    Daily counts, weekly totals, and a rolling average over a week; an observer who knows how people move:

    >>> epsilons = event_epsilons(28, 0.05, Windows(7, epsilon=0.1, every=7), Windows(7, epsilon=0.01))
    >>> epsilons.round(2)[[0, 20, 27]]
    array([0.22, 0.22, 0.16])
    >>> from temporaldp import Adversary, TransitionMatrix, temporal_leakage
    >>> walk = TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
    >>> round(temporal_leakage(Adversary(walk, walk), epsilons).worst, 3)
    1.284

    A memoised answer is reported through a second randomisation with epsilon 0.5:

    >>> from temporaldp import RandomizedResponse
    >>> event_epsilons(3, RandomizedResponse(0.5))
    array([0.5, 0.5, 0.5])
    """
    n_steps = whole_number(horizon, "horizon", least=1)
    if not outputs:
        raise InputError("expected what is published: an epsilon, a mechanism or Windows, got nothing")
    total = np.zeros(n_steps)
    for output in outputs:
        each = _of_one(output, n_steps)
        total = np.where((total > 0.0) & (each > 0.0), np.nextafter(total + each, np.inf), total + each)
    # Of a mechanism, it is not known whether its answers are memoised
    may_share = any(hasattr(output, "pure_epsilon") or is_shared(output) for output in outputs)
    return total.view(SharedEpsilons) if may_share else total


def _of_one(output: Any, n_steps: int) -> FloatArray:
    """Event-level epsilons of one output or sequence of outputs, shape (T,)."""
    if isinstance(output, SequenceMechanism):
        if output.n_steps not in {None, n_steps}:
            raise BudgetError(f"expected outputs of {n_steps} steps, the horizon, got {output!r} with {output.n_steps}")
        return output.require_pure(n_steps)
    pure = checked_mechanism(output).pure_epsilon if hasattr(output, "pure_epsilon") else output
    if pure is not output and not np.isfinite(pure):
        raise InputError(f"expected mechanisms with a pure epsilon, got {output!r}, which has none without a delta")
    given = real_array(pure, "epsilons of the outputs", ge=0.0, error=BudgetError)
    if given.shape not in {(), (n_steps,)}:
        raise BudgetError(
            f"expected one epsilon, or one for each of the {n_steps} steps, got an array of shape {given.shape}"
        )
    return np.broadcast_to(given, (n_steps,))
