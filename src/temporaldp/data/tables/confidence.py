"""Simultaneous confidence intervals of transition probabilities, from exact or bounded counts."""

from __future__ import annotations

import numpy as np

from temporaldp.base.errors import EstimationError
from temporaldp.base.values import FloatArray, IntArray

MOST_ENTRIES = 50_000_000
"""Entries of the backward intervals of all steps: 0.8 GB of bounds."""


def clopper_pearson(
    hits: tuple[FloatArray, FloatArray], misses: tuple[FloatArray, FloatArray], risk: float
) -> tuple[FloatArray, FloatArray]:
    """Clopper-Pearson bounds of a probability, where the numbers of hits and misses are known up to intervals.

    Clopper and Pearson (Biometrika 26, 1934): below the lower bound, this number of hits or more has a probability of less
    than ``risk / 2``; above the upper one, this number or fewer. The lower bound increases with hits and decreases with misses,
    so that the fewest hits and the most misses give a bound for all numbers between.

    Parameters
    ----------
    hits, misses : pairs of arrays
        The smallest and the largest number; equal where it is known.
    risk : float
        Probability that either bound fails, for each entry.
    """
    from scipy.special import betaincinv  # takes longer to load than the package

    (few, many), (few_misses, many_misses) = hits, misses
    with np.errstate(invalid="ignore"):
        low = np.where(few > 0.0, betaincinv(np.maximum(few, 1e-9), many_misses + 1.0, risk / 2.0), 0.0)
        high = np.where(few_misses > 0.0, betaincinv(many + 1.0, np.maximum(few_misses, 1e-9), 1.0 - risk / 2.0), 1.0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def intervals_of_counts(counts: IntArray, *, risk: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of every entry of the distribution of each row, from counts, shape (m, n) each.

    Of transitions, or of people by time and state. All bounds hold jointly, except with a probability of at most `risk`
    (Bonferroni over the entries), if what a row counts is independent: the transitions from a state given that state, as in a
    Markov chain, or people. A row without counts has the bounds 0 and 1.
    """
    known = counts.astype(np.float64)
    others = known.sum(axis=1, keepdims=True) - known
    return clopper_pearson((known, known), (others, others), risk / counts.size)


def contradicted(shares: tuple[FloatArray, FloatArray], counts: IntArray) -> bool:
    """Whether the distribution of these counts, shape (n,), is outside of bounds of the shares of states at some time."""
    pooled = np.maximum(counts, 0) / max(float(np.maximum(counts, 0).sum()), 1.0)
    return bool(((pooled < shares[0]) | (pooled > shares[1])).any())


def require_few_entries(n_times: int, n_states: int) -> None:
    """Raise `EstimationError` where backward intervals of each step would not fit in memory."""
    if (n_times - 1) * n_states**2 > MOST_ENTRIES:
        raise EstimationError(
            f"expected at most {MOST_ENTRIES:.2g} entries of backward intervals, one matrix for each step, got "
            f"{n_times - 1} steps of {n_states} states; take fewer times or states"
        )


def backward_intervals(
    forward: tuple[FloatArray, FloatArray], shares: tuple[FloatArray, FloatArray]
) -> list[tuple[FloatArray, FloatArray]]:
    """Bounds of the backward matrix of every transition, by Bayes' rule, shape (n, n) each.

    State i before state j has the weight w_i = p(i) P(i, j) and the probability ``w_i / (w_1 + ... + w_n)``, which increases
    with its own weight and decreases with the others.

    Parameters
    ----------
    forward : pair of arrays, shape (n, n)
        Bounds of P, which is the same at every step.
    shares : pair of arrays, shape (T, n)
        Bounds of p at every time.
    """
    n = shares[0].shape[1]
    require_few_entries(len(shares[0]), n)
    rounding = 8 * n * np.finfo(np.float64).eps
    found = []
    for least, most in zip(shares[0][:-1], shares[1][:-1], strict=True):
        few, many = (forward[0] * least[:, None]).T, (forward[1] * most[:, None]).T
        few_others, many_others = (np.maximum(w.sum(axis=1, keepdims=True) - w, 0.0) for w in (few, many))
        low = np.divide(few, few + many_others, out=np.zeros_like(few), where=few > 0.0)
        high = np.divide(many, many + few_others, out=np.ones_like(many), where=many > 0.0)
        # A weight that cannot be positive has no share, unless no weight can: then the row may be anything.
        high[(many == 0.0) & (few_others > 0.0)] = 0.0
        found.append((low * (1.0 - rounding), np.minimum(high * (1.0 + rounding), 1.0)))
    return found
