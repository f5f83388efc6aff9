"""What arrives at each step through the correlation: one recursion for every user, all users at once.

``arrived_1 = 0``, ``arrived_t = L_t(arrived_{t-1} + e_{t-1})``, with the loss L_t of the transition into step t.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.paper.scalar import ScalarLoss
from temporaldp.correlation.adversary import Matrix
from temporaldp.correlation.protocol import Correlation
from temporaldp.correlation.transition import know_profiles
from temporaldp.kernels.kernels import chosen_kernels, spread
from temporaldp.kernels.profile import LeakageProfile

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
    losses = [ScalarLoss.of(profile) for profile in profiles]
    for user in range(n_users):
        _carry(losses, which[user].tolist(), spent.tolist(), arrived[user])
    return arrived


def _carry(
    losses: list[ScalarLoss],
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
            value = losses[number](incoming) if number >= 0 else 0.0
        before = (number, incoming)
        arrived[t] = value


def arrivals_of_users(correlations: Sequence[Correlation], spent: FloatArray) -> FloatArray:
    """What arrives at every step of every user, shape (users, T), through the correlations of one direction."""
    numbers: dict[int, int] = {}
    matrices: list[Matrix] = []

    def number(matrix: Matrix | None) -> int:
        if matrix is None:
            return -1
        if id(matrix) not in numbers:
            numbers[id(matrix)] = len(matrices)
            matrices.append(matrix)
        return numbers[id(matrix)]

    n_transitions = len(spent) - 1
    if not all(correlation.is_constant for correlation in correlations):
        each = [[number(c.at(k)) for k in range(n_transitions)] for c in correlations]
        which = np.array(each, dtype=np.int64)
    else:
        one = np.array([number(c.at(0)) for c in correlations], dtype=np.int64)
        which = np.broadcast_to(one[:, None], (len(correlations), n_transitions))
    if n_transitions:
        know_profiles(matrices)
    profiles = [matrix.leakage_profile() for matrix in matrices] if n_transitions else []
    return arrivals(profiles, which, np.ascontiguousarray(spent))
