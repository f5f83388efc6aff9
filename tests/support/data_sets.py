"""The real data sets as files that the command reads; each folder's SOURCE.md says how to read it."""

from __future__ import annotations

import csv
import functools
import gzip
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

import numpy as np

from temporaldp import load_sample
from temporaldp.data.tables.trace_table import TraceTable

Row = tuple[str, int, str]

INCOME_YEARS = range(1929, 2010)


@functools.cache
def sleep_sample() -> TraceTable:
    """The bundled sample; reading it takes longer than most tests."""
    return load_sample()


def income_quintiles(folder: Path, target: Path) -> Path:
    """Quintile of each US state's per-capita income in each year: wide, one row per US state."""
    with (folder / "us_state_income" / "usjoin.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    income = np.array([[float(row[str(year)]) for year in INCOME_YEARS] for row in rows])
    quintiles = np.empty(income.shape, dtype=int)
    for t in range(income.shape[1]):
        column = income[:, t]
        quintiles[:, t] = np.searchsorted(np.quantile(column, [0.2, 0.4, 0.6, 0.8]), column, side="left")
    with target.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["user", *INCOME_YEARS])
        writer.writerows([row["Name"], *line] for row, line in zip(rows, quintiles.tolist(), strict=True))
    return target


def dod_sequences(folder: Path, target: Path) -> Path:
    """Sleep stages by the first scorer: long, unscored epochs (-1) left out, so that they are gaps."""
    with (
        gzip.open(folder / "sleep_dod" / "dod_stages_5scorers.csv.gz", "rt") as file,
        target.open("w", newline="") as out,
    ):
        writer = csv.writer(out)
        writer.writerow(["user", "time", "state"])
        for row in csv.DictReader(file):
            if row["scorer"] == "1":
                stages = enumerate(row["stages"].split())
                writer.writerows((row["record"], t, stage) for t, stage in stages if stage != "-1")
    return target


def bike_locations(folder: Path, target: Path, days: int = 90) -> Path:
    """Where each bike was last left, at midnight UTC of each of the first days of 2014: long, from its first trip on."""
    with gzip.open(folder / "bikeshare_bayarea_2014" / "trips.csv.gz", "rt") as file:
        trips = sorted((row["end_date"], row["bike_id"], row["end_terminal"]) for row in csv.DictReader(file))
    start = datetime(2014, 1, 2)
    where: dict[str, str] = {}
    position = 0
    with target.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["bike", "day", "station"])
        for day in range(days):
            midnight = (start + timedelta(days=day)).strftime("%Y-%m-%dT%H:%MZ")
            while position < len(trips) and trips[position][0] <= midnight:
                _, bike, terminal = trips[position]
                where[bike] = terminal
                position += 1
            writer.writerows((bike, midnight[:10], station) for bike, station in where.items())
    return target


def collected(folder: Path, scratch: Path) -> Iterator[tuple[str, Path, dict[str, str], list[Row]]]:
    """Every collected data set as a path, how it is read, and its rows by Python's own reader."""
    income = income_quintiles(folder, scratch / "income.csv")
    yield "income", income, {}, wide_rows(income, "user")
    dod = dod_sequences(folder, scratch / "dod.csv")
    yield "dod", dod, {}, long_rows(dod, "user", "time", "state")
    bikes = bike_locations(folder, scratch / "bikes.csv")
    yield (
        "bikes",
        bikes,
        {"user": "bike", "time": "day", "state": "station"},
        long_rows(bikes, "bike", "day", "station"),
    )
    hmc = folder / "sleep_hmc" / "hmc_sleep_stages.csv.gz"
    yield "hmc", hmc, {"time": "t"}, long_rows(hmc, "user", "t", "state")
    for name in ("mvad", "actcal"):
        path = folder / "lifecourse_traminer" / f"{name}.csv"
        yield name, path, {"user": "id"}, wide_rows(path, "id")


def opened(path: Path) -> IO[str]:
    return gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="")


def long_rows(path: Path, user: str, time: str, state: str) -> list[Row]:
    """Rows of person, place of the time among all times, and state."""
    with opened(path) as file:
        rows = [(row[user], row[time], row[state]) for row in csv.DictReader(file)]
    key = int if rows[0][1].isdigit() else str
    place = {time: k for k, time in enumerate(sorted({time for _, time, _ in rows}, key=key))}
    return [(user, place[time], state) for user, time, state in rows]


def wide_rows(path: Path, user: str) -> list[Row]:
    """Rows of person, place of the time among all times, and state, of a table with a column for each step."""
    with opened(path) as file:
        reader = csv.DictReader(file)
        steps = [name for name in reader.fieldnames if name != user]
        return [(row[user], k, row[step]) for row in reader for k, step in enumerate(steps)]


def sequence_rows(path: Path) -> list[Row]:
    """Rows of person, time and state of a file with one person's states a line; people are called by their line."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return [(str(k), t, state) for k, line in enumerate(lines, 1) for t, state in enumerate(line)]
