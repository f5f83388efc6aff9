"""A month of nights as an operator sees them: a file that grows, and everything that goes wrong with it.

What was published never changes, nothing is drawn twice, and each night leaves one right line of JSON and one of text.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from datetime import date, timedelta

import numpy as np
import pytest

from command import temporaldp
from temporaldp import Ledger, TemporalAccountant, TransitionMatrix
from temporaldp.core.correlation import Adversary

FIRST, NIGHTS, PEOPLE, STATES = date(2024, 5, 1), 31, 60, "abc"
STAYS = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
SETTINGS = """
[traces]
path = "traces.csv"
states = ["a", "b", "c"]
[correlation]
backward = "stays.csv"
forward = "stays.csv"
[privacy]
alpha = 1.0
[release]
ledger = "release.db"
output = "published.csv"
log = "nights.jsonl"
reached = 0.5
"""


class Month:
    """The files of the job, and what each night must leave."""

    def __init__(self, folder):
        self.folder, self.rng, self.seen = folder, random.Random(5), {}
        self.rows = [(f"p{k}", FIRST, self.rng.choice(STATES)) for k in range(PEOPLE)]
        (folder / "stays.csv").write_text("\n".join([",a,b,c", *(f"{s}," + ",".join(map(str, row)) for s, row in zip(STATES, STAYS, strict=True))]))  # fmt: skip  # noqa: E501
        (folder / "temporaldp.toml").write_text(SETTINGS)
        self.write(self.rows)

    def write(self, rows):
        with (self.folder / "traces.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("user", "time", "state"), *sorted(rows, key=lambda row: (row[1], row[0]))])

    def grow(self, day, missing=0):
        """Rows of another day; some people's come later."""
        new = [(f"p{k}", day, self.rng.choice(STATES)) for k in range(PEOPLE)]
        self.rows += new[missing:]
        self.write(self.rows)
        return new[:missing]

    def night(self, *options, code=0):
        """One run; of a run that is refused, nothing may change."""
        before = self.n_lines
        done = temporaldp("release", *options, cwd=self.folder)
        assert done.returncode == code, done.stderr + done.stdout
        assert self.n_lines == before + ("--check" not in options)
        return done

    @property
    def last_line(self):
        return json.loads((self.folder / "nights.jsonl").read_text().splitlines()[-1])

    @property
    def n_lines(self):
        file = self.folder / "nights.jsonl"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def unchanged(self):
        """Every published value is what it was on the night that drew it; a time has one row in the ledger."""
        with Ledger(self.folder / "release.db") as ledger:
            times = [row.time for row in ledger[:]]
            now = {row.time: row.output for row in ledger[:]}
        assert len(set(times)) == len(times)
        with (self.folder / "published.csv").open() as file:
            table = {(row["time"], row["state"]): row["noisy"] for row in csv.DictReader(file)}
        for where, value in self.seen.items():
            assert {**now, **table}[where] == value, where
        self.seen |= now | table
        return times


@pytest.fixture
def month(tmp_path):
    return Month(tmp_path)


@pytest.mark.long
def test_a_month_of_nights(month):
    adversary = Adversary(TransitionMatrix(STAYS, list(STATES)), TransitionMatrix(STAYS, list(STATES)))
    budget = TemporalAccountant(adversary, alpha=1.0).reserve
    folder, late = month.folder, []
    for k in range(NIGHTS):
        day = FIRST + timedelta(days=k)
        if k:
            late = month.grow(day, missing=2 if k == 6 else 0)
        if k == 3:  # in the evening before
            before = (folder / "release.db").read_bytes()
            told = json.loads(month.night("--check", "--json").stdout)
            assert (told["new_steps"], told["ledger_steps"]) == (1, 3)
            assert (folder / "release.db").read_bytes() == before
        shown = month.night().stdout
        line = month.last_line
        assert (line["ended"], line["exit_code"], line["new_steps"], line["ledger_steps"]) == ("done", 0, 1, k + 1)
        assert line["last_time"] == str(day) and line["spent"] == pytest.approx(budget * (k + 1), rel=1e-4)
        assert line["remaining"] >= budget * (1 - 1e-6) and line["worst_leakage"] <= 1.0
        behind = None if k == 0 else pytest.approx((date.today() - day).days, abs=1.5)  # one date has no step
        assert line["steps_behind"] == behind
        assert re.search(
            rf"UTC: 1 new step, {k + 1} in all; budgets of all steps together: [\d.]+ nats; the next step may spend",
            shown,
        )
        assert len(month.unchanged()) == k + 1
        if k == 7:  # rows of an earlier night arrive: what was published stays, with a warning
            month.rows += late
            month.write(month.rows)
            month.night()
            assert month.last_line["new_steps"] == 0
            month.unchanged()
        if k == 9:  # a row of an earlier night is corrected
            user, when, state = month.rows[70]
            month.rows[70] = (user, when, STATES[(STATES.index(state) + 1) % 3])
            month.write(month.rows)
            assert "differ from those that were released" in month.night().stderr
            month.unchanged()
        if k == 12:  # one row has a wrong year
            month.write([*month.rows, ("p3", date(2029, 5, 1), "a")])
            assert "2029-05-01" not in month.night(code=2).stdout
            assert (month.last_line["ended"], month.last_line["exit_code"]) == ("TraceError", 2)
            assert month.last_line["refused"] == "the data or the options are wrong"
            month.write(month.rows)
            assert len(month.unchanged()) == k + 1
        if k == 15:  # the ledger is lost, and restored
            (folder / "release.db").rename(folder / "away.db")
            month.night(code=4)
            assert month.last_line["refused"].startswith("the ledger cannot be read, written or trusted")
            month.night("--check", code=4)
            (folder / "away.db").rename(folder / "release.db")
            assert len(month.unchanged()) == k + 1
        if k == 18:  # a setting is changed
            (folder / "temporaldp.toml").write_text(SETTINGS.replace("alpha = 1.0", "alpha = 2.0"))
            assert "alpha" in month.night(code=2).stderr
            assert month.last_line["refused"] == "the settings or the data are not those of the ledger"
            (folder / "temporaldp.toml").write_text(SETTINGS)
            assert len(month.unchanged()) == k + 1
        if k == 20:  # two runs at once
            month.grow(day + timedelta(days=1))
            both = [subprocess.Popen([sys.executable, "-m", "temporaldp", "release"], cwd=folder, stdout=-3, stderr=-3) for _ in range(2)]  # fmt: skip  # noqa: E501
            assert 0 in {one.wait(60) for one in both}
            assert len(month.unchanged()) == k + 2
            month.rows = [row for row in month.rows if row[1] <= day]
            with Ledger(folder / "release.db") as ledger:
                assert len(ledger) == k + 2
            break
    for delay in (0.3, 0.6, 0.9, 1.2):  # runs that are killed
        day = date.fromisoformat(max(month.unchanged())) + timedelta(days=1)
        month.rows = [row for row in month.rows if row[1] < day]
        month.grow(day)
        run = subprocess.Popen([sys.executable, "-m", "temporaldp", "release"], cwd=folder, stdout=-3, stderr=-3)
        time.sleep(delay)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        with Ledger(folder / "release.db") as ledger:
            drawn = {row.time: row.output for row in ledger[:]}
        month.night()
        assert month.last_line["new_steps"] == int(str(day) not in drawn)
        month.unchanged()
        assert month.seen.items() >= drawn.items()
    values = np.array([float(one) for where, one in month.seen.items() if isinstance(where, tuple)])
    assert np.isfinite(values).all()
