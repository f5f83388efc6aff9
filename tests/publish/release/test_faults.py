"""What happens around a ledger in years: copies made while it is written, a database that is away, kills, full disks."""

from __future__ import annotations

import resource
import shutil
import signal
import sqlite3
import subprocess
import threading

import pytest

from streams import in_a_child, opened
from temporaldp import Adversary, Ledger, LedgerError, TransitionMatrix
from temporaldp.publish.release import adopt_correlation
from temporaldp.publish.release.key_and_marks import key_file

BUSY = TransitionMatrix([[0.9, 0.1], [0.3, 0.7]])
NEWER = Adversary(BUSY, BUSY)


@pytest.mark.filterwarnings("ignore:.*is an older copy")
@pytest.mark.long
def test_copy_taken_during_a_write_is_refused_or_detected_by_its_head(tmp_path):
    place = tmp_path / "release.db"
    opened(place).close()
    copies = []

    def write():
        with opened(place) as stream:
            for step in range(40):
                stream.release([70, 30], time=step)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive() and len(copies) < 60:
        copy = tmp_path / f"copy{len(copies)}.db"
        # In another process: closing the file here would drop the locks that the writer holds on it.
        subprocess.run(["cp", place, copy], check=True)
        copy.chmod(0o600)
        copies.append(copy)
    writer.join()
    with Ledger(place) as ledger:
        rows, head = ledger[:], ledger.head
    assert len(rows) == 40
    for copy in copies:
        try:
            with Ledger(copy) as found:
                assert found[:] == rows[: len(found)]
                if len(found) < 40:
                    with pytest.raises(LedgerError, match="older copy"):
                        found.verify(head=head)
        except LedgerError as error:
            assert str(copy) in str(error)
    assert len(copies) > 3


@pytest.mark.long
def test_partial_backup_is_refused_and_left_unchanged(tmp_path):
    place, half = tmp_path / "release.db", tmp_path / "half.db"
    with opened(place) as stream:
        for step in range(30):
            stream.release([70, 30], time=step)
        stream.ledger.back_up(tmp_path / "whole.db")
    whole = (tmp_path / "whole.db").read_bytes()
    half.write_bytes(whole[: len(whole) // 2])
    half.chmod(0o600)
    with pytest.raises(LedgerError, match=r"damaged|truncated|steps|changed"):
        opened(half)
    assert half.read_bytes() == whole[: len(whole) // 2]


@pytest.mark.long
def test_database_outage_publishes_nothing_and_recovers(postgres_server):
    import psycopg

    import postgres

    place = postgres.create_database(postgres_server, "goes_away")
    with opened(place) as stream:
        first = stream.release([70, 30], time=0).tolist()
        with psycopg.connect(postgres_server.format(name="postgres"), autocommit=True) as server:
            server.execute("ALTER DATABASE goes_away ALLOW_CONNECTIONS false")
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'goes_away'")
            for _ in range(3):
                with pytest.raises(LedgerError, match="Nothing was published"):
                    stream.release([70, 30], time=1)
                assert len(stream) == len(stream.accountant) == 1
            with pytest.raises(LedgerError):
                Ledger(place)
            with pytest.raises(LedgerError):
                adopt_correlation(place, NEWER)
            server.execute("ALTER DATABASE goes_away ALLOW_CONNECTIONS true")
        assert stream.release([70, 30], time=0).tolist() == first
        second = stream.release([70, 30], time=1).tolist()
    with opened(place) as stream:
        assert [stream.release([70, 30], time=step).tolist() for step in (0, 1)] == [first, second]
        assert len(stream) == 2


@pytest.mark.parametrize("room", [0, 300, 1000])
def test_full_disk_adopts_nothing(room, tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        head = stream.ledger.head

    def with_a_full_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing beyond the limit fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        try:
            adopt_correlation(place, NEWER)
        except LedgerError:
            pass
        else:
            return 3
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        with Ledger(place) as ledger:
            return 0 if (ledger.head, list(ledger.events)) == (head, []) else 4

    assert in_a_child(with_a_full_disk) == 0
    with opened(place) as stream:  # still the release that it was
        stream.release([70, 30], time=1)
    adopt_correlation(place, NEWER)  # room was made
    with opened(place, adversary=NEWER) as stream:
        stream.release([70, 30], time=2)
        assert stream.ledger[-1].leakage <= 1.0


def test_full_disk_at_a_checkpoint_loses_no_step(tmp_path, monkeypatch):
    from temporaldp.publish.release.tables import Transaction

    monkeypatch.setattr("temporaldp.publish.release.step.STEPS_BETWEEN_CHECKPOINTS", 5)

    def full(*_, **__):
        raise LedgerError("the disk is full")

    place = tmp_path / "release.db"
    with monkeypatch.context() as broken:
        broken.setattr(Transaction, "keep", full)
        with opened(place) as stream:
            for step in range(7):
                stream.release([70, 30], time=step)
            assert not stream.ledger.events
    with opened(place) as stream:
        stream.release([70, 30], time=7)
        assert [event.kind for event in stream.ledger.events] == ["checkpoint"]


def test_host_restored_from_a_snapshot_is_detected_by_a_noted_head(tmp_path, monkeypatch):
    """Also if the older copy has its own checkpoint."""
    place, older = tmp_path / "release.db", tmp_path / "older.db"
    with opened(place) as stream:
        for step in range(3):
            stream.release([70, 30], time=step)
        stream.ledger.back_up(older)
        stream.release([70, 30], time=3)
        head = stream.ledger.head
    shutil.copy(older, place)
    place.chmod(0o600)
    older_copy = pytest.raises(LedgerError, match=r"this machine has written 4 steps .* older copy")
    with pytest.warns(UserWarning, match="only read"), Ledger(place) as ledger, older_copy:
        ledger.verify()
    restored = tmp_path / "restored" / "key"  # the snapshot has the key, and an older mark or none
    restored.parent.mkdir()
    shutil.copy(key_file(), restored)
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(restored))
    with Ledger(place) as ledger, pytest.raises(LedgerError, match="older copy"):
        ledger.verify(head=head)
    with sqlite3.connect(place) as connection:
        assert connection.execute("SELECT count(*) FROM temporaldp_steps").fetchone() == (3,)
    connection.close()
