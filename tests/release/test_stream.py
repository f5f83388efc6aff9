"""The continual release: one step once, whatever crashes, races or is asked again."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
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
    LedgerError,
    LedgerMismatchError,
    TemporalAccountant,
    TransitionMatrix,
    plan_budget,
    temporal_leakage,
)
from temporaldp.accounting import charging

MATRIX = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
ADVERSARY = Adversary(MATRIX, MATRIX)
MECHANISM = DiscreteLaplaceHistogram(n_states=2)
CERTAIN = TransitionMatrix(np.eye(2))


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
    assert len(set(lengths)) > n_kills // 10, "most processes did nothing: the test shows little"
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
    "mechanism": {"description": "another mechanism"},
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
    with ContinualRelease(MECHANISM, ledger=place, plan=plan_budget(ADVERSARY, alpha=1.0, horizon=4)) as stream:
        stream.release([70, 30], time=0)
    with pytest.raises(LedgerMismatchError, match="plan: "):
        ContinualRelease(MECHANISM, ledger=place, plan=plan_budget(ADVERSARY, alpha=1.0, horizon=5))


def test_the_order_and_names_of_users_do_not_matter(place):
    other = Adversary(TransitionMatrix([[0.6, 0.4], [0.1, 0.9]]))
    with opened(place, adversary={"ann": ADVERSARY, "bob": other}) as stream:
        stream.release([70, 30], time=0)
    opened(place, adversary={"x": other, "y": ADVERSARY}).close()


def test_a_ledger_without_steps_becomes_another_releases(place):
    with opened(place, horizon=3) as first:
        with opened(place, alpha=2.0) as second:
            second.release([70, 30], time=0)
            assert second.ledger.configuration["alpha"] == 2.0
        with pytest.raises(LedgerError, match="was changed while it was open"):
            first.release([70, 30], time=0)
    with pytest.raises(LedgerMismatchError):
        opened(place, horizon=3)


@pytest.mark.parametrize(
    ("before", "late"),
    [
        (["2024-01-01T10:00"], "2024-01-01T09:00"),
        (["2024-01-01", "2024-01-02"], "2024-01-01T12:00"),
        ([1, 2], 1.5),
        (["s05", "s06"], "s4"),
        (["9"], 8),
        (["2021-01-05", "2021-01-06"], "foo"),
        ([1, 2], "2024-01-01"),
        (["monday"], 3),
    ],
)
def test_steps_that_are_late_or_have_no_place_are_refused(before, late, place):
    with opened(place) as stream:
        for time in before:
            stream.release([70, 30], time=time)
        with pytest.raises(InputError, match=r"comes before|nothing says which comes first"):
            stream.release([70, 30], time=late)
        assert len(stream) == len(stream.accountant) == len(before)


@pytest.mark.parametrize(
    ("step", "times", "refused"),
    [
        ("86400 seconds", ["2021-01-01"], "2021-01-01T01:00"),
        ("1 months", ["2021-01-15"], "2021-01-30"),
        ("2 months", ["2021-01"], "2021-02"),
        ("5", [0], 4),
        ("86400 seconds", ["2023-03-26T00:00+01:00"], "2023-03-26T23:00+02:00"),
        ("3600 seconds", ["2023-03-26T00:55+01:00"], "2023-03-26T02:00+02:00"),
        ("3600 seconds", ["2023-03-26T00:00+00:00"], "2023-03-26T08:05+08:00"),
        ("0.1", ["0.1", "0.2"], "0.25"),
    ],
)
def test_steps_closer_than_the_correlation_says_are_refused(step, times, refused, place):
    with opened(place, step=step) as stream:
        for time in times:
            stream.release([70, 30], time=time)
        with pytest.raises(InputError, match=r"only .* after"):
            stream.release([70, 30], time=refused)


@pytest.mark.parametrize(
    ("step", "times"),
    [
        ("1 months", ["2021-01", "2021-02", "2021-03", "2021-05"]),
        (None, ["2021-01-01", "2021-02-01", "2021-03-01"]),
        ("1 months", ["2023-01-15", "2023-02-15", "2023-03-15", "2023-05-15"]),
        ("1 months", ["2023-9", "2023-10", "2023-11"]),
        ("12 months", ["2023-06-15", "2024-06-15", "2025-06-15"]),
        (
            "86400 seconds",
            ["2023-03-26T00:00+01:00", "2023-03-27T00:00+02:00", "2023-10-29T00:00+02:00", "2023-10-30T00:00+01:00"],
        ),
        ("300 seconds", ["2023-03-26T01:55+01:00", "2023-03-26T03:00+02:00", "2023-03-26T03:05+02:00"]),
        ("300 seconds", ["2023-01-01T00:00:00", "2023-01-01T00:05:01", "2023-01-01T00:10:00"]),
        (None, ["1", "3", "4", "2024-01-05"][:3]),
        (None, ["s" + "1" + "0" * 35, "s" + "1" + "0" * 34 + "1"]),
        (None, ["-2", "-1", "0", "0.5"]),
        ("300 seconds", ["2021-01-01T00:00", "2021-01-01T00:05", "2021-01-01T01:00"]),
        (None, ["monday", "tuesday", "monday evening"]),
        ("1", ["s08", "s09", "s10"]),
        (None, ["1609459200.123456789", "1609459201.123456790"]),
    ],
)
def test_steps_a_step_or_more_apart_are_released(step, times, place):
    with opened(place, step=step) as stream:
        for time in times:
            stream.release([70, 30], time=time)
        assert len(stream) == len(times)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("7", 7.0),
        ("s05", "s5"),
        ("2024-01-01", "2024-01-01T00:00Z"),
        ("2024-01", date(2024, 1, 1)),
        (np.int64(3), "03"),
    ],
)
def test_a_time_is_known_again_in_another_spelling(one, other, place):
    with opened(place) as stream:
        first = stream.release([70, 30], time=one)
        assert np.array_equal(stream.release([1, 2], time=other), first)
        assert len(stream) == 1


@pytest.mark.parametrize("time", [None, True, float("nan"), float("inf"), "", "  ", b"x", ["a"], "\ud800", "a\0b"])
def test_what_is_no_time_is_refused(time, place):
    with opened(place) as stream, pytest.raises(InputError, match="expected time to be"):
        stream.release([70, 30], time=time)


def test_decimals_that_may_be_one_time_or_two_are_refused(place):
    with opened(place) as stream:
        stream.release([70, 30], time="2024.1")
        with pytest.raises(InputError, match=r"equals .* as a number"):
            stream.release([70, 30], time="2024.10")


def test_a_step_without_a_budget_is_charged_around_as_a_step(place):
    identity, mixing = CERTAIN, TransitionMatrix([[0.5, 0.5], [0.5, 0.5]])
    varying = Adversary([mixing, identity, mixing], [mixing, identity, mixing])
    plan = plan_budget(Adversary(), alpha=1.0, horizon=3, weights=[0, 1, 1])
    with TemporalAccountant(varying) as odometer, ContinualRelease(MECHANISM, ledger=place, plan=plan) as stream:
        for time in range(3):
            stream.release([70, 30], time=time)
        stream_total = odometer.total()
        assert odometer.ledger.tolist() == stream.ledger.epsilons.tolist()
    assert stream_total == pytest.approx(2.0, rel=1e-6)


def test_a_horizon_with_a_reserve_spends_the_reserve(place):
    with opened(place, horizon=3, reserve=0.1) as stream:
        stream.skip(time=0)
        for time in (1, 2):
            stream.release([70, 30], time=time)
        assert stream.ledger.epsilons[1] == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize("epsilon", [-1.0, float("nan"), "much", float("inf")])
def test_what_is_no_budget_is_refused(epsilon, place):
    with ContinualRelease(MECHANISM, ledger=place, plan=plan_budget(ADVERSARY, alpha=1.0)) as stream:
        with pytest.raises(BudgetError):
            stream.release([70, 30], time=0, epsilon=epsilon)
        assert len(stream) == 0


def test_interrupts_at_any_line_leave_accountant_and_ledger_agreeing(tmp_path):
    """A KeyboardInterrupt raised at each line of our own code in turn, while a step is released."""
    files = {"stream.py", "ledger.py", "file_store.py", "calendar.py", "accountant.py", "charging.py"}
    place, outer = tmp_path / "release.db", TemporalAccountant(ADVERSARY)
    state = {"left": -1}

    def tracer(frame, event, _):
        if frame.f_code.co_filename.rsplit("/", 1)[-1] not in files:
            return None
        if event == "line":
            state["left"] -= 1
            if state["left"] == 0:
                raise KeyboardInterrupt
        return tracer

    with outer, opened(place) as stream:
        stream.release([70, 30], time=0)
        time, interrupted, at = 1, 0, 1
        while True:
            state["left"] = at
            sys.settrace(tracer)
            try:
                stream.release([70, 30], time=time)
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                sys.settrace(None)
            if state["left"] > 0:  # the whole step has fewer lines
                break
            before = len(outer)
            output = stream.release([70, 30], time=time)  # goes on after every interrupt
            assert np.array_equal(output, stream.release([70, 30], time=time))
            assert len(outer) >= before
            assert stream.accountant.ledger.tolist() == stream.ledger.epsilons.tolist()
            assert len(stream) == time + 1
            time, at = time + 1, at + 1
        assert interrupted > 60
        assert len(outer) >= len(stream)
    assert charging.charged() == ()
    with Ledger(place) as ledger:
        assert len(ledger) == len(stream)
        require_level_held(ledger.epsilons, ADVERSARY, 1.0)


def test_a_published_step_cannot_be_passed_over(place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        with pytest.raises(InputError, match="was published already"):
            stream.skip(time=0)


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


def test_new_steps_are_charged_to_the_blocks_around(place):
    with TemporalAccountant(ADVERSARY) as odometer, opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.release([70, 30], time=0)
        assert odometer.ledger.tolist() == stream.ledger.epsilons.tolist()
        with TemporalAccountant(ADVERSARY, alpha=0.01, reserve=0.0), pytest.raises(LeakageBudgetError):
            stream.release([70, 30], time=1)
        assert len(odometer) == len(stream) == 1


def test_threads_may_share_a_release(place):
    with opened(place) as stream, ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda k: stream.release([70, 30], time=f"word{'abcdefgh'[k % 8]}"), range(64)))
        assert len(stream) == len(stream.accountant) == 8
        stored = stream.ledger.outputs
        known = [stream.row(f"word{'abcdefgh'[k % 8]}").step for k in range(64)]
    assert all(np.array_equal(output, stored[step]) for output, step in zip(outputs, known, strict=True))
    with Ledger(place) as ledger:
        ledger.verify()


def test_a_mechanism_must_not_release_inside(place):
    def greedy(snapshot, epsilon):
        return stream.release(snapshot, time=99)

    with (
        opened(place, mechanism=greedy, description="greedy") as stream,
        pytest.raises(InputError, match="while it draws"),
    ):
        stream.release([70, 30], time=0)


@pytest.mark.parametrize(
    "arguments",
    [
        {"mechanism": None},
        {"mechanism": DiscreteLaplaceHistogram(n_states=3)},
        {"accountant": ADVERSARY},
        {"plan": 0.1},
    ],
)
def test_what_fits_no_release_is_refused_and_makes_no_file(arguments, tmp_path):
    given = {"mechanism": MECHANISM, "accountant": TemporalAccountant(ADVERSARY, alpha=1.0), **arguments}
    with pytest.raises(InputError, match=r"expected a|states"):
        ContinualRelease(given.pop("mechanism"), ledger=tmp_path / "release.db", **given)
    assert not list(tmp_path.iterdir())


def test_opening_the_ledger_twice_in_a_process_keeps_its_locks(tmp_path):
    place = tmp_path / "release.db"
    found = worker("beside", place, tmp_path, 0)
    assert found["log_stays"], "the other process thought that nobody else had the ledger open"
    assert found["told"] == []
    with Ledger(place) as ledger:
        assert [output.tolist() for output in ledger.outputs] == found["outputs"]


def test_locks_that_somebody_dropped_are_noticed(tmp_path):
    """Reading the file in the same process (to copy it, say) drops SQLite's locks; another process then removes the log."""
    place = tmp_path / "release.db"
    found = worker("beside", place, tmp_path, 1)
    assert not found["log_stays"]
    assert "removed, moved or replaced" in found["told"][0]
    with Ledger(place) as ledger:
        assert [output.tolist() for output in ledger.outputs] == found["outputs"]


def test_processes_forked_while_the_ledger_is_open_agree(tmp_path):
    place = tmp_path / "release.db"
    assert worker("forks", place, tmp_path)["codes"] == [0, 0]
    published = noted(tmp_path / "published0") + noted(tmp_path / "published1") + noted(tmp_path / "published")
    with Ledger(place) as ledger:
        stored = [output.tolist() for output in ledger.outputs]
        assert len(stored) == 41
    assert all(one["output"] == stored[one["step"]] for one in published)


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
