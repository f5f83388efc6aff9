"""Many people's leakage for ever at once, against one person at a time by rollouts of another kind, and long horizons."""

from __future__ import annotations

import math

import numpy as np
import pytest

from exact_oracles import boxes_of, defined_by_sign_rule
from temporaldp import Adversary, TransitionMatrix, leakage_supremum, temporal_leakage
from temporaldp.lab.studies import leakage_distribution

pytestmark = pytest.mark.long

STATES = tuple("abc")


def rows(kind, rng):
    n = len(STATES)
    matrix = rng.dirichlet(np.ones(n), size=n)
    if kind == "staying":
        stays = rng.uniform(0.7, 0.95, size=(n, 1))
        matrix = stays * np.eye(n) + (1.0 - stays) * matrix
    if kind == "zeros":  # the paper's supremum is infinite for many of them, the exact one is not
        matrix[rng.random((n, n)) < 0.3] = 0.0
        matrix[np.arange(n), (np.arange(n) + 1) % n] += 0.1
        matrix /= matrix.sum(axis=1, keepdims=True)
    return TransitionMatrix(matrix, STATES)


def people(kind, count, *, seed=0):
    """Some know the past only, some the future only, some have one matrix for both."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        backward, forward = rows(kind, rng), rows(kind, rng)
        known = [(backward, forward), (backward, None), (None, forward), (backward, backward)][k % 4]
        yield Adversary(*known, name=str(k))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "epsilon"), [("random", 0.7), ("staying", 0.1), ("zeros", 0.1)])
def test_distribution_contains_the_supremum_of_each_user(kind, epsilon):
    everybody = list(people(kind, 8))
    found = leakage_distribution(everybody, epsilon=epsilon)
    for name, leakage in zip(found.names, found.leakage, strict=True):
        one = everybody[int(name)]
        assert leakage == pytest.approx(leakage_supremum(one, epsilon).temporal, rel=1e-9)
        assert leakage >= temporal_leakage(one, [epsilon] * 30).attained.temporal.max()


@pytest.mark.parametrize("kind", ["random", "staying", "zeros"])
def test_suprema_agree_with_long_series_in_60_digit_arithmetic(kind):
    """Half of each row is the same for all states, so 50 steps in each direction approximate the infinite horizon."""
    everybody = []
    for k, one in enumerate(people(kind, 12, seed=1)):
        matrices = [None if not way else 0.5 * way.dense() + 0.5 / len(STATES) for way in (one.backward, one.forward)]
        everybody.append(
            Adversary(*(None if way is None else TransitionMatrix(way, STATES) for way in matrices), name=str(k))
        )
    low, high = boxes_of([0.3] * 50, len(STATES))
    for k in (0, 1, 2, 3):  # both directions, either one, and the same matrix for both
        sides = [way.dense() for way in (everybody[k].backward, everybody[k].forward) if way]
        found = leakage_supremum(everybody[k], 0.3)
        exact = 0.3 + sum(defined_by_sign_rule([way] * 50, low, high) for way in sides).max()
        assert exact * (1.0 - 1e-12) <= found.temporal <= exact * (1.0 + 1e-9)
        assert exact * (1.0 - 1e-9) <= found.lower.temporal <= exact * (1.0 + 1e-12)


def test_users_without_a_certificate_are_solved_separately():
    """A state that is never left has no supremum; a transient state has one, which differs from the paper's bound."""
    lasting = Adversary(TransitionMatrix([[0.7, 0.3, 0.0], [0.4, 0.5, 0.1], [0.2, 0.2, 0.6]], tuple("abc")))
    leaving = Adversary(TransitionMatrix([[0.8, 0.2, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]], tuple("abc")))
    stuck = Adversary(TransitionMatrix(np.eye(3), tuple("abc")))
    everybody = [*[lasting] * 200, leaving, stuck]
    found = leakage_distribution(everybody, epsilon=0.1)
    alone = [leakage_supremum(one, 0.1).temporal for one in (stuck, leaving, lasting)]
    assert sorted(set(found.leakage)) == pytest.approx(sorted(alone), rel=1e-9)
    assert found.worst == math.inf
