"""Crashes, races, forks, interrupts: a step is drawn once, and spent if and only if it is stored."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kinds_of_releases
import workers
from streams import ADVERSARY, noted, opened, require_level_held, worker
from temporaldp import (
    DiscreteLaplaceHistogram,
    Ledger,
    TemporalAccountant,
    temporal_leakage,
)
from temporaldp.core.accounting import accounting_blocks
from temporaldp.publish.release.filtering import stored_estimate
from temporaldp.publish.release.outputs import from_text


def database(store, name, tmp_path, request):
    """A place for a ledger, in a store."""
    if store == "sqlite":
        return tmp_path / "release.db"
    import postgres

    return postgres.create_database(request.getfixturevalue("postgres_server"), name)


QUICK, LONG, ON_ONE_LEDGER = 8, 500, 50
"""Processes that are killed in the usual run and in the long one; and on one ledger, where each of them counts all steps."""

KILLS = [
    ("sqlite", QUICK),
    ("postgresql", QUICK),
    pytest.param("sqlite", LONG, marks=pytest.mark.slow),
    pytest.param("postgresql", LONG, marks=pytest.mark.slow),
]
RACES = [
    ("sqlite", 10),
    ("postgresql", 10),
    pytest.param("sqlite", 1000, marks=pytest.mark.slow),
    pytest.param("postgresql", 1000, marks=pytest.mark.slow),
]


@pytest.mark.long
@pytest.mark.parametrize(("store", "n_kills"), KILLS)
def test_kills_at_random_moments_draw_and_spend_nothing_twice(store, n_kills, tmp_path, request):
    """With the filter of exact accounting."""
    n_lengths = n_lost = n_steps = n_published = 0
    for number in range(max(n_kills // ON_ONE_LEDGER, 1)):
        folder = tmp_path / str(number)
        folder.mkdir()
        place = database(store, f"kills_{n_kills}_{number}", folder, request)
        lengths = worker("kills", place, folder, min(n_kills, ON_ONE_LEDGER), number)["lengths"]
        assert lengths == sorted(lengths), "a step was lost"
        stored, published, drawn = require_each_step_drawn_and_spent_once(place, folder)
        n_lengths += len(set(lengths)) - 1
        n_steps, n_published, n_lost = n_steps + stored, n_published + published, n_lost + drawn - stored
    print(f"{store}: {n_kills} kills, {n_steps} steps, {n_published} outputs handed out, {n_lost} draws lost by kills")
    many = n_kills == LONG  # few kills on a busy machine may meet no process between its draw and its commit
    assert n_lengths > (n_kills // 10 if many else 1), "most processes did nothing: the test shows little"
    assert not many or n_published > n_kills
    assert not many or n_lost > 0, "no process was killed between its draw and its commit"


def require_each_step_drawn_and_spent_once(place, folder):
    """How many steps a ledger has, how many outputs were handed out, and how many were drawn."""
    with Ledger(place) as ledger:
        ledger.verify()
        assert ledger.configuration["accounting"] == {"method": "exact"}
        stored = [output.tolist() for output in ledger.outputs]
        spent = DiscreteLaplaceHistogram(n_states=3).epsilon_spent(workers.accountant().reserve)
        assert ledger.epsilons.tolist() == [spent] * len(ledger), "a budget was lost or spent twice"
        require_told_and_held(ledger)
    published = noted(folder / "published")
    assert all(one["output"] == stored[one["step"]] for one in published), "two outputs for one step"
    drawn = [one["draw"] for one in noted(folder / "drawn")]
    assert len(drawn) >= len(stored) and all(output in drawn for output in stored)
    return len(stored), len(published), len(drawn)


@pytest.mark.long
@pytest.mark.parametrize("n_kills", [6, pytest.param(125, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", sorted(kinds_of_releases.KINDS))
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_kills_change_no_output_of_any_kind_of_release(store, kind, n_kills, tmp_path, request):
    """Accounts of several tables, smoothing, renewal and adoption: four times 125 kills a database in the long run."""
    place = database(store, f"{kind}_{n_kills}", tmp_path, request)
    worker(kind, place, tmp_path, n_kills, 5, script="kinds_of_releases.py")
    assert not (tmp_path / "errors").exists(), (tmp_path / "errors").read_text()
    answers = {}
    for one in noted(tmp_path / "published"):
        assert answers.setdefault((one["name"], one["step"]), one["output"]) == one["output"], (
            "two answers for one step"
        )
    with Ledger(place) as ledger:
        ledger.verify()
        stored = stored_by(kind, ledger)
        assert all(stored[key] == answer for key, answer in answers.items()), "another answer is stored"
        assert len(stored) <= len(answers) + 2, "steps were stored that nobody was given, and not by kills"
        assert len(answers) >= 2, "most processes did nothing: the test shows little"
        promise = RENEWED_PROMISE if kind == "renewed" else 1.0
        assert ledger[-1].leakage <= promise
        kinds = [event.kind for event in ledger.events]
        assert kinds.count("renewal") == (kind == "renewed")
        # Six processes on a busy machine may all be killed before they adopt.
        assert (kinds.count("adopt") > 0) == (kind == "adopting") or (kind == "adopting" and n_kills == 6)


RENEWED_PROMISE = 1.5
"""Nats: more than what the ledger's plan of seven steps promises for any number of epochs."""


def stored_by(kind, ledger):
    """What the ledger has for each table and step, as the processes note it."""
    if kind == "shared":
        tables = [event for event in ledger.events if event.kind == "table"]
        found = [((event.by, event.details["step"]), from_text(event.details["output"]).tolist()) for event in tables]
        assert len(dict(found)) == len(found), "a table was drawn twice at one step"
        return dict(found)
    if kind == "smoothed":
        estimates = [stored_estimate(row) for row in ledger[:]]
        filtered = [[one.counts.tolist(), one.lower.tolist()] for one in estimates]
        return {("", k): [ledger.outputs[k].tolist(), *filtered[k]] for k in range(len(ledger))}
    return {("", k): output.tolist() for k, output in enumerate(ledger.outputs)}


def require_told_and_held(ledger):
    """No step leaks more than alpha, and each row tells what had leaked by then: by the exact leakage, counted anew."""
    if not len(ledger):
        return
    require_level_held(ledger.epsilons, workers.ADVERSARY, workers.ALPHA)
    for step in {0, len(ledger) // 2, len(ledger) - 1}:
        exact = temporal_leakage(workers.ADVERSARY, ledger.epsilons[: step + 1]).worst
        assert ledger[step].leakage == pytest.approx(exact, rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("store", "n_kills"), KILLS)
def test_kills_under_a_noise_plan_draw_each_planned_noise_once(store, n_kills, tmp_path, request):
    place = database(store, f"noise_kills_{n_kills}", tmp_path, request)
    lengths = worker("kills", place, tmp_path, n_kills, 11, 1)["lengths"]
    assert lengths == sorted(lengths), "a step was lost"
    many = n_kills == LONG  # few kills on a busy machine may meet no process between its draw and its commit
    assert len(set(lengths)) > (n_kills // 25 if many else 1), "most processes did nothing: the test shows little"
    published, drawn = noted(tmp_path / "published"), noted(tmp_path / "drawn")
    scales = np.linspace(20.0, 40.0, workers.STEPS_PLANNED).tolist()  # the plan's, by its definition
    with Ledger(place) as ledger:
        ledger.verify()
        stored = [output.tolist() for output in ledger.outputs]
        assert [row.parameter for row in ledger[:]] == scales[: len(ledger)]
        assert (ledger.configuration["noise"], ledger.configuration["delta"]) == ("gaussian", workers.DELTA)
    assert published and all(one["output"] == stored[one["step"]] for one in published), "two outputs for one step"
    assert not many or len(drawn) > len(stored), "no process was killed between its draw and its commit"
    called = {(tuple(one["draw"]), one["parameter"]) for one in drawn}
    own = [(tuple(output), scale) for output, scale in zip(stored, scales, strict=False)]
    assert all(one in called for one in own), "a step has another one's noise"


@pytest.mark.long
@pytest.mark.parametrize(("store", "n_steps"), RACES)
def test_racing_writers_under_a_noise_plan_draw_each_step_once(store, n_steps, tmp_path, request):
    place = database(store, f"noise_race_{n_steps}", tmp_path, request)
    assert worker("race", place, tmp_path, n_steps, 1)["codes"] == [0, 0]
    one, two = (noted(tmp_path / f"published{number}") for number in range(2))
    assert one == two
    scales = np.linspace(20.0, 40.0, workers.STEPS_PLANNED)[:n_steps].tolist()
    assert [draw["parameter"] for draw in noted(tmp_path / "drawn")] == scales
    with Ledger(place) as ledger:
        assert [output.tolist() for output in ledger.outputs] == [step["output"] for step in one]


@pytest.mark.slow
@pytest.mark.parametrize(("store", "n_steps"), RACES)
def test_racing_writers_under_exact_accounting_draw_each_step_once(store, n_steps, tmp_path, request):
    place = database(store, f"race_{n_steps}", tmp_path, request)
    assert worker("race", place, tmp_path, n_steps)["codes"] == [0, 0]
    one, two = (noted(tmp_path / f"published{number}") for number in range(2))
    assert one == two
    assert require_each_step_drawn_and_spent_once(place, joined(tmp_path)) == (n_steps, 2 * n_steps, n_steps)
    with Ledger(place) as ledger:
        assert [output.tolist() for output in ledger.outputs] == [step["output"] for step in one]


def joined(folder):
    """A folder of two racing processes, with what both of them handed out in one file."""
    both = [(folder / f"published{number}").read_text() for number in range(2)]
    (folder / "published").write_text("".join(both))
    return folder


@pytest.mark.long
@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_interrupts_at_any_line_keep_accountant_and_ledger_consistent(stride, tmp_path):
    """A KeyboardInterrupt raised at each line of our own code in turn, or at every fourth, while a step is released."""
    files = {
        "stream.py",
        "step.py",
        "database.py",
        "tables.py",
        "key_and_marks.py",
        "ledger.py",
        "file_store.py",
        "calendar.py",
        "chain.py",
        "atomic.py",
        "resuming.py",
        "accountant.py",
        "accounting_blocks.py",
        "guards.py",
    }
    place, outer = tmp_path / "release.db", TemporalAccountant(ADVERSARY)
    state = {"left": -1}

    def tracer(frame, event, _):
        folder, _, name = frame.f_code.co_filename.rpartition("/")
        if name not in files or folder.endswith("kernels"):  # numbers alone, which keep nothing
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
            assert stream.accountant.spent.tolist() == stream.ledger.epsilons.tolist()
            assert len(stream) == time + 1
            time, at = time + 1, at + stride
        assert interrupted > 60 / stride
        assert len(outer) >= len(stream)
    assert accounting_blocks.charged() == ()
    with Ledger(place) as ledger:
        assert len(ledger) == len(stream)
        require_level_held(ledger.epsilons, ADVERSARY, 1.0)


def test_threads_may_share_a_release(place):
    with opened(place) as stream, ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda k: stream.release([70, 30], time=f"word{'abcdefgh'[k % 8]}"), range(64)))
        assert len(stream) == len(stream.accountant) == 8
        stored = stream.ledger.outputs
        known = [stream.row(f"word{'abcdefgh'[k % 8]}").step for k in range(64)]
    assert all(np.array_equal(output, stored[step]) for output, step in zip(outputs, known, strict=True))
    with Ledger(place) as ledger:
        ledger.verify()


@pytest.mark.long
def test_opening_the_ledger_twice_in_a_process_keeps_its_locks(tmp_path):
    place = tmp_path / "release.db"
    found = worker("beside", place, tmp_path, 0)
    assert found["log_stays"], "the other process thought that nobody else had the ledger open"
    assert found["told"] == []
    with Ledger(place) as ledger:
        assert [output.tolist() for output in ledger.outputs] == found["outputs"]


@pytest.mark.slow
def test_dropped_locks_are_detected(tmp_path):
    """Reading the file in the same process (to copy it, say) drops SQLite's locks; another process then removes the log."""
    place = tmp_path / "release.db"
    found = worker("beside", place, tmp_path, 1)
    assert not found["log_stays"]
    assert "removed, moved or replaced" in found["told"][0]
    with Ledger(place) as ledger:
        assert [output.tolist() for output in ledger.outputs] == found["outputs"]


@pytest.mark.long
def test_processes_forked_while_the_ledger_is_open_agree(tmp_path):
    place = tmp_path / "release.db"
    assert worker("forks", place, tmp_path)["codes"] == [0, 0]
    published = noted(tmp_path / "published0") + noted(tmp_path / "published1") + noted(tmp_path / "published")
    with Ledger(place) as ledger:
        stored = [output.tolist() for output in ledger.outputs]
        assert len(stored) == 16
    assert all(one["output"] == stored[one["step"]] for one in published)
