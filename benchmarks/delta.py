"""What a delta gains over pure privacy, and what whole privacy curves cost.

Writes benchmarks/recorded/delta.md.  Run with:  make bench NAME=delta
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from exact import real_data
from measure import in_a_child, record, short, table

import temporaldp as tdp
from temporaldp.core.accounting.curve.arrivals import SingleCurve
from temporaldp.core.accounting.protocol import Accounting

DELTA = 1e-6
LARGER_DELTA = 1e-3
STEPS = 5
DATA_SETS = 7
"""Plans for the last, 69 bike stations, take minutes."""

WALK = tdp.TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
ROAD = tdp.TransitionMatrix([[0.8, 0.2], [0.0, 1.0]])


def number(value: float) -> str:
    return "none" if np.isinf(value) else f"{value:.4g}"


def known() -> str:
    """The example of one walk between two places."""
    noise, still = tdp.GaussianNoise(10.0, sensitivity=1.0), tdp.Adversary(tdp.TransitionMatrix(np.eye(2)))
    walk = tdp.temporal_leakage(tdp.Adversary(WALK, WALK), [noise] * 20, accounting=tdp.ApproximateDP(DELTA, grid=1e-3))
    limits = tdp.leakage_supremum(tdp.Adversary(WALK, WALK), noise, accounting=tdp.ApproximateDP(DELTA, grid=1e-3))
    composed = tdp.temporal_leakage(still, [noise] * 20, accounting=tdp.ApproximateDP(DELTA, grid=1e-3))
    gaps = walk.evidence.gaps("backward")
    rows = [
        ["one release", number(walk.epsilons[0]), f"{gaps[0]:.1e}"],
        ["BPL of 20", number(walk.backward[-1]), f"{gaps[-1]:.1e}"],
        ["BPL for ever, with certificate", number(limits.backward), ""],
        ["TPL for ever", number(limits.temporal), ""],
        ["composition of 20 (nobody moves)", number(composed.worst), f"{composed.evidence.gaps()[0]:.1e}"],
    ]
    return table(
        ["stay with probability 0.8; Gaussian noise, sigma = 10 x sensitivity", "epsilon", "of it discretisation"], rows
    )


def gains() -> str:
    """Laplace noise with 0.1 a step: pure leakage, and at a delta."""
    noise = tdp.LaplaceNoise(10.0, sensitivity=1.0)
    still = tdp.TransitionMatrix(np.eye(2))
    cases = [
        ("sleep stages (bundled)", next(tdp.estimate_adversaries(tdp.load_sample()))),
        ("two places, stay 0.8", tdp.Adversary(WALK, WALK)),
        ("one road in (0.8, 0.2; 0, 1), past only", tdp.Adversary(ROAD)),
        ("nobody moves", tdp.Adversary(still, still)),
    ]
    rows = []
    for name, adversary in cases:
        for n_steps in (10, 100, 1000):
            if name == "nobody moves" and n_steps == 1000:
                continue
            pure = tdp.temporal_leakage(adversary, [noise.pure_epsilon] * n_steps)
            both = tdp.temporal_leakage(
                adversary, [noise] * n_steps, accounting=tdp.ApproximateDP(DELTA, pairwise=False)
            )
            gap = both.evidence.gaps()[both.worst_time]
            rows.append(
                [
                    name,
                    str(n_steps),
                    number(pure.worst),
                    number(both.worst),
                    f"{both.worst / pure.worst:.3f}",
                    f"{gap:.1e}",
                ]
            )
        limits = tdp.leakage_supremum(adversary, noise, accounting=tdp.ApproximateDP(DELTA, pairwise=False))
        pure_limit = tdp.leakage_supremum(adversary, noise.pure_epsilon).temporal
        ratio = "" if np.isinf(pure_limit) else f"{limits.temporal / pure_limit:.3f}"
        rows.append(
            [
                name,
                "for ever",
                number(pure_limit),
                number(limits.temporal),
                ratio,
                "",
            ]
        )
        print(rows[-1], flush=True)
    return table(["correlation", "steps", "pure", "at delta = 1e-6", "ratio", "of it discretisation"], rows)


def noise_row(name: str, adversary: tdp.Adversary) -> list[str]:
    """Mean absolute noise of a count that holds alpha = 1 for ever, by each accounting method."""
    plans: list[Callable[..., tdp.BudgetPlan | tdp.NoisePlan]] = [
        partial(tdp.plan_budget, accounting=tdp.PaperBound()),
        tdp.plan_budget,
        partial(tdp.plan_noise, accounting=tdp.ApproximateDP(DELTA, pairwise=False), noise="laplace"),
        partial(tdp.plan_noise, accounting=tdp.ApproximateDP(DELTA, pairwise=False)),
        partial(tdp.plan_noise, accounting=tdp.ApproximateDP(DELTA)),
    ]
    return planned_row(name, adversary, plans, "pairwise")


def horizon_row(name: str, adversary: tdp.Adversary) -> list[str]:
    """The noise of few steps at a larger delta by each accounting method."""
    quick = tdp.ApproximateDP(LARGER_DELTA, pairwise=False)
    tight = tdp.ApproximateDP(LARGER_DELTA)
    plans: list[Callable[..., tdp.BudgetPlan | tdp.NoisePlan]] = [
        partial(tdp.plan_budget, horizon=STEPS, accounting=tdp.PaperBound()),
        partial(tdp.plan_budget, horizon=STEPS),
        partial(tdp.plan_noise, horizon=STEPS, accounting=quick),
        partial(tdp.plan_noise, horizon=STEPS, accounting=tight),
    ]
    return planned_row(name, adversary, plans, "pairwise")


def accounted(method: Accounting[Any, Any]) -> str:
    """What the columns call a method."""
    return "pairwise" if isinstance(method, tdp.ApproximateDP) and method.pairwise else "one curve"


def planned_row(
    name: str, adversary: tdp.Adversary, plans: list[Callable[..., tdp.BudgetPlan | tdp.NoisePlan]], *last: str
) -> list[str]:
    """The noise of each plan, the accounting method where the last ones are by another than their column says, and the time."""
    cells, started = [], time.perf_counter()
    for plan, way in zip(plans, [""] * (len(plans) - len(last)) + list(last), strict=True):
        try:
            found = plan(adversary, alpha=1.0)
            kind = accounted(found.accounting)
            cells.append(number(found.mean_absolute_noise) + ("" if way in {"", kind} else f" ({kind})"))
        except (tdp.PlanError, tdp.InputError):
            cells.append("none")
    row = [name, *cells, short(time.perf_counter() - started)]
    print(row, flush=True)
    return row


CHILD = """
import temporaldp as tdp
walk = tdp.TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
noise = tdp.GaussianNoise(10.0, sensitivity=1.0)
started = time.perf_counter()
{noise}
series = tdp.temporal_leakage(tdp.Adversary(walk, walk), releases, accounting=tdp.ApproximateDP(1e-6, grid={h}))
result.update(took=time.perf_counter() - started, worst=series.worst, gap=float(series.evidence.gaps()[series.worst_time]))
"""
CONSTANT = "releases = [noise] * {n}"
VARYING = "releases = [tdp.GaussianNoise(10.0 + 0.001 * (k % 997), sensitivity=1.0) for k in range({n})]"


def cost() -> str:
    rows = []
    for what, releases in (("the same noise", CONSTANT), ("other noise each step", VARYING)):
        for n_steps, h in ((10, 1e-3), (100, 1e-3), (1000, 1e-3), (10000, 1e-3), (1000, 1e-2), (1000, 1e-4)):
            if releases is VARYING and (n_steps == 10000 or h == 1e-4):
                continue
            found = in_a_child(CHILD.format(noise=releases.format(n=n_steps), h=h), OPENBLAS_NUM_THREADS="1")
            rows.append(
                [
                    what,
                    str(n_steps),
                    f"{h:g}",
                    short(found["took"]),
                    f"{found['worst']:.5f}",
                    f"{found['gap']:.1e}",
                    f"{found['mib']:.0f} MiB",
                ]
            )
            print(rows[-1], flush=True)
    return table(
        ["releases", "T", "discretisation", "time", "worst leakage", "of it discretisation", "peak memory"], rows
    )


def by_dp_accounting(now: pld.PrivacyLossDistribution, release: pld.PrivacyLossDistribution, h: float, size: int):
    """One step through WALK, then the next release, by dp-accounting's functions: profile, connect the dots, composition."""
    at = h * np.arange(1, size + 1)
    theta = 0.8 - 0.2 * np.exp(at)
    some = theta > 0.0
    right = np.zeros(size)
    arriving = at[some] + np.log1p(-np.expm1(-at[some]) * (1.0 / theta[some] - 1.0))
    right[some] = theta[some] * now.get_delta_for_epsilon(arriving.tolist())
    middle = 0.6 * now.get_delta_for_epsilon(0.0)
    left = -np.expm1(-at) + np.exp(-at) * right
    deltas = np.minimum(np.concatenate((left[::-1], [middle], right)), 1.0)
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(h, -size, size, deltas)
    return pld.PrivacyLossDistribution(pmf.to_dense_pmf()).compose(release, tail_mass_truncation=1e-15)


def against() -> str:
    """Composition alone, and a whole step, on the same grid: ours, and dp-accounting's."""
    rows = []
    for h in (1e-3, 2e-4):
        side = SingleCurve(h, DELTA, up=True)
        own = side.own((tdp.GaussianNoise(10.0, sensitivity=1.0),))
        google = pld.from_gaussian_mechanism(10.0, value_discretization_interval=h)
        for what in ("composition", "kernel, then composition"):
            ours, theirs, times = own, google, np.zeros(2)
            for _ in range(20):
                started = time.perf_counter()
                ours = side.composed(ours if what == "composition" else side.through(WALK, ours), own)
                middle = time.perf_counter()
                theirs = (
                    theirs.compose(google, tail_mass_truncation=1e-15)
                    if what == "composition"
                    else by_dp_accounting(theirs, google, h, int(1.2 / h))
                )
                times += middle - started, time.perf_counter() - middle
            found = side.epsilon(ours), theirs.get_epsilon_for_delta(DELTA)
            rows.append(
                [
                    what,
                    f"{h:g}",
                    short(times[0] / 20),
                    short(times[1] / 20),
                    f"{times[1] / times[0]:.1f}",
                    f"{found[0]:.5f}",
                    f"{found[1]:.5f}",
                ]
            )
    return table(
        ["a step", "discretisation", "ours", "dp-accounting 0.6", "times", "epsilon of 21, ours", "theirs"], rows
    )


def main() -> None:
    parts = ["## Known numbers\n", known(), GAINS, gains()]
    with tempfile.TemporaryDirectory() as scratch:
        rows = [noise_row(name, adversary) for name, adversary in islice(real_data(Path(scratch)), DATA_SETS)]
    parts += [
        NOISE,
        table(
            [
                "data",
                "pure, the paper's bound",
                "pure, exact",
                "Laplace at the delta",
                "Gaussian at the delta, one curve",
                "Gaussian, pair by pair where affordable",
                "time",
            ],
            rows,
        ),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        rows = [horizon_row(name, adversary) for name, adversary in islice(real_data(Path(scratch)), DATA_SETS)]
    names = [
        "data",
        "pure, the paper's bound",
        "pure, exact",
        "Gaussian, one curve",
        "pair by pair",
        "time",
    ]
    parts += [HORIZON, table(names, rows), COST, cost(), AGAINST, against()]
    target = Path(sys.argv[1])
    record(target, "\n".join(parts), "make bench NAME=delta")
    print(f"written to {target}")


GAINS = "\n## What a delta gains\n"

NOISE = "\n## Noise of a histogram that satisfies alpha = 1 over an infinite horizon\n"

HORIZON = f"\n## Noise of a histogram that satisfies alpha = 1 for {STEPS} steps at delta = {LARGER_DELTA:g}\n"

COST = "\n## What it costs\n"

AGAINST = "\n## Against dp-accounting's own functions\n"


if __name__ == "__main__":
    main()
