"""Noise for (alpha, delta)-DP_T: it holds, little less does not, and it beats pure privacy where the release is long."""

from __future__ import annotations

import numpy as np
import pytest

from data_sets import sleep_sample
from making import strongest_correlation
from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    InputError,
    NoisePlan,
    PaperBound,
    PlanError,
    TransitionMatrix,
    leakage_supremum,
    load_plan,
    plan_budget,
    plan_noise,
    release_histograms,
    save_plan,
    temporal_leakage,
)
from temporaldp.core.planning.histogram_noise import mean_absolute_noise
from temporaldp.core.planning.noise_plan import planned_grid

WALK = TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
KINDS = {"gaussian": DiscreteGaussianNoise, "laplace": DiscreteLaplaceNoise}


def leaks(plan, adversary, factor=1.0):
    """The worst leakage of the plan's noise times a factor, by the plan's kind of curves and on its grid."""
    noise = [KINDS[plan.noise](factor * scale) for scale in plan.scales]
    by_pairs = plan.accounting.pairwise
    accounting = ApproximateDP(plan.delta, pairwise=by_pairs, grid=planned_grid(plan.alpha, pairwise=by_pairs))
    if plan.horizon is None:
        return leakage_supremum(adversary, noise[0], accounting=accounting).temporal
    return temporal_leakage(adversary, noise, accounting=accounting).worst


@pytest.mark.parametrize(
    ("horizon", "kind"),
    [
        (1, "gaussian"),
        (1, "laplace"),
        (8, "gaussian"),
        (8, "laplace"),
        (None, "gaussian"),
        pytest.param(None, "laplace", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("alpha", "delta"), [(1.0, 1e-3), pytest.param(0.3, 1e-6, marks=pytest.mark.slow)])
@pytest.mark.long
def test_noise_plan_satisfies_the_level_and_is_nearly_minimal(alpha, delta, horizon, kind):
    adversary = Adversary(WALK, WALK)
    plan = plan_noise(adversary, alpha=alpha, horizon=horizon, noise=kind, accounting=ApproximateDP(delta))
    assert plan.leakage.worst <= alpha and plan.leakage.delta == delta
    assert leaks(plan, adversary) <= alpha < leaks(plan, adversary, 0.999)
    assert plan.scales.shape == plan.epsilons.shape == (horizon or 1,)
    assert plan.leakage.worst == leaks(plan, adversary)


@pytest.mark.long
def test_no_local_change_or_constant_noise_is_better():
    """Other shapes with 0.2 percent less noise: none satisfies the level."""
    adversary, n_steps = Adversary(TransitionMatrix([[0.98, 0.02], [0.05, 0.95]]), WALK), 5
    plan = plan_noise(adversary, alpha=1.0, horizon=n_steps, accounting=ApproximateDP(1e-3))
    rng = np.random.default_rng(0)
    shapes = [np.ones(n_steps)]
    for size in (0.01, 0.05, 0.2):
        shapes += [plan.scales * (1.0 + size * rng.uniform(-1.0, 1.0, n_steps)) for _ in range(6)]
    for shape in shapes:
        noise = [DiscreteGaussianNoise(scale) for scale in shape * (0.998 * plan.scales.mean() / shape.mean())]
        assert temporal_leakage(adversary, noise, accounting=ApproximateDP(1e-3, grid=1e-3)).worst > 1.0
    assert (
        plan.mean_absolute_noise == plan.optimality.error >= plan.optimality.error_bound > 0.5 * plan.optimality.error
    )


@pytest.mark.long
def test_no_noise_of_two_steps_is_below_the_certified_bound():
    """Every pair of scales on a grid that satisfies the level, by brute force."""
    adversary = Adversary(WALK, TransitionMatrix([[0.6, 0.4], [0.3, 0.7]]))
    plan = plan_noise(adversary, alpha=1.0, horizon=2, noise="laplace", accounting=ApproximateDP(1e-3))
    low, high = plan.optimality.error_bound, plan.mean_absolute_noise
    best, grid = np.inf, plan.scales.mean() * np.geomspace(0.6, 1.7, 12)
    for first in grid:
        for second in grid:
            noise = [DiscreteLaplaceNoise(first), DiscreteLaplaceNoise(second)]
            if temporal_leakage(adversary, noise, accounting=ApproximateDP(1e-3, pairwise=False, grid=5e-3)).worst <= 1:
                best = min(best, mean_absolute_noise([first, second], "laplace"))
    assert 0.9 * high < low <= high and low <= best < 1.2 * high


@pytest.mark.slow
def test_infinite_horizon_needs_half_the_noise_of_pure_dp():
    adversary = Adversary(TransitionMatrix([[0.98, 0.02], [0.05, 0.95]]), WALK)
    gaussian, pure = plan_noise(adversary, alpha=1.0, accounting=ApproximateDP(1e-3)), plan_budget(adversary, alpha=1.0)
    assert gaussian.mean_absolute_noise < 0.6 * pure.mean_absolute_noise


@pytest.mark.slow
def test_noise_of_several_users_is_that_of_the_worst():
    users = {"a": Adversary(WALK), "b": Adversary(TransitionMatrix([[0.6, 0.4], [0.3, 0.7]]), WALK)}
    plan = plan_noise(users, alpha=1.0, accounting=ApproximateDP(1e-3))
    alone = [plan_noise(one, alpha=1.0, accounting=ApproximateDP(1e-3)).scales[0] for one in users.values()]
    assert plan.scales[0] == pytest.approx(max(alone), rel=1e-4)


@pytest.mark.long
def test_correlation_without_mixing_has_plans_of_finite_horizons_only():
    with pytest.raises(PlanError, match="horizon"):
        plan_noise(Adversary(strongest_correlation(2)), alpha=1.0, accounting=ApproximateDP(1e-3))
    assert (
        plan_noise(
            Adversary(strongest_correlation(2)), alpha=1.0, horizon=4, accounting=ApproximateDP(1e-3)
        ).leakage.worst
        <= 1.0
    )


def test_noise_plan_round_trips_and_is_released(tmp_path):
    people = sleep_sample()
    plan = plan_noise(Adversary(), alpha=1.0, horizon=people.n_times, accounting=ApproximateDP(1e-6))
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert (type(again), again.delta, again.noise) == (NoisePlan, 1e-6, "gaussian")
    np.testing.assert_array_equal(again.scales, plan.scales)
    assert again.leakage.delta == 1e-6 and again.leakage.worst == plan.leakage.worst
    with pytest.raises(InputError, match="privacy curves"):
        again.leakage.window(0, 3)
    with pytest.raises(InputError, match="privacy curves"):
        _ = again.leakage.user_level
    assert plan.leakage.window(0, 3) <= plan.leakage.user_level
    released = release_histograms(people, again)
    assert (released.delta, released.noise) == (1e-6, "gaussian")
    np.testing.assert_array_equal(released.scales, plan.scales)
    with pytest.raises(BudgetError, match="shorter"):
        plan.scales_for(people.n_times + 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"accounting": PaperBound()}, "ApproximateDP"),
        ({"noise": "cauchy"}, "'gaussian' or 'laplace'"),
        ({"horizon": 0}, "at least 1"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": 1e7}, "alpha of a noise plan to be a finite number <= 100000"),
    ],
)
def test_invalid_arguments_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        plan_noise(Adversary(WALK), **({"alpha": 1.0, "accounting": ApproximateDP(1e-6)} | arguments))


def test_a_noise_plan_has_a_delta_and_a_scale_for_every_epsilon():
    noise = plan_noise(Adversary(), alpha=1.0, horizon=2, accounting=ApproximateDP(1e-6))
    pure = plan_budget(Adversary(), alpha=1.0, horizon=2)
    with pytest.raises(InputError, match="delta > 0"):
        NoisePlan(leakage=pure.leakage, alpha=1.0, noise="gaussian", scales=np.ones(2))
    for scales in (np.ones(3), np.array([1.0, 0.0]), np.array([1.0, np.inf])):
        with pytest.raises(InputError, match="expected scales"):
            NoisePlan(leakage=noise.leakage, alpha=1.0, noise="gaussian", scales=scales)
    with pytest.raises(ValueError, match="read-only"):
        noise.scales[0] = 1.0


@pytest.mark.long
def test_both_kinds_of_plan_report_noise_and_leakage_to_another_adversary():
    adversary, other = Adversary(WALK, WALK), Adversary(TransitionMatrix([[0.99, 0.01], [0.01, 0.99]]))
    noise = plan_noise(adversary, alpha=1.0, noise="laplace", horizon=6, accounting=ApproximateDP(1e-6))
    pure = plan_budget(adversary, alpha=1.0, horizon=6)
    assert (noise.noise, pure.noise, pure.delta, noise.delta) == ("laplace", "laplace", 0.0, 1e-6)
    np.testing.assert_allclose(pure.scales, 2.0 / pure.epsilons, rtol=1e-15)
    assert noise.leakage_to(adversary, 6).worst == noise.leakage.worst and noise.supremum_to(adversary) is None
    accounting = ApproximateDP(1e-6, grid=planned_grid(1.0))
    mechanisms = [DiscreteLaplaceNoise(scale) for scale in noise.scales[:4]]
    assert noise.leakage_to(other, 4).worst == temporal_leakage(other, mechanisms, accounting=accounting).worst
    assert pure.leakage_to(other, 4).worst == temporal_leakage(other, pure.epsilons[:4]).worst
    lasting = plan_budget(adversary, alpha=1.0)
    assert lasting.supremum_to(adversary).worst == pytest.approx(lasting.leakage.worst, rel=1e-11)


@pytest.mark.parametrize("scale", [0.3, 2.0, 11.0])
def test_mean_noise_agrees_with_enumeration(scale):
    x = np.arange(-3000, 3001)
    for kind, weights in (("gaussian", np.exp(-0.5 * (x / scale) ** 2)), ("laplace", np.exp(-np.abs(x) / scale))):
        assert mean_absolute_noise([scale], kind) == pytest.approx(
            float(np.abs(x) @ weights / weights.sum()), rel=1e-12
        )
