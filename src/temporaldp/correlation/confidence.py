"""Simultaneous confidence intervals of transition probabilities, from exact or bounded counts."""

from __future__ import annotations

import numpy as np

from temporaldp.values import FloatArray, IntArray


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
    """Bounds of every entry of a transition matrix from counts of transitions, shape (n, n) each.

    All bounds hold jointly, except with a probability of at most `risk` (Bonferroni over the entries), if the transitions from
    a state are independent given that state, as in a Markov chain. A row without transitions has the bounds 0 and 1.
    """
    known = counts.astype(np.float64)
    others = known.sum(axis=1, keepdims=True) - known
    return clopper_pearson((known, known), (others, others), risk / counts.size)
