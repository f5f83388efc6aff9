"""diffprivlib's own functions, whose accountant is a temporal one.

Requires the extra: python -m pip install '.[diffprivlib]' in a checkout.  Run with:  python examples/diffprivlib_accountant.py
"""

import numpy as np
from diffprivlib import tools

import temporaldp as tdp

HOURS, ALPHA = 6, 2.0


def main() -> None:
    walk = tdp.TransitionMatrix(np.full((4, 4), 0.1) + 0.6 * np.eye(4))
    accountant = tdp.TemporalAccountant(tdp.Adversary(walk, walk), alpha=ALPHA)
    guarded = tdp.adapters.diffprivlib(accountant)  # the one line
    rng = np.random.default_rng(1)
    for hour in range(HOURS):
        levels = rng.integers(0, 4, 500)
        with guarded.step(epsilon=0.15):  # everything about this hour's data
            counts, _ = tools.histogram(levels, epsilon=0.1, bins=4, range=(0, 3))
            mean = tools.mean(levels, epsilon=0.05, bounds=(0, 3))
        print(f"hour {hour}: {[int(count) for count in counts]}, mean {mean:.2f}")
    print(
        f"{len(accountant)} hours charged {accountant.spent[0]:.2f} each; worst leakage {accountant.total():.4f} of {ALPHA:g}"
    )


if __name__ == "__main__":
    main()
