"""General solvers on the paper's linear-fractional program, one ordered pair of rows at a time.

Those of the paper's Figure 5 are in `reproduction/peers.py`; this adds an interior-point solver, and the time of starting a process.
"""

from __future__ import annotations

import math
import subprocess
import time

import numpy as np
from scipy import sparse

from reproduction.peers import LIMIT, OPTIMAL, Answer, Form, Result, Row, answer, program, survey
from reproduction.peers import SOLVERS as OF_THE_PAPER


def process_start(repeats: int = 20) -> float:
    """Seconds to start lp_solve and have it read a program of one variable, the median of some."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        subprocess.run(["lp_solve", "-S1"], input="max: z;\nR1: z <= 1;\n", capture_output=True, text=True, check=True)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def clarabel(q: Row, d: Row, alpha: float, form: Form = "bounds") -> Answer:
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
    return answer(OPTIMAL if status == "Solved" else status, -found.obj_val)


SOLVERS = {**OF_THE_PAPER, "clarabel": clarabel}


def main() -> None:
    print(f"starting lp_solve: {1e3 * process_start():.2f} ms")
    for kind, concentration in (("uniform on [0, 1), normalised", None), ("Dirichlet, concentration 0.1", 0.1)):
        print(f"\nRows {kind}:\n")
        print("| solver | form | n | alpha | ms a pair | lowest error | highest error | wrong | said |")
        print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
        for n in (10, 50):
            for result in survey(
                n, (0.1, 1.0, 10.0, 20.0, 30.0, 40.0), seed=0, solvers=SOLVERS, concentration=concentration
            ):
                print(_line(result), flush=True)


def _line(r: Result) -> str:
    cells = [r.solver, r.form, str(r.n), f"{r.alpha:g}", f"{1e3 * r.seconds:.3g}"]
    cells += ["" if math.isnan(error) else f"{error:+.1e}" for error in (r.lowest, r.highest)]
    return "| " + " | ".join([*cells, f"{r.wrong} of {r.pairs}", r.status]) + " |"


if __name__ == "__main__":
    main()
