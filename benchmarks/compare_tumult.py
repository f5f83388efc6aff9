"""Tumult Analytics' part of compare.py, in its own environment: what two sessions spend on the sample's histograms.

Run with:  PYTHON benchmarks/compare_tumult.py EPSILON STEPS
"""

import json
import os
import sys
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers need this environment, too

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from tmlt.analytics import AddMaxRows, KeySet, PureDPBudget, QueryBuilder, Session

SAMPLE = Path(__file__).parent.parent / "src" / "temporaldp" / "data" / "sample" / "sleep_5min.csv"


def spent(frame: DataFrame, keys: dict[str, list[str]], rows: int, epsilon: float) -> float:
    """What a session says is gone of its budget once it has counted."""
    budget = PureDPBudget(epsilon)
    session = Session.from_dataframe(budget, "stages", frame, protected_change=AddMaxRows(rows))
    session.evaluate(QueryBuilder("stages").groupby(KeySet.from_dict(keys)).count(), budget).collect()
    return epsilon - float(session.remaining_privacy_budget.epsilon)


def main(epsilon: float, steps: int) -> None:
    made = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = made.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    long = pd.read_csv(SAMPLE, dtype=str).melt(id_vars="user", var_name="time", value_name="stage")
    times, stages = sorted(long.time.unique()), sorted(long.stage.unique())
    assert len(times) == steps
    first = spark.createDataFrame(long[long.time == times[0]])
    whole = spark.createDataFrame(long)
    print(
        json.dumps(
            [
                spent(first, {"stage": stages}, 2, epsilon),
                spent(whole, {"time": times, "stage": stages}, 2 * steps, epsilon * steps),
            ]
        )
    )


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
