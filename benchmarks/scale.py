"""What traces cost by their number of rows, sorted and shuffled; and a cluster of two workers against one.

Run with:  make bench NAME=scale            (10^6 to 10^8 rows; some 2 GiB of disk)
           make bench NAME=scale ROWS=1e9   (one size more)

Every reading is a process of its own, so that its largest memory is its own. With OLD=FOLDER, the sources of an earlier version
are measured beside it at 10^7 rows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import PEAK, machine, table

SIZES = (10**6, 10**7, 10**8)
STEPS, STATES = 100, 50
COMPARED = 10**7
CLUSTER_ROWS, CLUSTER_STATES = 2 * 10**6, 10

READ = (
    PEAK
    + """
import json, sys, time
import temporaldp as tdp
started = time.perf_counter()
traces = tdp.read_traces(sys.argv[1], sort=sys.argv[2] == "shuffled")
traces.histogram(), next(tdp.estimate_adversaries(traces, prior=1.0))
if sys.argv[2] == "person by person":
    assert sum(1 for _ in traces.user_transitions()) == traces.n_users
taken = time.perf_counter() - started
print(json.dumps([taken, peak() / 1024, traces.n_users]))
"""
)

SPARK = """
import json, os, sys, time
from pyspark.sql import SparkSession
session = (
    SparkSession.builder.master(f"local-cluster[{sys.argv[2]},1,1024]")
    .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "8").config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    .getOrCreate()
)
session.sparkContext.setLogLevel("OFF")
import temporaldp as tdp
from temporaldp.lab.cluster import leakage_on_spark
people = session.read.parquet(sys.argv[1])
warm = leakage_on_spark(tdp.read_traces(people), epsilon=0.1, prior=1.0, horizon=50)
warm.worst(1), warm.close()  # workers are there; nothing of it is kept
started = time.perf_counter()
traces = tdp.read_traces(people)
read = time.perf_counter() - started
found = leakage_on_spark(traces, epsilon=0.1, prior=1.0, horizon=50)
found.worst(10), found.quantile(0.5)
print(json.dumps([read, time.perf_counter() - started - read]))
"""


def main() -> None:
    target, more = Path(sys.argv[1]), [int(float(size)) for size in sys.argv[2:]]
    with tempfile.TemporaryDirectory(prefix="scale-") as scratch:
        rows: list[list[str]] = []
        for size in (*SIZES, *more):
            for order in ("sorted", "shuffled"):
                if order == "shuffled" and size > 10**8:
                    continue
                path = made(Path(scratch), size, order)
                rows.append(measured(path, size, order, order))
                if order == "sorted" and size == COMPARED and "OLD" in os.environ:
                    rows.append(measured(path, size, order, "sorted, the reader before", sources=os.environ["OLD"]))
                if order == "sorted" and size == max(SIZES):
                    rows.append(measured(path, size, "person by person", "sorted, transitions of each person"))
                path.unlink()
        path = made_wide(Path(scratch), max(SIZES))
        rows.append(measured(path, max(SIZES), "wide", "sorted, a column for each step"))
        path.unlink()
        parts = [table(["rows or cells", "people", "order", "seconds", "ns a row", "GiB at most"], rows)]
        path = made(Path(scratch), CLUSTER_ROWS, "sorted", states=CLUSTER_STATES)
        clusters = [[str(n), *(f"{one:.1f}" for one in json.loads(run(SPARK, str(path), str(n))))] for n in (1, 2)]
        what = f"leakage of {CLUSTER_ROWS // STEPS:,} people of {CLUSTER_STATES} values over 50 steps, seconds"
        parts.append(table(["workers", "read, seconds", what], clusters))
    begin, end = "<!-- measured -->", "<!-- end -->"
    text = target.read_text()
    head, rest = text.split(begin)
    shown = "\n\n".join([machine().rstrip(), *parts])
    target.write_text(f"{head}{begin}\n\n{shown}\n\n{end}{rest.split(end)[1]}")


def measured(path: Path, size: int, how: str, name: str, sources: str | None = None) -> list[str]:
    """The row of one reading, as `READ` does it."""
    taken, largest, people = json.loads(run(READ, str(path), how, sources=sources))
    print(f"{size:.0e} {name}: {taken:.1f} s, {largest:.2f} GiB", flush=True)
    power, each = f"10^{len(str(size)) - 1}", f"{1e9 * taken / size:.0f}"
    return [power, f"{people:,}", name, f"{taken:.1f}", each, f"{largest:.2f}"]


def made_wide(folder: Path, size: int) -> Path:
    """Parquet of so many cells: a row a person, a column for each of 100 steps, 50 values."""
    import duckdb

    path = folder / "wide.parquet"
    steps = ", ".join(f"'s' || lpad((hash(i, {t}) % {STATES})::VARCHAR, 2, '0') AS day{t}" for t in range(STEPS))
    query = f'SELECT i::INT AS "user", {steps} FROM range({size // STEPS}) r(i)'
    duckdb.connect(config={"memory_limit": "3GB"}).execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


def made(folder: Path, size: int, order: str, states: int = STATES) -> Path:
    """Parquet of so many rows: 100 steps a person, 50 values."""
    import duckdb

    path = folder / f"{order}.parquet"
    connection = duckdb.connect(config={"memory_limit": "3GB", "temp_directory": str(folder / "spill")})
    query = (
        f"SELECT (i // {STEPS})::INT AS user, (i % {STEPS})::SMALLINT AS time, "
        f"'s' || lpad((hash(i) % {states})::VARCHAR, 2, '0') AS state FROM range({size}) r(i)"
    )
    shuffled = f"SELECT * FROM ({query}) ORDER BY hash(user, time)" if order == "shuffled" else query
    connection.execute(f"COPY ({shuffled}) TO '{path}' (FORMAT parquet)")
    return path


def run(code: str, *arguments: str, sources: str | None = None) -> str:
    environment = (
        os.environ | {"SPARK_WORKER_DIR": tempfile.gettempdir()} | ({} if sources is None else {"PYTHONPATH": sources})
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return done.stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    main()
