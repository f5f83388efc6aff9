"""The continual release: one step once, whatever crashes, races or is asked again."""

from __future__ import annotations

import numpy as np
import pytest

from making import of_words
from methods import method_of
from streams import ADVERSARY, CERTAIN, MATRIX, MECHANISM, opened, require_level_held
from temporaldp import (
    Adversary,
    BudgetError,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    Exact,
    InputError,
    LeakageBudgetError,
    LedgerError,
    MetricPrivacy,
    PaperBound,
    TemporalAccountant,
    TransitionMatrix,
    plan_budget,
    temporal_leakage,
)
from temporaldp.base.errors import LedgerMismatchError, StateError


def test_a_step_released_again_gives_the_same_output_and_spends_nothing(place):
    with opened(place) as stream:
        first = [stream.release([70, 30], time=f"2024-01-01T0{hour}:00") for hour in range(5)]
        spent = stream.accountant.spent.tolist()
    with opened(place) as stream:
        again = [stream.release([70, 30], time=f"2024-01-01 0{hour}:00:00") for hour in range(5)]  # another spelling
        assert len(stream) == 5
        assert stream.accountant.spent.tolist() == spent
        stream.release([70, 30], time="2024-01-01T05:00")
        require_level_held(stream.ledger.epsilons, ADVERSARY, 1.0)
    assert np.array_equal(first, again)


def test_two_streams_open_at_once_see_each_others_steps(place):
    with opened(place) as one, opened(place) as two:
        first = one.release([70, 30], time=1)
        assert np.array_equal(two.release([70, 30], time=1), first)
        second = two.release([70, 30], time=2)
        assert np.array_equal(one.release([70, 30], time=2), second)
        assert one.accountant.spent.tolist() == two.accountant.spent.tolist()


def test_a_mechanism_that_fails_spends_nothing(place):
    def failing(snapshot, epsilon):
        raise ZeroDivisionError

    with opened(place, mechanism=failing, description="a mechanism") as stream:
        with pytest.raises(ZeroDivisionError):
            stream.release([70, 30], time=0)
        assert len(stream) == len(stream.accountant) == 0
    with opened(place, description="a mechanism") as stream:
        stream.release([70, 30], time=0)


def test_output_that_cannot_be_stored_spends_nothing(place):
    with opened(place, mechanism=lambda snapshot, epsilon: object(), description="object") as stream:
        with pytest.raises(InputError, match="expected an output that a ledger can keep"):
            stream.release([70, 30], time=0)
        assert len(stream) == 0


def test_a_refused_budget_changes_nothing(place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        with pytest.raises(LeakageBudgetError) as refused:
            stream.release([70, 30], time=1, epsilon=0.9)
        assert len(stream) == len(stream.accountant) == 1
        stream.release([70, 30], time=1, epsilon=refused.value.largest)
        require_level_held(stream.ledger.epsilons, ADVERSARY, 1.0)


def test_skipped_step_spends_nothing_and_advances_time(place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.skip(time=1)
        stream.release([70, 30], time=2)
        assert stream.release([70, 30], time=1) is None
        assert stream.ledger.epsilons[1] == 0.0
        assert stream.ledger[2].leakage == pytest.approx(
            temporal_leakage(ADVERSARY, stream.ledger.epsilons).worst, rel=1e-14
        )


def test_last_step_may_use_the_reserve_and_is_final(place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.release([70, 30], time=1, last=True)
        assert stream.ledger.epsilons[1] > 2 * stream.ledger.epsilons[0]
        with pytest.raises(BudgetError, match="declared the last"):
            stream.release([70, 30], time=2)
    with opened(place) as stream, pytest.raises(BudgetError, match="declared the last"):
        stream.release([70, 30], time=2)


@pytest.mark.long
@pytest.mark.parametrize("name", ["exact", "paper"])
def test_finite_horizon_is_planned_optimally_and_replanned(name, place):
    with opened(place, horizon=6, accounting=method_of(name)) as stream:
        stream.release([70, 30], time=0, epsilon=0.05)
        for time in range(1, 6):
            stream.release([70, 30], time=time)
        spent = stream.ledger.epsilons
        with pytest.raises(BudgetError, match="horizon"):
            stream.release([70, 30], time=6)
    planned = plan_budget(ADVERSARY, alpha=1.0, horizon=6, accounting=method_of(name)).epsilons
    assert (spent[1:] > planned[1:] * (1 - 1e-6)).all()  # both are optimal to about that share
    assert np.mean(1.0 / spent[1:]) < 0.95 * np.mean(1.0 / planned[1:])
    assert spent[1] > planned[1] * 1.05
    assert 1.0 - 1e-6 < temporal_leakage(ADVERSARY, spent, accounting=method_of(name)).worst <= 1.0


def test_release_by_a_plan_satisfies_the_level(place):
    plan = plan_budget(ADVERSARY, alpha=1.0, horizon=4)
    with ContinualRelease(MECHANISM, ledger=place, plan=plan) as stream:
        for time in range(4):
            stream.release([70, 30], time=time)
        with pytest.raises(BudgetError, match="shorter than the data"):
            stream.release([70, 30], time=4)
        assert stream.ledger[-1].leakage is None
        assert (stream.ledger.epsilons <= plan.epsilons).all()


def test_release_by_a_plan_refuses_larger_budgets(place):
    plan = plan_budget(ADVERSARY, alpha=1.0)
    with ContinualRelease(MECHANISM, ledger=place, plan=plan) as stream:
        with pytest.raises(BudgetError, match="more than the plan grants"):
            stream.release([70, 30], time=0, epsilon=float(plan.epsilons[0]) * 1.01)
        assert len(stream) == 0


OTHERS = {
    "correlations": {"adversary": Adversary(MATRIX)},
    "alpha": {"alpha": 2.0},
    "horizon": {"horizon": 9},
    "reserve": {"reserve": 0.01},
    "mechanism": {"description": "another mechanism"},
    "states": {"states": ("home", "work")},
    "step": {"step": "1 hour"},
}


@pytest.mark.parametrize("what", OTHERS)
def test_ledger_of_another_release_is_refused_with_the_difference(what, place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    with pytest.raises(LedgerMismatchError, match=rf"{what}( \(\w+\.\w+ in a project file, or --set\))?: "):
        opened(place, **OTHERS[what])
    with opened(place) as stream:
        assert len(stream) == 1


def test_another_plan_is_refused(place):
    with ContinualRelease(MECHANISM, ledger=place, plan=plan_budget(ADVERSARY, alpha=1.0, horizon=4)) as stream:
        stream.release([70, 30], time=0)
    with pytest.raises(LedgerMismatchError, match="plan: "):
        ContinualRelease(MECHANISM, ledger=place, plan=plan_budget(ADVERSARY, alpha=1.0, horizon=5))


def test_the_order_and_names_of_users_do_not_matter(place):
    other = Adversary(TransitionMatrix([[0.6, 0.4], [0.1, 0.9]]))
    with opened(place, adversary={"ann": ADVERSARY, "bob": other}) as stream:
        stream.release([70, 30], time=0)
    opened(place, adversary={"x": other, "y": ADVERSARY}).close()


def test_ledger_without_steps_accepts_another_configuration(place):
    with opened(place, horizon=3) as first:
        with opened(place, alpha=2.0) as second:
            second.release([70, 30], time=0)
            assert second.ledger.configuration["alpha"] == 2.0
        with pytest.raises(LedgerError, match="was changed while it was open"):
            first.release([70, 30], time=0)
    with pytest.raises(LedgerMismatchError):
        opened(place, horizon=3)


def test_unpublished_step_is_a_step_of_the_enclosing_accountant(place):
    identity, mixing = CERTAIN, TransitionMatrix([[0.5, 0.5], [0.5, 0.5]])
    varying = Adversary([mixing, identity, mixing], [mixing, identity, mixing])
    plan = plan_budget(Adversary(), alpha=1.0, horizon=3, weights=[0, 1, 1])
    with TemporalAccountant(varying) as odometer, ContinualRelease(MECHANISM, ledger=place, plan=plan) as stream:
        for time in range(3):
            stream.release([70, 30], time=time)
        stream_total = odometer.total()
        assert odometer.spent.tolist() == stream.ledger.epsilons.tolist()
    assert stream_total == pytest.approx(2.0, rel=1e-6)


def test_a_horizon_with_a_reserve_spends_the_reserve(place):
    with opened(place, horizon=3, reserve=0.1) as stream:
        stream.skip(time=0)
        for time in (1, 2):
            stream.release([70, 30], time=time)
        assert stream.ledger.epsilons[1] == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize("epsilon", [-1.0, float("nan"), "much", float("inf")])
def test_invalid_budgets_are_refused(epsilon, place):
    with ContinualRelease(MECHANISM, ledger=place, plan=plan_budget(ADVERSARY, alpha=1.0)) as stream:
        with pytest.raises(BudgetError):
            stream.release([70, 30], time=0, epsilon=epsilon)
        assert len(stream) == 0


def test_published_step_cannot_be_skipped(place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        with pytest.raises(InputError, match="was published already"):
            stream.skip(time=0)


@pytest.mark.long
def test_an_accountant_spent_elsewhere_does_not_touch_the_release(place, tmp_path):
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0)
    one = ContinualRelease(MECHANISM, ledger=place, accountant=accountant)
    two = ContinualRelease(MECHANISM, ledger=tmp_path / "two.db", accountant=accountant)
    with one, two:
        for time in range(5):
            one.release([70, 30], time=time)
            two.skip(time=time)
        accountant.spend(0.0)
        one.release([70, 30], time=5, last=True)
        two.release([70, 30], time=5, last=True)
        for stream in (one, two):
            require_level_held(stream.ledger.epsilons, ADVERSARY, 1.0)
    with opened(place) as stream:
        assert len(stream) == 6


def test_the_releases_own_accountant_cannot_be_spent_from_outside(place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.accountant.spend(0.0)
        with pytest.raises(InputError, match="something else was charged"):
            stream.release([70, 30], time=1)


def test_new_steps_are_charged_to_enclosing_accountants(place):
    with TemporalAccountant(ADVERSARY) as odometer, opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.release([70, 30], time=0)
        assert odometer.spent.tolist() == stream.ledger.epsilons.tolist()
        with TemporalAccountant(ADVERSARY, alpha=0.01, reserve=0.0), pytest.raises(LeakageBudgetError):
            stream.release([70, 30], time=1)
        assert len(odometer) == len(stream) == 1


def test_a_mechanism_must_not_release_inside(place):
    def greedy(snapshot, epsilon):
        return stream.release(snapshot, time=99)

    with (
        opened(place, mechanism=greedy, description="greedy") as stream,
        pytest.raises(InputError, match="while it draws"),
    ):
        stream.release([70, 30], time=0)


def test_step_can_be_released_again_while_its_error_is_referenced(place):
    def failing(snapshot, epsilon):
        if not kept:
            raise ZeroDivisionError
        return 1

    kept = []
    with opened(place, mechanism=failing, description="failing") as stream:
        try:
            stream.release([70, 30], time=0)
        except ZeroDivisionError as error:
            kept.append(error)  # with its traceback, and the frames in it
        assert stream.release([70, 30], time=0) == 1
        assert len(stream) == len(kept) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"mechanism": None},
        {"mechanism": DiscreteLaplaceHistogram(n_states=3)},
        {"accountant": ADVERSARY},
        {"plan": 0.1},
        {"step": "1\n"},
        {"description": "laplace\x1b[31m"},
    ],
)
def test_inconsistent_arguments_are_refused_and_create_no_file(arguments, tmp_path):
    given = {"mechanism": MECHANISM, "accountant": TemporalAccountant(ADVERSARY, alpha=1.0), **arguments}
    with pytest.raises(InputError, match=r"expected a|states|control characters"):
        ContinualRelease(given.pop("mechanism"), ledger=tmp_path / "release.db", **given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("accountant", "plan", "message"),
    [
        (None, None, "expected an accountant or a plan"),
        (TemporalAccountant(ADVERSARY), None, "odometer"),
        (TemporalAccountant(ADVERSARY, alpha=1.0).spend(0.1), None, "spent nothing yet"),
        (
            TemporalAccountant(ADVERSARY, alpha=0.5),
            plan_budget(ADVERSARY, alpha=1.0, accounting=PaperBound()),
            "more than the accountant's",
        ),
        (
            TemporalAccountant(ADVERSARY, alpha=1.0),
            plan_budget(ADVERSARY, alpha=1.0, horizon=3, accounting=PaperBound()),
            "a horizon of 3",
        ),
        (
            TemporalAccountant(ADVERSARY, alpha=1.0, accounting=PaperBound()),
            plan_budget(ADVERSARY, alpha=1.0),
            r"make the accountant with accounting=Exact\(\), plan by the same method",
        ),
    ],
)
def test_plan_or_accountant_that_exceeds_the_level_is_refused(accountant, plan, message, tmp_path):
    with pytest.raises(InputError, match=message):
        ContinualRelease(MECHANISM, ledger=tmp_path / "release.db", accountant=accountant, plan=plan)
    assert not list(tmp_path.iterdir())


def test_no_default_epsilon_without_a_sustainable_budget(place):
    certain = TransitionMatrix([[1.0, 0.0], [0.0, 1.0]])
    with opened(place, adversary=Adversary(certain, certain)) as stream:
        with pytest.raises(BudgetError, match="give an epsilon for each step"):
            stream.release([70, 30], time=0)
        stream.release([70, 30], time=0, epsilon=0.4)
        stream.release([70, 30], time=1, epsilon=0.6 * (1 - 1e-9))
        with pytest.raises(LeakageBudgetError):
            stream.release([70, 30], time=2, epsilon=0.01)


@pytest.mark.long
@pytest.mark.parametrize("planned", ["exact", "paper"])
@pytest.mark.parametrize("horizon", [None, 5])
def test_an_exact_accountant_follows_a_plan_by_either_method(planned, horizon, tmp_path):
    plan = plan_budget(ADVERSARY, alpha=1.0, horizon=horizon, accounting=method_of(planned))
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0, horizon=horizon)
    with ContinualRelease(MECHANISM, ledger=tmp_path / "a.db", accountant=accountant, plan=plan) as stream:
        for time in range(5):
            stream.release([70, 30], time=time)
        spent = stream.ledger.epsilons
        leaked = [row.leakage for row in stream.ledger[:]]
    assert spent == pytest.approx(plan.epsilons_for(5), rel=1e-6)
    for n_steps in range(1, 6):
        exact = temporal_leakage(ADVERSARY, spent[:n_steps]).worst
        assert exact <= leaked[n_steps - 1] * (1 + 1e-12) and leaked[n_steps - 1] == pytest.approx(exact, rel=1e-11)
    assert leaked[-1] <= 1.0


@pytest.mark.long
def test_ledger_of_another_method_or_metric_is_refused(place):
    methods = (Exact(), PaperBound(), MetricPrivacy([[0.0, 2.0], [2.0, 0.0]]))
    messages = (
        "",
        *(f"accounting .*: the ledger has method exact, this release .*method {name}" for name in ("paper", "metric")),
    )
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        assert stream.ledger.configuration["accounting"] == {"method": "exact"}
    for method, message in zip(methods, messages, strict=True):
        accountant = TemporalAccountant(ADVERSARY, alpha=1.0, accounting=method)
        if not message:
            with ContinualRelease(MECHANISM, ledger=place, accountant=accountant) as stream:
                stream.release([70, 30], time=1)
        else:
            with pytest.raises(LedgerMismatchError, match=message):
                ContinualRelease(MECHANISM, ledger=place, accountant=accountant)


def test_a_release_for_other_states_than_its_level_is_refused(place):
    """The level would be that of another correlation."""
    places = [one / one.sum() for one in np.eye(3) + 0.2]
    plan = plan_budget(Adversary(TransitionMatrix(places, ["home", "work", "away"])), alpha=1.0, horizon=10)
    user = TemporalAccountant(Adversary(TransitionMatrix(places, ["home", "work", "away"])), alpha=1.0)
    for level in ({"plan": plan}, {"accountant": user}):
        with pytest.raises(StateError, match="states of this release do not match"):
            ContinualRelease(DiscreteLaplaceHistogram(3), ledger=place, states=("a", "b", "c"), **level)
    with ContinualRelease(
        DiscreteLaplaceHistogram(3), ledger=place, plan=plan, states=("away", "home", "work")
    ) as release:
        assert release.states == ("away", "home", "work")


@pytest.mark.long
def test_a_release_by_a_longer_memory_is_of_the_states_that_it_shows(place):
    chain = of_words([[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]], ["home", "work"])
    plan = plan_budget(chain, alpha=1.0, horizon=3)
    with ContinualRelease(DiscreteLaplaceHistogram(2), ledger=place, plan=plan) as release:
        assert release.states == plan.states == ("home", "work")
