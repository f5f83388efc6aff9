"""Releases under a correlation that depends on a clock: a time without data keeps its phase."""

from __future__ import annotations

import json

import numpy as np
import pytest

from command import refused, temporaldp
from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    TemporalAccountant,
    Trajectories,
    TransitionMatrix,
    plan_budget,
    release_histograms,
    temporal_leakage,
)
from temporaldp.correlation import Periodic
from temporaldp.errors import SpentError
from temporaldp.files.moments import labels_between

NIGHT = TransitionMatrix([[0.95, 0.05], [0.05, 0.95]])
DAY = TransitionMatrix([[0.55, 0.45], [0.45, 0.55]])
CLOCK = Periodic([DAY, DAY, NIGHT, NIGHT, NIGHT, NIGHT])
ADVERSARY = Adversary(CLOCK, CLOCK)
HOURS = [f"2024-03-01T{hour:02d}:00" for hour in range(8)]
EPSILON = 0.3


def traces(hours):
    """Six people at these hours."""
    codes = np.random.default_rng(7).integers(2, size=(6, len(hours)))
    positions = [HOURS.index(hour) for hour in hours]
    consecutive = np.diff(positions) == 1
    return Trajectories(codes, states=["0", "1"], times=hours, consecutive=consecutive, step="3600 seconds")


def opened(place, **given):
    accountant = TemporalAccountant(ADVERSARY, alpha=3.0, horizon=8)
    return ContinualRelease(
        DiscreteLaplaceHistogram(2), ledger=place, step="3600 seconds", accountant=accountant, **given
    )


def test_a_step_that_was_left_out_keeps_its_phase(tmp_path):
    with opened(tmp_path / "release.db") as stream:
        stream.release([4, 2], time=HOURS[0], epsilon=EPSILON)
        with pytest.raises(InputError, match=r"is 2 steps after .* every step counts"):
            stream.release([4, 2], time=HOURS[2], epsilon=EPSILON)
        assert stream.completed([HOURS[2]]) == [f"{HOURS[1]}:00", HOURS[2]]
        stream.skip(time=HOURS[1])
        for hour in HOURS[2:6]:
            stream.release([4, 2], time=hour, epsilon=EPSILON)
        true = temporal_leakage(ADVERSARY, [EPSILON, 0.0, *[EPSILON] * 4]).worst
        packed = temporal_leakage(ADVERSARY, [EPSILON] * 5).worst
        assert stream.accountant.total() == pytest.approx(true, rel=1e-9)
        assert packed < true - 0.01  # steps that close up would be taken for the day, and leak too little


def test_a_table_passes_over_the_steps_that_it_lacks(tmp_path):
    data = traces(HOURS[:2] + HOURS[4:6])
    with opened(tmp_path / "release.db") as stream:
        forecast = stream.forecast(data.times)
        assert [one.epsilon > 0.0 for one in forecast] == [True, True, False, False, True, True]
        released = release_histograms(data, stream)
        assert released.times == data.times
        assert [row.output is None for row in stream.ledger[:]] == [False, False, True, True, False, False]
        assert release_histograms(data, stream) == released  # again: what the ledger has
        with pytest.raises(SpentError, match="room for 2 more"):
            stream.require_next([])
            release_histograms(
                Trajectories(
                    [[0, 1], [1, 1]],
                    states=["0", "1"],
                    times=["2024-03-01T08:00", "2024-03-01T09:00"],
                    step="3600 seconds",
                ),
                stream,
            )


def test_a_plan_of_a_clock_needs_every_step(tmp_path):
    plan = plan_budget(ADVERSARY, alpha=3.0, horizon=8)
    assert plan.source.has_phases
    with pytest.raises(InputError, match="data of every step"):
        release_histograms(traces(HOURS[:2] + HOURS[4:6]), plan)
    with ContinualRelease(
        DiscreteLaplaceHistogram(2), ledger=tmp_path / "plan.db", step="3600 seconds", plan=plan
    ) as stream:
        stream.release([4, 2], time=HOURS[0])
        with pytest.raises(InputError, match="every step counts"):
            stream.release([4, 2], time=HOURS[2])
        stream.skip(time=HOURS[1])
        stream.release([4, 2], time=HOURS[2])
        assert stream.ledger.epsilons[2] == pytest.approx(plan.epsilons[2])
    anytime = plan_budget(ADVERSARY, alpha=3.0)  # the same at every phase: steps may be left out
    assert len(release_histograms(traces(HOURS[:2] + HOURS[4:6]), anytime).times) == 4


@pytest.mark.parametrize(
    ("step", "before", "label", "between"),
    [
        ("3600 seconds", "2024-03-01T22:00", "2024-03-02T01:00", ["2024-03-01T23:00:00", "2024-03-02T00:00:00"]),
        ("3600 seconds", "2024-03-01T22:00Z", "2024-03-02T00:00Z", ["2024-03-01T23:00:00Z"]),
        ("86400 seconds", "2024-03-01", "2024-03-03", ["2024-03-02T00:00:00"]),
        ("2", "10", "16", ["12", "14"]),
        ("1", "7", "8", []),
        ("1 months", "2024-01", "2024-04", []),
    ],
)
def test_labels_between_two_times(step, before, label, between):
    assert labels_between(step, before, label) == between


def test_an_audit_of_a_clock_needs_every_step(tmp_path):
    rng = np.random.default_rng(3)
    full = [f"2024-03-{day:02d}T{hour:02d}:00" for day in (1, 2) for hour in range(24)]

    def written(name, times):
        rows = [f"{user},{time},{rng.integers(2)}" for user in range(9) for time in times]
        place = tmp_path / name
        place.write_text("user,time,state\n" + "\n".join(rows) + "\n")
        return str(place)

    history = written("history.csv", full)
    holes = written("nights.csv", [time for time in full if time[11:13] < "06"])
    command = ["audit", holes, "--history", history, "--epsilon", 0.1, "--set", "correlation.period=24"]
    assert "times are missing between '2024-03-01T05:00' and '2024-03-02T00:00'" in refused(*command)
    found = temporaldp(*command, "--horizon", 30, "--json")
    assert found.returncode == 0 and len(json.loads(found.stdout)["temporal"]) == 30
