"""Several models in a project file: what they mean for an audit, a plan, a release and a report, and what `init` chooses."""

from __future__ import annotations

import csv
import json
import re
import tomllib

import numpy as np
import pytest

from command import refused, temporaldp
from making import of_words
from temporaldp import Ledger, Trajectories, estimate_models, load_plan, load_released, temporal_leakage
from temporaldp.core.correlation.documents import adversary_from
from temporaldp.lab.studies.refinements import chosen_models, refinements
from temporaldp.publish.project.document import read_settings
from temporaldp.publish.project.inputs import gather

MODELS = "first order,second order,dwell times"


def alternating(n_people=60, n_times=10, seed=0):
    """People who mostly return to the state before last: of second order."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(2, size=(n_people, n_times))
    for t in range(2, n_times):
        codes[:, t] = np.where(rng.random(n_people) < 0.85, codes[:, t - 2], 1 - codes[:, t - 2])
    return codes


def write(path, codes):
    with path.open("w", newline="") as file:
        rows = [[f"p{k}", *np.array(["in", "out"])[row]] for k, row in enumerate(codes)]
        csv.writer(file).writerows([["user", *range(1, codes.shape[1] + 1)], *rows])


@pytest.fixture
def project(tmp_path):
    write(tmp_path / "past.csv", alternating(seed=1))
    write(tmp_path / "now.csv", alternating(seed=2)[:, :6])
    (tmp_path / "temporaldp.toml").write_text(
        '[traces]\npath = "now.csv"\nlayout = "wide"\nuser = "user"\n[history]\npath = "past.csv"\n'
        f"[correlation]\nmodels = {json.dumps(MODELS.split(','))}\n[privacy]\nalpha = 1.0\nhorizon = 6\nepsilon = 0.2\n"
        '[release]\nledger = "l.db"\noutput = "out.csv"\n'
    )
    return tmp_path


@pytest.mark.long
def test_the_models_of_a_file_are_those_that_python_estimates(project):
    inputs = gather(read_settings(project / "temporaldp.toml"))
    history = Trajectories(alternating(seed=1), states=["in", "out"])
    expected = estimate_models(history, MODELS.split(","))
    assert list(inputs.everyone) == list(expected)
    spent = [0.2] * 6
    for name, known in inputs.everyone.items():
        assert temporal_leakage(known, spent).worst == temporal_leakage(expected[name], spent).worst
    assert inputs.states == ("in", "out")


@pytest.mark.long
def test_an_audit_has_a_row_for_each_model_and_names_them(project):
    told = json.loads(temporaldp("audit", "--json", cwd=project).stdout)
    assert [row["model"] for row in told["models"]] == MODELS.split(",")
    assert told["worst_leakage"] == max(row["at_most"] for row in told["models"])
    assert all(row["attained"] <= row["at_most"] for row in told["models"])
    assert told["models"][1]["attained"] > told["models"][0]["at_most"]  # the people are of second order
    assert told["people"]["most_predictable"] <= told["people"]["largest"]
    assert "(first order, second order, dwell times)" in " ".join(told["verdict"])
    shown = " ".join(temporaldp("audit", cwd=project).stdout.split())
    assert "the most predictable 5 % of people" in shown and "anything: user level" in shown


@pytest.mark.long
def test_a_plan_and_a_release_satisfy_the_level_for_every_model(project):
    planned = temporaldp("plan", "-o", "plan.json", cwd=project)
    assert "temporal level, for observers who know how these people move" in " ".join(planned.stdout.split())
    headline = (
        "At most 1 nat about any step (1-DP_T), for observers who know how these people move from step to step (first "
    )
    assert " ".join(planned.stdout.split()).startswith(headline)
    inputs = gather(read_settings(project / "temporaldp.toml"))
    plan = load_plan(project / "plan.json")
    worst = {name: temporal_leakage(one, plan.epsilons).worst for name, one in inputs.everyone.items()}
    assert 0.99 <= max(worst.values()) <= 1.0
    told = json.loads(temporaldp("plan", "--json", cwd=project).stdout)
    assert {row["model"]: row["at_most"] for row in told["models"]} == pytest.approx(worst, rel=1e-8)
    released = temporaldp("release", cwd=project)
    assert released.returncode == 0, released.stderr
    assert "(first order, second order, dwell times)" in " ".join(released.stdout.split())
    assert "(first order, second order, dwell times)" in (project / "out.md").read_text()
    assert np.allclose(Ledger(project / "l.db").epsilons, plan.epsilons)
    report = temporaldp("report", "-o", "r.html", "--json", cwd=project)
    assert report.returncode == 0, report.stderr
    assert json.loads(report.stdout)["worst_leakage"] <= 1.0
    page = (project / "r.html").read_text()
    assert "<th>the observer knows</th>" in page and "<td>second order</td>" in page


@pytest.mark.long
def test_a_stream_keeps_its_models_in_its_ledger(project):
    """A release without an end has an accountant, whose models a report reads from the ledger alone."""
    file = project / "temporaldp.toml"
    file.write_text(file.read_text().replace("horizon = 6\n", ""))
    released = temporaldp("release", cwd=project)
    assert released.returncode == 0, released.stderr
    assert all(
        "upper bound (accounting" in shown.stdout
        for shown in (released, temporaldp("ledger", "show", "l.db", cwd=project))
    )
    (project / "past.csv").unlink()
    told = json.loads(temporaldp("report", "--ledger", "l.db", "-o", "r.html", "--json", cwd=project).stdout)
    assert told["worst_leakage"] <= 1.0
    assert "<td>second order</td>" in (project / "r.html").read_text()


@pytest.mark.long
def test_a_plan_for_fewer_models_is_refused(project):
    planned = temporaldp("plan", "-o", "plan.json", "--set", "correlation.models=first order", cwd=project)
    assert planned.returncode == 0, planned.stderr
    told = refused("release", "--set", "release.plan=plan.json", cwd=project)
    assert "observers who know 'first order', but correlation.models has 'second order', 'dwell times'" in told
    assert not (project / "out.csv").exists()


@pytest.mark.long
def test_a_report_after_an_adoption_names_no_model_that_some_steps_do_not_have(project):
    file = project / "temporaldp.toml"
    text = file.read_text().replace("horizon = 6\n", "")
    file.write_text(text.replace(json.dumps(MODELS.split(",")), '["first order"]'))
    assert temporaldp("release", cwd=project).returncode == 0
    models = "correlation.models=first order,per person"
    adopted = temporaldp("ledger", "adopt", "l.db", "--set", models, cwd=project)
    assert adopted.returncode == 0, adopted.stderr
    told = refused("ledger", "adopt", "l.db", "--set", "correlation.models=dwell times", cwd=project)
    assert "cannot be adopted" in told
    for command in (("report", "--ledger", "l.db", "-o", "r.html"), ("ledger", "show", "l.db")):
        done = temporaldp(*command, cwd=project)
        assert done.returncode == 0, done.stderr
        assert "(first order, per person)" not in done.stdout
    assert "(first order, per person)" not in (project / "r.html").read_text()


@pytest.mark.long
def test_an_attack_on_a_release_for_several_models_is_by_first_order(project):
    assert temporaldp("release", cwd=project).returncode == 0
    attacked = temporaldp("attack", "--released", "out.csv", "--set", "study.repeats=5", cwd=project)
    assert attacked.returncode == 0, attacked.stderr


def test_a_chain_with_a_longer_memory_is_the_same_after_it_was_written():
    table = np.random.default_rng(0).dirichlet(np.ones(3), size=(3, 3))
    known = of_words(table).adversary
    again = adversary_from(json.loads(json.dumps(known.document())))
    assert temporal_leakage(again, [0.3] * 5).worst == temporal_leakage(known, [0.3] * 5).worst
    assert again.chain == known.chain


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["correlation.models=third order"], "expected models to be some of"),
        (["correlation.models=second order 1.5"], "confidence of a model"),
        (["correlation.models=per person 0.9"], "got 'per person 0.9'"),
        (["correlation.models=first order", "correlation.confidence=0.95"], "leave out correlation.per_user"),
        (["correlation.models=first order", "correlation.per_user=true"], "leave out correlation.per_user"),
        (["correlation.models=time of day"], "need each other"),
        (["correlation.models=first order", "correlation.period=2"], "need each other"),
        (["correlation.models=first order", "correlation.stays=0.5:0.9"], "replace estimation"),
    ],
)
def test_contradictions_are_refused(project, given, message):
    (project / "temporaldp.toml").unlink()
    known = [part for one in given for part in ("--set", one)]
    assert message in refused("audit", "now.csv", "--history", "past.csv", "--epsilon", "0.1", *known, cwd=project)


@pytest.mark.long
def test_init_writes_the_models_that_the_history_prefers_and_why(tmp_path):
    write(tmp_path / "past.csv", alternating(200, 12, seed=1))
    write(tmp_path / "now.csv", alternating(200, 12, seed=2))
    made = temporaldp("init", "now.csv", "--history", "past.csv", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "temporaldp.toml").read_text()
    models = tomllib.loads(text)["correlation"]["models"]
    assert models[:2] == ["first order", "second order 0.95"]
    order = refinements(Trajectories(alternating(200, 12, seed=1), states=["in", "out"]))[0]
    assert f"# First order is rejected for second order (G = {order.statistic:.0f} of 2 degrees" in text


@pytest.mark.long
def test_a_model_that_is_left_out_is_named_wherever_the_guarantee_is(tmp_path, monkeypatch):
    """`init` leaves out models whose leakage takes minutes: of 12 zones and hundreds of steps, here of none at all."""
    history = Trajectories(alternating(200, 12, seed=1), states=["in", "out"])
    monkeypatch.setattr("temporaldp.lab.studies.refinements.LARGEST_CHOSEN", 0)
    assert "second order" in chosen_models(history).left_out
    for name, seed in (("past", 1), ("now", 2)):
        write(tmp_path / f"{name}.csv", alternating(200, 12, seed=seed))
    given = ("--history", "past.csv", "--set", "correlation.models=first order")
    rejected = ("--set", "correlation.left_out=second order")
    condition = "(first order, although a test of the history prefers second order)"
    level = ("--alpha", "1", "--horizon", "12")
    released = ("release", *level, "--ledger", "spent.db", "-o", "out.csv")
    commands = ("audit", "--epsilon", "0.1"), ("plan", *level), released
    for command, *rest in commands:
        done = temporaldp(command, "now.csv", *given, *rejected, *rest, cwd=tmp_path)
        assert condition in " ".join(done.stdout.split()), done.stderr
    spent = float(load_released(tmp_path / "out.csv").epsilons.sum())
    for shown in (done.stdout, (tmp_path / "out.md").read_text()):
        assert (
            f"{condition}. A suspicion of 50 % about one person's state at one step becomes at most 73.2 %."
            in " ".join(shown.split())
        )
        found = re.search(
            r"All states of a person in these tables: at most ([0-9.]+) nats, for every", " ".join(shown.split())
        )
        assert float(found[1]) == pytest.approx(spent, rel=1e-3) and float(found[1]) >= spent
    with_it = ("--set", "correlation.models=first order,second order")
    counted = temporaldp("audit", "now.csv", *given, *rejected, *with_it, "--epsilon", "0.1", cwd=tmp_path)
    assert counted.returncode == 0 and "although a test" not in " ".join(counted.stdout.split())


def test_first_order_people_are_of_first_order_at_a_confidence_and_few_data_are_undecided():
    codes = np.random.default_rng(0).integers(2, size=(200, 12))
    found = chosen_models(Trajectories(codes, states=["in", "out"]))
    assert found.models == ("first order", "first order 0.95")
    few = chosen_models(Trajectories(codes[:1, :8], states=["in", "out"]))
    assert few.models == ("first order", "confidence 0.95")
    assert any("Too few data for second order" in one for one in few.reasons)


@pytest.mark.long
def test_samples_at_a_confidence_leak_at_least_as_much_as_the_estimate():
    history = Trajectories(alternating(), states=["in", "out"])
    plain, some, most = (
        temporal_leakage(estimate_models(history, [name]), [0.1] * 10)
        for name in ("second order", "second order 0.8", "second order 0.95")
    )
    assert plain.worst <= some.worst <= most.worst and (plain.temporal < most.temporal).all()


@pytest.mark.long
def test_observers_who_know_one_direction_of_time_are_named_wherever_the_guarantee_is(tmp_path):
    """Less leaks to them than to all who know how people move."""
    (tmp_path / "chain.csv").write_text("state,in,out\nin,0.9,0.1\nout,0.2,0.8\n")
    write(tmp_path / "now.csv", alternating(40, 4))
    level = ("--set", "correlation.backward=chain.csv", "--alpha", "1")
    for command in (
        ("plan", "now.csv", *level, "--horizon", "4"),
        ("release", "now.csv", *level, "--horizon", "4", "--ledger", "spent.db", "-o", "out.csv"),
        ("ledger", "show", "spent.db"),
        ("budget", *level, "--steps", "4"),
    ):
        done = temporaldp(*command, cwd=tmp_path)
        assert "(first order, by the given matrices, backward only)" in " ".join(done.stdout.split()), done.stderr
    assert "given matrices, backward only). A suspicion" in " ".join((tmp_path / "out.md").read_text().split())
