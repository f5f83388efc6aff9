"""The continual release: one step once, whatever crashes, races or is asked again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import workers
from temporaldp import (
    Adversary,
    BudgetError,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    LeakageBudgetError,
    Ledger,
    LedgerMismatchError,
    TemporalAccountant,
    TransitionMatrix,
    plan_budget,
    temporal_leakage,
)

MATRIX = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
ADVERSARY = Adversary(MATRIX, MATRIX)
MECHANISM = DiscreteLaplaceHistogram(n_states=2)


def opened(place, *, mechanism=MECHANISM, adversary=ADVERSARY, alpha=1.0, horizon=None, reserve=None, **schema):
    accountant = TemporalAccountant(adversary, alpha=alpha, horizon=horizon, reserve=reserve)
    return ContinualRelease(mechanism, ledger=place, accountant=accountant, **schema)


def worker(*arguments):
    """A script of forks, in a process of its own: pytest's is no place to fork from."""
    script = Path(workers.__file__)
    done = subprocess.run(
        [sys.executable, script, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def noted(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def require_level_held(epsilons, adversary, alpha):
    assert temporal_leakage(adversary, epsilons=epsilons).worst <= alpha


def test_a_step_released_again_gives_the_same_output_and_spends_nothing(place):
    with opened(place) as stream:
        first = [stream.release([70, 30], time=f"2024-01-01T0{hour}:00") for hour in range(5)]
        spent = stream.accountant.ledger.tolist()
    with opened(place) as stream:
        again = [stream.release([1, 99], time=f"2024-01-01 0{hour}:00:00") for hour in range(5)]  # another spelling
        assert len(stream) == 5
        assert stream.accountant.ledger.tolist() == spent
        stream.release([70, 30], time="2024-01-01T05:00")
        require_level_held(stream.ledger.epsilons, ADVERSARY, 1.0)
    assert np.array_equal(first, again)


def test_two_streams_open_at_once_see_each_others_steps(place):
    with opened(place) as one, opened(place) as two:
        first = one.release([70, 30], time=1)
        assert np.array_equal(two.release([70, 30], time=1), first)
        second = two.release([70, 30], time=2)
        assert np.array_equal(one.release([70, 30], time=2), second)
        assert one.accountant.ledger.tolist() == two.accountant.ledger.tolist()


@pytest.mark.parametrize(("store", "n_kills"), [("sqlite", 500), ("postgresql", 100)])
def test_killed_at_random_moments_nothing_is_drawn_or_spent_twice(store, n_kills, tmp_path, request):
    place = tmp_path / "release.db"
    if store == "postgresql":
        import postgres

        place = postgres.create_database(request.getfixturevalue("postgres_server"), "kills")
    lengths = worker("kills", place, tmp_path, n_kills, 7)["lengths"]
    assert lengths == sorted(lengths), "a step was lost"
    assert len(set(lengths)) > n_kills // 5, "most processes did nothing: the test shows little"
    with Ledger(place) as ledger:
        ledger.verify()
        stored = [output.tolist() for output in ledger.outputs]
        require_level_held(ledger.epsilons, workers.ADVERSARY, workers.ALPHA)
        accountant = TemporalAccountant(workers.ADVERSARY, alpha=workers.ALPHA)
        spent = DiscreteLaplaceHistogram(n_states=3).epsilon_spent(accountant.reserve)
        assert ledger.epsilons.tolist() == [spent] * len(ledger), "a budget was lost or spent twice"
    published = noted(tmp_path / "published")
    assert len(published) > n_kills
    assert all(one["output"] == stored[one["step"]] for one in published), "two outputs for one step"
    drawn = [one["draw"] for one in noted(tmp_path / "drawn")]
    assert len(drawn) > len(stored), "no process was killed between its draw and its commit"
    assert all(output in drawn for output in stored)


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_two_writers_racing_over_a_thousand_steps_draw_each_once(store, tmp_path, request):
    place = tmp_path / "release.db"
    if store == "postgresql":
        import postgres

        place = postgres.create_database(request.getfixturevalue("postgres_server"), "race")
    assert worker("race", place, tmp_path, 1000)["codes"] == [0, 0]
    one, two = (noted(tmp_path / f"published{number}") for number in range(2))
    assert one == two
    assert len(noted(tmp_path / "drawn")) == 1000
    with Ledger(place) as ledger:
        assert [output.tolist() for output in ledger.outputs] == [step["output"] for step in one]
        require_level_held(ledger.epsilons, workers.ADVERSARY, workers.ALPHA)


def test_a_mechanism_that_fails_spends_nothing(place):
    def failing(snapshot, epsilon):
        raise ZeroDivisionError

    with opened(place, mechanism=failing, description="a mechanism") as stream:
        with pytest.raises(ZeroDivisionError):
            stream.release([70, 30], time=0)
        assert len(stream) == len(stream.accountant) == 0
    with opened(place, description="a mechanism") as stream:
        stream.release([70, 30], time=0)


def test_an_output_that_cannot_be_kept_spends_nothing(place):
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


def test_a_step_passed_over_spends_nothing_and_moves_time_on(place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.skip(time=1)
        stream.release([70, 30], time=2)
        assert stream.release([70, 30], time=1) is None
        assert stream.ledger.epsilons[1] == 0.0
        assert stream.ledger[2].leakage == pytest.approx(
            temporal_leakage(ADVERSARY, epsilons=stream.ledger.epsilons).worst, rel=1e-14
        )


def test_the_last_step_may_use_the_reserve_and_nothing_follows(place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.release([70, 30], time=1, last=True)
        assert stream.ledger.epsilons[1] > 2 * stream.ledger.epsilons[0]
        with pytest.raises(BudgetError, match="declared the last"):
            stream.release([70, 30], time=2)
    with opened(place) as stream, pytest.raises(BudgetError, match="declared the last"):
        stream.release([70, 30], time=2)


def test_a_horizon_is_planned_optimally_and_again_when_less_was_spent(place):
    with opened(place, horizon=6) as stream:
        stream.release([70, 30], time=0, epsilon=0.05)
        for time in range(1, 6):
            stream.release([70, 30], time=time)
        spent = stream.ledger.epsilons
        with pytest.raises(BudgetError, match="horizon"):
            stream.release([70, 30], time=6)
    planned = plan_budget(ADVERSARY, alpha=1.0, horizon=6).epsilons
    assert (spent[1:] > planned[1:] * (1 - 1e-9)).all()
    assert spent[1] > planned[1] * 1.05
    assert 1.0 - 1e-6 < temporal_leakage(ADVERSARY, epsilons=spent).worst <= 1.0


def test_a_plan_alone_holds_the_level(place):
    plan = plan_budget(ADVERSARY, alpha=1.0, horizon=4)
    with ContinualRelease(MECHANISM, ledger=place, plan=plan) as stream:
        for time in range(4):
            stream.release([70, 30], time=time)
        with pytest.raises(BudgetError, match="shorter than the data"):
            stream.release([70, 30], time=4)
        assert stream.ledger[-1].leakage is None
        assert (stream.ledger.epsilons <= plan.epsilons).all()


def test_a_plan_alone_refuses_more_than_it_grants(place):
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
    "mechanism": {"mechanism": DiscreteLaplaceHistogram(n_states=3)},
    "states": {"states": ("home", "work")},
    "step": {"step": "1 hour"},
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_ledger_of_another_release_is_refused_and_says_what_differs(what, place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    with pytest.raises(LedgerMismatchError, match=f"{what}: "):
        opened(place, **OTHERS[what])
    with opened(place) as stream:
        assert len(stream) == 1


def test_another_plan_is_refused(place):
    ContinualRelease(MECHANISM, ledger=place, plan=plan_budget(ADVERSARY, alpha=1.0, horizon=4)).close()
    with pytest.raises(LedgerMismatchError, match="plan: "):
        ContinualRelease(MECHANISM, ledger=place, plan=plan_budget(ADVERSARY, alpha=1.0, horizon=5))


def test_the_order_and_names_of_users_do_not_matter(place):
    other = Adversary(TransitionMatrix([[0.6, 0.4], [0.1, 0.9]]))
    opened(place, adversary={"ann": ADVERSARY, "bob": other}).close()
    opened(place, adversary={"x": other, "y": ADVERSARY}).close()


def test_a_late_step_is_refused(place):
    with opened(place) as stream:
        stream.release([70, 30], time="2024-01-01T10:00")
        with pytest.raises(InputError, match="comes before"):
            stream.release([70, 30], time="2024-01-01T09:00")


@pytest.mark.parametrize(
    ("accountant", "plan", "message"),
    [
        (None, None, "expected an accountant or a plan"),
        (TemporalAccountant(ADVERSARY), None, "odometer"),
        (TemporalAccountant(ADVERSARY, alpha=1.0).spend(0.1), None, "spent nothing yet"),
        (TemporalAccountant(ADVERSARY, alpha=0.5), plan_budget(ADVERSARY, alpha=1.0), "more than the accountant's"),
        (TemporalAccountant(ADVERSARY, alpha=1.0), plan_budget(ADVERSARY, alpha=1.0, horizon=3), "horizon=3"),
    ],
)
def test_what_does_not_hold_the_level_is_refused(accountant, plan, message, tmp_path):
    with pytest.raises(InputError, match=message):
        ContinualRelease(MECHANISM, ledger=tmp_path / "release.db", accountant=accountant, plan=plan)
    assert not list(tmp_path.iterdir())


def test_without_a_lasting_budget_there_is_no_default(place):
    certain = TransitionMatrix([[1.0, 0.0], [0.0, 1.0]])
    with opened(place, adversary=Adversary(certain, certain)) as stream:
        with pytest.raises(BudgetError, match="give epsilon="):
            stream.release([70, 30], time=0)
        stream.release([70, 30], time=0, epsilon=0.4)
        stream.release([70, 30], time=1, epsilon=0.6 * (1 - 1e-9))
        with pytest.raises(LeakageBudgetError):
            stream.release([70, 30], time=2, epsilon=0.01)
