"""Units of change: distances between values, boxes against every mechanism enumerated, group privacy."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from temporaldp import Adversary, InputError, TransitionMatrix
from temporaldp.publish.deployment import PrivacyUnit
from temporaldp.publish.deployment.over_time import LeakageOverTime
from temporaldp.publish.deployment.promise import ConcentratedPromise, EpsilonPromise


def enumerated(matrix, low, high, horizon):
    """The largest log ratio about the step in the middle, over all corners of all boxes (symmetric chain)."""
    n, at = len(matrix), horizon // 2
    corners = [np.array(corner) for corner in set(itertools.product(*({a, b} for a, b in zip(low, high, strict=True))))]

    def sides(steps):
        """Likelihoods of outputs of so many steps on one side, for each value at the step next to them."""
        found = [np.ones(n)]
        for _ in range(steps):
            found = [matrix @ (np.exp(corner) * x) for corner in corners for x in found]
        return np.array(found)

    past, future = sides(at), sides(horizon - 1 - at)
    worst = 0.0
    for i, j in itertools.permutations(range(n), 2):
        ratio = max((past[:, i] / past[:, j]).max() * (future[:, i] / future[:, j]).max(), 0.0)
        own = max(corner[i] - corner[j] for corner in corners)
        worst = max(worst, math.log(ratio) + own)
    return worst


@pytest.mark.parametrize(
    ("unit", "low", "high"),
    [
        (PrivacyUnit.of("add-or-remove"), (0.0, -0.7, -0.7), (0.0, 0.7, 0.7)),
        (PrivacyUnit.of("category-histogram"), (-0.7, -0.7, -0.7), (0.7, 0.7, 0.7)),
        (PrivacyUnit.of("replace-one"), (-0.35, -0.35, -0.35), (0.35, 0.35, 0.35)),
        (PrivacyUnit.at_most(2, of=PrivacyUnit.of("add-or-remove")), (0.0, -1.4, -1.4), (0.0, 1.4, 1.4)),
    ],
    ids=["absent", "histogram", "replaced", "two contributions"],
)
def test_three_states_against_enumerated_mechanisms(unit, low, high):
    states = ("absent", "home", "work")
    rows = np.where(np.eye(3, dtype=bool), 0.8, 0.1)
    chain = TransitionMatrix(rows, states)
    found = LeakageOverTime(EpsilonPromise(0.7), unit.distances(states), 0.0, Adversary(chain, chain), 7, 0.8)
    assert found.within == pytest.approx(enumerated(rows, low, high, 7), rel=1e-12)
    assert found.alone == pytest.approx(max(high) - min(low), rel=1e-12)
    assert found.limit.temporal >= found.within
    assert found.is_exact


def test_half_the_sensitivity_of_a_histogram_is_rejected():
    """The same enumeration rejects half the sensitivity."""
    chain = np.where(np.eye(3, dtype=bool), 0.8, 0.1)
    assert enumerated(chain, (-0.7,) * 3, (0.7,) * 3, 5) > 1.5 * enumerated(chain, (-0.35,) * 3, (0.35,) * 3, 5)


def test_distances_of_all_units():
    states = ("a", "absent", "b")
    assert PrivacyUnit.of("replace-one").distances(states).max() == 1
    assert PrivacyUnit.of("category-histogram").distances(states).max() == 2
    assert PrivacyUnit.of("binary-count").distances(("yes", "no")).max() == 1
    absent = PrivacyUnit.of("add-or-remove").distances(states)
    assert absent.tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    assert PrivacyUnit.at_most(4, of=PrivacyUnit.of("add-or-remove")).distances(states).max() == 8
    tables = PrivacyUnit.tables({"country": 0.11, "state": 0.11, "county": 0.22}, of=PrivacyUnit.of("binary-count"))
    assert tables.epsilon == pytest.approx(0.44, abs=1e-15)
    assert "0.11 (country) + 0.11 (state) + 0.22 (county) = 0.44" in tables.reasoning[-1]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: PrivacyUnit.of("binary-count").distances(("a", "b", "c")),
            "expected two states for --unit binary-count, got 3",
        ),
        (lambda: PrivacyUnit.of("a person"), "expected a unit among replace-one, add-or-remove, .*, got 'a person'"),
        (lambda: PrivacyUnit.of("add-or-remove", absent="gone").distances(("a", "b")), "got 'gone'"),
        (lambda: PrivacyUnit.at_most(0, of=PrivacyUnit.of("binary-count")), "at least 1"),
        (lambda: PrivacyUnit.tables({}, of=PrivacyUnit.of("binary-count")), "at least one table"),
        (lambda: PrivacyUnit.tables({"a": -1.0}, of=PrivacyUnit.of("binary-count")), "the epsilon of a"),
    ],
)
def test_invalid_units_are_refused(make, says):
    with pytest.raises(InputError, match=says):
        make()


@pytest.mark.parametrize(("one", "n"), [(0.1, 5), (0.3, 9), (0.7, 3), (0.7, 1)])
def test_group_privacy_is_rounded_up(one, n):
    """In rational arithmetic; products of doubles are below these by an ulp."""
    assert (
        n * Fraction(one)
        <= Fraction(EpsilonPromise(one).grouped(n).epsilon)
        <= n * Fraction(one) * (1 + Fraction(1e-14))
    )
    assert n**2 * Fraction(one) <= Fraction(ConcentratedPromise(one).grouped(n).rho)
    delta = EpsilonPromise(one, 1e-5).grouped(n).delta
    assert sum(Fraction(1e-5) * Fraction((k * Decimal(one)).exp()) for k in range(n)) <= Fraction(delta)


def test_group_privacy():
    assert EpsilonPromise(0.5).grouped(3).epsilon == pytest.approx(1.5)
    assert ConcentratedPromise(0.1).grouped(2).rho == pytest.approx(0.4)
    two = EpsilonPromise(0.5, 1e-6).grouped(2)
    assert (two.epsilon, two.delta) == (pytest.approx(1.0), pytest.approx(1e-6 * (1.0 + math.exp(0.5))))
    with pytest.raises(InputError, match="by group privacy its delta"):
        EpsilonPromise(34.9, 7e-9).grouped(2)
    assert EpsilonPromise(1.0, 1e-8).together(1, 10, 1e-7) == 10.0
    assert EpsilonPromise(1.0, 1e-8).together(1, 11, 1e-7) == math.inf
