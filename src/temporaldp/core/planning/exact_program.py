"""The plan with the least noise by the exact leakage, as a program over a few pairs of states at each step.

Notation
--------
e        budgets, shape (T,); those of `spent` steps cannot change
g        leakage of each item (a pair of states of one user at one step), shape (m,): ``e_t + K_B + K_F``
J        derivatives of g by e, shape (m, T), sparse: only steps within the chain's memory matter

The interior-point method has the exact derivatives of the envelope theorem; the curvature of g is left out of the Newton
matrix, which keeps it positive definite. The items are found step by step: those that leak most under the last plan are added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from temporaldp.base.progress import effort_is_over, progressed
from temporaldp.base.values import BoolArray, FloatArray, IntArray
from temporaldp.core.accounting import LeakageSeries
from temporaldp.core.accounting.exact.arrivals import ordered_matrices, pair_values
from temporaldp.core.correlation import Adversary
from temporaldp.core.kernels.chain import LARGEST_EXPONENT, Chain
from temporaldp.core.kernels.observations import derivatives
from temporaldp.core.planning.interior_point import Point, minimise
from temporaldp.core.planning.optimal import POWERS, Measure

MOST_ITEM_ROUNDS = 12
"""Times that items join; three to six are usual."""


CLOSE_TO_LEVEL = 2e-7
"""Relative: a plan that leaks no more than this above the level needs no more items."""


class PairProgram:
    """The budgets of the free steps under the constraints that count so far.

    Parameters
    ----------
    users : list of Adversary
    alpha : float
    by : Measure
    free : bool array, shape (T,)
        The steps whose budgets can change.
    start : array, shape (T,)
        The budgets of the other steps.
    constraints : int array, shape (4, m)
        User, step, and the pair of states whose leakage must stay below the level; others may join.
    """

    def __init__(
        self,
        users: list[Adversary],
        alpha: float,
        by: Measure,
        free: BoolArray,
        start: FloatArray,
        constraints: IntArray,
    ) -> None:
        self.constraints, self._alpha, self._start, self._horizon = constraints, alpha, start, len(start)
        self._steps, self._weights, self._power = np.flatnonzero(free), by.weights[free], POWERS[by.objective]
        self._known = [
            [
                None if not known else ordered_matrices(known, len(start), turned=turned)
                for known, turned in ((user.backward, False), (user.forward, True))
            ]
            for user in users
        ]

    def improved(self, budgets: FloatArray, gap: float) -> FloatArray:
        """A local minimum under the constraints, looked for from `budgets` of all steps, which satisfy them.

        `gap` is the relative loss that the last barrier may cost.
        """
        now = Point(budgets[self._steps], [], np.full((self.constraints.shape[1], 2), np.expm1(0.25 * self._alpha)))
        # Shares of the budgets from which the method may start, so that no constraint is tight
        for share in 0.97 * 0.9 ** np.arange(130.0):
            now = self.at(share * budgets[self._steps], now)
            if (now.slacks[0] > 0.0).all():
                centred = 0.3 * self.constraints.shape[1]
                # Share of Newton's step up to which kinks hinder it
                return self.spent(minimise(self, now, gap=gap, centred=centred, shortest=2.0**-6)[0])
        return budgets  # the steps that cannot change use the whole level

    def spent(self, x: FloatArray) -> FloatArray:
        """The budgets of all steps."""
        epsilons = self._start.copy()
        epsilons[self._steps] = x
        return epsilons

    def budgets(self, x: FloatArray) -> FloatArray:
        """Budgets of all steps."""
        return x

    def loss(self, x: FloatArray) -> float:
        """The weighted mean of ``1 / e^p`` over the free steps."""
        return float((self._weights / x**self._power).sum())

    def at(self, x: FloatArray, near: Point) -> Point:
        """The point with these budgets; it keeps the ratios less 1 of both directions, which begin at those nearby."""
        epsilons, ratios = self.spent(x), np.zeros(near.kept.shape)
        for user, side, members, pairs in self._groups():
            arriving = pair_values(self._chain(user, side, epsilons), *pairs, near.kept[members, side])[0]
            ratios[members, side] = np.expm1(arriving)
        return Point(x, [self._alpha - epsilons[self.constraints[1]] - np.log1p(ratios).sum(axis=1)], ratios)

    def newton(
        self, point: Point, y: list[FloatArray], mu: float, scale: float
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Negative gradient, Newton's step without the curvature of leakage, and the change of each slack."""
        from scipy.sparse import diags_array, issparse
        from scipy.sparse.linalg import splu

        p, x, slack, jacobian = self._power, point.x, point.slacks[0], self._jacobian(point)
        descent = p * self._weights / x ** (p + 1) / scale - jacobian.T @ (mu / slack)
        curvature = p * (p + 1) * self._weights / x ** (p + 2) / scale
        matrix = (jacobian.T * (y[0] / slack)) @ jacobian
        if issparse(matrix):
            move = splu((diags_array(curvature) + matrix).tocsc()).solve(descent)
        else:
            move = np.linalg.solve(np.diag(curvature) + matrix, descent)
        return descent, move, [-(jacobian @ move)]

    def _jacobian(self, point: Point) -> Any:
        """J by the free steps: a sparse matrix where most derivatives are left out."""
        from scipy.sparse import csr_array

        epsilons = self.spent(point.x)
        found = np.zeros((self.constraints.shape[1], self._horizon))
        found[np.arange(len(found)), self.constraints[1]] = 1.0
        for user, side, members, pairs in self._groups():
            each = derivatives(self._chain(user, side, epsilons), (0 * pairs[0], *pairs), point.kept[members, side])
            # Smaller derivatives are left out
            item, back = np.nonzero(each > 1e-9)
            step = pairs[0][item] - 1 - back
            found[members[item], self._horizon - 1 - step if side else step] = each[item, back]
        found = found[:, self._steps]
        # With more entries, arithmetic of dense matrices is faster
        return found if np.count_nonzero(found) > 0.1 * found.size else csr_array(found)

    def _groups(self) -> list[tuple[int, int, IntArray, tuple[IntArray, IntArray, IntArray]]]:
        """User, direction, positions, and pairs at steps as the direction counts them."""
        users, groups = self.constraints[0], []
        for user in np.unique(users).tolist():
            members = np.flatnonzero(users == user)
            t, i, j = self.constraints[1:, members]
            groups += [
                (user, side, members, (steps, i, j))
                for side, steps in enumerate((t, self._horizon - 1 - t))
                if self._known[user][side] is not None
            ]
        return groups

    def _chain(self, user: int, side: int, epsilons: FloatArray) -> Chain:
        """Rollouts of a direction. A plan that satisfies alpha implies no better bound of its spreads than alpha."""
        known = self._known[user][side]
        assert known is not None
        spent = epsilons[::-1] if side else epsilons
        spreads = np.full(self._horizon, self._alpha)
        return Chain.of(*known, np.expm1(spent)[:, None], np.zeros((self._horizon, 1)), spreads)


def least_noise(
    users: list[Adversary],
    alpha: float,
    by: Measure,
    start: FloatArray,
    accounted: Callable[[FloatArray], LeakageSeries],
    n_spent: int = 0,
    close: float = CLOSE_TO_LEVEL,
) -> FloatArray:
    """Return budgets of less noise than `start`, a local optimum without a certificate.

    Their exact leakage exceeds alpha by at most a share `close`. Above `LARGEST_EXPONENT` nats, where e^epsilon leaves the
    range of doubles and bounds hardly differ, `start`.

    Parameters
    ----------
    users : list of Adversary
    alpha : float
    by : Measure
        Objective over all T steps; steps of weight 0 get no budget unless theirs is already spent.
    start : array, shape (T,)
        Budgets that satisfy alpha.
    accounted : callable
        Function that returns the exact series of budgets, with one member per user if there are several.
    n_spent : int
        Number of first steps whose budgets are already spent.
    """
    if alpha > LARGEST_EXPONENT:
        return start
    free = by.weights > 0.0
    free[:n_spent] = False
    best = start
    series = accounted(start)
    program = PairProgram(users, alpha, by, free, start, worst_pairs(series, alpha, share=1.0))
    if not program.constraints.size:  # no user's correlation is known: each step stands alone
        return np.where(free, alpha, start)
    for round_ in range(MOST_ITEM_ROUNDS):
        progressed("least noise", round_ / MOST_ITEM_ROUNDS)
        if effort_is_over():
            break
        found = program.improved(best, gap=0.5 * close)
        series = accounted(found)
        over = series.worst / alpha - 1.0
        if over > 0.0 and effort_is_over():
            break
        inside = found if over <= 0.0 else _shrunk(found, free, accounted, alpha)
        if by.error(inside) < by.error(best):
            best = inside
        if over <= close:
            break
        known = program.constraints
        # Share of alpha: at a step that leaks so little below the level, the pair that leaks most joins
        program.constraints = np.unique(np.hstack([known, worst_pairs(series, alpha, share=0.03)]), axis=1)
        if program.constraints.shape == known.shape:
            break
    return best


def worst_pairs(series: LeakageSeries, alpha: float, *, share: float) -> IntArray:
    """The pair that leaks most at each step, for each user and step within `share` of the level: constraints."""
    found = [np.zeros((4, 0), np.int64)]
    for number, member in enumerate(series.members or (series,)):
        if member.evidence is not None and member.evidence.best_pairs:
            steps = np.flatnonzero(member.temporal >= alpha * (1.0 - share))
            pairs = (states[steps] for states in member.evidence.best_pairs["temporal"])
            found.append(np.stack([np.full(len(steps), number), steps, *pairs]))
    return np.hstack(found)


def _shrunk(
    epsilons: FloatArray, free: BoolArray, accounted: Callable[[FloatArray], LeakageSeries], alpha: float
) -> FloatArray:
    """Free budgets times about the largest share that satisfies alpha; leakage grows at least in proportion to budgets."""
    share = 1.0
    for _ in range(60):
        tried = np.where(free, share * epsilons, epsilons)
        worst = accounted(tried).worst
        if worst <= alpha:
            return tried
        share *= min(alpha / worst, 1.0 - 1e-12) ** 1.5
    return np.where(free, 0.0, epsilons)
