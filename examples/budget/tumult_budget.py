"""Tumult Analytics: a table of counts for every quarter, each with the epsilon that habits of the people allow.

Needs tmlt-analytics and Java, in an environment of its own (`make test-slow NAME=tumult` makes one).
Run with:  python examples/budget/tumult_budget.py
"""

import os
import sys

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import pandas as pd
from pyspark.sql import SparkSession
from survey import EPSILON, QUARTERS, REMOVED_AND_ADDED, STATES, answers, report
from tmlt.analytics import AddMaxRowsInMaxGroups, KeySet, PureDPBudget, QueryBuilder, Session


def main() -> None:
    spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
    rows = [(quarter, state) for quarter, states in enumerate(answers()) for state in states]
    # The protected change is one row of one quarter, removed or added. Its loss is that of one table, and the session may
    # publish the tables of all quarters by one query: as 36 queries, they would be charged 36 times.
    budget = PureDPBudget(EPSILON / REMOVED_AND_ADDED)
    session = Session.from_dataframe(
        budget,
        "answers",
        spark.createDataFrame(pd.DataFrame(rows, columns=["quarter", "state"])),
        protected_change=AddMaxRowsInMaxGroups("quarter", max_groups=1, max_rows_per_group=1),
    )
    keys = KeySet.from_dict({"quarter": list(range(QUARTERS)), "state": STATES})
    query = QueryBuilder("answers").groupby(keys).count()
    counts = {(row["quarter"], row["state"]): row["count"] for row in session.evaluate(query, budget).collect()}
    spent = budget.epsilon - session.remaining_privacy_budget.epsilon
    tables = [[counts[quarter, state] for state in STATES] for quarter in range(QUARTERS)]
    report("Tumult Analytics", [spent] * QUARTERS, REMOVED_AND_ADDED, tables)


if __name__ == "__main__":
    main()
