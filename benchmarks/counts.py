"""What smoothing is worth, measured: real people split into history and protected, simulated populations, and wrong chains.

    python benchmarks/counts.py benchmarks/recorded/counts.md

takes several minutes; `--quick` evaluates two splits each.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import record

import temporaldp as tdp
from temporaldp.core.planning.histogram_noise import laplace_scales
from temporaldp.data.counts.smoothed import step_release
from temporaldp.data.smoothing import advance, averaged, estimates
from temporaldp.data.smoothing.simulation import noise_at_quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
import data_sets
import transport_agency

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("TEMPORALDP_SHARED", HERE.parent.parent / "shared")) / "data"
EPSILONS = (0.05, 0.1, 0.5, 1.0)
MOST_STEPS = 60


def read_all(folder: Path, target: Path):
    """Name and codes, shape (users, times), of each data set, with the number of states; only people who are always observed."""
    sample = tdp.load_sample()
    yield "sleep, 5 minutes (sample)", sample.codes, sample.n_states
    for name in ("mvad", "actcal"):
        walks = tdp.read_traces(folder / "lifecourse_traminer" / f"{name}.csv", user="id", layout="wide")
        yield name, walks.codes, walks.n_states
    walks = tdp.read_traces(data_sets.income_quintiles(folder, target / "income.csv"))
    yield "income quintiles of states", walks.codes, walks.n_states
    for name, walks, last in (
        ("msnbc, first 60 pages", tdp.read_traces(folder / "msnbc323" / "msnbc323.seq", layout="sequences"), False),
        ("sleep_dod, first 60 epochs", tdp.read_traces(data_sets.dod_sequences(folder, target / "dod.csv")), False),
        (
            "bikes, last 60 of 90 days",
            tdp.read_traces(
                data_sets.bike_locations(folder, target / "bike.csv"), user="bike", time="day", state="station"
            ),
            True,
        ),
    ):
        codes = walks.codes[:, -MOST_STEPS:] if last else walks.codes[:, :MOST_STEPS]
        yield name, codes[(codes >= 0).all(axis=1)], walks.n_states


def released(counts, epsilon, rng):
    """Counts with discrete Laplace noise: as OpenDP draws it, but with a seed."""
    n_steps, n = counts.shape
    scale = float(laplace_scales([epsilon])[0])
    noisy = counts + noise_at_quantiles(rng.uniform(1e-12, 1.0 - 1e-12, counts.shape), scale, "laplace").astype(
        np.int64
    )
    names, times = tuple(f"s{k}" for k in range(n)), tuple(str(t) for t in range(n_steps))
    return tdp.ReleasedHistograms(noisy, np.full(n_steps, epsilon), np.full(n_steps, scale), names, times)


def chain(probabilities, initial=None):
    names = [f"s{k}" for k in range(len(probabilities))]
    matrix = probabilities / probabilities.sum(axis=1, keepdims=True)
    return tdp.PublicCorrelation(
        tdp.TransitionMatrix(matrix / matrix.sum(axis=1, keepdims=True), names),
        provenance="the benchmark",
        initial=initial,
    )


def compared(counts, epsilon, correlation, rng, chosen=...):
    """Mean absolute errors raw, clipped and smoothed; coverage, of all and of chosen counts."""
    total = int(counts[0].sum())
    noisy = released(counts, epsilon, rng)
    clipped = np.stack([tdp.counts.consistent_counts(row, total=total) for row in noisy.counts])
    found = tdp.smooth(noisy, correlation, total=total)
    inside = (found.lower - 1e-9 <= counts) & (counts <= found.upper + 1e-9)
    errors = [np.abs(one - counts).mean() for one in (noisy.counts, clipped, found.counts)]
    return [*errors, inside.mean(), inside[chosen].mean()]


def counted(codes, n):
    return np.stack([np.bincount(column, minlength=n) for column in codes.T])


def learnt(codes, n):
    cells = codes[:, :-1].astype(np.int64).ravel() * n + codes[:, 1:].ravel()
    return np.bincount(cells, minlength=n * n).reshape(n, n) + 1.0 / n


def simulated(P, n_people, n_steps, rng):
    counts = np.zeros((n_steps, len(P)), dtype=np.int64)
    counts[0, 0] = n_people
    for t in range(1, n_steps):
        counts[t] = sum(rng.multinomial(c, row) for c, row in zip(counts[t - 1], P, strict=True))
    return counts


def row(cells, values):
    raw, clipped, smoothed, inside = values[:4]
    return f"| {' | '.join(map(str, cells))} | {raw:.2f} | {clipped:.2f} | {smoothed:.2f} | {smoothed / raw:.3f} | {100 * inside:.1f} |"


HEAD = "| raw | clipped | smoothed | smoothed / raw | coverage, % |"
RULE = " ---: | ---: | ---: | ---: | ---: |"


def real_people(repetitions):
    yield f"| data set | protected, steps, states | epsilon {HEAD}"
    yield f"| --- | --- | ---: |{RULE}"
    with tempfile.TemporaryDirectory() as target:
        for name, codes, n in read_all(DATA, Path(target)):
            rng = np.random.default_rng(18)
            half = len(codes) // 2
            for epsilon in EPSILONS:
                found = []
                for _ in range(max(repetitions // 4, 2) if n > 50 else repetitions):
                    order = rng.permutation(len(codes))
                    history, protected = codes[order[:half]], codes[order[half:]]
                    found.append(compared(counted(protected, n), epsilon, chain(learnt(history, n)), rng))
                shape = f"{len(codes) - half}, {codes.shape[1]}, {n}"
                yield row((name, shape, epsilon), np.mean(found, axis=0))


def same_start(repetitions):
    """The history's first counts are used too, and the filter beside the smoother: sleep, at the budget of alpha = 0.6 for ever."""
    yield f"| data set | what is smoothed {HEAD}"
    yield f"| --- | --- |{RULE}"
    with tempfile.TemporaryDirectory() as target:
        for name, codes, n in read_all(DATA, Path(target)):
            if not name.startswith(("sleep", "mvad")):
                continue
            found = {"all releases": [], "all releases, the same start": [], "past releases, the same start": []}
            rng = np.random.default_rng(22)
            for _ in range(repetitions):
                order = rng.permutation(len(codes))
                history, protected = codes[order[: len(codes) // 2]], codes[order[len(codes) // 2 :]]
                counts, learned = counted(protected, n), learnt(history, n)
                initial = np.bincount(history[:, 0], minlength=n)
                found["all releases"].append(compared(counts, 0.0957, chain(learned), rng))
                found["all releases, the same start"].append(compared(counts, 0.0957, chain(learned, initial), rng))
                found["past releases, the same start"].append(filtered(counts, 0.0957, chain(learned, initial), rng))
            for what, values in found.items():
                yield row((name, what), np.mean(values, axis=0))


def fewer_draws(repetitions):
    """The user level at 1 nat: counts at every step, at those that `compare_guarantees` proposes, and at every step for a delta."""
    columns = [f"{one}: {what}, %" for one in ("every step", "fewer draws", "delta") for what in ("error", "coverage")]
    yield f"| data set | protected, steps, states | draws | {' | '.join(columns)} |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    with tempfile.TemporaryDirectory() as target:
        for name, codes, n in read_all(DATA, Path(target)):
            if not name.startswith(("sleep,", "mvad", "actcal", "income")):
                continue
            rng, found, draws = np.random.default_rng(24), [], []
            for _ in range(repetitions):
                order = rng.permutation(len(codes))
                history, protected = codes[order[: len(codes) // 2]], codes[order[len(codes) // 2 :]]
                counts, past = counted(protected, n), counted(history, n)
                known = chain(learnt(history, n), past[0])
                terms = {"horizon": len(counts), "n_people": len(protected), "correlation": known, "past_counts": past}
                rows = [one for one in tdp.compare_guarantees(**terms).rows if one.guarantee.kind == "user"]
                kinds = [
                    rows[0],
                    next((one for one in rows if one.drawn), rows[0]),
                    next(one for one in rows if one.delta),
                ]
                draws.append(kinds[1].plan.n_drawn)
                found.append([value for one in kinds for value in planned(counts, one.plan, known, rng)])
            errors = np.mean(found, axis=0) * 100.0
            cells = [f"{one:.1f}" for one in errors]
            shape = f"{len(protected)}, {codes.shape[1]}, {n}"
            yield f"| {' | '.join([name, shape, f'{np.mean(draws):.1f}', *cells])} |"


def planned(counts, plan, correlation, rng):
    """Mean absolute error of smoothed counts under a plan, as a share of an average count, and their coverage."""
    times, scales = [str(t) for t in range(len(counts))], plan.scales
    at = np.flatnonzero(np.isfinite(scales))
    noise = noise_at_quantiles(rng.uniform(1e-12, 1.0 - 1e-12, counts[at].shape), scales[at, None], plan.noise)
    noisy = tdp.ReleasedHistograms(
        counts[at] + noise.astype(np.int64),
        plan.epsilons[at],
        scales[at],
        correlation.states,
        tuple(times[t] for t in at),
        delta=plan.delta,
        noise=plan.noise,
    )
    found = tdp.smooth(noisy, correlation, total=int(counts[0].sum()), times=times)
    inside = (found.lower - 1e-9 <= counts) & (counts <= found.upper + 1e-9)
    return np.abs(found.counts - counts).mean() / counts.mean(), inside.mean()


def filtered(counts, epsilon, correlation, rng, chosen=...):
    """As `compared`, of the filter: each step from the releases up to it."""
    noisy, total, state = released(counts, epsilon, rng), float(counts[0].sum()), None
    clipped = np.stack([tdp.counts.consistent_counts(one, total=int(total)) for one in noisy.counts])
    means, variances, steps = [], [], []
    for one, scale in zip(noisy.counts, noisy.scales.tolist(), strict=True):
        steps.append(step_release(one, scale, "laplace", total))
        state = advance(state, steps[-1], correlation)
        mean, variance = averaged(state.belief, state.weights)
        means.append(mean)
        variances.append(variance)
    found = estimates(np.array(means), np.array(variances), steps)
    inside = (found.lower - 1e-9 <= counts) & (counts <= found.upper + 1e-9)
    errors = [np.abs(one - counts).mean() for one in (noisy.counts, clipped, found.counts)]
    return [*errors, inside.mean(), inside[chosen].mean()]


def populations(repetitions):
    sample = tdp.load_sample()
    P = learnt(sample.codes, 5)
    P /= P.sum(axis=1, keepdims=True)
    wrong = {
        "true": P,
        "a fifth uniform": 0.8 * P + 0.04,
        "half uniform": 0.5 * P + 0.1,
        "all uniform": np.full((5, 5), 0.2),
        "of other states": P[::-1, ::-1],
    }
    yield f"| chain believed | people | epsilon {HEAD}"
    yield f"| --- | ---: | ---: |{RULE}"
    rng = np.random.default_rng(19)
    for name, believed in wrong.items():
        for n_people in (150, 1_000, 10_000, 100_000):
            for epsilon in EPSILONS if name == "true" else (0.1, 1.0):
                found = [
                    compared(simulated(P, n_people, 47, rng), epsilon, chain(believed), rng) for _ in range(repetitions)
                ]
                yield row((name, f"{n_people:,}", epsilon), np.mean(found, axis=0))


def without_clock(repetitions):
    """Commuters, and one chain for all times of day: the coverage in the three busiest zones by day, of smoother and filter."""
    yield f"| people | epsilon | what is smoothed {HEAD} in the busiest zones by day, % |"
    yield f"| ---: | ---: | --- |{RULE} ---: |"
    rng, n = np.random.default_rng(23), len(transport_agency.ZONES)
    quarters = np.arange(3 * transport_agency.QUARTERS) % transport_agency.QUARTERS
    chosen = np.ix_((quarters >= 34) & (quarters < 68), range(3))
    for n_people in (400, 1_500):
        codes = transport_agency.commuters(rng, 2 * n_people, 3)
        counts, known = counted(codes[:n_people], n), chain(learnt(codes[n_people:], n))
        for epsilon in EPSILONS:
            for what, measure in (("all releases", compared), ("past releases", filtered)):
                found = [measure(counts, epsilon, known, rng, chosen) for _ in range(repetitions)]
                raw = np.mean(found, axis=0)
                yield f"{row((f'{n_people:,}', epsilon, what), raw)} {100 * raw[-1]:.1f} |"


def posterior_maximum(noisy, scale, P, total):
    """The most likely counts under the chain's normal law and Laplace noise, by reweighted least squares; dense."""
    n_steps, n = noisy.shape
    shares = np.linalg.matrix_power(P, 500)[0]
    Q = total * (np.diag(shares) - P.T @ np.diag(shares) @ P)
    precision = np.linalg.pinv(Q, rcond=1e-10)
    move = np.zeros(((n_steps - 1) * n, n_steps * n))
    for t in range(n_steps - 1):
        move[t * n : (t + 1) * n, t * n : (t + 1) * n] = -P.T
        move[t * n : (t + 1) * n, (t + 1) * n : (t + 2) * n] = np.eye(n)
    sums = np.kron(np.eye(n_steps), np.ones(n))
    fixed = move.T @ np.kron(np.eye(n_steps - 1), precision) @ move + 10.0 * sums.T @ sums
    y, x = noisy.ravel().astype(float), np.full(noisy.size, total / n)
    for _ in range(60):
        weight = 1.0 / (scale * np.maximum(np.abs(y - x), 1e-2))
        x = np.linalg.solve(fixed + np.diag(weight), weight * y + 10.0 * sums.T @ np.full(n_steps, float(total)))
    return np.maximum(x, 0.0).reshape(noisy.shape)


def beside_posterior_maximum(repetitions):
    yield "| people | states | epsilon | squared error raw | posterior maximum | smoothed | raw / smoothed |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    rng = np.random.default_rng(20)
    for n_people, n in ((200, 2), (200, 5), (2_000, 5)):
        P = 0.7 * np.eye(n) + 0.3 * rng.dirichlet(np.ones(n), n)
        for epsilon in (0.01, 0.1, 1.0):
            found = []
            for _ in range(repetitions):
                counts = simulated(P, n_people, 40, rng)
                noisy = released(counts, epsilon, rng)
                smoothed = tdp.smooth(noisy, chain(P), total=n_people).counts
                most = posterior_maximum(noisy.counts, 2.0 / epsilon, P, n_people)
                found.append([np.square(one - counts).mean() for one in (noisy.counts, most, smoothed)])
            raw, most, smoothed = np.mean(found, axis=0)
            yield f"| {n_people} | {n} | {epsilon} | {raw:.3g} | {most:.3g} | {smoothed:.3g} | {raw / smoothed:.1f} |"


def speed():
    rng = np.random.default_rng(21)
    P = 0.7 * np.eye(50) + 0.3 * rng.dirichlet(np.full(50, 0.1), 50)
    P /= P.sum(axis=1, keepdims=True)
    counts = np.zeros((10_000, 50), dtype=np.int64)
    counts[0] = 100
    for t in range(1, 10_000):
        counts[t] = sum(rng.multinomial(c, one) for c, one in zip(counts[t - 1], P, strict=True))
    noisy = released(counts, 0.1, rng)
    start = time.perf_counter()
    tdp.smooth(noisy, chain(P), total=5_000)
    whole = time.perf_counter() - start
    state, slowest = None, 0.0
    for row_ in noisy.counts[:200]:
        start = time.perf_counter()
        state = advance(state, step_release(row_, 20.0, "laplace", 5_000.0), chain(P))
        state = state.only(state.kept)
        slowest = max(slowest, time.perf_counter() - start)
    table = tdp.load_sample()
    sample = tdp.Trajectories(table.codes, states=table.states, times=table.times)
    adversary = next(tdp.estimate_adversaries(sample[:75]))
    known = tdp.PublicCorrelation.from_history(sample[:75])
    start = time.perf_counter()
    tdp.compare_guarantees(adversary, n_people=76, horizon=47, correlation=known)
    yield "| | seconds |"
    yield "| --- | ---: |"
    yield f"| `smooth`, 10,000 steps, 50 states | {whole:.1f} |"
    yield f"| a step of the filter, 50 states, the slowest of 200 | {slowest:.4f} |"
    yield f"| `compare_guarantees` on the sample | {time.perf_counter() - start:.1f} |"


def main():
    quick = "--quick" in sys.argv
    several = 2 if quick else 12
    parts = []
    for title, lines in (
        ("Real people, split at random into history and protected", real_people(several)),
        ("Where the history begins as the release does, at epsilon = 0.0957", same_start(several)),
        ("Fewer draws at the user level, 1 nat", fewer_draws(several)),
        ("Simulated populations, also with chains that are wrong", populations(several // 2 or 1)),
        ("Commuters, and a chain without a clock", without_clock(several // 2 or 1)),
        ("Beside the maximum of the posterior", beside_posterior_maximum(several // 2 or 1)),
        ("Time", speed()),
    ):
        parts.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
        print(parts[-1], flush=True)
    arguments = [one for one in sys.argv[1:] if not one.startswith("--")]
    if arguments:
        record(Path(arguments[0]), "\n".join(parts), "make bench NAME=counts")


if __name__ == "__main__":
    main()
