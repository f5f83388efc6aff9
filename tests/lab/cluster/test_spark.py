"""Traces on a real Spark: a master, two workers in processes of their own, and this driver."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from datetime import UTC, datetime

import pandas as pd
import pytest

from counting import counted, counted_with_absent, tables_of
from data_sets import collected, sequence_rows
from places import REPOSITORY
from temporaldp import InputError, estimate_adversaries, plan_budget, read_traces, release_histograms
from temporaldp.base.errors import StateError, TraceError
from temporaldp.lab.studies import leakage_distribution

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    sql = pytest.importorskip("pyspark.sql", reason="the extra 'spark' is not installed")
    os.environ["SPARK_WORKER_DIR"] = str(tmp_path_factory.mktemp("workers"))  # by default where Spark is installed
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers' Python; "python3" by default
    session = (
        sql.SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.executorEnv.PYTHONPATH", str(REPOSITORY / "tests" / "support"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def table(spark, rows, columns=("user", "time", "state")):
    return spark.createDataFrame(pd.DataFrame(rows, columns=list(columns)))


def random_rows(seed, people=12):
    rng = random.Random(seed)
    rows = [(f"p{u}", t, rng.choice("abc")) for u in range(people) for t in range(12) if t != 6 and rng.random() < 0.8]
    rows += [("q", t, rng.choice("ab")) for t in range(12) if t != 6]
    rng.shuffle(rows)
    return rows


def positions(rows):
    return [(user, t - (t > 6), state) for user, t, state in rows], lambda t: t != 6


def test_tables_on_a_cluster_agree_with_a_counting_loop(spark):
    rows = random_rows(1)
    found = read_traces(table(spark, rows))
    at, linked = positions(rows)
    histogram, transitions, of_user = counted(at, linked)
    assert tables_of(found) == (histogram, transitions, {name: of_user[name] for name in found.users})
    away = read_traces(table(spark, rows), absent="away")
    histogram, transitions, of_user = counted_with_absent(at, 11, "away", linked)
    assert tables_of(away) == (histogram, transitions, {name: of_user[name] for name in away.users})


def test_the_collected_data_sets_on_a_cluster(spark, data_folder, tmp_path):
    clicks = sequence_rows(data_folder / "msnbc323" / "msnbc323.seq")
    sets = [(name, rows) for name, _, _, rows in collected(data_folder, tmp_path)]
    for name, rows in [*sets, ("clicks", clicks)]:
        found = read_traces(table(spark, rows))
        histogram, transitions, of_user = counted(rows)
        assert found.n_users == len({user for user, _, _ in rows}), name
        assert tables_of(found) == (histogram, transitions, {user: of_user[user] for user in found.users}), name


def test_events_and_groups_agree_with_those_of_a_file(spark):
    rows = [
        (f"p{k % 5}", datetime(2024, 3, 30, 20 + k % 4, 7 * k % 60, tzinfo=UTC), "abc"[k % 3], "ns"[k % 5 % 2])
        for k in range(40)
    ]
    frame = pd.DataFrame(rows, columns=["user", "time", "state", "region"])
    for fill in ("last", "absent"):
        here = read_traces(frame, every="15min", fill=fill, by="region", sort=True)
        there = read_traces(spark.createDataFrame(frame), every="15min", fill=fill, by="region")
        assert there.times == here.times
        assert [name for name, _ in there.group_transitions()] == [name for name, _ in here.group_transitions()]
        assert tables_of(there)[:2] == tables_of(here)[:2]


def test_times_without_a_zone_do_not_depend_on_that_of_the_session(spark):
    """New York changes its clock in March, at an hour that these times have."""
    rows = [(f"p{k % 5}", datetime(2024, 3, 9 + k % 22, k % 4, 7 * k % 60), "abc"[k % 3]) for k in range(60)]
    frame = pd.DataFrame(rows, columns=["user", "time", "state"])
    spans = frame.assign(end=frame.time + pd.Timedelta(hours=3)).drop_duplicates("user")
    text = frame.assign(time=frame.time.astype(str))
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        there = spark.createDataFrame(text)
        for kind, every in (("TIMESTAMP_NTZ", "1h"), ("DATE", "1d")):
            here = frame if kind != "DATE" else frame.assign(time=frame.time.dt.floor("1d"))
            how = {"every": every, "fill": "last", "ties": "last", "sort": True}
            one, other = (
                read_traces(table, **how) for table in (here, there.withColumn("time", there.time.cast(kind.lower())))
            )
            assert one.times == other.times and tables_of(one)[:2] == tables_of(other)[:2], kind
        stays = spark.createDataFrame(spans.astype({"time": str, "end": str}))
        cast = stays.selectExpr("user", "state", *(f"CAST({c} AS TIMESTAMP_NTZ) AS {c}" for c in ("time", "end")))
        one, other = (read_traces(source, every="1h", end="end") for source in (spans, cast))
        assert one.times == other.times and tables_of(one)[:2] == tables_of(other)[:2]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_unreadable_data_is_refused(spark):
    with pytest.raises(TraceError, match="'1' has two states at time '0'"):
        read_traces(table(spark, [("1", 0, "a"), ("1", 0, "b")]))
    with pytest.raises(TraceError, match="'state' has no value"):
        read_traces(table(spark, [("1", 0, "a"), ("1", 1, None)]))
    with pytest.raises(StateError, match="state 'b' is not among"):
        read_traces(table(spark, [("1", 0, "a"), ("1", 1, "b")]), states=["a", "c"])


def test_leakage_of_every_person_on_the_workers(spark):
    from temporaldp.lab.cluster import leakage_on_spark

    rows = [*random_rows(3), ("alone", 0, "a")]
    traces = read_traces(table(spark, rows))
    here = read_traces(pd.DataFrame(rows, columns=["user", "time", "state"]), sort=True)
    expected = leakage_distribution(estimate_adversaries(here, prior=0.5, per_user=True), epsilon=0.1, horizon=8)
    found = leakage_on_spark(traces, epsilon=0.1, prior=0.5, horizon=8)
    collected = [(row.user, row.leakage) for row in found.frame.collect()]
    assert dict(collected) == pytest.approx(
        dict(zip(expected.names, expected.leakage.tolist(), strict=True)), rel=1e-12
    )
    assert [leakage for _, leakage in collected] == sorted((leakage for _, leakage in collected), reverse=True)
    for share in (0.25, 0.5, 0.9, 1.0):
        assert found.quantile(share) == pytest.approx(expected.quantile(share), rel=1e-12)
    assert found.share_above(0.2) == pytest.approx(expected.share_above(0.2))
    assert list(found.worst(2)) == list(expected.names[:2])
    found.close()


def test_failed_job_reports_its_reason(spark):
    from temporaldp.lab.cluster import leakage_on_spark

    found = leakage_on_spark(read_traces(table(spark, random_rows(4))), epsilon=0.1, horizon=4)
    with pytest.raises(TraceError, match=r"the Spark job died.*EstimationError"):
        found.worst()
    with pytest.raises(InputError, match="read from a Spark DataFrame"):
        leakage_on_spark(
            read_traces(pd.DataFrame(random_rows(4), columns=["user", "time", "state"]), sort=True), epsilon=0.1
        )


def test_retried_task_counts_its_people_once(spark):
    from temporaldp.lab.cluster import leakage_on_spark

    rows = random_rows(5)

    def crashing_once(batches):
        from pyspark import TaskContext

        yield from batches
        if TaskContext.get().attemptNumber() == 0:
            os._exit(1)  # the worker's process dies after its rows were handed on

    fragile = table(spark, rows).repartition(3).mapInArrow(crashing_once, "user string, time long, state string")
    found = read_traces(fragile)
    at, linked = positions(rows)
    assert tables_of(found)[1] == counted(at, linked)[1]
    leaked = leakage_on_spark(found, epsilon=0.1, prior=1.0, horizon=4)
    names = Counter(row.user for row in leaked.frame.collect())
    assert names == Counter({user: 1 for user, _, _ in rows})


def test_a_plan_and_a_release_from_a_cluster(spark):
    traces = read_traces(table(spark, random_rows(6)))
    plan = plan_budget(next(estimate_adversaries(traces, prior=1.0)), alpha=1.0, horizon=11)
    assert release_histograms(traces, plan).counts.shape == (11, 3)
