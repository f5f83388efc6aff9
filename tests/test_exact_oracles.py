"""The oracles of the exact leakage against one another: enumeration, 60 digits, rational arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from exact_cases import LONGEST, random_boxes, random_rows
from exact_oracles import (
    boxes_of,
    corners,
    defined_by_sign_rule,
    enumerated_arrivals,
    enumerated_boxes,
    exponential,
    proved_ratio,
    rational_certificate,
    rational_ratio,
)
from oracles import defined_leakage


@pytest.mark.long
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_enumeration_and_the_sign_rule_agree(n):
    """300 cases in all; matrices with zeros, boxes that vary with value and time."""
    rng = np.random.default_rng([1, n])
    for _ in range(75):
        steps = int(rng.integers(2, LONGEST[n] + 1))
        matrices = [random_rows(n, rng) for _ in range(steps - 1)]
        low, high = random_boxes(["epsilons", "absent", "own noise"][rng.integers(3)], steps, n, rng)
        enumerated = enumerated_arrivals(matrices, low, high)[-1]
        np.testing.assert_allclose(
            defined_by_sign_rule(matrices, low[:-1], high[:-1]), enumerated, rtol=1e-12, atol=1e-12
        )


def test_two_enumerations_agree():
    rng = np.random.default_rng(2)
    for _ in range(50):
        n, steps = int(rng.integers(2, 4)), int(rng.integers(2, 5))
        backward, forward = ([random_rows(n, rng) for _ in range(steps - 1)] for _ in range(2))
        epsilons = rng.uniform(0.0, 2.0, steps)
        expected = defined_leakage(backward, forward, epsilons)
        np.testing.assert_allclose(enumerated_boxes(backward, forward, *boxes_of(epsilons, n)), expected, rtol=1e-13)


@pytest.mark.long
def test_rational_arithmetic_encloses_enumeration():
    """The best observation's ratio from below, its certificate from above: between them less than 1e-14."""
    rng = np.random.default_rng(3)
    for _ in range(25):
        n, steps = int(rng.integers(2, 4)), int(rng.integers(1, 4))
        matrices = [random_rows(n, rng) for _ in range(steps)]
        low, high = random_boxes("own noise", steps, n, rng)
        raised = [np.array(list(itertools.product((False, True), repeat=n)))] * steps
        for pair in itertools.permutations(range(n), 2):
            ratio = proved_ratio(matrices, low, high, pair)
            likelihood = np.ones((1, n))
            choices = [()]
            for s in range(steps):
                factors = np.exp(np.where(raised[s], high[s], low[s]))
                likelihood = (likelihood[:, None, :] * factors).reshape(-1, n) @ matrices[s].T
                choices = [(*one, row) for one in choices for row in raised[s]]
            best = choices[int(np.argmax(likelihood[:, pair[0]] / likelihood[:, pair[1]]))]
            below, above = rational_ratio(matrices, best, low, high, pair)
            assert below <= above <= below * (1 + Fraction(1, 10**50))
            assert below <= ratio <= below * (1 + Fraction(1, 10**14))
            assert rational_certificate(matrices, low, high, pair, ratio) <= 0
            assert rational_certificate(matrices, low, high, pair, below * (1 - Fraction(1, 10**9))) > 0


def test_rational_bounds_enclose_exponentials():
    for value in (0.0, 0.1, -3.0, 700.0, 1e-300, Fraction(1, 3)):
        below, above = exponential(value)
        assert below <= above
        assert exponential(-Fraction(value))[0] * below <= 1 <= exponential(-Fraction(value))[1] * above
        assert float(below) == pytest.approx(np.exp(float(value)), rel=1e-15)


def test_state_of_width_zero_has_one_corner():
    assert corners([0.0, -1.0], [0.0, 1.0]).tolist() == [[1.0, np.exp(-1.0)], [1.0, np.exp(1.0)]]
