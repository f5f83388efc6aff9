"""Leakage under a longer memory: what observations attain, by coordinate ascent, below the bound of the accounting."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.display import bound, number
from temporaldp.base.values import BoolArray, FloatArray, IntArray, compared_by_value
from temporaldp.core.accounting import temporal_leakage
from temporaldp.core.correlation.lifted_chain import LiftedChain


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LiftedLeakage:
    """Temporal leakage under a longer memory, in nats.

    Parameters
    ----------
    epsilons : array, shape (T,)
    temporal : array, shape (T,)
        Upper bounds of TPL.
    attained : float
        Leakage of an observation at the step `worst_time`: a lower bound of the largest TPL.
    pair : tuple of two str
        The two states that the observation distinguishes.
    """

    epsilons: FloatArray
    temporal: FloatArray
    attained: float
    pair: tuple[str, str]

    @property
    def worst_time(self) -> int:
        """Index (from 0) of the first step with the largest upper bound."""
        return int(np.argmax(self.temporal))

    @property
    def worst(self) -> float:
        """Largest upper bound, in nats."""
        return float(self.temporal.max())

    @property
    def gap(self) -> float:
        """Distance between the upper bound and the attained leakage, in nats."""
        return self.worst - self.attained

    def __repr__(self) -> str:
        low = number(self.attained, down=True, digits=6)
        return f"LiftedLeakage({len(self.temporal)} steps, from {low} to {bound(self.worst)} nats)"


def lifted_leakage(chain: LiftedChain, *, epsilons: ArrayLike) -> LiftedLeakage:
    """Bound the temporal privacy leakage for an adversary whose model of states has a longer memory, in nats.

    The upper bound is `temporal_leakage` of the chain; the lower bound is by coordinate ascent over observations (Theory,
    section 13).

    Parameters
    ----------
    chain : LiftedChain
    epsilons : array_like, shape (T,)
        Privacy loss of each release on its own, in nats, >= 0.

    Examples
    --------
    >>> from temporaldp import load_sample
    >>> from temporaldp.data.tables import estimate_words
    >>> found = lifted_leakage(estimate_words(load_sample(), order=2), epsilons=[0.1] * 5)
    >>> bool(found.attained <= found.worst <= 1.1 * found.attained)
    True
    """
    series = temporal_leakage(chain, epsilons)
    worst, spent = series.worst_time, series.epsilons
    assert series.evidence is not None
    bounds = series.evidence.metric(worst) - spent[worst]
    best, pair = _ascent(chain, spent, worst, bounds)
    return LiftedLeakage(spent, series.temporal, best, (chain.states[pair[0]], chain.states[pair[1]]))


def _ascent(chain: LiftedChain, spent: FloatArray, t: int, bounds: FloatArray) -> tuple[float, tuple[int, int]]:
    """Return the largest leakage about two states at step t that coordinate ascent finds, and these states.

    `bounds`, shape (n, n), are upper bounds of each pair's incoming leakage: pairs that cannot leak more are left out.
    """
    past = _Side(chain.backward.dense(), chain.labels, spent[:t][::-1])
    future = _Side(chain.forward.dense(), chain.labels, spent[t + 1 :])
    best, pair = -1.0, (0, 0)
    for i, j in sorted(itertools.permutations(range(len(chain.states)), 2), key=lambda one: -bounds[one]):
        if bounds[i, j] * (1.0 + 1e-9) < best:  # by more than the rounding of both
            break
        found = _ascend(past, future, chain.shares[[i, j]])
        if found > best:
            best, pair = found, (i, j)
    return best + float(spent[t]), pair


class _Side:
    """Past or future of a step: outputs by increasing distance, and the chain in this direction."""

    def __init__(self, rows: FloatArray, labels: IntArray, spent: FloatArray) -> None:
        self.rows, self.labels, self.lifts = rows, labels, np.exp(spent)
        self.shown = np.eye(int(labels.max()) + 1)[labels]  # from hidden states to states, shape (m, n)

    def likelihoods(self, high: BoolArray) -> list[FloatArray]:
        """Return the likelihoods of the outputs from each distance on, given the hidden state one step nearer."""
        x = [np.ones(len(self.rows))]
        for lift, raised in zip(self.lifts[::-1], high[::-1], strict=True):
            factors = np.where(raised, lift, 1.0)[self.labels]
            x.append(self.rows @ (factors * x[-1]))
        return x[::-1]

    def improve(self, high: BoolArray, weights: FloatArray) -> float:
        """Sweep once from near to far and update `high`; `weights` (2, m) are those of N and D at the step itself.

        Returns the ratio N / D that is reached.
        """
        x = self.likelihoods(high)
        ratio = float((weights[0] @ x[0]) / (weights[1] @ x[0]))
        for s, lift in enumerate(self.lifts):
            weights = weights @ self.rows
            alpha, beta = (weights * x[s + 1]) @ self.shown
            ratio, high[s] = _best_set(alpha, beta, lift, ratio)
            weights = weights * np.where(high[s], lift, 1.0)[self.labels]
            weights /= weights.max()
        return ratio


def _best_set(alpha: FloatArray, beta: FloatArray, lift: float, ratio: float) -> tuple[float, BoolArray]:
    """Return the set of high states that maximizes a ratio of two linear functions: a threshold, by Dinkelbach."""
    while True:
        raised = alpha > ratio * beta
        factors = np.where(raised, lift, 1.0)
        ratio, before = float((alpha @ factors) / (beta @ factors)), ratio
        if ratio <= before:
            return ratio, raised


def _ascend(past: _Side, future: _Side, shares: FloatArray) -> float:
    """Alternate sweeps over past and future."""
    high = [np.zeros((len(side.lifts), side.shown.shape[1]), dtype=bool) for side in (past, future)]
    best = 0.0
    for _ in range(30):  # sweeps over all steps, three to six being usual
        past.improve(high[0], shares * future.likelihoods(high[1])[0])
        found = float(np.log(future.improve(high[1], shares * past.likelihoods(high[0])[0])))
        best, gained = max(best, found), found - best
        if gained <= 1e-9 * best:
            break
    return best
