"""The plan with the least noise by the exact leakage, as a program over a few pairs of values at each step.

Notation
--------
e        budgets, shape (T,); those of `spent` steps cannot change
g        leakage of each item (a pair of values of one user at one step), shape (m,): ``e_t + K_B + K_F``
s, y     slack ``alpha - g`` and its multiplier, shape (m,)
J        derivatives of g by e, shape (m, T), sparse: only steps within the chain's memory matter
mu       weight of the barrier ``-mu sum log s``

An interior-point method with the exact derivatives of the envelope theorem; the curvature of g is left out of the Newton
matrix, which keeps it positive definite. Which items count is found as one goes: those that leak most under the last plan join.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from temporaldp.accounting import ExactLeakage, LeakageSeries
from temporaldp.accounting.exact.arrivals import ordered_matrices, pair_values
from temporaldp.correlation import Adversary
from temporaldp.kernels.exact import Chain, derivatives
from temporaldp.planning.optimal import POWERS, Measure
from temporaldp.progress import progressed
from temporaldp.values import BoolArray, FloatArray, IntArray

GAP = 1e-7
"""Relative loss that the last barrier may cost."""

MOST_ROUNDS = 12
"""Times that items join; three to six are usual."""

CLOSE = 2e-7
"""Relative: a plan that leaks no more than this above the level needs no more items."""


FRACTION_TO_BOUNDARY = 0.99


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """Pairs of values of users at steps whose leakage must stay below the level."""

    user: IntArray
    t: IntArray
    i: IntArray
    j: IntArray

    def __len__(self) -> int:
        return len(self.user)

    def joined(self, other: Constraints) -> Constraints:
        """Both, each pair once."""
        columns = [np.concatenate(pair) for pair in zip(self.columns, other.columns, strict=True)]
        return Constraints(*np.unique(np.stack(columns), axis=1))

    @property
    def columns(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """User, step, state and other state."""
        return self.user, self.t, self.i, self.j


class PairProgram:
    """Leakage of chosen items and its derivatives, for budgets that change a little from one call to the next."""

    def __init__(self, users: list[Adversary], alpha: float, horizon: int) -> None:
        self._alpha, self._horizon = alpha, horizon
        self._known = [
            [
                None if not known else ordered_matrices(known, horizon, turned=turned)
                for known, turned in ((user.backward, False), (user.forward, True))
            ]
            for user in users
        ]

    def leakage(self, epsilons: FloatArray, at: Constraints, rho: FloatArray) -> tuple[FloatArray, FloatArray]:
        """g, and the ratios less 1 of both directions, shape (m, 2); `rho` is a guess of them."""
        found = rho.copy()
        for user, side, members, pairs in self._groups(at):
            arriving = pair_values(self._chain(user, side, epsilons), *pairs, rho[members, side])[0]
            found[members, side] = np.expm1(arriving)
        return epsilons[at.t] + np.log1p(found).sum(axis=1), found

    def jacobian(self, epsilons: FloatArray, at: Constraints, rho: FloatArray) -> Any:
        """J, as a sparse matrix."""
        from scipy.sparse import coo_array

        m, horizon = len(at), self._horizon
        rows, columns, values = [np.arange(m)], [at.t], [np.ones(m)]
        for user, side, members, pairs in self._groups(at):
            each = np.zeros((len(members), horizon - 1))
            derivatives(self._chain(user, side, epsilons), *pairs, rho[members, side], each)
            # Derivatives below are left out
            item, back = np.nonzero(each > 1e-9)
            rows.append(members[item])
            step = pairs[0][item] - 1 - back
            columns.append(horizon - 1 - step if side else step)
            values.append(each[item, back])
        data = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        return coo_array(data, shape=(m, horizon)).tocsr()

    def _groups(self, at: Constraints) -> list[tuple[int, int, IntArray, tuple[IntArray, IntArray, IntArray]]]:
        """User, direction, positions, and pairs at steps as the direction counts them."""
        groups = []
        for user in np.unique(at.user).tolist():
            members = np.flatnonzero(at.user == user)
            t, i, j = at.t[members], at.i[members], at.j[members]
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
) -> FloatArray:
    """Budgets of less noise than `start`, whose exact leakage is at most alpha but for `CLOSE`; a local optimum, not certified.

    Parameters
    ----------
    users : list of Adversary
    alpha : float
    by : Measure
        Over all T steps; steps of weight 0 get no budget, unless they are spent.
    start : array, shape (T,)
        Budgets that hold alpha.
    accounted : callable
        The exact series of budgets, with one member for each user where there are several.
    n_spent : int
        The first steps' budgets are given and cannot change.
    """
    program = PairProgram(users, alpha, len(start))
    free = by.weights > 0.0
    free[:n_spent] = False
    best = start
    series = accounted(start)
    at = worst_pairs(series, alpha, share=1.0)
    if not len(at):  # nothing is known of anybody's correlation: each step stands alone
        return np.where(free, alpha, start)
    for round_ in range(MOST_ROUNDS):
        progressed("least noise", round_ / MOST_ROUNDS)
        found = _minimise(program, at, alpha, by, best, free)
        series = accounted(found)
        over = series.worst / alpha - 1.0
        inside = found if over <= 0.0 else _shrunk(found, free, accounted, alpha)
        if by.error(inside) < by.error(best):
            best = inside
        if over <= CLOSE:
            break
        known = len(at)
        # Share of alpha: at a step that leaks so little below the level, the pair that leaks most joins
        at = at.joined(worst_pairs(series, alpha, share=0.03))
        if len(at) == known:
            break
    return best


def worst_pairs(series: LeakageSeries, alpha: float, *, share: float) -> Constraints:
    """The pair that leaks most at each step, for each user and step within `share` of the level."""
    user, t, i, j = [], [], [], []
    for number, member in enumerate(series.members or (series,)):
        if not isinstance(member.evidence, ExactLeakage):
            continue
        steps = np.flatnonzero(member.temporal >= alpha * (1.0 - share))
        first, second = member.evidence.pairs["temporal"]
        user.append(np.full(len(steps), number))
        t.append(steps)
        i.append(first[steps])
        j.append(second[steps])
    if not user:
        return Constraints(*np.zeros((4, 0), np.int64))
    return Constraints(*map(np.concatenate, (user, t, i, j)))


def _shrunk(
    epsilons: FloatArray, free: BoolArray, accounted: Callable[[FloatArray], LeakageSeries], alpha: float
) -> FloatArray:
    """The largest share of free budgets that holds, roughly: leakage grows at least in proportion to its excess."""
    share = 1.0
    for _ in range(60):
        tried = np.where(free, share * epsilons, epsilons)
        worst = accounted(tried).worst
        if worst <= alpha:
            return tried
        share *= min(alpha / worst, 1.0 - 1e-12) ** 1.5
    return np.where(free, 0.0, epsilons)


def _minimise(
    program: PairProgram, at: Constraints, alpha: float, by: Measure, start: FloatArray, free: BoolArray
) -> FloatArray:
    """The interior-point method over the given items, from `start`."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import splu

    p, w = POWERS[by.objective], by.weights
    # Share of the free budgets from which the method starts, so that no constraint is tight
    inside = 0.97
    e = np.where(free, inside * start, start)
    g, rho = program.leakage(e, at, np.full((len(at), 2), np.expm1(0.25 * alpha)))
    while not (g < alpha).all():
        inside *= 0.9
        if inside < 1e-6:  # the steps that cannot change use the whole level
            return start
        e = np.where(free, inside * start, start)
        g, rho = program.leakage(e, at, rho)
    scale = _loss(w, e, free, p)
    slack = alpha - g
    mu = 0.1 / len(at)
    y = mu / slack
    columns = np.flatnonzero(free)
    for _ in range(120):
        jacobian = program.jacobian(e, at, rho)[:, columns]
        x = e[columns]
        gradient = -p * w[columns] / x ** (p + 1) / scale + jacobian.T @ (mu / slack)
        curvature = p * (p + 1) * w[columns] / x ** (p + 2) / scale
        matrix = diags_array(curvature) + jacobian.T @ diags_array(y / slack) @ jacobian
        move = np.zeros_like(e)
        move[columns] = splu(matrix.tocsc()).solve(-gradient)
        decrease = float(-(gradient * move[columns]).sum())
        step, e, g, rho = _search(program, at, alpha, (w, p, scale, mu), (e, slack, rho), move, decrease, free)
        change = mu / slack - y + y / slack * (jacobian @ move[columns])
        falling = change < 0.0
        with np.errstate(divide="ignore", over="ignore"):  # a fall below the resolution of doubles has no end
            furthest = (y[falling] / -change[falling]).min(initial=np.inf)
        length = min(1.0, FRACTION_TO_BOUNDARY * float(furthest))
        y = y + length * change
        slack = alpha - g
        y = np.clip(y, mu / (1e8 * slack), 1e8 * mu / slack)
        if decrease <= 0.3 * mu * len(at) or step == 0.0:
            if mu * len(at) <= GAP:
                break
            mu *= 0.15
        if step == 0.0 and mu * len(at) <= GAP:
            break
    return e


def _loss(w: FloatArray, e: FloatArray, free: BoolArray, p: int) -> float:
    return float((w[free] / e[free] ** p).sum())


def _search(
    program: PairProgram,
    at: Constraints,
    alpha: float,
    barrier: tuple[FloatArray, int, float, float],
    now: tuple[FloatArray, FloatArray, FloatArray],
    move: FloatArray,
    decrease: float,
    free: BoolArray,
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Backtrack until all slacks are positive and the barrier function falls; step, budgets, leakage, ratios."""
    w, p, scale, mu = barrier
    e, slack, rho = now
    value = _loss(w, e, free, p) / scale - mu * float(np.log(slack).sum())
    step = 1.0
    shrinking = move < 0.0
    if shrinking.any():
        step = min(1.0, FRACTION_TO_BOUNDARY * float((-e[shrinking] / move[shrinking]).min()))
    while step > 1e-10:
        tried = e + step * move
        g, found = program.leakage(tried, at, rho)
        if (g < alpha).all():
            new = _loss(w, tried, free, p) / scale - mu * float(np.log(alpha - g).sum())
            if new <= value - 1e-4 * step * decrease + 1e-12 * abs(value):
                return step, tried, g, found
        step *= 0.5
    return 0.0, e, alpha - slack, rho
