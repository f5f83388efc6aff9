"""Noise of the optimal plans, by the exact leakage and by the paper's bound, against the paper's algorithms and alpha / T.

Writes benchmarks/recorded/plans.md.  Run with:  make bench NAME=plans
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from measure import ACCOUNTING, record

import temporaldp as tdp

N_STATES = 50
SMOOTHING = (0.001, 0.01, 0.1)
HORIZONS = (10, 100, 1000)
ALPHAS = (0.5, 2.0)
METHODS = ("optimal", "upper_bound", "quantified", "uniform")

HEAD = """## By the exact leakage

| correlation | T | alpha | exact | paper | paper / exact | seconds, exact | for ever, exact / paper |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""

BY_PAPER = """
## By the paper's bound

| correlation | T | alpha | optimal | Algorithm 2 | Algorithm 3 | alpha / T | best other / optimal | certified | seconds |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def exact_row(name: str, adversary: tdp.Adversary, horizon: int, alpha: float) -> str:
    started = time.perf_counter()
    exact = tdp.plan_budget(adversary, alpha=alpha, horizon=horizon)
    seconds = time.perf_counter() - started
    paper = tdp.plan_budget(adversary, alpha=alpha, horizon=horizon, accounting=tdp.PaperBound())
    for_ever = [
        tdp.sustainable_budget(adversary, alpha=alpha, accounting=ACCOUNTING[bound]) for bound in ("exact", "paper")
    ]
    cells = [
        f"{exact.optimality.error:.5g}",
        f"{paper.optimality.error:.5g}",
        f"{paper.optimality.error / exact.optimality.error:.3f}",
        f"{seconds:.1f}",
    ]
    gain = f"{for_ever[0] / for_ever[1]:.3f}" if for_ever[1] else "from none"
    return " | ".join([f"| {name}", str(horizon), f"{alpha:g}", *cells, f"{gain} |"])


def row(name: str, adversary: tdp.Adversary, horizon: int, alpha: float) -> str:
    started = time.perf_counter()
    best = tdp.plan_budget(adversary, alpha=alpha, horizon=horizon, accounting=tdp.PaperBound())
    seconds = time.perf_counter() - started
    plans = tdp.compare_plans(adversary, alpha=alpha, horizon=horizon, accounting=tdp.PaperBound()).plans
    noise = {method: float(np.mean(1.0 / plan.epsilons)) for method, plan in plans.items()}
    cells = [f"{noise[method]:.5g}" for method in METHODS]
    gain = min(noise[method] for method in METHODS[1:]) / noise["optimal"]
    assert best.optimality.error_bound is not None
    gap = 100.0 * (1.0 - best.optimality.error_bound / best.optimality.error)
    return " | ".join(
        [f"| {name}", str(horizon), f"{alpha:g}", *cells, f"{gain:.3f}", f"{gap:.2g} %", f"{seconds:.2f} |"]
    )


def random_adversary(n: int, concentration: float) -> tdp.Adversary:
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(np.full(n, concentration), n) for _ in range(2)]
    return tdp.Adversary(*(tdp.TransitionMatrix(part / part.sum(axis=1, keepdims=True)) for part in rows))


def main() -> None:
    sleep = next(tdp.estimate_adversaries(tdp.load_sample()))
    exact = [exact_row("sleep stages", sleep, horizon, alpha) for alpha in ALPHAS for horizon in (10, 47, 200)]
    exact += [exact_row("sleep stages", sleep, 1000, 1.0)]
    exact += [
        exact_row(f"Dirichlet({c:g}), n = {n}", random_adversary(n, c), 20, 1.0) for n, c in ((5, 1.0), (10, 0.3))
    ]
    lines = []
    for s in SMOOTHING:
        raised = np.eye(N_STATES) + s
        matrix = tdp.TransitionMatrix(raised / raised.sum(axis=1, keepdims=True))
        adversary = tdp.Adversary(matrix, matrix)
        lines += [row(f"s = {s:g}", adversary, horizon, alpha) for alpha in ALPHAS for horizon in HORIZONS]
    lines += [row("sleep stages", sleep, horizon, alpha) for alpha in ALPHAS for horizon in (10, 47, 1000, 10_000)]
    target = Path(sys.argv[1])
    record(target, HEAD + "\n".join(exact) + "\n" + BY_PAPER + "\n".join(lines), "make bench NAME=plans")
    print(f"{len(exact) + len(lines)} rows written to {target}")


if __name__ == "__main__":
    main()
