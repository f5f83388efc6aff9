"""Matrices that were made to hide a pair of rows from the search, each after a defect that it once showed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sparse

from making import random_correlation
from oracles import extended_loss
from temporaldp import TransitionMatrix
from temporaldp.base.errors import MatrixError
from temporaldp.core.kernels import LeakageProfile, Witness

EXACT = 1e-13


def loss_of_set(rows, value, other, column, alpha):
    """What one column alone tells of two rows: a lower bound of the loss."""
    k = math.expm1(alpha)
    return math.log1p((rows[value, column] - rows[other, column]) * k / (1.0 + rows[other, column] * k))


class TwoApart:
    """Random numbers by which every row is sampled with one of the same parity."""

    def integers(self, low, high, size):
        return np.where(np.arange(size) % high + 2 < high, 2, high - 2)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("n", [29, 128])
def test_search_continues_after_sampled_pairs_of_equal_rows(form, n, monkeypatch):
    # Two kinds of rows, told apart wholly; every pair that the search samples first is of one kind.
    monkeypatch.setattr(np.random, "default_rng", lambda seed: TwoApart())
    rows = np.zeros((n, n))
    rows[:, 0] = 0.5
    rows[np.arange(n), 1 + np.arange(n) % 2] = 0.5
    expected = math.log1p(0.5 * math.expm1(1.0))
    assert TransitionMatrix(form(rows)).leakage_profile().loss(1.0) == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize("n", [32, 64])
def test_rounding_of_a_slope_hides_no_small_entry(n):
    # A line x - h d at the slope where it meets a far smaller one is nothing but the rounding of x.
    rows = np.zeros((n, n))
    rows[:, :2] = 0.5
    d = next(d for d in 0.1258 + 1e-7 * np.arange(10_000) if (0.5 - d) - ((0.5 - d - 1e-17) / d) * d > 3.05e-17)
    rows[3:8, 0], rows[3:8, 1] = d, 1 - d
    small = 1e-17
    rows[20, 2] = small
    rows[:, 3] = 0.75 * small
    rows[22, 3] = 3 * small
    rows[[23, 20], 3] = 0.03 * small
    matrix = TransitionMatrix(rows)
    for alpha in (1.0, 38.5, 39.5, 40.0, 40.5, 41.0, 45.0):
        expected = extended_loss(rows, alpha)
        assert matrix.leakage_profile().loss(alpha) == pytest.approx(expected, rel=EXACT)


@pytest.mark.long
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_tied_columns_do_not_hide_smaller_ones(form, rng):
    # 150 columns of one ratio, whose sums drift by rounding, and single columns of 1e-15 that count at a large level.
    n, m = 300, 150

    def drift(value):
        return np.add.accumulate(np.full(m, value))[-1] / (m * value)

    other = max(0.3 / m / 4 * (1 + 0.02 * rng.random(2000)), key=drift)
    for excess in sorted(0.3 / m * (1 + 0.02 * rng.random(2000)), key=drift)[:2]:
        rows = np.zeros((n, n))
        rows[:, :m], rows[5, :m] = excess + other, other
        rows[:, m], rows[5, m] = 1 - m * (excess + other), 1 - m * other
        small = 1e-15
        rows[20, m + 1] = small
        rows[:, m + 2] = 0.75 * small
        rows[22, m + 2] = 3 * small
        rows[[23, 20], m + 2] = 0.03 * small
        matrix = TransitionMatrix(form(rows))
        for alpha in (35.0, 36.0, 38.0):
            least = loss_of_set(rows, 22, 23, m + 2, alpha) * (1 - EXACT)
            assert matrix.leakage_profile().loss(alpha) >= least


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_entries_below_single_precision_are_not_lost(seed):
    n, tiny = 40, 1e-75
    rng = np.random.default_rng(seed)
    big = n // 10 + 1
    rows = np.zeros((n, n))
    rows[:, :big] = (1 + 1e-14 * rng.integers(1, 9, size=(n, big))) / big
    least = rng.integers(n)
    rows[least, :big] = 1 / big
    for j in range(n):
        there = rng.random(n - big) < rng.uniform(0.02, 0.25)
        rows[j, big:][there] = tiny * 10.0 ** -rng.uniform(1, 25, there.sum())
    rows[least, big:] = tiny * (1 + rng.random(n - big))
    matrix = TransitionMatrix(rows)
    for alpha in (1.0, 150.0, 172.0, 200.0, 220.0, 300.0, 600.0):
        expected = extended_loss(rows, alpha)
        assert matrix.leakage_profile().loss(alpha) == pytest.approx(expected, rel=EXACT)


def test_probabilities_with_inexact_differences_are_refused():
    with pytest.raises(MatrixError, match=r"0 or at least 1e-290, got 2e-291 in row '0'"):
        TransitionMatrix([[2e-291, 1.0], [0.0, 1.0]])


def test_ties_on_a_finely_spaced_hull_do_not_add_up():
    t = np.arange(20_000) * 1e-10
    d, x = 0.2 + t, 0.3 + t - t * t
    witnesses = [Witness("a", "b", ("a",), 0.5, 0.25)] * t.size
    merged = LeakageProfile.from_points(d=d, x=x, q=d + x, c=1 - (d + x), witnesses=witnesses)
    for alpha in np.linspace(2.38, 2.41, 40):
        k = math.expm1(alpha)
        assert merged.loss(alpha) >= np.log1p(x * k / (1 + d * k)).max() * (1 - 1e-14)
    assert len(merged) < 2_000


@pytest.mark.parametrize("alpha", [601.0, 660.45, 699.0, 701.0, 5000.0])
def test_losses_at_very_large_levels_keep_their_digits(alpha):
    rows = [[9.3e-283, 1.0], [4.62e-283, 1.0]]
    expected = math.log1p(4.68e-283 / (4.62e-283 + math.exp(-alpha))) if alpha < 700 else math.log(9.3 / 4.62)
    assert TransitionMatrix(rows).leakage_profile().loss(alpha) == pytest.approx(expected, rel=2e-15)
    disjoint = TransitionMatrix([[1e-200, 1.0], [0.0, 1.0]]).leakage_profile()
    assert disjoint.loss(alpha) == pytest.approx(np.logaddexp(math.log(1e-200), -alpha) + alpha, rel=EXACT)


def test_constructed_profile_keeps_its_witnesses():
    witness = Witness("a", "b", ("a",), 0.5, 0.25)
    profile = LeakageProfile([[0.25, 0.5]], [0.25], [0.5], [witness])
    assert profile.witnesses == (witness,)
    assert profile.merge(random_correlation(3, rng=0).leakage_profile()).loss(1.0) >= profile.loss(1.0)
