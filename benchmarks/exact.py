"""The exact leakage against the paper's bound and the bound pair by pair: values, closeness, times.

Writes benchmarks/recorded/exact.md.  Run with:  make bench NAME=exact;  with LONG=--long it includes what takes minutes by itself.
"""

from __future__ import annotations

import csv
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measure import ACCOUNTING, record, short, table

import temporaldp as tdp
from temporaldp.core.accounting.metric.method import MetricPrivacy
from temporaldp.core.accounting.monotone_search import largest
from temporaldp.core.kernels.lifting import off_diagonal

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))
from data_sets import bike_locations, dod_sequences, income_quintiles  # noqa: E402

DATA = Path(os.environ.get("TEMPORALDP_SHARED", HERE.parent.parent / "shared")) / "data"
BOUNDS = ("paper", "pair by pair", "exact")
EPSILON, STEPS, ALPHA = 0.1, 50, 1.0
PAIR_BY_PAIR_UP_TO = 40
"""States up to which the bound pair by pair is computed: at 69 it takes minutes."""

RANDOM_SIZES = (5, 10, 20, 50, 100)
CLOSENESS = {3: 100, 5: 100, 10: 30}
"""Random cases for each number of states."""


@dataclass(frozen=True, slots=True)
class Row:
    """One adversary's numbers by each bound that was computed, and how long each took in seconds."""

    name: str
    n: int
    values: dict[str, dict[str, float]]
    seconds: dict[str, dict[str, float]]
    gap: dict[str, float]


def timed(call: Callable[[], float]) -> tuple[float, float]:
    """A value and the seconds that it took."""
    started = time.perf_counter()
    value = call()
    return value, time.perf_counter() - started


def by_pairs(adversary: tdp.Adversary) -> MetricPrivacy:
    """The bound pair by pair for plain differential privacy; `temporal_leakage` gives the exact value in its place."""
    return MetricPrivacy(off_diagonal(len(adversary.states or ())))


def series_by_pairs(adversary: tdp.Adversary, spent: np.ndarray) -> float:
    """The largest leakage of any step."""
    (found,) = by_pairs(adversary).series([adversary], spent)
    return float(found.temporal.max())


def budget_by_pairs(adversary: tdp.Adversary) -> float:
    """The largest budget whose supremum pair by pair is at most ALPHA."""
    way = by_pairs(adversary)
    known = tdp.sustainable_budget(adversary, alpha=ALPHA, accounting=tdp.PaperBound())
    return largest(lambda e: way.limits([adversary], np.array([e])).temporal, max(known, 1e-9), ALPHA, ALPHA)


def measured(name: str, adversary: tdp.Adversary) -> Row:
    """Worst leakage of 50 steps, for ever, and the budget for ever, by every bound."""
    n = len(adversary.states or ())
    spent = np.full(STEPS, EPSILON)
    for matrix in (adversary.backward, adversary.forward):
        assert isinstance(matrix, tdp.TransitionMatrix)
        matrix.leakage_profile()  # made once and kept: no part of any row's time
    values: dict[str, dict[str, float]] = {}
    seconds: dict[str, dict[str, float]] = {}
    gap: dict[str, float] = {}
    for bound in BOUNDS:
        if bound == "pair by pair":
            if n > PAIR_BY_PAIR_UP_TO:
                continue
            calls = {
                "series": lambda: series_by_pairs(adversary, spent),
                "for ever": lambda: by_pairs(adversary).limits([adversary], np.array([EPSILON])).temporal,
                "budget": lambda: budget_by_pairs(adversary),
            }
        else:
            calls = {
                "series": lambda b=bound: tdp.temporal_leakage(adversary, spent, accounting=ACCOUNTING[b]).worst,
                "for ever": lambda b=bound: tdp.leakage_supremum(adversary, EPSILON, accounting=ACCOUNTING[b]).temporal,
                "budget": lambda b=bound: tdp.sustainable_budget(adversary, alpha=ALPHA, accounting=ACCOUNTING[b]),
            }
        found = {}
        for what, call in calls.items():
            found[what] = timed(call)
            print(f"  {name}, {n} values, {bound}, {what}: {found[what][0]:.6g}, {short(found[what][1])}", flush=True)
        values[bound] = {what: value for what, (value, _) in found.items()}
        seconds[bound] = {what: spent_time for what, (_, spent_time) in found.items()}
    series = tdp.temporal_leakage(adversary, spent)
    gap["series"] = series.gap / series.worst
    limit = tdp.leakage_supremum(adversary, EPSILON)
    if limit.lower is not None and math.isfinite(limit.temporal):
        gap["for ever"] = (limit.temporal - limit.lower.temporal) / limit.temporal
    print(name, gap, flush=True)
    return Row(name, n, values, seconds, gap)


def tables(rows: list[Row]) -> Iterator[str]:
    """Captions and tables of every quantity."""
    for what, caption in CAPTIONS.items():
        yield caption
        yield quantity(rows, what)


def number(value: float | None) -> str:
    """Four digits; a supremum or a budget that does not exist is "none"."""
    if value is None:
        return "not run"
    return "none" if not math.isfinite(value) or value == 0.0 else f"{value:.4g}"


def quantity(rows: list[Row], what: str) -> str:
    """The table of one quantity: its values by each bound, the time of the last two, and the gap of the exact one."""
    head = ["data", "n", *BOUNDS, "time, pair by pair", "time, exact"]
    with_gap = what != "budget"
    cells = []
    for row in rows:
        found = [number(row.values[bound][what]) if bound in row.values else "not run" for bound in BOUNDS]
        times = [short(row.seconds[bound][what]) if bound in row.seconds else "not run" for bound in BOUNDS[1:]]
        gap = [f"{row.gap[what]:.0e}" if what in row.gap else "none"] if with_gap else []
        cells.append([row.name, str(row.n), *found, *times, *gap])
    return table([*head, *(["gap"] if with_gap else [])], cells)


def real_data(scratch: Path) -> Iterator[tuple[str, tdp.Adversary]]:
    """Every data set as an adversary who learnt both directions from it, with a prior where a state needs one."""
    yield "sleep stages of 151 people, 5 min (bundled)", learnt(tdp.load_sample())
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


def drawn(n: int, concentration: float, seed: int) -> tdp.Adversary:
    """Both directions drawn independently, rows from Dirichlet(concentration)."""
    rng = np.random.default_rng(seed)
    back, ahead = (tdp.TransitionMatrix(rng.dirichlet(np.full(n, concentration), n)) for _ in range(2))
    return tdp.Adversary(back, ahead)


def random_matrices() -> Iterator[tuple[str, tdp.Adversary]]:
    for concentration in (1.0, 0.3):
        for n in RANDOM_SIZES:
            yield f"Dirichlet({concentration:g})", drawn(n, concentration, n)


def closeness() -> str:
    """Both bounds over the exact value on many small random matrices."""
    rows = []
    for n, cases in CLOSENESS.items():
        for concentration in (1.0, 0.3):
            rng = np.random.default_rng(n)
            ratios: dict[str, list[float]] = {"paper": [], "pair by pair": []}
            for case in range(cases):
                adversary = drawn(n, concentration, 1000 * n + case)
                spent = np.full(8, float(rng.choice([0.1, 0.3, 1.0])))
                exact = tdp.temporal_leakage(adversary, spent).worst
                ratios["paper"].append(
                    tdp.temporal_leakage(adversary, spent, accounting=tdp.PaperBound()).worst / exact
                )
                ratios["pair by pair"].append(series_by_pairs(adversary, spent) / exact)
            for bound, found in ratios.items():
                quantiles = [f"{np.quantile(found, q):.3f}" for q in (0.0, 0.5, 0.9, 1.0)]
                rows.append([str(n), f"Dirichlet({concentration:g})", str(cases), bound, *quantiles])
            print(rows[-2:], flush=True)
    return table(["n", "rows", "cases", "bound", "least", "median", "90 %", "worst"], rows)


def speed() -> str:
    """Against the bound pair by pair in the same run, on the same matrices; then sizes that it does not reach."""
    rows = []
    for n, steps in ((20, 1000), (50, 40)):
        adversary, spent = drawn(n, 1.0, n), np.full(steps, EPSILON)
        found = [
            timed(lambda a=adversary, s=spent: tdp.temporal_leakage(a, s).worst),
            timed(lambda a=adversary, s=spent: series_by_pairs(a, s)),
        ]
        rows.append(
            [
                f"all steps of TPL, n = {n}, T = {steps:,}",
                *(f"{value:.4g}" for value, _ in found),
                *(short(seconds) for _, seconds in found),
                f"{found[1][1] / found[0][1]:.1f}",
            ]
        )
        print(rows[-1], flush=True)
    larger: list[tuple[str, Callable[[], float]]] = [
        (
            "all steps of TPL, n = 150, T = 50",
            lambda: tdp.temporal_leakage(drawn(150, 1.0, 150), np.full(50, EPSILON)).worst,
        ),
        ("supremum of TPL, n = 50", lambda: tdp.leakage_supremum(drawn(50, 1.0, 50), EPSILON).temporal),
    ]
    if "--long" in sys.argv:
        huge = drawn(1000, 1.0, 1000)
        larger.append(("supremum of TPL, n = 1,000 (`--long`)", lambda: tdp.leakage_supremum(huge, EPSILON).temporal))
    for name, call in larger:
        value, seconds = timed(call)
        rows.append([name, f"{value:.4g}", "not run", short(seconds), "not run", ""])
        print(rows[-1], flush=True)
    return table(["task", "exact", "pair by pair", "time, exact", "time, pair by pair", "times as fast"], rows)


def kilometres() -> tuple[np.ndarray, tdp.Adversary]:
    """Distances between the bike stations of San Francisco, and a walk from each to its five nearest neighbours."""
    with (DATA / "bikeshare_bayarea_2014" / "stations.csv").open(newline="") as file:
        stations = {row["station_id"]: row for row in csv.DictReader(file) if float(row["lat"]) > 37.7}
    at = np.radians([[float(row["lat"]), float(row["long"])] for row in stations.values()])
    flat = 6371.0 * np.column_stack((at[:, 0], at[:, 1] * np.cos(at[:, 0].mean())))
    distances = np.linalg.norm(flat[:, None] - flat, axis=2)
    near = np.argsort(distances, axis=1)[:, :6]
    walk = np.zeros_like(distances)
    for k, neighbours in enumerate(near):
        walk[k, neighbours] = [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]
    matrix = tdp.TransitionMatrix(walk / walk.sum(axis=1, keepdims=True), list(stations))
    return distances, tdp.Adversary(matrix, matrix)


def metric_privacy(walk: tdp.Adversary, distances: np.ndarray) -> str:
    """Plain privacy, whose leakage is exact, and geo-indistinguishability, which is bounded pair by pair."""
    rows, spent = [], np.full(STEPS, EPSILON)
    for name, metric in ((f"{EPSILON} for any two stations", None), (f"{EPSILON} a kilometre", distances)):
        series, seconds = {}, {}
        best = tdp.Exact() if metric is None else tdp.MetricPrivacy(metric)
        for bound, accounting in (("paper", tdp.PaperBound()), ("exact", best)):
            started = time.perf_counter()
            widest = distances.max() if metric is not None and bound == "paper" else 1.0
            series[bound] = tdp.temporal_leakage(walk, spent * widest, accounting=accounting)
            limit = tdp.leakage_supremum(walk, EPSILON * widest, accounting=accounting).temporal
            seconds[bound] = limit, time.perf_counter() - started
        kind = "exact" if series["exact"].accounting.is_exact else "pair by pair"
        rows.append(
            [
                name,
                kind,
                number(series["paper"].worst),
                number(series["exact"].worst),
                number(seconds["paper"][0]),
                number(seconds["exact"][0]),
                short(seconds["exact"][1]),
            ]
        )
        print(rows[-1], flush=True)
    head = ["epsilon", "accounting", "paper, 50 steps", "this accounting", "paper, for ever", "this accounting", "time"]
    return table(head, rows)


def main() -> None:
    started = time.perf_counter()
    measured("a first call", drawn(5, 1.0, 1))  # so that all libraries are loaded
    parts: list[str] = []

    def add(*more: str) -> None:
        """The page as far as it is: the last tables take minutes, and what is measured stays if they are stopped."""
        parts.extend(more)
        record(Path(sys.argv[1]), "\n".join(parts), "make bench NAME=exact")

    add(SPEED, speed())  # first, while nothing else runs
    distances, walk = kilometres()
    with tempfile.TemporaryDirectory() as scratch:
        add(REAL, *tables([measured(name, adversary) for name, adversary in real_data(Path(scratch))]))
    add(CLOSE, closeness())
    add(RANDOM, *tables([measured(name, adversary) for name, adversary in random_matrices()]))
    add(METRIC, metric_privacy(walk, distances))
    print(f"written to {sys.argv[1]} after {time.perf_counter() - started:.0f} s")


SPEED = "\n## Speed\n"

REAL = "\n## Real data\n"

RANDOM = "\n## Random matrices\n"

CAPTIONS = {
    "series": "\nThe largest TPL of 50 steps of 0.1:\n",
    "for ever": "\nThe supremum of TPL when every step spends 0.1, for ever:\n",
    "budget": "\nThe budget that every step can spend for ever with TPL at most 1:\n",
}

CLOSE = "\n## How far the bounds are from the exact value\n"

METRIC = "\n## Metric privacy\n"


if __name__ == "__main__":
    main()
