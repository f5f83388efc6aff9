"""Largest leakage about people, on a cluster.

Run with:  spark-submit examples/spark/people.py traces.parquet

Columns user, time and state. The driver sees quantiles and the worst people only.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import temporaldp as tdp
from temporaldp.lab.cluster import leakage_on_spark


def main(path: str) -> None:
    session = SparkSession.builder.appName("temporaldp").getOrCreate()
    traces = tdp.read_traces(session.read.parquet(path))
    adversary = next(tdp.estimate_adversaries(traces, prior=1.0))
    average = tdp.temporal_leakage(adversary, [0.1] * traces.n_times)
    print(f"{traces}: worst leakage {average.worst:.4f} of an average person")
    found = leakage_on_spark(traces, epsilon=0.1, prior=1.0, horizon=min(traces.n_times, 100))
    for share in (0.5, 0.9, 0.99, 1.0):
        print(f"{100 * share:g} % of people leak at most {found.quantile(share):.4f}")
    for name, leakage in found.worst(5).items():
        print(f"{name}: {leakage:.4f}")
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
