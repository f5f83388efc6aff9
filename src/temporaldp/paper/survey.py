"""What solvers take for the paper's program, pair by pair, and how far from the exact answer they end.

========  ==============================================================================
q, d      two rows of a transition matrix, in this order
k         e^alpha - 1
========  ==============================================================================
"""

from __future__ import annotations

import decimal
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from temporaldp.paper.solvers import SOLVERS, Form, Row, Solver

WRONG = 1e-6
"""Relative error of a loss beyond which an "optimal" one is wrong: ten times the loosest default tolerance."""

DIGITS = 60
"""Of the exact answer."""


def exact(q: Row, d: Row, alpha: float) -> Decimal:
    """The same maximum to about `DIGITS` digits: x is e^alpha on some prefix of the columns by falling q_j / d_j, 1 after it.

    Sums of the rows are taken as they are, not as 1, so that the program and its answer are about the same numbers.
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
    """One solver on some pairs; errors are relative, below 0 where leakage is under-reported, NaN if none was optimal."""

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
    status: str  # how often the solver said what


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
    """Every solver and form on the same pairs of rows: uniform on [0, 1) and normalised, or Dirichlet with a concentration.

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
    """Rows for so many pairs, shape (2 pairs, n): each pair is two in a row."""
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
