"""The ledger: what it keeps, whom it trusts, and what it says when the disk, the file or somebody else interferes."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import sqlite3
import stat
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from data_sets import sleep_sample
from streams import in_a_child
from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    Ledger,
    LedgerError,
    TemporalAccountant,
    TransitionMatrix,
    learn_correlation,
)
from temporaldp.apps.serve.definition import Definition
from temporaldp.apps.serve.service import Service
from temporaldp.publish.release import SharedRelease, adopt_correlation
from temporaldp.publish.release.chain import LEDGER_FORMAT
from temporaldp.publish.release.database import store_at
from temporaldp.publish.release.file_store import FileDatabase
from temporaldp.publish.release.key_and_marks import mark_file
from temporaldp.publish.release.outputs import as_text, from_text

pytestmark = pytest.mark.filterwarnings("ignore:.*without the key of this machine")  # of those who forge

MATRIX = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
MECHANISM = DiscreteLaplaceHistogram(n_states=2)
NEWER = Adversary(*[TransitionMatrix([[0.7, 0.3], [0.3, 0.7]])] * 2)


def opened(place, mechanism=MECHANISM, **settings):
    accountant = TemporalAccountant(Adversary(MATRIX, MATRIX), alpha=1.0)
    return ContinualRelease(mechanism, ledger=place, accountant=accountant, description="histogram", **settings)


@pytest.fixture
def filled(place):
    """A ledger of ten steps."""
    with opened(place) as stream:
        for time in range(10):
            stream.release([70, 30], time=time)
    return place


def execute(place, statement):
    """What somebody with access to the database could do."""
    url = place.replace("postgresql://", "postgresql+psycopg://") if "://" in place else f"sqlite:///{place}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


TAMPERING = {
    "UPDATE temporaldp_steps SET epsilon = 0.01 WHERE step = 4": "step 4 .* was changed",
    "UPDATE temporaldp_steps SET output = '{\"value\": 1}' WHERE step = 0": "step 0 .* was changed",
    "UPDATE temporaldp_steps SET leakage = NULL WHERE step = 9": "step 9 .* was changed",
    "UPDATE temporaldp_steps SET time = 'x' WHERE step = 3": "step 3 .* was changed",
    "UPDATE temporaldp_steps SET hash = 'ab' WHERE step = 9": "step 9 .* was changed",
    "DELETE FROM temporaldp_steps WHERE step = 5": "step 5 is missing",
    "DELETE FROM temporaldp_steps WHERE step = 0": "step 0 is missing",
    "DELETE FROM temporaldp_steps WHERE step = 9": "10 steps, but has 9",
    "DELETE FROM temporaldp_steps": "10 steps, but has 0",
    "UPDATE temporaldp_releases SET n_steps = 9": "9 steps, but has 10",
    "UPDATE temporaldp_releases SET head = 'ab'": "head was not written with the key",
    "UPDATE temporaldp_releases SET head = 'ab', mac = NULL": "head is not the hash of its last step",
    "UPDATE temporaldp_releases SET configuration = replace(configuration, '\"alpha\":1.0', '\"alpha\":9.0')": "step 0",
    "UPDATE temporaldp_releases SET configuration = '{}'": "row with the configuration was changed",
    "UPDATE temporaldp_steps SET step = -1 WHERE step = 9": "step 0 is missing: the next row is step -1",
    "DELETE FROM temporaldp_releases": "was deleted",
    "DROP TABLE temporaldp_steps": "cannot use the ledger",
}


@pytest.mark.parametrize("statement", TAMPERING)
def test_tampering_is_detected_when_the_ledger_is_opened(statement, filled):
    execute(filled, statement)
    with pytest.raises(LedgerError, match=TAMPERING[statement]):
        Ledger(filled)
    with pytest.raises(LedgerError):
        opened(filled)


@pytest.mark.parametrize("value", ["epsilon = 9e999", "output = x'00ff'", "time = 7"])
def test_impossible_values_are_detected(value, tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    execute(str(place), f"UPDATE temporaldp_steps SET {value}")
    with pytest.raises(LedgerError, match=r"step 0 .* was changed"):
        Ledger(place)


def test_tampering_is_detected_by_an_open_release(filled):
    with opened(filled) as stream:
        execute(filled, "DELETE FROM temporaldp_steps WHERE step = 9")
        execute(filled, "UPDATE temporaldp_releases SET n_steps = 9")
        with pytest.raises(LedgerError, match="9 steps, but has 10"):
            stream.release([70, 30], time=10)


@pytest.mark.parametrize("left", [0, 5, 9])
def test_truncated_chain_is_detected_by_the_mark_of_this_machine(filled, left, monkeypatch):
    with Ledger(filled) as ledger:
        head = ledger[left - 1].hash if left else ledger.began
    mark = mark_of(filled)
    execute(filled, f"DELETE FROM temporaldp_steps WHERE step >= {left}")
    execute(filled, f"UPDATE temporaldp_releases SET n_steps = {left}, head = '{head}', mac = NULL")
    for act in (verified, opened):
        with pytest.raises(LedgerError, match=r"has written 10 steps .* missing or were changed.*--begin-anew"):
            act(filled)
    mark.unlink()  # as on a machine that wrote nothing
    with Ledger(filled) as ledger:
        assert len(ledger) == left
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(mark.parent / "no" / "folder"))
    mark.parent.joinpath("no").write_text("where no folder can be made, a step needs no mark")
    with opened(filled) as stream:
        stream.release([70, 30], time=10)


def test_mark_of_an_earlier_step_is_accepted(filled):
    mark = mark_of(filled)
    earlier = mark.read_text()
    with opened(filled) as stream:
        stream.release([70, 30], time=10)
    mark.write_text(earlier)  # the process was killed before it could replace the mark
    with opened(filled) as stream:
        stream.release([70, 30], time=11)
    assert mark.read_text() != earlier
    assert [one.name for one in mark.parent.iterdir() if mark.name in one.name] == [mark.name]  # no temporary file


def test_emptied_and_reconfigured_ledger_is_detected_by_the_mark(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    with closing(sqlite3.connect(place)) as connection:
        spelled = connection.execute("SELECT configuration FROM temporaldp_releases").fetchone()[0]
        other = spelled.replace('"alpha":1.0', '"alpha":0.999')
        assert other != spelled
        head = hashlib.sha256(f"{LEDGER_FORMAT}\n{other}".encode()).hexdigest()
        for table in ("steps", "events"):
            connection.execute(f"DELETE FROM temporaldp_{table}")
        connection.execute(
            "UPDATE temporaldp_releases SET n_steps = 0, head = ?, mac = NULL, configuration = ?", (head, other)
        )
        connection.commit()
    for act in (verified, opened):
        with pytest.raises(LedgerError, match=r"has written 1 step .* missing or were changed"):
            act(place)


@pytest.mark.parametrize("spelling", ["as it was", "a link", "two links"])
def test_older_copy_is_not_continued_wherever_it_lies(spelling, tmp_path):
    place, older = tmp_path / "release.db", tmp_path / "older.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.ledger.back_up(older)
        for time in range(1, 4):
            stream.release([70, 30], time=time)
    place.rename(tmp_path / "new.db")
    if spelling == "as it was":
        older.rename(place)
    elif spelling == "a link":
        place.symlink_to(older)
    else:
        (tmp_path / "link.db").symlink_to(older)
        place.symlink_to("link.db")
    for at in (place, tmp_path / "elsewhere.db"):
        if at != place:
            shutil.copy(place, at)
            at.chmod(0o600)
        with pytest.raises(LedgerError, match="has written 4 steps to it, the last of which are missing"):
            opened(at)
    with (
        pytest.warns(UserWarning, match="written 4 steps to it.* only read"),
        Ledger(tmp_path / "elsewhere.db") as copy,
    ):
        copy.verify()  # as of a backup
        with pytest.raises(LedgerError, match="older copy"):
            adopt_correlation(copy, Adversary(MATRIX, MATRIX))
    with opened(tmp_path / "new.db") as stream:  # the ledger itself goes on at its new place
        stream.release([70, 30], time=4)
        assert len(stream) == 5


@pytest.mark.parametrize("first", ["{user}@127.0.0.1:{port}", "{user}@localhost:{port}", "someone@LOCALHOST:{port}"])
def test_spellings_of_a_database_are_one_place(first):
    """Without a server: the names under which marks are found again."""
    urls = [f"postgresql://{first.format(user='u', port=5432)}/releases", "postgresql://u:secret@localhost/releases"]
    urls += ["postgresql+psycopg://u@127.0.0.1/releases?connect_timeout=5", "postgres://u@[::1]/releases"]
    urls += ["postgresql://u@/releases?host=localhost&port=5432"]
    names = {store_at(url).names for url in urls}
    assert len(names) == 1 and "secret" not in str(names)
    others = ("@localhost/other", "@db.example/releases", "@localhost:5433/releases", "@/releases?host=/run/a")
    assert len(names | {store_at(f"postgresql://u{rest}").names for rest in others}) == 1 + len(others)


def test_lost_ledger_is_begun_anew_only_on_demand(place, tmp_path):
    with opened(place) as stream:
        first = [stream.release([70, 30], time=time).tolist() for time in range(8)]
        head = stream.ledger.head
    lose(place)
    for act in (opened, opened):
        with pytest.raises(LedgerError, match=r"has written 8 steps .* there is no ledger.*--begin-anew"):
            act(place)
    assert not exists(place)
    with opened(place, begin_anew=True) as stream:
        again = [stream.release([70, 30], time=time).tolist() for time in range(8)]
        assert again != first
        (event,) = [event for event in stream.ledger.events if event.kind == "begin anew"]
        assert event.details == {"steps": 8, "head": head} and event.step == 0
    with opened(place) as stream:  # from now on without the word
        stream.release([70, 30], time=8)
        assert len(stream) == 9


def exists(place):
    with closing(store_at(place)) as store:
        return store.exists()


def lose(place):
    if "://" not in place:
        Path(place).unlink()
    else:
        for table in ("releases", "steps", "events", "kept"):
            execute(place, f"DELETE FROM temporaldp_{table}")


def test_ledger_behind_a_link_is_known_when_the_link_is_lost_too(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "release.db").symlink_to("disk/release.db")
    with opened(tmp_path / "release.db") as stream:
        stream.release([70, 30], time=0)
    (tmp_path / "release.db").unlink()
    shutil.rmtree(tmp_path / "disk")
    with pytest.raises(LedgerError, match="has written 1 step to the ledger of this place"):
        opened(tmp_path / "release.db")


def test_another_ledger_does_not_take_the_place_of_a_lost_one(tmp_path, monkeypatch):
    place, foreign = tmp_path / "release.db", tmp_path / "foreign.db"
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TEMPORALDP_KEY_FILE", str(tmp_path / "other" / "key"))
        with opened(foreign) as stream:
            stream.release([70, 30], time=0)
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    foreign.replace(place)
    for act in (verified, opened):
        with pytest.raises(LedgerError, match="this is another ledger"):
            act(place)


def test_older_copy_is_continued_on_demand(tmp_path):
    place, older = tmp_path / "release.db", tmp_path / "older.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.ledger.back_up(older)
        stream.release([70, 30], time=1)
    older.replace(place)
    with opened(place, begin_anew=True) as stream:
        stream.release([70, 30], time=1)
        assert [event.details["steps"] for event in stream.ledger.events if event.kind == "begin anew"] == [2]
    with opened(place) as stream:
        assert len(stream) == 2


@pytest.mark.parametrize("older", [True, False])
def test_begin_anew_is_recorded_with_the_first_step_that_is_drawn(older, place, tmp_path):
    """A run that fails before it draws does not use up the word of the owner, and keeps the mark."""
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        head = stream.ledger.head
        stream.release([70, 30], time=1)
    if older:
        execute(place, "DELETE FROM temporaldp_steps WHERE step = 1")
        execute(place, f"UPDATE temporaldp_releases SET n_steps = 1, head = '{head}', mac = NULL")
    else:
        lose(place)
    for act in (lambda stream: stream.release("no counts", time=1), lambda stream: stream.ledger.verify()):
        with opened(place, begin_anew=True) as stream, suppress(Exception):
            act(stream)
    with pytest.raises(LedgerError, match="has written 2 steps"):
        opened(place)
    with opened(place, begin_anew=True) as stream:
        for time in (1, 2):
            stream.release([70, 30], time=time)
        begun = [event.step for event in stream.ledger.events if event.kind == "begin anew"]
    assert begun == [1 if older else 0]
    with opened(place) as stream:
        assert len(stream) == 2 + older


def test_begin_anew_is_refused_where_nothing_is_missing(place, tmp_path):
    with pytest.raises(InputError, match="leave it out"):
        opened(place, begin_anew=True)
    assert not exists(place)
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    with pytest.raises(InputError, match="leave it out"):
        opened(place, begin_anew=True)
    shares = {"a": 0.5, "b": 0.5}
    accountant = TemporalAccountant(Adversary(MATRIX, MATRIX), alpha=1.0)
    with pytest.raises(InputError, match="leave it out"):
        SharedRelease(
            "a", MECHANISM, shares=shares, ledger=tmp_path / "shared.db", accountant=accountant, begin_anew=True
        )
    traces, spend = sleep_sample(), tmp_path / "learn.db"
    for ledger in (None, spend):
        with pytest.raises(InputError, match="leave it out"):
            learn_correlation(traces, epsilon=1.0, ledger=ledger, begin_anew=True)
    learn_correlation(traces, epsilon=1.0, ledger=spend)
    with pytest.raises(InputError, match="leave it out"):
        learn_correlation(traces, epsilon=1.0, ledger=spend, begin_anew=True)


def test_older_copy_whose_key_is_lost_is_signed_and_begun_anew(tmp_path, monkeypatch):
    place, older, key = tmp_path / "release.db", tmp_path / "older.db", tmp_path / "own" / "key"
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(key))
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.ledger.back_up(older)
        stream.release([70, 30], time=1)
    older.replace(place)
    key.unlink()
    with pytest.raises(LedgerError, match="--sign"), opened(place, begin_anew=True) as stream:
        stream.release([70, 30], time=1)
    with pytest.warns(UserWarning, match="only read"), Ledger(place) as ledger:
        ledger.sign()
    with pytest.raises(LedgerError, match="has written 2 steps"):  # the signature does not make up for the steps
        opened(place)
    with opened(place, begin_anew=True) as stream:
        stream.release([70, 30], time=1)
        assert stream.ledger.is_authentic
    with opened(place) as stream:
        assert len(stream) == 2


@pytest.mark.parametrize("problem", ["folder", "mark", "name", "a folder in its place"])
def test_mark_that_cannot_be_used_stops_a_run(problem, tmp_path, monkeypatch):
    place, home = tmp_path / "release.db", tmp_path / "home"
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(home / "key"))
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    mark = mark_of(place)
    if problem == "mark":
        mark.write_text("no mark")
    elif problem == "name":
        for file in mark.parent.iterdir():
            if file != mark:
                file.write_text("no identifier")
        mark.unlink()
    elif problem == "a folder in its place":
        mark.unlink()
        mark.mkdir()

    def as_somebody_else():
        if os.geteuid() == 0:
            for path in (tmp_path, *tmp_path.parents):
                if path.stat().st_uid == 0 and path.is_relative_to("/tmp") and str(path) != "/tmp":
                    path.chmod(0o755)
            for path in (tmp_path, place, home, home / "key"):
                os.chown(path, 65534, 65534)
            if problem != "folder":
                for path in (mark.parent, *mark.parent.iterdir()):
                    os.chown(path, 65534, 65534)
            os.setuid(65534)
        elif problem == "folder":
            mark.parent.chmod(0o000)
        with pytest.warns(UserWarning, match="cannot use the mark"), Ledger(place) as ledger:
            ledger.verify()
            with pytest.raises(LedgerError, match="cannot use the mark"):
                adopt_correlation(ledger, NEWER)
            with pytest.raises(LedgerError, match="cannot use the mark"):
                ledger.sign()
        for begin_anew in (False, True):
            with pytest.raises(LedgerError, match="cannot use the mark"):
                opened(place, begin_anew=begin_anew)
        return 0

    assert in_a_child(as_somebody_else) == 0


@pytest.mark.parametrize("failure", ["the first step", "the accountant", "after a step"])
def test_failed_first_release_leaves_no_ledger(failure, place, monkeypatch):
    if failure == "the accountant":
        monkeypatch.setattr("temporaldp.publish.release.guards.begun", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), opened(place) as stream:
        if failure == "after a step":
            stream.release([70, 30], time=0)
        raise ZeroDivisionError
    assert exists(place) == (failure == "after a step")
    monkeypatch.undo()
    with opened(place) as stream:
        stream.release([70, 30], time=1)
        assert len(stream) == 1 + (failure == "after a step")


def test_ledger_that_another_process_uses_is_not_removed(tmp_path):
    place = tmp_path / "release.db"
    with pytest.raises(ZeroDivisionError), opened(place), opened(place) as other:
        other.release([70, 30], time=0)
        raise ZeroDivisionError
    with Ledger(place) as ledger:
        assert len(ledger) == 1


def test_marks_of_a_ledger_and_of_a_service_are_separate(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    place.unlink()
    even = [[0.5, 0.5], [0.5, 0.5]]
    made = {"alpha": 1.0, "backward": even, "forward": even, "mechanism": {"kind": "histogram", "n_states": 2}}
    for _ in range(2):
        service = Service(str(place))
        created = service.create(Definition.model_validate(made), "key")
        assert service.find(created.release).reserve == created.reserve
        service.database.close()


def test_ledger_rewritten_with_other_budgets_is_detected_by_the_mark(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        for step in range(3):
            stream.release([70, 30], time=step)
    assert len(written_anew(place)) == 3
    with pytest.raises(LedgerError, match="missing or were changed"):
        verified(place)


def verified(place):
    with pytest.warns(UserWarning, match="only read"), Ledger(place) as ledger:
        ledger.verify()


def mark_of(place):
    with Ledger(place) as ledger:
        return mark_file(ledger.identifier)


def written_anew(place):
    """The rows of the ledger with smaller budgets, and hashes that fit, as somebody writes who may write to the file."""
    connection = sqlite3.connect(place)
    columns = "step, time, parameter, epsilon, leakage, last, output, digest, request_key"
    with Ledger(place) as ledger:
        head = ledger.began
    rows = connection.execute(f"SELECT {columns} FROM temporaldp_steps ORDER BY step").fetchall()
    for row in rows:
        content = [0.001 if k in (2, 3) else bool(value) if k == 5 else value for k, value in enumerate(row)]
        text = json.dumps(content, separators=(",", ":"))
        head = hashlib.sha256(f"{head}\n{text}".encode()).hexdigest()
        change = "UPDATE temporaldp_steps SET parameter = 0.001, epsilon = 0.001, hash = ? WHERE step = ?"
        connection.execute(change, (head, row[0]))
    connection.execute("UPDATE temporaldp_releases SET head = ?, mac = NULL", (head,))
    connection.commit()
    connection.close()
    return rows


def test_rewritten_chain_is_detected_by_a_noted_head(filled):
    with Ledger(filled) as ledger:
        head, fifth = ledger.head, ledger[4].hash
    mark_of(filled).unlink()
    execute(filled, "DELETE FROM temporaldp_steps WHERE step > 4")
    execute(filled, f"UPDATE temporaldp_releases SET n_steps = 5, head = '{fifth}', mac = NULL")
    with Ledger(filled) as ledger:  # a perfect forgery of an earlier ledger
        ledger.verify()
        ledger.verify(head=fifth[:12])
        with pytest.raises(LedgerError, match="older copy"):
            ledger.verify(head=head)
        for short in ("ab", fifth[:11], "", "x" * 12):
            with pytest.raises(InputError, match="12 hexadecimal digits"):
                ledger.verify(head=short)


@pytest.mark.parametrize("left", [0, 5])
def test_truncation_without_the_key_is_detected_by_the_mac(filled, left):
    with Ledger(filled) as ledger:
        head = ledger[left - 1].hash if left else ledger.began
        assert ledger.is_authentic
    mark_of(filled).unlink()  # as on another machine with this key
    execute(filled, f"DELETE FROM temporaldp_steps WHERE step >= {left}")
    execute(filled, f"UPDATE temporaldp_releases SET n_steps = {left}, head = '{head}'")
    for act in (Ledger, opened):
        with pytest.raises(LedgerError, match="head was not written with the key"):
            act(filled)


def test_chain_rewritten_without_the_key_is_refused_or_not_authentic(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        for step in range(3):
            stream.release([70, 30], time=step)
        mac = stream.ledger.store.heading().mac
    mark_of(place).unlink()
    written_anew(place)  # without a MAC
    with pytest.warns(UserWarning, match="written without the key of this machine"), Ledger(place) as ledger:
        ledger.verify()
        assert ledger.is_authentic is None
    with pytest.warns(UserWarning, match="written without the key of this machine"), opened(place) as stream:
        assert len(stream) == 3
    execute(str(place), f"UPDATE temporaldp_releases SET mac = '{mac}'")  # that of the head before
    with pytest.raises(LedgerError, match="head was not written with the key"):
        Ledger(place)


def test_another_key_does_not_end_the_authentication(tmp_path, monkeypatch):
    """As with another HOME: the run stops, and the ledger stays authentic."""
    place, key = tmp_path / "release.db", os.environ["TEMPORALDP_KEY_FILE"]
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(tmp_path / "other" / "key"))
        with pytest.warns(UserWarning, match="written without the key of this machine"), opened(place) as other:
            for act in (lambda: other.release([70, 30], time=1), lambda: adopt_correlation(other.ledger, NEWER)):
                with pytest.raises(LedgerError, match=r"authenticated with another key .* --sign"):
                    act()
        monkeypatch.setenv("TEMPORALDP_KEY_FILE", key)
        stream.release([70, 30], time=1)
    with Ledger(place) as ledger:
        assert ledger.is_authentic and len(ledger) == 2 and not ledger.events


@pytest.mark.parametrize("problem", ["mode", "content", "empty", "folder"])
def test_key_that_cannot_be_used_stops_the_run(problem, tmp_path, monkeypatch):
    place, key = tmp_path / "release.db", tmp_path / "keys" / "key"
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(key))
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        whole = key.read_text()
        if problem == "mode":
            key.chmod(0o640)
        elif problem == "folder":
            key.unlink()
            key.mkdir(mode=0o700)
        else:
            key.write_text("no key" if problem == "content" else "")
        for act in (lambda: stream.release([70, 30], time=1), lambda: opened(tmp_path / "new.db")):
            with pytest.raises(LedgerError, match="cannot use the key") as refused:
                act()
            assert whole not in str(refused.value)
        assert not (tmp_path / "new.db").exists()
        if problem == "folder":
            key.rmdir()
            key.touch(0o600)
        key.write_text(whole)
        key.chmod(0o600)
        stream.release([70, 30], time=1)
        assert stream.ledger[1].digest is not None
    with Ledger(place) as ledger:
        assert ledger.is_authentic and len(ledger) == 2


def test_owner_signs_a_verified_chain(tmp_path, monkeypatch):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        head = stream.ledger.head
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(tmp_path / "new" / "key"))  # the key was lost
    with pytest.warns(UserWarning, match="without the key"), Ledger(place) as ledger:
        ledger.verify(head=head)
        event = ledger.sign(by="Ann")
        assert (event.kind, event.by, event.step, event.details) == ("sign", "Ann", 1, {"head": head})
        assert ledger.is_authentic and ledger.sign() is None
    with opened(place) as stream:  # without a warning
        stream.release([70, 30], time=1)
        assert stream.ledger.is_authentic
    written_anew(place)
    with pytest.raises(LedgerError):
        Ledger(place)


def test_chain_is_not_signed_without_a_key(tmp_path, monkeypatch):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(place / "no folder"))
    with pytest.warns(UserWarning, match="without the key"), Ledger(place) as ledger:
        with pytest.raises(LedgerError, match="cannot sign"):
            ledger.sign()
        assert not ledger.is_authentic
    monkeypatch.undo()
    with Ledger(place) as ledger:
        assert ledger.is_authentic and not ledger.events


def test_no_step_and_no_adoption_authenticates_a_rewritten_chain(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        for step in range(3):
            stream.release([70, 30], time=step)
    mark_of(place).unlink()
    written_anew(place)
    with pytest.warns(UserWarning, match="written without the key of this machine"):
        adopt_correlation(place, Adversary(MATRIX, MATRIX))
    with pytest.warns(UserWarning, match="written without the key of this machine"), opened(place) as stream:
        stream.release([70, 30], time=3)
        assert stream.ledger.store.heading().mac is None
    with pytest.warns(UserWarning, match="written without the key of this machine"), Ledger(place) as ledger:
        assert ledger.is_authentic is None


@pytest.mark.parametrize("mac", ["", "x", "::", "0123", "00000000:11:22"])
def test_invalid_mac_authenticates_nothing(tmp_path, mac):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    execute(str(place), f"UPDATE temporaldp_releases SET mac = '{mac}'")
    with pytest.warns(UserWarning, match="written without the key of this machine"), opened(place) as stream:
        assert stream.ledger.is_authentic is None
        with pytest.raises(LedgerError, match="authenticated with another key"):
            stream.release([70, 30], time=1)


@pytest.mark.parametrize("form", ["{name}:\u00e9:00", "{name}:00:\u00e9", "{name}:\u00e9"])
def test_mac_with_other_letters_than_ascii_is_false(form, tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        name = stream.ledger.store.heading().mac.split(":")[0]
    execute(str(place), f"UPDATE temporaldp_releases SET mac = '{form.format(name=name)}'")
    with pytest.raises(LedgerError, match="head was not written with the key"):
        Ledger(place)


def test_neither_true_counts_nor_names_enter_the_ledger(tmp_path):
    place = tmp_path / "release.db"
    odd = TransitionMatrix([[0.734521, 0.265479], [0.2, 0.8]], states=["home", "work"])
    accountant = TemporalAccountant({"Zbigniew": Adversary(odd), "Ann": Adversary(MATRIX.__class__(
        [[0.9, 0.1], [0.1, 0.9]], states=["home", "work"]))}, alpha=1.0)  # fmt: skip
    with ContinualRelease(MECHANISM, ledger=place, accountant=accountant) as stream:
        for time in range(3):
            stream.release([717171, 393939], time=time)
        stream.skip(time=3)
        noisy = stream.ledger[0].output
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert "array" in noisy
    for secret in (b"Zbigniew", b"Ann", b"[717171,393939]"):
        assert secret not in content
    assert b"home" in content  # the states are public, and part of what the ledger is for


def test_only_the_owner_may_read_the_file(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        for path in tmp_path.rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    place.chmod(0o640)
    with pytest.raises(LedgerError, match="chmod 600"):
        opened(place)


def test_file_contains_every_step_while_the_release_is_open(tmp_path):
    place, copy = tmp_path / "release.db", tmp_path / "copy.db"
    with opened(place) as stream:
        for time in range(5):
            stream.release([70, 30], time=time)
        shutil.copy2(place, copy)  # without the log beside it
        with Ledger(copy) as ledger:
            assert ledger.head == stream.ledger.head


def test_the_file_is_written_ahead_and_fully_synchronised(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        store = stream.ledger.store
        with store.reading() as transaction:
            asked = transaction.connection.exec_driver_sql
            assert asked("PRAGMA journal_mode").scalar() == "wal"
            assert asked("PRAGMA synchronous").scalar() == 2


@pytest.mark.long
@pytest.mark.parametrize("left", [0, 1, 100, 4096, 5000, 20000])
def test_truncated_file_is_refused_and_left_unchanged(left, tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        for time in range(40):
            stream.release([70, 30], time=time)
    os.truncate(place, left)
    before = place.read_bytes()
    with pytest.raises(LedgerError, match="cannot use the ledger"):
        opened(place)
    assert place.read_bytes() == before


def test_file_of_another_kind_is_refused(tmp_path):
    place = tmp_path / "release.db"
    place.write_text("user,time,state\n" * 300)
    place.chmod(0o600)
    with pytest.raises(LedgerError, match="not a database; it is not a ledger"):
        opened(place)
    empty = tmp_path / "empty.db"
    sqlite3.connect(empty).execute("CREATE TABLE other (x)").connection.close()
    empty.chmod(0o600)
    with pytest.raises(LedgerError, match="no such table"):
        opened(empty)
    with pytest.raises(LedgerError, match="not a regular file"):
        opened(tmp_path)
    with pytest.raises(LedgerError, match="No such file"):
        opened(tmp_path / "missing" / "release.db")
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger(tmp_path / "missing.db")


def test_full_disk_spends_nothing(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        head = stream.ledger.head

    def with_a_full_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing beyond the limit fails, as on a full disk
        with opened(place) as stream:
            stream.release([70, 30], time=1)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
            try:
                stream.release([70, 30], time=2)
            except LedgerError as error:
                assert "Nothing was published" in str(error)
                assert len(stream) == len(stream.accountant) == 2
            else:
                return 3
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            stream.release([70, 30], time=2)  # room was made
            assert len(stream) == len(stream.accountant) == 3
        return 0

    assert in_a_child(with_a_full_disk) == 0
    with Ledger(place) as ledger:
        ledger.verify(head=head)
        assert len(ledger) == 3


def test_read_only_file_spends_nothing(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    before = place.read_bytes()
    place.chmod(0o400)

    def as_somebody_without_the_right():
        if os.geteuid() == 0:  # root may write to everything
            for path in (tmp_path, *tmp_path.parents):
                if path.stat().st_uid == 0 and path.is_relative_to("/tmp") and str(path) != "/tmp":
                    path.chmod(0o755)
            os.chown(place, 65534, 65534)
            os.environ["TEMPORALDP_KEY_FILE"] = str(tmp_path / "nowhere" / "key")
            os.setuid(65534)
        try:
            opened(place).release([70, 30], time=1)
        except LedgerError as error:
            return 0 if "may not be" in str(error) and "Nothing was published" in str(error) else 4
        return 3

    assert in_a_child(as_somebody_without_the_right) == 0
    assert place.read_bytes() == before


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("mysql://user:secret@host/db", "postgresql"),
        ("nonsense://", "postgresql"),
        ("postgresql://user:secret@host:port/db", "cannot be read"),
        ("postgresql:/user:secret@host/db", "one slash"),
        ("postgres://127.0.0.1:1/db?password=secret", "cannot use the ledger"),
        (":memory:", "expected a file"),
        ("file:s.db", "expected a file"),
        ("sqlite:///s.db", "an SQLite file or a postgresql:// URL"),
        ("", "expected a file"),
        ("postgresql://user:secret@127.0.0.1:1/db", "cannot use the ledger"),
    ],
)
def test_unusable_paths_are_refused_without_showing_passwords(place, message):
    with pytest.raises((InputError, LedgerError), match=message) as refused:
        opened(place)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "output",
    [
        np.array([1, -2, 2**62]),
        np.array([[0.1, 1e-300], [np.pi, -0.0]]),
        np.array([], dtype=np.float32),
        np.float64(1 / 3),
        np.uint8(7),
        3,
        0.1,
        "text with é and \n",
        [1, [2.5, None]],
        {"a": {"b": [True]}},
        None,
    ],
)
def test_outputs_round_trip(output):
    again = from_text(as_text(output))
    assert type(again) is type(output)
    if isinstance(output, np.ndarray):
        assert again.dtype == output.dtype
        assert again.tobytes() == output.tobytes()
    else:
        assert again == output


@pytest.mark.parametrize(
    "output",
    [float("nan"), np.array([np.nan]), np.array([object()]), (1, 2), {1: 2}, {3}, 1j, np.ma.array([1, 2], mask=[0, 1])],
)
def test_outputs_that_would_not_round_trip_are_refused(output):
    with pytest.raises(InputError):
        as_text(output)


def test_numpy_values_are_stored_as_they_are_read(place):
    with opened(place) as stream:
        stream.release([70, 30], time=0, epsilon=0.1)
        stream.skip(time=1)
        stream.release([70, 30], time=2, epsilon=np.float64(0.1), last=np.bool_(True))
    with Ledger(place) as ledger:
        ledger.verify()
        assert ledger[2].last is True


def test_draw_that_was_not_stored_is_not_returned(tmp_path):
    place, seen = tmp_path / "release.db", []
    opened(place, mechanism=lambda snapshot, epsilon: 0).close()
    execute(str(place), "CREATE TRIGGER no BEFORE INSERT ON temporaldp_steps BEGIN SELECT RAISE(ABORT, 'no room'); END")

    def mechanism(snapshot, epsilon):
        seen.append(691521818)
        return seen[-1]

    with opened(place, mechanism=mechanism) as stream:
        with pytest.raises(LedgerError, match="no room") as refused:
            stream.release([70, 30], time=0)
        assert len(stream) == len(stream.accountant) == 0
    assert seen
    assert "691521818" not in "".join(traceback.format_exception(refused.value))


def test_errors_of_the_mechanism_are_raised_unchanged(place):
    for kind in (OSError, ImportError, FileNotFoundError, KeyboardInterrupt):

        def failing(snapshot, epsilon, kind=kind):
            raise kind("net down")

        with opened(place, mechanism=failing) as stream:
            with pytest.raises(kind, match="net down") as raised:
                stream.release([70, 30], time=0)
            assert not isinstance(raised.value, LedgerError)
            assert len(stream) == len(stream.accountant) == 0


@pytest.mark.parametrize("how", ["removed", "replaced by a backup", "folder renamed"])
def test_removed_file_publishes_nothing(how, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    place, backup = folder / "release.db", tmp_path / "backup.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        shutil.copy2(place, backup)
        stream.release([70, 30], time=1)
        if how == "folder renamed":
            folder.rename(tmp_path / "elsewhere")
        else:
            for path in folder.glob("release.db*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if how == "replaced by a backup":
            shutil.copy2(backup, place)
        with pytest.raises(LedgerError, match="removed, moved or replaced"):
            stream.release([70, 30], time=2)
        assert len(stream) == len(stream.accountant) == 2
        if how == "replaced by a backup":
            with pytest.raises(LedgerError, match="steps, but"):
                stream.release([70, 30], time=2)


def test_hard_link_to_the_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["temporaldp.publish.release.file_store"], "SECONDS_WITH_TWO_NAMES", 0.1)
    place = tmp_path / "release.db"
    opened(place).close()
    os.link(place, tmp_path / "other.db")
    with pytest.raises(LedgerError, match="2 names"):
        opened(place)
    (tmp_path / "other.db").unlink()
    (tmp_path / "link.db").symlink_to(place)
    with opened(tmp_path / "link.db") as stream:
        stream.release([70, 30], time=0)


def test_verifying_an_open_release_detects_a_rolled_back_chain(filled):
    with opened(filled) as stream:
        fifth = stream.ledger[4].hash
        execute(filled, "DELETE FROM temporaldp_steps WHERE step > 4")
        execute(filled, f"UPDATE temporaldp_releases SET n_steps = 5, head = '{fifth}', mac = NULL")
        with pytest.raises(LedgerError, match="missing or were changed"):
            stream.ledger.verify()
        assert len(stream.ledger) == len(stream.accountant) == 10
        with pytest.raises(LedgerError):
            stream.release([70, 30], time=11)


def test_release_on_a_closed_ledger_is_refused(place):
    stream = opened(place)
    stream.release([70, 30], time=0)
    stream.close()
    for time in (0, 1):
        with pytest.raises(LedgerError, match="was closed"):
            stream.release([70, 30], time=time)


def test_a_backup_on_a_read_only_disk_can_be_verified(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    place.chmod(0o400)

    def as_somebody_without_the_right():
        if os.geteuid() == 0:
            for path in (tmp_path, *tmp_path.parents):
                if path.stat().st_uid == 0 and path.is_relative_to("/tmp") and str(path) != "/tmp":
                    path.chmod(0o755)
            os.chown(place, 65534, 65534)
            os.setuid(65534)
        with pytest.warns(UserWarning, match="cannot use the mark"), Ledger(place) as ledger:
            ledger.verify()
            return 0 if len(ledger) == 1 else 3

    assert in_a_child(as_somebody_without_the_right) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release.db"]


@pytest.mark.long
def test_readers_beside_a_writer_raise_no_false_alarm(place):
    with opened(place) as stream, Ledger(place) as reader:
        stop, read = threading.Event(), []

        def reading():
            while not stop.is_set():
                reader.verify()
                with Ledger(place) as other:
                    read.append(len(other))

        with ThreadPoolExecutor() as pool:
            watching = [pool.submit(reading) for _ in range(3)]
            for time in range(20):
                stream.release([70, 30], time=time)
            stop.set()
            for one in watching:
                one.result()
    assert len(set(read)) > 1


@pytest.mark.long
def test_a_log_left_from_another_ledger_is_not_replayed(tmp_path):
    place = tmp_path / "release.db"
    stream = opened(place)
    for time in range(30):
        stream.release([70, 30], time=time)
    place.unlink()  # the log stays: the release is still open
    assert (tmp_path / "release.db-wal").exists()
    with pytest.raises(LedgerError, match="is left from one that was removed"):
        opened(place, begin_anew=True)
    stream.close()


def test_ledger_created_concurrently_by_another_process_is_opened(tmp_path, monkeypatch):
    place, really, looks = tmp_path / "release.db", FileDatabase.exists, []
    with opened(place) as other:
        other.release([70, 30], time=0)
        assert (tmp_path / "release.db-wal").exists()
        # This process looked before the other one made the file.
        monkeypatch.setattr(FileDatabase, "exists", lambda self: bool(looks.append(1) or looks[1:]) and really(self))
        with opened(place) as stream:
            assert len(stream) == 1


@pytest.mark.parametrize("name", ["temporaldp ledger 9", "temporaldp ledger 11", "other", 5])
def test_ledger_of_another_format_is_refused_and_left_unchanged(name, tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    with sqlite3.connect(place) as connection:
        (text,) = connection.execute("SELECT configuration FROM temporaldp_releases").fetchone()
        changed = json.dumps({**json.loads(text), "format": name})
        connection.execute("UPDATE temporaldp_releases SET configuration = ?", [changed])
    connection.close()
    before = place.read_bytes()
    for act in (Ledger, opened):
        with pytest.raises(LedgerError, match=f"expected a ledger of format 'temporaldp ledger 10', got '{name}'"):
            act(place)
    assert place.read_bytes() == before


@pytest.mark.parametrize("field", ["step", "kind", "at", "by", "content"])
def test_event_of_other_types_is_detected_as_an_edit(field, tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        adopt_correlation(place, Adversary(MATRIX, MATRIX))
    for value in (b"\xff", 1.5, "x" if field == "step" else 7):
        with closing(sqlite3.connect(place)) as connection:
            connection.execute(f"UPDATE temporaldp_events SET {field} = ?", (value,))
            connection.commit()
        with pytest.raises(LedgerError, match="event 0"):
            Ledger(place)


def test_ledger_with_a_damaged_schema_is_refused(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    content = place.read_bytes()
    for mark in (b"CREATE TABLE temporaldp_steps", b"temporaldp_releases"):
        at = content.index(mark)
        for odd in (b"\xff", b"\x80\xfe"):
            place.write_bytes(content[: at + 3] + odd + content[at + 3 + len(odd) :])
            with pytest.raises(LedgerError, match="cannot use the ledger"):
                Ledger(place)
