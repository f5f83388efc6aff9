"""OpenDP on a frame of Polars: counts for every quarter, each table with the epsilon that habits of the people allow.

Needs opendp[polars], in an environment of its own: a release of OpenDP reads the plans of one release of Polars only.
Run with:  python examples/budget/opendp_polars_budget.py
"""

import opendp.prelude as dp
import polars as pl
from survey import EPSILON, QUARTERS, REMOVED_AND_ADDED, STATES, answers, report

dp.enable_features("contrib")


def main() -> None:
    epsilon = EPSILON / REMOVED_AND_ADDED  # unit_of(contributions=1) is a row more or less
    rows = [(quarter, state) for quarter, states in enumerate(answers()) for state in states]
    context = dp.Context.compositor(
        data=pl.LazyFrame(rows, schema=["quarter", "state"], orient="row"),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=epsilon),
    )
    # A row is in one group of one quarter, so that one grouped query loses no more for all tables than for one. A query for
    # each quarter would add up to 36 epsilon in this Context; tables that come out one by one need a Context each.
    people = pl.len().dp.noise().alias("people")  # type: ignore[attr-defined]
    grouped = context.query(epsilon=epsilon).group_by("quarter", "state").agg(people)
    # With public keys every state has its count, and nobody learns which occur; as a margin's invariant they would be told
    cells = [(quarter, state) for quarter in range(QUARTERS) for state in STATES]
    answer = grouped.with_keys(pl.LazyFrame(cells, schema=["quarter", "state"], orient="row")).release().collect()
    counts = {(quarter, state): count for quarter, state, count in answer.iter_rows()}  # in a random order
    tables = [[counts[quarter, state] for state in STATES] for quarter in range(QUARTERS)]
    spent = context.current_privacy_loss()  # type: ignore[no-untyped-call]
    report("OpenDP with Polars", [spent] * QUARTERS, REMOVED_AND_ADDED, tables)


if __name__ == "__main__":
    main()
