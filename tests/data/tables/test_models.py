"""Several models of the correlation from one history: names, numbers, plans over all of them, and refusals."""

import numpy as np
import pytest

from data_sets import sleep_sample
from temporaldp import (
    InputError,
    TemporalAccountant,
    Trajectories,
    estimate_adversary,
    estimate_models,
    plan_budget,
    temporal_leakage,
)
from temporaldp.base.errors import EstimationError
from temporaldp.data.tables import estimate_dwell_times
from temporaldp.data.tables.models import own_correlations

NAMES = ["first order", "second order", "dwell times", "confidence 0.9"]


def few_people(n_people=40, n_times=12, seed=0):
    return Trajectories(np.random.default_rng(seed).integers(2, size=(n_people, n_times)), states=["in", "out"])


def test_leakage_is_the_largest_of_all_models_with_a_row_for_each():
    models = estimate_models(few_people(), NAMES)
    assert list(models) == NAMES
    series = temporal_leakage(models, [0.3] * 6)
    assert [member.name for member in series.members] == NAMES
    assert series.worst == max(temporal_leakage(one, [0.3] * 6).worst for one in models.values())
    assert models["first order"] == estimate_adversary(few_people())
    assert models["dwell times"] == estimate_dwell_times(few_people()).adversary


@pytest.mark.long
def test_a_plan_satisfies_the_level_for_every_model_and_an_accountant_admits_it():
    models = estimate_models(few_people(), NAMES[:3])
    plan = plan_budget(models, 1.0, horizon=6)
    each = [temporal_leakage(one, plan.epsilons).worst for one in models.values()]
    assert 0.99 <= max(each) <= 1.0
    accountant = TemporalAccountant(models, alpha=1.0, horizon=6)
    for epsilon in plan.epsilons:
        accountant.spend(epsilon)
    assert accountant.total() <= 1.0


@pytest.mark.long
def test_the_model_of_a_person_is_that_of_the_share_whom_others_do_not_exceed():
    data = few_people(n_times=30)
    own = [temporal_leakage(one, [0.1] * 30).worst for one in own_correlations(data)]
    (one,) = estimate_models(data, ["per person"]).values()
    assert temporal_leakage(one, [0.1] * 30).worst == pytest.approx(sorted(own)[37])
    assert sum(leakage > temporal_leakage(one, [0.1] * 30).worst for leakage in own) <= 2


def test_time_of_day_has_a_matrix_for_each_phase():
    (one,) = estimate_models(few_people(), ["time of day"], period=3).values()
    assert one.period == 3


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["third order"], InputError, "got 'third order'"),
        (["confidence high"], InputError, "got 'confidence high'"),
        (["time of day"], InputError, "needs a period"),
        ([], InputError, "at least one model"),
    ],
)
def test_unknown_models_are_refused(names, error, message):
    with pytest.raises(error, match=message):
        estimate_models(few_people(), names)


def test_a_model_that_traces_do_not_determine_is_named():
    still = Trajectories(np.repeat([[0], [1]], 6, axis=1), states=["in", "out"])
    with pytest.raises(EstimationError, match="the model 'second order' cannot be estimated"):
        estimate_models(still, ["second order"])


@pytest.mark.long
def test_models_of_the_sample_need_more_noise_than_the_first_order():
    models = estimate_models(sleep_sample(), NAMES[:3])
    plan = plan_budget(models, 1.0, horizon=47)
    assert plan.leakage.worst <= 1.0 and plan.leakage.worst_user == "dwell times"
    assert (
        1.4 <= plan.mean_absolute_noise / plan_budget(models["first order"], 1.0, horizon=47).mean_absolute_noise <= 1.7
    )
