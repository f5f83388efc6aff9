"""(epsilon, delta) leakage by one curve: never below the definition, tight where the theorem says so, known special cases."""

from __future__ import annotations

import itertools
import math
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

import temporaldp
from making import smoothed_correlation, strongest_correlation
from oracles import hockey_stick, told_by_all
from temporaldp import (
    Adversary,
    BudgetError,
    Exact,
    GaussianNoise,
    InputError,
    LaplaceNoise,
    OutputTable,
    PaperBound,
    PrivacyGuarantee,
    RandomizedResponse,
    TemporalAccountant,
    TransitionMatrix,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.core.accounting.curve import grid
from temporaldp.core.mechanisms.protocol import epsilon_of_one

ApproximateDP = partial(temporaldp.ApproximateDP, pairwise=False)
"""By one curve for all pairs of states; the curves of each pair are tested in test_pair_curve.py."""

WALK = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
NOISE = GaussianNoise(10.0, sensitivity=1.0)
ULPS = 1e-13
"""What an oracle's own sums in doubles may lose."""


def random_rows(rng, n):
    kind = rng.integers(4)
    rows = rng.dirichlet(np.full(n, rng.choice([0.2, 0.6, 2.0])), n)
    if kind == 1:
        rows = np.where(rows < 0.15, 0.0, rows)
        rows = np.where(rows.any(axis=1, keepdims=True), rows, np.eye(n))
    elif kind == 2:
        rows = 0.99 * np.eye(n)[rng.permutation(n)] + 0.01 / n
    elif kind == 3 and rng.random() < 0.3:
        rows = np.eye(n)
    return rows / rows.sum(axis=1, keepdims=True)


def random_case(rng):
    """(table, backward, forward, adversary, T): a finite mechanism and matrices, constant or one a transition."""
    n, m = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    n_steps = int(rng.integers(2, 6 if m == 2 else 5))
    table = rng.dirichlet(np.full(m, rng.choice([0.5, 2.0, 20.0])), n)
    if rng.random() < 0.15:
        table = np.where(table < 0.1, 0.0, table)
        table /= table.sum(axis=1, keepdims=True)
    if rng.random() < 0.5:
        past, future = random_rows(rng, n), random_rows(rng, n)
        adversary = Adversary(TransitionMatrix(past), TransitionMatrix(future))
        return table, [past] * (n_steps - 1), [future] * (n_steps - 1), adversary, n_steps
    past, future = ([random_rows(rng, n) for _ in range(n_steps - 1)] for _ in range(2))
    return (
        table,
        past,
        future,
        Adversary(list(map(TransitionMatrix, past)), list(map(TransitionMatrix, future))),
        n_steps,
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_curve_is_never_below_the_definition(seed):
    """Thousands of finite mechanisms, all of whose sequences of outputs are enumerated."""
    rng = np.random.default_rng(seed)
    for _ in range(600 if seed else 80):
        table, past, future, adversary, n_steps = random_case(rng)
        h, delta = float(rng.choice([0.005, 0.02, 0.1])), float(10.0 ** rng.integers(-9, -1))
        series = temporal_leakage(adversary, [OutputTable(table)] * n_steps, accounting=ApproximateDP(delta, grid=h))
        for step in range(n_steps):
            rows = told_by_all(table, past, future, step, n_steps)
            curve = series.evidence.curve(step)
            assert grid.raised_by(curve.lower_deltas, curve.deltas) <= 1e-15
            for epsilon in (*rng.uniform(-1.0, 4.0, 4), h * rng.integers(60), 0.0):
                assert hockey_stick(rows, math.exp(epsilon)) <= curve.delta(float(epsilon)) + ULPS
            if math.isfinite(series.temporal[step]):
                assert hockey_stick(rows, math.exp(series.temporal[step])) <= delta * (1.0 + 1e-9) + ULPS


@pytest.mark.long
def test_curve_is_tight_for_two_exchangeable_states():
    """Two values, symmetric matrices and mechanism: every inequality of the proof is an equality, so the truth lies between."""
    rng = np.random.default_rng(3)
    epsilons = np.array([0.0, 0.01, 0.1, 0.5, 1.0, 2.0])
    for _ in range(25):
        (p, q, r), n_steps = rng.uniform(0.0, 1.0, 3), int(rng.integers(1, 7))
        table, past, future = (np.array([[x, 1 - x], [1 - x, x]]) for x in (p, q, r))
        adversary = Adversary(TransitionMatrix(past), TransitionMatrix(future))
        series = temporal_leakage(adversary, [OutputTable(table)] * n_steps, accounting=ApproximateDP(1e-6, grid=0.003))
        for step in range(n_steps):
            rows = told_by_all(table, [past] * (n_steps - 1), [future] * (n_steps - 1), step, n_steps)
            curve = series.evidence.curve(step)
            low, up = grid.interpolated(curve.lower_deltas, *grid.cells(curve.grid, epsilons)), curve.delta(epsilons)
            true = np.array([hockey_stick(rows, math.exp(epsilon)) for epsilon in epsilons])
            assert (low - ULPS <= true).all() and (true <= up + ULPS).all()
            assert (up - low <= 0.01).all()


def test_values_of_the_theory_chapter():
    """THEORY, section 5: 0.397 for one release, 0.5025 in the limit, 1.995 for 20 without correlation's help."""
    series = temporal_leakage(Adversary(WALK, WALK), [NOISE] * 40, accounting=ApproximateDP(1e-6, grid=5e-4))
    assert series.epsilons[0] == pytest.approx(0.397, abs=5e-4)
    assert series.backward[-1] == pytest.approx(0.5025, abs=5e-5)
    assert series.evidence.gaps("backward")[-1] < 5e-5
    limits = leakage_supremum(Adversary(WALK, WALK), NOISE, accounting=ApproximateDP(1e-6, grid=5e-4))
    assert series.backward.max() <= limits.backward <= series.backward.max() + 1e-6
    assert series.temporal.max() <= limits.temporal <= series.temporal.max() + 1e-6
    still = Adversary(strongest_correlation(2))
    assert temporal_leakage(still, [NOISE] * 20, accounting=ApproximateDP(1e-6)).worst == pytest.approx(1.995, abs=1e-3)


@pytest.mark.parametrize("n_steps", [2, 30])
def test_identity_correlation_gives_plain_composition(n_steps):
    adversary = Adversary(strongest_correlation(3), strongest_correlation(3))
    series = temporal_leakage(adversary, [NOISE] * n_steps, accounting=ApproximateDP(1e-6))
    exact = epsilon_of_one(GaussianNoise(10.0 / math.sqrt(n_steps), sensitivity=1.0), delta=1e-6)
    gap = series.evidence.gaps().max()
    assert gap < 2e-3
    for found in (*series.temporal, series.user_level, series.window(0, n_steps)):
        assert exact * (1 - 1e-6) <= found <= exact + gap + 1e-6
    google = pld.from_laplace_mechanism(10.0, value_discretization_interval=1e-4).self_compose(n_steps)
    laplace = temporal_leakage(adversary, [LaplaceNoise(10.0, 1.0)] * n_steps, accounting=ApproximateDP(1e-6))
    assert laplace.worst == pytest.approx(google.get_epsilon_for_delta(1e-6), abs=laplace.evidence.gaps().max() + 1e-4)


def test_independent_steps_leak_a_single_release():
    forgets = TransitionMatrix([[0.3, 0.7], [0.3, 0.7]])
    series = temporal_leakage(Adversary(forgets, forgets), [NOISE] * 5, accounting=ApproximateDP(1e-6))
    np.testing.assert_array_equal(series.temporal, series.epsilons)
    assert (
        temporal_leakage(Adversary(), [NOISE] * 5, accounting=ApproximateDP(1e-6)).temporal == series.epsilons
    ).all()


def test_leakage_approaches_pure_privacy_from_below_as_delta_vanishes():
    mechanism, n_steps = LaplaceNoise(10.0, sensitivity=1.0), 10
    pure = temporal_leakage(Adversary(WALK, WALK), [mechanism.pure_epsilon] * n_steps)
    found = []
    for delta in (1e-2, 1e-4, 1e-8, 1e-16, 1e-40):
        series = temporal_leakage(Adversary(WALK, WALK), [mechanism] * n_steps, accounting=ApproximateDP(delta))
        for direction in ("backward", "forward", "temporal"):
            assert (getattr(series, direction) <= getattr(pure, direction)).all()
        found.append(series.worst)
    assert found == sorted(found)
    assert found[0] < 0.7 * pure.worst and found[-1] == pytest.approx(pure.worst, rel=2e-3)
    guarantee = temporal_leakage(Adversary(WALK), [0.1] * n_steps, accounting=ApproximateDP(1e-50))
    assert guarantee.worst == pytest.approx(temporal_leakage(Adversary(WALK), [0.1] * n_steps).worst, rel=2e-3)


@settings(max_examples=8, deadline=None)
@given(st.floats(0.001, 1.0), st.floats(1.0, 50.0), st.integers(-9, -2))
def test_larger_delta_more_noise_or_weaker_correlation_lowers_leakage(s, scale, exponent):
    def worst(smoothing, noise, delta):
        matrix = smoothed_correlation(strongest_correlation(3), s=smoothing)
        mechanisms = [GaussianNoise(noise, sensitivity=1.0)] * 6
        return temporal_leakage(Adversary(matrix, matrix), mechanisms, accounting=ApproximateDP(delta, grid=0.01)).worst

    here, slack = worst(s, scale, 10.0**exponent), 1e-9
    assert worst(s, scale, 10.0 ** (exponent + 1)) <= here * (1 + slack)
    assert worst(s, 1.3 * scale, 10.0**exponent) <= here * (1 + slack) + slack
    assert worst(min(2 * s, 1.0), scale, 10.0**exponent) <= here * (1 + slack) + slack


def test_finer_grid_lies_within_the_stated_gap():
    adversary = Adversary(TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]), WALK)
    coarse, fine = (
        temporal_leakage(adversary, [NOISE] * 12, accounting=ApproximateDP(1e-6, grid=h)) for h in (0.01, 0.001)
    )
    assert (fine.temporal <= coarse.temporal + 1e-12).all()
    assert (coarse.temporal - coarse.evidence.gaps() <= fine.temporal).all()
    assert fine.evidence.gaps().max() < 0.05 * coarse.evidence.gaps().max()


def test_large_release_decays_at_the_mixing_rate_of_the_chain():
    """A decreasing curve is not treated as converged, although no step raises it."""
    loud, quiet = GaussianNoise(1.0, sensitivity=1.0), NOISE
    after = temporal_leakage(Adversary(WALK), [loud] + [quiet] * 60, accounting=ApproximateDP(1e-6))
    alone = temporal_leakage(Adversary(WALK), [quiet] * 60, accounting=ApproximateDP(1e-6, grid=after.evidence.grid))
    assert (np.diff(after.backward[:8]) < 0.0).all()
    np.testing.assert_allclose(after.backward[-1], alone.backward[-1], rtol=1e-6)  # both are held a little above


def test_constant_releases_converge_and_later_steps_are_not_lower():
    """Curves are raised slightly and reused once they converge; a run without reuse lies within that margin."""
    matrix = smoothed_correlation(strongest_correlation(4), s=0.05)
    long = temporal_leakage(Adversary(matrix), [NOISE] * 150, accounting=ApproximateDP(1e-6))
    mixed = [NOISE, GaussianNoise(10.0 * (1 + 1e-12), sensitivity=1.0)] * 75  # never twice the same
    other = temporal_leakage(Adversary(matrix), mixed, accounting=ApproximateDP(1e-6, grid=long.evidence.grid))
    np.testing.assert_allclose(long.backward, other.backward, rtol=1e-6)
    assert len({id(curve) for curve in long.evidence.upper.backward}) < 100


def test_several_users_windows_and_steps_without_a_release():
    users = {"a": Adversary(WALK), "b": Adversary(TransitionMatrix([[0.9, 0.1], [0.3, 0.7]]), WALK)}
    mechanisms = [NOISE, None, (NOISE, RandomizedResponse(0.2)), NOISE]
    both = temporal_leakage(users, mechanisms, accounting=ApproximateDP(1e-6))
    alone = [temporal_leakage(one, mechanisms, accounting=ApproximateDP(1e-6)) for one in users.values()]
    np.testing.assert_array_equal(both.temporal, np.maximum(alone[0].temporal, alone[1].temporal))
    assert both.worst_user == "b" and both.delta == 1e-6 and both.epsilons[1] == 0.0
    assert both.user_level == alone[0].user_level
    assert both.window(0, 2) == max(one.window(0, 2) for one in alone)
    response = temporal_leakage(
        Adversary(WALK), [RandomizedResponse(3.0)] * 2, accounting=ApproximateDP(1e-12, grid=1e-3)
    )
    assert response.window(0, 2) <= 6.0 * (1 + 1e-12)
    assert alone[0].worst <= alone[0].window(0, 4) <= alone[0].user_level * (1 + 1e-9)


def test_odometer_agrees_with_the_series():
    odometer = TemporalAccountant(Adversary([WALK, WALK], [WALK, WALK]), accounting=ApproximateDP(1e-6, grid=1e-4))
    assert (len(odometer), odometer.total()) == (0, 0.0)
    odometer.spend(NOISE).spend(PrivacyGuarantee(0.1, 1e-8))
    with pytest.raises(InputError, match="expected a mechanism"):
        odometer.spend("noise")
    odometer.spend(None)
    expected = temporal_leakage(
        Adversary(WALK, WALK), [NOISE, PrivacyGuarantee(0.1, 1e-8), None], accounting=ApproximateDP(1e-6, grid=1e-4)
    )
    np.testing.assert_array_equal(odometer.leakage().temporal, expected.temporal)
    assert (len(odometer), odometer.leakage().worst_time) == (3, expected.worst_time)
    assert expected.worst <= odometer.total() <= expected.worst * (1.0 + 1e-6)
    with pytest.raises(BudgetError, match="all 3 steps of the horizon"):
        odometer.spend(NOISE)
    with pytest.raises(BudgetError, match="there is no leakage yet"):
        TemporalAccountant(Adversary(WALK), accounting=ApproximateDP(1e-6)).leakage()


BAD_RELEASES = [
    (NOISE, 1e-6, None, "one number or mechanism per step"),
    ([], 1e-6, None, "at least one"),
    (["noise"], 1e-6, None, "expected a mechanism"),
    ([GaussianNoise(1e-4, 1.0)], 1e-6, 1e-6, "larger grid"),
    ([NOISE] * 3, 1e-6, None, "matrices for 2 steps"),
]


@pytest.mark.parametrize(("releases", "delta", "h", "message"), BAD_RELEASES, ids=[case[-1] for case in BAD_RELEASES])
def test_invalid_releases_are_refused(releases, delta, h, message):
    with pytest.raises(InputError, match=message):
        temporal_leakage(
            Adversary([WALK], [WALK]) if "matrices for" in message else Adversary(WALK),
            releases,
            accounting=ApproximateDP(delta, grid=h),
        )


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan, "small", None])
def test_a_bad_delta_is_refused(delta):
    with pytest.raises(BudgetError, match="delta to be a finite number >= 1e-60"):
        ApproximateDP(delta)


def test_a_bad_grid_is_refused():
    with pytest.raises(InputError, match="grid"):
        ApproximateDP(1e-6, grid=0.0)


def test_mechanism_without_pure_epsilon_requires_approximate_dp():
    for accounting in (Exact(), PaperBound()):
        with pytest.raises(BudgetError, match=r"got GaussianNoise.* ApproximateDP\(1e-6\)"):
            temporal_leakage(Adversary(WALK), [NOISE], accounting=accounting)
        with pytest.raises(BudgetError, match=r"got GaussianNoise.* ApproximateDP\(1e-6\)"):
            leakage_supremum(Adversary(WALK), NOISE, accounting=accounting)


def test_invalid_arguments_of_a_supremum_and_a_curve_are_refused():
    with pytest.raises(InputError, match="constant"):
        leakage_supremum(Adversary([WALK]), NOISE, accounting=ApproximateDP(1e-6))
    curves = temporal_leakage(Adversary(WALK), [NOISE] * 2, accounting=ApproximateDP(1e-6)).evidence
    for call in (lambda: curves.curve(2), lambda: curves.curve(0, "sideways"), lambda: curves.curve("0")):
        with pytest.raises(InputError):
            call()
    with pytest.raises(BudgetError):
        curves.curve(0).delta(math.nan)
    assert PrivacyGuarantee(0.0).bounds(np.array([0.0]))[1][0] < 1e-15


def test_lower_bound_is_valid_for_mechanisms_without_small_losses():
    """Randomised response has no loss near 0: a polygon lowered on one side of 0 alone would not be convex there."""
    for epsilon, h in ((0.1, None), (1.0, 0.3), (0.5, 0.05), (4.026, 0.0795)):
        response, still = RandomizedResponse(epsilon), Adversary(strongest_correlation(2))
        series = temporal_leakage(still, [response] * 20, accounting=ApproximateDP(0.01, grid=h))
        exact = binomial_epsilon(epsilon, 20, 0.01)
        assert series.evidence.lower.epsilons("backward")[-1] <= exact * (1 + 1e-9) <= series.backward[-1] * (1 + 2e-9)


def binomial_epsilon(epsilon, n, delta):
    """The epsilon of n answers by randomised response, by halving, from the binomial probabilities."""
    import mpmath

    true = 1 / (1 + mpmath.exp(-epsilon))
    losses = [(2 * k - n) * epsilon for k in range(n + 1)]
    masses = [mpmath.binomial(n, k) * true**k * (1 - true) ** (n - k) for k in range(n + 1)]

    def found(level):
        return sum(mass * max(0, 1 - mpmath.exp(level - loss)) for mass, loss in zip(masses, losses, strict=True))

    low, high = 0.0, n * epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) <= delta else (middle, high)
    return high


def test_infinite_loss_becomes_finite_after_a_mixing_transition():
    guarantee = PrivacyGuarantee(0.1, 0.01)
    series = temporal_leakage(Adversary(WALK), [guarantee, None], accounting=ApproximateDP(1e-3))
    assert math.isinf(series.backward[0])
    # theta(g) (delta at 1 + (g - 1) / theta(g)), with theta(g) = 0.8 - 0.2 g, and 0.01 where that is beyond e^0.1
    assert series.backward[1] == pytest.approx(math.log((0.8 - 0.1) / 0.2), abs=2e-3)
    assert series.evidence.gaps("backward")[1] < 1e-2
    assert series.evidence.curve(1, "backward").delta(math.log(4.0) + 0.01) == 0.0


def test_ordinary_and_extreme_arguments_have_a_result():
    exact = temporal_leakage(Adversary(), [PrivacyGuarantee(1.0, 1e-6)], accounting=ApproximateDP(1e-6))
    assert exact.worst == pytest.approx(1.0, abs=1e-3)
    assert (
        temporal_leakage(Adversary(WALK), [PrivacyGuarantee(1.0, 1e-6)] * 2, accounting=ApproximateDP(1e-6)).worst
        == math.inf
    )
    assert temporal_leakage(Adversary(WALK), [1e-7, 0.1], accounting=ApproximateDP(1e-6)).backward[0] == 0.0
    assert temporal_leakage(Adversary(WALK), [NOISE] * 5, accounting=ApproximateDP(0.5)).worst == 0.0
    small = [
        temporal_leakage(Adversary(WALK), [NOISE] * 5, accounting=ApproximateDP(d)).worst for d in (1e-17, 1e-30, 1e-60)
    ]
    assert small == sorted(small) and small[-1] < 3.0
    assert (
        temporal_leakage(Adversary(WALK), [GaussianNoise(0.05, 1.0)], accounting=ApproximateDP(1e-6)).evidence.gaps()[0]
        < 1.0
    )
    with pytest.raises(InputError, match="2 rows"):
        temporal_leakage(
            Adversary(smoothed_correlation(strongest_correlation(3), s=1.0)),
            [OutputTable(np.eye(2))],
            accounting=ApproximateDP(0.1),
        )
    with pytest.raises(InputError, match="the class"):
        temporal_leakage(Adversary(WALK), [GaussianNoise], accounting=ApproximateDP(0.1))


@pytest.mark.parametrize("stays", [None, 0.8, 1.0])
def test_a_guess_is_right_with_half_of_one_plus_the_total_variation(stays):
    """All states of a person by Gaussian noise: Phi(sqrt(T) / (2 sigma)); between both for a state of a chain that moves."""
    rows = None if stays is None else TransitionMatrix([[stays, 1.0 - stays], [1.0 - stays, stays]])
    noise = GaussianNoise(30.0, sensitivity=2.0)
    series = temporal_leakage(Adversary(rows, rows), [noise] * 50, accounting=ApproximateDP(1e-6))
    one, whole = (NormalDist().cdf(math.sqrt(steps) * 2.0 / (2.0 * 30.0)) for steps in (1, 50))
    alone, state, everything = series.guesses
    assert alone == pytest.approx(one, abs=1e-6) and everything == pytest.approx(whole, abs=1e-6)
    assert alone >= one and everything >= whole
    if stays == 0.8:
        assert one + 0.003 < state < whole - 0.05
    else:
        assert state == pytest.approx(one if stays is None else whole, abs=1e-6)


def test_a_guess_from_all_outputs_is_enumerated():
    """Six answers by randomised response about a chain: half the sum of differences over all outputs, at any step."""
    rows, truth, n = np.array([[0.9, 0.1], [0.3, 0.7]]), 0.6, 6
    start = np.array([0.75, 0.25])  # stationary: two states have the same matrix backward
    likelihoods = np.zeros((n, 2, 2**n))
    for path in itertools.product((0, 1), repeat=n):
        weight = start[path[0]] * math.prod(rows[a, b] for a, b in itertools.pairwise(path))
        for k, seen in enumerate(itertools.product((0, 1), repeat=n)):
            chance = weight * math.prod(truth if a == b else 1.0 - truth for a, b in zip(path, seen, strict=True))
            for t in range(n):
                likelihoods[t, path[t], k] += chance / start[path[t]]
    right = 0.5 + 0.25 * np.abs(likelihoods[:, 0] - likelihoods[:, 1]).sum(axis=1).max()
    chain = TransitionMatrix(rows)
    answer = RandomizedResponse(math.log(truth / (1.0 - truth)))
    found = temporal_leakage(Adversary(chain, chain), [answer] * n, accounting=ApproximateDP(1e-6)).guesses
    assert right <= found.state <= right + 0.01
