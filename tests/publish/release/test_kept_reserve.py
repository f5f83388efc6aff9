"""The reserve that a ledger keeps: an answer that is tried, never believed."""

from __future__ import annotations

import pytest

from streams import keep_instead, kept, opened
from temporaldp.core.accounting.exact.method import Exact


@pytest.fixture
def ledger(tmp_path):
    """A release with one step."""
    place = tmp_path / "release.db"
    with opened(place) as stream:
        stream.release([70, 30], time=0)
    return place


def test_reopening_does_not_recompute_the_reserve(ledger, monkeypatch):
    def unasked(*_):
        raise AssertionError("the reserve was looked for")

    monkeypatch.setattr(Exact, "sustainable_epsilon", unasked)
    with opened(ledger) as stream:
        stream.release([71, 29], time=1)
        first, second = stream.ledger.epsilons
        assert first == second == stream.accountant.reserve == float(*kept(ledger, "reserve").values())


@pytest.mark.parametrize("written", ["0.9", "1e300", "nan", "-1", "many"])
def test_invalid_stored_reserve_is_recomputed(ledger, written):
    ((name, right),) = ((name, float(text)) for name, text in kept(ledger, "reserve").items())
    keep_instead(ledger, name, written)
    with opened(ledger) as stream:
        assert stream.accountant.reserve == right
        stream.release([71, 29], time=1)
        assert stream.ledger.epsilons.tolist() == [right, right]


def test_requested_reserve_is_not_stored(ledger, tmp_path):
    with opened(tmp_path / "asked.db", reserve=0.01) as stream:
        assert stream.accountant.reserve == 0.01
    assert not kept(tmp_path / "asked.db", "reserve")
