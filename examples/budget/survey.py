"""A made survey, and the epsilon of its tables: what the programs of this folder share.

300 people say in each of 36 quarters whether they are employed, unemployed or inactive. All were drawn from the chain that
observers are taken to know: nobody is real, and the answers are public.
"""

import json
from collections.abc import Sequence

import numpy as np

import temporaldp as tdp

STATES = ["employed", "unemployed", "inactive"]
PEOPLE, QUARTERS, STAY, ALPHA = 300, 36, 0.95, 1.0
REMOVED_AND_ADDED = 2
"""Moves between neighbouring data sets that add or remove a row, until a person's state in one quarter is another one."""

WALK = tdp.correlation.lazy_walk(STAY, STATES)
OBSERVER = tdp.Adversary(WALK, WALK)
EPSILON = tdp.sustainable_budget(OBSERVER, ALPHA, QUARTERS)
"""Of each table, for data sets in which one person's state in one quarter is replaced; in nats."""


def answers() -> list[list[str]]:
    """Return the states of all people, in each quarter: one row per person and quarter."""
    rng = np.random.default_rng(1)
    state = rng.integers(len(STATES), size=PEOPLE)
    quarters = []
    for _ in range(QUARTERS):
        quarters.append([STATES[one] for one in state])
        step = np.where(rng.random(PEOPLE) < STAY, 0, rng.integers(1, len(STATES), size=PEOPLE))
        state = (state + step) % len(STATES)
    return quarters


def report(library: str, epsilons: Sequence[float], moves: int, tables: Sequence[Sequence[float]] = ()) -> None:
    """Print a few of the published counts, and at last everything as one line of JSON."""
    for quarter in (0, QUARTERS // 2, QUARTERS - 1) if tables else ():
        counts = ", ".join(f"{count:.0f} {state}" for state, count in zip(STATES, tables[quarter], strict=True))
        print(f"{library}, quarter {quarter + 1} of {QUARTERS}: {counts}")
    print(json.dumps({"library": library, "epsilons": list(epsilons), "moves": moves, "tables": tables}))
