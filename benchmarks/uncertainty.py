"""How much is not known of a correlation: estimate, posterior, guarantee, and longer memory, on all data sets.

Writes benchmarks/recorded/uncertainty.md.  Run with:  make bench NAME=uncertainty
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measure import median, record, short, table

import temporaldp as tdp
from temporaldp.core.kernels.interval import interval_profile

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))
sys.path.insert(0, str(HERE.parent / "tests" / "data" / "tables"))
from test_confidence import covered  # noqa: E402

from data_sets import bike_locations, dod_sequences, income_quintiles  # noqa: E402

DATA = Path(os.environ.get("TEMPORALDP_SHARED", HERE.parent.parent / "shared")) / "data"
EPSILON, STEPS, CONFIDENCE, DRAWS = 0.1, 50, 0.95, 200
MOST_ASCENDED, MOST_WORDS = 40, 100
"""States up to which matrices are drawn and the worst ones looked for, and words up to which order 2 is accounted for: beyond,
minutes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One data set's numbers, in nats; NaN where there is none."""

    name: str
    n: int
    transitions: int
    estimate: float
    posterior: float
    people: float
    attained: float
    guaranteed: float
    paper: float
    for_ever: float
    order: tuple[float, float]
    verdict: str
    seconds: float


def measured(name: str, data: tdp.tables.Traces) -> Row:
    """Everything about one data set."""
    started = time.perf_counter()
    n = data.n_states
    small = n <= MOST_ASCENDED
    adversary = next(tdp.estimate_adversaries(data, confidence=CONFIDENCE))
    is_stationary = adversary.n_steps is None
    spent = np.full(min(STEPS, adversary.n_steps or STEPS), EPSILON)
    if not is_stationary:  # backward intervals of each step of the data
        adversary = adversary.between(0, len(spent))
    guaranteed = tdp.temporal_leakage(adversary, spent).worst
    order = (math.nan, math.nan)
    if n**2 <= MOST_WORDS:
        try:
            longer = tdp.temporal_leakage(tdp.tables.estimate_words(data, order=2), spent)
            order = float(longer.attained.temporal.max()), longer.worst
        except (tdp.errors.EstimationError, tdp.errors.MatrixError) as error:
            print(f"{name}: no order 2: {error}", file=sys.stderr)
    return Row(
        name,
        n,
        int(data.transition_counts().sum()),
        estimated(data, spent),
        quantile(tdp.studies.leakage_posterior(data, epsilons=spent, n_draws=DRAWS, rng=0)) if small else math.nan,
        people(data, spent) if small else math.nan,
        tdp.studies.worst_member(adversary, epsilons=spent, n_starts=1).leakage.worst if small else math.nan,
        guaranteed,
        tdp.temporal_leakage(adversary, spent, accounting=tdp.PaperBound()).worst,
        tdp.leakage_supremum(adversary, EPSILON).temporal if is_stationary else math.nan,
        order,
        " ".join(tdp.studies.diagnose(data, epsilon=EPSILON, horizon=STEPS).verdict),
        time.perf_counter() - started,
    )


def estimated(data: tdp.tables.Traces, spent: np.ndarray) -> float:
    """Leakage for the estimate; NaN where the traces determine none."""
    try:
        return tdp.temporal_leakage(next(tdp.estimate_adversaries(data)), spent).worst
    except tdp.errors.EstimationError:
        return math.nan


def quantile(draws: np.ndarray) -> float:
    """The smallest draw that at least a share CONFIDENCE of them do not exceed."""
    return float(np.quantile(draws, CONFIDENCE, method="inverted_cdf"))


def people(data: tdp.tables.Traces, spent: np.ndarray) -> float:
    """A quantile over people drawn anew; NaN where their draws determine no matrix."""
    try:
        return quantile(tdp.studies.leakage_bootstrap(data, epsilons=spent, n_draws=DRAWS, rng=0))
    except tdp.errors.EstimationError:
        return math.nan


def real_data(scratch: Path) -> Iterator[tuple[str, tdp.tables.Traces]]:
    """Every data set."""
    yield "sleep stages of 151 people, 5 min (bundled)", tdp.load_sample()
    stages = ["W", "R", "N1", "N2", "N3"]
    yield "the same, 30 s", tdp.read_traces(DATA / "sleep_hmc" / "hmc_sleep_stages.csv.gz", time="t", states=stages)
    yield "sleep_dod, first scorer, 30 s", tdp.read_traces(dod_sequences(DATA, scratch / "dod.csv"))
    yield "US states by income quintile, yearly", tdp.read_traces(income_quintiles(DATA, scratch / "i.csv"))
    for name in ("mvad", "actcal"):
        yield f"life courses ({name})", tdp.read_traces(DATA / "lifecourse_traminer" / f"{name}.csv", user="id")
    yield "msnbc clicks", tdp.read_traces(DATA / "msnbc323" / "msnbc323.seq")
    places = bike_locations(DATA, scratch / "b.csv")
    yield "bikes by station, daily", tdp.read_traces(places, user="bike", time="day", state="station")


def shown(value: float) -> str:
    """A number of nats, or a dash."""
    return "-" if math.isnan(value) else "inf" if math.isinf(value) else f"{value:.3f}"


def profile_times() -> Iterator[list[str]]:
    """The profile of 50 values with intervals of several widths beside that of the matrix."""
    P = np.random.default_rng(0).dirichlet(np.ones(50), 50)
    plain = median(lambda: tdp.TransitionMatrix(P).leakage_profile())
    names = [str(k) for k in range(50)]
    for width in (0.01, 0.05, 0.2):
        low, high = P * (1.0 - width), np.minimum(P * (1.0 + width), 1.0)
        seconds = median(lambda low=low, high=high: interval_profile(low, high, names))
        yield [f"entries within {width:.0%}", short(plain), short(seconds), f"{seconds / plain:.1f}"]


def document(rows: list[Row]) -> Iterator[str]:
    """The page, part by part."""
    yield "## All data sets"
    yield table(
        [
            "data",
            "n",
            "transitions",
            "estimate",
            "posterior",
            "people",
            "found",
            "guaranteed",
            "paper's kind",
            "for ever",
        ],
        [
            [row.name, str(row.n), f"{row.transitions:,}"]
            + [shown(v) for v in (row.estimate, row.posterior, row.people, row.attained, row.guaranteed, row.paper)]
            + [shown(row.for_ever)]
            for row in rows
        ],
    )
    yield "## First order against second"
    yield table(
        ["data", "order 1", "order 2, attained", "order 2, at most", "more by, at least"],
        [
            [row.name, shown(row.estimate), *map(shown, row.order), gain(row)]
            for row in rows
            if not math.isnan(row.order[0])
        ],
    )
    yield "## Speed\n\n" + table(["profile, n = 50", "matrix", "intervals", "times"], list(profile_times()))
    yield table(["data", "everything above"], [[row.name, short(row.seconds)] for row in rows])
    yield table(["1,000 draws of the posterior", "time"], [["20 states, 47 steps", short(posterior_seconds())]])
    yield "## Coverage"
    yield table(
        ["people", "guarantee at least the truth"], [[f"{n:,}", f"{covered(n, 1000, n):.1%}"] for n in (20, 150, 2000)]
    )


def posterior_seconds() -> float:
    """Of 1,000 draws for 20 values and 47 steps."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(20, 0.5), 20)
    codes = np.zeros((300, 48), dtype=np.int64)
    for t in range(1, 48):
        codes[:, t] = np.minimum((P[codes[:, t - 1]].cumsum(axis=1) < rng.random((300, 1))).sum(axis=1), 19)
    traces = tdp.Trajectories(codes, states=range(20))
    started = time.perf_counter()
    tdp.studies.leakage_posterior(traces, epsilons=np.full(47, EPSILON), n_draws=1000, rng=0)
    return time.perf_counter() - started


def gain(row: Row) -> str:
    """What the longer memory adds for certain."""
    more = row.order[0] / row.estimate - 1.0
    return "-" if math.isnan(more) else f"{max(more, 0.0):.0%}"


def main(target: Path) -> None:
    """Measure, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for name, data in real_data(Path(folder)):
            rows.append(measured(name, data))
            print(rows[-1], file=sys.stderr, flush=True)
    record(target, "\n\n".join(document(rows)), "make bench NAME=uncertainty")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
