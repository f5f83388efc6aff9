"""The exact leakage at its limits: for ever, of long series, of tiny and of huge budgets."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.linalg import circulant

from data_sets import sleep_sample
from exact_cases import random_rows
from exact_oracles import boxes_of, defined_by_sign_rule
from making import laplace_counts
from methods import method_of
from temporaldp import (
    Adversary,
    Exact,
    LikelihoodBox,
    PaperBound,
    TransitionMatrix,
    estimate_adversaries,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.core.accounting.exact.arrivals import Releases
from temporaldp.core.accounting.exact.supremum import Repeated

DIRECTIONS = ("backward", "forward", "temporal")
RING = TransitionMatrix(circulant([0.6, 0.2, 0.0, 0.0, 0.0, 0.2]))
ROAD = TransitionMatrix([[0.8, 0.2], [0.0, 1.0]])


def assert_close(found, rel=1e-9):
    """Attained and proved, as close as is promised."""
    assert found.accounting.name == "exact"
    assert found.certified
    for direction in DIRECTIONS:
        attained, proved = getattr(found.lower, direction), getattr(found, direction)
        assert attained <= proved <= attained * (1.0 + rel), direction


# For ever


@pytest.mark.parametrize(("stays", "shown"), [(0.7, 2.05), (0.8, 2.96), (0.9, 4.50), (0.99, 9.27)])
def test_supremum_of_two_symmetric_states_is_a_fixed_point(stays, shown):
    low, high = 1.0, 40.0
    for _ in range(100):  # b = log of (p (e^b - 1) + 1) / ((1 - p) (e^b - 1) + 1), and the step's own 1
        b = 0.5 * (low + high)
        grown = math.log1p(stays * math.expm1(b)) - math.log1p((1.0 - stays) * math.expm1(b)) + 1.0
        low, high = (b, high) if grown > b else (low, b)
    matrix = TransitionMatrix([[stays, 1.0 - stays], [1.0 - stays, stays]])
    found = leakage_supremum(Adversary(matrix, matrix), 1.0)
    assert_close(found)
    assert found.backward == pytest.approx(low, rel=1e-9)
    assert found.forward == pytest.approx(low, rel=1e-9)
    assert found.temporal == pytest.approx(2.0 * low - 1.0, rel=1e-9)
    assert found.temporal == pytest.approx(shown, abs=5e-3)


@pytest.mark.parametrize("share", [0.1, 0.9, pytest.param(0.999, marks=pytest.mark.slow)])
def test_supremum_of_a_transient_state_is_a_geometric_series(share):
    border = -math.log(0.8)
    epsilon = share * border
    found = leakage_supremum(Adversary(ROAD), epsilon)
    expected = epsilon + math.log1p(math.expm1(epsilon) * 0.8 / (1.0 - 0.8 * math.exp(epsilon)))
    assert found.backward == pytest.approx(expected, rel=1e-8)
    assert found.temporal == found.backward
    assert found.forward == epsilon
    # Within 0.1 % of the border leakage gathers for longer than rollouts are followed: proved, and not known to be approached.
    assert found.certified == (share < 0.999)
    assert found.lower.backward <= found.backward * (1.0 - 1e-9 * (not found.certified))


NEVER = {
    "above the border": (ROAD, 0.2232),
    "two closed classes": (TransitionMatrix(np.eye(3)), 0.01),
    "a period": (TransitionMatrix(np.eye(4)[[1, 2, 3, 0]]), 0.01),
    "a period of blocks": (
        TransitionMatrix([[0, 0, 0.3, 0.7], [0, 0, 0.6, 0.4], [0.5, 0.5, 0, 0], [0.1, 0.9, 0, 0]]),
        1.0,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(("matrix", "epsilon"), NEVER.values(), ids=NEVER)
def test_leakage_that_grows_without_bound_has_no_supremum(matrix, epsilon):
    for adversary in (Adversary(matrix), Adversary(None, matrix), Adversary(matrix, matrix)):
        found = leakage_supremum(adversary, epsilon)
        assert found.certified
        for name, one in (("backward", adversary.backward), ("forward", adversary.forward)):
            assert getattr(found, name) == (math.inf if one else epsilon)
        assert found.temporal == math.inf
        assert found.lower.temporal == math.inf
        series = [temporal_leakage(adversary, [epsilon] * steps).attained.temporal.max() for steps in (50, 100)]
        assert series[1] > series[0] * 1.01


def test_disjoint_rows_alone_do_not_make_the_supremum_infinite():
    found = leakage_supremum(Adversary(RING, RING), 0.1)
    assert_close(found)
    assert found.temporal == pytest.approx(1.1255, abs=5e-5)
    assert leakage_supremum(Adversary(RING, RING), 0.1, accounting=PaperBound()).temporal == math.inf


@pytest.mark.parametrize("epsilon", [1e-6, 0.05, 0.5, pytest.param(2.0, marks=pytest.mark.slow)])
@pytest.mark.long
def test_series_stay_below_the_supremum_and_approach_it(epsilon):
    rng = np.random.default_rng(3)
    for n in (2, 3, 5, 7, 12):
        adversary = Adversary(*(TransitionMatrix(rng.dirichlet(np.full(n, 0.7), n)) for _ in range(2)))
        found = leakage_supremum(adversary, epsilon)
        assert_close(found)
        series = temporal_leakage(adversary, np.full(600, epsilon))
        for direction in DIRECTIONS:
            reached = getattr(series.attained, direction).max()
            assert reached <= getattr(found, direction) <= reached * (1.0 + 2e-9)
        paper = leakage_supremum(adversary, epsilon, accounting=PaperBound())
        for direction in DIRECTIONS:
            assert getattr(found, direction) <= getattr(paper, direction) * (1.0 + 1e-12)


@pytest.mark.long
def test_supremum_of_boxes_is_approached():
    rng = np.random.default_rng(4)
    for n in (2, 3, 5):
        adversary = Adversary(*(TransitionMatrix(rng.dirichlet(np.ones(n), n)) for _ in range(2)))
        for box in (
            laplace_counts(1.0 / rng.uniform(0.01, 0.5, n)),
            LikelihoodBox.add_or_remove(0.3, n, absent=n - 1),
            LikelihoodBox(np.zeros(n), np.full(n, 0.4)),
        ):
            found = leakage_supremum(adversary, box)
            assert_close(found)
            series = temporal_leakage(adversary, [box] * 200)
            for direction in DIRECTIONS:
                reached = getattr(series.attained, direction).max()
                assert reached <= getattr(found, direction) <= reached * (1.0 + 2e-9)
        plain = leakage_supremum(adversary, 0.4)
        assert found.temporal == pytest.approx(plain.temporal, rel=1e-9)


def test_supremum_of_several_users_is_that_of_the_worst():
    users = {"ring": Adversary(RING, RING), "still": Adversary(), "road": Adversary(ROAD)}
    found = leakage_supremum(users, 0.1)
    each = [leakage_supremum(user, 0.1) for user in users.values()]
    assert found.worst_user == "ring"
    for direction in DIRECTIONS:
        # Who is known by signs only may exceed the largest by half a 1e-12 of it, which is added.
        assert getattr(found, direction) == pytest.approx(max(getattr(one, direction) for one in each), rel=1e-12)


# Long series


@pytest.mark.long
def test_converged_series_stays_constant():
    adversary = next(estimate_adversaries(sleep_sample()))
    long, short = (temporal_leakage(adversary, np.full(steps, 0.1)) for steps in (1_000, 200))
    for side, other in ((long, short), (long.attained, short.attained)):
        np.testing.assert_allclose(side.backward[:200], other.backward, rtol=1e-12)
        np.testing.assert_allclose(side.forward[-200:], other.forward, rtol=1e-12)
        np.testing.assert_allclose(side.temporal[:60], other.temporal[:60], rtol=1e-12)
        np.testing.assert_allclose(side.temporal[-60:], other.temporal[-60:], rtol=1e-12)
        np.testing.assert_allclose(side.temporal[100:-100], other.temporal[100], rtol=1e-12)
    assert long.gap < 3e-12
    limit = leakage_supremum(adversary, 0.1)
    assert long.attained.temporal.max() <= limit.temporal <= long.worst * (1.0 + 1e-9)


def test_answers_are_not_shared_where_another_pair_overtakes_slowly():
    """The last two states become the best pair from the past alone, by 2e-7; the first two attain the sum of both sides."""
    close, far = 0.6659971842236359, 0.03400281577636413
    backward = np.array(
        [
            [0.0, 0.0, close, far, 0.15, 0.15],
            [0.0, 0.0, far, close, 0.15, 0.15],
            [0.0, 0.0, 0.3, 0.3, 0.2, 0.2],
            [0.0, 0.0, 0.3, 0.3, 0.2, 0.2],
            [0.0, 0.0, 0.28, 0.28, 0.41, 0.03],
            [0.0, 0.0, 0.28, 0.28, 0.03, 0.41],
        ]
    )
    forward = np.vstack([np.eye(6)[2:4], np.tile([0.0, 0.0, 0.5, 0.5, 0.0, 0.0], (4, 1))])
    adversary = Adversary(*(TransitionMatrix(rows, normalize=True) for rows in (backward, forward)))
    for before in (17, 241):
        found = temporal_leakage(adversary, [0.05] * before + [0.1] * 60)
        assert found.label == "exact"
        np.testing.assert_allclose(found.attained.temporal, found.temporal, rtol=0.0, atol=3e-12)


@pytest.mark.long
@pytest.mark.parametrize(
    "budgets",
    [
        pytest.param([0.3] * 200 + [0.1] * 60 + [0.3] * 100, marks=pytest.mark.slow),
        [5.0] + [0.01] * 200 + [0.0] * 30 + [1.0] * 50,
        pytest.param([0.2] * 150 + [0.0] * 100, marks=pytest.mark.slow),
        pytest.param([1e-9] * 150 + [0.5] * 3 + [1e-9] * 150, marks=pytest.mark.slow),
    ],
    ids=["levels", "spike", "end", "pulse"],
)
def test_shared_solutions_equal_separate_solutions(budgets):
    """Budgets of which every second one is an ulp larger: no two steps are alike, so that every answer is computed anew."""
    adversary = next(estimate_adversaries(sleep_sample()))
    budgets = np.array(budgets)
    apart = budgets * (1.0 + 2.0**-52 * (np.arange(len(budgets)) % 2))
    shared, alone = (temporal_leakage(adversary, one) for one in (budgets, apart))
    for direction in DIRECTIONS:
        for one, other in ((shared, alone), (shared.attained, alone.attained)):
            # Where next to nothing is left of large budgets, the digits that are lost are those of what they leaked.
            np.testing.assert_allclose(
                getattr(one, direction), getattr(other, direction), rtol=1e-11, atol=5e-12 * budgets.max()
            )


# More values than all pairs of which can be ruled out


@pytest.mark.parametrize(
    "budgets", [[0.1] * 60, [0.1] * 90 + [0.5] * 70, [0.3, 0.0, 0.1] * 20], ids=["constant", "rises", "varies"]
)
def test_without_effort_bounds_stand_on_both_sides(budgets):
    rng = np.random.default_rng(8)
    adversary = Adversary(*(TransitionMatrix(rng.dirichlet(np.ones(9), 9)) for _ in range(2)))

    def numbers(accounting):
        found = temporal_leakage(adversary, budgets, accounting=accounting)
        return found, leakage_supremum(adversary, 0.1, accounting=accounting)

    exact, limit = numbers(Exact())
    paper = temporal_leakage(adversary, budgets, accounting=PaperBound())
    bounded, bounded_limit = numbers(Exact(effort=0.0))
    for direction in DIRECTIONS:
        assert (getattr(bounded, direction) >= getattr(exact.attained, direction)).all()
        assert (getattr(bounded, direction) <= getattr(paper, direction) * (1.0 + 1e-12)).all()
        assert (getattr(bounded.attained, direction) <= getattr(exact, direction)).all()
        assert getattr(bounded_limit.lower, direction) <= getattr(limit, direction) <= getattr(bounded_limit, direction)
    assert exact.gap < 1e-11
    assert bounded.gap > 0.01
    assert limit.certified
    assert not bounded_limit.certified


@pytest.mark.parametrize("bound", ["exact", "paper"])
@pytest.mark.long
def test_an_infinite_supremum_is_certified_where_rounding_does_not_decide(bound):
    """State 0 is kept with probability 0.8: there is a supremum below -log 0.8."""
    adversary, border = Adversary(TransitionMatrix([[0.8, 0.2], [0.0, 1.0]])), -math.log(0.8)
    for away in (-1e-15, 0.0, 1e-15):
        found = leakage_supremum(adversary, border * (1.0 + away), accounting=method_of(bound))
        assert math.isfinite(found.temporal) or not found.certified
    assert leakage_supremum(adversary, border * (1.0 + 1e-9), accounting=method_of(bound)).certified
    assert math.isfinite(leakage_supremum(adversary, border * (1.0 - 1e-9), accounting=method_of(bound)).temporal)


# Tiny and huge budgets


@pytest.mark.parametrize("unit", [1e-300, 1e-100, 1e-12, 1e-6])
def test_tiny_budgets_keep_their_digits(unit):
    """Leakage is linear in budgets there; the sign rule with units in place of budgets has all digits."""
    matrices = [RING, TransitionMatrix([[0.7, 0.3], [0.1, 0.9]]), TransitionMatrix(np.eye(3))]
    for matrix in matrices:
        epsilons = np.array([1.0, 0.5, 0.0, 1.0, 2.0, 1.0]) * unit
        found = temporal_leakage(Adversary(matrix, matrix), epsilons)
        rows = matrix.dense()
        arrived = [np.abs(matrix_power_rows(rows, k)).sum(axis=2).max() for k in range(1, 6)]
        for t in range(
            6
        ):  # half the distance of rows after k steps, for the worst pair: lower by pairs, upper by steps
            upper = epsilons[t] + sum(0.5 * arrived[k] * epsilons[t - 1 - k] for k in range(t))
            assert found.backward[t] <= upper * (1.0 + 1e-5)
            assert found.attained.backward[t] >= epsilons[t] * (1.0 - 1e-14)
        pairs = 0.5 * sum(np.abs(matrix_power_rows(rows, k)).sum(axis=2) * epsilons[5 - k] for k in range(1, 6))
        assert found.backward[5] == pytest.approx(epsilons[5] + pairs.max(), rel=max(1e-12, 10.0 * unit))
        for direction in DIRECTIONS:
            attained, proved = getattr(found.attained, direction), getattr(found, direction)
            assert (attained <= proved).all()
            assert (proved <= attained * (1.0 + 1e-12)).all()


def matrix_power_rows(rows, k):
    """Differences of all rows of the matrix to the power k, shape (n, n, n)."""
    power = np.linalg.matrix_power(rows, k)
    return power[:, None, :] - power[None, :, :]


HUGE = (150.0, 299.0, 301.0, 600.0, 700.0, 1e4, 1e60)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", HUGE)
def test_bounds_of_huge_budgets_are_ordered(epsilon):
    rng = np.random.default_rng(5)
    matrices = [RING, ROAD, TransitionMatrix(np.eye(3)), *(TransitionMatrix(random_rows(4, rng)) for _ in range(2))]
    for matrix in matrices:
        adversary = Adversary(matrix, matrix)
        for epsilons in ([epsilon] * 5, [0.1, epsilon, 0.1], [epsilon, 0.0]):
            found, paper = (
                temporal_leakage(adversary, epsilons, accounting=method_of(one)) for one in ("exact", "paper")
            )
            for direction in DIRECTIONS:
                proved, above = (getattr(one, direction) for one in (found, paper))
                assert (proved <= above * (1.0 + 1e-12)).all()
                assert (proved >= np.array(epsilons)).all()
            if not found.accounting.is_exact:
                assert found.backward.max() > 300.0 or found.forward.max() > 300.0
                assert found.attained is None
                assert "upper bound" in found._repr_html_()
                continue
            for direction in DIRECTIONS:
                attained, proved = (getattr(one, direction) for one in (found.attained, found))
                assert (attained <= proved).all()
                assert (proved <= attained * (1.0 + 1e-9)).all()
            witness = found.witness()
            assert 0.0 < witness.leakage <= found.worst
            assert (found.evidence.metric(0) >= 0.0).all()
            assert found.evidence.metric(found.worst_time).max() >= found.attained.temporal.max() * (1.0 - 1e-12)
        limit = leakage_supremum(adversary, epsilon)
        for direction in DIRECTIONS:
            assert getattr(limit.lower, direction) <= getattr(limit, direction)
        assert limit.certified or "upper bound" in limit._repr_html_()


@pytest.mark.parametrize("tiny", [1e-100, 1e-240, 1e-280])
@pytest.mark.parametrize(("n_steps", "epsilon"), [(1, 250.0), (2, 149.0), (3, 290.0), (10, 70.0), (12, 100.0)])
def test_leakage_through_tiny_probabilities_is_never_too_low(tiny, n_steps, epsilon):
    """States never move until one of them is reached with a tiny probability: coefficients leave the range of doubles."""
    stays, tiny_step = TransitionMatrix(np.eye(2)), TransitionMatrix([[1.0, 0.0], [1.0 - tiny, tiny]])
    matrices = [*[stays] * (n_steps - 1), tiny_step]
    with localcontext(prec=400):
        spread = (Decimal(epsilon) * n_steps).exp() - 1
        true = float((1 + Decimal(tiny) * spread).ln())
    found = temporal_leakage(Adversary(backward=matrices), [epsilon] * n_steps + [0.0])
    assert found.backward[-1] >= true * (1.0 - 1e-15)
    assert found.backward[-1] <= true * (1.0 + 1e-12)
    assert found.accounting.is_exact == (n_steps * epsilon <= 300.0)
    if found.accounting.is_exact:
        assert found.attained.backward[-1] <= true * (1.0 + 1e-15)


@pytest.mark.parametrize("epsilon", [150.0, 299.0, 400.0, 700.0])
def test_leakage_of_huge_budgets_is_never_too_low(epsilon):
    rng = np.random.default_rng(6)
    for n in (2, 3):
        rows = random_rows(n, rng)
        found = temporal_leakage(Adversary(TransitionMatrix(rows)), [epsilon] * 4)
        true = np.max(defined_by_sign_rule([rows] * 3, *boxes_of([epsilon] * 3, n)) - 1e6 * np.eye(n)) + epsilon
        assert true <= found.backward[3] * (1.0 + 1e-13)
        if found.accounting.is_exact:
            assert found.attained.backward[3] * (1.0 - 1e-13) <= true


def test_leakage_of_huge_boxes_is_never_too_low():
    rng = np.random.default_rng(7)
    for _ in range(10):
        n = int(rng.integers(2, 4))
        rows = random_rows(n, rng)
        widest = float(rng.choice([50.0, 500.0]))
        low, high = -rng.uniform(0.0, widest, (4, n)), rng.uniform(0.0, widest, (4, n))
        boxes = [LikelihoodBox(*one) for one in zip(low, high, strict=True)]
        found = temporal_leakage(Adversary(TransitionMatrix(rows)), boxes)
        own = high[3][:, None] - low[3][None, :]
        true = np.max(defined_by_sign_rule([rows] * 3, low[:3], high[:3]) + own - 1e6 * np.eye(n))
        assert true <= found.backward[3] * (1.0 + 1e-13)
        if found.accounting.is_exact:
            assert found.attained.backward[3] * (1.0 - 1e-13) <= true


# Many users


def some_users(rng, n, count):
    """Users of different kinds, some of whom are known in one direction only."""
    users = {}
    for k in range(count):
        rows = rng.dirichlet(np.full(n, 0.4), (2, n))
        rows = 0.8 * np.eye(n) + 0.2 * rows if k % 3 == 0 else rows
        past, future = (TransitionMatrix(one / one.sum(axis=1, keepdims=True)) for one in rows)
        users[f"user {k}"] = Adversary(None if k % 10 == 1 else past, None if k % 10 == 2 else future)
    return users


@pytest.mark.long
def test_largest_suprema_of_many_users_equal_those_of_each():
    users = some_users(np.random.default_rng(9), 4, 40)
    found = leakage_supremum(users, 0.2)
    each = {name: leakage_supremum(one, 0.2) for name, one in users.items()}
    for direction in DIRECTIONS:
        expected = max(getattr(one, direction) for one in each.values())
        assert getattr(found, direction) == pytest.approx(expected, rel=2e-12)
    assert found.worst_user == max(each, key=lambda name: each[name].temporal)


@pytest.mark.parametrize("stays", [0.7, 0.9])
def test_certified_level_counts_past_and_future_together(stays):
    rows = TransitionMatrix([[stays, 1.0 - stays], [1.0 - stays, stays]])
    found = leakage_supremum(Adversary(rows, rows), 0.5)
    release = Releases(np.array([[0.5]]), np.zeros((1, 1)))
    for past, future, expected in (
        (rows, rows, found.temporal),
        (rows, None, found.backward),
        (None, rows, found.forward),
    ):
        held = Repeated([one for one in (past, future) if one]).leakage_within(release, expected * (1.0 + 1e-6))
        assert expected * (1.0 - 1e-9) <= held <= expected * (1.0 + 1e-5)
