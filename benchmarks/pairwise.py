"""The bound pair by pair against the paper's: what it gains on real data, how near the truth it is, and what it costs.

Writes docs/pairwise.md.  Run with:  make bench-pairwise
"""

from __future__ import annotations

import csv
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
from measure import exponent, in_a_child, short, table
from scipy.linalg import circulant

import temporaldp as tdp
from temporaldp.leakage.kernels import n_threads
from temporaldp.leakage.lifting import lifted, no_trees, off_diagonal

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from data_sets import bike_locations, dod_sequences, income_quintiles  # noqa: E402
from oracles import defined_leakage  # noqa: E402

DATA = Path(os.environ.get("TEMPORALDP_SHARED", HERE.parent.parent / "shared")) / "data"
BOUNDS = ("uniform", "pairwise")
SIZES = (5, 10, 20, 50, 100)
CASES = 60

HEAD = """# What counting pair by pair gains, and what it costs

Made by `make bench-pairwise`, in one run on one machine; the data sets are those of the tests (a folder `shared/data` beside the
checkout; `TEMPORALDP_SHARED` names another place for `shared`). All numbers are upper bounds, in nats, here rounded to the nearest; [theory.md](theory.md), section 8, says why
both are, and why the second is never above the first.

{machine}
"""


def smoothed_ring() -> tdp.TransitionMatrix:
    return tdp.smoothed_correlation(tdp.TransitionMatrix(circulant([0.6, 0.2, 0, 0, 0, 0.2])), s=0.005)


def sleep() -> tdp.Adversary:
    return next(tdp.estimate_adversaries(tdp.load_sample()))


def known_numbers() -> str:
    """Backward leakage at T = 25 and for ever."""
    cases = [
        ("sleep stages (bundled)", sleep().backward, 0.1),
        ("sleep stages (bundled)", sleep().backward, 0.5),
        ("walk on a ring of six, smoothed (s = 0.005)", smoothed_ring(), 0.1),
        (
            "strongest correlation, n = 20, smoothed (s = 0.05)",
            tdp.smoothed_correlation(tdp.strongest_correlation(20), s=0.05),
            0.1,
        ),
    ]
    rows = []
    for name, matrix, epsilon in cases:
        cells = [name, f"{epsilon:g}"]
        for bound in ("uniform", "pairwise"):
            series = tdp.temporal_leakage(tdp.Adversary(matrix), epsilons=np.full(25, epsilon), bound=bound)
            limit = tdp.leakage_supremum(tdp.Adversary(matrix), epsilon=epsilon, bound=bound)
            cells += [f"{series.backward[-1]:.4f}", f"{limit.backward:.4f}"]
        rows.append(cells)
    return table(["matrix", "epsilon", "paper, T = 25", "for ever", "pair by pair, T = 25", "for ever"], rows)


def real_data(scratch: Path) -> Iterator[tuple[str, tdp.Adversary]]:
    """Every data set as an adversary who learnt both directions from it, with a prior where a state needs one."""
    yield "sleep stages of 151 people, 5 min (bundled)", sleep()
    hmc = tdp.read_traces(DATA / "sleep_hmc" / "hmc_sleep_stages.csv.gz", time="t", states=["W", "R", "N1", "N2", "N3"])
    yield "the same, 30 s", learnt(hmc)
    yield "sleep_dod, first scorer, 30 s", learnt(tdp.read_traces(dod_sequences(DATA, scratch / "dod.csv")))
    yield "US states by income quintile, yearly", learnt(tdp.read_traces(income_quintiles(DATA, scratch / "i.csv")))
    for name, prior in (("mvad", 0.0), ("actcal", 0.5)):
        traces = tdp.read_traces(DATA / "lifecourse_traminer" / f"{name}.csv", user="id")
        yield f"life courses ({name}){f', prior {prior:g}' if prior else ''}", learnt(traces, prior)
    yield "msnbc clicks, prior 1", learnt(tdp.read_traces(DATA / "msnbc323" / "msnbc323.seq"), 1.0)
    bikes = tdp.read_traces(bike_locations(DATA, scratch / "b.csv"), user="bike", time="day", state="station")
    yield "bikes by station, daily, prior 0.1", learnt(bikes, 0.1)


def learnt(traces: tdp.Trajectories, prior: float = 0.0) -> tdp.Adversary:
    return next(tdp.estimate_adversaries(traces, prior=prior))


def number(value: float) -> str:
    return "none" if not np.isfinite(value) else f"{value:.4g}"


def data_row(name: str, adversary: tdp.Adversary, metric: np.ndarray | None = None, epsilon: float = 0.1) -> list[str]:
    """Worst leakage of 50 steps, supremum, and what lasts for ever at alpha = 1, by both bounds."""
    worst, limits, lasting = {}, {}, {}
    started = time.perf_counter()
    for bound in BOUNDS:
        arguments = {"bound": bound, "metric": metric}
        worst[bound] = tdp.temporal_leakage(adversary, epsilons=np.full(50, epsilon), **arguments).worst
        limits[bound] = tdp.leakage_supremum(adversary, epsilon=epsilon, **arguments).temporal
        lasting[bound] = tdp.sustainable_budget(adversary, alpha=1.0, **arguments)
    seconds = time.perf_counter() - started
    print(name, worst, limits, lasting, short(seconds), flush=True)
    gain = lasting["pairwise"] / lasting["uniform"] if lasting["uniform"] else np.inf
    return [
        name,
        str(len(adversary.states or ())),
        *(number(worst[bound]) for bound in BOUNDS),
        f"{worst['pairwise'] / worst['uniform']:.3f}",
        *(number(limits[bound]) for bound in BOUNDS),
        *(number(lasting[bound]) if lasting[bound] else "none" for bound in BOUNDS),
        f"{gain:.2f}" if np.isfinite(gain) else "from none",
        short(seconds),
    ]


DATA_HEAD = [
    "data",
    "n",
    "paper, 50 steps",
    "pair by pair",
    "ratio",
    "for ever",
    "pair by pair",
    "budget for ever, alpha = 1",
    "pair by pair",
    "gained",
    "time",
]


def kilometres() -> tuple[np.ndarray, tdp.Adversary]:
    """Distances between the bike stations of San Francisco, and a walk from each to its five nearest neighbours."""
    with (DATA / "bikeshare_bayarea_2014" / "stations.csv").open(newline="") as file:
        rows = {row["station_id"]: row for row in csv.DictReader(file) if float(row["lat"]) > 37.7}
    at = np.radians([[float(row["lat"]), float(row["long"])] for row in rows.values()])
    flat = 6371.0 * np.column_stack((at[:, 0], at[:, 1] * np.cos(at[:, 0].mean())))
    distances = np.linalg.norm(flat[:, None] - flat, axis=2)
    near = np.argsort(distances, axis=1)[:, :6]
    walk = np.zeros_like(distances)
    for k, neighbours in enumerate(near):
        walk[k, neighbours] = [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]
    matrix = tdp.TransitionMatrix(walk / walk.sum(axis=1, keepdims=True), list(rows))
    return distances, tdp.Adversary(matrix, matrix)


def near_the_truth() -> str:
    """Both bounds over the worst mechanism's leakage, enumerated, on random matrices with 2 to 4 states."""
    rng = np.random.default_rng(1)
    ratios: dict[str, list[float]] = {bound: [] for bound in BOUNDS}
    for k in range(CASES):
        n, steps = 2 + k % 3, (7, 6, 4)[k % 3]
        rows = rng.dirichlet(np.ones(n), n)
        epsilon = float(rng.choice([0.1, 0.5, 1.0]))
        true = defined_leakage([rows] * (steps - 1), [rows] * (steps - 1), [epsilon] * steps)[2].max()
        matrix = tdp.TransitionMatrix(rows)
        for bound in BOUNDS:
            found = tdp.temporal_leakage(tdp.Adversary(matrix, matrix), epsilons=[epsilon] * steps, bound=bound)
            ratios[bound].append(found.worst / true)
    rows = [
        [
            "the paper's" if bound == "uniform" else bound,
            *(f"{np.quantile(ratios[bound], q):.4f}" for q in (0, 0.5, 0.9, 1)),
        ]
        for bound in BOUNDS
    ]
    return table(["bound", "least", "median", "90 %", "worst"], rows)


def cost() -> str:
    """Seconds of a first step, of a step near the fixed point, and of the fixed point, with the uniform bound beside."""
    rows, seconds = [], []
    for n in (6, SIZES[-1] + 1):  # so that all kernels are loaded
        other = tdp.TransitionMatrix(np.random.default_rng(0).dirichlet(np.ones(n), n))
        other.leakage_profile()
        if n < SIZES[-1]:
            tdp.leakage_supremum(tdp.Adversary(other), epsilon=0.1, bound="pairwise")
    for n in SIZES:
        matrix = tdp.TransitionMatrix(np.random.default_rng(n).dirichlet(np.ones(n), n))
        started = time.perf_counter()
        profile = matrix.leakage_profile()
        uniform = time.perf_counter() - started
        trees, metric, steps = no_trees(n), 0.1 * off_diagonal(n), []
        lifted(matrix.dense(), metric, profile, trees)
        change = 1.0
        while change > 1e-12:
            started = time.perf_counter()
            after = lifted(matrix.dense(), metric, profile, trees) + 0.1 * off_diagonal(n)
            steps.append(time.perf_counter() - started)
            change, metric = float(np.abs(after - metric).max()), after
        started = time.perf_counter()
        limit = tdp.leakage_supremum(tdp.Adversary(matrix), epsilon=0.1, bound="pairwise")
        certified = time.perf_counter() - started
        code = (
            "import numpy as np, temporaldp as tdp\n"
            f"m = tdp.TransitionMatrix(np.random.default_rng({n}).dirichlet(np.ones({n}), {n}))\n"
            "result['value'] = tdp.leakage_supremum(tdp.Adversary(m), epsilon=0.1, bound='pairwise').backward"
        )
        memory = in_a_child(code)["mib"]
        paper = tdp.leakage_supremum(tdp.Adversary(matrix), epsilon=0.1).backward
        seconds.append(sum(steps))
        rows.append(
            [
                str(n),
                short(max(steps[1:3])),
                short(float(np.median(steps[-5:]))),
                str(len(steps)),
                short(sum(steps)),
                short(certified),
                f"{limit.backward:.4f}",
                f"{paper:.4f}",
                short(uniform),
                f"{memory:.0f} MiB",
            ]
        )
        print(rows[-1], flush=True)
    head = [
        "n",
        "step from nothing",
        "step near the end",
        "steps",
        "to the fixed point",
        "with certificate",
        "BPL for ever",
    ]
    grown = exponent(list(SIZES[1:]), seconds[1:])
    return (
        table([*head, "the paper's", "its profile", "peak memory"], rows)
        + f"\n\nFrom n = {SIZES[1]} on, the time to the fixed point grows like n^{grown:.1f}."
    )


def main() -> None:
    machine = (
        f"{n_threads()} cores, Python {platform.python_version()}, numpy {np.__version__}, numba {version('numba')}."
    )
    spent = cost()  # first, while nothing else runs
    parts = [HEAD.format(machine=machine)]
    parts += ["## Known numbers\n\nBackward privacy leakage under a constant budget.\n", known_numbers()]
    with tempfile.TemporaryDirectory() as scratch:
        rows = [data_row(name, adversary) for name, adversary in real_data(Path(scratch))]
    parts += [REAL, table(DATA_HEAD, rows)]
    distances, walk = kilometres()
    rows = [
        data_row("epsilon 0.1 for any two stations", walk),
        data_row("epsilon 0.1 a kilometre", walk, distances),
    ]
    parts += [METRIC.format(n=len(distances), far=distances.max()), table(DATA_HEAD, rows)]
    parts += [TRUTH.format(cases=CASES), near_the_truth()]
    parts += [COST, spent]
    target = Path(sys.argv[1])
    target.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print(f"written to {target}")


REAL = """
## Real data

Temporal privacy leakage of 50 steps of 0.1 nats, its supremum, and the budget that every step can spend for ever at alpha = 1, against
an adversary who has learnt both directions from the same data (which nobody should do with data to be protected). "none": leakage
grows without bound, or no budget lasts. Time is for all six numbers.
"""

METRIC = """
## Metric privacy

A walk between the {n} bike stations of San Francisco (half the time stay, else to one of the five nearest), released with plain privacy,
and with geo-indistinguishability: 0.1 nats a kilometre, so that stations {far:.1f} km apart, the furthest, get {far:.1f} times as much.
The budget for ever is what multiplies the distances.
"""

TRUTH = """
## How near the truth

The worst step's TPL over that of the worst mechanism, all of whose outputs are enumerated: {cases} random matrices (Dirichlet, n = 2 to
4), 7, 6 and 4 steps, epsilon 0.1, 0.5 or 1.
"""

COST = """
## What it costs

A random matrix (Dirichlet), epsilon = 0.1. "Step from nothing": the slower of the second and third step, whose trees are new or mostly so. "To
the fixed point": until no entry changes by more than 1e-12. "With certificate": `leakage_supremum`, which leaps. The first use ever
compiles for some fifteen seconds, once. Peak memory is of a process that does the last.
"""


if __name__ == "__main__":
    main()
