"""Ledgers that earlier versions made, as those versions wrote them (`formats/`), go on in this one."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from methods import method_of
from old_ledgers import BOUNDS, HEADS, restored
from streams import MATRIX, opened
from temporaldp import Adversary, Ledger, LedgerError, TransitionMatrix, adopt_correlation, temporal_leakage


@pytest.mark.parametrize("name", HEADS)
def test_an_old_ledger_keeps_its_head_and_goes_on(name, place):
    restored(name, place)
    with Ledger(place) as ledger:
        assert ledger.head == HEADS[name]
        assert ledger.times == ("0", "1", "2", "3", "4")
        assert [row.format for row in ledger[:]] == [int(name[-1])] * 5
        before = [None if one is None else one.tolist() for one in ledger.outputs]
    with opened(place, bound=BOUNDS[name]) as stream:
        assert (
            stream.release([70, 30], time=0).tolist() == before[0]
        )  # no digest was kept: nothing is said of the input
        stream.release([70, 30], time=5)
        assert stream.ledger[5].format == 4
        expected = temporal_leakage(
            Adversary(MATRIX, MATRIX), stream.ledger.epsilons, accounting=method_of(BOUNDS[name])
        ).worst
        assert stream.ledger[-1].leakage == pytest.approx(expected, rel=1e-11)
    with Ledger(place) as ledger:
        ledger.verify(head=HEADS[name])
        assert [None if one is None else one.tolist() for one in ledger.outputs[:5]] == before


def test_the_rows_of_an_old_ledger_are_still_checked(tmp_path):
    place = restored("format3", str(tmp_path / "release.db"))
    with Ledger(place):
        pass
    for change in ("epsilon = 0.01", "format = 4", "format = 7", "digest = 'ab', format = 4"):
        copy = tmp_path / "copy.db"
        copy.write_bytes(Path(place).read_bytes())
        copy.chmod(0o600)
        with sqlite3.connect(copy) as connection:
            connection.execute(f"UPDATE temporaldp_steps SET {change} WHERE step = 2")
        connection.close()
        with pytest.raises(LedgerError, match=r"step 2 .* was changed"):
            Ledger(copy)


def test_what_an_old_ledger_was_for_is_still_checked(tmp_path):
    place = restored("format3", str(tmp_path / "release.db"))
    with Ledger(place):
        pass
    with sqlite3.connect(place) as connection:
        (text,) = connection.execute("SELECT configuration FROM temporaldp_ledger").fetchone()
        forged = json.loads(text)
        forged["began"]["alpha"] = 9.0
        connection.execute("UPDATE temporaldp_ledger SET configuration = ?", [json.dumps(forged)])
    connection.close()
    with pytest.raises(LedgerError, match="what the ledger is for was changed"):
        Ledger(place)
    forged["alpha"] = 9.0  # in both places: then the chain no longer begins there
    with sqlite3.connect(place) as connection:
        forged = json.dumps(forged, sort_keys=True, separators=(",", ":"))
        connection.execute("UPDATE temporaldp_ledger SET configuration = ?", [forged])
    connection.close()
    with pytest.raises(LedgerError, match=r"step 0 .* was changed"):
        Ledger(place)
    forged = json.loads(text)
    forged["alpha"] = 9.0
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE temporaldp_ledger SET configuration = ?", [json.dumps(forged)])
    connection.close()
    with pytest.raises(LedgerError, match="what the ledger is for was changed"):
        Ledger(place)


def test_a_ledger_of_a_newer_version_is_refused_and_left_alone(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    with sqlite3.connect(place) as connection:
        connection.execute(
            "UPDATE temporaldp_ledger SET configuration = replace(configuration, 'ledger 4', 'ledger 5')"
        )
    connection.close()
    before = place.read_bytes()
    for act in (lambda: Ledger(place), lambda: opened(place)):
        with pytest.raises(LedgerError, match="newer version"):
            act()
    assert place.read_bytes() == before


def test_adopting_asks_for_the_matrices_that_an_old_ledger_does_not_keep(tmp_path):
    place = restored("format2", str(tmp_path / "release.db"))
    busy = TransitionMatrix([[0.9, 0.1], [0.1, 0.9]])
    with pytest.raises(LedgerError, match="run the release once more"):
        adopt_correlation(place, Adversary(busy, busy))
    with opened(place):
        pass
    assert adopt_correlation(place, Adversary(busy, busy)).step == 5
