"""The exact leakage for ever of many users at once, each with constant matrices: machine code on all threads.

What is computed is what `leakage_supremum` computes of one user, to 1e-9 of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.population import (
    ENTRY_WORK,
    LARGEST_SUM,
    WORTH_COMPILING,
    are_constant_and_dense,
    numbered,
)
from temporaldp.correlation import Adversary
from temporaldp.kernels.batch import BATCHED, LeakageProfiles, compute_profiles
from temporaldp.kernels.kernels import chosen_kernels, spread
from temporaldp.kernels.vertex import vertex_supremum
from temporaldp.values import ROUNDOFF

FloatArray = NDArray[np.float64]

STEPS = 100
"""Steps after which leakage has mostly settled, for the choice of kernels and threads."""

MOST_STEPS = 1 << 12
"""Of a rollout, at most; whoever needs more is given up."""

ROUNDINGS = 8
"""Of an entry in one step, besides those of a sum in any order: of two factors, and of the rows' own last digits."""

ROUNDED = 1.0 + 1e-12
"""Raises the paper's suprema by more than their rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class LastingLeakage:
    """Both sides of everybody's supremum of TPL, shape (users,): `attained` by some horizon, `proved` for all.

    0 and inf of whoever was given up.
    """

    attained: FloatArray
    proved: FloatArray


def worth_the_lasting_kernel(users: Sequence[Adversary], epsilon: float) -> bool:
    """Whether the kernel applies and is worth loading; by the problem alone, so that numbers never depend on luck."""
    sizes = {len(one.states) for one in users if one.states is not None}
    if len(sizes) != 1 or epsilon > LARGEST_SUM:
        return False
    n = sizes.pop()
    work = len(users) * STEPS * n**3
    return (
        n <= BATCHED and work >= WORTH_COMPILING and chosen_kernels(work) == "numba" and are_constant_and_dense(users)
    )


def lasting_population(users: Sequence[Adversary], epsilon: float) -> LastingLeakage:
    """The exact leakage for ever of users for whom `worth_the_lasting_kernel` holds."""
    from temporaldp.kernels.compiled.lasting_population import lasting_population as all_users

    stack, past, future = numbered(users)
    n = stack.shape[1]
    ceilings = paper_suprema(compute_profiles(stack, tuple(map(str, range(n)))), epsilon)
    matrices = stack / stack.sum(axis=2, keepdims=True)
    proved, attained = np.empty(len(users)), np.empty(len(users))
    gamma = (n + ROUNDINGS) * ROUNDOFF
    spread(
        lambda first, last: all_users(
            matrices, ceilings, past, future, epsilon, gamma, MOST_STEPS, first, last, proved, attained
        ),
        len(users),
        step=1,
        work=len(users) * STEPS * n**3 * ENTRY_WORK,
    )
    return LastingLeakage(attained, proved)


def paper_suprema(profiles: LeakageProfiles, epsilon: float) -> FloatArray:
    """The paper's suprema of BPL of many matrices, rounded up; inf where there is none."""
    d, x, q, c = profiles.points.T
    each = vertex_supremum(d, q, x, c, np.array(epsilon))
    found = np.full(len(profiles), epsilon)
    filled = np.flatnonzero(np.diff(profiles.starts) > 0)
    if filled.size:
        found[filled] = np.maximum.reduceat(each, profiles.starts[filled])
    return found * ROUNDED
