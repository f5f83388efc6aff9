"""OpenDP's tutorial data, three ways to protect them: the table of docs/how-to/epsilon.md.

The file is sample_50K_FR_LFS.csv.zip of github.com/opendp/dp-test-datasets: public microdata of the French labour force survey,
a row for a person in a quarter.
Run with:  python benchmarks/labour_force.py sample_50K_FR_LFS.csv.zip
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import pandas as pd

import temporaldp as tdp

STATES = {"1": "employed", "2": "unemployed", "3": "inactive"}
ALPHA, STAYS, REMOVED_AND_ADDED = 1.0, 0.95, 2
YEARS, REPEATS = range(2005, 2014), 4

dp.enable_features("contrib")


def main(path: Path) -> None:
    rows = pd.read_csv(path, usecols=["YEAR", "QUARTER", "ILOSTAT"], dtype=str)
    rows = rows[rows["YEAR"].isin([str(year) for year in YEARS]) & rows["ILOSTAT"].isin(list(STATES))]
    quarters = [group["ILOSTAT"].map(STATES).tolist() for _, group in rows.groupby(["YEAR", "QUARTER"])]
    n = len(quarters)
    walk = tdp.correlation.lazy_walk(STAYS, list(STATES.values()))
    levels = {
        "event level: a state, by one table": ALPHA,
        f"temporal level: a state, by all {n} tables": tdp.sustainable_budget(tdp.Adversary(walk, walk), ALPHA, n),
        f"user level: all {n} states together": ALPHA / n,
    }
    truth = np.array([[states.count(one) for one in STATES.values()] for states in quarters])
    print(f"{len(rows)} rows, {n} quarters, an average count of {truth.mean():.0f}")
    print("| what at most 1 nat leaks about | epsilon to type | mean error of a count | of an average count |")
    print("| --- | ---: | ---: | ---: |")
    for name, replaced in levels.items():
        epsilon = replaced / REMOVED_AND_ADDED
        released = [_released(states, epsilon) for states in quarters for _ in range(REPEATS)]
        error = np.abs(np.array(released) - truth.repeat(REPEATS, axis=0)).mean()
        print(f"| {name} | {np.floor(epsilon * 1e5) / 1e5:g} | {error:.1f} | {100.0 * error / truth.mean():.1f} % |")


def _released(states: list[str], epsilon: float) -> list[int]:
    context = dp.Context.compositor(
        data=states,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        domain=dp.vector_domain(dp.atom_domain(T=str)),
    )
    query = context.query().count_by_categories(list(STATES.values()), null_category=False).laplace()
    return list(query.release())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
