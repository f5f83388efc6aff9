"""`temporaldp budget`: the epsilon to type into another library, and what a renewed epsilon leaks over time."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from command import SAMPLE, refused, temporaldp
from temporaldp import Adversary, TransitionMatrix, estimate_adversary, load_sample, temporal_leakage


def told(*arguments):
    return json.loads(temporaldp("budget", *arguments, "--json").stdout)


def two_states(stays):
    walk = TransitionMatrix([[stays, 1.0 - stays], [1.0 - stays, stays]])
    return Adversary(walk, walk)


def test_the_epsilon_to_type_satisfies_the_level_and_no_larger_one_does():
    found = told("--stay", "0.9", "--alpha", "1", "--steps", "36", "--every", "week")
    epsilon = found["epsilon_by_relation"]["replace a state"]
    assert temporal_leakage(two_states(0.9), np.full(36, epsilon)).worst <= 1.0
    assert temporal_leakage(two_states(0.9), np.full(36, 1.001 * epsilon)).worst > 1.0
    assert found["epsilon_by_relation"]["add or remove a row"] == epsilon / 2
    assert found["user_level_epsilon"] == pytest.approx(1.0 / 36)
    assert found["observers"][0]["sustainable_epsilon"] < epsilon


@pytest.mark.long
@pytest.mark.parametrize(("stays", "leakage"), [(0.7, 2.05), (0.9, 4.50), (0.99, 9.27)])
def test_what_one_week_leaks_over_time(stays, leakage):
    found = told("--epsilon", "1", "--stay", str(stays), "--every", "week")["observers"][0]
    assert round(found["leakage_over_time"], 2) == leakage
    # tanh(x / 2) shrinks by 2 p - 1 with every step
    backward = 1.0
    for _ in range(10_000):
        backward = 1.0 + 2.0 * math.atanh((2.0 * stays - 1.0) * math.tanh(0.5 * backward))
    assert found["leakage_over_time"] == pytest.approx(2.0 * backward - 1.0, rel=1e-8)


def test_the_answer_comes_first_with_both_relations_and_the_condition():
    shown = temporaldp("budget", "--stay", "0.9", "--alpha", "1", "--steps", "36", "--every", "week").stdout
    text = " ".join(shown.split())
    assert text.startswith(
        "Type epsilon = 0.05861 for each of 36 tables where neighbouring data sets add or remove a row, 0.1172"
    )
    assert "for observers who know that people stay in one of 2 states with probability 0.9 from week to week" in text
    assert "all states, 36 tables (user level)" in text


def test_several_probabilities_are_compared_and_the_strictest_decides():
    found = told("--stay", "0.7,0.9", "--alpha", "1")
    assert [one["stays"] for one in found["observers"]] == [0.7, 0.9]
    assert found["epsilon_by_relation"]["replace a state"] == found["observers"][1]["epsilon"]
    assert "(the strictest of these)" in found["verdict"][-1]


@pytest.mark.long
def test_more_states_move_to_any_other_alike():
    found = told("--stay", "0.8", "--states", "3", "--alpha", "1")
    walk = TransitionMatrix(np.where(np.eye(3), 0.8, 0.1))
    assert temporal_leakage(Adversary(walk, walk), np.full(200, found["observers"][0]["epsilon"])).worst <= 1.0
    assert "each other state with equal probability" in found["verdict"][-1]


@pytest.mark.long
def test_a_history_takes_the_place_of_a_probability():
    found = told("--history", SAMPLE, "--alpha", "1", "--steps", "47")
    adversary = estimate_adversary(load_sample())
    epsilon = found["epsilon_by_relation"]["replace a state"]
    assert temporal_leakage(adversary, np.full(47, epsilon)).worst <= 1.0
    assert temporal_leakage(adversary, np.full(47, 1.001 * epsilon)).worst > 1.0


@pytest.mark.long
def test_no_epsilon_for_any_number_of_tables_is_an_outcome_of_its_own(tmp_path):
    (tmp_path / "past.csv").write_text(
        "user,time,state\n" + "".join(f"{u},{t},{u % 2}\n" for u in range(6) for t in range(9))
    )
    assert "--steps T" in refused("budget", "--history", tmp_path / "past.csv", "--alpha", "1", code=3)
    bounded = told("--history", tmp_path / "past.csv", "--alpha", "1", "--steps", "10")
    assert bounded["epsilon_by_relation"]["replace a state"] == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--stay 0.9"),
        (["--stay", "0.9"], "expected a level"),
        (["--stay", "1.5", "--alpha", "1"], "less than 1"),
        (["--stay", "0.9", "--history", SAMPLE, "--alpha", "1"], "expected one of --stay and --history"),
        (["--stay", "0.9", "--epsilon", "-1"], "epsilon"),
    ],
)
def test_what_is_missing_or_wrong_is_named(arguments, message):
    assert message in " ".join(refused("budget", *arguments).split())


@pytest.mark.long
def test_a_history_on_the_command_line_wins_over_the_project_file(tmp_path):
    (tmp_path / "temporaldp.toml").write_text("[study]\nstays = [0.5]\nn_states = 7\n")
    shown = temporaldp("budget", "--history", SAMPLE, "--alpha", "1", "--json", cwd=tmp_path)
    assert json.loads(shown.stdout)["observers"][0]["stays"] is None
    assert (
        json.loads(temporaldp("budget", "--alpha", "1", "--json", cwd=tmp_path).stdout)["observers"][0]["stays"] == 0.5
    )
    assert "--states" in refused("budget", "--history", SAMPLE, "--states", "5", "--alpha", "1", cwd=tmp_path)


def test_events_that_are_no_states_are_reported(tmp_path):
    rows = [f"p{k % 40},2024-01-01T{k // 30:02d}:{k % 30 + k // 90:02d},{'ab'[k * k % 3 % 2]}" for k in range(400)]
    rows += ["p0,2024-01-01T23:00,a", "p0,2024-01-01T23:01,b", "p0,2024-01-01T23:02,a"]
    (tmp_path / "past.csv").write_text("user,time,state\n" + "\n".join(rows))
    more = ("--set", "traces.sort=true", "--set", "correlation.prior=1")
    shown = temporaldp("budget", "--history", tmp_path / "past.csv", "--alpha", "1", "--steps", "4", *more)
    assert shown.returncode == 0, shown.stderr
    assert "few transitions for their steps" in shown.stderr


def history(path, days):
    rng, rows = np.random.default_rng(0), []
    for who in range(60):
        state = 0
        for step in range(8):
            state = state if rng.random() < 0.7 else 1 - state
            rows.append(f"{who},{np.datetime64('2024-01-01') + days * step},{'ab'[state]}")
    path.write_text("\n".join(["user,time,state", *rows]) + "\n")


@pytest.mark.long
def test_a_history_of_longer_steps_is_no_history_of_the_tables(tmp_path):
    history(tmp_path / "weekly.csv", 7)
    asked = ("budget", "--history", "weekly.csv", "--alpha", "1", "--set", "correlation.prior=1")
    assert "within a shorter step people move less" in refused(*asked, "--every", "day", cwd=tmp_path)
    for every in ("week", "month"):  # within a longer step they move more, and less leaks
        assert temporaldp(*asked, "--every", every, cwd=tmp_path).returncode == 0


@pytest.mark.long
def test_noise_that_tables_share_is_named_for_a_longer_memory(tmp_path):
    history(tmp_path / "daily.csv", 1)
    asked = ("--history", str(tmp_path / "daily.csv"), "--alpha", "1", "--steps", "3", "--set", "correlation.prior=1")
    longer = ("--set", "correlation.models=first order,second order")
    assert "tables that share noise count together" in " ".join(told(*asked)["verdict"])
    assert "drawn anew for each table: with a longer memory" in " ".join(told(*asked, *longer)["verdict"])


@pytest.mark.long
def test_the_cost_of_learning_is_part_of_the_answer(tmp_path):
    history(tmp_path / "now.csv", 1)
    learnt = ("learn", "now.csv", "--epsilon", "0.5", "--set", "traces.states=a,b", "-o", "learned.json")
    assert temporaldp(*learnt, cwd=tmp_path).returncode == 0
    asked = ("budget", "--set", "correlation.file=learned.json", "--alpha", "1", "--steps", "3", "--json")
    verdict = " ".join(json.loads(temporaldp(*asked, cwd=tmp_path).stdout)["verdict"])
    assert "0.5 nats for all states of a person together; with the release, 1.5 nats in all" in verdict
