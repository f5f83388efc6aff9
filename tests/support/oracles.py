"""Independent ways to the same numbers. Nothing here is imported from temporaldp.

- exact loss of a matrix: all subsets of columns and all pairs of rows, in rational arithmetic, logarithm to 60 digits;
- the linear-fractional program of the paper, in its O(n) form, solved by HiGHS;
- the lifting of a metric: every spanning tree of tight constraints, to 60 digits; or a linear program, where numbers are small;
- the definition: the worst epsilon-DP mechanism, its outputs enumerated.
"""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

DIGITS = 60


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def exact_loss(matrix, alpha: float) -> float:
    """max over pairs of rows and subsets S of log[(1 + q(S) k) / (1 + d(S) k)], k = e^alpha - 1, to 60 digits."""
    rows = [[Fraction(float(p)) for p in row] for row in np.asarray(matrix)]
    # For a fixed pair, only the sets {k : q_k > g d_k} can be best: prefixes by falling ratio q/d. Taking them exactly,
    # in rationals, keeps the oracle usable beyond a handful of columns; `brute_force_loss` takes every subset.
    with localcontext() as context:
        context.prec = DIGITS + 400
        k = (Decimal(alpha).exp() - 1) if alpha < 3000 else None
        best = Decimal(0)
        for q_row, d_row in itertools.permutations(rows, 2):
            ratio = lambda j, q=q_row, d=d_row: (d[j] == 0, q[j] / d[j] if d[j] else q[j])  # noqa: E731
            order = sorted((j for j in range(len(rows)) if q_row[j] > d_row[j]), key=ratio, reverse=True)
            q = d = Fraction(0)
            for j in order:
                q, d = q + q_row[j], d + d_row[j]
                assert k is not None
                value = (1 + _decimal(q) * k) / (1 + _decimal(d) * k)
                best = max(best, value.ln())
        return float(best)


def brute_force_loss(matrix, alpha: float) -> float:
    """The same maximum over every subset of columns, in floating point; for small n and moderate alpha."""
    matrix = np.asarray(matrix)
    n = len(matrix)
    k = np.expm1(alpha)
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    mass = matrix @ sets.T
    return float(np.max(np.log1p(mass[:, None] * k) - np.log1p(mass[None, :] * k)))


def extended_loss(matrix, alpha: float) -> float:
    """The best prefix of every pair's columns by falling ratio, summed in 80-bit floating point."""
    rows = np.asarray(matrix).astype(np.longdouble)
    k = np.expm1(np.longdouble(alpha))
    best = np.longdouble(0)
    for q in rows:
        x = q - rows
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(x > 0, x / rows, 0)
        order = np.argsort(-ratio, axis=1, kind="stable")
        x_sum = np.cumsum(np.take_along_axis(np.where(x > 0, x, 0), order, axis=1), axis=1)
        d_sum = np.cumsum(np.take_along_axis(np.where(x > 0, rows, 0), order, axis=1), axis=1)
        best = max(best, (x_sum * k / (1 + d_sum * k)).max())
    return float(np.log1p(best))


def highs_loss(matrix, alpha: float) -> float:
    """max q x / d x over m <= x_j <= e^alpha m for every pair of rows: the O(n) form of the paper's program."""
    matrix = np.asarray(matrix)
    n = len(matrix)
    best = 0.0
    for i, j in itertools.permutations(range(n), 2):
        # Charnes and Cooper: scale so that d x = 1; the last variable is m.
        above = np.hstack((np.eye(n), np.full((n, 1), -np.exp(alpha))))
        below = np.hstack((-np.eye(n), np.ones((n, 1))))
        answer = linprog(
            np.append(-matrix[i], 0.0),
            A_ub=np.vstack((above, below)),
            b_ub=np.zeros(2 * n),
            A_eq=np.append(matrix[j], 0.0)[None, :],
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
        )
        assert answer.status == 0, answer.message
        best = max(best, float(np.log(-answer.fun)))
    return best


def spanning_trees(n: int):
    """Every oriented spanning tree on n nodes, as a list of edges (upper, lower)."""
    for edges in itertools.combinations(itertools.combinations(range(n), 2), n - 1):
        seen = {0}
        for _ in range(n):
            seen |= {v for edge in edges for v in edge if seen & set(edge)}
        if len(seen) == n:
            for flips in itertools.product((False, True), repeat=n - 1):
                yield [edge[::-1] if flip else edge for edge, flip in zip(edges, flips, strict=True)]


def extreme_logarithms(metric) -> list[list[Decimal]]:
    """All u with u_a - u_c <= metric(a, c) and a spanning tree of equalities: the extreme points of the cone, as log x."""
    n = len(metric)
    b = [[Decimal(float(entry)) for entry in row] for row in metric]
    found = []
    with localcontext() as context:
        context.prec = DIGITS
        slack = Decimal(10) ** -(DIGITS // 4) * (1 + max(max(row) for row in b))
        for tree in spanning_trees(n):
            u: list[Decimal | None] = [Decimal(0)] + [None] * (n - 1)
            while None in u:
                for a, c in tree:
                    if u[a] is None and u[c] is not None:
                        u[a] = u[c] + b[a][c]
                    elif u[c] is None and u[a] is not None:
                        u[c] = u[a] - b[a][c]
            if all(u[a] - u[c] <= b[a][c] + slack for a in range(n) for c in range(n) if a != c):
                found.append(u)
    return found


def exact_lift(rows, metric) -> np.ndarray:
    """max log(q x / d x) over the extreme points, for every ordered pair of rows; the metric must be closed. For n <= 4."""
    n = len(rows)
    with localcontext() as context:
        context.prec = DIGITS
        points = [[value.exp() for value in u] for u in extreme_logarithms(metric)]
        exact = [[Decimal(float(p)) for p in row] for row in np.asarray(rows)]
        sums = [[sum(p * x for p, x in zip(row, point, strict=True)) for row in exact] for point in points]
        return np.array(
            [[float(max((total[i] / total[j]).ln() for total in sums)) for j in range(n)] for i in range(n)]
        )


def highs_lift(rows, metric) -> np.ndarray:
    """The same by linear programming, for metrics of a few nats: the coefficients are e^metric."""
    rows, n = np.asarray(rows), len(rows)
    constraints = []
    for a, c in itertools.permutations(range(n), 2):
        constraint = np.zeros(n)
        constraint[a], constraint[c] = 1.0, -np.exp(metric[a, c])
        constraints.append(constraint)
    lifted = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        answer = linprog(
            -rows[i],
            A_ub=constraints,
            b_ub=np.zeros(len(constraints)),
            A_eq=rows[j][None, :],
            b_eq=[1.0],
            method="highs",
        )
        assert answer.status == 0, answer.message
        lifted[i, j] = np.log(-answer.fun)
    return lifted


def worst_mechanism(n: int, epsilon: float) -> np.ndarray:
    """Likelihoods, shape (outputs, n): one output per proper non-empty set of values, e^epsilon inside it and 1 outside."""
    sets = np.array([s for s in itertools.product((0, 1), repeat=n) if 0 < sum(s) < n])
    return np.exp(epsilon * sets)


def metric_mechanism(metric) -> np.ndarray:
    """Likelihoods, shape (outputs, n), of every extreme answer of a mechanism with metric privacy."""
    return np.array([[float(value.exp()) for value in u] for u in extreme_logarithms(metric)])


def defined_leakage(
    backward, forward, epsilons, mechanism=worst_mechanism
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """BPL, FPL and TPL by their definitions, for the worst mechanism at every step, all outputs enumerated.

    ``backward`` and ``forward`` are one matrix per transition, or None. The likelihood of the releases up to t given the value
    at t follows the chain: ``Pr(r_1..r_t | y) = Pr(r_t | y) sum_x B[y, x] Pr(r_1..r_{t-1} | x)``.
    """
    n = len((backward or forward)[0])
    steps = len(epsilons)
    past = _arrivals(backward, list(epsilons), n, mechanism)
    future = _arrivals(None if forward is None else forward[::-1], list(epsilons)[::-1], n, mechanism)[::-1]
    worst = [_pairwise(np.log(mechanism(n, e))) for e in epsilons]
    bpl = np.array([np.max(past[t] + worst[t]) for t in range(steps)])
    fpl = np.array([np.max(future[t] + worst[t]) for t in range(steps)])
    tpl = np.array([np.max(past[t] + worst[t] + future[t]) for t in range(steps)])
    return bpl, fpl, tpl


def _arrivals(matrices, epsilons, n: int, mechanism) -> list[np.ndarray]:
    """For each step, D[i, j]: the largest log ratio between values i and j of what was released before it."""
    carried = [np.zeros((n, n))]
    likelihood = np.ones((1, n))
    for k in range(len(epsilons) - 1):
        outputs = mechanism(n, epsilons[k])
        joint = (likelihood[:, None, :] * outputs[None, :, :]).reshape(-1, n)
        likelihood = np.ones((1, n)) if matrices is None else joint @ np.asarray(matrices[k]).T
        carried.append(_pairwise(np.log(likelihood)))
    return carried


def _pairwise(log_likelihood: np.ndarray) -> np.ndarray:
    return np.max(log_likelihood[:, :, None] - log_likelihood[:, None, :], axis=0)


def told_by_all(table, backward, forward, step, n_steps):
    """Probability of every sequence of outputs given the value at a step, shape (n, m ** T), by adding up all paths.

    Row x of `table`: the probability of each output if the value is x. backward[t][x, y]: of y at t if x at t + 1;
    forward[t][x, y]: of y at t + 1 if x at t.
    """

    def with_one_more(rows, others):
        return np.einsum("xa,xb->xab", others, rows).reshape(len(table), -1)

    before = np.ones((len(table), 1))
    for t in range(step):
        before = backward[t] @ with_one_more(table, before)
    after = np.ones((len(table), 1))
    for t in range(n_steps - 1, step, -1):
        after = forward[t - 1] @ with_one_more(table, after)
    return with_one_more(after, with_one_more(table, before))


def hockey_stick(rows, gamma):
    """The largest over ordered pairs of rows of the sum of max(row - gamma other, 0), by the definition."""
    return max(
        float(np.maximum(row - gamma * other, 0.0).sum())
        for i, row in enumerate(rows)
        for j, other in enumerate(rows)
        if i != j
    )
