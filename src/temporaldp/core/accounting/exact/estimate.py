"""About how long the exact leakage takes, to be reported before it is computed: mostly within a factor of three.

To compare all pairs of states at one step takes time in proportion to the cube of their number. The further rows are apart,
the longer the correlation remembers: more steps differ from one another, and rollouts are longer. Constants were fitted to
random matrices of 10 to 500 states over 8 to 1,000 steps, on one core.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from temporaldp.core.correlation import Adversary, TransitionMatrix

BUDGETS, PLANS = 3, 25
"""Suprema that take as long as a sustainable budget, and series that take as long as a plan."""

CUBE, STEP, STATE = 0.02, 6e-4, 0.03
"""Seconds to compare the pairs of 100 states at one step, of a step by itself, and over an infinite horizon of a state whose
correlation remembers twenty steps."""


SAMPLE = 32
"""Users, and rows of a matrix, that stand for all of them."""


def seconds_of_series(users: Sequence[Adversary], n_steps: int, *, alike: bool) -> float:
    """About how long the leakage of every step takes; `alike` if all steps spend the same."""
    # Share of a step's own time that is left for each user where there are many
    own = STEP * (1.0 if len(users) == 1 else 0.1)

    def of_user(known: list[tuple[float, float]]) -> float:
        found = 0.0
        for cube, memory in known:
            if alike and len(known) == 1:  # all steps of one direction are compared together
                steps = min(n_steps, memory**2 / 2.0)
                steps *= max(1.0, steps / 32.0)
            else:
                # Steps whose answer is shared with later ones at the earliest
                steps = min(n_steps, 32 + memory**2) if alike else n_steps
                steps *= 0.7 * memory**0.45
            found += CUBE * cube * steps + own * n_steps
        return found

    return _of_all(users, [of_user(known) for known in _directions(users)])


def seconds_of_supremum(users: Sequence[Adversary]) -> float:
    """About how long the leakage over an infinite horizon takes."""
    each = [
        sum(
            0.5 * CUBE * cube * memory + STATE * 100.0 * cube ** (1.0 / 3.0) * (memory / 20.0) ** 2
            for cube, memory in known
        )
        for known in _directions(users)
    ]
    return _of_all(users, each)


def _of_all(users: Sequence[Adversary], some: list[float]) -> float:
    return math.fsum(some) * len(users) / max(len(some), 1)


def _directions(users: Sequence[Adversary]) -> Iterator[list[tuple[float, float]]]:
    """Of each direction of some users, the cube of its number of states in hundreds, and about how many steps it remembers."""
    for user in users[:: max(1, len(users) // SAMPLE)][:SAMPLE]:
        sides = user.directions[: 1 if user.backward == user.forward else 2]  # what is alike is computed once
        known = (one.matrices[0] for one in sides if one.matrices)
        yield [_direction(one) for one in known if isinstance(one, TransitionMatrix)]


def _direction(matrix: TransitionMatrix) -> tuple[float, float]:
    n = matrix.n_states
    entries = matrix.probabilities.size if matrix.is_sparse else n**2
    some = matrix.probabilities[np.unique(np.linspace(0, n - 1, SAMPLE).astype(int))]
    rows = some.toarray() if matrix.is_sparse else some
    apart = float(0.5 * np.abs(np.diff(rows, axis=0)).sum(axis=1).mean()) if n > 1 else 0.0
    # A step of a rollout costs some passes over its n coefficients, and a multiplication for each entry
    return (n / 100.0) ** 3 * (entries / n + 20.0) / (n + 20.0), 1.0 / max(1.0 - apart, 1e-2)
