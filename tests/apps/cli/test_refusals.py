"""What the command refuses: one message, exit code 2 (3 where no plan exists), no traceback, nothing written."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pyarrow
import pytest
from pyarrow import parquet

from command import SAMPLE, refused, temporaldp
from data_sets import sleep_sample
from temporaldp import (
    Adversary,
    InputError,
    TransitionMatrix,
    estimate_adversaries,
    load_released,
    plan_budget,
    save_matrix,
    save_plan,
)


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    (adversary,) = estimate_adversaries(sleep_sample())
    save_plan(plan_budget(adversary, alpha=1.0, horizon=47), path)
    return path


BAD_TRACES = {
    "missing": (None, "does not exist"),
    "columns": ("who,when,what\n1,0,a\n", "no column 'user'"),
    "empty": ("", "cannot be read"),
    "header": ("user,time,state\n", "no rows"),
    "one state": ("user,time,state\n1,0,a\n1,1,a\n", "at least 2 different states"),
    "nan": ("user,time,state\n1,0,a\n1,1,nan\n", "no value in data row 2"),
    "twice": ("user,time,state\n1,0,a\n1,0,b\n", "two states at time '0'"),
    "unsorted": ("user,time,state\n1,1,a\n1,0,b\n", "times are not in order"),
    "mixed": ("user,time,state\n1,1,a\n1,2024-01-01,b\n", "mixed types"),
    "no row": ("user,time,state\n1,0,a\n1,1,b\n", "no next state for 'b'|no previous state for 'a'"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", BAD_TRACES)
@pytest.mark.parametrize(
    "command",
    [
        ("audit", "--epsilon", "0.1"),
        ("plan", "--alpha", "1", "-o", "p.json"),
        ("report", "--epsilon", "1", "-o", "r.html"),
    ],
    ids=lambda command: command[0],
)
def test_invalid_traces_are_refused(tmp_path, case, command):
    content, message = BAD_TRACES[case]
    if content is not None:
        (tmp_path / "t.csv").write_text(content)
    found = refused(command[0], "t.csv", *command[1:], cwd=tmp_path)
    assert any(part in found for part in message.split("|"))
    assert found.startswith("error: ")
    assert found.count("error") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("audit", SAMPLE, "--epsilon", "0"), "--epsilon: privacy.epsilon = "),
        (("audit", SAMPLE, "--epsilon", "-1"), "--epsilon: privacy.epsilon = "),
        (("audit", SAMPLE, "--epsilon", "nan"), "--epsilon: privacy.epsilon = "),
        (("audit", SAMPLE, "--epsilon", "lots"), "Invalid value for '--epsilon'"),
        (("audit", SAMPLE), "expected --epsilon E"),
        (("audit", "--epsilon", "1"), "expected TRACES"),
        (("audit", SAMPLE, "--epsilon", "1", "--horizon", "0"), "greater than or equal to 1"),
        (("audit", SAMPLE, "--epsilon", "1", "--set", "correlation.prior=-1"), "correlation.prior"),
        (("audit", SAMPLE, "--epsilon", "1", "--set", "traces.states=W,R"), "not among the expected states 'W', 'R'"),
        (("audit", SAMPLE, "--epsilon", "1", "--set", "traces.states=W,,R"), "name of state 1 is missing"),
        (("audit", SAMPLE, "--epsilon", "1", "--set", "traces.layout=long"), "no column 'time', 'state'"),
        (("audit", SAMPLE, "--epsilon", "1", "--history", "absent.csv"), "absent.csv does not exist"),
        (("plan", SAMPLE, "--alpha", "0"), "--alpha: study.alphas = "),
        (("plan", SAMPLE, "--alpha", "-2"), "--alpha: study.alphas = "),
        (("plan", SAMPLE, "--alpha", "1", "--horizon", "0"), "greater than or equal to 1"),
        (
            ("plan", SAMPLE, "--alpha", "1", "--set", "plan.method=magic"),
            "'optimal', 'upper_bound', 'quantified' or 'uniform'",
        ),
        (("plan", SAMPLE, "--alpha", "1", "--set", "plan.method=quantified"), "needs the horizon"),
        (("plan", SAMPLE, "--alpha", "1", "--compare"), "give --horizon T"),
        (("plan", SAMPLE, "--alpha", "1", "--horizon", "9", "--figure", "x.bmp"), ".png or .svg"),
        (("plan", SAMPLE, "--alpha", "1", "-o", "no/folder/p.json"), "folder no/folder does not exist"),
        (("release", SAMPLE, "--plan", "absent.json", "-o", "r.csv"), "absent.json does not exist"),
        (("release", SAMPLE, "--plan", "absent.json", "-o", "r.xlsx"), ".parquet or .csv"),
        (("release", SAMPLE, "--plan", "absent.json", "-o", "no/r.csv"), "folder no does not exist"),
        (("report", SAMPLE, "-o", "r.html"), "expected --epsilon"),
        (
            ("report", "--epsilon", "1", "--plan", "p.json", "--ledger", "l.db", "-o", "r.html"),
            "expected one of --epsilon",
        ),
        (("report", SAMPLE, "--epsilon", "1", "-o", "no/r.html"), "folder no does not exist"),
        (("report", SAMPLE, "--epsilon", "1", "--set", "report.true_counts=true", "-o", "r.html"), "give both"),
    ],
)
def test_invalid_arguments_are_refused(tmp_path, arguments, message):
    assert message in refused(*arguments, cwd=tmp_path).replace("\n", " ")


@pytest.mark.long
def test_states_that_differ_between_matrix_plan_and_data(tmp_path, plan_file):
    save_matrix(TransitionMatrix([[0.5, 0.5], [0.5, 0.5]], ["W", "X"]), tmp_path / "m.csv")
    message = refused("audit", SAMPLE, "--epsilon", "1", "--set", "correlation.backward=m.csv", cwd=tmp_path)
    assert "is not among the expected states 'W', 'X'" in message
    (tmp_path / "t.csv").write_text("user,t0,t1\n1,W,N9\n")
    assert "state 'N9' is not among" in refused("release", "t.csv", "--plan", plan_file, "-o", "r.csv", cwd=tmp_path)


@pytest.mark.long
def test_a_plan_shorter_than_the_data(tmp_path):
    save_plan(plan_budget(Adversary(), alpha=1.0, horizon=3), tmp_path / "p.json")
    message = refused("release", SAMPLE, "--plan", "p.json", "-o", "r.parquet", cwd=tmp_path)
    assert "it is for 3 steps, the data have 47" in message


def test_unsatisfiable_level_has_its_own_exit_code(tmp_path):
    save_matrix(TransitionMatrix([[1.0, 0.0], [0.0, 1.0]], ["home", "work"]), tmp_path / "m.csv")
    message = refused(
        "plan", "--set", "correlation.backward=m.csv", "--alpha", "1", "-o", "p.json", cwd=tmp_path, code=3
    )
    assert "several closed classes of states" in message
    by_paper = ("plan", "--set", "correlation.backward=m.csv", "--alpha", "1", "--bound", "paper", "-o", "p.json")
    assert "'home' from 'work' with certainty" in refused(*by_paper, cwd=tmp_path, code=3)


@pytest.mark.long
def test_a_history_of_another_step_is_refused(tmp_path):
    rows = ["user,time,state"]
    rows += [f"{u},2024-01-01T{h:02d}:00,{s}" for u in (1, 2) for h, s in enumerate("abbaabab")]
    (tmp_path / "hourly.csv").write_text("\n".join(rows))
    rows = ["user,time,state"]
    rows += [f"{u},2024-01-02T08:{5 * m:02d},{s}" for u in (1, 2) for m, s in enumerate("abbaabab")]
    (tmp_path / "now.csv").write_text("\n".join(rows))
    message = refused("audit", "now.csv", "--history", "hourly.csv", "--epsilon", "0.1", cwd=tmp_path)
    assert "one step of hourly.csv is 3600 seconds, one step of the release is 300 seconds" in message
    made = temporaldp("plan", "--history", "hourly.csv", "--alpha", "1", "-o", "plan.json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    message = refused("release", "now.csv", "--plan", "plan.json", "-o", "r.csv", cwd=tmp_path)
    assert "one step of the plan is 3600 seconds, one step of the data 300 seconds" in message
    assert temporaldp("release", "hourly.csv", "--plan", "plan.json", "-o", "r.csv", cwd=tmp_path).returncode == 0


def test_a_release_of_a_report_needs_a_ledger(tmp_path):
    message = refused(
        "report", "--epsilon", "0.1", "--horizon", "3", "-o", "r.html", "--release", "0" * 32, cwd=tmp_path
    )
    assert "give the service's store too (--ledger)" in " ".join(message.split())


NESTED = "[" * 20_000 + "]" * 20_000


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "text", "arguments"),
    [
        ("temporaldp.toml", f"[traces]\nstates = {NESTED}\n", ("audit", SAMPLE, "--epsilon", "0.1")),
        ("p.json", NESTED, ("release", SAMPLE, "--plan", "p.json", "-o", "o.csv")),
        ("m.json", NESTED, ("audit", SAMPLE, "--epsilon", "0.1", "--set", "correlation.forward=m.json")),
        ("c.json", NESTED, ("audit", SAMPLE, "--epsilon", "0.1", "--set", "correlation.file=c.json")),
        ("r.yaml", f"a: {NESTED}\n", ("deployment", "r.yaml")),
    ],
)
def test_nested_brackets_are_refused(tmp_path, name, text, arguments):
    (tmp_path / name).write_text(text)
    assert name in refused(*arguments, cwd=tmp_path)


def test_nested_brackets_in_the_metadata_of_released_counts_are_refused(tmp_path):
    columns = {"time": ["1", "1"], "state": ["a", "b"], "noisy": [1, 2], "scale": [2.0, 2.0], "epsilon": [1.0, 1.0]}
    table = pyarrow.table(columns).replace_schema_metadata({b"temporaldp": NESTED})
    parquet.write_table(table, tmp_path / "r.parquet")
    with pytest.raises(InputError, match="expected histograms"):
        load_released(tmp_path / "r.parquet")


@pytest.mark.long
def test_texts_of_others_do_not_control_the_terminal(tmp_path):
    """A project file's keys and the notes of tokens are printed with escapes in place of control characters."""
    (tmp_path / "temporaldp.toml").write_text('[traces]\n"us\\u001b[2Jer\\u009b\\u202e" = "x"\n')
    message = refused("audit", SAMPLE, "--epsilon", "0.1", cwd=tmp_path)
    assert r"\x1b[2J" in message and not {"\x1b", "\x9b", "\u202e"} & set(message)
    store = str(tmp_path / "s.db")
    assert "control characters" in refused(
        "token", "create", "--store", store, "--role", "read", "--note", "a\x1b[31mb"
    )
    assert temporaldp("token", "create", "--store", store, "--role", "read", "--note", "ann").returncode == 0
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE temporaldp_tokens SET note = 'a' || char(27) || '[31mb'")
    shown = temporaldp("token", "list", "--store", store).stdout
    assert r"\x1b" in shown and "\x1b" not in shown
