"""Epochs of the calendar: which month a step is in, by whose clock, and what all months of any lengths leak."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import renewing
from exact_oracles import boxes_of, enumerated_boxes
from renewing import ADVERSARY, BACK, FORTH, PLAN
from temporaldp import DiscreteLaplaceHistogram, InputError, Ledger, plan_budget
from temporaldp.base.errors import LedgerMismatchError, SpentError
from temporaldp.core.planning import leakage_of_epochs
from temporaldp.publish.release.renewal import Epochs, renewal_of, require_enough_steps
from temporaldp.publish.report.sentences import renewed_line

DAYS = ["2024-01-30", "2024-01-31", "2024-02-01", "2024-02-10", "2024-02-29", "2024-03-01", "2024-05-04", "2024-05-05"]


opened = partial(renewing.opened, renewed="monthly")


def leaked(epsilons):
    """The largest leakage of any step, by enumeration."""
    matrices = ([rows] * (len(epsilons) - 1) for rows in (BACK, FORTH))
    return enumerated_boxes(*matrices, *boxes_of(epsilons, 2))[2].max()


def starts(every, times):
    return [times[step] for step in Epochs(every, 100).starts(times)]


def test_an_epoch_begins_with_the_first_step_of_a_day_a_week_a_month_or_a_year():
    days = [(date(2023, 12, 27) + timedelta(days=k)).isoformat() for k in range(70)]
    assert starts("monthly", days) == ["2023-12-27", "2024-01-01", "2024-02-01", "2024-03-01"]
    assert starts("weekly", days[:14]) == ["2023-12-27", "2024-01-01", "2024-01-08"]  # Mondays
    assert starts("daily", ["2024-01-01T22:00", "2024-01-01T23:00", "2024-01-02T00:00"])[1:] == ["2024-01-02T00:00"]
    assert starts("yearly", days) == ["2023-12-27", "2024-01-01"]
    assert starts("monthly", ["2024-01-31", "2024-05-01", "2025-05-01"]) == ["2024-01-31", "2024-05-01", "2025-05-01"]
    assert starts("monthly", ["2024-01", "2024-02"]) == ["2024-01", "2024-02"]
    assert Epochs("steps", 3).starts(list("abcdefg")) == [0, 3, 6]


def test_epochs_follow_the_time_zone_of_the_label():
    assert starts("monthly", ["2024-03-31T23:30:00+02:00", "2024-04-01T00:30:00+02:00"])[1:] == [
        "2024-04-01T00:30:00+02:00"
    ]
    late = "2024-04-01T00:30:00+02:00", "2024-03-31T23:30:00+00:00", "2024-04-01T02:30:00+02:00"
    assert starts("monthly", late) == [late[0]]  # a clock that goes back begins no epoch that is over
    assert starts("monthly", ["2024-03-31T23:59:59.9999999", "2024-04-01T00:00:00"])[1:] == ["2024-04-01T00:00:00"]


@pytest.mark.long
def test_epochs_follow_the_time_zone_of_the_project(tmp_path):
    """With oracle `zoneinfo`: the first hour of each day in Auckland, across the end of its daylight saving."""
    hours = [datetime(2024, 4, 5, 12, tzinfo=UTC) + timedelta(hours=k) for k in range(80)]
    days = [hour.astimezone(ZoneInfo("Pacific/Auckland")).date() for hour in hours]
    first = [k for k, day in enumerate(days) if k == 0 or day != days[k - 1]]
    labels = [f"{hour:%Y-%m-%dT%H:%MZ}" for hour in hours]
    assert Epochs("daily", 25, "Pacific/Auckland").starts(labels) == first
    assert starts("daily", labels) == [label for label in labels if label == labels[0] or "T00" in label]
    assert Epochs("daily", 2, "Pacific/Auckland").starts(["2024-04-05T23:00", "2024-04-06T00:00"]) == [0, 1]
    zone = partial(renewing.opened, tmp_path / "a.db", renewed="daily", timezone="Pacific/Auckland")
    with zone() as release:
        for label in ("2024-06-03T12:00Z", "2024-06-04T00:00Z", "2024-06-04T12:00Z"):
            release.release([70, 30], time=label)
        planned = [DiscreteLaplaceHistogram(2).epsilon_spent(float(PLAN.epsilons[k])) for k in (0, 1, 0)]
        renewal = renewal_of(release.ledger)
        assert release.ledger.epsilons.tolist() == planned
        assert renewal.epochs_of(release.ledger.times) == [(0, 2), (2, 3)]
        assert renewed_line(renewal).startswith("daily, by the clock of Pacific/Auckland; each epoch satisfies 1-DP_T")
    with pytest.raises(LedgerMismatchError, match=r"timezone \(traces.timezone in a project file"):
        zone(timezone="UTC")
    with pytest.raises(LedgerMismatchError, match=r"renewal \(privacy.renew in a project file"):
        zone(renewed="weekly")
    for terms, message in (({"timezone": "Mars"}, "name of a time zone"), ({"renewed": "steps"}, "renewal by steps")):
        with pytest.raises(InputError, match=message):
            zone(**terms)


def test_epoch_of_the_next_step():
    epochs = Epochs("monthly", 2)
    assert epochs.position("2024-01-01") == 0
    epochs = epochs.after("2024-01-01")
    assert (epochs.position("2024-01-09"), epochs.position("2024-02-01")) == (1, 0)
    again = epochs.after("2024-01-02")
    with pytest.raises(SpentError, match="held back until the level is renewed"):
        again.position("2024-01-31")
    assert (again.position("2024-02-01"), again.began, epochs.n_steps, again.n_steps) == (0, 0, 1, 2)
    with pytest.raises(InputError, match="expected a date"):
        epochs.position("Monday 3")


def test_plan_must_cover_the_longest_month():
    require_enough_steps("monthly", 31, "86400 seconds")
    require_enough_steps("yearly", 12, "1 months")
    require_enough_steps("monthly", 1, None)
    require_enough_steps("steps", 1, "86400 seconds")
    for every, most, step in (
        ("monthly", 30, "86400 seconds"),
        ("daily", 23, "3600 seconds"),
        ("weekly", 167, "3600 seconds"),
        ("yearly", 11, "1 months"),
    ):
        with pytest.raises(InputError, match=f"plan with a horizon of {most + 1}"):
            require_enough_steps(every, most, step)


@pytest.mark.parametrize(
    ("every", "zone", "step", "needed", "said"),
    [
        ("daily", "Europe/Amsterdam", "3600 seconds", 25, UserWarning),
        ("daily", "Australia/Lord_Howe", "1800 seconds", 49, UserWarning),
        ("daily", "America/Sao_Paulo", "3600 seconds", 25, UserWarning),  # where midnight is skipped or repeated
        ("daily", "Asia/Tokyo", "3600 seconds", 24, InputError),
        ("weekly", "Pacific/Auckland", "3600 seconds", 169, UserWarning),
        ("monthly", "Europe/Amsterdam", "3600 seconds", 31 * 24 + 1, UserWarning),
        ("monthly", "America/New_York", "3600 seconds", 31 * 24 + 1, UserWarning),  # October, until 2006
        ("monthly", "Europe/Amsterdam", "86400 seconds", 31, InputError),
        ("yearly", "Europe/Amsterdam", "1 months", 12, InputError),
    ],
)
def test_a_plan_that_is_too_short_for_the_longest_epoch_of_the_zone_is_noticed(every, zone, step, needed, said):
    """What every epoch lacks is an error; what the longest ones by a zone's clock lack, a warning."""
    require_enough_steps(every, needed, step, zone)
    with pytest.raises(said, match=f"plan with a horizon of {needed}"):
        require_enough_steps(every, needed - 1, step, zone)


@pytest.mark.long
def test_a_day_of_25_hours_is_released_to_its_end(tmp_path):
    zone = {"renewed": "daily", "step": "3600 seconds", "timezone": "Europe/Amsterdam"}
    for expected in (pytest.warns(UserWarning, match="plan with a horizon of 25"), nullcontext()):  # said once
        with expected, renewing.opened(tmp_path / "b.db", plan=plan_budget(ADVERSARY, alpha=1.0, horizon=24), **zone):
            pass
    with renewing.opened(tmp_path / "a.db", plan=plan_budget(ADVERSARY, alpha=1.0, horizon=25), **zone) as release:
        for k in range(27):
            release.release(
                [70, 30], time=f"{datetime(2024, 10, 26, 22, tzinfo=UTC) + timedelta(hours=k):%Y-%m-%dT%H:%MZ}"
            )
        assert renewal_of(release.ledger).epochs_of(release.ledger.times) == [(0, 25), (25, 27)]


@pytest.mark.long
def test_each_month_satisfies_its_level_and_all_satisfy_the_promise(place, monkeypatch):
    monkeypatch.setattr("temporaldp.publish.release.step.STEPS_BETWEEN_CHECKPOINTS", 3)
    with opened(place) as release:  # without a process in between
        forecast = release.forecast(DAYS)
    for day in DAYS:  # a process a day
        with opened(place) as release:
            assert release.release([70, 30], time=day) is not None
    with opened(place) as release:
        assert release.ledger.checkpoint.end.n_steps == 6
        assert release.forecast(["2024-06-01"])[0].parameter == PLAN.epsilons[0]
        assert release.forecast(["2024-05-06"])[0].parameter == PLAN.epsilons[2]
        release.release([70, 30], time="2024-05-06")
        with pytest.raises(SpentError, match="all of this one are over"):
            release.release([70, 30], time="2024-05-31")
        renewal, epsilons = renewal_of(release.ledger), release.ledger.epsilons
        told = [row.leakage for row in release.ledger[:]]
    lengths = [2, 3, 1, 3]
    assert np.diff(renewal.epochs_of([*DAYS, "2024-05-06"])).ravel().tolist() == lengths
    planned = DiscreteLaplaceHistogram(2)
    expected = [planned.epsilon_spent(float(PLAN.epsilons[k])) for length in lengths for k in range(length)]
    assert epsilons.tolist() == expected
    assert [one.epsilon for one in forecast] == expected[:-1]
    assert [one.leakage for one in forecast] == told[:-1]
    for n in range(1, 10):
        assert told[n - 1] == pytest.approx(leaked(epsilons[:n]), rel=1e-11)
    assert 1.0 < told[-1] <= renewal.promise


@pytest.mark.parametrize(
    "epsilons",
    [(0.6, 0.4, 0.3), *(pytest.param(each, marks=pytest.mark.long) for each in [(0.3, 0.4, 0.6), (0.4, 0.6, 0.4)])],
)
def test_promise_covers_months_of_any_lengths(epsilons):
    """And close to the worst ones, of a step each, where the first step of a month spends most."""
    promised, worst = leakage_of_epochs(ADVERSARY, [max(epsilons)]), 0.0
    for lengths in [*itertools.product((1, 2, 3), repeat=4), (1,) * 9]:
        spent = np.concatenate([epsilons[:length] for length in lengths])[:9]
        worst = max(worst, leaked(spent))
    assert worst <= promised
    assert promised <= 1.02 * worst or epsilons[0] < max(epsilons)


@pytest.mark.long
def test_ledger_records_the_calendar_of_its_renewal(tmp_path):
    with opened(tmp_path / "a.db") as release:
        assert release.ledger.configuration["renewal"] == "monthly"
        assert release.guard.promise == leakage_of_epochs(ADVERSARY, [PLAN.epsilons.max()])
        release.release([70, 30], time="2024-01-01")
    with Ledger(tmp_path / "a.db") as ledger:
        assert renewal_of(ledger).every == "monthly"
    with pytest.raises(InputError, match="horizon of 31"):
        opened(tmp_path / "b.db", step="86400 seconds")
    with pytest.raises(InputError, match="steps, daily, weekly, monthly, yearly"):
        opened(tmp_path / "c.db", renewed="hourly")
