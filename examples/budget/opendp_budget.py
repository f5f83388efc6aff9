"""OpenDP: a table of counts for every quarter, each with the epsilon that habits of the people allow.

Run with:  python examples/budget/opendp_budget.py
"""

import opendp.prelude as dp
from survey import EPSILON, REMOVED_AND_ADDED, STATES, answers, report

dp.enable_features("contrib")


def main() -> None:
    epsilon = EPSILON / REMOVED_AND_ADDED  # unit_of(contributions=1) is a row more or less
    tables, spent = [], []
    for states in answers():
        # A Context for each quarter: a person's row of a quarter is in its data, and in no other's, so that its loss is all
        # that there is about this row. One Context for all quarters would add up losses about different rows.
        context = dp.Context.compositor(
            data=states,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=epsilon),
            domain=dp.vector_domain(dp.atom_domain(T=str)),
        )
        # The categories are public: counts of those that occur would tell which do
        query = context.query(epsilon=epsilon).count_by_categories(STATES, null_category=False).laplace()
        tables.append(query.release())
        spent.append(context.current_privacy_loss())  # type: ignore[no-untyped-call]
    report("OpenDP", spent, REMOVED_AND_ADDED, tables)


if __name__ == "__main__":
    main()
