"""How far a release goes: rows with wrong dates stop it before anything is drawn; people may leave one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from making import from_sequences
from renewing import BACK, FORTH
from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    TemporalAccountant,
    TransitionMatrix,
    plan_budget,
    read_traces,
    release_histograms,
)
from temporaldp.base.errors import TraceError
from temporaldp.data.files import read_counts

ADVERSARY = Adversary(TransitionMatrix(BACK, states=("a", "b")), TransitionMatrix(FORTH, states=("a", "b")))
PEOPLE = 300
EVENTS = {"every": "1d", "fill": "last", "sort": True}


def table_of(rows):
    return pd.DataFrame(rows, columns=["user", "time", "state"])


def of_days(days=3, people=PEOPLE):
    """Everybody at noon of each day of March."""
    return [(f"u{u}", f"2024-03-{day + 1:02}T12:00", "ab"[u % 2]) for u in range(people) for day in range(days)]


def opened(place):
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0)
    return ContinualRelease(DiscreteLaplaceHistogram(2), ledger=place, accountant=accountant)


@pytest.mark.long
@pytest.mark.parametrize("how", [EVENTS, {"sort": True}])
@pytest.mark.parametrize("when", ["2024-06-30T12:00", "2024-03-04T12:00"])
def test_a_row_with_a_wrong_date_stops_the_release_and_the_corrected_table_is_released(how, when, tmp_path):
    rows = of_days()
    wrong = read_traces(table_of([*rows[:150], ("u49", when, "a"), *rows[150:]]), **how)
    plan = plan_budget(ADVERSARY, alpha=1.0)
    with opened(tmp_path / "r.db") as release:
        for target in (release, plan):
            with pytest.raises(TraceError, match=r"data row 151 is later, .*--set release\.reached=0"):
                release_histograms(wrong, target)
        assert len(release) == 0
        corrected = read_traces(table_of(rows), **how)
        assert len(release_histograms(corrected, release).times) == 3
        with pytest.raises(TraceError, match="data row 151"):
            release_histograms(wrong, release)
        released = release_histograms(wrong, release, reached=0.0).times  # the owner's word
        assert len(released) == len(wrong.times) == len(release)
        assert release_histograms(wrong, release).times == released  # nothing is new


@pytest.mark.long
def test_a_row_far_behind_the_last_few_people_is_found():
    """Trips thin out towards the end of a table: few are left at its last hours, and one is months later."""
    hours = [(u, h) for u in range(PEOPLE) for h in range(72 - u % 50) if (u + h) % 3 == 0]
    rows = [
        (f"u{u}", f"{datetime(2024, 3, 1, 0, 30) + timedelta(hours=h):%Y-%m-%dT%H:%M}", "ab"[h % 2]) for u, h in hours
    ]
    how = EVENTS | {"every": "1h"}
    plan = plan_budget(ADVERSARY, alpha=1.0)
    assert release_histograms(read_traces(table_of(rows), **how), plan).times
    late = [*rows, ("u7", "2024-06-30T12:00", "b")]
    with pytest.raises(TraceError, match=f"data row {len(late)} is later"):
        release_histograms(read_traces(table_of(late), **how), plan)


@pytest.mark.parametrize("gap", [pytest.param(1, marks=pytest.mark.long), 5])
def test_people_leave_one_by_one(gap):
    """With a row at each step, or now and then; as events, as numbered steps, as sequences in memory, and as counts."""
    plan = plan_budget(ADVERSARY, alpha=1.0)
    seen = [(u, t) for u in range(PEOPLE) for t in range(u % gap, 20 + u, gap)]
    rows = [(f"u{u}", f"{datetime(2020, 1, 1) + timedelta(days=t):%Y-%m-%d}", "ab"[t % 2]) for u, t in seen]
    table = read_traces(table_of(rows), **EVENTS)
    assert len(release_histograms(table, plan).times) == table.n_times == max(t for _, t in seen) + 1
    numbered = read_traces(table_of([(f"u{u}", t, "ab"[t % 2]) for u, t in seen]))
    assert len(release_histograms(numbered, plan).times) == numbered.n_times
    if gap == 1:
        walks = from_sequences([["ab"[t % 2] for t in range(20 + u)] for u in range(PEOPLE)])
        assert len(release_histograms(walks, plan).times) == walks.n_times
        counts = pd.DataFrame(
            [(t, state, max(PEOPLE - max(t - 19, 0), 0) // 2 + 1) for t in range(300) for state in "ab"],
            columns=["time", "state", "count"],
        )
        assert len(release_histograms(read_counts(counts=counts), plan).times) == 300


def test_long_sequences_of_few_and_counts_of_few_are_found():
    plan = plan_budget(ADVERSARY, alpha=1.0)
    walks = from_sequences([["a", "b"] * (3 if u == 4 else 2) for u in range(PEOPLE)])
    with pytest.raises(TraceError, match=r"expected no step after '3', .* data row 5 is later"):
        release_histograms(walks, plan)
    assert len(release_histograms(walks[:50], plan).times) == 6  # one of 50 is more than 1 %
    with pytest.raises(TraceError, match="data row 5"):
        release_histograms(walks[:50], plan, reached=0.1)
    counts = pd.DataFrame(
        [(t, s, 150 if t < 3 else 1) for t in (0, 1, 2, 9) for s in "ab"], columns=["time", "state", "count"]
    )
    with pytest.raises(TraceError, match="the counts at '9' is later"):
        release_histograms(read_counts(counts=counts), plan)


@pytest.mark.parametrize("zone", ["", "Z"])
def test_no_step_lies_beyond_the_clock(zone, tmp_path):
    now = datetime.now(UTC).replace(microsecond=0)

    def until(end):
        days = [end - timedelta(days=k) for k in (2, 1, 0)]
        return table_of([(f"u{u}", f"{day:%Y-%m-%dT%H:%M}{zone}", "ab"[u % 2]) for u in range(5) for day in days])

    with opened(tmp_path / "r.db") as release:
        for how in ({}, EVENTS):
            with pytest.raises(TraceError, match=r"(data row \d+, ){2}data row \d+ and \d+ more are in the future"):
                release_histograms(read_traces(until(now + timedelta(days=3)), **how), release)
        assert len(release) == 0
        # Events of this day belong to the step at its end.
        assert len(release_histograms(read_traces(until(now), **EVENTS), release).times) == 3
