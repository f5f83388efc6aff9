"""Whatever is ruled out by two steps without products stays below its level: rollouts that do take them are the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernels import compiled_kernels
from temporaldp import Adversary, TransitionMatrix, leakage_supremum, temporal_leakage
from temporaldp.accounting.exact import pair_bounds
from temporaldp.kernels.two_steps import _norm, stay_below

__all__ = ["compiled_kernels"]  # with NumPy alone in `make test-slow`

pytest.importorskip("numba")


def matrix(rng, n, kind):
    """A random transition matrix of one kind."""
    rows = rng.dirichlet(np.full(n, 0.1 if kind == "spiky" else 1.0), n)
    if kind == "stays":
        rows = 0.7 * np.eye(n) + 0.3 * rows
    elif kind == "columns":
        rows[:, : n // 2] = 0.0
    elif kind == "identity":
        rows = np.eye(n)
    elif kind == "even":
        rows = np.tile(rows[0], (n, 1))
    elif kind == "lopsided":
        rows = rows * np.exp(rng.normal(0.0, 2.0, n))
    return rows / rows.sum(axis=1, keepdims=True)


KINDS = ("dirichlet", "spiky", "stays", "columns", "identity", "even", "lopsided")


def two_steps(P, h, a, rho):
    """The largest N - (1 + rho) D of each pair from two steps, with what lies before anywhere within e^a: shape (n, n)."""
    n = len(P)
    found = np.zeros((n, n))
    for i in range(n):
        c = P[i] - (1.0 + rho) * P
        c = np.where(c > 0.0, (1.0 + h) * c, c) @ P
        found[i] = np.where(c > 0.0, math.exp(a) * c, c).sum(axis=1)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "a"), [(0.1, 0.3), (0.1, 0.15), (1.0, 2.0), (1e-3, 2e-3), (0.0, 0.0), (0.5, 9.0)])
def test_rollouts_of_two_steps_agree(rng, kind, epsilon, a):
    P, h = matrix(rng, 40, kind), math.expm1(epsilon)
    apart = ~np.eye(40, dtype=bool)
    for level in (0.05 * a, 0.3 * a, 0.7 * a, 1e-9, a):
        if level > 0.0:
            below = stay_below(P, h, a, level)
            assert (two_steps(P, h, a, math.expm1(level))[below & apart] <= 1e-15).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dirichlet", "lopsided"])
def test_nearly_all_pairs_of_long_rows_are_ruled_out(rng, kind):
    """It must be able to say yes: at the level of the pair that leaks most, by two steps."""
    P, h, a = matrix(rng, 200, kind), math.expm1(0.1), 0.25
    low, high = 0.0, a
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        values = two_steps(P, h, a, math.expm1(middle))[~np.eye(200, dtype=bool)]
        low, high = (middle, high) if values.max() > 0.0 else (low, middle)
    assert stay_below(P, h, a, high).mean() > 0.9
    assert not stay_below(P, h, a, 0.5 * low).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_norm_is_one_from_above(rng, kind):
    P = matrix(rng, 60, kind)
    base = P.mean(axis=0)
    used = base > 0.0
    true = np.linalg.norm((P - base)[:, used] / np.sqrt(base[used]), 2)
    assert true * (1.0 - 1e-12) <= _norm(P, base) <= true * 60 ** (1 / 128) * (1.0 + 1e-5) + 1e-5


def test_large_numbers_prove_nothing():
    P = np.array([[0.5, 0.5], [0.4, 0.6]])
    assert not stay_below(P, 1.0, math.inf, 0.1).any()
    assert not stay_below(P, 1.0, 1.0, 0.0).any()


@pytest.mark.long
def test_it_changes_no_answer(rng, monkeypatch):
    monkeypatch.setenv("TEMPORALDP_KERNELS", "numba")
    user = Adversary(*(TransitionMatrix(matrix(rng, 70, "dirichlet")) for _ in range(2)))
    answers = []
    for values in (64, 1_000):
        monkeypatch.setattr(pair_bounds, "MANY_VALUES", values)
        limit, series = leakage_supremum(user, 0.1), temporal_leakage(user, np.full(20, 0.1))
        answers.append((limit.backward, limit.forward, limit.temporal, series.worst))
    assert answers[0] == pytest.approx(answers[1], rel=1e-12)
