"""dp-accounting: what the noise of the tables leaks about one quarter of a person, and about all of them.

It publishes nothing; the noise is that of the programs beside this one.
Requires the extra: python -m pip install '.[dp-accounting]' in a checkout.
Run with:  python examples/budget/dp_accounting_check.py
"""

from dp_accounting import LaplaceDpEvent, NeighboringRelation, pld
from survey import ALPHA, EPSILON, OBSERVER, QUARTERS, REMOVED_AND_ADDED, report

import temporaldp as tdp


def main() -> None:
    # One contribution changes one count by 1, so that the multiplier is the scale of the noise; a replaced state is two
    table = LaplaceDpEvent(noise_multiplier=REMOVED_AND_ADDED / EPSILON)
    temporal = tdp.adapters.dp_accounting(tdp.TemporalAccountant(OBSERVER)).compose(table, QUARTERS)
    print(
        f"about the state in any one quarter, to observers who know habits: {temporal.get_epsilon(0.0):.4f} of {ALPHA:g}"
    )

    # The library's own composition answers another question: whether a person was asked at all, in any quarter. It does so
    # without habits, and for rows that are removed or added: it refuses Laplace noise where they are replaced.
    asked = pld.PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE).compose(table, QUARTERS)
    print(f"about whether a person answered in all {QUARTERS}: {asked.get_epsilon(1e-9):.4f} at delta = 1e-9")

    # Of a single table, its accountant rounds up to a grid. The noise itself has none, and loses most at -1 and below
    largest = pld.privacy_loss_mechanism.LaplacePrivacyLoss(table.noise_multiplier).privacy_loss(-1.0)
    report("dp-accounting", [largest] * QUARTERS, REMOVED_AND_ADDED)


if __name__ == "__main__":
    main()
