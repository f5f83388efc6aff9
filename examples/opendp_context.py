"""OpenDP's Context, one for every hour, under a temporal accountant that refuses budgets above the level.

Run with:  python examples/opendp_context.py
"""

import numpy as np
import opendp.prelude as dp

import temporaldp as tdp

PEOPLE, HOURS, ALPHA = 200, 12, 1.0

dp.enable_features("contrib")


def main() -> None:
    walk = tdp.TransitionMatrix([[0.9, 0.1], [0.2, 0.8]], states=["home", "out"])
    start = walk.stationary_distribution()
    accountant = tdp.TemporalAccountant(tdp.Adversary.from_forward(walk, initial=start), alpha=ALPHA)
    rng = np.random.default_rng(1)
    out = rng.random(PEOPLE) < start[1]
    for hour in range(HOURS):
        context = dp.Context.compositor(
            data=out.astype(int).tolist(),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=0.08),
            split_evenly_over=1,
            domain=dp.vector_domain(dp.atom_domain(bounds=(0, 1))),
        )
        try:
            context = tdp.adapters.opendp(context, accountant)  # the one line
        except tdp.LeakageBudgetError as refusal:
            print(f"hour {hour:2d}: refused; {refusal.largest:.4f} is left")
            break
        print(f"hour {hour:2d}: {context.query().sum().laplace().release()} of {PEOPLE} are out ({out.sum()} in truth)")
        stays = np.where(out, walk.dense()[1, 1], walk.dense()[0, 0])
        out = np.where(rng.random(PEOPLE) < stays, out, ~out)
    print(
        f"{len(accountant)} hours charged {accountant.spent[0]:.2f} each; worst leakage {accountant.total():.4f} of {ALPHA:g}"
    )


if __name__ == "__main__":
    main()
