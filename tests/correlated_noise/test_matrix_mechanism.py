"""Matrix mechanisms: couplings against sums over all paths, published values, and simulation."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import temporaldp as tdp
from correlated_noise.enumeration import drawn_ratios
from temporaldp.correlated_noise import MatrixMechanism, plan_matrix, simulate_leakage
from temporaldp.correlated_noise.coupling import Couplings, StepCouplings

STICKY = np.array([[0.9, 0.1], [0.2, 0.8]])


def adversary(forward):
    return tdp.Adversary.from_forward(tdp.TransitionMatrix(forward))


def leakage(forward, mechanism, delta):
    return tdp.temporal_leakage(adversary(forward), mechanism, accounting=tdp.ApproximateDP(delta))


def calibrated(name, n_steps):
    return getattr(MatrixMechanism, name)(n_steps, sigma=1.0).calibrated(0.894, delta=1e-3)


@pytest.mark.parametrize(("name", "published"), [("independent", 2.93), ("tree", 6.44), ("square_root", 7.52)])
def test_couplings_without_quilts_have_the_values_of_the_theory_chapter(name, published):
    mechanism = calibrated(name, 12)
    couplings = Couplings(adversary(STICKY).over(12), 12)
    mixture = StepCouplings(couplings, mechanism.matrix, 6, "temporal").mixture(0, 0)
    assert mixture.epsilon(1e-3, mechanism.sigma).max() == pytest.approx(published, abs=0.006)
    assert leakage(STICKY, mechanism, 1e-3).temporal[6] <= published + 0.006


@pytest.mark.parametrize(("name", "alone"), [("tree", 19.6), ("square_root", 21.1)])
def test_quilts_keep_bounds_of_64_steps_below_5_where_couplings_alone_do_not(name, alone):
    mechanism, couplings = calibrated(name, 64), Couplings(adversary(STICKY).over(64), 64)
    bounds = [
        StepCouplings(couplings, mechanism.matrix, t, "temporal").mixture(0, 0).epsilon(1e-3, mechanism.sigma).max()
        for t in (20, 21)
    ]
    assert max(bounds) == pytest.approx(alone, abs=0.1)
    assert leakage(STICKY, mechanism, 1e-3).worst < 5.0


@pytest.mark.long
@pytest.mark.parametrize(("name", "simulated"), [("independent", 1.69), ("tree", 2.99), ("square_root", 3.19)])
def test_simulation_agrees_with_the_values_of_the_theory(name, simulated):
    found = simulate_leakage(adversary(STICKY), calibrated(name, 12), delta=1e-3, step=6, draws=60_000)
    assert found.lower < simulated < found.upper < 1.25 * simulated
    assert found.lower > 0.55 * simulated


def random_case(seed):
    rng = np.random.default_rng(seed)
    n, T = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    forward = rng.dirichlet(np.ones(n), size=n)
    if rng.random() < 0.5:
        forward = 0.3 * forward + 0.7 * np.eye(n)
    backward = rng.dirichlet(np.ones(n), size=n)
    strategy = np.tril(rng.normal(size=(T, T)) if rng.random() < 0.3 else rng.random((T, T)))
    strategy[np.diag_indices(T)] += np.where(np.diag(strategy) < 0.0, -0.5, 0.5)
    return rng, n, T, backward, forward, strategy


@pytest.mark.long
def test_bound_covers_the_leakage_summed_over_all_paths():
    delta, draws, ratios = 0.05, 10_000, []
    for seed in range(200):
        rng, n, T, backward, forward, strategy = random_case(seed)
        sigma, step = float(rng.uniform(0.5, 3.0)), int(rng.integers(T))
        given = tdp.Adversary(tdp.TransitionMatrix(backward), tdp.TransitionMatrix(forward))
        series = tdp.temporal_leakage(given, MatrixMechanism(strategy, sigma), accounting=tdp.ApproximateDP(delta))
        bounds, worst = series.evidence.metric(step), 0.0
        for i in range(n):
            for j in set(range(n)) - {i}:
                found = drawn_ratios(strategy, sigma, backward, forward, step, i, j, draws, rng)
                values = np.maximum(-np.expm1(bounds[i, j] - found), 0.0)
                assert values.mean() <= delta + 5.0 * values.std() / math.sqrt(draws), (seed, i, j)
                levels = np.linspace(0.0, bounds.max() + 1e-9, 200)
                deltas = np.array([np.maximum(-np.expm1(level - found), 0.0).mean() for level in levels])
                worst = max(worst, levels[np.argmax(deltas <= delta)] if (deltas <= delta).any() else levels[-1])
        assert series.temporal[step] == bounds.max()
        if worst > 0.05:
            ratios.append(bounds.max() / worst)
    assert len(ratios) > 100
    assert np.median(ratios) < 2.5, np.median(ratios)


def test_each_direction_uses_its_own_outputs():
    """Of a release of two steps, the first has no past, and the last no future: a sum over the two paths of the other step."""
    strategy, sigma, delta = np.array([[1.0, 0.0], [0.7, 1.0]]), 1.5, 0.02
    series = leakage(STICKY, MatrixMechanism(strategy, sigma), delta)
    alone = norm.cdf
    mu = math.sqrt(2.0) / sigma
    own = alone(mu / 2 - series.backward[0] / mu) - math.exp(series.backward[0]) * alone(
        -mu / 2 - series.backward[0] / mu
    )
    assert own == pytest.approx(delta, rel=1e-5)
    assert series.forward[0] == series.temporal[0]
    assert series.backward[1] == series.temporal[1]
    assert series.forward[1] < series.temporal[1]


def test_noise_of_one_step_is_its_event_level():
    mechanism = MatrixMechanism.independent(1, 3.0)
    series = tdp.temporal_leakage(tdp.Adversary(), mechanism, accounting=tdp.ApproximateDP(1e-3))
    assert series.temporal[0] == pytest.approx(series.epsilons[0], rel=1e-5)
    assert series.temporal[0] >= series.epsilons[0] * (1.0 - 1e-5)


def test_more_noise_or_a_larger_delta_never_raises_the_leakage():
    least = math.inf
    for sigma in (2.0, 3.0, 5.0, 9.0):
        worst = leakage(STICKY, MatrixMechanism.square_root(10, sigma), 1e-4).worst
        assert worst < least
        least = worst
    assert leakage(STICKY, MatrixMechanism.square_root(10, 9.0), 1e-3).worst < least


def test_leakage_of_many_states_is_that_of_the_worst_coupling():
    """Beyond 8 states one coupling stands for all at a quilt: an upper bound of the one for each."""
    rng = np.random.default_rng(3)
    forward = 0.5 * np.eye(10) + 0.5 * rng.dirichlet(np.ones(10), size=10)
    mechanism = MatrixMechanism.tree(6, 6.0)
    assert mechanism.sigma < 7.0
    worst = leakage(forward, mechanism, 1e-3).worst
    assert (
        leakage(np.eye(10) * 0.9999 + 0.00001, mechanism, 1e-3).worst > worst > leakage(forward, mechanism, 1e-2).worst
    )


def test_sensitivities_are_those_of_jax_privacy():
    """Published in its tests: 6 for this matrix, 3 for the 1 x 1 matrix 3, the norm of its coefficients for a Toeplitz matrix.

    google-deepmind/jax_privacy, tests/matrix_factorization: sensitivity_test.py and toeplitz_test.py.
    """
    matrix = [[1.0, 0.0, 0.0, 0.0], [2.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 3.0, -6.0]]
    assert MatrixMechanism(matrix, 1.0).sensitivity == 6.0
    assert MatrixMechanism([[3.0]], 1.0).sensitivity == 3.0
    assert MatrixMechanism.independent(7, 1.0).sensitivity == 1.0
    for coefficients, n_steps in (([1.0, 0.5, 0.2], 3), ([1.0, 0.7, 2.0], 4), (np.linspace(1.0, 0.1, 11), 16)):
        assert MatrixMechanism.banded(n_steps, coefficients, 1.0).sensitivity ** 2 == pytest.approx(
            np.square(coefficients).sum()
        )
    assert MatrixMechanism.tree(64, 1.0).sensitivity == pytest.approx(math.sqrt(7.0))
    assert MatrixMechanism.tree(12, 1.0).sensitivity == pytest.approx(2.0)


def test_the_square_root_has_the_coefficients_and_the_error_of_the_literature():
    mechanism = MatrixMechanism.square_root(64, 1.0)
    assert mechanism.matrix @ mechanism.matrix == pytest.approx(np.tril(np.ones((64, 64))))
    published = np.cumsum([(math.comb(2 * k, k) / 4.0**k) ** 2 for k in range(64)])  # squares of the norms of its rows
    assert mechanism.running_count_error**2 == pytest.approx(published)
    assert mechanism.sensitivity**2 == pytest.approx(published[-1])


def test_errors_at_one_event_level_are_those_of_the_theory():
    independent, tree, root = (calibrated(name, 64) for name in ("independent", "tree", "square_root"))
    rms = [math.sqrt(np.mean(one.running_count_error**2)) for one in (independent, tree, root)]
    assert rms[0] / rms[1] == pytest.approx(2.3, abs=0.05)
    assert rms[0] / rms[2] == pytest.approx(2.6, abs=0.05)


def test_a_plan_satisfies_its_level_with_the_least_error():
    for forward in (STICKY, np.array([[0.6, 0.4], [0.45, 0.55]])):
        plan = plan_matrix(adversary(forward), alpha=1.0, delta=1e-3, horizon=16)
        assert plan.leakage.worst <= 1.0
        assert plan.errors["planned"] == min(plan.errors.values())
        for name in ("tree", "square root"):
            assert leakage(forward, plan.alternatives[name], 1e-3).worst == pytest.approx(1.0, abs=1e-3)
            assert leakage(forward, plan.alternatives[name], 1e-3).worst <= 1.0 + 1e-7
    assert plan.errors["planned"] < 0.97 * plan.errors["independent"]  # of the weaker correlation
    assert "planned" in repr(plan)


def test_a_plan_of_counts_is_independent_noise():
    plan = plan_matrix(adversary([[0.6, 0.4], [0.45, 0.55]]), alpha=1.0, delta=1e-3, horizon=6, objective="count")
    assert plan.errors["planned"] <= plan.errors["independent"]
    assert plan.errors["square root"] > plan.errors["planned"]


def test_a_common_scale_of_matrix_and_noise_changes_nothing():
    expected = leakage(STICKY, MatrixMechanism.tree(4, 2.0), 1e-3).temporal
    for scale in (1e-40, 1e40):
        scaled = MatrixMechanism(MatrixMechanism.tree(4, 1.0).matrix * scale, 2.0 * scale)
        assert leakage(STICKY, scaled, 1e-3).temporal == pytest.approx(expected, rel=1e-7)
    with pytest.raises(tdp.InputError, match="largest entry of the matrix and sigma"):
        MatrixMechanism(np.eye(4) * 9e153, 9e153)
    with pytest.raises(tdp.InputError, match="largest entry of the matrix and sigma"):
        MatrixMechanism(np.eye(4) * 1e10, 1e-300)
    assert math.isinf(leakage(STICKY, MatrixMechanism(np.eye(4) * 1e10, 1e-40), 1e-3).worst)


def test_independent_noise_has_the_smaller_of_both_bounds():
    mechanism = MatrixMechanism.independent(8, 4.0)
    curves = tdp.temporal_leakage(
        adversary(STICKY), [tdp.GaussianNoise(4.0, math.sqrt(2.0))] * 8, accounting=tdp.ApproximateDP(1e-3)
    )
    assert leakage(STICKY, mechanism, 1e-3).temporal == pytest.approx(curves.temporal)


def test_plan_never_exceeds_alpha_by_rounding():
    forward = [[0.98919946, 0.01080054], [0.45060444, 0.54939556]]
    plan = plan_matrix(adversary(forward), 3.3, 0.01, 7, "count")
    assert plan.leakage.worst <= 3.3
    for mechanism in plan.alternatives.values():
        assert leakage(forward, mechanism, 0.01).worst <= 3.3


def test_a_step_at_which_nothing_is_published_is_simulated_too():
    found = simulate_leakage(
        adversary(STICKY), MatrixMechanism([[1.0, 1.0], [1.0, -1.0]], 2.0), delta=0.01, draws=10_000
    )
    assert 0.0 < found.lower <= found.upper < math.inf


@pytest.mark.parametrize(
    "given", [{"step": 9}, {"step": -1}, {"draws": 1}, {"failure": 0.0}, {"failure": 1e9}], ids=str
)
def test_unsupported_simulations_are_refused(given):
    with pytest.raises(tdp.InputError, match="expected"):
        simulate_leakage(adversary(STICKY), MatrixMechanism.tree(4, 2.0), delta=0.1, **given)


def test_gaussian_noise_is_never_purely_private():
    with pytest.raises(tdp.InputError, match="expected delta"):
        MatrixMechanism.independent(4, sigma=1.0).calibrated(1.0, delta=0.0)


def test_unsupported_arguments_are_refused():
    mechanism = MatrixMechanism.tree(4, 2.0)
    known = adversary(STICKY)
    with pytest.raises(tdp.InputError, match="infinite leakage without a delta"):
        tdp.temporal_leakage(known, mechanism)
    with pytest.raises(tdp.InputError, match="expected ApproximateDP"):
        tdp.temporal_leakage(known, mechanism, accounting=tdp.PaperBound())
    with pytest.raises(tdp.InputError, match="pure event-level epsilon"):
        tdp.temporal_leakage(known, mechanism, accounting=tdp.MarkovQuilt())
    with pytest.raises(tdp.InputError, match=r"delta .* >= 1e-11"):
        tdp.temporal_leakage(known, mechanism, accounting=tdp.ApproximateDP(1e-13))
    with pytest.raises(tdp.BudgetError, match="one number of steps, got 4 and 5"):
        tdp.temporal_leakage(known, mechanism, accounting=tdp.ApproximateDP(1e-3), horizon=5)
    wide = tdp.IntervalMatrix([[0.8, 0.0], [0.1, 0.7]], [[1.0, 0.2], [0.3, 0.9]])
    with pytest.raises(tdp.InputError, match="known exactly"):
        tdp.temporal_leakage(tdp.Adversary(wide, wide), mechanism, accounting=tdp.ApproximateDP(1e-3))
    with pytest.raises(tdp.InputError, match="words of 3 states"):
        simulate_leakage(adversary(np.full((3, 3), 1 / 3)), MatrixMechanism.square_root(12, 1.0), delta=0.1)
    for matrix in ([[1.0, 1.0]], [[math.nan]], [1.0]):
        with pytest.raises(tdp.InputError, match="expected"):
            MatrixMechanism(matrix, 1.0)
    with pytest.raises(tdp.InputError, match="coefficients"):
        MatrixMechanism.banded(2, [1.0, 0.5, 0.1], 1.0)
    with pytest.raises(tdp.InputError, match="objective"):
        plan_matrix(known, 1.0, 1e-3, 4, objective="sum")
