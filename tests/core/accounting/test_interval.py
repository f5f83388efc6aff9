"""Leakage through sets of matrices: no member leaks more, and nothing is above the paper's kind of bound."""

import numpy as np
import pytest

from interval_oracles import backward_leakage, corners, members, random_bounds, tight_bounds, worst_of_changing_matrices
from making import around, contains
from methods import method_of
from oracles import defined_leakage
from temporaldp import (
    Adversary,
    ApproximateDP,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    IntervalMatrix,
    LeakageBudgetError,
    Ledger,
    LikelihoodBox,
    MetricPrivacy,
    PaperBound,
    Periodic,
    TemporalAccountant,
    TransitionMatrix,
    leakage_supremum,
    plan_budget,
    sticky,
    sustainable_budget,
    temporal_leakage,
)
from temporaldp.base.errors import LedgerMismatchError
from temporaldp.core.kernels.interval import by_rows, by_sets
from temporaldp.lab.studies import worst_member
from temporaldp.lab.studies.worst_member import entry_derivatives


def uncertain(low, high):
    return Adversary(backward=IntervalMatrix(low, high))


def require_above_members(seed, n_members):
    rng = np.random.default_rng(seed)
    n, n_steps = int(rng.integers(2, 7)), int(rng.integers(2, 6))
    low, high = random_bounds(rng, n, zeros=bool(rng.integers(2)))
    epsilons = rng.choice([0.05, 0.3, 1.0]) * (0.5 + rng.random(n_steps))
    exact = backward_leakage(members(rng, low, high, n_members), epsilons)
    ours = temporal_leakage(uncertain(low, high), epsilons).backward[-1]
    paper = temporal_leakage(uncertain(low, high), epsilons, accounting=PaperBound()).backward[-1]
    assert exact.max() <= ours * (1.0 + 1e-12)
    assert ours <= paper * (1.0 + 1e-14)


@pytest.mark.parametrize("seed", range(15))
def test_bound_covers_every_matrix_of_a_set(seed):
    require_above_members(seed, 100)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_bound_covers_every_matrix_of_two_thousand_sets(block):
    for seed in range(100):
        require_above_members(1000 + 100 * block + seed, 3000)


def require_above_the_definition(seed, most_values):
    """BPL, FPL and TPL of members that change at every step, all outputs of the worst mechanism enumerated."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most_values + 1))
    n_steps = int(rng.integers(2, 5 if n < 4 else 4))
    epsilons = rng.choice([0.05, 0.5, 3.0]) * rng.random(n_steps) * (rng.random(n_steps) < 0.8)
    sets = [[random_bounds(rng, n, zeros=bool(rng.integers(2))) for _ in range(n_steps - 1)] for _ in range(2)]
    sets = [one if seed % 2 else one[:1] * (n_steps - 1) for one in sets]
    user = Adversary(*([IntervalMatrix(*bounds) for bounds in one] for one in sets))
    ours = temporal_leakage(user, epsilons)
    for _ in range(5):
        drawn = [[members(rng, *bounds, 1)[0] for bounds in one] for one in sets]
        for name, wanted in zip(("backward", "forward", "temporal"), defined_leakage(*drawn, epsilons), strict=True):
            assert (getattr(ours, name) >= wanted * (1.0 - 1e-12) - 1e-13).all()  # rows are drawn to 14 digits


@pytest.mark.parametrize("seed", range(10))
def test_bound_covers_the_enumerated_definition(seed):
    require_above_the_definition(seed, 3)


@pytest.mark.slow
def test_bound_covers_the_enumerated_definition_in_many_sets():
    for seed in range(100, 600):
        require_above_the_definition(seed, 4)


@pytest.mark.parametrize("seed", range(8))
def test_enumerated_bound_is_attained_by_time_varying_matrices(seed):
    rng = np.random.default_rng(seed)
    n = 2 if seed % 2 else 3
    n_steps = 4 if n == 2 else 3
    low, high = random_bounds(rng, n)
    epsilons = 0.1 + rng.random(n_steps)
    wanted = worst_of_changing_matrices(low, high, epsilons)
    got = temporal_leakage(uncertain(low, high), epsilons).backward[-1]
    assert wanted - 1e-9 <= got <= wanted + 1e-9


@pytest.mark.slow
def test_four_states_against_enumeration():
    rng = np.random.default_rng(1)
    low, high = random_bounds(rng, 4, width=0.1)
    epsilons = np.array([0.4, 0.7, 0.2])
    wanted = worst_of_changing_matrices(low, high, epsilons)
    assert abs(temporal_leakage(uncertain(low, high), epsilons).backward[-1] - wanted) < 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_bound_by_rows_is_never_below_the_enumeration(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    bounds = tight_bounds(*random_bounds(rng, n))
    spreads = [0.9, 0.7, 0.4]
    exact = by_sets([bounds] * 3, [0.3, 0.2], spreads[2])
    rolled = by_rows([bounds] * 3, [0.3, 0.2], spreads, 2)
    # Pairs that cannot be the largest keep a rough bound.
    assert (rolled >= np.minimum(exact, spreads[0]) - 1e-12).all()


@pytest.mark.slow
def test_bound_by_rows_lies_between_members_and_the_papers_bound():
    rng = np.random.default_rng(8)
    low, high = random_bounds(rng, 15, width=0.01)
    epsilons = np.full(5, 0.2)
    exact = backward_leakage(corners(rng, low, high, 30), epsilons).max()
    ours, paper = (
        temporal_leakage(uncertain(low, high), epsilons, accounting=method_of(bound)).backward[-1]
        for bound in ("exact", "paper")
    )
    assert exact <= ours < paper


@pytest.mark.parametrize("n", [3, 9])
def test_budgets_of_hundreds_of_nats_are_not_truncated(n):
    still = IntervalMatrix(np.eye(n), np.eye(n))
    for epsilons in ([100, 90, 80, 70, 1], [40] * 12):  # of values that never change all outputs add up
        assert temporal_leakage(Adversary(still), epsilons).backward[-1] == pytest.approx(sum(epsilons))


def test_intervals_of_width_zero_give_the_exact_leakage():
    walk = TransitionMatrix([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.1, 0.1, 0.8]])
    point = IntervalMatrix(walk.dense(), walk.dense())
    epsilons = [0.3, 0.1, 0.4, 0.2]
    exact = temporal_leakage(Adversary(walk, walk), epsilons)
    bound = temporal_leakage(Adversary(point, point), epsilons)
    for name in ("backward", "forward", "temporal"):
        np.testing.assert_allclose(getattr(bound, name), getattr(exact, name), rtol=1e-9)
        assert (getattr(bound, name) >= getattr(exact.attained, name) * (1 - 1e-13)).all()
    assert bound.accounting.name == "interval"
    assert bound.worst_pair() == exact.worst_pair()


@pytest.mark.parametrize("seed", range(3))
def test_no_horizon_exceeds_the_supremum(seed):
    rng = np.random.default_rng(seed)
    low, high = random_bounds(rng, int(rng.integers(2, 5)), width=0.05)
    adversary = uncertain(low, high)
    limit = leakage_supremum(adversary, 0.2)
    series = temporal_leakage(adversary, np.full(40, 0.2))
    assert series.worst <= limit.temporal * (1 + 1e-12)
    assert limit.temporal <= leakage_supremum(adversary, 0.2, accounting=PaperBound()).temporal
    assert limit.accounting.name == "interval"
    assert limit.temporal <= series.worst * 1.01 + 1e-9


def test_states_that_may_not_communicate_have_no_supremum():
    four = sticky(4, stays=(0.7, 0.95))  # two pairs of values that stay among themselves are in the set
    assert leakage_supremum(Adversary(four), 0.1).backward == np.inf
    two = leakage_supremum(Adversary(sticky(2, stays=(0.7, 0.95))), 0.1).backward
    worst = TransitionMatrix([[0.95, 0.05], [0.05, 0.95]])
    assert two == pytest.approx(leakage_supremum(Adversary(worst), 0.1).backward, rel=1e-6)


def test_gradients_equal_those_of_the_log_ratio():
    rng = np.random.default_rng(2)
    P, factors = rng.dirichlet(np.ones(4), 4), np.where(rng.random((5, 4)) < 0.5, 1.7, 1.0)

    def log_ratio(matrix):
        x = factors[0]
        for factor in factors[1:]:
            x = factor * (matrix @ x)
        return np.log(matrix[2] @ x) - np.log(matrix[0] @ x)

    slopes = entry_derivatives([P] * 5, factors, 2, 0).sum(axis=0)
    for k, m in np.ndindex(4, 4):
        step = np.zeros((4, 4))
        step[k, m] = 1e-6
        assert slopes[k, m] == pytest.approx((log_ratio(P + step) - log_ratio(P - step)) / 2e-6, rel=1e-6, abs=1e-9)


@pytest.mark.long
def test_ascent_finds_a_member_between_the_centre_and_the_bound():
    rng = np.random.default_rng(4)
    adversary = Adversary(
        IntervalMatrix(*random_bounds(rng, 4, width=0.1)), IntervalMatrix(*random_bounds(rng, 4, width=0.1))
    )
    epsilons = np.full(8, 0.3)
    found = worst_member(adversary, epsilons=epsilons, rng=1)
    assert contains(adversary.backward, found.adversary.backward)
    assert contains(adversary.forward, found.adversary.forward)
    centre = Adversary(adversary.backward.central(), adversary.forward.central())
    assert temporal_leakage(centre, epsilons).worst < found.leakage.worst
    assert found.leakage.worst <= temporal_leakage(adversary, epsilons).worst


def test_ascent_over_a_clock_takes_each_transition_from_the_set_of_its_phase():
    walks = (TransitionMatrix([[stay, 1.0 - stay], [1.0 - stay, stay]]) for stay in (0.9, 0.6))
    calm, busy = (around(walk, width=0.02) for walk in walks)
    adversary = Adversary(Periodic((calm, busy)))
    found = worst_member(adversary, epsilons=[0.1] * 6)
    each = [found.adversary.backward.at(t) for t in range(5)]
    assert all(contains(adversary.backward.at(t), matrix) for t, matrix in enumerate(each))
    assert found.leakage.worst <= temporal_leakage(adversary, [0.1] * 6).worst * (1.0 + 1e-12)


def test_ascent_beats_random_members():
    rng = np.random.default_rng(9)
    low, high = random_bounds(rng, 3, width=0.2)
    epsilons = np.full(5, 0.5)
    found = worst_member(uncertain(low, high), epsilons=epsilons, n_starts=2)
    exact = backward_leakage(members(rng, low, high, 2000), epsilons)
    assert found.leakage.worst >= 0.99 * exact.max() > 1.1 * np.median(exact)  # a local optimum


@pytest.mark.long
def test_plans_and_accountants_satisfy_the_level_for_the_set():
    rng = np.random.default_rng(6)
    low, high = random_bounds(rng, 3, width=0.05)
    adversary = uncertain(low, high)
    plan = plan_budget(adversary, alpha=1.0, horizon=6)
    assert temporal_leakage(adversary, plan.epsilons).worst <= 1.0
    assert sustainable_budget(adversary, alpha=1.0) > 0.0
    for member in members(rng, low, high, 20):
        known = Adversary(TransitionMatrix(member / member.sum(1, keepdims=True)))
        assert temporal_leakage(known, plan.epsilons).worst <= 1.0
    accountant = TemporalAccountant(adversary, alpha=1.0)
    accountant.spend(0.1)
    assert accountant.remaining() < 1.0


def test_intervals_under_approximate_dp_use_their_profile():
    adversary = uncertain([[0.7, 0.1], [0.1, 0.7]], [[0.9, 0.3], [0.3, 0.9]])
    worst = Adversary(TransitionMatrix([[0.9, 0.1], [0.1, 0.9]]))
    bound, member = (
        temporal_leakage(one, [0.5] * 4, accounting=ApproximateDP(1e-6)).worst for one in (adversary, worst)
    )
    assert bound >= member * (1 - 1e-9)
    assert leakage_supremum(adversary, 0.3, accounting=ApproximateDP(1e-6)).temporal >= member * 0.5


@pytest.mark.parametrize("seed", range(2))
def test_accountant_admits_the_plan_and_agrees_with_the_series(seed):
    rng = np.random.default_rng(seed)
    bounds = [IntervalMatrix(*random_bounds(rng, 2 + seed, width=0.1)) for _ in range(2)]
    adversary = Adversary(*bounds)
    plan = plan_budget(adversary, alpha=1.0, horizon=7)
    accountant = TemporalAccountant(adversary, alpha=1.0, horizon=7).spend(plan.epsilons)
    assert accountant.accounting.name == plan.accounting.name == "interval"
    assert plan.leakage.worst <= accountant.total() <= 1.0
    assert accountant.total() == pytest.approx(plan.leakage.worst, rel=1e-7)
    assert plan.leakage.worst > 0.99
    assert plan.optimality.error <= 1.0001 * float(
        np.mean(1.0 / plan_budget(adversary, alpha=1.0, horizon=7, accounting=PaperBound()).epsilons)
    )


@pytest.mark.long
def test_filter_satisfies_the_level_after_large_budgets():
    adversary = uncertain([[0.6, 0.1], [0.2, 0.5]], [[0.9, 0.4], [0.5, 0.8]])
    accountant = TemporalAccountant(adversary, alpha=1.0)
    assert accountant.reserve > 0.0
    for share in (0.9, 0.0, 0.3, 1.0):
        with pytest.raises(LeakageBudgetError):
            accountant.check(accountant.remaining() * 1.001 + 1e-6)
        accountant.spend(share * accountant.remaining())
        whole = [*accountant.spent, *[accountant.reserve] * 60]
        assert temporal_leakage(adversary, whole).worst <= 1.0


def test_continual_release_with_an_interval_matrix(tmp_path):
    adversary = uncertain([[0.7, 0.1], [0.1, 0.7]], [[0.9, 0.3], [0.3, 0.9]])
    for place in range(2):  # the second one goes on where the first stopped
        accountant = TemporalAccountant(adversary, alpha=1.0)
        with ContinualRelease(
            DiscreteLaplaceHistogram(2), accountant=accountant, ledger=tmp_path / "set.db"
        ) as release:
            release.release([3, 4], time=str(place))
    with Ledger(tmp_path / "set.db") as ledger:
        assert ledger.configuration["accounting"] == {"method": "interval"}
        assert len(ledger) == 2
    narrower = TemporalAccountant(uncertain([[0.7, 0.1], [0.1, 0.8]], [[0.9, 0.3], [0.2, 0.9]]), alpha=1.0)
    with pytest.raises(LedgerMismatchError, match="correlations"):
        ContinualRelease(DiscreteLaplaceHistogram(2), accountant=narrower, ledger=tmp_path / "set.db")


def test_metrics_count_by_largest_distance_and_boxes_by_width():
    adversary = uncertain([[0.7, 0.1], [0.1, 0.7]], [[0.9, 0.3], [0.3, 0.9]])
    plain = temporal_leakage(adversary, [0.4, 0.2, 0.4])
    far = temporal_leakage(adversary, [0.2, 0.1, 0.2], accounting=MetricPrivacy([[0, 2], [1, 0]]))
    np.testing.assert_allclose(far.temporal, plain.temporal, rtol=1e-12)
    np.testing.assert_array_equal(far.epsilons, [0.4, 0.2, 0.4])
    boxes = [LikelihoodBox([0, 0], [epsilon, epsilon]) for epsilon in plain.epsilons]
    np.testing.assert_allclose(temporal_leakage(adversary, boxes).temporal, plain.temporal, rtol=1e-12)
    worst = Adversary(TransitionMatrix([[0.9, 0.1], [0.1, 0.9]]))
    member = temporal_leakage(worst, [0.2, 0.1, 0.2], accounting=MetricPrivacy([[0, 2], [1, 0]]))
    assert (member.backward <= far.backward * (1 + 1e-12)).all()
    limit = leakage_supremum(adversary, 0.1, accounting=MetricPrivacy([[0, 2], [1, 0]]))
    assert limit.temporal == pytest.approx(leakage_supremum(adversary, 0.2).temporal, rel=1e-6)


def test_users_with_known_matrices_stay_exact_beside_intervals():
    walk = Adversary(TransitionMatrix([[0.9, 0.1], [0.1, 0.9]]))
    users = {"known": walk, "set": uncertain([[0.7, 0.1], [0.1, 0.7]], [[0.8, 0.3], [0.3, 0.8]])}
    series = temporal_leakage(users, [0.3] * 4)
    assert [one.accounting.name for one in series.members] == ["exact", "interval"]
    assert (series.accounting.name, series.worst_user) == ("interval", "known")
    assert series.members[0].worst == temporal_leakage(walk, [0.3] * 4).worst
    limit = leakage_supremum(users, 0.3)
    assert (limit.accounting.name, limit.worst_user) == ("interval", "known")
    assert limit.temporal == pytest.approx(leakage_supremum(walk, 0.3).temporal, rel=1e-9)
    accountant = TemporalAccountant(users, alpha=1.0)
    accountant.spend(accountant.remaining())
    assert accountant.total() <= 1.0


class ForKnownMatrices(PaperBound):
    """A user's method whose numbers hold for one matrix only."""

    takes_sets = False


def test_unsupported_arguments_are_refused():
    adversary = uncertain([[0.7, 0.1], [0.1, 0.7]], [[0.9, 0.3], [0.3, 0.9]])
    with pytest.raises(InputError, match="needs matrices that are known exactly"):
        temporal_leakage(adversary, [0.1], accounting=ForKnownMatrices())
    with pytest.raises(InputError, match="no set to search"):
        worst_member(Adversary(TransitionMatrix([[0.5, 0.5], [0.4, 0.6]])), epsilons=[0.1])
    with pytest.raises(InputError, match="known exactly"):
        Adversary.from_forward(sticky(2, stays=(0.7, 0.9)), initial=[0.5, 0.5])
