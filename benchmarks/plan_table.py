"""Noise of the optimal plan against the paper's algorithms and alpha / T, over s, T and alpha, as a Markdown table.

Writes docs/plans.md.  Run with:  make tables
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import temporaldp as tdp

N_STATES = 50
SMOOTHING = (0.001, 0.01, 0.1)
HORIZONS = (10, 100, 1000)
ALPHAS = (0.5, 2.0)
METHODS = ("optimal", "upper_bound", "quantified", "uniform")

HEAD = """# What the optimal plan saves

Mean of 1 / epsilon over the steps, which is proportional to the mean absolute Laplace noise: less is better. All plans
hold alpha at every step. Smoothed strongest correlation of the paper's Section VI (n = 50), known in both directions; then
the bundled sample. "certified" is the most by which any plan could be better than the optimal one. Made by `make tables`;
seconds are of one run on two cores, for the optimal plan with its certificate.

![Budgets over 47 steps by the four methods, alpha = 1: the optimal plan spends more at both ends](comparison.png)

*The bundled sample, alpha = 1: `temporaldp plan sleep_5min.csv --alpha 1 --horizon 47 --compare --figure comparison.png`, or
`make picture`.*

| correlation | T | alpha | optimal | Algorithm 2 | Algorithm 3 | alpha / T | best other / optimal | certified | seconds |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def row(name: str, adversary: tdp.Adversary, horizon: int, alpha: float) -> str:
    started = time.perf_counter()
    best = tdp.plan_budget(adversary, alpha=alpha, horizon=horizon)
    seconds = time.perf_counter() - started
    plans = tdp.compare_plans(adversary, alpha=alpha, horizon=horizon)
    noise = {method: float(np.mean(1.0 / plan.epsilons)) for method, plan in plans.items()}
    cells = [f"{noise[method]:.5g}" for method in METHODS]
    gain = min(noise[method] for method in METHODS[1:]) / noise["optimal"]
    assert best.error is not None
    assert best.error_bound is not None
    gap = 100.0 * (1.0 - best.error_bound / best.error)
    return " | ".join(
        [f"| {name}", str(horizon), f"{alpha:g}", *cells, f"{gain:.3f}", f"{gap:.2g} %", f"{seconds:.2f} |"]
    )


def main() -> None:
    lines = []
    for s in SMOOTHING:
        matrix = tdp.smoothed_correlation(tdp.strongest_correlation(N_STATES), s=s)
        adversary = tdp.Adversary(matrix, matrix)
        lines += [row(f"s = {s:g}", adversary, horizon, alpha) for alpha in ALPHAS for horizon in HORIZONS]
    sleep = next(tdp.estimate_adversaries(tdp.load_sample()))
    lines += [row("sleep stages", sleep, horizon, alpha) for alpha in ALPHAS for horizon in (10, 47, 1000, 10_000)]
    target = Path(sys.argv[1])
    target.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} rows written to {target}")


if __name__ == "__main__":
    main()
