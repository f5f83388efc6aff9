"""Several jobs about the same people on one account: charged once a step, drawn once a table, never more than the level."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow.parquet as pq
import pytest

import streams
from temporaldp import (
    Adversary,
    DiscreteLaplaceHistogram,
    InputError,
    Ledger,
    Periodic,
    TemporalAccountant,
    TransitionMatrix,
    read_traces,
    release_histograms,
    temporal_leakage,
)
from temporaldp.base.errors import InputDiffersWarning, LateDataError, LedgerMismatchError, SpentError, StateError
from temporaldp.core.correlation import independent_adversary
from temporaldp.publish.release import SharedRelease, export_ledger

STAGES = np.array([[0.8, 0.2], [0.3, 0.7]])
PLACES = np.array([[0.6, 0.4], [0.1, 0.9]])
JOINT = independent_adversary(*(Adversary(TransitionMatrix(rows), TransitionMatrix(rows)) for rows in (STAGES, PLACES)))
SHARES = {"stages": 0.7, "places": 0.3}


DRAWN = []


class Counted(DiscreteLaplaceHistogram):
    """Counts its draws, and remembers the budgets."""

    def __call__(self, snapshot, epsilon):
        DRAWN.append((list(snapshot), epsilon))
        return super().__call__(snapshot, epsilon)


@pytest.fixture(autouse=True)
def nothing_drawn():
    DRAWN.clear()


def opened(place, table, *, shares=SHARES, mechanism=None, alpha=1.0):
    accountant = TemporalAccountant(JOINT, alpha=alpha)
    return SharedRelease(table, mechanism or Counted(2), shares=shares, ledger=place, accountant=accountant)


def test_two_jobs_share_an_account(place, tmp_path):
    """Also if one of them is late, is killed before it draws, or is repeated."""
    with opened(place, "stages") as stages:
        first = [stages.release([70, 30], time=hour).tolist() for hour in range(4)]
    with opened(place, "places") as places, opened(place, "stages") as stages:
        second = [places.release([10, 90], time=hour).tolist() for hour in (0, 2, 4)]
        third = stages.release([60, 40], time=4).tolist()
        assert [stages.release([70, 30], time=hour).tolist() for hour in range(4)] == first
        assert [places.release([10, 90], time=hour).tolist() for hour in (0, 2, 4)] == second
        assert [places.published(hour) is not None for hour in (1, 2, 9)] == [False, True, False]
        assert places.release([10, 90], time=1).tolist() is not None  # later than the other table's next steps
        assert len(DRAWN) == 9
        with pytest.raises(LateDataError):
            places.release([10, 90], time=-1)
    with Ledger(place) as ledger:
        ledger.verify()
        epsilons, told = ledger.epsilons, ledger[-1].leakage
        export_ledger(ledger, tmp_path / "steps.parquet")
    assert len(epsilons) == 5
    spent = {"stages": np.zeros(5), "places": np.zeros(5)}
    for snapshot, epsilon in DRAWN:
        name = "stages" if snapshot[0] > 50 else "places"
        spent[name][0] = max(spent[name][0], epsilon)
    assert spent["stages"][0] + spent["places"][0] <= epsilons[0] * (1 + 1e-15)
    assert temporal_leakage(JOINT, epsilons).worst <= 1.0
    assert told == pytest.approx(temporal_leakage(JOINT, epsilons).worst, rel=1e-10)
    exported = pq.read_table(tmp_path / "steps.parquet").to_pydict()
    assert [json.loads(text) for text in exported["output stages"]] == [*first, third]
    assert exported["output places"][3] is None and json.loads(exported["output places"][4]) == second[2]


@pytest.mark.long
def test_joint_leakage_of_both_tables_never_exceeds_the_account(tmp_path):
    """Independent values: a person's leakage about both is the sum of each table's own, which the account is never below."""
    with opened(tmp_path / "account.db", "stages") as stages, opened(tmp_path / "account.db", "places") as places:
        for hour in range(8):
            stages.release([70, 30], time=hour)
            places.release([10, 90], time=hour)
        counted = stages.ledger[-1].leakage
    each = {"stages": [], "places": []}
    for snapshot, epsilon in DRAWN:
        each["stages" if snapshot[0] > 50 else "places"].append(epsilon)
    alone = [
        temporal_leakage(Adversary(TransitionMatrix(rows), TransitionMatrix(rows)), each[name]).temporal
        for name, rows in (("stages", STAGES), ("places", PLACES))
    ]
    assert (alone[0] + alone[1]).max() <= counted <= 1.0


def test_the_job_that_charges_a_step_chooses_its_budget_and_whether_it_is_the_last(tmp_path):
    with opened(tmp_path / "account.db", "stages") as stages, opened(tmp_path / "account.db", "places") as places:
        stages.release([70, 30], time=0, epsilon=0.01, last=True)
        places.release([10, 90], time=0, epsilon=0.5)  # too late to choose: the step is charged
        with pytest.raises(SpentError):
            places.release([10, 90], time=1)
        assert stages.ledger.epsilons.tolist() == pytest.approx([0.01])
        spent = stages.row(0).epsilon, places.row(0).epsilon
        assert spent == pytest.approx((0.007, 0.003)) and sum(spent) <= stages.ledger.epsilons[0]
        with pytest.raises(InputError):
            places.release([10, 90], time=2, epsilon=-1.0)


def test_threads_of_one_table_draw_every_step_once(tmp_path):
    before = sys.getswitchinterval()
    with opened(tmp_path / "account.db", "stages") as stages, ThreadPoolExecutor(6) as pool:
        sys.setswitchinterval(1e-6)
        try:
            found = list(pool.map(lambda hour: stages.release([70, 30], time=hour // 6).tolist(), range(48)))
        finally:
            sys.setswitchinterval(before)
        assert all(found[k] == found[k - k % 6] for k in range(48))
        assert sum(event.kind == "table" for event in stages.ledger.events) == len(DRAWN) == 8


def test_table_is_not_released_twice_during_a_draw(tmp_path):
    def draw(snapshot, epsilon):
        return account[0].release(snapshot, time=9)

    account = [opened(tmp_path / "account.db", "stages", mechanism=draw)]
    with account[0] as stages, pytest.raises(InputError, match="while it draws"):
        stages.release([70, 30], time=1)


def test_changed_data_at_a_published_time_warn(tmp_path):
    with opened(tmp_path / "account.db", "stages") as stages:
        first = stages.release([70, 30], time=0).tolist()
        with pytest.warns(InputDiffersWarning):
            assert stages.release([60, 40], time=0).tolist() == first


def test_step_that_another_table_may_publish_is_not_skipped(tmp_path):
    clock = Periodic((TransitionMatrix(STAGES), TransitionMatrix(PLACES)))
    accountant = TemporalAccountant(Adversary(clock, clock), alpha=1.0, horizon=6)
    with SharedRelease(
        "stages", Counted(2), shares=SHARES, ledger=tmp_path / "a.db", accountant=accountant, step="1"
    ) as stages:
        rows = [f"{user},{hour},{'ab'[user % 2]}" for user in range(4) for hour in (0, 1, 3)]
        (tmp_path / "gap.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
        with pytest.raises(InputError, match="Pass over those between first"):
            release_histograms(read_traces(tmp_path / "gap.csv"), stages)
        assert len(stages) == 0


def test_an_accountant_about_one_of_the_tables_is_refused(tmp_path):
    stages = TransitionMatrix([[0.6, 0.4], [0.4, 0.6]], states=["awake", "asleep"])
    states = {"stages": ["awake", "asleep"], "places": ["home", "away"]}
    accountant = TemporalAccountant(Adversary(stages, stages), alpha=1.0)
    with pytest.raises(InputError, match=r"the states of all tables together \(at most 2 x 2\).*: awake, asleep\. "):
        SharedRelease(
            "stages",
            DiscreteLaplaceHistogram(2),
            shares=SHARES,
            states=states,
            ledger=tmp_path / "a.db",
            accountant=accountant,
        )


def test_a_joint_accountant_may_lack_combinations_that_do_not_occur(tmp_path):
    three = TransitionMatrix(np.full((3, 3), 1.0 / 3.0), states=["awake, home", "awake, away", "asleep, home"])
    states = {"stages": ["awake", "asleep"], "places": ["home", "away"]}
    with SharedRelease(
        "stages",
        DiscreteLaplaceHistogram(2),
        shares=SHARES,
        states=states,
        ledger=tmp_path / "a.db",
        accountant=TemporalAccountant(Adversary(three, three), alpha=1.0),
    ) as stages:
        assert len(stages.release([70, 30], time=0)) == 2


def test_inconsistent_arguments_are_refused(tmp_path):
    place = tmp_path / "account.db"
    with opened(place, "stages") as stages:
        stages.release([70, 30], time=0)
    with pytest.raises(LedgerMismatchError):
        opened(place, "stages", shares={"stages": 0.9, "places": 0.1})
    with pytest.raises(LedgerMismatchError, match="table 'stages'"):
        opened(place, "stages", mechanism=DiscreteLaplaceHistogram(2))
    with pytest.raises(LedgerMismatchError):
        opened(place, "places", alpha=2.0)
    for table, shares in (("ages", SHARES), ("stages", {"stages": 0.8, "places": 0.3}), ("stages", {"stages": 0.0})):
        with pytest.raises(InputError):
            opened(tmp_path / "other.db", table, shares=shares)


@pytest.mark.parametrize("odd", ["a\nb", "a\x1b[2J", "a\u2028b", "a\u202eb"])
def test_names_of_tables_states_and_times_with_control_characters_are_refused(odd, tmp_path):
    place = tmp_path / "release.db"
    with pytest.raises(StateError, match="control characters"):
        opened(place, "stages", shares={"stages": 0.5, odd: 0.5})
    with pytest.raises(StateError, match="control characters"):
        streams.opened(place, states=("x", odd))
    assert not place.exists()
    with streams.opened(place) as stream, pytest.raises(StateError, match="control characters"):
        stream.release([70, 30], time=odd)
