"""What the exact leakage of many people costs, each with two matrices of their own: seconds and memory, measured in one run.

Run with:  make bench NAME=population
"""

from __future__ import annotations

from measure import in_a_child, machine, short, table

STATES, STEPS, EPSILON = 10, 50, 0.1
PEOPLE = (1_000, 10_000, 100_000)
ALONE = 50
"""People who are taken one by one; the rest is extrapolated."""

KINDS = {"Dirichlet(1)": "rows", "0.7 I + 0.3 Dirichlet(1)": f"0.7 * np.eye({STATES}) + 0.3 * rows"}

MAKE = f"""
import numpy as np
import temporaldp as tdp

def people(count, seed):
    rows = np.random.default_rng(seed).dirichlet(np.ones({STATES}), size=(2 * count, {STATES}))
    matrices = %s
    matrices /= matrices.sum(axis=2, keepdims=True)
    made = [tdp.TransitionMatrix(matrix) for matrix in matrices]
    return [tdp.Adversary(past, future) for past, future in zip(made[::2], made[1::2])]

epsilons = np.full({STEPS}, {EPSILON})
tdp.temporal_leakage(people(2, 1), epsilons)  # libraries are loaded
given = people(%d, 0)
before = peak()
started = time.perf_counter()
"""

TOGETHER = """
series = tdp.temporal_leakage(given, epsilons)
result = {"taken": time.perf_counter() - started, "more": peak() - before, "gap": series.gap / series.worst}
"""

ONE_BY_ONE = """
for one in given:
    tdp.temporal_leakage(one, epsilons)
result = {"taken": time.perf_counter() - started}
"""


def main() -> None:
    """Print the table."""
    print(f"n = {STATES}, T = {STEPS}, epsilon = {EPSILON}, both directions known; {machine()}")
    lines = []
    for kind, rows in KINDS.items():
        alone = in_a_child(MAKE % (rows, ALONE) + ONE_BY_ONE)["taken"] / ALONE
        for count in PEOPLE:
            found = in_a_child(MAKE % (rows, count) + TOGETHER)
            lines.append(
                [
                    kind,
                    f"{count:,}",
                    short(found["taken"]),
                    f"{found['mib']:,.0f} MiB ({found['more']:,.0f} more than the matrices)",
                    f"{found['gap']:.0e}",
                    short(alone * count),
                ]
            )
            print(
                table(["rows", "people", "together", "peak memory", "gap, relative", "one by one"], lines), flush=True
            )


if __name__ == "__main__":
    main()
