"""Opening a ledger from a checkpoint gives what reading all of it gives; one that is wrong is never believed."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sqlite3

import numpy as np
import pytest

from places import REPOSITORY
from streams import ADVERSARY, MECHANISM, keep_instead, kept, opened
from temporaldp import (
    Adversary,
    ContinualRelease,
    InputError,
    Ledger,
    LedgerError,
    PublicCorrelation,
    TemporalAccountant,
    TransitionMatrix,
    temporal_leakage,
)
from temporaldp.base.errors import LateDataError
from temporaldp.publish.release import adopt_correlation, chain

BUSY = TransitionMatrix([[0.9, 0.1], [0.3, 0.7]])
NEWER = Adversary(BUSY, BUSY)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """A checkpoint every ten steps."""
    monkeypatch.setattr("temporaldp.publish.release.step.STEPS_BETWEEN_CHECKPOINTS", 10)


def release(place, times, *, adversary=ADVERSARY, epsilon=None):
    with opened(place, adversary=adversary) as release:
        return [release.release([70, 30], time=time, epsilon=epsilon).tolist() for time in times]


def forget(place):
    for name in kept(place, "checkpoint"):
        keep_instead(place, name)


def cut_loose(store):
    """Without its checkpoints."""
    for number in range(2):
        store.keep(f"checkpoint-{number}", "")


def told(place, adversary=ADVERSARY):
    """Everything that a release says after opening."""
    with opened(place, adversary=adversary) as found:
        accountant = found.accountant
        began = 0 if found.ledger.checkpoint is None else found.ledger.checkpoint.end.n_steps
        return began, [
            accountant.total(), accountant.leakage().worst_time, accountant.remaining(), accountant.reserve, len(found),
            found.forecast([len(found)])[0].parameter, found.ledger.head, found.ledger.epsilons.tolist(), found.ledger.times,
        ]  # fmt: skip


@pytest.mark.long
def test_release_resumes_from_a_checkpoint_with_identical_results(place):
    rng = np.random.default_rng(1)
    with opened(place) as found:
        for time in range(34):
            most = found.accountant.remaining()
            found.release([70, 30], time=time, epsilon=most * rng.random() if time % 9 == 4 else None)
    began, answers = told(place)
    assert began == 30
    with Ledger(place) as ledger:
        cut_loose(ledger.store)
    assert told(place) == (0, answers)
    exact = temporal_leakage(ADVERSARY, answers[7]).worst
    assert exact <= answers[0] * (1 + 1e-13) and answers[0] == pytest.approx(exact, rel=1e-11)


@pytest.mark.long
def test_adoptions_before_and_after_a_checkpoint(place):
    release(place, range(12))
    adopt_correlation(place, NEWER)
    release(place, range(12, 23), adversary=NEWER)
    began, answers = told(place, NEWER)
    assert began == 22 or began == 20
    with Ledger(place) as ledger:
        kinds = [event.kind for event in ledger.events]
        cut_loose(ledger.store)
    assert kinds == ["checkpoint", "adopt", "checkpoint"]
    assert told(place, NEWER) == (0, answers)
    assert answers[0] <= 1.0


@pytest.mark.long
def test_older_steps_are_returned_again_and_late_ones_refused(place):
    first = release(place, range(0, 60, 2))
    with opened(place) as found:
        assert found.ledger.checkpoint.end.n_steps == 30
        assert [found.release([70, 30], time=f"{time:02d}").tolist() for time in (0, 8, 58)] == [
            first[0],
            first[4],
            first[29],
        ]
        assert found.has(20) and not found.has(21) and not found.has(60)
        assert found.row(10).step == 5
        with pytest.raises(LateDataError):
            found.release([70, 30], time=31)
        with pytest.raises(InputError, match="one kind of time"):
            found.release([70, 30], time="2024-01-01")
        assert [row.step for row in found.ledger[:]] == list(range(30))


def test_word_labels_are_recognised(place):
    names = [f"{word} day" for word in "abcdefghijkl"]
    first = release(place, names)
    assert release(place, names[::-1]) == first[::-1]


@pytest.mark.long
def test_the_newest_two_are_kept(tmp_path):
    place = tmp_path / "release.db"
    release(place, range(45))
    assert len(kept(place, "checkpoint")) == 2


@pytest.mark.long
@pytest.mark.parametrize("change", ["garbage", "smaller", "another ledger's", "an older copy's", "another version's"])
def test_invalid_checkpoint_is_ignored(change, tmp_path, monkeypatch):
    place, other = tmp_path / "release.db", tmp_path / "other.db"
    release(place, range(11), epsilon=0.2)
    _, answers = told(place)
    ((name, text),) = kept(place, "checkpoint").items()
    if change == "garbage":
        keep_instead(place, name, "garbage")
    elif change == "smaller":
        document = json.loads(text)
        document["accountant"]["odometers"][0]["largest"] = (0.01).hex()
        keep_instead(place, name, json.dumps(document, sort_keys=True, separators=(",", ":")))
    elif change == "another ledger's":
        release(other, range(11), epsilon=0.01)
        keep_instead(place, name, *kept(other, "checkpoint").values())
    elif change == "an older copy's":
        shutil.copy(place, other)
        release(place, range(11, 21), epsilon=0.2)
        _, answers = told(place)
        (newest,) = set(kept(place, "checkpoint")) - {name}
        keep_instead(place, newest, text)
        assert told(place) == (10, answers)  # the older one is as good
        keep_instead(place, name)
    else:
        monkeypatch.setattr(chain, "__version__", "0.0.0")
    assert told(place) == (0, answers)


def edited(place, statement):
    with sqlite3.connect(place) as connection:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE temporaldp_steps SET epsilon = 0.0 WHERE step = 9",
        "UPDATE temporaldp_steps SET epsilon = 0.0 WHERE step = 3",
        "UPDATE temporaldp_steps SET output = '[1,2]' WHERE step = 3",
        "DELETE FROM temporaldp_steps WHERE step = 3",
    ],
)
def test_edited_older_row_is_refused_and_changes_no_leakage(statement, tmp_path):
    place = tmp_path / "release.db"
    release(place, range(12))
    with opened(place) as found:
        before = found.accountant.total()
    edited(place, statement)
    step = 9 if "= 9" in statement else 3
    with opened(place) as found:
        assert found.accountant.total() == before
        with pytest.raises(LedgerError, match=r"changed after|missing"):
            found.release([70, 30], time=step)
        with pytest.raises(LedgerError, match=r"changed after|missing"):
            _ = found.ledger.epsilons
    with Ledger(place) as ledger, pytest.raises(LedgerError):
        ledger.verify()


@pytest.mark.long
@pytest.mark.parametrize(
    ("n_checkpoints", "statement"),
    [
        (
            1,
            "UPDATE temporaldp_events SET content = replace(content, '\"both\":false', '\"both\":true') WHERE kind = 'adopt'",
        ),
        (1, "UPDATE temporaldp_events SET step = 11 WHERE kind = 'checkpoint'"),
        (1, "DELETE FROM temporaldp_events WHERE kind = 'checkpoint'"),
        (1, "UPDATE temporaldp_steps SET epsilon = 0.0 WHERE step = 13"),
        (1, "DELETE FROM temporaldp_steps WHERE step = 13"),
        (1, "UPDATE temporaldp_steps SET hash = 'x' WHERE step = 11"),
        (
            4,
            "UPDATE temporaldp_events SET content = replace(content, '\"both\":false', '\"both\":true') WHERE kind = 'adopt'",
        ),
        (4, """UPDATE temporaldp_events SET content = '{"digest":"a","events":"b"}' WHERE number = 1"""),
        (4, "UPDATE temporaldp_events SET by = 'somebody' WHERE number = 2"),
    ],
)
def test_other_edits_are_detected_on_opening(n_checkpoints, statement, tmp_path):
    """Of the last steps, and of events before any checkpoint."""
    place = tmp_path / "release.db"
    release(place, range(5))
    adopt_correlation(place, NEWER)
    release(place, range(5, 10 * n_checkpoints + 4), adversary=NEWER)
    with Ledger(place) as ledger:
        assert [event.kind for event in ledger.events] == ["adopt", *["checkpoint"] * n_checkpoints]
        assert ledger.checkpoint.end.n_steps == 10 * n_checkpoints
    edited(place, statement)
    with pytest.raises(LedgerError):
        Ledger(place)


def test_release_by_a_plan_has_no_checkpoint(place):
    import workers
    from temporaldp import ContinualRelease
    from temporaldp.data.counts import NoisyHistogram

    def stream_of():
        return ContinualRelease(NoisyHistogram(3, "gaussian"), ledger=place, plan=workers.noise_plan())

    with stream_of() as found:
        outputs = [found.release([50, 30, 20], time=time).tolist() for time in range(15)]
    with stream_of() as found:
        assert (found.ledger.checkpoint.end.n_steps, found.ledger.checkpoint.accountant) == (10, {})
        assert [found.release([50, 30, 20], time=time).tolist() for time in range(15)] == outputs


@pytest.mark.long
@pytest.mark.parametrize("reserve", [None, 0.1])
def test_horizon_with_replanning(place, reserve):
    """What was spent is read again for the plan, and not counted again."""

    def told():
        with opened(place, horizon=14, reserve=reserve) as found:
            began = 0 if found.ledger.checkpoint is None else found.ledger.checkpoint.end.n_steps
            accountant = found.accountant
            return began, [
                accountant.total(),
                accountant.remaining(),
                len(found),
                found.forecast([len(found)])[0].parameter,
                found.guard.horizon - len(found),
            ]

    with opened(place, horizon=14, reserve=reserve) as found:
        for time in range(12):
            found.release([70, 30], time=time, epsilon=0.3 if time == 5 else 0.01 * (1 + time))
    began, answers = told()
    assert began == 10
    with Ledger(place) as ledger:
        cut_loose(ledger.store)
    assert told() == (0, answers)
    with opened(place, horizon=14, reserve=reserve) as found:
        for time in (12, 13):
            found.release([70, 30], time=time)
        assert len(found) == found.guard.horizon
        assert temporal_leakage(ADVERSARY, found.ledger.epsilons).worst <= 1.0


def test_time_varying_matrices(place):
    """A stored state is used only at the same position in the sequence of matrices."""
    calm, busy = (TransitionMatrix(rows) for rows in ([[0.6, 0.4], [0.3, 0.7]], [[0.9, 0.1], [0.2, 0.8]]))
    walk = Adversary(*(tuple(calm if (k + shift) % 3 else busy for k in range(14)) for shift in (0, 1)))

    def told():
        with opened(place, adversary=walk) as found:
            began = 0 if found.ledger.checkpoint is None else found.ledger.checkpoint.end.n_steps
            accountant = found.accountant
            resumed = accountant._known_odometers is not None
            return began, resumed, [accountant.total(), accountant.remaining(), len(found), accountant.reserve]

    with opened(place, adversary=walk) as found:
        for time in range(13):
            found.release([70, 30], time=time, epsilon=0.5 * found.accountant.remaining() if time % 7 == 3 else 0.05)
    began, resumed, answers = told()
    assert (began, resumed) == (10, True)
    again = Adversary(
        *(tuple(TransitionMatrix(one.probabilities) for one in side.matrices) for side in (walk.backward, walk.forward))
    )
    apart = TemporalAccountant(again, alpha=1.0)
    with ContinualRelease(MECHANISM, ledger=place, accountant=apart) as found:  # the same ones, but none of them twice
        assert found.accountant._known_odometers is None
        assert found.accountant.total() == pytest.approx(answers[0], rel=1e-11)
    with Ledger(place) as ledger:
        cut_loose(ledger.store)
    assert told() == (0, False, answers)
    with Ledger(place) as ledger:
        whole = temporal_leakage(walk, [*ledger.epsilons, 0.0, 0.0]).worst
    assert whole <= answers[0] * (1 + 1e-12) <= 1.0


def test_filtered_counts_resume_with_identical_results(tmp_path):
    """As from the first step on, and without reading the rows before it."""
    chain = TransitionMatrix([[0.8, 0.2], [0.3, 0.7]], states=("A", "B"))
    public = PublicCorrelation(chain, provenance="a test")
    place, other = tmp_path / "a.db", tmp_path / "b.db"
    with filtered(place, public) as found:
        found.skip(time=0)
        for time in range(1, 24):
            found.release([70 + time, 30 - time], time=time)
    shutil.copy(place, other)
    forget(other)
    with filtered(place, public) as one, filtered(other, public) as two:
        assert (one.ledger.checkpoint.end.n_steps, two.ledger.checkpoint) == (20, None)
        states = [release._filter.kept_state(release.ledger) for release in (one, two)]
        assert states[0] == states[1] and states[0]["known"] == 24
        assert one.ledger.held[0].start == 20
        one.release([70, 30], time=24)
        assert one.filtered(24).counts.sum() == pytest.approx(100.0)


def filtered(place, correlation):
    """A release whose counts are filtered."""
    return ContinualRelease(
        MECHANISM, ledger=place, accountant=TemporalAccountant(ADVERSARY, alpha=1.0), correlation=correlation,
        states=("A", "B"),
    )  # fmt: skip


@pytest.mark.long
def test_ledger_of_the_benchmark_can_be_continued(tmp_path, monkeypatch):
    found = importlib.util.spec_from_file_location("years_benchmark", REPOSITORY / "benchmarks" / "years.py")
    years = importlib.util.module_from_spec(found)
    found.loader.exec_module(years)
    monkeypatch.setattr(years, "COUNTED", 120)
    years.build(tmp_path / "a.db", 150)
    with years.opened(tmp_path / "a.db") as long:
        assert (len(long), long.ledger.checkpoint.end.n_steps) == (150, 150)
        long.release([50, 30, 20], time=years.label(150))
        counted = temporal_leakage(Adversary(*years.MATRICES), long.ledger.epsilons).worst
        assert long.ledger[-1].leakage == pytest.approx(counted, rel=1e-9)
