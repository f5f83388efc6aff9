"""A release that runs for months: dry runs, other data, adoption, exit codes, the log, export, backup and the report."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import subprocess
import sys
import uuid

import pytest

import postgres
from command import refused, temporaldp, write_sample
from places import REPOSITORY
from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    TemporalAccountant,
    TransitionMatrix,
)
from temporaldp.apps.cli.operation import logged, nearly_used

OLD = ("--alpha", "1", "--history", "past.csv", "--set", "correlation.prior=0.1", "--ledger", "release.db")
NEW = ("--alpha", "1", "--history", "later.csv", "--set", "correlation.prior=0.1", "--ledger", "release.db")


@pytest.fixture
def days(tmp_path):
    """The second half of the sample's people in files, and the first half as two histories."""
    protected = slice(75, None)
    write_sample(
        tmp_path, past=(slice(75), range(46)), later=(slice(37), range(20)), morning=(protected, range(4)),
        fewer=(slice(75, -3), range(4)), noon=(protected, range(2, 7)), early=(protected, range(1, 3)),
        from_two=(protected, range(2, 4)), night=(protected, range(4, 7)),
    )  # fmt: skip
    return tmp_path


def run(days, *arguments):
    result = temporaldp(*arguments, cwd=days)
    assert result.returncode == 0, result.stderr
    return result


def words_of(text):
    return " ".join(text.split())


@pytest.mark.long
def test_dry_run_predicts_the_release_and_writes_nothing(days):
    before = sorted(path.name for path in days.iterdir())
    told = json.loads(run(days, "release", "morning.csv", *OLD, "--check", "--json").stdout)
    assert sorted(path.name for path in days.iterdir()) == before
    done = json.loads(run(days, "release", "morning.csv", *OLD, "-o", "out.csv", "--json").stdout)
    assert [one["epsilon"] for one in told["steps"]] == done["epsilons"]
    assert told["worst_leakage"] == done["worst_leakage"]
    ledger = (days / "release.db").read_bytes()
    again = json.loads(run(days, "release", "noon.csv", *OLD, "--check", "--json").stdout)
    assert (again["new_steps"], again["ledger_steps"]) == (3, 4)
    assert (days / "release.db").read_bytes() == ledger


@pytest.mark.long
def test_missing_digest_key_warns_that_changes_are_not_detected(days, monkeypatch):
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(days / "key"))
    assert "detected" not in run(days, "release", "morning.csv", *OLD, "-o", "out.csv").stderr
    assert "differ from those" in words_of(run(days, "release", "fewer.csv", *OLD, "-o", "again.csv").stderr)
    (days / "key").unlink()
    said = words_of(run(days, "release", "fewer.csv", *OLD, "-o", "again.csv").stderr)
    assert "changed data of 4 times (2024-01-01T00:00, " in said
    assert "are not detected" in said and "TEMPORALDP_KEY_FILE" in said


@pytest.mark.long
def test_dry_run_leaves_a_database_unchanged(days, postgres_server):
    import psycopg

    url = postgres.create_database(postgres_server, f"dry_{uuid.uuid4().hex}")

    def everything():
        with psycopg.connect(url) as connection:
            names = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
            return {
                name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in connection.execute(names)
            }

    def told(*options):
        return json.loads(run(days, "release", "morning.csv", *options, "--ledger", url, "--json").stdout)

    one, two = (("--alpha", alpha, "--history", "past.csv", "--set", "correlation.prior=0.1") for alpha in ("1", "2"))
    forecast = told(*one, "--check")
    assert everything() == {}
    adversary = Adversary(TransitionMatrix([[0.9, 0.1], [0.1, 0.9]]))
    with ContinualRelease(DiscreteLaplaceHistogram(2), ledger=url, accountant=TemporalAccountant(adversary, alpha=0.5)):
        before = everything()
    assert told(*two, "--check")["alpha"] == 2.0  # an empty ledger becomes what it is opened for; not by a dry run
    assert everything() == before
    done = told(*one, "-o", "out.csv")
    assert done["epsilons"] == [step["epsilon"] for step in forecast["steps"]]
    before = everything()
    for other in ((), ("--set", "release.reached=0.5")):  # other settings, as another version, are another recipe
        assert told(*one, *other, "--check")["new_steps"] == 0
        assert everything() == before
    assert told(*one, "-o", "out.csv")["new_steps"] == 0


@pytest.mark.long
def test_life_cycle_of_a_release(days):
    single = ("--ledger", "other.db", "-o", "o.csv", "--set", "release.estimates=single")
    assert "carries little information" in words_of(run(days, "release", "morning.csv", *OLD[:-2], *single).stderr)
    run(days, "release", "morning.csv", *OLD, "-o", "out.csv", "--set", "release.log=log.jsonl")
    first = (days / "out.csv").read_text()
    warned = run(days, "release", "fewer.csv", *OLD, "-o", "again.csv", "--set", "release.warn_at=0.3").stderr
    assert "the data of 4 times" in words_of(warned) and "carries little information" not in words_of(
        warned
    )  # said once
    assert "release.warn_at" not in words_of(warned)  # it spends what lasts for ever
    assert (days / "again.csv").read_text() == first
    head = json.loads(run(days, "ledger", "verify", "release.db", "--json").stdout)["head"]
    assert "from step 5 on" in words_of(
        run(days, "ledger", "adopt", "release.db", *NEW[2:6], "--adopted-by", "Ann").stdout
    )
    message = refused(
        "release", "noon.csv", *OLD, "-o", "noon.csv.csv", "--set", "release.log=log.jsonl", cwd=days, code=2
    )
    assert "ledger adopt" in message
    assert (
        json.loads(
            run(
                days,
                "release",
                "noon.csv",
                *NEW,
                "-o",
                "n.csv",
                "--set",
                "release.log=log.jsonl",
                "--set",
                f"release.head={head}",
                "--json",
            ).stdout
        )["new_steps"]
        == 3
    )
    lines = [json.loads(line) for line in (days / "log.jsonl").read_text().splitlines()]
    assert [line["ended"] for line in lines] == ["done", "LedgerMismatchError", "done"]
    assert lines[-1]["new_steps"] == 3
    assert "older copy" in refused(
        "release", "noon.csv", *NEW, "-o", "n.csv", "--set", f"release.head={'0' * 16}", cwd=days, code=4
    )
    assert "by Ann" in words_of(run(days, "ledger", "show", "release.db").stdout)
    page = days / "report.html"
    run(days, "report", "--ledger", "release.db", "-o", page)
    text = words_of(page.read_text())
    assert "The release satisfies 1-DP_T" in text and "From step 5 on:" in text
    run(days, "ledger", "export", "release.db", "-o", "all.csv")
    with (days / "all.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 7
    assert "--overwrite" in refused("ledger", "export", "release.db", "-o", "all.csv", cwd=days)
    run(days, "ledger", "backup", "release.db", "-o", "copy.db")
    heads = [
        json.loads(run(days, "ledger", "verify", one, "--json").stdout)["head"] for one in ("release.db", "copy.db")
    ]
    assert heads[0] == heads[1]


@pytest.mark.long
def test_withheld_releases_have_their_own_exit_codes(days):
    run(days, "release", "from_two.csv", *OLD, "-o", "out.csv")
    assert "late" in refused("release", "early.csv", *OLD, "-o", "x.csv", cwd=days, code=5)
    plan = (
        "plan",
        "--history",
        "past.csv",
        "--set",
        "correlation.prior=0.1",
        "--alpha",
        "1",
        "--horizon",
        "3",
        "-o",
        "plan.json",
    )
    run(days, *plan)
    run(days, "release", "from_two.csv", "--plan", "plan.json", "--ledger", "p.db", "-o", "two.csv")
    message = refused("release", "noon.csv", "--plan", "plan.json", "--ledger", "p.db", "-o", "x.csv", cwd=days, code=3)
    assert "ends before the data" in words_of(message)


@pytest.mark.parametrize(
    ("settings", "epsilons", "at", "warned"),
    [
        ({}, [None, None], 0.01, False),
        ({}, [None, 0.45], 0.3, True),
        ({"reserve": 0.0}, [0.5, 0.3], 0.5, True),
        ({"horizon": 4}, [None, None, None], 0.8, False),
        ({"horizon": 4}, [None, None, None, None], 0.8, True),
    ],
)
def test_planned_exhaustion_of_the_level_does_not_warn(settings, epsilons, at, warned, tmp_path):
    chain = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    accountant = TemporalAccountant(Adversary(chain, chain), alpha=1.0, **settings)
    with ContinualRelease(DiscreteLaplaceHistogram(2), ledger=tmp_path / "release.db", accountant=accountant) as stream:
        for time, epsilon in enumerate(epsilons):
            stream.release([70, 30], time=time, epsilon=epsilon)
        assert (nearly_used(stream, at) is not None) == warned


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("release", "morning.csv", "--plan", "p.json", "--check", "-o", "x.csv"), "needs a ledger"),
        (("release", "morning.csv", *OLD, "--set", "release.warn_at=80", "-o", "x.csv"), "release.warn_at"),
        (("ledger", "export", "release.db", "-o", "x.txt"), ".parquet or .csv or .json"),
        (("ledger", "adopt", "release.db"), "--history"),
        (("report", "--ledger", "release.db", "--epsilon", "1", "-o", "x.html"), "expected one of"),
        (("report", "morning.csv", "--ledger", "release.db", "-o", "x.html"), "leave out TRACES"),
    ],
)
def test_conflicting_options_are_refused(arguments, message, days):
    assert message in words_of(refused(*arguments, cwd=days))


INTERRUPTED = """
import itertools, signal, time
from temporaldp import DiscreteLaplaceHistogram
from temporaldp.apps.cli import main
draw, drawn = DiscreteLaplaceHistogram.__call__, itertools.count()
def interrupted(*arguments):
    if next(drawn) == 2:
        signal.raise_signal(signal.SIGINT)
        time.sleep(60)
    return draw(*arguments)
DiscreteLaplaceHistogram.__call__ = interrupted
main()
"""


@pytest.mark.long
def test_interrupted_release_reports_what_is_stored_and_resumes(days):
    asked = ("release", "morning.csv", *OLD, "-o", "out.csv")
    command = [sys.executable, "-c", INTERRUPTED, *asked]
    done = subprocess.run(command, cwd=days, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 130
    assert "the ledger has 2 steps: run the same command again" in done.stderr
    assert "nothing was written" not in done.stderr
    assert json.loads(run(days, *asked, "--json").stdout)["new_steps"] == 2


UNWRITABLE = """
import temporaldp.publish.project.publishing as publishing
from temporaldp.apps.cli import main
from temporaldp.base.errors import OutputError
def full(*_, **__):
    raise OutputError("cannot write out.csv: No space left on device")
publishing.save_released = full
main()
"""


@pytest.mark.long
def test_output_that_cannot_be_written_reports_the_stored_steps(days):
    asked = ("release", "morning.csv", *FAST, "-o", "out.csv", "--set", "release.log=log.jsonl")
    command = [sys.executable, "-c", UNWRITABLE, *asked]
    done = subprocess.run(command, cwd=days, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "4 steps drawn before are in the ledger, and the same command returns them" in words_of(done.stderr)
    line = json.loads((days / "log.jsonl").read_text())
    assert (line["ended"], line["new_steps"], line["ledger_steps"]) == ("OutputError", 4, 4)
    assert json.loads(run(days, "release", "morning.csv", *FAST, "-o", "out.csv", "--json").stdout)["new_steps"] == 0


def incoming(days, *names, options=OLD):
    """The script of the documentation, over a folder with these files."""
    folder = days / "incoming"
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        shutil.copy(days / f"{name}.csv", folder / f"{number} {name}.csv")
    program = days / "bin" / "temporaldp"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m temporaldp "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    script = REPOSITORY / "examples" / "release_incoming.sh"
    done = subprocess.run(
        ["sh", script, folder, *options], cwd=days, env=environment, capture_output=True, text=True, check=False
    )
    left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return done.returncode, left


@pytest.mark.slow
def test_files_of_a_folder_are_published_in_order_and_late_ones_set_aside(days):
    assert incoming(days, "from_two", "early") == (
        5, ["late/1 early.csv", *(f"published/0 from_two.{kind}" for kind in ("md", "parquet")), "released/0 from_two.csv"]
    )  # fmt: skip
    for private in ("released", "late"):
        assert (days / "incoming" / private).stat().st_mode & 0o077 == 0
    assert incoming(days)[0] == 0
    (days / "wrong.csv").write_text("nothing,of,the,kind\n1,2,3,4\n")
    assert incoming(days, "wrong", "noon") == (
        2, ["0 wrong.csv", "1 noon.csv", "late/1 early.csv", *(f"published/0 from_two.{kind}" for kind in ("md", "parquet")),
            "released/0 from_two.csv"]
    )  # fmt: skip
    (days / "incoming" / "0 wrong.csv").unlink()
    (days / "incoming" / "1 noon.csv").unlink()
    (days / "release.db").chmod(0o644)
    assert incoming(days, "noon")[0] == 4
    assert (days / "incoming" / "0 noon.csv").exists()
    (days / "release.db").chmod(0o600)
    assert incoming(days)[0] == 0
    assert (days / "incoming" / "published" / "0 noon.parquet").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "mistake", [("--histroy", "past.csv"), ("--history", "psat.csv"), ("--set", "traces.usr=user")]
)
def test_invalid_options_set_no_file_aside(days, mistake):
    assert incoming(days, "from_two", options=(*OLD, *mistake)) == (2, ["0 from_two.csv"])


@pytest.mark.long
def test_rows_with_wrong_dates_are_named_and_nothing_is_drawn(days):
    rows = (days / "morning.csv").read_text().splitlines()
    (days / "wrong.csv").write_text("\n".join([*rows, rows[-1].replace("2024-01-01", "2024-06-30")]))
    asked = ("release", "wrong.csv", *OLD, "-o", "out.csv", "--set", "release.reached=0.1")
    for more in ((), ("--check",)):
        result = temporaldp(*asked, *more, cwd=days)
        assert result.returncode == 2 and f"data row {len(rows)} is later" in words_of(result.stderr)
        assert "2024-06-30" not in result.stderr and rows[-1].split(",")[0] not in result.stderr.split()
    assert not (days / "out.csv").exists()
    assert json.loads(run(days, "release", "morning.csv", *asked[2:], "--json").stdout)["ledger_steps"] == 4


@pytest.mark.parametrize("earlier", ["released", "late"])
def test_a_second_file_of_one_name_is_named_and_replaces_nothing(days, earlier):
    (days / "incoming" / earlier).mkdir(parents=True)
    (days / "incoming" / earlier / "0 noon.csv").write_text("traces of another day")
    assert incoming(days, "noon") == (2, ["0 noon.csv", f"{earlier}/0 noon.csv"])
    assert (days / "incoming" / earlier / "0 noon.csv").read_text() == "traces of another day"


@pytest.mark.long
@pytest.mark.parametrize("estimates", ["single", "filtered"])
def test_an_output_keeps_the_steps_of_its_ledger_that_a_run_has_no_data_of(days, estimates):
    """The job of the documentation, with files of a few days."""

    def counts(name):
        with (days / name).open() as file:
            return {(row["time"], row["state"]): (row["noisy"], row["estimate"]) for row in csv.DictReader(file)}

    asked = (*OLD, "-o", "out.csv", "--overwrite", "--set", f"release.estimates={estimates}")
    (days / "out.csv").write_text("a file of something else\n")
    run(days, "release", "morning.csv", *asked)
    first, raw = counts("out.csv"), (days / "out.csv").read_bytes()
    assert json.loads(run(days, "release", "from_two.csv", *asked, "--json").stdout)["steps"] == 2
    assert (days / "out.csv").read_bytes() == raw
    epsilon = raw.decode().splitlines()[1].split(",")[7]
    (days / "out.csv").write_text(raw.decode().replace(epsilon, "0.001"))  # edited: the ledger has the budgets
    run(days, "release", "noon.csv", *(one for one in asked if one != "--overwrite"))
    assert "0.001" not in (days / "out.csv").read_text() and epsilon in (days / "out.csv").read_text()
    both = counts("out.csv")
    assert {key: both[key] for key in first} == first and list(both)[: len(first)] == list(first)
    run(days, "ledger", "export", "release.db", "-o", "steps.csv")
    with (days / "steps.csv").open() as file:
        assert list(dict.fromkeys(time for time, _ in both)) == [row["time"] for row in csv.DictReader(file)]
    (days / "out.csv").write_text("a file of something else\n")
    said = refused("release", "noon.csv", *(one for one in asked if one != "--overwrite"), cwd=days)
    assert "not all of it is released again" in words_of(said)


def test_folders_of_traces_are_private_and_not_links(days):
    folder = days / "incoming"
    (folder / "late").mkdir(parents=True)
    (folder / "late").chmod(0o777)
    assert incoming(days)[0] == 0
    assert (folder / "late").stat().st_mode & 0o777 == 0o700
    (folder / "released").rmdir()
    (days / "elsewhere").mkdir()
    (folder / "released").symlink_to(days / "elsewhere")
    assert incoming(days, "from_two") == (2, ["0 from_two.csv"])
    assert not list((days / "elsewhere").iterdir())


def test_the_log_is_not_written_through_a_symbolic_link(days):
    (days / "victim").write_text("kept")
    (days / "log").symlink_to(days / "victim")
    assert "cannot write the log" in refused(
        "release",
        "morning.csv",
        "--alpha",
        "1",
        "--ledger",
        "release.db",
        "-o",
        "x.csv",
        "--set",
        "release.log=log",
        cwd=days,
    )
    assert (days / "victim").read_text() == "kept"


@pytest.mark.long
def test_the_log_is_appended_to_no_other_file_and_runs_nothing_in_a_shell(days):
    """A file that is no log is refused before anything is drawn; a log that a shell reads contains nothing to run."""
    asked = ("release", "morning.csv", "--alpha", "1", "--history", "past.csv", "--set", "privacy.bound=paper")
    (days / "profile.log").write_text("export A=1\n")
    wrong = (*asked, "--ledger", "r.db", "-o", "x.csv", "--set", "release.log=profile.log")
    assert "expected an empty file or lines of JSON" in words_of(refused(*wrong, cwd=days))
    assert (days / "profile.log").read_text() == "export A=1\n"
    assert not (days / "r.db").exists() and not (days / "x.csv").exists()
    ledger = "$(touch ran)`touch ran`.db"
    run(days, *asked, "--ledger", ledger, "-o", "x.csv", "--set", "release.log=l.jsonl")
    (line,) = (days / "l.jsonl").read_text().splitlines()
    assert json.loads(line)["ledger"] == ledger and json.loads(line)["ended"] == "done"
    subprocess.run(["bash", "-c", ". ./l.jsonl"], cwd=days, check=False, capture_output=True)
    assert not (days / "ran").exists()


def test_a_log_that_cannot_be_written_is_found_before_anything_is_drawn(days):
    asked = ("release", "morning.csv", *FAST, "-o", "x.csv", "--set", "release.log=missing/log.jsonl")
    assert "cannot write the log" in refused(*asked, cwd=days)  # and no ledger was made


def test_a_full_disk_at_the_log_is_a_warning(days, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    said = []
    monkeypatch.setattr("temporaldp.apps.cli.operation.json_line", full)
    monkeypatch.setattr("temporaldp.apps.cli.operation.warn", said.append)
    with logged(days / "l.jsonl"):
        pass
    with pytest.raises(InputError, match="its own"), logged(days / "l.jsonl"):
        raise InputError("its own")
    assert len(said) == 2 and all("cannot write this run's line" in one for one in said)


FAST = (*OLD[:-2], "--set", "privacy.bound=paper", *OLD[-2:])
JOB = ("release", "morning.csv", *FAST, "-o", "out.csv", "--overwrite")


@pytest.mark.long
def test_other_settings_than_the_ledgers_are_invalid_input(days):
    run(days, *JOB)
    before = (days / "release.db").read_bytes()
    other = [word if word != "1" else "2" for word in JOB]
    assert "alpha" in refused(*other, cwd=days, code=2)
    assert (days / "release.db").read_bytes() == before


@pytest.mark.long
def test_a_failed_first_release_leaves_no_ledger(days):
    refused("release", "morning.csv", *FAST, "--horizon", "2", "-o", "x.csv", cwd=days, code=3)
    refused("release", "morning.csv", *FAST, "-o", "x.csv", "--set", f"release.head={'0' * 16}", cwd=days, code=4)


@pytest.mark.long
def test_a_lost_ledger_is_drawn_again_only_if_an_owner_begins_anew(days):
    run(days, *JOB)
    published = (days / "out.csv").read_text()
    (days / "release.db").unlink()
    for again in (JOB, (*JOB, "--check"), (*JOB[:-3], "-o", "other.csv")):
        assert "--begin-anew" in refused(*again, cwd=days, code=4)
    assert (days / "out.csv").read_text() == published
    elsewhere = [word if word != "release.db" else "other.db" for word in JOB]
    (days / "out.csv").rename(days / "kept.csv")
    assert "of this place or output" in refused(*elsewhere, cwd=days, code=4)
    (days / "kept.csv").rename(days / "out.csv")
    run(days, *JOB, "--begin-anew")
    assert (days / "out.csv").read_text() != published
    assert "begun anew" in words_of(run(days, "ledger", "show", "release.db").stdout)
    assert "leave it out" in refused(*JOB, "--begin-anew", cwd=days)
    assert json.loads(run(days, *JOB, "--json").stdout)["new_steps"] == 0


@pytest.mark.long
def test_a_failed_run_does_not_use_up_begin_anew(days):
    run(days, *JOB)
    older = days / "older.db"
    run(days, "ledger", "backup", "release.db", "-o", "older.db")
    run(days, *[word if word != "morning.csv" else "noon.csv" for word in JOB])
    older.replace(days / "release.db")
    published = (days / "out.csv").read_text()
    noon = tuple(word if word != "morning.csv" else "noon.csv" for word in JOB)
    for wrong, code in (("traces.time=wrong", 2), ("release.head=" + "0" * 16, 4)):
        refused(*noon, "--begin-anew", "--set", wrong, cwd=days, code=code)
    assert "is recorded with the first step" in refused(*JOB, "--begin-anew", cwd=days)
    assert "--begin-anew" in refused(*noon, cwd=days, code=4)
    assert (days / "out.csv").read_text() == published
    run(days, *noon, "--begin-anew")
    assert json.loads(run(days, *noon, "--json").stdout)["new_steps"] == 0


@pytest.mark.long
def test_an_older_copy_under_a_new_key_is_signed_and_begun_anew(days, monkeypatch):
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(days / "own" / "key"))
    run(days, *JOB)
    run(days, "ledger", "backup", "release.db", "-o", "older.db")
    noon = tuple(word if word != "morning.csv" else "noon.csv" for word in JOB)
    run(days, *noon)
    (days / "older.db").replace(days / "release.db")
    (days / "own" / "key").unlink()
    assert "--sign" in refused(*noon, "--begin-anew", cwd=days, code=4)
    assert "--begin-anew" in refused("ledger", "verify", "release.db", cwd=days, code=4)
    assert run(days, "ledger", "show", "release.db").stderr.count("--begin-anew") == 1
    run(days, "ledger", "verify", "release.db", "--sign")
    assert "--begin-anew" in refused(*noon, cwd=days, code=4)
    run(days, *noon, "--begin-anew")
    assert json.loads(run(days, "ledger", "verify", "release.db", "--json").stdout)["authentic"] is True


@pytest.mark.long
def test_published_times_are_not_drawn_again_on_another_machine(days, monkeypatch):
    run(days, *JOB)
    published = (days / "out.csv").read_text()
    (days / "release.db").unlink()
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(days / "other" / "key"))  # without marks
    (days / "other").mkdir()
    (days / "other" / "key").write_text("ab" * 32)
    (days / "other" / "key").chmod(0o600)
    said = refused(*JOB, cwd=days, code=4)
    assert "has published counts of 4 times" in said and "--begin-anew" in said
    other = [word if word != "morning.csv" else "night.csv" for word in JOB]  # data of none of these times
    assert "has published counts of 4 times" in refused(*other, cwd=days, code=4)
    assert (days / "out.csv").read_text() == published
    run(days, *other, "--begin-anew")
    (days / "out.csv").write_text(published)  # as if the run had been stopped before it wrote its output
    assert "--begin-anew" in refused(*other, cwd=days, code=4)
    run(days, *other, "--begin-anew")
    assert json.loads(run(days, *other, "--json").stdout)["new_steps"] == 0


@pytest.mark.long
def test_verified_ledger_is_signed_with_a_new_key(days, monkeypatch):
    run(days, *JOB)
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(days / "key"))
    later = ("release", "noon.csv", *FAST, "-o", "noon_out.csv")
    stopped = temporaldp(*later, cwd=days)
    assert stopped.returncode == 4 and "--sign" in stopped.stderr and not (days / "noon_out.csv").exists()
    told = json.loads(run(days, "ledger", "verify", "release.db", "--sign", "--json").stdout)
    assert told["authentic"] is True
    assert "signed" in run(days, "ledger", "verify", "release.db").stdout
    run(days, *later)
    (days / "key").chmod(0o640)
    another = [word if word != "release.db" else "new.db" for word in later[:-1]]
    assert "cannot use the key" in refused(*another, "another.csv", cwd=days, code=4)


@pytest.mark.long
def test_a_plan_is_renewed(days):
    """Each epoch satisfies alpha; every command about the release reports the leakage of all epochs together."""
    plan = ("--alpha", "1", "--bound", "paper", "--horizon", "2")
    run(days, "plan", "--history", "past.csv", "--set", "correlation.prior=1", *plan, "-o", "plan.json")
    asked = (
        "--plan",
        "plan.json",
        "--set",
        "privacy.renew=steps",
        "--history",
        "past.csv",
        "--set",
        "correlation.prior=1",
        "--ledger",
        "renewed.db",
    )
    dry = run(days, "release", "morning.csv", *asked, "--check").stdout
    assert "nothing was drawn" in dry
    assert "within each epoch" in dry and not (days / "renewed.db").exists()
    told = json.loads(run(days, "release", "morning.csv", *asked, "-o", "out.parquet", "--json").stdout)
    assert told["alpha_of_epoch"] == 1.0 < told["worst_leakage"] <= told["alpha"]
    for command in (("show",), ("verify",)):
        assert (
            "every 2 steps; each epoch satisfies 1-DP_T by itself" in run(days, "ledger", *command, "renewed.db").stdout
        )
    run(days, "report", "--ledger", "renewed.db", "-o", "renewed.html")
    page = " ".join((days / "renewed.html").read_text().split())
    assert "Each of the 2 epochs by itself satisfies 1-DP_T" in page
    assert "(a new one every 2 steps) the suspicion becomes at most 73.2 %: 1 nat" in page
    assert "--history" in refused("release", "morning.csv", *asked[:4], *asked[-2:], "-o", "out.parquet", cwd=days)
    assert "--plan FILE" in refused("release", "morning.csv", "--alpha", "1", *asked[2:], "-o", "out.parquet", cwd=days)
    assert "renewal" in refused("release", "morning.csv", *asked[:2], *asked[4:], "-o", "x.parquet", cwd=days, code=2)
