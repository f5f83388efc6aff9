"""Releases whose guarantee needs no correlation: what they say, and what they do where estimates fail."""

from __future__ import annotations

import hashlib
import json
import math
import re

import numpy as np
import pytest

import temporaldp as tdp
from command import refused, temporaldp
from temporaldp.core.correlation import Provenance
from temporaldp.publish.report.sentences import guarantee_with_odds, typical_error

STATES = ["--set", "traces.states=a,b"]
USER = ["--alpha", "1", "--horizon", "4", "--set", "privacy.guarantee=user", *STATES]


def table(path, people, steps):
    rows = [f"p{user},{t},{'ab'[(t + user) % 2]}" for user in range(people) for t in range(steps)]
    path.write_text("\n".join(["user,time,state", *rows]) + "\n")


def words(text):
    return " ".join(text.split())


@pytest.mark.long
def test_rows_that_come_late_change_no_estimate(tmp_path):
    """They change the total of steps that were published."""
    asked = ["release", "now.csv", *USER, "--ledger", "r.db", "-o", "out.csv", "--overwrite"]
    table(tmp_path / "now.csv", 2999, 2)
    assert temporaldp(*asked, cwd=tmp_path).returncode == 0
    first = (tmp_path / "out.csv").read_text().splitlines()
    table(tmp_path / "now.csv", 3007, 3)
    done = temporaldp(*asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    second = (tmp_path / "out.csv").read_text().splitlines()
    assert second[: len(first)] == first and len(second) == len(first) + 2
    assert tdp.load_released(tmp_path / "out.csv").estimates.counts[2].sum() == pytest.approx(3007, rel=1e-3)


@pytest.mark.long
@pytest.mark.parametrize(
    ("more", "is_warned"),
    [
        ([], True),
        (["--history", "past.csv"], True),  # smooths the counts
        (STATES, False),
        (["--history", "past.csv", "--set", "privacy.guarantee=temporal"], False),  # has the states
        (["--set", "privacy.guarantee=temporal", "--set", "correlation.stays=0.5:0.9"], True),
    ],
)
def test_states_that_a_protected_table_determined_are_warned_of(tmp_path, more, is_warned):
    table(tmp_path / "now.csv", 30, 4)
    rows = [f"q{user},{t},{'ab'[(t // 2 + user) % 2]}" for user in range(30) for t in range(8)]
    (tmp_path / "past.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    asked = ["release", "now.csv", *USER[:-2], *more, "--ledger", "r.db", "-o", "out.csv", "--json"]
    done = temporaldp(*asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = any(
        "the list of states was taken from the protected table" in one for one in json.loads(done.stdout)["warnings"]
    )
    assert told == is_warned == ("the list of states was taken" in words((tmp_path / "out.md").read_text().lower()))


@pytest.mark.long
def test_no_hash_of_a_history_that_is_the_protected_table_is_kept(tmp_path):
    """A user level needs no history, so it is not compared, or the comparison leaves it out."""
    table(tmp_path / "now.csv", 30, 4)
    (tmp_path / "older.csv").write_text((tmp_path / "now.csv").read_text().rpartition("p29,3")[0])
    hashes = [hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("now.csv", "older.csv")]
    for n, more in enumerate(([], ["--set", "release.estimates=single"])):
        asked = ["release", "now.csv", *USER, "--history", "older.csv", *more, "--ledger", f"{n}.db", "-o", f"{n}.csv"]
        done = temporaldp(*asked, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert not any(one.encode() in (tmp_path / f"{n}.db").read_bytes() for one in hashes)


def test_the_user_level_counts_what_was_learned_for_estimates():
    released = tdp.ReleasedHistograms(
        [[5.0, 5.0]] * 2, [0.1, 0.2], [20.0, 10.0], ("a", "b"), ("0", "1"), 1.0, accounting=tdp.Exact()
    )
    known, learnt = Provenance("history", "A survey."), Provenance("learnt", "Learned.", (("one", 0.5),))
    assert "in these tables: at most 0.3 nats" in guarantee_with_odds(released, known, known)
    assert "and the learned correlation: at most 0.8 nats" in guarantee_with_odds(released, known, learnt)


@pytest.mark.long
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_user_level_of_a_published_table_is_that_of_its_plan(noise):
    """What a plan of the user level spends, stated for a table of the temporal level; then with learned estimates."""
    plan = tdp.plan_guarantee("user", 1.0, 12, delta=1e-6, noise=noise)
    counts, scales = np.full((12, 2), 5.0), np.full(12, plan.scales[0])
    released = tdp.ReleasedHistograms(
        counts,
        np.full(12, 0.1),
        scales,
        ("a", "b"),
        tuple(map(str, range(12))),
        2.0,
        delta=1e-6,
        noise=noise,
    )
    known, learnt = Provenance("history", "A survey."), Provenance("learnt", "Learned.", (("one", 0.5),))
    said = guarantee_with_odds(released, known, known)
    found = re.search(r"in these tables: at most ([\d.]+) nats? at delta 1e-06", said)
    assert 0.999 <= float(found[1]) <= 1.0001, said
    more = re.search(
        r"and the learned correlation: at most ([\d.]+) nats at delta ([\d.e-]+),",
        guarantee_with_odds(released, known, learnt),
    )
    assert float(more[1]) == pytest.approx(float(found[1]) + 0.5, abs=2e-4)
    assert 1e-6 * math.exp(0.5) * 0.999 <= float(more[2]) <= 1.7e-6


def test_the_error_of_an_estimate_is_at_most_that_of_the_noise():
    assert typical_error(1.96, 0.5) == 0.5
    assert typical_error(1.96, 5.0) == typical_error(1.96, None) == pytest.approx(0.8)


@pytest.mark.long
def test_counts_that_were_drawn_are_written_where_estimates_fail(tmp_path):
    """Rows that arrive late change the public total of a step that was released: no estimate fits both."""
    asked = ["release", "now.csv", *USER, "--ledger", "r.db", "-o", "out.csv"]
    table(tmp_path / "now.csv", 30, 2)
    assert temporaldp(*asked, cwd=tmp_path).returncode == 0
    table(tmp_path / "now.csv", 3000, 3)
    (tmp_path / "out.csv").unlink()  # with the totals of its estimates
    done = temporaldp(*asked, "--overwrite", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no estimates could be made" in words(done.stderr)
    released = tdp.load_released(tmp_path / "out.csv")
    assert len(released.times) == 3 and released.estimates is None
    assert "read this" not in (tmp_path / "out.md").read_text()


@pytest.mark.long
def test_new_people_are_not_visible_where_absence_is_a_state(tmp_path):
    """All counts of a step add up to a public number of people, also when new people come."""
    days = [f"2026-01-0{day}" for day in range(1, 5)]
    rows = [f"p{user},{day},{'ab'[user % 2]}" for user in range(30) for day in days]
    grid = [
        "traces.every=1d",
        "traces.fill=absent",
        "traces.absent=away",
        "traces.states=a,b,away",
        "release.reached=0",
    ]
    asked = ["release", "now.csv", *USER[:-2], *(word for key in grid for word in ("--set", key)), "--ledger", "r.db"]
    asked += ["-o", "out.csv", "--overwrite"]
    (tmp_path / "now.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    said = words(temporaldp(*asked, cwd=tmp_path).stderr)
    assert "expected the public number of people, the absent included (--set release.population=N)" in said
    for late in ([], ["ann,2026-01-03,a", "ann,2026-01-04,a"]):
        (tmp_path / "now.csv").write_text("\n".join(["user,time,state", *rows, *late]) + "\n")
        done = temporaldp(*asked, "--set", "release.population=40", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found = tdp.load_released(tmp_path / "out.csv").estimates
        assert found.counts.sum(axis=1) == pytest.approx(40, abs=0.05)  # four digits each
        assert re.search(
            r"40 people at a time, of whom about \d+ are not absent", words((tmp_path / "out.md").read_text())
        )
        assert "not observed at every step" not in done.stderr
    for population in (50, 60):  # a larger public number is no other data
        done = temporaldp(*asked, "--set", f"release.population={population}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "the data of 2 times (2026-01-03, 2026-01-04) differ" in words(done.stderr)
    too_few = words(temporaldp(*asked, "--set", "release.population=30", cwd=tmp_path).stderr)
    assert "choose a larger one" in too_few and "31" not in too_few


@pytest.mark.long
def test_an_average_count_is_one_of_those_who_are_present(tmp_path):
    """Of 40 people in the history, 30 leave after the first of six days: of 80, 30 are present on average, in two places."""
    days = [f"2026-01-0{day}" for day in range(1, 7)]
    for name in ("past", "now"):
        rows = [f"{name}{user},{day},{'ab'[(user + k) % 2]}" for user in range(10) for k, day in enumerate(days)]
        rows += [f"{name}{user},{days[0]},a" for user in range(10, 40)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    grid = ["traces.every=1d", "traces.fill=absent", "traces.absent=away", "correlation.prior=1"]
    asked = [
        "plan",
        "now.csv",
        "--history",
        "past.csv",
        "--alpha",
        "1",
        "--horizon",
        "6",
        "--set",
        "release.population=80",
    ]
    done = temporaldp(*asked, *(word for key in grid for word in ("--set", key)), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["noise_share"] == pytest.approx(told["mean_absolute_noise"] / (80 * 0.375 / 2))


def test_a_report_on_a_plan_of_the_user_level_reads_no_traces(tmp_path):
    tdp.save_plan(tdp.plan_guarantee("user", 1.0, 4), tmp_path / "plan.json")
    done = temporaldp("report", "--plan", "plan.json", "-o", "page.html", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["is_satisfied"] and told["worst_leakage"] <= 1.0 and not told["is_internal"]
    assert told["guarantee"] == "user"
    page = words((tmp_path / "page.html").read_text())
    assert "all states of a person together becomes at most 73.2 %: 1 nat, for every correlation" in page
    assert "temporal privacy leakage of a step" not in page


@pytest.mark.long
def test_a_stream_has_the_user_level_of_each_epoch(tmp_path):
    """Published day by day, without an end and without a renewal; what several epochs reveal adds up, and a report says so."""
    days = [f"2026-01-0{day}" for day in range(1, 7)]
    rows = [f"p{user},{day},{'ab'[(t + user) % 2]}" for t, day in enumerate(days) for user in range(30)]
    level = ["--alpha", "1", "--set", "privacy.guarantee=user:3d", *STATES]
    asked = ["release", "now.csv", *level, "--ledger", "r.db", "-o", "out.csv"]
    for n_days in (2, 6):
        (tmp_path / "now.csv").write_text("\n".join(["user,time,state", *rows[: 30 * n_days]]) + "\n")
        done = temporaldp(*asked, "--overwrite", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    with tdp.Ledger(tmp_path / "r.db") as ledger:
        assert ledger.epsilons.tolist() == [pytest.approx(1 / 3)] * 6
    assert "for every correlation, against the releases of these steps alone" in words(done.stdout)
    assert temporaldp("report", "--ledger", "r.db", "-o", "page.html", cwd=tmp_path).returncode == 0
    page = words((tmp_path / "page.html").read_text())
    assert (
        "at any 3 consecutive steps together becomes at most 73.2 %: 1 nat, for every correlation, against the" in page
    )
    assert "all states of one person in 6 steps together becomes at most 88.1 %: 2 nats, for every observer" in page
    assert "What releases of other steps reveal: together with those of the same 3 steps, it can be more" in page
    assert "leave out privacy.renew" in words(refused(*asked, "--set", "privacy.renew=yearly", cwd=tmp_path))


def test_a_plan_without_an_end_shows_windows_and_years(tmp_path):
    table = ["--set", "traces.states=a,b", "--set", "privacy.guarantee=user:365", "--alpha", "1", "--delta", "1e-6"]
    told = temporaldp("plan", *table, cwd=tmp_path).stdout
    assert "Five times as long, together: at most 2.3998 nats at delta 1e-06" in words(told)
    rows = json.loads(temporaldp("plan", *table, "--json", cwd=tmp_path).stdout)["guarantees"]
    found = {(row["guarantee"], row["delta"]): row["five_epochs"] for row in rows}
    assert found[("user:365", 0.0)] == pytest.approx(5.0) and found[("temporal", 0.0)] is None


@pytest.mark.long
def test_the_cost_of_a_learned_correlation_is_part_of_the_user_level(tmp_path):
    table(tmp_path / "now.csv", 200, 4)
    learn = temporaldp("learn", "now.csv", *STATES, "--epsilon", "1", "-o", "learned.json", cwd=tmp_path)
    assert learn.returncode == 0, learn.stderr
    known = ["--set", "correlation.file=learned.json"]
    done = temporaldp("release", "now.csv", *USER, *known, "--ledger", "r.db", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 nats in all" in words(done.stdout) and "2 nats in all" in (tmp_path / "out.md").read_text()
    assert temporaldp("report", "--ledger", "r.db", "-o", "page.html", cwd=tmp_path).returncode == 0
    assert "2 nats in all" in words((tmp_path / "page.html").read_text())


@pytest.mark.long
def test_a_published_text_repeats_that_a_learned_correlation_has_states_of_the_protected_table(tmp_path):
    table(tmp_path / "now.csv", 200, 4)
    learn = temporaldp("learn", "now.csv", "--epsilon", "1", "-o", "learned.json", cwd=tmp_path)
    assert learn.returncode == 0, learn.stderr
    for guarantee in ([], ["--set", "privacy.guarantee=user"]):
        known = ["--set", "correlation.file=learned.json", "--alpha", "1", "--horizon", "4", *guarantee]
        name = f"out{len(guarantee)}"
        done = temporaldp("release", "now.csv", *known, "--ledger", f"{name}.db", "-o", f"{name}.csv", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "states was taken from the protected table" in words((tmp_path / f"{name}.md").read_text())


def test_a_window_does_not_claim_to_hold_for_every_correlation():
    plan = tdp.plan_guarantee("window:2", 1.0, 10)
    stuck = tdp.TransitionMatrix([[1.0, 0.0], [0.0, 1.0]])
    assert tdp.temporal_leakage(tdp.Adversary(stuck, stuck), plan.epsilons).worst == pytest.approx(5.0)
    assert plan.guarantee.wording.condition != tdp.plan_guarantee("user", 1.0, 10).guarantee.wording.condition
    assert "outside" in plan.guarantee.wording.condition


def test_an_account_of_tables_takes_no_other_guarantee(tmp_path):
    table(tmp_path / "now.csv", 5, 2)
    said = refused(
        "release", "now.csv", "--ledger", "r.db", "--set", "release.table=x", *USER[4:], "-o", "o.csv", cwd=tmp_path
    )
    assert "guarantee" in words(said)


@pytest.mark.long
def test_another_text_beside_the_output_is_kept_and_moments_are_explained(tmp_path):
    rows = [f"p{user},2026-01-0{day} 08:30,{'ab'[(day + user) % 2]}" for user in range(30) for day in range(1, 5)]
    (tmp_path / "now.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    (tmp_path / "README.md").write_text("# Ours\n")
    asked = [
        "release",
        "now.csv",
        *USER,
        "--set",
        "traces.every=1d",
        "--set",
        "traces.fill=last",
        "--ledger",
        "r.db",
        "-o",
    ]
    refusal = temporaldp(*asked, "README.csv", cwd=tmp_path)
    assert refusal.returncode == 2 and "README.md exists" in words(refusal.stderr)
    assert (tmp_path / "README.md").read_text() == "# Ours\n"
    for _ in range(2):
        assert temporaldp(*asked, "out.csv", "--overwrite", cwd=tmp_path).returncode == 0
    assert "A date is its first moment, 0:00" in words((tmp_path / "out.md").read_text())


@pytest.mark.long
def test_a_lost_ledger_is_missed_also_where_the_output_cannot_be_read(tmp_path):
    """A spreadsheet saved it in its own way, and the release was moved to another machine."""
    asked = ["release", "now.csv", *USER, "--ledger", "r.db", "-o", "out.csv", "--overwrite"]
    table(tmp_path / "now.csv", 30, 2)
    assert temporaldp(*asked, cwd=tmp_path).returncode == 0
    saved = (tmp_path / "out.csv").read_text().replace(",", ";").replace(".", ",")
    (tmp_path / "r.db").unlink()
    (tmp_path / "elsewhere").mkdir()
    for name in ("now.csv", "out.md"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    tmp_path = tmp_path / "elsewhere"
    (tmp_path / "out.csv").write_text(saved)
    lost = temporaldp(*asked, cwd=tmp_path)
    assert lost.returncode == 4 and "cannot be read as published counts" in words(lost.stderr)
    assert temporaldp(*asked, "--begin-anew", cwd=tmp_path).returncode == 0
    (tmp_path / "out.csv").write_text(saved)
    assert temporaldp(*asked, cwd=tmp_path).returncode == 0  # the ledger has all of it
