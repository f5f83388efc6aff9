"""The project file: what it may say, what overrides it, and how a mistake in it is reported."""

from __future__ import annotations

import hashlib
import json

import jsonschema
import numpy as np
import pandas as pd
import pytest

import temporaldp as tdp
from command import SAMPLE, refused, temporaldp
from temporaldp.base.errors import LedgerMismatchError
from temporaldp.core.correlation import independent_adversary
from temporaldp.data.tables.traces import shared_people
from temporaldp.publish.project import inputs
from temporaldp.publish.project.document import json_schema, read_settings
from temporaldp.publish.project.inputs import gather
from temporaldp.publish.project.publishing import publishing
from temporaldp.publish.project.release import setup_of, without_traces
from temporaldp.publish.release import SharedRelease


def written(folder, text):
    file = folder / "temporaldp.toml"
    file.write_text(text)
    return file


COMPLETE = f"""
[traces]
path = "{SAMPLE}"

[privacy]
alpha = 1.0
horizon = 47
"""


@pytest.mark.long
def test_project_in_python_agrees_with_the_functions(tmp_path):
    project = tdp.Project.load(written(tmp_path, COMPLETE))
    (adversary,) = tdp.estimate_adversaries(tdp.read_traces(SAMPLE))
    assert project.traces().histogram().tolist() == tdp.read_traces(SAMPLE).histogram().tolist()
    assert project.adversary().backward == adversary.backward
    np.testing.assert_array_equal(project.plan().epsilons, tdp.plan_budget(adversary, alpha=1.0, horizon=47).epsilons)
    assert tdp.Project.load(written(tmp_path, COMPLETE), ["privacy.alpha=2"]).plan().alpha == 2.0


def release_of(rows, folder, settings):
    """A project that releases `rows`; its history has the same states of other people."""
    for name, others in (("past", "other "), ("now", "")):
        (folder / f"{name}.csv").write_text("\n".join(["user,time,state", *(others + row for row in rows)]) + "\n")
    sections = """
[traces]
path = "now.csv"
[history]
path = "past.csv"
[privacy]
alpha = 1
[release]
"""
    return written(folder, f"{sections}{settings}\n")


@pytest.mark.long
def test_a_release_of_a_project_continues_its_ledger(tmp_path):
    rows = [f"{user},{t},{'ab'[(t + user * t // 2) % 2]}" for user in range(40) for t in range(6)]
    project = tdp.Project.load(release_of(rows, tmp_path, 'ledger = "r.db"\noutput = "out.csv"'))
    first = project.release()
    assert project.release().counts.tolist() == first.counts.tolist()
    assert tdp.load_released(tmp_path / "out.csv").counts.tolist() == first.counts.tolist()
    with tdp.Ledger(tmp_path / "r.db") as ledger:
        assert len(ledger) == 6
        assert ledger[-1].leakage <= 1.0
        noted = len(ledger.events)
    changed = ["release.head=0123456789abcdef", "privacy.bound=exact"]  # another recipe, which would be noted
    with pytest.raises(tdp.LedgerError, match="0123456789abcdef"):
        tdp.Project.load(tmp_path / "temporaldp.toml", changed).release()
    with tdp.Ledger(tmp_path / "r.db") as ledger:
        assert len(ledger.events) == noted


@pytest.mark.long
def test_release_writes_estimates(tmp_path):
    rows = [f"u{u},{t},{s}" for u, states in enumerate(("abbaab", "bbaabb", "aabbab")) for t, s in enumerate(states)]
    for level, place in (("ledger", "r.db"), ("plan", "plan.json")):
        file = release_of(rows, tmp_path, f"output = 'out-{level}.csv'\n{level} = '{tmp_path / place}'")
        if level == "plan":
            tdp.save_plan(tdp.Project.load(file, ["privacy.horizon=6"]).plan(), tmp_path / place)
        tdp.Project.load(file).release()
        head, *lines = (tmp_path / f"out-{level}.csv").read_text().splitlines()
        assert head.startswith("time,state,estimate,low,high,noisy") and len(lines) == 12, level


@pytest.mark.long
def test_a_release_by_noise_of_a_plan_reads_each_table_once(tmp_path, monkeypatch):
    rows = [f"{user},{t},{'ab'[(t + user * t // 2) % 2]}" for user in range(40) for t in range(6)]
    file = release_of(rows, tmp_path, "output = 'out.csv'\nledger = 'r.db'\nestimates = 'smoothed'")
    names, plain = [], inputs.read_traces
    monkeypatch.setattr(inputs, "read_traces", lambda path, **terms: names.append(path.name) or plain(path, **terms))
    released = tdp.Project.load(file, ["privacy.delta=1e-10", "privacy.horizon=6"]).release()
    assert sorted(names) == ["now.csv", "past.csv"] and released.counts.shape == (6, 2)


@pytest.mark.long
def test_project_releases_a_table_of_a_shared_account(tmp_path):
    rows = [f"{user},{t},{'ab'[(t + user) % 2]}" for user in range(20) for t in range(3)]
    (tmp_path / "now.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    walk = tdp.TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
    other = tdp.TransitionMatrix([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.2, 0.1, 0.7]])
    both = independent_adversary(tdp.Adversary(walk, walk), tdp.Adversary(other, other))
    accountant = tdp.TemporalAccountant(both, alpha=1.0)
    states = {"here": ("a", "b"), "there": ("x", "y", "z")}
    with SharedRelease(
        "here", tdp.DiscreteLaplaceHistogram(2), shares={"here": 0.5, "there": 0.5}, ledger=tmp_path / "account.db",
        accountant=accountant, states=states,
    ):  # fmt: skip
        pass
    text = '[traces]\npath = "now.csv"\n[release]\nledger = "account.db"\noutput = "here.csv"\ntable = "here"\n'
    file = written(tmp_path, text)
    released = tdp.Project.load(file).release()
    assert tdp.load_released(tmp_path / "here.csv").counts.tolist() == released.counts.tolist()
    with tdp.Ledger(tmp_path / "account.db") as ledger:
        assert (0.49 * ledger.epsilons <= released.epsilons).all()
        assert (released.epsilons <= 0.5 * ledger.epsilons).all()
    (tmp_path / "here.csv").unlink()
    assert tdp.Project.load(file).release().counts.tolist() == released.counts.tolist()
    for wrong, message in (
        ("table=none", "no table 'none'"),
        ("plan=p.json", "leave out plan"),
        ("ledger=r.db", "no ledger"),
    ):
        with pytest.raises(tdp.TemporaldpError, match=message):
            tdp.Project.load(file, [f"release.{wrong}"]).release()


@pytest.mark.long
def test_a_release_by_a_plan_alone_refuses_settings_that_need_a_ledger(tmp_path):
    project = tdp.Project.load(written(tmp_path, COMPLETE))
    tdp.save_plan(project.plan(), tmp_path / "plan.json")
    for setting in ("release.head=0123456789ab", "release.warn_at=0.5", "release.log=l.jsonl"):
        assignments = [setting, f"release.plan={tmp_path / 'plan.json'}"]
        with pytest.raises(tdp.InputError, match="need a ledger"):
            tdp.Project.load(tmp_path / "temporaldp.toml", assignments).release()


def test_a_release_without_a_level_is_refused(tmp_path):
    with pytest.raises(tdp.InputError, match="expected --plan FILE"):
        tdp.Project.load(written(tmp_path, COMPLETE)).release()
    with pytest.raises(tdp.InputError, match="expected a level"):
        tdp.Project.load(written(tmp_path, f"[traces]\npath = '{SAMPLE}'\n")).plan()


def test_paths_of_the_file_are_relative_to_its_folder_and_those_of_a_command_to_the_working_directory(tmp_path):
    (tmp_path / "inner").mkdir()
    text = '[traces]\npath = "t.csv"\n[release]\nledger = "r.db"\nplan = "/absolute.json"\n'
    file = written(tmp_path / "inner", text)
    found = read_settings(file, ["history.path=past.csv"])
    assert found.traces.path == tmp_path / "inner" / "t.csv"
    assert found.release.ledger == str(tmp_path / "inner" / "r.db")
    assert str(found.release.plan) == "/absolute.json"
    assert str(found.history.path) == "past.csv"
    url = "postgresql://host/database"
    assert read_settings(written(tmp_path, f'[release]\nledger = "{url}"\n')).release.ledger == url


WRITTEN = {
    "release.ledger": "x.db",
    "release.output": "x.csv",
    "release.log": "x.jsonl",
    "report.output": "x.html",
    "learn.output": "x.json",
    "learn.ledger": "x.sqlite",
}


@pytest.mark.parametrize("key", WRITTEN)
def test_a_project_file_chooses_no_file_outside_of_its_folder_and_no_ending(tmp_path, key, monkeypatch):
    inner, name = tmp_path / "inner", WRITTEN[key]
    (inner / "below").mkdir(parents=True)
    (inner / "out").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    section, _, field = key.partition(".")

    def found(place, *assignments):
        file = written(inner, f"[{section}]\n{field} = '{place}'\n")
        return str(getattr(getattr(read_settings(file, assignments), section), field))

    assert found(f"below/{name}") == str(inner / "below" / name)
    assert found(inner / name) == str(inner / name)
    for place in (
        f"../{name}",
        str(tmp_path / name),
        f"out/{name}",
        f"below/../../{name}",
        ".bashrc",
        "below/x.sh",
        "x",
    ):
        with pytest.raises(
            tdp.InputError, match=rf"line 2: expected {key} to be a file ending in .* on the command line"
        ):
            found(place)
        assert found(place, f"{key}=elsewhere") == "elsewhere"
    if key != "release.ledger":
        (tmp_path / "postgresql:").mkdir()
        assert found(f"postgresql://{name}") == str(inner / f"postgresql:/{name}")
        with pytest.raises(tdp.InputError, match=key):
            found(f"postgresql://../../{name}")


def test_every_path_of_the_project_file_is_known_to_be_read_or_written():
    """A key that is added must be looked at: a file that is written is listed above."""
    sections = json.loads(json_schema())["$defs"]
    found = {
        f"{section}.{key}"
        for section, name in (
            ("release", "ReleaseSettings"), ("report", "ReportSettings"), ("learn", "LearningSettings"),
            ("study", "StudySettings"), ("privacy", "PrivacySettings"), ("plan", "PlanSettings"),
        )
        for key, field in sections[name]["properties"].items()
        if '"path"' in json.dumps(field)
    }  # fmt: skip
    assert found == {*WRITTEN, "release.plan", "report.released"}


def test_a_condition_on_rows_neither_writes_nor_reads_other_files(tmp_path):
    table, other = tmp_path / "t.csv", tmp_path / "other.csv"
    table.write_text("user,time,state\na,1,x\na,2,y\n")
    other.write_text("user\na\n")
    for where in (
        f"1=1); COPY (SELECT 'touch x') TO '{tmp_path / 'rc'}' (HEADER false); SELECT * FROM (SELECT 1 WHERE (1=1",
        f"1=1); COPY (SELECT 'touch x') TO '{table}' (HEADER false); SELECT * FROM (SELECT 1 WHERE (1=1",
        f"1=1) UNION ALL SELECT user, user, user, 1 FROM read_csv('{other}') WHERE (1=1",
        f'"user" IN (SELECT "user" FROM read_csv(\'{other}\'))',
        f"(SELECT count(*) FROM read_text('{other}')) > 0",
    ):
        with pytest.raises(tdp.InputError, match="expected where to be an SQL condition"):
            tdp.read_traces(table, where=where)
        assert not (tmp_path / "rc").exists() and table.read_text().startswith("user,time")
    assert tdp.read_traces(table, where="\"state\" IN ('x', 'y')").n_users == 1


def test_history_inherits_settings_of_the_traces_except_rows_and_format(tmp_path):
    text = """
[traces]
user = "id"
delimiter = ";"
where = "a = 1"
states = ["x", "y"]
[history]
path = "p.csv"
time = "t"
"""
    history = read_settings(written(tmp_path, text)).history_table
    assert (history.user, history.time, history.states) == ("id", "t", ("x", "y"))
    assert (history.delimiter, history.where) == (None, None)


@pytest.mark.parametrize(
    ("keys", "every"), [("", "1h"), ('layout = "wide"', None), ('layout = "sequences"', None), ('every = "2h"', "2h")]
)
def test_history_of_states_has_no_event_grid(tmp_path, keys, every):
    text = f'[traces]\nevery = "1h"\nfill = "last"\n[history]\npath = "p.csv"\n{keys}\n'
    history = read_settings(written(tmp_path, text)).history_table
    assert (history.every, history.fill) == (every, every and "last")


@pytest.mark.parametrize(
    ("keys", "states"),
    [
        ('absent = "away"', ("a", "b", "away")),
        ('absent = "away"\nstates = ["a", "b"]', ("a", "b", "away")),
        ('absent = "away"\nstates = ["away", "b", "a"]', ("b", "a", "away")),
        ('every = "1"\nfill = "absent"\nstates = ["a", "b"]', ("a", "b", "absent")),
    ],
)
def test_absence_is_a_state_even_if_it_is_not_listed(tmp_path, keys, states):
    rows = "user,time,state\n1,0,a\n1,1,b\n1,3,a\n2,0,b\n2,2,a\n2,3,b\n"
    (tmp_path / "t.csv").write_text(rows)
    (tmp_path / "past.csv").write_text(rows)
    text = f'[traces]\npath = "t.csv"\n{keys}\n[history]\npath = "past.csv"\n'
    found = gather(read_settings(written(tmp_path, text)))
    assert found.states == found.trajectories.states == states


def test_the_command_line_overrides_assignments_which_override_the_file(tmp_path):
    file = written(tmp_path, "[privacy]\nalpha = 1\nepsilon = 0.1\nhorizon = 5\n")
    found = read_settings(file, ["privacy.alpha=2", "privacy.epsilon=0.2"], {"privacy.alpha": ("--alpha", 3.0)})
    assert (found.privacy.alpha, found.privacy.epsilon, found.privacy.horizon) == (3.0, 0.2, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[traces]\nusr = 'id'\n", r"toml, line 2: unknown key traces.usr; did you mean traces.user\?"),
        ("[trace]\nuser = 'id'\n", r"toml, line 1: unknown section \[trace\]; did you mean \[traces\]\?"),
        ("[traces]\nalpha = 1\n", r"line 2: unknown key traces.alpha; did you mean privacy.alpha\?"),
        (
            "[traces]\nuser = 'id'\n\n[privacy]\n\nalpha = -1\n",
            r"line 6: privacy.alpha = -1 is not accepted: .*greater than 0",
        ),
        ("[privacy]\nalpha = true\n", r"line 2: .*a number, not true or false"),
        ("[privacy]\nalpha = nan\n", r"line 2: .*greater than 0"),
        ("[privacy]\nnoise = 'cauchy'\n", r"line 2: .*'gaussian' or 'laplace'"),
        ("[privacy]\nhorizon = 2.5\n", r"line 2: .*integer"),
        ("[correlation]\nstays = '0.1:0.2:0.3'\n", r"line 2: .*FROM:TO"),
        ("[deployment]\ntables = 'country'\n", r"line 2: .*NAME=NUMBER"),
        ("[deployment]\ntables = 'x=0.5, x=0.5'\n", r"line 2: .*each name once"),
        ("[release]\nshares = 'a=0.2,b=0.5, a=0.4'\n", r"line 2: .*each name once"),
        ("[traces\n", "is not valid TOML"),
        ("user = 'id'\n", "'user' is outside of a section"),
    ],
)
def test_error_is_reported_with_its_line(text, message, tmp_path):
    with pytest.raises(tdp.InputError, match=message):
        read_settings(written(tmp_path, text))


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("traces.user", "expected --set SECTION.KEY=VALUE"),
        ("user=id", "expected --set SECTION.KEY=VALUE"),
        ("traces.usr=id", r"--set traces.usr: unknown key traces.usr; did you mean traces.user\?"),
        ("privacy.alpha=much", "--set privacy.alpha: privacy.alpha = 'much' is not accepted"),
    ],
)
def test_error_in_an_assignment_is_reported(assignment, message):
    with pytest.raises(tdp.InputError, match=message):
        read_settings(None, [assignment])


def test_a_file_that_is_named_must_exist(tmp_path):
    with pytest.raises(tdp.errors.MissingFileError, match="`temporaldp init TABLE` writes one"):
        read_settings(tmp_path / "none.toml")


def test_unknown_option_that_is_a_setting_suggests_set(tmp_path):
    assert "--set traces.user=VALUE" in refused("audit", SAMPLE, "--user", "id", cwd=tmp_path)
    assert "--horizon" in refused("audit", SAMPLE, "--horizn", "3", cwd=tmp_path)


@pytest.mark.long
def test_the_schema_accepts_what_the_model_accepts(tmp_path):
    import tomllib

    schema = json.loads(json_schema())
    jsonschema.validate(tomllib.loads(COMPLETE), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"traces": {"usr": "id"}}, schema)
    made = temporaldp("init", SAMPLE, "--schema", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    jsonschema.validate(tomllib.loads((tmp_path / "temporaldp.toml").read_text()), schema)
    assert json.loads((tmp_path / "temporaldp.schema.json").read_text()) == schema
    assert (tmp_path / "temporaldp.toml").read_text().startswith("#:schema ./temporaldp.schema.json\n")


@pytest.mark.long
def test_release_never_replaces_a_foreign_file(tmp_path):
    rows = [f"{user},{t},{'ab'[(t + user) % 2]}" for user in range(20) for t in range(3)]
    file = release_of(rows, tmp_path, 'ledger = "release.db"\noutput = "out.csv"')
    (tmp_path / "out.csv").write_text("other,file\n1,2\n")
    with pytest.raises(tdp.TemporaldpError, match=r"out\.csv exists"):
        tdp.Project.load(file, ["correlation.prior=1"]).release()
    assert (tmp_path / "out.csv").read_text() == "other,file\n1,2\n"
    assert not (tmp_path / "release.db").exists() or not len(tdp.Ledger(tmp_path / "release.db"))
    released = tdp.Project.load(file, ["correlation.prior=1"]).release(overwrite=True)
    assert tdp.Project.load(file, ["correlation.prior=1"]).release().counts.tolist() == released.counts.tolist()


@pytest.mark.long
def test_an_output_of_a_plan_is_drawn_once(tmp_path):
    project = tdp.Project.load(written(tmp_path, COMPLETE))
    tdp.save_plan(project.plan(), tmp_path / "plan.json")
    assignments = [f"release.plan={tmp_path / 'plan.json'}", f"release.output={tmp_path / 'out.csv'}"]
    project = tdp.Project.load(tmp_path / "temporaldp.toml", assignments)
    project.release()
    published = (tmp_path / "out.csv").read_text()
    with pytest.raises(tdp.TemporaldpError, match="spends the budgets twice"):
        project.release()
    assert (tmp_path / "out.csv").read_text() == published


@pytest.mark.long
@pytest.mark.parametrize("history", ["d/*.csv", "d", "d/../d/one.csv"])
def test_traces_used_as_history_are_protected_under_any_path(history, tmp_path):
    (tmp_path / "d").mkdir()
    rows = [f"{user},{t},{'ab'[(t * user) % 2]}" for user in range(20) for t in range(6)]
    (tmp_path / "d" / "one.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    text = (
        f'[traces]\npath = "d/*.csv"\n[history]\npath = "{history}"\n[release]\nledger = "r.db"\n[privacy]\nalpha = 1\n'
    )
    project = tdp.Project.load(written(tmp_path, text))
    assert project.inputs().provenance.source == "protected"
    project.release()
    hidden = hashlib.sha256((tmp_path / "d" / "one.csv").read_bytes()).hexdigest()
    assert hidden.encode() not in (tmp_path / "r.db").read_bytes()


@pytest.mark.long
def test_an_older_export_of_the_protected_table_is_no_public_history():
    """A few entries were corrected since."""
    codes = np.random.default_rng(0).integers(3, size=(30, 100))
    times = [f"2024-03-{day:02d}T{hour:02d}" for day in range(1, 6) for hour in range(20)]

    def frame(codes, name=str):
        rows = [
            (name(k), time, "abc"[code]) for k, row in enumerate(codes) for time, code in zip(times, row, strict=True)
        ]
        return tdp.read_traces(pd.DataFrame(rows, columns=["user", "time", "state"]))

    older = codes.copy()
    older[:, 50] = (older[:, 50] + 1) % 3
    assert shared_people(frame(older), frame(codes)).n_observed == 30
    assert shared_people(frame(older, float), frame(codes, int)).n_observed == 30  # 17.0 after a cell was empty
    assert shared_people(frame(older, "p{}".format), frame(codes)).n_known == 0
    older[:, :50] = np.random.default_rng(1).integers(3, size=(30, 50))
    assert shared_people(frame(older), frame(codes)).n_observed == 0


def people_at(names, times, seed=0):
    """Rows of people who move at random at some times."""
    rng = np.random.default_rng(seed)
    return [f"{name},{time},{'abc'[rng.integers(3)]}" for name in names for time in times]


NOW, LAST_YEAR = [f"2024-03-{day:02d}" for day in range(1, 13)], [f"2023-03-{day:02d}" for day in range(1, 13)]
ANN_TO_ZOE = [f"p{k}" for k in range(12)]
OTHERS = [f"q{k}" for k in range(12)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("history", "said", "is_protected"),
    [
        (people_at(OTHERS, LAST_YEAR, 1), "none of its 12 people is among the protected ones", False),
        (people_at(OTHERS, NOW, 1), "none of its 12 people is among the protected ones", False),
        (
            people_at(ANN_TO_ZOE, LAST_YEAR, 1),
            "all of its 12 people are among the protected ones, at other times",
            False,
        ),
        (
            people_at(ANN_TO_ZOE[:4] + OTHERS, LAST_YEAR, 1),
            "4 of its 16 people are among the protected ones, at other times",
            False,
        ),
        (
            people_at(ANN_TO_ZOE, NOW, 1),
            "all of its 12 people are among the protected ones, at other times",
            False,
        ),  # other states
        (
            people_at(ANN_TO_ZOE, NOW),
            "all of its 12 people are among the protected ones, with the same states",
            True,
        ),  # a copy
        (
            people_at(ANN_TO_ZOE, NOW)[::-1],
            "all of its 12 people are among the protected ones, with the same states",
            True,
        ),
        (
            people_at(ANN_TO_ZOE, NOW)[:60] + people_at(OTHERS, NOW, 1),
            "5 of its 17 people are among the protected ones, with",
            True,
        ),
        (
            people_at(ANN_TO_ZOE, NOW)[:30] + people_at(OTHERS, LAST_YEAR, 1),
            "3 of its 15 people are among the protected ones, with",
            True,
        ),
    ],
)
def test_the_people_and_times_of_a_history_are_compared_with_the_protected_ones(history, said, is_protected, tmp_path):
    now = people_at(ANN_TO_ZOE, NOW)
    for name, rows in (("now", now), ("past", history)):
        (tmp_path / f"{name}.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    text = '[traces]\npath = "now.csv"\n[history]\npath = "past.csv"\nsort = true\n[release]\nledger = "r.db"\n'
    file = written(tmp_path, f"{text}[correlation]\nprior = 1\n[privacy]\nalpha = 1\n")
    project = tdp.Project.load(file)
    found = project.inputs()
    assert found.shared.sentence.startswith(said)
    assert (found.provenance.source == "protected") == is_protected
    warning = found.provenance.warning or ""  # which stands in published texts, and so names no number of people
    assert is_protected == ("estimated from the protected traces themselves" in warning) and said not in warning
    smoothed = tdp.Project.load(file, ["release.estimates=smoothed"])
    if is_protected:
        with pytest.raises(tdp.InputError, match="learned from the protected traces"):
            smoothed.release()
    else:
        smoothed.release()
    without = gather(without_traces(project.settings))  # post-processing compares them, too
    assert (without.shared, without.trajectories) == (found.shared, None)


@pytest.mark.long
def test_a_ledger_goes_on_while_its_traces_leave_the_history_behind(tmp_path):
    """A history that shares rows with the first traces smooths nothing, and the ledger has no filter; later traces do not."""

    def written_rows(name, rows):
        (tmp_path / name).write_text("\n".join(["user,time,state", *rows]) + "\n")

    later = [f"2024-03-{day:02d}" for day in range(13, 16)]
    text = '[traces]\npath = "now.csv"\nstates = ["a", "b", "c"]\n[history]\npath = "past.csv"\n[release]\nledger = "r.db"\n'
    project = tdp.Project.load(written(tmp_path, f"{text}[correlation]\nprior = 1\n[privacy]\nalpha = 1\n"))
    written_rows("past.csv", people_at(ANN_TO_ZOE, NOW))
    written_rows("now.csv", people_at(ANN_TO_ZOE, NOW))
    first = project.release()
    written_rows("now.csv", people_at(ANN_TO_ZOE, later))
    second = project.release()
    assert (first.times, second.times) == (tuple(NOW), tuple(later))
    # Its rows were protected by the first steps: no hash of them is kept, and their warning stays
    assert (
        hashlib.sha256((tmp_path / "past.csv").read_bytes()).hexdigest().encode()
        not in (tmp_path / "r.db").read_bytes()
    )
    with publishing(setup_of(project.settings), None) as run:
        assert not any("protected traces themselves" in one for one in run.setup.warnings)
        assert any("estimated from the protected traces themselves" in one for one in run.warnings)
    project = tdp.Project.load(tmp_path / "temporaldp.toml", [f"release.ledger={tmp_path / 'other.db'}"])
    project.release()  # this ledger begins with a filter
    written_rows("now.csv", people_at(ANN_TO_ZOE, NOW))
    with pytest.raises(LedgerMismatchError, match="only if the people of TRACES are not in it"):
        project.release()


def test_a_part_of_one_table_may_be_the_history_of_another_part(tmp_path):
    rows = [*people_at(ANN_TO_ZOE, NOW), *people_at(OTHERS, NOW, 1)]
    (tmp_path / "all.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    text = "[traces]\npath = 'all.csv'\nwhere = \"user[1] = 'p'\"\n[history]\npath = 'all.csv'\n"
    for where, is_protected in (("user[1] = 'q'", False), ("user[2] = '1'", True)):
        project = tdp.Project.load(written(tmp_path, f'{text}where = "{where}"\n'), ["correlation.prior=1"])
        assert (project.inputs().provenance.source == "protected") == is_protected


@pytest.mark.long
def test_phase_that_cannot_be_computed_is_requested(tmp_path):
    """Naive times of a history and zoned times of the data: at phase 0, a release of phase 14 exceeded its level."""
    times = [f"2024-04-{day:02d}T{hour:02d}:00" for day in (1, 2, 3) for hour in range(24)]
    for name, zone, chosen in (("past", "", times), ("now", "Z", times[14:24])):
        rows = [f"{u},{time}{zone},{'ab'[(u + k) % 2]}" for u in range(8) for k, time in enumerate(chosen)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    tables = '[traces]\npath = "now.csv"\n[history]\npath = "past.csv"\n'
    text = f"{tables}[correlation]\nperiod = 24\nprior = 1\n[privacy]\nepsilon = 0.1\n"
    file = written(tmp_path, text)
    with pytest.raises(tdp.InputError, match=r"phase of the first step cannot be computed.*correlation\.phase"):
        tdp.Project.load(file).inputs()
    assert tdp.Project.load(file, ["correlation.phase=14"]).inputs().provenance.clock.phase == 14
    (tmp_path / "past.csv").write_text((tmp_path / "past.csv").read_text().replace(":00,", ":00Z,"))
    assert tdp.Project.load(file).inputs().provenance.clock.phase == 14


def test_a_state_that_the_correlation_does_not_cover_is_refused(tmp_path):
    """Regression: an absent state missing from the matrices was published under their level."""
    rows = [f"{user},{t},{'ab'[(t + user) % 2]}" for user in range(8) for t in range(6) if t < user]
    (tmp_path / "now.csv").write_text("\n".join(["user,time,state", *rows, *(f"8,{t},a" for t in range(6))]) + "\n")
    (tmp_path / "even.csv").write_text(",a,b\na,0.5,0.5\nb,0.5,0.5\n")
    text = '[traces]\npath = "now.csv"\nabsent = "gone"\n[correlation]\nbackward = "even.csv"\nforward = "even.csv"\n'
    file = written(tmp_path, f'{text}[privacy]\nalpha = 1\n[release]\nledger = "r.db"\n')
    for states in ([], ["traces.states=a,b,gone"]):
        with pytest.raises(tdp.TemporaldpError, match="gone"):
            tdp.Project.load(file, states).release()


@pytest.mark.long
def test_a_hard_link_to_the_traces_and_settings_without_them_are_protected_too(tmp_path):
    rows = [f"{user},{t},{'ab'[(t * user) % 2]}" for user in range(20) for t in range(6)]
    (tmp_path / "now.csv").write_text("\n".join(["user,time,state", *rows]) + "\n")
    (tmp_path / "link.csv").hardlink_to(tmp_path / "now.csv")
    file = written(tmp_path, '[traces]\npath = "now.csv"\n[history]\npath = "link.csv"\n')
    project = tdp.Project.load(file)
    assert project.inputs().provenance.source == "protected"
    assert gather(without_traces(project.settings)).provenance.source == "protected"
