"""General solvers on the paper's linear-fractional program (Eqs. 18-24), one ordered pair of rows at a time.

Peers: nothing here comes from the rest of the package. Each solver is a function ``(q, d, alpha, form) -> Answer``: the
largest ``log(q x / d x)`` over all x with ``x_j <= e^alpha x_k`` for all j, k, in nats, with what the solver said of
it. The value is NaN unless the solver calls it optimal.

========  ==============================================================================
q, d      two rows of a transition matrix, in this order
x         likelihoods of what was observed, scaled so that d x = 1 (Charnes and Cooper)
m         the smallest of them
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

import functools
import itertools
import math
import subprocess
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

Row: TypeAlias = NDArray[np.float64]
Form: TypeAlias = Literal["bounds", "paper"]

LIMIT = 10  # seconds a pair
OPTIMAL = "optimal"
GUROBI_SIZE = 2000  # variables, and constraints, that the licence of the pip package allows
GUROBI_SAYS = {2: OPTIMAL, 3: "infeasible", 4: "infeasible or unbounded", 5: "unbounded", 9: "limit", 12: "numeric"}


class Answer(NamedTuple):
    """What a solver found for a pair (in nats), and what it said of it."""

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
    """The program of a pair, in one of its two forms."""
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
    """A ratio of 0 called optimal, which happens, is a loss of minus infinity, and wrong."""
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
        status = GUROBI_SAYS.get(model.Status, f"status {model.Status}")
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


SOLVERS: Mapping[str, Solver] = MappingProxyType({"highs": highs, "gurobi": gurobi, "lp_solve": lp_solve})
"""The solvers of the paper's Figure 5, and the one that comes with SciPy."""

TO_INSTALL: Mapping[str, str] = MappingProxyType(
    {
        "gurobi": "python -m pip install gurobipy (free up to 2,000 constraints)",
        "lp_solve": "Debian: apt-get install lp-solve",
    }
)
"""What is optional, and how to get it."""


def installed() -> dict[str, Solver]:
    """The solvers that are on this machine."""
    there = {"highs": True, "gurobi": find_spec("gurobipy") is not None, "lp_solve": which("lp_solve") is not None}
    return {name: solver for name, solver in SOLVERS.items() if there[name]}
