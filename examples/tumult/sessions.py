"""Tumult Analytics: a session a day, and a temporal accountant around them.

Needs tmlt-analytics and Java, in an environment of its own (`make test-slow NAME=tumult` makes one).
Run with:  python examples/tumult/sessions.py
"""

import os
import sys

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

import temporaldp as tdp

PLACES, PEOPLE, DAYS, ALPHA = ["home", "out"], 60, 4, 0.35


def main() -> None:
    walk = tdp.TransitionMatrix([[0.7, 0.3], [0.3, 0.7]], states=PLACES)
    accountant = tdp.TemporalAccountant(tdp.Adversary(walk, walk), alpha=ALPHA)
    spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
    rng = np.random.default_rng(1)
    query = QueryBuilder("people").groupby(KeySet.from_dict({"place": PLACES})).count()
    for day in range(DAYS):
        budget = PureDPBudget(0.1)
        rows = spark.createDataFrame(pd.DataFrame({"place": rng.choice(PLACES, PEOPLE)}))
        session = Session.from_dataframe(budget, "people", rows, protected_change=AddOneRow())
        try:
            session = tdp.adapters.tumult(session, accountant, budget)  # the one line
        except tdp.LeakageBudgetError as refusal:
            print(f"day {day}: refused, at most {refusal.largest:.4f} is left")
            continue
        counts = {row["place"]: row["count"] for row in session.evaluate(query, budget).collect()}
        print(f"day {day}: {counts}")
    print(f"{len(accountant)} days charged with {accountant.spent.tolist()}; worst leakage {accountant.total():.4f}")


if __name__ == "__main__":
    main()
