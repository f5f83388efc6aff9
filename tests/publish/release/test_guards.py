"""A continual release under a noise plan: each step is drawn once, with the noise that was fixed for it beforehand."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa

from making import from_sequences
from streams import ADVERSARY, MECHANISM
from temporaldp import (
    ApproximateDP,
    BudgetError,
    ContinualRelease,
    DiscreteGaussianNoise,
    DiscreteLaplaceHistogram,
    InputError,
    Ledger,
    LedgerError,
    NoisePlan,
    TemporalAccountant,
    load_released,
    plan_budget,
    plan_noise,
    release_histograms,
    save_released,
    temporal_leakage,
)
from temporaldp.base.errors import LedgerMismatchError
from temporaldp.data.counts import NoisyHistogram

GAUSSIAN = NoisyHistogram(n_states=2, noise="gaussian")
SCALES = (5.0, 7.0, 6.0, 5.5)


def noise_plan(scales=SCALES, *, delta=1e-6, alpha=None, noise="gaussian"):
    """A plan with these scales, by the public accounting."""
    profiles = [DiscreteGaussianNoise(scale) for scale in scales]
    leakage = temporal_leakage(ADVERSARY, profiles, accounting=ApproximateDP(delta))
    return NoisePlan(leakage=leakage, alpha=alpha or leakage.worst, noise=noise, scales=scales)


PLAN = noise_plan()


class Noted:
    """A mechanism that says what it was called with."""

    noise = "gaussian"

    def __init__(self):
        self.scales = []

    def __call__(self, snapshot, scale):
        self.scales.append(scale)
        return [len(self.scales), snapshot]


def opened(place, plan=PLAN, mechanism=GAUSSIAN):
    return ContinualRelease(mechanism, ledger=place, plan=plan, description="noisy histogram")


def test_each_step_draws_its_noise_once_and_the_release_resumes(place):
    first, second = Noted(), Noted()
    with opened(place, mechanism=first) as stream:
        outputs = [stream.release("a", time=k) for k in range(2)]
        assert stream.release("a", time=1) == outputs[1] == [2, "a"]
        assert stream.guard.horizon - len(stream) == 2 and stream.accountant is None
    with opened(place, mechanism=second) as stream:
        assert [stream.release("a", time=k) for k in range(4)][:2] == outputs
        with pytest.raises(BudgetError, match="for 4 steps"):
            stream.release("c", time=4)
        rows = stream.ledger[:]
    assert (first.scales, second.scales) == ([5.0, 7.0], [6.0, 5.5])
    assert [row.parameter for row in rows] == list(SCALES)
    assert [row.epsilon for row in rows] == PLAN.epsilons.tolist()
    assert all(row.leakage is None for row in rows)


def test_adaptive_noise_is_refused_with_the_reason(place):
    with opened(place) as stream:
        for epsilon in (1e-9, 0.1, 100.0):
            with pytest.raises(BudgetError, match="do not compose along adaptive paths"):
                stream.release([70, 30], time=0, epsilon=epsilon)
        assert len(stream) == 0
    with pytest.raises(InputError, match=r"do not compose along adaptive paths.*fixed beforehand"):
        accountant = TemporalAccountant(ADVERSARY, alpha=9.0)
        ContinualRelease(GAUSSIAN, ledger=place, plan=PLAN, accountant=accountant)


def test_step_may_be_skipped_or_be_the_last(place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.skip(time=1)
        assert stream.release([70, 30], time=1) is None
        stream.release([70, 30], time=2, last=True)
        with pytest.raises(BudgetError, match="declared the last"):
            stream.release([70, 30], time=3)
        assert [row.parameter for row in stream.ledger[:]] == [5.0, 0.0, 6.0]
        assert stream.ledger.epsilons[1] == 0.0


OTHERS = {
    "delta": noise_plan(delta=1e-5, alpha=PLAN.alpha),
    "noise": NoisePlan(leakage=PLAN.leakage, alpha=PLAN.alpha, noise="laplace", scales=SCALES),
    "alpha": noise_plan(alpha=2.0 * PLAN.alpha),
    "horizon": noise_plan(SCALES[:3], alpha=PLAN.alpha),
    "plan": NoisePlan(
        leakage=PLAN.leakage, alpha=PLAN.alpha, noise="gaussian", scales=(5.0, 7.0, 6.0, np.nextafter(5.5, 6.0))
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_ledger_of_other_noise_is_refused_with_the_difference(what, place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    other = OTHERS[what]
    with pytest.raises(LedgerMismatchError, match=rf"{what}( \(\w+\.\w+ in a project file, or --set\))?: "):
        opened(place, other, NoisyHistogram(n_states=2, noise=other.noise))
    with pytest.raises(LedgerMismatchError, match="delta: the ledger has 1e-06, this release has none"):
        ContinualRelease(MECHANISM, ledger=place, plan=plan_budget(ADVERSARY, alpha=1.0), description="noisy histogram")
    with opened(place) as stream:
        assert len(stream) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE temporaldp_steps SET parameter = 500 WHERE step = 1",
        "UPDATE temporaldp_releases SET configuration = replace(configuration, '1e-06', '1e-07')",
        "UPDATE temporaldp_releases SET configuration = replace(configuration, 'gaussian', 'laplace')",
    ],
)
def test_the_head_covers_scales_delta_and_noise(statement, tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        for time in range(3):
            stream.release([70, 30], time=time)
    engine = sa.create_engine(f"sqlite:///{place}")
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
    with pytest.raises(LedgerError, match=r"was changed|were exchanged"):
        Ledger(place)


def test_plans_of_budgets_and_of_noise_need_matching_mechanisms(tmp_path):
    for plan, mechanism in (
        (PLAN, DiscreteLaplaceHistogram(2)),
        (PLAN, lambda snapshot, scale: snapshot),
        (PLAN, NoisyHistogram(2, "laplace")),
        (plan_budget(ADVERSARY, alpha=1.0), GAUSSIAN),
    ):
        with pytest.raises(InputError, match="expected a mechanism"):
            ContinualRelease(mechanism, ledger=tmp_path / "release.db", plan=plan)
    with pytest.raises(InputError, match="expected a mechanism"):
        ContinualRelease(GAUSSIAN, ledger=tmp_path / "release.db", accountant=TemporalAccountant(ADVERSARY, alpha=1.0))
    assert not list(tmp_path.iterdir())


def test_enclosing_accountant_of_pure_epsilons_is_refused(place):
    with opened(place) as stream, TemporalAccountant(ADVERSARY) as odometer:
        with pytest.raises(BudgetError, match="delta = 0"):
            stream.release([70, 30], time=0)
        assert len(stream) == len(odometer) == 0


def test_histograms_of_a_stream_keep_their_noise_in_the_file(tmp_path):
    people = from_sequences([["a", "b", "b"], ["b", "b", "a"], ["a", "a", "a"]])
    plan = noise_plan()
    with opened(tmp_path / "release.db", plan) as stream:
        stream.skip(time=0)
        released = release_histograms(people, stream)
        again = release_histograms(people, stream)
    assert released.times == ("1", "2") and released.scales.tolist() == [7.0, 6.0]
    assert (released.delta, released.noise, released.accounting) == (1e-6, "gaussian", plan.accounting)
    assert released.epsilons.tolist() == plan.epsilons[1:3].tolist()
    np.testing.assert_array_equal(again.counts, released.counts)
    for name in ("r.csv", "r.parquet"):
        save_released(released, tmp_path / name)
        assert load_released(tmp_path / name).scales.tolist() == [7.0, 6.0]


def test_plan_of_an_infinite_horizon_has_no_last_step(place):
    lasting = plan_noise(ADVERSARY, alpha=1.0, accounting=ApproximateDP(1e-6))
    mechanism = Noted()
    with opened(place, lasting, mechanism) as stream:
        for time in range(5):
            stream.release("x", time=time)
        assert stream.guard.horizon is None
        assert stream.forecast([5])[0].epsilon == lasting.epsilons[0]
    assert mechanism.scales == [lasting.scales[0]] * 5
