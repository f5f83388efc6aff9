"""Matrix mechanisms: couplings against sums over all paths, published values, and Laplace noise against its definition."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

import temporaldp as tdp
from making import square_root
from path_enumeration import drawn_ratios, path_probabilities
from temporaldp.lab.correlated_noise import MatrixMechanism
from temporaldp.lab.correlated_noise.coupling import Couplings, StepCouplings

STICKY = np.array([[0.9, 0.1], [0.2, 0.8]])


def adversary(forward):
    return tdp.Adversary.from_forward(tdp.TransitionMatrix(forward))


def leakage(forward, mechanism, delta):
    return tdp.temporal_leakage(adversary(forward), mechanism, accounting=tdp.ApproximateDP(delta))


def gaussian(sigma):
    return tdp.GaussianNoise(sigma, sensitivity=math.sqrt(2.0))


def laplace(scale):
    return tdp.LaplaceNoise(scale, sensitivity=1.0, coordinates=2)


def calibrated(name, n_steps):
    kind = square_root if name == "square_root" else getattr(MatrixMechanism, name)
    return kind(n_steps, gaussian(1.0)).calibrated(0.894, delta=1e-3)


def without_quilts(mechanism, step):
    """The bound by couplings alone."""
    couplings = Couplings(adversary(STICKY).over(mechanism.n_steps), mechanism.n_steps)
    strategy = mechanism.matrix / mechanism.noise.standard_deviation
    return StepCouplings(couplings, strategy, step, "temporal").mixture(0, 0).epsilon(1e-3).max()


@pytest.mark.parametrize(
    ("name", "published"),
    [
        pytest.param("independent", 2.93, marks=pytest.mark.long),
        ("tree", 6.44),
        pytest.param("square_root", 7.52, marks=pytest.mark.long),
    ],
)
def test_couplings_without_quilts_have_the_values_of_the_theory_chapter(name, published):
    mechanism = calibrated(name, 12)
    assert without_quilts(mechanism, 6) == pytest.approx(published, abs=0.006)
    assert leakage(STICKY, mechanism, 1e-3).temporal[6] <= published + 0.006


@pytest.mark.parametrize(("name", "alone"), [("tree", 19.6), ("square_root", 21.1)])
@pytest.mark.long
def test_quilts_keep_bounds_of_64_steps_below_5_where_couplings_alone_do_not(name, alone):
    mechanism = calibrated(name, 64)
    assert max(without_quilts(mechanism, step) for step in (20, 21)) == pytest.approx(alone, abs=0.1)
    assert leakage(STICKY, mechanism, 1e-3).worst < 5.0


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
    for seed in range(100):
        rng, n, T, backward, forward, strategy = random_case(seed)
        sigma, step = float(rng.uniform(0.5, 3.0)), int(rng.integers(T))
        given = tdp.Adversary(tdp.TransitionMatrix(backward), tdp.TransitionMatrix(forward))
        series = tdp.temporal_leakage(
            given, MatrixMechanism(strategy, gaussian(sigma)), accounting=tdp.ApproximateDP(delta)
        )
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
    assert len(ratios) > 50
    assert np.median(ratios) < 2.5, np.median(ratios)


@pytest.mark.long
def test_moves_long_ago_count_where_the_longest_difference_cancels():
    """Noise that is small at steps 1 to 20 alone; states differ by at least as much as the last move among them shows."""
    stay, weights = 0.999, np.where(np.isin(np.arange(120), range(1, 21)), 1.0, 1e-3)
    changes = weights[:, None] * (np.eye(120) - np.eye(120, k=-1))
    series = leakage([[stay, 1.0 - stay], [1.0 - stay, stay]], MatrixMechanism(changes, gaussian(0.1)), 1e-3)
    # Pr(state at step 19) after one move among the first 20, given the state at step 119, and the same without noise
    later = 0.5 + 0.5 * (2.0 * stay - 1.0) ** 100
    moved = 19.0 * (1.0 - stay) * stay**18
    seen, unseen = (
        0.98 * moved * later,
        moved * (1.0 - later) + 1e-6,
    )  # thresholds of half a unit are five deviations away
    assert series.temporal[119] >= math.log((seen - 1e-3) / unseen)


def test_each_direction_uses_its_own_outputs():
    """Of a release of two steps, the first has no past, and the last no future: a sum over the two paths of the other step."""
    strategy, sigma, delta = np.array([[1.0, 0.0], [0.7, 1.0]]), 1.5, 0.02
    series = leakage(STICKY, MatrixMechanism(strategy, gaussian(sigma)), delta)
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
    mechanism = MatrixMechanism.independent(1, gaussian(3.0))
    series = tdp.temporal_leakage(tdp.Adversary(), mechanism, accounting=tdp.ApproximateDP(1e-3))
    assert series.temporal[0] == pytest.approx(series.epsilons[0], rel=1e-5)
    assert series.temporal[0] >= series.epsilons[0] * (1.0 - 1e-5)


@pytest.mark.long
def test_more_noise_or_a_larger_delta_never_raises_the_leakage():
    least = math.inf
    for sigma in (2.0, 3.0, 5.0, 9.0):
        worst = leakage(STICKY, square_root(10, gaussian(sigma)), 1e-4).worst
        assert worst < least
        least = worst
    assert leakage(STICKY, square_root(10, gaussian(9.0)), 1e-3).worst < least


@pytest.mark.long
def test_leakage_of_many_states_is_that_of_the_worst_coupling():
    """Beyond 8 states one coupling stands for all at a quilt: an upper bound of the one for each."""
    rng = np.random.default_rng(3)
    forward = 0.5 * np.eye(10) + 0.5 * rng.dirichlet(np.ones(10), size=10)
    mechanism = MatrixMechanism.tree(6, gaussian(6.0))
    worst = leakage(forward, mechanism, 1e-3).worst
    assert (
        leakage(np.eye(10) * 0.9999 + 0.00001, mechanism, 1e-3).worst > worst > leakage(forward, mechanism, 1e-2).worst
    )


def amplification(mechanism):
    """Standard deviations of calibrated noise in units of that of one step by itself: the largest norm of a column."""
    alone = MatrixMechanism.independent(1, gaussian(1.0)).calibrated(1.0, delta=1e-3).noise.standard_deviation
    return mechanism.calibrated(1.0, delta=1e-3).noise.standard_deviation / alone


def test_sensitivities_are_those_of_jax_privacy():
    """Published in its tests: 6 for this matrix, 3 for the 1 x 1 matrix 3, the norm of its coefficients for a Toeplitz matrix.

    google-deepmind/jax_privacy, tests/matrix_factorization: sensitivity_test.py and toeplitz_test.py.
    """
    matrix = [[1.0, 0.0, 0.0, 0.0], [2.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 3.0, -6.0]]
    assert amplification(MatrixMechanism(matrix, gaussian(1.0))) == pytest.approx(6.0)
    assert amplification(MatrixMechanism([[3.0]], gaussian(1.0))) == pytest.approx(3.0)
    assert amplification(MatrixMechanism.independent(7, gaussian(1.0))) == pytest.approx(1.0)
    for coefficients, n_steps in (([1.0, 0.5, 0.2], 3), ([1.0, 0.7, 2.0], 4), (np.linspace(1.0, 0.1, 11), 16)):
        mechanism = MatrixMechanism.banded(n_steps, coefficients, gaussian(1.0))
        assert amplification(mechanism) ** 2 == pytest.approx(np.square(coefficients).sum())
    assert amplification(MatrixMechanism.tree(64, gaussian(1.0))) == pytest.approx(math.sqrt(7.0))
    assert amplification(MatrixMechanism.tree(12, gaussian(1.0))) == pytest.approx(2.0)


def test_the_square_root_has_the_coefficients_and_the_error_of_the_literature():
    mechanism = square_root(64, gaussian(1.0))
    assert mechanism.matrix @ mechanism.matrix == pytest.approx(np.tril(np.ones((64, 64))))
    published = np.cumsum([(math.comb(2 * k, k) / 4.0**k) ** 2 for k in range(64)])  # squares of the norms of its rows
    assert mechanism.running_count_error**2 == pytest.approx(published)
    assert amplification(mechanism) ** 2 == pytest.approx(published[-1])


def test_errors_at_one_event_level_are_those_of_the_theory():
    independent, tree, root = (calibrated(name, 64) for name in ("independent", "tree", "square_root"))
    rms = [math.sqrt(np.mean(one.running_count_error**2)) for one in (independent, tree, root)]
    assert rms[0] / rms[1] == pytest.approx(2.3, abs=0.05)
    assert rms[0] / rms[2] == pytest.approx(2.6, abs=0.05)


@pytest.mark.long
def test_a_common_scale_of_matrix_and_noise_changes_nothing():
    expected = leakage(STICKY, MatrixMechanism.tree(4, gaussian(2.0)), 1e-3).temporal
    for scale in (1e-40, 1e40):
        scaled = MatrixMechanism(MatrixMechanism.tree(4, gaussian(1.0)).matrix * scale, gaussian(2.0 * scale))
        assert leakage(STICKY, scaled, 1e-3).temporal == pytest.approx(expected, rel=1e-7)
    with pytest.raises(tdp.InputError, match="largest entry of the matrix"):
        MatrixMechanism(np.eye(4) * 9e153, gaussian(9e153))
    with pytest.raises(tdp.InputError, match="largest entry of the matrix"):
        MatrixMechanism(np.eye(4) * 1e10, gaussian(1e-300))
    assert math.isinf(leakage(STICKY, MatrixMechanism(np.eye(4) * 1e10, gaussian(1e-40)), 1e-3).worst)


@pytest.mark.long
def test_independent_noise_has_the_smaller_of_both_bounds():
    mechanism = MatrixMechanism.independent(8, gaussian(4.0))
    curves = tdp.temporal_leakage(
        adversary(STICKY), [tdp.GaussianNoise(4.0, math.sqrt(2.0))] * 8, accounting=tdp.ApproximateDP(1e-3)
    )
    assert leakage(STICKY, mechanism, 1e-3).temporal == pytest.approx(curves.temporal)


def test_gaussian_noise_is_never_purely_private():
    with pytest.raises(tdp.InputError, match="expected a delta"):
        MatrixMechanism.independent(4, gaussian(1.0)).calibrated(1.0, delta=0.0)


def test_event_level_of_laplace_noise_at_a_delta_counts_every_coordinate():
    mechanism = MatrixMechanism.tree(4, laplace(4.0))
    assert mechanism.event_level(4, 1e-6).tolist() == mechanism.event_epsilons(4).tolist()
    assert mechanism.event_epsilons(4) == pytest.approx([1.5] * 4)


def test_event_level_of_laplace_noise_is_the_largest_log_ratio_of_two_neighbouring_paths():
    """The densities of two outputs of Laplace noise differ most at the mean of one of them: the L1 distance over the scale."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        n, T, scale = int(rng.integers(2, 4)), int(rng.integers(1, 5)), float(rng.uniform(0.5, 5.0))
        strategy = np.tril(rng.normal(size=(T, T))) + 2.0 * np.eye(T)
        expected = np.zeros(T)
        for path in itertools.product(range(n), repeat=T):
            for s, other in itertools.product(range(T), range(n)):
                replaced = (*path[:s], other, *path[s + 1 :])
                apart = strategy @ (np.eye(n)[list(path)] - np.eye(n)[list(replaced)])
                expected[s] = max(expected[s], np.abs(apart).sum() / scale)
        found = MatrixMechanism(strategy, laplace(scale)).event_epsilons(T)
        assert (found >= expected * (1.0 - 1e-15)).all()
        assert found == pytest.approx(expected, rel=1e-12)


def test_no_output_of_a_laplace_tree_leaks_more_than_its_event_epsilons():
    """Log likelihood ratios of drawn outputs, summed over all paths."""
    rng, mechanism = np.random.default_rng(2), MatrixMechanism.tree(4, laplace(3.0))
    series = tdp.temporal_leakage(adversary(STICKY), mechanism)
    assert series.temporal == pytest.approx(
        tdp.temporal_leakage(adversary(STICKY), mechanism.event_epsilons(4)).temporal, rel=1e-12
    )
    known, largest = adversary(STICKY), 0.0
    backward, forward = (side.at(0).dense() for side in (known.backward, known.forward))
    for step in range(4):
        given = [path_probabilities(backward, forward, 2, 4, step, state) for state in (0, 1)]
        for _ in range(300):
            path = rng.integers(0, 2, 4)
            output = mechanism.matrix @ np.eye(2)[path] + rng.laplace(scale=3.0, size=(len(mechanism.matrix), 2))
            likelihoods = [
                sum(
                    chance * math.exp(-np.abs(output - mechanism.matrix @ np.eye(2)[list(one)]).sum() / 3.0)
                    for one, chance in paths.items()
                )
                for paths in given
            ]
            ratio = abs(math.log(likelihoods[0] / likelihoods[1]))
            assert ratio <= series.temporal[step]
            largest = max(largest, ratio)
    assert largest > 0.4 * series.worst


def test_unsupported_arguments_are_refused():
    mechanism = MatrixMechanism.tree(4, gaussian(2.0))
    known = adversary(STICKY)
    with pytest.raises(tdp.InputError, match="ApproximateDP"):
        tdp.temporal_leakage(known, mechanism)
    with pytest.raises(tdp.InputError, match="finite event-level epsilons"):
        tdp.temporal_leakage(known, mechanism, accounting=tdp.PaperBound())
    with pytest.raises(tdp.InputError, match="without a delta"):
        tdp.temporal_leakage(known, MatrixMechanism.tree(4, laplace(2.0)), accounting=tdp.ApproximateDP(1e-3))
    with pytest.raises(tdp.InputError, match=r"delta .* >= 1e-11"):
        tdp.temporal_leakage(known, mechanism, accounting=tdp.ApproximateDP(1e-13))
    with pytest.raises(tdp.BudgetError, match="one number of steps, got 4 and 5"):
        tdp.temporal_leakage(known, mechanism, accounting=tdp.ApproximateDP(1e-3), horizon=5)
    wide = tdp.IntervalMatrix([[0.8, 0.0], [0.1, 0.7]], [[1.0, 0.2], [0.3, 0.9]])
    with pytest.raises(tdp.InputError, match="known exactly"):
        tdp.temporal_leakage(tdp.Adversary(wide, wide), mechanism, accounting=tdp.ApproximateDP(1e-3))
    for matrix in ([[1.0, 1.0]], [[math.nan]], [1.0]):
        with pytest.raises(tdp.InputError, match="expected"):
            MatrixMechanism(matrix, gaussian(1.0))
    with pytest.raises(tdp.InputError, match="coefficients"):
        MatrixMechanism.banded(2, [1.0, 0.5, 0.1], gaussian(1.0))
