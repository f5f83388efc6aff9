"""What Figure 5 compares: the paper's Algorithm 1, general solvers of its program, and the exact answer.

Nothing here comes from temporaldp. The program (Equations 18 to 24) is, for two rows q and d of a transition matrix, the
largest ``log(q x / d x)`` over all x with ``x_j <= e^alpha x_k`` for all j, k, in nats.

========  ==============================================================================
P         a transition matrix
q, d      two rows of it, in this order
x         likelihoods of an observation, scaled so that d x = 1 (Charnes and Cooper)
m         the smallest of them
A         rows of the inequalities A z <= 0; z is x, or x with m at its end
k         e^alpha - 1
========  ==============================================================================

Two forms of the same program:

- ``"bounds"``: ``m <= x_j <= e^alpha m`` for every j; n + 1 variables and 2 n + 1 constraints.
- ``"paper"``: ``x_j <= e^alpha x_k`` for every ordered pair, as printed; n variables and n (n - 1) + 1 constraints.

A timed call includes building the sparse matrix, conversion to the solver's own form, the solution, and reading it back.
Imports and Gurobi's licence check happen once, in the first call. Solvers run with their default tolerances, on one
thread, and give up after `LIMIT` seconds.
"""

from __future__ import annotations

import decimal
import functools
import itertools
import math
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

Row: TypeAlias = NDArray[np.float64]
Form: TypeAlias = Literal["bounds", "paper"]


# Algorithm 1


class Deletions(NamedTuple):
    """Result of Algorithm 1 for every ordered pair of different rows: the loss in nats, and the rounds of its inner loop."""

    losses: Row
    rounds: Row


def algorithm_1(P: Row, alpha: float) -> Deletions:
    """Run the paper's Algorithm 1 with its own arithmetic, for all second rows at once.

    From alpha of about 37 on, or earlier where rows are nearly equal, both sides of its inequality can round to the same
    number for the last candidates. They are deleted with the rest, and the loss of that pair is 0: the printed algorithm in
    doubles, left as it is.
    """
    k = math.exp(alpha) - 1.0
    losses, rounds = [], []
    for a, q in enumerate(P):
        d = np.delete(P, a, axis=0)
        marked = q > d
        with np.errstate(divide="ignore", invalid="ignore"):
            entry_ratios = q / d
        rounds_of_row, changed = np.zeros(len(d)), np.ones(len(d), dtype=bool)
        while changed.any():
            ratios = ((marked * q).sum(axis=1) * k + 1.0) / ((marked * d).sum(axis=1) * k + 1.0)
            kept = marked & ~(entry_ratios <= ratios[:, None])
            rounds_of_row += changed
            changed, marked = (kept != marked).any(axis=1), kept
        losses.append(np.log(ratios))
        rounds.append(rounds_of_row)
    return Deletions(np.concatenate(losses), np.concatenate(rounds))


# General solvers

LIMIT = 10  # seconds a pair
OPTIMAL = "optimal"
GUROBI_SIZE = 2000  # variables, and constraints, that the licence of the pip package allows
GUROBI_STATUS = {2: OPTIMAL, 3: "infeasible", 4: "infeasible or unbounded", 5: "unbounded", 9: "limit", 12: "numeric"}


class Answer(NamedTuple):
    """A solver's value for a pair, in nats (NaN unless the solver calls it optimal), and its status."""

    value: float
    status: str


class Solver(Protocol):
    """One solver on one ordered pair of rows."""

    def __call__(self, q: Row, d: Row, alpha: float, form: Form = "bounds") -> Answer: ...  # noqa: D102


class Program(NamedTuple):
    """Maximise `gain` z subject to `norm` z = 1, `A` z <= 0, z >= 0."""

    gain: Row
    norm: Row
    A: sparse.csr_array


def program(q: Row, d: Row, alpha: float, form: Form) -> Program:
    """Build the program of a pair, in one of its two forms."""
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


def answer(status: str, ratio: float) -> Answer:
    """Make an answer; a ratio of 0 that is called optimal is a loss of minus infinity, and wrong."""
    if status != OPTIMAL:
        return Answer(math.nan, status)
    return Answer(math.log(ratio) if ratio > 0.0 else -math.inf, status)


def highs(q: Row, d: Row, alpha: float, form: Form = "bounds") -> Answer:
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
    return answer(status, -found.fun if found.fun is not None else math.nan)


@functools.cache
def _gurobi_environment() -> Any:
    import gurobipy

    environment = gurobipy.Env(empty=True)
    environment.setParam("OutputFlag", 0)
    environment.setParam("Threads", 1)
    environment.setParam("TimeLimit", LIMIT)
    environment.start()
    return environment


def gurobi(q: Row, d: Row, alpha: float, form: Form = "bounds") -> Answer:
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
        status = GUROBI_STATUS.get(model.Status, f"status {model.Status}")
        return answer(status, model.ObjVal if status == OPTIMAL else math.nan)


def lp_solve(q: Row, d: Row, alpha: float, form: Form = "bounds") -> Answer:
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
        return answer(OPTIMAL, float(value))
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


SOLVERS: Mapping[str, Solver] = {"highs": highs, "gurobi": gurobi, "lp_solve": lp_solve}
"""The solvers of the paper's Figure 5, and the one that comes with SciPy."""

TO_INSTALL: Mapping[str, str] = {
    "gurobi": "python -m pip install gurobipy (free up to 2,000 constraints)",
    "lp_solve": "Debian: apt-get install lp-solve",
}
"""How to install the optional ones."""


def installed() -> dict[str, Solver]:
    """Return the solvers that are installed on this machine."""
    there = {"highs": True, "gurobi": find_spec("gurobipy") is not None, "lp_solve": which("lp_solve") is not None}
    return {name: solver for name, solver in SOLVERS.items() if there[name]}


# Exact answers and errors

WRONG = 1e-6
"""Relative error of a loss beyond which an "optimal" one is wrong: ten times the loosest default tolerance."""

DIGITS = 60
"""Precision of the exact answer."""


def exact(q: Row, d: Row, alpha: float) -> Decimal:
    """Maximum of the program of a pair to about `DIGITS` digits, in nats.

    The best x is e^alpha on some prefix of the columns by falling q_j / d_j, and 1 after it. The sums of the rows are not
    taken as 1, so that the program and its answer are about the same numbers.
    """
    with decimal.localcontext(prec=DIGITS):
        k = Decimal(alpha).exp() - 1
        pairs = [(Decimal(float(a)), Decimal(float(b))) for a, b in zip(q, d, strict=True)]
        pairs.sort(key=lambda pair: pair[0] / pair[1] if pair[1] else Decimal("inf"), reverse=True)
        upper, lower = sum((a for a, _ in pairs), Decimal(0)), sum((b for _, b in pairs), Decimal(0))
        largest = upper / lower
        for a, b in pairs:
            upper += a * k
            lower += b * k
            largest = max(largest, upper / lower)
        return largest.ln()


class Result(NamedTuple):
    """One solver on some pairs; errors are relative, negative where leakage is under-reported, NaN if none was optimal."""

    solver: str
    form: str
    n: int
    alpha: float
    seconds: float  # a pair, the median
    lowest: float
    highest: float
    wrong: int  # pairs called optimal and off by more than `WRONG`
    right: int  # pairs called optimal and not wrong
    pairs: int
    status: str  # frequency of each status


def survey(
    n: int,
    alphas: Sequence[float],
    seed: int,
    *,
    forms: Sequence[Form] = ("bounds", "paper"),
    solvers: Mapping[str, Solver] = SOLVERS,
    pairs: int = 20,
    concentration: float | None = None,
) -> Iterator[Result]:
    """Run every solver and form on the same pairs of rows: uniform on [0, 1) and normalised, or Dirichlet.

    Small concentrations give rows with most of their weight on few columns and tiny entries elsewhere, as estimated ones
    have; solvers that drop small coefficients go wrong there at a much smaller alpha.
    """
    rows = drawn_rows(n, pairs, seed, concentration)
    for solve in solvers.values():
        solve(np.array([0.75, 0.25]), np.array([0.25, 0.75]), 1.0)  # imports and licences
    for alpha in alphas:
        truth = [exact(q, d, alpha) for q, d in zip(rows[::2], rows[1::2], strict=True)]
        for form in forms:
            for name, solve in solvers.items():
                yield _result(name, solve, form, alpha, rows, truth)


def drawn_rows(n: int, pairs: int, seed: int, concentration: float | None = None) -> Row:
    """Draw the rows of some pairs, shape (2 pairs, n): rows 2 k and 2 k + 1 are a pair."""
    rng = np.random.default_rng(seed)
    rows = rng.random((2 * pairs, n)) if concentration is None else rng.dirichlet(np.full(n, concentration), 2 * pairs)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _result(name: str, solve: Solver, form: Form, alpha: float, rows: Row, truth: Sequence[Decimal]) -> Result:
    seconds, errors, said = [], [], []
    for q, d, true in zip(rows[::2], rows[1::2], truth, strict=True):
        started = time.perf_counter()
        answer = solve(q, d, alpha, form=form)
        seconds.append(time.perf_counter() - started)
        said.append(answer.status)
        if not math.isnan(answer.value):
            errors.append(float((Decimal(answer.value) - true) / true))
    status = ", ".join(f"{said.count(word)} {word}" for word in dict.fromkeys(said))
    lowest, highest = (min(errors), max(errors)) if errors else (math.nan, math.nan)
    wrong = sum(abs(error) > WRONG for error in errors)
    right = len(errors) - wrong
    spent = float(np.median(seconds))
    return Result(name, form, rows.shape[1], alpha, spent, lowest, highest, wrong, right, len(truth), status)
