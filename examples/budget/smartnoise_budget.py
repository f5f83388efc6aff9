"""SmartNoise SQL: a table of counts for every quarter, each with the epsilon that habits of the people allow.

Needs smartnoise-sql, in an environment of its own.
Run with:  python examples/budget/smartnoise_budget.py
"""

import pandas as pd
import snsql  # type: ignore[import-not-found]
from survey import EPSILON, REMOVED_AND_ADDED, STATES, answers, report

QUERY = "SELECT state, COUNT(*) AS n FROM survey.quarter GROUP BY state"
# Every row is a person; censor_dims would drop small groups by a threshold, which needs a delta
TABLE = {"row_privacy": True, "censor_dims": False, "state": {"type": "string"}}


def main() -> None:
    tables, spent = [], []
    for states in answers():
        # GROUP BY answers for the states that occur, and which do is not protected without a threshold. So that all do, one
        # public row of each is added before, and taken off the counts afterwards.
        frame = pd.DataFrame({"state": states + STATES})
        reader = snsql.from_df(
            frame,
            privacy=snsql.Privacy(epsilon=EPSILON / REMOVED_AND_ADDED, delta=0.0),
            metadata={"": {"survey": {"quarter": TABLE}}},
        )
        published = dict(reader.execute(QUERY)[1:])  # after the names of the columns
        tables.append([published[state] - 1 for state in STATES])
        # Laplace noise has no delta. The odometer says 1e-15: it allows itself that much in order to compose many queries,
        # and its epsilon for a single one is the sum, which holds without.
        epsilon, delta = reader.odometer.spent
        spent.append(float(epsilon))
    print(f"the odometer says epsilon = {spent[-1]:.6f} for a quarter, at delta = {delta:.1g}")
    report("SmartNoise SQL", spent, REMOVED_AND_ADDED, tables)


if __name__ == "__main__":
    main()
