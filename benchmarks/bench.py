"""What benchmarks/recorded/performance.md records, measured in one run on one machine.

Run with:  make bench
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
import solvers
import sorting
from measure import ACCOUNTING, exponent, in_a_child, median, record, short, table

import temporaldp as tdp
from reproduction.peers import algorithm_1, survey
from temporaldp.core.kernels import compute_profiles

SIZES = (50, 150, 500, 1000)
LARGE = (2000, 4000)
ALPHAS = (0.1, 1.0, 10.0, 20.0)
SEED = 0


def fresh(n: int) -> np.ndarray:
    """The matrix of n states."""
    entries = np.random.default_rng(SEED).random((n, n))
    return np.asarray(entries / entries.sum(axis=1, keepdims=True))


def one_loss() -> Iterator[str]:
    """A profile and one of its losses against Algorithm 1."""
    yield "## One loss value: `matrix.leakage_profile().loss(alpha)`, profile included, against the paper's Algorithm 1\n\n"
    yield (
        "*Algorithm 1*: as printed, vectorised over the other rows in NumPy; ratios are to ours. It reports too little in double "
        "precision from alpha = 37 or so on: its comparison rounds to equality and the last candidates go.\n\n"
    )
    rows = []
    for n in (*SIZES, LARGE[0]):
        P = fresh(n)
        for alpha in ALPHAS:
            ours = median(lambda p=P, a=alpha: loss(p, a))
            theirs = median(lambda p=P, a=alpha: algorithm_1(p, a)) if n <= SIZES[1] else None
            rows.append([str(n), f"{alpha:g}", short(ours), f"{theirs / ours:,.0f}" if theirs else ""])
    yield table(["n", "alpha", "ours", "Algorithm 1"], rows) + "\n\n"


def loss(P: np.ndarray, alpha: float) -> float:
    """One loss of a profile that is computed for it."""
    return compute_profiles([P], [tuple(str(k) for k in range(len(P)))])[0].loss(alpha)


def profiles() -> Iterator[str]:
    """The whole profile against sorting and against a pass."""
    yield "## Leakage profiles\n\n"
    yield (
        "*pair by pair*, *row by row*: the profile by sorting every pair in NumPy, in a loop over pairs, and vectorised over the "
        "other rows with points under the hull so far thrown away (`benchmarks/sorting.py`).\n\n"
    )
    rows = []
    for n in (*SIZES, *LARGE):
        P = fresh(n)
        states = tuple(str(k) for k in range(n))
        ours = median(lambda p=P, s=states: compute_profiles([p], [s])[0], warm=n < LARGE[0])
        sorted_ = [_sorted(sorting.pair_by_pair, P, ours), _sorted(sorting.row_by_row, P, ours)]
        rows.append([str(n), short(ours), *sorted_, str(len(compute_profiles([P], [states])[0]))])
    head = ["n", "ours", "pair by pair / ours", "row by row / ours", "vertices"]
    yield table(head, rows) + "\n\n"


def _sorted(build: Callable, P: np.ndarray, ours: float) -> str:
    n = len(P)
    if n > 1000:
        return ""
    part = n if n <= 150 else max(1, n // 50)
    return ("~" if part < n else "") + f"{median(lambda: build(P, 0, part)) * n / part / ours:,.0f}"


def against_solvers() -> Iterator[str]:
    """Solvers of linear programs."""
    yield "## Linear-programming solvers\n\n"
    yield (
        "The paper's program for one ordered pair of rows, after Charnes and Cooper: *bounds* has n + 1 variables and 2 n + 1 "
        "constraints, *paper* the n (n - 1) constraints of the paper. Median milliseconds a pair, building the program included; "
        "*all pairs* is that times n (n - 1), as a ratio to a profile and its loss (~: extrapolated). Errors are relative "
        "and signed: below 0, leakage is reported too low, below -100 % a loss comes out negative. *uneven* rows are Dirichlet with concentration 0.1: most weight on few columns, as estimated rows have. *wrong*: called optimal and off by more than 1e-6. Gurobi's pip licence "
        "ends at 2,000 constraints; lp_solve is a process of its own"
    )
    there = {
        "highs": True,
        "gurobi": find_spec("gurobipy"),
        "clarabel": find_spec("clarabel"),
        "lp_solve": which("lp_solve"),
    }
    yield f" ({1e3 * solvers.process_start():.1f} ms to start, included).\n\n" if there["lp_solve"] else ".\n\n"
    named = {name: solver for name, solver in solvers.SOLVERS.items() if there[name]}
    rows = []
    surveys: list[tuple[int, dict]] = [
        (n, {"alphas": (0.1, 1.0, 10.0, 20.0, 40.0), "forms": ("bounds", "paper")}) for n in (10, 50)
    ]
    surveys.append((50, {"alphas": (10.0, 20.0, 30.0), "forms": ("bounds",), "concentration": 0.1}))
    for n, options in surveys:
        for result in survey(n, seed=SEED, pairs=10, solvers=named, **options):
            P = fresh(n)
            ours = median(lambda p=P, a=result.alpha: loss(p, a))
            ratio = result.seconds * n * (n - 1) / ours
            errors = ["" if np.isnan(e) else f"{e:+.0e}" for e in (result.lowest, result.highest)]
            kind = result.form + (", uneven" if "concentration" in options else "")
            cells = [result.solver, kind, str(n), f"{result.alpha:g}", f"{1e3 * result.seconds:.2g}"]
            rows.append([*cells, f"~{ratio:,.0f}", *errors, f"{result.wrong} of {result.pairs}", result.status])
    head = ["solver", "form", "n", "alpha", "ms a pair", "all pairs / ours", "lowest error", "highest", "wrong", "said"]
    yield table(head, rows) + "\n\n"


def series() -> Iterator[str]:
    """Leakage at every step, for one user and for many."""
    yield "## Series\n\n"
    yield "Budgets differ from step to step, so that no fixed point is reached; backward and forward.\n\n"
    rng = np.random.default_rng(SEED)
    large, small = tdp.TransitionMatrix(fresh(50)), tdp.TransitionMatrix(fresh(5))
    large.leakage_profile()
    asked: list[tuple[str, int, int, list[tdp.TransitionMatrix]]] = [
        *(("paper", 50, steps, [large]) for steps in (10_000, 100_000, 1_000_000)),
        *(("paper", 10, 1_000, stack_of(rng, users)) for users in (1_000, 5_000)),
        *(("exact", 5, steps, [small]) for steps in (100, 1_000)),
        ("exact", 10, 50, stack_of(rng, 1_000)),
    ]
    rows = []
    for method, n, steps, matrices in asked:
        spent = rng.uniform(0.01, 0.2, steps)
        for known in ("backward", "both"):
            who = [tdp.Adversary(m, m if known == "both" else None, name=str(k)) for k, m in enumerate(matrices)]
            seconds = median(lambda w=who, s=spent, b=method: tdp.temporal_leakage(w, s, accounting=ACCOUNTING[b]))
            row = [method, f"{len(who):,}", str(n), f"{steps:,}", known, short(seconds)]
            rows.append([*row, short(seconds / len(who) / steps)])
    yield table(["accounting", "users", "values", "steps", "matrices", "seconds", "a step of a user"], rows) + "\n\n"


def stack_of(rng: np.random.Generator, count: int) -> list[tdp.TransitionMatrix]:
    """Matrices of ten states."""
    stack = rng.random((count, 10, 10))
    return [tdp.TransitionMatrix(each) for each in stack / stack.sum(axis=2, keepdims=True)]


MATRIX = """
import numpy as np, temporaldp as tdp
tdp.TransitionMatrix(np.random.default_rng(0).random((50, 50)), normalize=True).leakage_profile()
matrix = tdp.TransitionMatrix(np.random.default_rng(0).random(({n}, {n})), normalize=True)
started = time.perf_counter()
matrix.leakage_profile()
"""

SPARSE = """
import numpy as np, scipy.sparse as sparse, temporaldp as tdp
rng = np.random.default_rng(0)
n = {n}
columns = np.concatenate((np.zeros((n, 1), int), rng.integers(1, n, (n, 10))), axis=1)
weights = rng.random((n, 11)) + 0.05
weights /= weights.sum(axis=1, keepdims=True)
rows = sparse.csr_array((weights.ravel(), (np.repeat(np.arange(n), 11), columns.ravel())), shape=(n, n))
rows.sum_duplicates()
matrix = tdp.TransitionMatrix(rows)
started = time.perf_counter()
result["vertices"] = len(matrix.leakage_profile())
"""


def memory() -> Iterator[str]:
    """Peak memory, growth and the first call."""
    yield "## Memory and growth\n\n"
    yield "Each in a process of its own; peak memory includes Python and its libraries.\n\n"
    rows, seconds = [], {}
    for n in (500, 1000, 2000, 4000):
        found = in_a_child(MATRIX.format(n=n))
        seconds[n] = found["seconds"]
        rows.append([f"dense, n = {n:,}", short(found["seconds"]), f"{found['mib']:,.0f} MiB"])
    for n in (2000, 5000, 20_000):
        found = in_a_child(SPARSE.format(n=n))
        label = f"sparse, n = {n:,}, ten entries a row and a hub column"
        rows.append([label, short(found["seconds"]), f"{found['mib']:,.0f} MiB"])
    yield table(["matrix", "profile", "peak memory"], rows) + "\n\n"
    sizes = list(seconds)
    yield f"Fitted exponent of the dense profile in n, {sizes[0]} to {sizes[-1]}: {exponent(sizes, list(seconds.values())):.2f}. "
    steps = [10_000, 100_000, 1_000_000]
    matrix = tdp.TransitionMatrix(fresh(50))
    taken = []
    for T in steps:
        spent = np.random.default_rng(SEED).uniform(0.01, 0.2, T)
        taken.append(
            median(lambda s=spent: tdp.temporal_leakage(tdp.Adversary(matrix), s, accounting=tdp.PaperBound()))
        )
    users = [500, 1000, 2000, 4000]
    groups = [[tdp.Adversary(m) for m in stack_of(np.random.default_rng(1), u)] for u in users]
    spent = np.random.default_rng(SEED).uniform(0.01, 0.2, 1000)
    crowd = [median(lambda g=group: tdp.temporal_leakage(g, spent, accounting=tdp.PaperBound())) for group in groups]
    yield f"Of the series by the paper's bound in T: {exponent(steps, taken):.2f}; in users: {exponent(users, crowd):.2f}.\n\n"
    yield "## The first call\n\n"
    code = "import numpy as np, temporaldp as tdp"
    code += "\nm = tdp.TransitionMatrix(np.random.default_rng(0).random((50, 50)), normalize=True)\nm.leakage_profile().loss(1.0)"
    code += "\ntdp.temporal_leakage(tdp.Adversary(m), [0.1] * 100_000)"
    asked = {
        "import, one loss, one profile (n = 50) and one series": code,
        "`import temporaldp`": "import temporaldp",
        "`import numpy`": "import numpy",
    }
    rows = [[what, short(in_a_child(line)["seconds"])] for what, line in asked.items()]
    yield table(["process", "time"], rows) + "\n"


SECTIONS = (one_loss, profiles, against_solvers, series, memory)


def main() -> None:
    """Write the sections to the file given, or to the screen."""
    text = ""
    for section in SECTIONS:
        made = section()
        text += made + "\n" if isinstance(made, str) else "".join(made)
        print(section.__name__, flush=True, file=sys.stderr)
    if len(sys.argv) > 1:
        record(Path(sys.argv[1]), text, "make bench NAME=performance")
    else:
        print(text)


if __name__ == "__main__":
    main()
