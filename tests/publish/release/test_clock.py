"""Releases under a correlation that depends on a clock: a time without data keeps its phase."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from command import refused, temporaldp
from temporaldp import (
    Adversary,
    BudgetError,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    PlanError,
    TemporalAccountant,
    Trajectories,
    TransitionMatrix,
    load_plan,
    plan_budget,
    release_histograms,
    save_plan,
    temporal_leakage,
)
from temporaldp.base.errors import SpentError
from temporaldp.core.correlation import Periodic, Provenance
from temporaldp.core.correlation.clock import Clock
from temporaldp.data.tables.moments import labels_between

NIGHT = TransitionMatrix([[0.95, 0.05], [0.05, 0.95]])
DAY = TransitionMatrix([[0.55, 0.45], [0.45, 0.55]])
CLOCK = Periodic([DAY, DAY, NIGHT, NIGHT, NIGHT, NIGHT])
ADVERSARY = Adversary(CLOCK, CLOCK)
HOURS = [f"2024-03-01T{hour:02d}:00" for hour in range(8)]
EPSILON = 0.3
CLOCKED = Provenance("history", step="3600 seconds", clock=Clock(HOURS[0], "3600 seconds", 6))


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


def test_skipped_step_keeps_its_phase(tmp_path):
    with opened(tmp_path / "release.db") as stream:
        stream.release([4, 2], time=HOURS[0], epsilon=EPSILON)
        with pytest.raises(InputError, match=r"is 2 steps after .* every step counts"):
            stream.release([4, 2], time=HOURS[2], epsilon=EPSILON)
        assert stream.completed([HOURS[2]]) == HOURS[1:3]
        stream.skip(time=HOURS[1])
        for hour in HOURS[2:6]:
            stream.release([4, 2], time=hour, epsilon=EPSILON)
        true = temporal_leakage(ADVERSARY, [EPSILON, 0.0, *[EPSILON] * 4]).worst
        packed = temporal_leakage(ADVERSARY, [EPSILON] * 5).worst
        assert stream.accountant.total() == pytest.approx(true, rel=1e-9)
        assert packed < true - 0.01  # steps that close up would be taken for the day, and leak too little


@pytest.mark.long
def test_missing_steps_of_a_table_are_skipped(tmp_path):
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


@pytest.mark.long
def test_plan_of_a_periodic_correlation_needs_every_step(tmp_path):
    plan = plan_budget(ADVERSARY, alpha=3.0, horizon=8)
    assert plan.has_phases
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


@pytest.mark.long
def test_audit_of_a_periodic_correlation_needs_every_step(tmp_path):
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
    plan, clock = tmp_path / "plan.json", ("--set", "correlation.period=24", "--set", "correlation.phase=0")
    made = temporaldp("plan", "--history", history, "--alpha", 1, "--horizon", 48, "-o", plan, *clock)
    assert made.returncode == 0, made.stderr
    released = temporaldp("release", written("whole.csv", full), "--plan", plan, "-o", tmp_path / "out.csv")
    assert released.returncode == 0 and "phase" not in released.stderr
    later = written("later.csv", full[7:])
    for more in ([], ["--ledger", tmp_path / "release.db"]):
        message = refused("release", later, "--plan", plan, "-o", tmp_path / "later-out.csv", *more)
        assert "at phase 0 of the clock" in message and "correlation.phase=7" in message
    known = load_plan(plan)
    save_plan(replace(known, provenance=replace(known.provenance, clock=None)), plan)  # as for matrices of a file
    released = temporaldp("release", later, "--plan", plan, "-o", tmp_path / "unchecked.csv")
    assert released.returncode == 0 and "phase that it was made for" in " ".join(released.stderr.split())


def test_plan_file_stores_the_phases_of_its_steps(tmp_path):
    plan = replace(plan_budget(ADVERSARY, alpha=3.0, horizon=6), provenance=CLOCKED)
    save_plan(plan, tmp_path / "plan.json")
    loaded = load_plan(tmp_path / "plan.json")
    assert loaded.provenance == CLOCKED and loaded.has_phases and loaded.states == ("0", "1")
    two_later = Periodic([NIGHT, NIGHT, NIGHT, NIGHT, DAY, DAY])
    assert loaded.leakage_to(Adversary(two_later, two_later), 6).worst > 2.2 * 3.0  # what the refusals below prevent
    hours = HOURS[:6]
    assert len(release_histograms(traces(hours[2:6]), loaded, start=2).times) == 4
    with pytest.raises(InputError, match=r"step 1 of the plan at phase 0 .* is at phase 2"):
        release_histograms(traces(hours[2:6]), loaded)
    with ContinualRelease(DiscreteLaplaceHistogram(2), ledger=tmp_path / "one.db", plan=loaded) as stream:
        with pytest.raises(InputError, match="is at phase 1"):
            stream.release([4, 2], time=hours[1])
        stream.release([4, 2], time=hours[0])
        stream.skip(time=hours[1])
        stream.release([4, 2], time=hours[2])


# A level that is renewed under a clock

EPOCH = plan_budget(ADVERSARY, alpha=1.0, horizon=6)


def renewed(place, every="steps", *, step="14400 seconds", adversary=ADVERSARY):
    """Four hours a step: six steps, a period of the clock, are a day."""
    return ContinualRelease(
        DiscreteLaplaceHistogram(2),
        ledger=place,
        plan=EPOCH,
        accountant=TemporalAccountant(adversary),
        renewed=every,
        step=step,
    )


def every_four_hours(n_steps, first="2024-03-01T00:00"):
    return [str(np.datetime64(first) + 4 * 60 * k) for k in range(n_steps)]


@pytest.mark.parametrize("every", ["steps", "daily"])
@pytest.mark.long
def test_level_is_renewed_under_a_periodic_correlation(every, tmp_path):
    place, times = tmp_path / "release.db", every_four_hours(20)
    for day in (times[:6], times[6:13], times[13:]):  # each by a process of its own
        with renewed(place, every) as stream:
            for time in day:
                stream.release([4, 2], time=time)
            epsilons = stream.ledger.epsilons
            series = temporal_leakage(ADVERSARY, epsilons)
            assert stream.accountant.total() == pytest.approx(series.worst, rel=1e-9)
            promise = stream.guard.promise
    assert epsilons.tolist() == pytest.approx(np.tile(EPOCH.epsilons, 4)[:20].tolist(), rel=1e-9)
    assert max(temporal_leakage(ADVERSARY, epsilons[k : k + 6]).worst for k in (0, 6, 12)) <= 1.0
    spent = np.tile(EPOCH.epsilons, 40) if every == "steps" else np.full(240, EPOCH.epsilons.max())
    many = temporal_leakage(ADVERSARY, spent).worst
    assert many <= promise <= 1.02 * many


@pytest.mark.long
def test_epoch_starts_at_the_phase_of_its_plan(tmp_path):
    with (
        renewed(tmp_path / "noon.db", "daily") as stream,
        pytest.raises(InputError, match="the first step of a day"),
    ):
        stream.release([4, 2], time="2024-03-01T12:00")
    late = Adversary(Periodic(CLOCK.matrices, phase=3), Periodic(CLOCK.matrices, phase=3))
    worst = max(temporal_leakage(late.between(k, 6), EPOCH.epsilons).worst for k in range(6))
    assert worst > 1.0
    with pytest.raises(PlanError, match=r"leak .* nats by themselves"):  # four hours are no share of this day
        renewed(tmp_path / "odd.db", "daily", step="15000 seconds", adversary=late)
    with renewed(tmp_path / "gap.db", "daily") as stream:
        stream.release([4, 2], time="2024-03-01T00:00")
        with pytest.raises(InputError, match="every step counts"):
            stream.release([4, 2], time="2024-03-01T08:00")


def test_odometer_of_a_periodic_correlation_needs_no_horizon():
    odometer = TemporalAccountant(ADVERSARY)
    rng = np.random.default_rng(5)
    epsilons = 0.4 * rng.random(40)
    for epsilon in epsilons.tolist():
        odometer = odometer.spend(epsilon)
    assert odometer.total() == pytest.approx(temporal_leakage(ADVERSARY, epsilons).worst, rel=1e-9)
    with pytest.raises(BudgetError, match="expected a horizon"):
        TemporalAccountant(ADVERSARY, alpha=1.0)
