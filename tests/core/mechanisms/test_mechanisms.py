"""Privacy profiles of mechanisms against high precision, sums over all outputs, and Google's library."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld

from oracles import hockey_stick
from temporaldp import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    InputError,
    LaplaceNoise,
    Mechanism,
    OutputTable,
    PrivacyGuarantee,
    RandomizedResponse,
)
from temporaldp.core.mechanisms.events import release_of
from temporaldp.core.mechanisms.protocol import epsilon_of_one

EPSILONS = np.array([0.0, 1e-9, 1e-3, 0.05, 0.3, 1.0, 3.0, 20.0])


def gaussian(mu, epsilon):
    with mpmath.workdps(60):
        left, right = mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu, -mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu
        return mpmath.ncdf(left) - mpmath.exp(epsilon) * mpmath.ncdf(right)


@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.1, 1.0, 5.0, 30.0])
def test_gaussian_noise_agrees_with_60_digit_arithmetic(mu):
    low, up = GaussianNoise(1.0 / mu, sensitivity=1.0).bounds(EPSILONS)
    for epsilon, below, above in zip(EPSILONS.tolist(), low, up, strict=True):
        true = gaussian(1.0 / (1.0 / mu), epsilon)
        assert below <= true <= above or true < 1e-290
        if true > 1e-290:
            x = epsilon / mu
            assert above <= true * (1.0 + 1e-13 * ((1.0 + x) * (1.0 + mu)) ** 3 / min(mu, 1.0))


def shifted(weights, shift):
    """The two rows of outputs 0..N of noise with these weights around the middle, moved by `shift`."""
    size = len(weights)
    rows = np.zeros((2, size + shift))
    rows[0, :size] = rows[1, shift:] = weights / weights.sum()
    return rows


@pytest.mark.parametrize("sensitivity", [1, 2, 5])
@pytest.mark.parametrize("scale", [0.3, 2.0, 15.0])
@pytest.mark.parametrize("kind", [DiscreteLaplaceNoise, DiscreteGaussianNoise])
def test_discrete_noise_agrees_with_enumeration(kind, scale, sensitivity):
    x = np.arange(-700, 701)
    weights = np.exp(-np.abs(x) / scale) if kind is DiscreteLaplaceNoise else np.exp(-0.5 * (x / scale) ** 2)
    rows = shifted(weights, sensitivity)
    low, up = kind(scale, sensitivity).bounds(EPSILONS)
    for epsilon, below, above in zip(EPSILONS.tolist(), low, up, strict=True):
        true = hockey_stick(rows, math.exp(epsilon))
        assert below - 1e-15 <= true <= above + 1e-15
        assert above - below <= 1e-10 * above + 1e-14


@pytest.mark.parametrize("scale", [150.0, 900.0])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_discrete_gaussian_noise_of_many_outputs_agrees_with_enumeration(scale, sensitivity):
    """So many losses that are evenly spaced are added up by a filter, not one by one."""
    x = np.arange(-int(12 * scale), int(12 * scale) + 1)
    rows = shifted(np.exp(-0.5 * (x / scale) ** 2), sensitivity)
    epsilons = np.array([0.0, 1e-4, 1.0 / scale, 3.0 / scale, 10.0 / scale])
    low, up = DiscreteGaussianNoise(scale, sensitivity).bounds(epsilons)
    true = np.array([hockey_stick(rows, math.exp(epsilon)) for epsilon in epsilons])
    assert (low <= true + 1e-14).all() and (true <= up + 1e-14).all()
    assert (up - low <= 1e-9 * up + 1e-14).all()


@pytest.mark.parametrize("scale", [11.8569652121114, 11.3, 12.1, 9.7])
def test_bounds_stay_ordered_for_subnormal_deltas(scale):
    low, up = DiscreteGaussianNoise(scale).bounds(np.linspace(3.0, 3.4, 4_001) * 11.8569652121114 / scale)
    assert ((up > 0.0) & (up < 1e-300)).any()
    assert (low <= up).all()


def test_laplace_randomised_response_and_guarantees_agree_with_their_outputs():
    for epsilon in (0.1, 1.0, 4.0):
        for k in (2, 3, 7):
            table = np.full((k, k), 1.0) + (math.e**epsilon - 1.0) * np.eye(k)
            rows = table / table.sum(axis=1, keepdims=True)
            for mechanism in (RandomizedResponse(epsilon, k), OutputTable(rows)):
                low, up = mechanism.bounds(EPSILONS)
                true = [hockey_stick(rows, math.exp(e)) for e in EPSILONS]
                np.testing.assert_allclose(up, true, rtol=1e-12, atol=2e-14)
                assert (low <= up).all()
        delta = 0.03
        worst = np.array(
            [
                [delta, 0.0, (1 - delta) * math.e**epsilon, 1 - delta],
                [0.0, delta, 1 - delta, (1 - delta) * math.e**epsilon],
            ]
        )
        worst[:, 2:] /= 1.0 + math.e**epsilon
        up = PrivacyGuarantee(epsilon, delta).bounds(EPSILONS)[1]
        np.testing.assert_allclose(up, [hockey_stick(worst, math.exp(e)) for e in EPSILONS], rtol=1e-12, atol=2e-14)


def test_guarantee_lies_between_its_bounds_in_40_digits():
    rng = np.random.default_rng(2)
    epsilons, deltas = 10.0 ** rng.uniform(-4.0, 0.7, 40), 10.0 ** rng.uniform(-9.0, -0.3, 40)
    for epsilon, delta in zip(epsilons.tolist(), deltas.tolist(), strict=True):
        losses = rng.uniform(0.0, 1.1 * epsilon, 12)
        low, up = PrivacyGuarantee(epsilon, delta).bounds(losses)
        with mpmath.workdps(40):
            for loss, below, above in zip(losses.tolist(), low, up, strict=True):
                gap = max(mpmath.mpf(epsilon) - mpmath.mpf(loss), 0)
                true = delta + (1 - mpmath.mpf(delta)) * -mpmath.expm1(-gap) / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
                assert below <= true <= above
        assert (up - low <= 1e-13 * (1.0 + epsilon)).all()
        assert (up[losses > epsilon * (1.0 + 1e-12)] == delta).all()  # else that delta itself would have no epsilon


def test_table_of_outputs_lies_between_its_bounds_in_40_digits():
    rng = np.random.default_rng(3)
    for _ in range(20):
        table = rng.dirichlet(np.full(4, 0.5), 3)
        table = np.where(table < 0.05, 0.0, table)
        table /= table.sum(axis=1, keepdims=True)
        low, up = OutputTable(table).bounds(EPSILONS)
        with mpmath.workdps(40):
            rows = [[mpmath.mpf(float(p)) for p in row] for row in table]
            for epsilon, below, above in zip(EPSILONS.tolist(), low, up, strict=True):
                ratio = mpmath.exp(mpmath.mpf(epsilon))
                true = max(
                    sum(max(p - ratio * q, mpmath.mpf(0)) for p, q in zip(one, other, strict=True))
                    for one in rows
                    for other in rows
                )
                assert below <= min(true, 1) <= above  # rows of doubles may sum to a little more than 1
        assert (up - low <= 1e-12).all()


@pytest.mark.long
def test_laplace_noise_agrees_with_integration():
    for scale in (10.0, 1.0, 0.25):
        noise = LaplaceNoise(scale, sensitivity=1.0).bounds(EPSILONS)[1]
        np.testing.assert_allclose(noise, [laplace(scale, e) for e in EPSILONS.tolist()], rtol=1e-8, atol=1e-13)


def laplace(scale, epsilon):
    """The hockey-stick divergence of two Laplace densities, the second moved by 1."""

    def excess(z):
        return max(mpmath.mpf(0), density(z) - mpmath.exp(epsilon) * density(z - 1))

    def density(z):
        return mpmath.exp(-abs(z) / scale) / (2 * scale)

    with mpmath.workdps(30):
        if epsilon >= 1.0 / scale:
            return 0.0
        return float(mpmath.quad(excess, [-mpmath.inf, 0, (1 - epsilon * scale) / 2, 1, mpmath.inf]))


def test_the_pure_epsilon_and_the_limit():
    assert LaplaceNoise(5.0, sensitivity=1.0, coordinates=2).pure_epsilon == pytest.approx(0.4, rel=1e-14)
    assert LaplaceNoise(0.4, sensitivity=1.0, coordinates=2).pure_epsilon == pytest.approx(5.0, rel=1e-14)
    assert DiscreteLaplaceNoise(5.0).pure_epsilon == pytest.approx(0.4, rel=1e-14)
    assert RandomizedResponse(1.5).pure_epsilon == 1.5
    assert PrivacyGuarantee(1.5, 0.1).pure_epsilon == math.inf and PrivacyGuarantee(1.5, 0.1).limit == 0.1
    table = OutputTable([[0.5, 0.5, 0.0], [0.25, 0.65, 0.1]])
    assert table.pure_epsilon == math.inf and table.limit == 0.1
    assert OutputTable([[0.2, 0.8, 0.0], [0.4, 0.6, 0.0]]).pure_epsilon == pytest.approx(math.log(2.0))
    for mechanism in (GaussianNoise(1.0, 1.0), DiscreteGaussianNoise(2.0)):
        assert mechanism.pure_epsilon == math.inf and mechanism.limit == 0.0


def test_events_under_replacement():
    """Replacing a value moves the result by two contributions, as dp-accounting has it under the same relation."""
    (noise,) = release_of(dp_event.GaussianDpEvent(4.0))
    reference = pld.from_gaussian_mechanism(
        4.0, neighboring_relation=pld.NeighborRel.REPLACE_ONE, value_discretization_interval=1e-4
    )
    assert epsilon_of_one(noise, delta=1e-5) == pytest.approx(reference.get_epsilon_for_delta(1e-5), rel=1e-4)
    assert release_of(dp_event.LaplaceDpEvent(4.0))[0].pure_epsilon == pytest.approx(0.5)
    assert release_of(dp_event.NoOpDpEvent()) == release_of(None) == ()
    assert len(release_of(dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(4.0), 3))) == 3
    both = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(4.0), dp_event.RandomizedResponseDpEvent(0.5, 3)])
    assert [type(one) for one in release_of(both)] == [GaussianNoise, RandomizedResponse]
    given = Mechanism.from_loss_distribution(reference, neighboring_relation=pld.NeighborRel.REPLACE_ONE)
    low, up = given.bounds(EPSILONS)
    exact = noise.bounds(EPSILONS)[1]
    assert (up >= exact).all() and (up <= exact * 1.001 + 1e-11).all() and (low <= up).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: GaussianNoise(0.0, 1.0),
        lambda: GaussianNoise(1.0, math.nan),
        lambda: LaplaceNoise(1.0, -1.0),
        lambda: LaplaceNoise(1.0, 1.0, coordinates=0),
        lambda: DiscreteLaplaceNoise(1.0, sensitivity=1.5),
        lambda: DiscreteGaussianNoise("much"),
        lambda: DiscreteGaussianNoise(1e9),
        lambda: RandomizedResponse(1.0, 1),
        lambda: PrivacyGuarantee(-1.0),
        lambda: PrivacyGuarantee(1.0, 1.0),
        lambda: OutputTable([[0.5, 0.5]]),
        lambda: OutputTable([[0.5, 0.6], [0.5, 0.5]]),
        lambda: OutputTable("table"),
        lambda: release_of("gaussian"),
        lambda: Mechanism.from_loss_distribution(
            pld.from_gaussian_mechanism(1.0, pessimistic_estimate=False), neighboring_relation="replace_one"
        ),
        lambda: release_of(dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.0))),
        lambda: release_of(dp_event.GaussianDpEvent(0.0)),
    ],
)
def test_invalid_mechanisms_are_refused(make):
    with pytest.raises(InputError, match="expected"):
        make()


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.float16, np.float32])
def test_short_numbers_of_numpy_count_as_python_numbers(kind):
    """Their squares overflow, and their quotients are rounded down."""
    for scale in (20, 100):
        for noise in (DiscreteGaussianNoise, DiscreteLaplaceNoise, LaplaceNoise, GaussianNoise):
            more = {} if noise in {DiscreteGaussianNoise, DiscreteLaplaceNoise} else {"sensitivity": 1.0}
            given, plain = noise(kind(scale), **more), noise(float(scale), **more)
            assert epsilon_of_one(given, delta=1e-6) == epsilon_of_one(plain, delta=1e-6)
            assert given.pure_epsilon == plain.pure_epsilon
    assert LaplaceNoise(kind(3), sensitivity=kind(1)).pure_epsilon >= 1.0 / 3.0
    assert DiscreteLaplaceNoise(3.0, kind(1), coordinates=np.int8(2)).pure_epsilon >= 2.0 / 3.0
