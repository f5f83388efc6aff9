"""Ranges, confidences, clocks and learnt correlations on the command line."""

import json

import numpy as np
import pytest

from command import SAMPLE, refused, temporaldp

STATES = ("--set", "traces.states=W,R,N1,N2,N3")


def as_json(*arguments):
    result = temporaldp(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_stated_range_needs_no_data(tmp_path):
    figure = tmp_path / "range.png"
    options = (
        "--set",
        "correlation.stays=0.7:0.9",
        "--set",
        "traces.states=home,work",
        "--horizon",
        6,
        "--epsilon",
        0.2,
    )
    found = as_json("audit", *options, "--figure", figure)
    assert found["accounting"] == {"method": "interval"}
    assert found["attained"] is None
    assert found["worst_leakage"] <= found["paper"]["worst_leakage"]
    assert found["correlation"].startswith("Stated: the state stays the same with probability 0.7 to 0.9")
    assert found["warning"] is None
    assert figure.stat().st_size > 1000


@pytest.fixture
def walks(tmp_path):
    """A file of 40 people who are in one of two places at ten times."""
    rng = np.random.default_rng(0)
    places = (rng.random((40, 10)) < 0.3).cumsum(axis=1) % 2
    lines = ["user," + ",".join(f"t{k}" for k in range(10))]
    lines += [f"p{k:02d}," + ",".join("ab"[place] for place in row) for k, row in enumerate(places)]
    path = tmp_path / "walks.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.long
def test_intervals_from_a_history_are_those_of_its_steps_only_for_a_release_that_begins_alike(tmp_path, walks):
    head, *rows = walks.read_text().splitlines()
    (tmp_path / "now.csv").write_text("\n".join([head, *("other " + row for row in rows)]) + "\n")
    asked = (
        "audit",
        tmp_path / "now.csv",
        "--history",
        walks,
        "--epsilon",
        0.1,
        "--set",
        "correlation.confidence=0.95",
    )
    alone = temporaldp(*asked, "--horizon", 30)
    assert alone.returncode == 0, alone.stderr
    assert "shares of states change" in " ".join(alone.stderr.split())
    alike = (*asked, "--set", "release.same_start=true")
    assert "take --horizon 10 or fewer" in " ".join(refused(*alike, "--horizon", 30).split())
    found = as_json(*alike, "--horizon", 8)
    assert "are those of each of" in found["correlation"]
    assert found["warning"] is None


@pytest.mark.long
def test_confidence_adds_a_sentence_and_a_figure(tmp_path, walks):
    figure, page = tmp_path / "uncertainty.svg", tmp_path / "page.html"
    options = (
        walks,
        "--set",
        "traces.states=a,b",
        "--set",
        "correlation.confidence=0.95",
        "--epsilon",
        0.1,
        "--horizon",
        9,
    )
    found = as_json("audit", *options, "--figure", figure)["uncertainty"]
    assert figure.read_text().startswith("<?xml")
    assert found["estimate"] < found["posterior_quantile"] < found["attained"] <= found["guaranteed"]
    written = temporaldp("report", *options, "-o", page)
    assert written.returncode == 0, written.stderr
    told = " ".join(page.read_text().split())
    assert (
        "95 % confidence if states form a Markov chain whose forward matrix does not change, and begin as in the traces"
        in told
    )
    assert (
        "Backward intervals are those of each of 9 steps, because the shares of states change; they hold for a" in told
    )
    assert "those of later steps are unknown" in " ".join(refused("audit", *options[:-1], 12).split())
    assert "of resampled people" in told


@pytest.mark.long
def test_learned_correlation_is_drawn_once_and_its_cost_is_added(tmp_path):
    learnt, again, ledger = (tmp_path / name for name in ("a.json", "b.json", "learnt.db"))
    for place in (learnt, again):
        result = temporaldp("learn", SAMPLE, *STATES, "--epsilon", 2, "--ledger", ledger, "-o", place)
        assert result.returncode == 0, result.stderr
        assert "2 nats, for all states of a person together" in result.stdout
    assert learnt.read_bytes() == again.read_bytes()
    about = as_json("learn", SAMPLE, *STATES, "--epsilon", 2, "--ledger", ledger, "-o", again)
    assert (about["correlation"], about["epsilon"]) == (str(again), 2.0)
    with learnt.open() as file:
        matrix = json.load(file)["backward"]
    widths = np.subtract(matrix["upper"], matrix["lower"])
    assert about["widths"]["backward"] == pytest.approx([widths.min(), widths.max()], rel=1e-12)
    refusal = temporaldp("learn", SAMPLE, *STATES, "--epsilon", 1, "--ledger", ledger, "-o", again)
    assert refusal.returncode == 2
    shown = temporaldp("plan", "--set", f"correlation.file={learnt}", "--alpha", 1, "--horizon", 47)
    assert "with the release, 3 nats in all" in " ".join(shown.stdout.split())
    audit = as_json("audit", "--set", f"correlation.file={learnt}", "--epsilon", 0.1, "--horizon", 3)
    assert audit["learning_epsilon"] == 2.0
    told = temporaldp("ledger", "verify", ledger)
    assert told.returncode == 0, told.stderr
    assert "2-differential privacy for all states of a person together" in " ".join(told.stdout.split())


@pytest.mark.long
def test_a_learned_correlation_is_not_learned_again_without_its_ledger(tmp_path):
    (tmp_path / "t.csv").write_text("user,time,state\n1,0,a\n1,1,b\n2,0,b\n2,1,a\n")
    asked = ("learn", "t.csv", "--epsilon", 1, "-o", "c.json", "--set", "traces.states=a,b")
    assert temporaldp(*asked, cwd=tmp_path).returncode == 0
    learned = (tmp_path / "c.json").read_bytes()
    kept = (*asked, "--ledger", "lost.db")
    for again, code in ((asked, 2), (kept, 4)):
        assert "--begin-anew" in refused(*again, cwd=tmp_path, code=code)
    assert (tmp_path / "c.json").read_bytes() == learned
    assert temporaldp(*asked, "--begin-anew", cwd=tmp_path).returncode == 0
    assert temporaldp(*kept, "--begin-anew", cwd=tmp_path).returncode == 0
    assert temporaldp(*kept, cwd=tmp_path).returncode == 0
    assert "leave it out" in refused(*kept, "--begin-anew", cwd=tmp_path)
    (tmp_path / "c.json").unlink()
    assert "leave it out" in refused(*asked, "--begin-anew", cwd=tmp_path)
    (tmp_path / "lost.db").unlink()
    assert "written 1 step to the ledger of this place" in refused(*kept, cwd=tmp_path, code=4)


@pytest.mark.long
def test_learned_correlation_that_contradicts_stationarity_is_warned_about(tmp_path):
    """Everybody begins in a and stays in b once there; the counts are smoothed by it all the same."""
    rng = np.random.default_rng(0)
    places = (rng.random((2000, 4)) < 0.5).cumsum(axis=1) > 0
    lines = [
        "user,t0,t1,t2,t3,t4",
        *(f"p{k},a," + ",".join("ab"[int(one)] for one in row) for k, row in enumerate(places)),
    ]
    (tmp_path / "moving.csv").write_text("\n".join(lines) + "\n")
    learnt, states = tmp_path / "learnt.json", ("--set", "traces.states=a,b")
    said = temporaldp("learn", tmp_path / "moving.csv", *states, "--epsilon", 2, "-o", learnt, "--json")
    assert said.returncode == 0, said.stderr
    assert "for a stationary Markov chain" in json.loads(said.stdout)["how"]
    known = ("--set", f"correlation.file={learnt}")
    audit = temporaldp("audit", *known, "--epsilon", 0.1, "--horizon", 20, "--json")
    for told, warning in ((said, json.loads(said.stdout)["warning"]), (audit, json.loads(audit.stdout)["warning"])):
        assert "he traces contradict stationarity" in warning
        assert "warning: " in told.stderr
        assert "plan with a smaller alpha" in " ".join(told.stderr.split())
    plan = ("plan", *known, "--alpha", 1, "--horizon", 5, "-o", tmp_path / "plan.json")
    released = ("release", tmp_path / "moving.csv", *states, "--plan", tmp_path / "plan.json", "-o", tmp_path / "r.csv")
    smoothed = (*known, "--set", "release.estimates=smoothed")
    for command in (plan, (*released, *smoothed)):
        result = temporaldp(*command)
        assert result.returncode == 0, result.stderr
        assert "contradict stationarity" in " ".join(result.stderr.split())


@pytest.mark.long
def test_warning_about_protected_traces_names_the_remedy():
    result = temporaldp("audit", SAMPLE, *STATES, "--epsilon", 0.1)
    assert "temporaldp learn" in " ".join(result.stderr.split())


@pytest.mark.long
def test_periodic_correlation_over_an_infinite_horizon(walks):
    found = as_json(
        "audit",
        walks,
        "--epsilon",
        0.1,
        "--set",
        "correlation.period=6",
        "--set",
        "correlation.phase=2",
        "--horizon",
        10,
    )
    assert found["supremum"]["temporal"] >= found["worst_leakage"]
    assert "6 phases of a clock" in found["correlation"]
    plan = as_json(
        "plan", walks, "--alpha", 1, "--set", "correlation.period=6", "--set", "correlation.phase=0", "--horizon", 5
    )
    assert max(plan["leakage"]["temporal"]) <= 1.0


@pytest.mark.long
def test_release_with_a_periodic_correlation_needs_no_horizon(tmp_path, walks):
    """One budget that a plan without a horizon grants at every step, whatever its phase; the same at the next run."""
    for name, times in (("one", "01"), ("both", "0123")):
        rows = [f"{user},{time},a" for time in times for user in ("u", "v", "w")]
        (tmp_path / f"{name}.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    known = [
        "--history",
        walks,
        "--set",
        "correlation.period=5",
        "--set",
        "correlation.prior=1",
        "--set",
        "privacy.bound=paper",
    ]
    into = ["--alpha", 1, "--ledger", tmp_path / "r.db"]
    first = as_json("release", tmp_path / "one.csv", *known, *into, "-o", tmp_path / "one.parquet")
    both = as_json("release", tmp_path / "both.csv", *known, *into, "-o", tmp_path / "both.parquet")
    assert (first["ledger_steps"], both["ledger_steps"]) == (2, 4)
    plan = as_json("plan", *known, "--alpha", 1)
    assert plan["horizon"] is None
    assert both["epsilons"] == pytest.approx(plan["epsilons"] * 4, rel=1e-5)
    assert max(both["epsilons"]) <= plan["epsilons"][0]


@pytest.mark.long
def test_diagnosis_has_a_table_a_verdict_and_a_figure(tmp_path, walks):
    figure = tmp_path / "diagnosis.png"
    result = temporaldp("diagnose", walks, "--horizon", 4, "--figure", figure)
    assert result.returncode == 0, result.stderr
    assert "First order is not rejected" in result.stdout
    assert figure.stat().st_size > 1000
    found = as_json("diagnose", walks, "--horizon", 4, "--period", 5)
    assert [one["name"] for one in found["refinements"]][1] == "a matrix for each of 5 phases"
    assert len(found["models"]) == 6


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "correlation.stays=0.9:0.7"), "smallest <= largest"),
        (("--set", "correlation.stays=often"), "two probabilities"),
        (("--set", "correlation.stays=0.7:0.9", "--set", "correlation.prior=1"), "replace estimation"),
        (("--set", "correlation.confidence=1.5"), "less than 1"),
        (("--set", "correlation.confidence=0.9", "--set", "correlation.prior=1"), "leave out correlation.prior"),
        (("--set", "correlation.period=24"), "does not divide the 47 steps"),
        (("--set", "correlation.phase=1"), "correlation.period"),
        (("--set", "correlation.period=24", "--set", "correlation.phase=24"), "phase from 0 to 23"),
        (("--set", "correlation.file=nowhere.json"), "does not exist"),
    ],
)
def test_invalid_arguments_are_refused(tmp_path, options, message):
    told = " ".join(refused("audit", SAMPLE, "--epsilon", "0.1", *options, cwd=tmp_path).split())
    assert message in told
