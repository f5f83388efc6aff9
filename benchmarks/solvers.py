"""General solvers on the paper's linear-fractional program (Eqs. 18-24), one ordered pair of rows at a time.

Peers for a benchmark: nothing here comes from the package. Each solver is a function ``(q, d, alpha, form) -> Answer``:
the largest ``log(q x / d x)`` over all x with ``x_j <= e^alpha x_k`` for all j, k, in nats, with what the solver said of
it. The value is NaN unless the solver calls it optimal.

========  ==============================================================================
q, d      two rows of a transition matrix, in this order
x         likelihoods of what was observed, scaled so that d x = 1 (Charnes and Cooper)
m         the smallest of them
k         e^alpha - 1, in the exact answer
A         rows of the inequalities A z <= 0; z is x, or x with m at its end
========  ==============================================================================

Two forms of the same program:

- ``"bounds"``: ``m <= x_j <= e^alpha m`` for every j; n + 1 variables and 2 n + 1 constraints. Nobody has to pay for more.
- ``"paper"``: ``x_j <= e^alpha x_k`` for every ordered pair, as printed; n variables and n (n - 1) + 1 constraints.

What a call includes, and so what is timed: building the sparse matrix, handing it over in the solver's own form, the
solution, and reading it back. Imports and Gurobi's licence check happen once, in the first call. Solvers run with their
default tolerances, on one thread, and give up after `LIMIT` seconds.
"""

from __future__ import annotations

import decimal
import functools
import itertools
import math
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

Row = NDArray[np.float64]

LIMIT = 10  # seconds a pair
OPTIMAL = "optimal"
GUROBI_SIZE = 2000  # variables, and constraints, that the licence of the pip package allows
GUROBI_SAYS = {2: OPTIMAL, 3: "infeasible", 4: "infeasible or unbounded", 5: "unbounded", 9: "limit", 12: "numeric"}
WRONG = 1e-6  # relative error of a loss beyond which an "optimal" one is wrong: ten times the loosest default tolerance
DIGITS = 60  # of the exact answer


class Answer(NamedTuple):
    value: float
    status: str


class Program(NamedTuple):
    """Maximise `gain` z subject to `norm` z = 1, `A` z <= 0, z >= 0."""

    gain: Row
    norm: Row
    A: sparse.csr_array


def program(q: Row, d: Row, alpha: float, form: str) -> Program:
    n, factor = len(q), math.exp(alpha)
    if form == "bounds":
        eye, ones = sparse.eye_array(n), np.ones((n, 1))
        A = sparse.block_array([[eye, -factor * ones], [-eye, ones]], format="csr")
        return Program(np.append(q, 0.0), np.append(d, 0.0), A)
    if form == "paper":
        j, k = np.nonzero(~np.eye(n, dtype=bool))
        row = np.arange(len(j))
        entries = np.concatenate([np.ones(len(j)), np.full(len(j), -factor)])
        places = (np.concatenate([row, row]), np.concatenate([j, k]))
        return Program(q, d, sparse.csr_array((entries, places), shape=(len(j), n)))
    raise ValueError(f"form is 'bounds' or 'paper', not {form!r}")


def _answer(status: str, ratio: float) -> Answer:
    """A ratio of 0 called optimal, which happens, is a loss of minus infinity, and wrong."""
    if status != OPTIMAL:
        return Answer(math.nan, status)
    return Answer(math.log(ratio) if ratio > 0.0 else -math.inf, status)


def highs(q: Row, d: Row, alpha: float, form: str = "bounds") -> Answer:
    """HiGHS through ``scipy.optimize.linprog``, whose checks of its input are part of the time."""
    gain, norm, A = program(q, d, alpha, form)
    found = optimize.linprog(
        -gain,
        A_ub=A,
        b_ub=np.zeros(A.shape[0]),
        A_eq=sparse.csr_array(norm[None, :]),
        b_eq=[1.0],
        method="highs",
        options={"time_limit": LIMIT},
    )
    words = {0: OPTIMAL, 1: "limit", 2: "infeasible", 3: "unbounded", 4: "numerical trouble"}
    status = "model refused" if "Model error" in found.message else words[found.status]
    return _answer(status, -found.fun if found.fun is not None else math.nan)


@functools.cache
def _gurobi_environment() -> Any:
    import gurobipy

    environment = gurobipy.Env(empty=True)
    environment.setParam("OutputFlag", 0)
    environment.setParam("Threads", 1)
    environment.setParam("TimeLimit", LIMIT)
    environment.start()
    return environment


def gurobi(q: Row, d: Row, alpha: float, form: str = "bounds") -> Answer:
    """Gurobi through its matrix interface; larger programs than the free licence allows are refused before any work."""
    import gurobipy

    n = len(q)
    size = 2 * n + 1 if form == "bounds" else n * (n - 1) + 1
    if size > GUROBI_SIZE:
        return Answer(math.nan, f"licence: {size} > {GUROBI_SIZE} constraints")
    gain, norm, A = program(q, d, alpha, form)
    with gurobipy.Model(env=_gurobi_environment()) as model:
        z = model.addMVar(len(gain))
        model.setObjective(gain @ z, gurobipy.GRB.MAXIMIZE)
        model.addMConstr(sparse.csr_matrix(norm[None, :]), z, "=", np.ones(1))
        model.addMConstr(sparse.csr_matrix(A), z, "<", np.zeros(A.shape[0]))
        model.optimize()
        status = GUROBI_SAYS.get(model.Status, f"status {model.Status}")
        return _answer(status, model.ObjVal if status == OPTIMAL else math.nan)


def lp_solve(q: Row, d: Row, alpha: float, form: str = "bounds") -> Answer:
    """The command-line program, with a file in its own format and every coefficient in full.

    Starting the process costs about 1.5 ms, which `process_start` measures; the file is written and parsed on top of that.
    It prints the ratio with 8 decimals, which leaves a loss of 0.03 a relative error of 2e-7. It takes 1e30 and more
    for infinity, so alpha has to stay below 69.
    """
    gain, norm, A = program(q, d, alpha, form)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "pair.lp"
        file.write_text(_in_lp_format(gain, norm, A), encoding="ascii")
        command = ["lp_solve", "-S1", "-timeout", str(LIMIT), str(file)]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return Answer(math.nan, "not installed")
    last = ran.stdout.strip().rpartition("\n")[2]  # lines before it list the constraints that do not hold
    words, colon, value = last.partition(":")
    if words == "Value of objective function" and colon:
        return _answer(OPTIMAL, float(value))
    return Answer(math.nan, last.lower() or f"exit code {ran.returncode}")


def _in_lp_format(gain: Row, norm: Row, A: sparse.csr_array) -> str:
    def terms(columns: Sequence[int], entries: Sequence[float]) -> str:
        return " ".join(f"{entry:+.17g} z{column}" for column, entry in zip(columns, entries, strict=True))

    columns = range(len(gain))
    lines = [f"max: {terms(columns, gain.tolist())};", f"norm: {terms(columns, norm.tolist())} = 1;"]
    ends, places, entries = A.indptr.tolist(), A.indices.tolist(), A.data.tolist()
    for start, stop in itertools.pairwise(ends):
        lines.append(f"{terms(places[start:stop], entries[start:stop])} <= 0;")
    return "\n".join(lines) + "\n"


def process_start(repeats: int = 20) -> float:
    """Seconds to start lp_solve and have it read a program of one variable, the median of some."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        subprocess.run(["lp_solve", "-S1"], input="max: z;\nR1: z <= 1;\n", capture_output=True, text=True, check=True)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def clarabel(q: Row, d: Row, alpha: float, form: str = "bounds") -> Answer:
    """Clarabel, an interior-point solver: the answer is inside the tolerance, not at a vertex."""
    import clarabel as conic

    gain, norm, A = program(q, d, alpha, form)
    nowhere_negative = -sparse.eye_array(len(gain))
    rows = sparse.csc_matrix(sparse.vstack([norm[None, :], A, nowhere_negative]))
    right = np.zeros(rows.shape[0])
    right[0] = 1.0
    settings = conic.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.time_limit = LIMIT
    quadratic = sparse.csc_matrix((len(gain), len(gain)))
    cones = [conic.ZeroConeT(1), conic.NonnegativeConeT(rows.shape[0] - 1)]
    found = conic.DefaultSolver(quadratic, -gain, rows, right, cones, settings).solve()
    status = str(found.status)
    return _answer(OPTIMAL if status == "Solved" else status, -found.obj_val)


SOLVERS: dict[str, Callable[..., Answer]] = {
    "highs": highs,
    "gurobi": gurobi,
    "lp_solve": lp_solve,
    "clarabel": clarabel,
}


def exact(q: Row, d: Row, alpha: float) -> Decimal:
    """The same maximum to about `DIGITS` digits: x is e^alpha on some prefix of the columns by falling q_j / d_j, 1 after it.

    Sums of the rows are taken as they are, not as 1, so that the program and its answer are about the same numbers.
    """
    with decimal.localcontext(prec=DIGITS):
        k = Decimal(alpha).exp() - 1
        pairs = [(Decimal(float(a)), Decimal(float(b))) for a, b in zip(q, d, strict=True)]
        pairs.sort(key=lambda pair: pair[0] / pair[1] if pair[1] else Decimal("inf"), reverse=True)
        upper, lower = sum(a for a, _ in pairs), sum(b for _, b in pairs)
        largest = upper / lower
        for a, b in pairs:
            upper += a * k
            lower += b * k
            largest = max(largest, upper / lower)
        return largest.ln()


class Result(NamedTuple):
    """One solver on some pairs; errors are relative, below 0 where leakage is under-reported, NaN if none was optimal."""

    solver: str
    form: str
    n: int
    alpha: float
    seconds: float  # a pair, the median
    lowest: float
    highest: float
    wrong: int  # pairs called optimal and off by more than `WRONG`
    pairs: int
    status: str  # how often the solver said what


def survey(
    n: int,
    alphas: Sequence[float],
    seed: int,
    *,
    forms: Sequence[str] = ("bounds", "paper"),
    solvers: Sequence[str] = tuple(SOLVERS),
    pairs: int = 20,
    concentration: float | None = None,
) -> Iterator[Result]:
    """Every solver and form on the same pairs of rows: uniform on [0, 1) and normalised, or Dirichlet with a concentration.

    Small concentrations give rows with most of their weight on few columns and tiny entries elsewhere, as estimated ones
    have; solvers that drop small coefficients go wrong there at a much smaller alpha.
    """
    rng = np.random.default_rng(seed)
    rows = rng.random((2 * pairs, n)) if concentration is None else rng.dirichlet(np.full(n, concentration), 2 * pairs)
    rows /= rows.sum(axis=1, keepdims=True)
    for name in solvers:
        SOLVERS[name](np.array([0.75, 0.25]), np.array([0.25, 0.75]), 1.0)  # imports and licences
    for alpha in alphas:
        truth = [exact(q, d, alpha) for q, d in zip(rows[::2], rows[1::2], strict=True)]
        for form in forms:
            for name in solvers:
                yield _result(name, form, alpha, rows, truth)


def _result(name: str, form: str, alpha: float, rows: Row, truth: Sequence[Decimal]) -> Result:
    seconds, errors, said = [], [], []
    for q, d, right in zip(rows[::2], rows[1::2], truth, strict=True):
        started = time.perf_counter()
        answer = SOLVERS[name](q, d, alpha, form=form)
        seconds.append(time.perf_counter() - started)
        said.append(answer.status)
        if not math.isnan(answer.value):
            errors.append(float((Decimal(answer.value) - right) / right))
    status = ", ".join(f"{said.count(word)} {word}" for word in dict.fromkeys(said))
    lowest, highest = (min(errors), max(errors)) if errors else (math.nan, math.nan)
    wrong = sum(abs(error) > WRONG for error in errors)
    return Result(
        name, form, rows.shape[1], alpha, float(np.median(seconds)), lowest, highest, wrong, len(truth), status
    )


def main() -> None:
    print(f"starting lp_solve: {1e3 * process_start():.2f} ms")
    for kind, concentration in (("uniform on [0, 1), normalised", None), ("Dirichlet, concentration 0.1", 0.1)):
        print(f"\nRows {kind}:\n")
        print("| solver | form | n | alpha | ms a pair | lowest error | highest error | wrong | said |")
        print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
        for n in (10, 50):
            for result in survey(n, (0.1, 1.0, 10.0, 20.0, 30.0, 40.0), seed=0, concentration=concentration):
                print(_line(result), flush=True)


def _line(r: Result) -> str:
    cells = [r.solver, r.form, str(r.n), f"{r.alpha:g}", f"{1e3 * r.seconds:.3g}"]
    cells += ["" if math.isnan(error) else f"{error:+.1e}" for error in (r.lowest, r.highest)]
    return "| " + " | ".join([*cells, f"{r.wrong} of {r.pairs}", r.status]) + " |"


if __name__ == "__main__":
    main()
