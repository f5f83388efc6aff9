"""diffprivlib: a table of counts for every quarter, each with the epsilon that habits of the people allow.

Requires the extra: python -m pip install '.[diffprivlib]' in a checkout.
Run with:  python examples/budget/diffprivlib_budget.py
"""

from diffprivlib import BudgetAccountant, tools
from survey import EPSILON, REMOVED_AND_ADDED, STATES, answers, report


def main() -> None:
    # The noise of `histogram` is for a sensitivity of 1: that of a row more or less, and not that of one that is replaced
    epsilon = EPSILON / REMOVED_AND_ADDED
    tables, spent = [], []
    for states in answers():
        accountant = BudgetAccountant(epsilon, 0.0)  # of one quarter: a row is in its data, and in no other's
        levels = [STATES.index(state) for state in states]
        # The range is public: without one it would be that of the data
        counts, _ = tools.histogram(
            levels, epsilon=epsilon, bins=len(STATES), range=(0, len(STATES) - 1), accountant=accountant
        )
        tables.append(counts.tolist())
        spent.append(float(accountant.total()[0]))
    report("diffprivlib", spent, REMOVED_AND_ADDED, tables)


if __name__ == "__main__":
    main()
