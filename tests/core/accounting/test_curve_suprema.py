"""Suprema at a delta: certificates are found, and nothing is above them."""

from __future__ import annotations

import math

import pytest

from making import strongest_correlation
from temporaldp import (
    Adversary,
    ApproximateDP,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    OutputTable,
    TransitionMatrix,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.core.accounting.curve import method as curve_method

WALK = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
CHAIN = TransitionMatrix([[0.616, 0.243, 0.141], [0.497, 0.048, 0.455], [0.613, 0.124, 0.263]])


def table(x):
    """A table of outputs one of which is all but impossible for two of three values."""
    return OutputTable([[1.0 - x, x], [1.0 - x, x], [0.1412, 0.8588]])


@pytest.mark.long
@pytest.mark.parametrize(
    ("matrix", "mechanism", "nearly", "delta"),
    [
        (CHAIN, table(1e-20), table(1e-20 * (1 + 1e-6)), 1e-9),
        (CHAIN, table(1e-30), table(1e-30 * (1 + 1e-6)), 1e-25),
        (WALK, DiscreteGaussianNoise(0.25), DiscreteGaussianNoise(0.25 * (1 - 1e-9)), 1e-9),
        (TransitionMatrix([[0.65, 0.35], [0.35, 0.65]]), DiscreteLaplaceNoise(0.6), DiscreteLaplaceNoise(0.599), 7e-9),
    ],
)
def test_certificate_is_found_when_rounding_is_comparable_to_delta(monkeypatch, matrix, mechanism, nearly, delta):
    """Curves near 1 are rounded by 1e-16 in every step, which is comparable to the tolerance at a delta of 1e-9."""
    monkeypatch.setattr(curve_method, "MOST_CURVE_STEPS", 60)
    adversary = Adversary(matrix)
    supremum = leakage_supremum(adversary, mechanism, accounting=ApproximateDP(delta))
    assert supremum.backward < math.inf
    mixed = [mechanism, nearly] * 30  # never twice the same, so that nothing is held
    every = temporal_leakage(adversary, mixed, accounting=ApproximateDP(delta)).backward
    constant = temporal_leakage(adversary, [mechanism] * 60, accounting=ApproximateDP(delta)).backward
    assert constant.max() <= supremum.backward * (1 + 1e-12)  # both are upper bounds, rounded in ways of their own
    assert supremum.backward <= every.max() * (1 + 1e-5)


@pytest.mark.long
def test_supremum_is_a_curve_that_one_more_step_does_not_raise():
    """Also where the pure leakage has no supremum: a transient state under a budget above log(1 / 0.8)."""
    road = Adversary(backward=TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]))
    mechanism = DiscreteLaplaceNoise(5.0)
    assert leakage_supremum(road, mechanism.pure_epsilon).backward == math.inf
    by_curve = ApproximateDP(1e-6, pairwise=False)
    limits = leakage_supremum(road, mechanism, accounting=by_curve)
    long = temporal_leakage(road, [mechanism] * 400, accounting=by_curve)
    assert long.worst <= limits.backward <= long.worst + 1e-5
    assert (
        leakage_supremum(Adversary(strongest_correlation(2)), mechanism, accounting=ApproximateDP(1e-6)).backward
        == math.inf
    )
    two = leakage_supremum({"a": road, "b": Adversary(WALK)}, mechanism, accounting=by_curve)
    assert (two.worst_user, two.temporal) == ("a", limits.temporal)
