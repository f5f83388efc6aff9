"""A release goes on with another correlation: by its ledger, on both stores, whoever has it open."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sqlite3
import warnings

import numpy as np
import pytest

from streams import ADVERSARY, MECHANISM, keep_instead, kept, opened
from temporaldp import (
    Adversary,
    ApproximateDP,
    InputError,
    Ledger,
    LedgerError,
    TemporalAccountant,
    TransitionMatrix,
    plan_noise,
    temporal_leakage,
)
from temporaldp.base.errors import InputDiffersWarning, LedgerMismatchError
from temporaldp.data.counts import NoisyHistogram
from temporaldp.publish.release import ContinualRelease, adopt_correlation, export_ledger

BUSY = TransitionMatrix([[0.9, 0.1], [0.15, 0.85]])
LATER = Adversary(BUSY, BUSY)


def varying(changes, epsilons):
    """By the series: each step has the matrices that were valid at it."""
    valid = [next(one for start, one in reversed(changes) if start <= t) for t in range(len(epsilons))]
    backward = [one.backward for one in valid[1:]]
    forward = [one.forward for one in valid[:-1]]
    return temporal_leakage(Adversary(backward, forward), epsilons).worst


@pytest.mark.long
def test_release_continues_with_the_adopted_correlation(place):
    with opened(place) as stream:
        for time in range(4):
            stream.release([70, 30], time=time)
        head = stream.ledger.head
    event = adopt_correlation(place, LATER, by="Ann")
    assert (event.step, event.by, event.kind) == (4, "Ann", "adopt")
    with pytest.raises(LedgerMismatchError, match="ledger adopt"):
        opened(place)
    with opened(place, adversary=LATER) as stream:
        assert len(stream) == 4
        for time in range(4, 9):
            stream.release([70, 30], time=time)
        assert stream.accountant.total() <= 1.0
    with Ledger(place) as ledger:
        ledger.verify(head=head)
        ledger.verify(head=event.hash)
        assert ledger[4].epsilon == pytest.approx(event.details["reserve"])
        for n in (5, 9):
            expected = varying([(0, ADVERSARY), (4, LATER)], ledger.epsilons[:n])
            assert ledger[n - 1].leakage == pytest.approx(expected, rel=1e-10)


@pytest.mark.long
def test_open_release_applies_an_adoption_of_another_process(place):
    with opened(place) as stream, opened(place) as other:
        stream.release([70, 30], time=0)
        adopt_correlation(place, LATER)
        other.release([70, 30], time=1)
        adopt_correlation(place, ADVERSARY, both=True)
        stream.release([70, 30], time=2)
        spent = stream.ledger.epsilons
        assert len(stream.ledger.events) == 2
        lines = [[(0, ADVERSARY), (1, LATER), (2, now)] for now in (LATER, ADVERSARY)]
        expected = max(varying(line, spent) for line in lines)
        assert stream.accountant.total() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM temporaldp_events", "step 2"),
        ("UPDATE temporaldp_events SET by = 'Bob'", "event 0"),
        ("UPDATE temporaldp_events SET step = 1", "event 0|step 1"),
        ("UPDATE temporaldp_events SET content = replace(content, '\"both\":false', '\"both\":true')", "event 0"),
    ],
)
def test_edited_event_is_detected(statement, message, tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.release([70, 30], time=1)
        adopt_correlation(place, LATER)
        stream.release([70, 30], time=2)
    with sqlite3.connect(place) as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(LedgerError, match=message):
        Ledger(place)


def test_missing_or_changed_matrices_are_requested(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    ((name, text),) = kept(place, "correlations").items()
    keep_instead(place, name, text.replace("0.8", "0.7").replace("0.2", "0.3"))
    with pytest.raises(LedgerError, match="were changed"):
        adopt_correlation(place, LATER)
    keep_instead(place, name)
    with pytest.raises(LedgerError, match="not kept in it"):
        adopt_correlation(place, LATER)
    with opened(place):  # with the correlation that it has: kept again
        pass
    assert adopt_correlation(place, LATER).step == 1


def test_a_name_with_control_characters_adopts_nothing(tmp_path):
    place = tmp_path / "release.db"
    with opened(place):
        pass
    with pytest.raises(InputError, match="control characters"):
        adopt_correlation(place, LATER, by="Ann\x1b[2J")
    assert not Ledger(place).events


def test_release_by_a_plan_adopts_nothing(tmp_path):
    place = tmp_path / "noise.db"
    plan = plan_noise(ADVERSARY, alpha=1.0, accounting=ApproximateDP(1e-6))
    with ContinualRelease(NoisyHistogram(2, "gaussian"), ledger=place, plan=plan) as stream:
        stream.release([70, 30], time=0)
    with pytest.raises(InputError, match="plan alone"):
        adopt_correlation(place, LATER)


# What was released is asked for with other data


def test_changed_data_of_a_released_step_warn_and_are_not_released(place):
    with opened(place) as stream:
        first = stream.release([70, 30], time="a1")
        second = stream.release([70, 30], time="a2")
        assert stream.ledger[0].digest != stream.ledger[1].digest  # each has a nonce
    with opened(place) as stream:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert stream.release(np.array([70, 30]), time="a1").tolist() == first.tolist()
            assert stream.release([70, 30], time=" a2").tolist() == second.tolist()
        with pytest.warns(InputDiffersWarning, match="'a1'"):
            assert stream.release([71, 30], time="a1").tolist() == first.tolist()
        assert stream.input_matches([70, 31], time="a2") is False
        assert stream.input_matches(None, time="a2") is None
        assert len(stream) == 2


@pytest.fixture
def key(tmp_path, monkeypatch):
    """Where the key of digests is kept."""
    place = tmp_path / "configuration" / "temporaldp" / "key"
    monkeypatch.delenv("TEMPORALDP_KEY_FILE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place.parent.parent))
    return place


def test_the_key_of_digests_is_in_the_users_configuration_and_in_no_backup(key, tmp_path):
    place, copy = tmp_path / "ledger" / "release.db", tmp_path / "backup" / "copy.db"
    place.parent.mkdir()
    copy.parent.mkdir()
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        stream.ledger.back_up(copy)
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o777 == 0o700
    stolen = [path for folder in (place.parent, copy.parent) for path in folder.rglob("*") if path.is_file()]
    assert len(stolen) >= 2
    assert not [path for path in stolen if path.name == "key" or key.read_bytes() in path.read_bytes()]
    with opened(copy) as stream:
        assert stream.input_matches([71, 30], time=0) is False


def test_brute_force_against_a_stolen_backup_finds_no_count(key, tmp_path):
    """An attacker has the files of a backup, every hexadecimal string in them as a key, and two counts up to 200 to find."""
    place, stolen = tmp_path / "release.db", tmp_path / "stolen" / "copy.db"
    stolen.parent.mkdir()
    with opened(place) as stream:
        stream.release([37, 63], time=0)
        stream.ledger.back_up(stolen)
        _, *nonces, mac = stream.ledger[0].digest.split(":")
    nonce = "".join(nonces)
    content = b"".join(path.read_bytes() for path in stolen.parent.rglob("*") if path.is_file())
    assert mac.encode() in content
    keys = [bytes.fromhex(one.decode()) for one in set(re.findall(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])", content))]
    keys += [b"", bytes.fromhex(nonce)]

    def spellings(counts):
        text = json.dumps(counts, separators=(",", ":"))
        return [text, f"data:{nonce}:{text}", json.dumps(["0", counts], separators=(",", ":"))]

    def found(keys):
        return [
            counts
            for counts in ([n, 100 - n] for n in range(101))
            for text in spellings(counts)
            for one in keys
            if hmac.new(one, text.encode(), hashlib.sha256).hexdigest() == mac
        ]

    assert found(keys) == []
    assert found([bytes.fromhex(key.read_text())]) == [[37, 63]]  # the search finds them with the key


def test_input_changes_are_not_reported_without_the_digest_key(key, tmp_path, monkeypatch):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    moved = key.rename(key.with_name("moved"))
    with pytest.warns(UserWarning, match="without the key of this machine"), opened(place) as stream:
        assert stream.input_matches([1, 2], time=0) is None
        assert not key.exists()  # made when it is needed, not when it is asked for
        stream.ledger.sign()
        stream.release([70, 30], time=1)
        assert stream.input_matches([1, 2], time=1) is False
        assert stream.input_matches([1, 2], time=0) is None
        key.chmod(0o640)  # others could have read it
        assert stream.input_matches([1, 2], time=1) is None
        monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(moved))
        assert stream.input_matches([70, 30], time=0) is True
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(tmp_path / "release.db" / "no folder"))
    with opened(tmp_path / "without.db") as stream:
        stream.release([70, 30], time=3)
        assert stream.ledger[0].digest is None
        assert stream.input_matches([1, 2], time=3) is None


# Export, forecast, backup


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json"])
def test_export_has_every_step_and_output(suffix, place, tmp_path):
    with opened(place) as stream:
        handed = [stream.release([70, 30], time=time).tolist() for time in range(3)]
        stream.skip(time=3)
    adopt_correlation(place, LATER)
    with Ledger(place) as ledger:
        export_ledger(ledger, tmp_path / f"out{suffix}")
        leakage = [row.leakage for row in ledger[:]]
    if suffix == ".parquet":
        from pyarrow import parquet

        table = parquet.read_table(tmp_path / "out.parquet")
        rows = table.to_pylist()
        said = json.loads(table.schema.metadata[b"temporaldp"])
        assert said["events"][0]["kind"] == "adopt"
    elif suffix == ".json":
        rows = json.loads((tmp_path / "out.json").read_text())["steps"]
    else:
        import csv

        with (tmp_path / "out.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
    assert [[int(row["count 0"]), int(row["count 1"])] for row in rows[:3]] == handed
    assert rows[3]["count 0"] in (None, "")
    assert [float(row["worst_leakage"]) for row in rows] == leakage


def test_forecast_agrees_with_the_release(place):
    with opened(place) as stream:
        stream.release([70, 30], time=0)
        told = stream.forecast([0, 1, 2, 3])
        assert len(stream) == 1
        for time in (1, 2, 3):
            stream.release([70, 30], time=time)
        assert [(one.time, one.epsilon, one.leakage) for one in told] == [
            (row.time, row.epsilon, row.leakage) for row in stream.ledger[1:]
        ]


def test_backup_during_a_release(tmp_path):
    place, copy = tmp_path / "release.db", tmp_path / "copy.db"
    with opened(place) as stream:
        for time in range(3):
            stream.release([70, 30], time=time)
        stream.ledger.back_up(copy)
        stream.release([70, 30], time=3)
        with pytest.raises(LedgerError, match="exists"):
            stream.ledger.back_up(copy)
        with pytest.raises(LedgerError, match=r"cannot write the backup|cannot use"):
            stream.ledger.back_up(tmp_path / "missing" / "copy.db")
        head = stream.ledger.head
    assert copy.stat().st_mode & 0o777 == 0o600
    with pytest.warns(UserWarning, match="older copy"), Ledger(copy) as ledger:
        assert len(ledger) == 3
        with pytest.raises(LedgerError, match="older copy"):
            ledger.verify(head=head)
    with pytest.raises(LedgerError, match="older copy"):
        opened(copy)


def test_accountant_with_an_adoption_is_refused(tmp_path):
    """Adoptions of a release are recorded in its ledger and counted from it."""
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0).adopt(LATER)
    with pytest.raises(InputError, match="adopted nothing"):
        ContinualRelease(MECHANISM, ledger=tmp_path / "release.db", accountant=accountant)
