"""Plans of the user level and of windows, against sums of epsilons and the exact curve of Gaussian noise."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import log_ndtr

from temporaldp import Adversary, BudgetError, InputError, TransitionMatrix, plan_guarantee, temporal_leakage
from temporaldp.core.planning import Guarantee, epochs_together
from temporaldp.data.files.plans import load_plan, save_plan


def gaussian_delta(epsilon, shift):
    """Exact delta at epsilon of normal noise, for two outputs whose means are so many deviations apart."""
    high = log_ndtr(shift / 2.0 - epsilon / shift)
    return math.exp(high) - math.exp(epsilon + log_ndtr(-shift / 2.0 - epsilon / shift))


@pytest.mark.parametrize(("steps", "alpha"), [(1, 0.3), (47, 1.0), (72, 0.7), (480, 2.0)])
def test_budgets_of_the_user_level_add_up_to_alpha(steps, alpha):
    plan = plan_guarantee("user", alpha, steps)
    assert math.fsum(plan.epsilons) <= alpha
    np.testing.assert_allclose(plan.epsilons, alpha / steps, rtol=1e-12)
    assert plan.leakage.worst <= alpha
    assert plan.guarantee == Guarantee("user")


@pytest.mark.parametrize(
    ("steps", "alpha", "delta"), [(1, 1.0, 1e-6), (47, 1.0, 1e-6), (72, 0.5, 1e-5), (480, 1.0, 1e-6)]
)
def test_gaussian_noise_of_the_user_level_is_the_least(steps, alpha, delta):
    """A changed state moves two counts by one each step; of so large a scale, discrete noise is as normal noise."""
    plan = plan_guarantee("user", alpha, steps, delta=delta)
    (scale,) = set(plan.scales.tolist())
    assert gaussian_delta(alpha, math.sqrt(2.0 * steps) / scale) <= delta
    assert gaussian_delta(alpha, math.sqrt(2.0 * steps) / (0.995 * scale)) > delta
    assert plan.leakage.worst <= alpha


def test_budgets_of_any_window_add_up_to_at_most_alpha():
    plan = plan_guarantee("window:7", 1.0)
    assert plan.horizon is None
    assert math.fsum([plan.epsilons[0]] * 7) <= 1.0
    assert plan.epsilons[0] == pytest.approx(1 / 7, rel=1e-12)
    finite = plan_guarantee("window:7", 1.0, 30)
    assert len(finite.leakage) == 30
    assert finite.leakage.backward[2] == pytest.approx(3 / 7)
    assert finite.leakage.forward[-2] == pytest.approx(2 / 7)
    np.testing.assert_array_equal(
        plan_guarantee("window:50", 1.0, 30).epsilons, plan_guarantee("user", 1.0, 30).epsilons
    )


@pytest.mark.long
@pytest.mark.parametrize("steps", [12, 365, 8_784, 105_408])
def test_epochs_without_an_end_add_up(steps):
    """Of so large a scale, discrete noise is as normal noise, whose composition is normal."""
    pure = plan_guarantee(f"user:{steps}", 1.0)
    assert pure.horizon is None
    assert Fraction(pure.epsilons[0]) * steps <= 1
    assert epochs_together(pure, 5) == pytest.approx(5.0, rel=1e-12)
    assert Fraction(epochs_together(pure, 5)) >= Fraction(pure.epsilons[0]) * steps * 5
    plan = plan_guarantee(f"user:{steps}", 1.0, delta=1e-6)
    for n_epochs in (1, 2, 5):
        shift = math.sqrt(2.0 * steps * n_epochs) / plan.scales[0]
        found = epochs_together(plan, n_epochs)
        assert gaussian_delta(found, shift) <= 1e-6 < gaussian_delta(0.995 * found, shift)
    with pytest.raises(InputError, match="user:W"):
        epochs_together(plan_guarantee("window:7", 1.0), 2)


def test_many_small_laplace_releases_compose():
    """With the largest deltas that pure budgets permit, against sums of epsilons."""
    plan = plan_guarantee("user:4", 1.0, delta=1e-9, noise="laplace")
    assert 1.95 * 4 <= plan.scales[0] <= 2.0 * 4 * (1 + 1e-4)
    assert epochs_together(plan, 3) <= 3.0 * 1.01


def test_no_correlation_leaks_more_than_the_user_level():
    generator = np.random.default_rng(3)
    plan = plan_guarantee("user", 1.0, 6)
    for _ in range(20):
        matrices = [TransitionMatrix(generator.dirichlet(np.full(3, 0.1), 3) + 1e-12, normalize=True) for _ in range(2)]
        assert temporal_leakage(Adversary(*matrices), plan.epsilons).worst <= plan.alpha


def test_one_window_leaks_at_most_alpha_about_all_of_its_states():
    """By enumeration of randomized responses: any two sequences of states that differ within a window."""
    plan = plan_guarantee("window:2", 1.0, 4)
    kept = [1.0 / (1.0 + math.exp(-epsilon)) for epsilon in plan.epsilons]
    worst = 0.0
    for one in itertools.product((0, 1), repeat=4):
        for first in range(3):
            other = list(one)
            for step in (first, first + 1):
                other[step] = 1 - one[step]
            ratio = sum(max(math.log(p / (1.0 - p)), 0.0) for p, a, b in zip(kept, one, other, strict=True) if a != b)
            worst = max(worst, ratio)
    assert worst == pytest.approx(1.0)


def test_a_plan_of_a_guarantee_is_read_as_it_was_written(tmp_path):
    for made in (plan_guarantee("user", 1.0, 5), plan_guarantee("window:3", 1.0, delta=1e-6)):
        save_plan(made, tmp_path / "plan.json")
        assert load_plan(tmp_path / "plan.json") == made


def test_what_cannot_be_planned_is_refused():
    with pytest.raises(BudgetError, match="window:W"):
        plan_guarantee("user", 1.0)
    with pytest.raises(InputError, match="plan_budget"):
        plan_guarantee("temporal", 1.0, 5)
    with pytest.raises(InputError, match="window:7"):
        plan_guarantee("window:2.5", 1.0)
    for wrong in ("window", "person", "temporal:3"):
        with pytest.raises(InputError, match="expected a guarantee"):
            plan_guarantee(wrong, 1.0, 5)
    with pytest.raises(BudgetError, match="give a delta"):
        plan_guarantee("user", 1.0, 5, noise="gaussian")


@pytest.mark.parametrize(("text", "every"), [("user", 5), ("window:6", 4), ("user:6", 3), ("window:7", 12)])
def test_draws_of_any_window_add_up_to_the_level(text, every):
    """Counted window by window, in exact fractions."""
    plan = plan_guarantee(text, 0.7, 20, draw_every=every)
    spent = [Fraction(one) for one in plan.epsilons.tolist()]
    assert [k for k, one in enumerate(spent) if one] == list(range(0, 20, every)) and plan.n_drawn == len(
        spent[::every]
    )
    width = plan.guarantee.width(20)
    windows = [sum(spent[t : t + width]) for t in range(20)]
    assert Fraction(0.7) * (1 - Fraction(1, 10**9)) < max(windows) <= plan.leakage.worst <= Fraction(0.7)
    if plan.guarantee.is_of_epochs:
        assert epochs_together(plan, 1) <= 0.7 and epochs_together(plan, 5) == pytest.approx(3.5)
    with pytest.raises(BudgetError, match="draw_every is for delta = 0"):
        plan_guarantee(text, 0.7, 20, delta=1e-6, draw_every=every)
