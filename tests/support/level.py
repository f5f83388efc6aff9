"""The exact leakage of a sequence of epsilon-DP releases by the sign rule, in NumPy alone: nothing is imported from temporaldp.

Whether some observation of all steps before tells value i from j by more than a factor c is decided by w = P[i] - c P[j]:
nature makes the output of each step likely where w is positive, and w is carried one step further away. Then more than c is
reached if the sum of w at the end is positive. c is bisected, for all steps and pairs at once.
"""

from __future__ import annotations

import numpy as np

HALVINGS = 60


def worst_leakage(backward, forward, epsilons) -> float:
    """The largest temporal privacy leakage of any step, in nats; None in place of a matrix: nothing is known there."""
    epsilons = np.asarray(epsilons, float)
    if not len(epsilons):
        return 0.0
    past = arrivals(backward, epsilons)
    future = arrivals(forward, epsilons[::-1])[::-1]
    return float((past + future + epsilons[:, None]).max())


def arrivals(matrix, epsilons):
    """What arrives at each step from those before it about each pair, shape (T, pairs), in nats."""
    n_steps = len(epsilons)
    if matrix is None:
        return np.zeros((n_steps, 1))
    rows = np.asarray(matrix, float)
    i, j = np.nonzero(~np.eye(len(rows), dtype=bool))
    low = np.zeros((n_steps, len(i)))
    before = np.concatenate(([0.0], np.cumsum(epsilons)[:-1]))
    high = np.repeat(before[:, None], len(i), axis=1)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        more = _reached(rows, epsilons, rows[i][None] - np.exp(middle)[:, :, None] * rows[j][None])
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return low


def _reached(rows, epsilons, w):
    """Whether the sums are positive in the end, for w of shape (T, pairs, n) that begin one step before each step."""
    n_steps = len(epsilons)
    total = np.zeros(w.shape[:2])
    for back in range(1, n_steps):  # the step t - back, for all t that have one
        factor = np.expm1(epsilons[: n_steps - back])[:, None, None]
        now = w[back:] + factor * np.maximum(w[back:], 0.0)
        total[back] = now[0].sum(axis=-1)  # the first step of all: nothing is further away
        w = np.concatenate((w[:back], now @ rows))
    return total > 0.0
