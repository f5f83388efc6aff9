"""From raw files to a publication by `init`, its answers as options, and `release`: no converter, no key written by hand."""

from __future__ import annotations

import csv
import random
import re
from datetime import datetime, timedelta

import numpy as np
import pytest

from command import temporaldp
from temporaldp import load_released
from temporaldp.publish.project import Project
from temporaldp.publish.project.inputs import read_data

BIKES = "bikeshare_bayarea_2014"
BEGAN = datetime(2024, 3, 4)

CASES = {  # the table, and what its owner answers; how many states and steps come out
    "bikes": (
        f"{BIKES}/trips.csv.gz",
        {
            "traces.states_from": f"{BIKES}/stations.csv",
            "traces.every": "1d",
            "traces.ties": "last",
            "traces.timezone": "America/Los_Angeles",
            "traces.where": "start_date >= '2014-10' AND end_date < '2015-01-02'",
        },
        (5, 93),
    ),
    "mvad": ("lifecourse_traminer/mvad.csv", {}, (6, 72)),
    "actcal": ("lifecourse_traminer/actcal.csv", {}, (4, 12)),
    "sleep_hmc": ("sleep_hmc/hmc_sleep_stages.csv.gz", {"traces.where": "t::INT < 400"}, (5, 400)),
    "sleep_dod": (
        "sleep_dod/dod_stages_5scorers.csv.gz",
        {"traces.where": "scorer = '1'", "traces.missing": "-1", "traces.gaps": "true", "release.reached": "0"},
        (5, 1310),
    ),
    "msnbc": ("msnbc323/msnbc323.seq", {"release.reached": "0"}, (17, 362)),
}


def published(folder, table, answers):
    """What two commands publish, and the project."""
    options = [word for key, value in answers.items() for word in ("--set", f"{key}={value}")]
    for command in (("init", table, *options), ("release",)):
        done = temporaldp(*command, cwd=folder)
        assert done.returncode == 0, done.stderr
    assert "Next: temporaldp" not in done.stdout
    return load_released(folder / "published.csv")


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_a_raw_file_is_published_by_two_commands(name, tmp_path, monkeypatch, data_folder):
    file, answers, (n_states, n_steps) = CASES[name]
    answers = {key: str(data_folder / one) if "states_from" in key else one for key, one in answers.items()}
    found = published(tmp_path, data_folder / file, answers)
    assert (len(found.states), len(found.times)) == (n_states, n_steps)
    monkeypatch.chdir(tmp_path)
    truth = read_data(Project.load().settings.traces).histogram()
    noise, of_scale = np.abs(found.counts - truth).mean(), {"gaussian": np.sqrt(2 / np.pi), "laplace": 1.0}[found.noise]
    assert noise == pytest.approx(
        found.scales.mean() * of_scale, rel=5.0 / np.sqrt(truth.size)
    )  # five deviations at most
    assert (
        (tmp_path / "published.csv")
        .read_text()
        .startswith("start_date,landmark" if name == "bikes" else "t,state" if name == "sleep_hmc" else "time,")
    )


def stays(path, n_patients, seed, start):
    """A hospital's log: stays in wards of patients who come and go, as a spreadsheet exports it."""
    rng, rows = random.Random(seed), []
    for patient in range(n_patients):
        at = start + timedelta(minutes=rng.randrange(0, 10 * 24 * 60))
        for _ in range(rng.randrange(1, 4)):
            for _ in range(rng.randrange(1, 5)):
                end = at + timedelta(minutes=rng.randrange(60, 2000))
                rows.append((f"P{seed}{patient:04}", at, end, rng.choice(["Ward Ä", "Ward B", "ICU"])))
                at = end
            at += timedelta(minutes=rng.randrange(500, 6000))
    rows = [row for row in rows if row[2] < start + timedelta(days=10)]
    with path.open("w", newline="", encoding="cp1252") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["Case ID", "cohort", "admitted", "discharged", "Unit"])
        for who, begin, end, ward in sorted(rows, key=lambda row: row[1]):
            writer.writerow([who, "AB"[len(who) % 2], f"{begin:%d.%m.%Y %H:%M}", f"{end:%d.%m.%Y %H:%M}", ward])


@pytest.mark.long
def test_the_stays_of_a_hospital_are_published_and_discharged_patients_are_absent(tmp_path, monkeypatch):
    stays(tmp_path / "now.csv", 400, 1, BEGAN)
    stays(tmp_path / "past.csv", 400, 2, BEGAN - timedelta(days=20))
    done = temporaldp("init", "now.csv", "--history", "past.csv", "--set", "traces.every=6h", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    asked = " ".join(done.stderr.split())
    assert "is a user absent from the end of an interval until the next one begins?" in asked
    assert "cp1252 fits it" in done.stdout and "fit '%d.%m.%Y %H:%M'" not in asked
    monkeypatch.chdir(tmp_path)
    known = Project.load().settings.traces
    assert (known.user, known.time, known.end, known.state) == ("Case ID", "admitted", "discharged", "Unit")
    released = temporaldp("release", cwd=tmp_path)
    assert released.returncode == 0, released.stderr
    found = load_released(tmp_path / "published.csv")
    assert set(found.states) == {"ICU", "Ward B", "Ward Ä", "absent"}
    assert (
        read_data(Project.load().settings.traces).histogram().sum(axis=1)
        == read_data(Project.load().settings.traces).n_users
    ).all()


def events(path, n_patients, seed):
    """An event log with the columns of process mining: activities of cases, which end with one of two releases for good."""
    rng, rows = random.Random(seed), []
    for case in range(n_patients):
        at = BEGAN + timedelta(minutes=rng.randrange(0, 2000))
        for k in range(rng.randrange(2, 9)):
            rows.append(
                (at, f"{seed}-{case}", "ER Triage" if k == 0 else rng.choice(["IV Liquid", "Leucocytes", "CRP"]))
            )
            at += timedelta(minutes=rng.randrange(30, 900))
        rows.append((at, f"{seed}-{case}", rng.choice(["Release A", "Release B"])))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case:concept:name", "concept:name", "time:timestamp", "org:group"])
        writer.writerows([(who, what, f"{at:%Y-%m-%dT%H:%M:%S}+00:00", "A") for at, who, what in sorted(rows)])


@pytest.mark.long
def test_what_is_never_left_is_named_and_a_limit_lets_it_end(tmp_path):
    events(tmp_path / "now.csv", 300, 1)
    events(tmp_path / "past.csv", 300, 2)
    given = ["--set", "traces.every=6h"]
    done = temporaldp("init", "now.csv", "--history", "past.csv", *given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "temporaldp.toml").read_text()
    for line in ('user = "case:concept:name"', 'state = "concept:name"', 'time = "time:timestamp"', 'fill = "last"'):
        assert line in text
    stream = re.sub(r"(?m)^(models|period|horizon|guarantee|delta|draw_every) = .*$", "", text)
    (tmp_path / "temporaldp.toml").write_text(stream)
    refused = " ".join(temporaldp("plan", cwd=tmp_path).stderr.split())
    assert "'Release A', 'Release B' is never left" in refused and "`fill_limit`" in refused and "horizon" in refused
    given += ["--set", "traces.fill_limit=1d", "--set", "traces.absent=gone"]
    assert temporaldp("init", "now.csv", "--history", "past.csv", *given, "--overwrite", cwd=tmp_path).returncode == 0
    released = temporaldp("release", cwd=tmp_path)
    assert released.returncode == 0, released.stderr
    assert "gone" in load_released(tmp_path / "published.csv").states
