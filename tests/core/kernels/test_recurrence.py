"""When leakage has a supremum: classes, periods, and the border, against graphs and radii that are known."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from temporaldp.core.accounting.exact.supremum import has_supremum
from temporaldp.core.kernels.chain import Chain
from temporaldp.core.kernels.roots import near_roots

BUDGETS = (1e-300, 1e-6, 0.1, 1.0, 30.0, 800.0, 1e100)


def renamed(rows, seed=0):
    """The matrix itself; then with its values shuffled, dense and sparse."""
    rows = np.array(rows, float)
    order = np.random.default_rng(seed).permutation(len(rows))
    mixed = rows[np.ix_(order, order)]
    return rows, mixed, csr_array(mixed)


ALWAYS = {
    "all positive": [[0.5, 0.5], [0.1, 0.9]],
    "cycles of two and three": [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0]],
    "tiny entries count": [[0.0, 1.0], [1.0 - 1e-290, 1e-290]],
    "one absorbing value, left at once": [[1.0, 0.0], [1.0, 0.0]],
    "nilpotent, in a row": [[1, 0, 0, 0], [0.5, 0, 0.5, 0], [0.2, 0, 0, 0.8], [1, 0, 0, 0]],
}
NEVER = {
    "two closed classes": np.eye(2),
    "two closed classes and a value between": [[1, 0, 0], [0.5, 0, 0.5], [0, 0, 1]],
    "period two": [[0, 1], [1, 0]],
    "period two, of four values": [[0, 0, 0.3, 0.7], [0, 0, 0.6, 0.4], [0.5, 0.5, 0, 0], [0.1, 0.9, 0, 0]],
    "period three": np.eye(3)[[1, 2, 0]],
    "period three, of five values": [
        [0, 0.5, 0.5, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0.1, 0.9], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0]
    ],
    "period two behind a value that is left": [[0, 1, 0], [1, 0, 0], [0.3, 0.3, 0.4]],
}  # fmt: skip


@pytest.mark.parametrize("rows", ALWAYS.values(), ids=ALWAYS)
def test_some_chains_have_a_supremum_at_every_budget(rows):
    for form in renamed(rows):
        assert all(has_supremum(form, epsilon) for epsilon in BUDGETS)


@pytest.mark.parametrize("rows", NEVER.values(), ids=NEVER)
def test_some_chains_have_a_supremum_at_no_budget(rows):
    for form in renamed(rows):
        assert not any(has_supremum(form, epsilon) for epsilon in BUDGETS)


# Chains with one closed class, and the spectral radius of the matrix on all other values.
RADII = {
    "stays": ([[0.8, 0.2], [0.0, 1.0]], 0.8),
    "swings": ([[0, 0.5, 0.5], [0.5, 0, 0.5], [0, 0, 1]], 0.5),
    "two in a row, equal": ([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]], 0.5),
    "two in a row": ([[0.3, 0.7, 0], [0, 0.6, 0.4], [0, 0, 1]], 0.6),
    "a class of two, closed values behind": (
        [[0.25, 0.25, 0.5, 0], [0.25, 0.25, 0, 0.5], [0, 0, 0.5, 0.5], [0, 0, 1 / 3, 2 / 3]],
        0.5,
    ),
    "closed values that swing with a third": ([[0.9, 0.1, 0, 0], [0, 0, 1, 0], [0, 0.5, 0, 0.5], [0, 0, 1, 0]], None),
    "hardly ever left": ([[1 - 1e-9, 1e-9], [0, 1]], 1 - 1e-9),
    "hardly ever stays": ([[1e-200, 1.0], [0, 1]], 1e-200),
    "hardly holds together": ([[0.5, 1e-20, 0.5], [1e-20, 0.5, 0.5], [0, 0, 1]], 0.5 + 1e-20),
}


@pytest.mark.parametrize(("rows", "radius"), RADII.values(), ids=RADII)
def test_threshold_is_the_spectral_radius_of_the_transient_states(rows, radius):
    for form in renamed(rows):
        if radius is None:  # the closed values have a period: never
            assert not has_supremum(form, 1e-6)
            continue
        border = -math.log(radius)
        for share in (1e-3, 0.5, 1 - 1e-3, *([1 - 1e-6] if border > 1e-3 else [])):
            assert has_supremum(form, share * border), share
        for share in (1 + 1e-12, 1 + 1e-6, 1.5, 100.0):
            found = has_supremum(form, share * border)
            assert found is False if (share - 1.0) * border > 1e-13 else not found, share
        # Within a rounding of the threshold nothing is proved, or what is true.
        assert has_supremum(form, border * (1.0 - 1e-15)) in {True, None}
        assert has_supremum(form, border * (1.0 + 1e-15)) in {False, None}


def stays_below_one(block, factor):
    """Whether the spectral radius of ``factor block`` is below 1: all pivots of I less that are above 0. In fractions."""
    k = len(block)
    rows = [[Fraction(int(a == b)) - factor * Fraction(float(block[a, b])) for b in range(k)] for a in range(k)]
    for a in range(k):
        if rows[a][a] <= 0:
            return False
        for b in range(a + 1, k):
            ratio = rows[b][a] / rows[a][a]
            rows[b] = [x - ratio * y for x, y in zip(rows[b], rows[a], strict=True)]
    return True


@pytest.mark.long
def test_threshold_is_approached_and_never_exceeded_in_rational_arithmetic():
    """Random transient classes, some badly scaled: an eigenvalue solver has larger errors than this test allows."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        k = int(rng.integers(1, 5))
        block = rng.random((k, k)) * 10.0 ** rng.choice([0, -6, -20], (k, k))
        block *= rng.uniform(0.2, 0.99) / block.sum(axis=1).max()
        rows = np.zeros((k + 1, k + 1))
        rows[:k, :k], rows[:k, k], rows[k, k] = block, 1.0 - block.sum(axis=1), 1.0
        low, high = 0.0, 100.0
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if has_supremum(rows, middle) else (low, middle)
        assert stays_below_one(block, Fraction(math.exp(low)) * (1 - Fraction(1, 2**50)))
        assert not stays_below_one(block, Fraction(math.exp(low * (1 + 1e-9) + 1e-9)))


def test_a_step_beyond_the_longest_rollout_has_its_own_budgets():
    """Budgets repeat after seven steps, and the past is forgotten, so steps at the same place among them lead to one root."""
    matrix, spent = (
        np.array([[0.8, 0.2], [0.3, 0.7]]),
        np.resize(np.random.default_rng(1).uniform(0.01, 1.0, 7), 21_000),
    )
    up = np.expm1(spent)[:, None]
    chain = Chain.of([matrix], np.zeros(len(spent), np.int64), up, 0.0 * up, np.cumsum(spent))

    def root(t):
        one = np.array([t])
        return near_roots(chain, (0 * one, one, 0 * one, 1 + 0 * one), np.ones(1), 2.0**-42)[0]

    for t in range(20_500, 20_507):
        np.testing.assert_allclose(root(t), root(t - 7_000), rtol=1e-9)
