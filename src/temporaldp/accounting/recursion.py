"""What arrives at each step through the correlation: one recursion for every user, all users at once.

``arrived_1 = 0``, ``arrived_t = L_t(arrived_{t-1} + e_{t-1})``, with the loss L_t of the transition into step t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from temporaldp.leakage.kernels import chosen_kernels, spread
from temporaldp.leakage.profile import LeakageProfile
from temporaldp.leakage.vertex import DIRECT_LIMIT

FloatArray = NDArray[np.float64]

STEP_WORK = 50
"""Entries of a pass over pairs of rows that take as long as one step of one user, for the choice of kernels and threads."""


def arrivals(profiles: Sequence[LeakageProfile], which: NDArray[np.int64], spent: FloatArray) -> FloatArray:
    """What arrives at each of T steps for each of U users, shape (U, T), in nats.

    Parameters
    ----------
    profiles : sequence of LeakageProfile
    which : array, shape (U, T - 1)
        Number of the profile of each transition, -1 where the correlation is unknown.
    spent : array, shape (T,)
    """
    n_users, n_steps = which.shape[0], spent.size
    arrived = np.zeros((n_users, n_steps))
    if not profiles or n_steps == 1:
        return arrived
    if chosen_kernels(n_users * n_steps) == "numba":
        from temporaldp.accounting.compiled import carry

        starts = np.concatenate(([0], np.cumsum([len(profile) for profile in profiles]))).astype(np.int64)
        d = np.concatenate([profile.vertices[:, 0] for profile in profiles])
        x = np.concatenate([profile.excess for profile in profiles])
        spread(
            lambda first, last: carry(d, x, starts, which, spent, first, last, arrived),
            n_users,
            step=1,
            work=n_users * n_steps * STEP_WORK,
        )
        return arrived
    pairs = [(profile.vertices[:, 0].tolist(), profile.excess.tolist(), profile) for profile in profiles]
    for user in range(n_users):
        _carry(pairs, which[user].tolist(), spent.tolist(), arrived[user])
    return arrived


def _carry(
    profiles: list[tuple[list[float], list[float], LeakageProfile]],
    which: list[int],
    spent: list[float],
    arrived: FloatArray,
) -> None:
    """One user's arrivals, in plain Python floats: faster than arrays of one element."""
    value = 0.0
    before: tuple[int, float] = (-1, -1.0)
    for t, number in enumerate(which, start=1):
        incoming = value + spent[t - 1]
        if (number, incoming) != before:  # else the series has reached its fixed point
            value = _loss(*profiles[number], incoming) if number >= 0 else 0.0
        before = (number, incoming)
        arrived[t] = value


def _loss(d: list[float], x: list[float], profile: LeakageProfile, a: float) -> float:
    """L(a) of a profile. Vertices lie on a hull, so gains rise, then fall: binary search for the largest."""
    if not d:
        return 0.0
    if a > DIRECT_LIMIT:  # as good, and rare
        return profile.loss(a)
    left = math.exp(-a)
    low, high = 0, len(d) - 1
    while low < high:
        middle = (low + high) // 2
        rises = x[middle + 1] / (d[middle + 1] + (1.0 - d[middle + 1]) * left) > x[middle] / (
            d[middle] + (1.0 - d[middle]) * left
        )
        low, high = (middle + 1, high) if rises else (low, middle)
    return min(math.log1p(x[low] * -math.expm1(-a) / (d[low] + (1.0 - d[low]) * left)), a)
