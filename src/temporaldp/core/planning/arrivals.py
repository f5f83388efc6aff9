"""The constraints that carry leakage from one step to the next, as the optimal plan's solver sees them.

Notation
--------
e        budgets, shape (T,)
v        incoming leakage of each step through one direction of one user's correlation, shape (T,)
L_h      loss of one vertex h; ``v[target] >= L_h(e[source] + v[source])`` for every vertex and transition
d, x     the vertices' d and excess, shape (m, 1) where the matrix is constant, else (m, T - 1), padded with x = 0 (L = 0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.protocol import SIDES, constant_matrix
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.adversary import Matrix
from temporaldp.core.kernels import LeakageProfile

SMALLEST_DECAY = 1e-300
"""exp(-level) is not taken to be smaller, so that 1 / exp(-level) stays in the range of doubles."""

EARLIER, LATER = slice(None, -1), slice(1, None)


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """One direction of one user's correlation: from `source` steps to `target` steps, by the vertices (d, x).

    `initial` is the incoming leakage of the first step (backward), from releases before it.
    """

    user: int
    backward: bool
    d: FloatArray
    x: FloatArray
    initial: float = 0.0

    @property
    def source(self) -> slice:
        """The steps that leakage comes from."""
        return EARLIER if self.backward else LATER

    @property
    def target(self) -> slice:
        """The steps that leakage arrives at, one for each source."""
        return LATER if self.backward else EARLIER

    def loss(self, level: FloatArray) -> FloatArray:
        """L_h at each source's level, shape (m, T - 1)."""
        return _loss(self.d, self.x, level[None, :])

    def slopes(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivatives of L_h, shape (m, T - 1) each."""
        decay = np.maximum(np.exp(-level), SMALLEST_DECAY)[None, :]
        q = self.d + self.x
        above, below = q + (1.0 - q) * decay, self.d + (1.0 - self.d) * decay
        first = self.x * decay / (above * below)
        return first, first * (1.0 - q / above - self.d / below)

    def arrived(self, epsilons: FloatArray) -> FloatArray:
        """Incoming leakage of each step if these budgets are spent, by the recursion, shape (T,)."""
        steps = range(len(epsilons) - 1) if self.backward else range(len(epsilons) - 1, 0, -1)
        move = 1 if self.backward else -1
        found = np.zeros(len(epsilons))
        found[0 if self.backward else -1] = self.initial
        for t in steps:
            column = min(t, t + move) if self.d.shape[1] > 1 else 0
            found[t + move] = _loss(self.d[:, column], self.x[:, column], epsilons[t] + found[t]).max()
        return found


def arrivals(users: list[Adversary], alpha: float) -> list[Arrival]:
    """Return one arrival for each user and direction with non-zero incoming leakage at levels up to alpha."""
    found = []
    for index, user in enumerate(users):
        for backward, known in ((True, user.backward), (False, user.forward)):
            columns = [_relevant(matrix.leakage_profile(), alpha) for matrix in known.matrices]
            rows = max((len(d) for d, _ in columns), default=0)
            if rows == 0:
                continue
            d, x = np.full((rows, len(columns)), 0.5), np.zeros((rows, len(columns)))
            for k, (column_d, column_x) in enumerate(columns):
                d[: len(column_d), k], x[: len(column_x), k] = column_d, column_x
            found.append(Arrival(index, backward, d, x))
    return found


def _relevant(profile: LeakageProfile, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Vertices that are largest at some level in (0, alpha]: as levels rise, the tangent walks along the hull to smaller d."""
    if not len(profile):
        return np.zeros(0), np.zeros(0)
    d, x = profile.vertices[:, 0], profile.excess
    steepest = int(np.argmax(_loss(d, x, np.float64(alpha))))
    return d[steepest:], x[steepest:]


def _loss(d: FloatArray, x: FloatArray, level: FloatArray | np.float64) -> FloatArray:
    """L_h; never too high, and too low only beyond 690 nats with d = 0: a solver may relax a constraint, not invent one."""
    decay = np.maximum(np.exp(-level), SMALLEST_DECAY)
    return np.asarray(np.log1p(x * -np.expm1(-level) / (d + (1.0 - d) * decay)), dtype=np.float64)


def undominated(users: list[Adversary]) -> list[Adversary]:
    """Return the users who may leak most: no other user leaks at least as much in both directions at every level.

    Only users with constant matrices are compared; the others are all kept.
    """
    kept: list[Adversary] = []
    for user in users:
        if any(_dominates(other, user) for other in kept):
            continue
        kept = [other for other in kept if not _dominates(user, other)] + [user]
    return kept


def _dominates(one: Adversary, other: Adversary) -> bool:
    if one.n_steps is not None or other.n_steps is not None:
        return False
    return all(_covers(constant_matrix(one, side), constant_matrix(other, side)) for side in SIDES)


def _covers(above: Matrix | None, below: Matrix | None) -> bool:
    if below is None:
        return True
    if above is None:
        return len(below.leakage_profile()) == 0
    return above.leakage_profile().dominates(below.leakage_profile())
