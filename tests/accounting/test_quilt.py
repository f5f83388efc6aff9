"""Markov quilts against the enumeration of mechanisms whose noise is shared between steps, and against exact leakage."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from temporaldp import (
    Adversary,
    MarkovQuilt,
    Periodic,
    TransitionMatrix,
    leakage_supremum,
    plan_budget,
    sticky,
    sustainable_budget,
    temporal_leakage,
)

QUILT = MarkovQuilt()


def chain(rng, n):
    return rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 5.0])), n)


def shared_noise(rng, n_steps):
    """A joint distribution of T noise bits that are not independent, over all 2^T words, and its epsilon at each step.

    The output of a step is its value plus its noise bit, modulo 2.
    """
    words = np.array(list(itertools.product((0, 1), repeat=n_steps)))
    law = np.exp(rng.normal(0.0, rng.choice([0.1, 0.5, 1.0]), len(words)))
    kind = rng.integers(3)
    if kind == 1:  # neighbours share most of their noise
        law = law * np.exp(rng.uniform(0.5, 2.0) * (words[:, 1:] == words[:, :-1]).sum(axis=1))
    if kind == 2:  # one bit for all steps, memoised
        law = law * np.exp(rng.uniform(0.5, 2.0) * np.abs(words.sum(axis=1) - n_steps / 2.0))
    law = law / law.sum()
    table = law.reshape((2,) * n_steps)
    epsilons = [float(np.abs(np.log(table / np.flip(table, axis=t))).max()) for t in range(n_steps)]
    return table, np.array(epsilons)


def enumerated(table, initial, forward, upto=None):
    """max log Pr(R | l_t = i) / Pr(R | l_t = j) of every step t over all outputs, or over the first `upto` outputs alone."""
    n_steps = table.ndim
    law = table if upto is None else table.sum(axis=tuple(range(upto, n_steps)))
    seen = law.ndim
    found = []
    for t in range(n_steps):
        likelihood = np.zeros((2, *law.shape))
        weight = np.zeros(2)
        for path in itertools.product((0, 1), repeat=n_steps):
            chance = initial[path[0]] * math.prod(forward[a, b] for a, b in itertools.pairwise(path))
            shifted = law
            for step, value in enumerate(path[:seen]):
                if value:
                    shifted = np.flip(shifted, axis=step)
            likelihood[path[t]] += chance * shifted
            weight[path[t]] += chance
        given = likelihood / weight.reshape(2, *(1,) * seen)
        found.append(float(np.abs(np.log(given[0] / given[1])).max()))
    return np.array(found)


def correlated_cases(rng, n_cases):
    for _ in range(n_cases):
        n_steps = int(rng.integers(2, 6))
        table, epsilons = shared_noise(rng, n_steps)
        initial, forward = rng.dirichlet([1.0, 1.0]), chain(rng, 2)
        adversary = Adversary.from_forward(TransitionMatrix(forward), initial=initial, horizon=n_steps)
        yield table, initial, forward, adversary, epsilons


def test_bound_covers_mechanisms_with_shared_noise():
    rng = np.random.default_rng(0)
    tightness = []
    for table, initial, forward, adversary, epsilons in correlated_cases(rng, 100):
        bound = temporal_leakage(adversary, epsilons, accounting=QUILT)
        truth = enumerated(table, initial, forward)
        assert (bound.temporal >= truth * (1.0 - 1e-12)).all()
        tightness.append(bound.worst / truth.max())
        for t in range(table.ndim):
            past = enumerated(table, initial, forward, upto=t + 1)[t]
            assert bound.backward[t] >= past * (1.0 - 1e-12)
    assert np.median(tightness) < 5.0


@pytest.mark.slow
def test_bound_covers_five_hundred_mechanisms_with_shared_noise():
    rng = np.random.default_rng(1)
    for table, initial, forward, adversary, epsilons in correlated_cases(rng, 500):
        bound = temporal_leakage(adversary, epsilons, accounting=QUILT)
        assert (bound.temporal >= enumerated(table, initial, forward) * (1.0 - 1e-12)).all()


def random_case(rng):
    n, n_steps = int(rng.integers(2, 7)), int(rng.integers(1, 12))
    backward, forward = chain(rng, n), chain(rng, n)
    if rng.random() < 0.3:
        sides = [[chain(rng, n) for _ in range(n_steps - 1)] or None for _ in range(2)]
        return Adversary(*sides), rng.uniform(0.01, 1.0, n_steps)
    return Adversary(backward, forward), rng.uniform(0.01, 1.0, n_steps)


@pytest.mark.parametrize("n_cases", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_bound_covers_the_exact_leakage_of_independent_noise(n_cases):
    rng = np.random.default_rng(2)
    for _ in range(n_cases):
        adversary, epsilons = random_case(rng)
        bound, exact = temporal_leakage(adversary, epsilons, accounting=QUILT), temporal_leakage(adversary, epsilons)
        for way in ("backward", "forward", "temporal"):
            assert (getattr(bound, way) >= getattr(exact, way) * (1.0 - 1e-12)).all()
            if bound.attained is None:  # without a correlation each release stands alone
                continue
            assert (getattr(bound.attained, way) <= getattr(exact, way)).all()
            assert getattr(bound.attained, way) == pytest.approx(getattr(exact, way), rel=1e-9)
        assert bound.worst <= epsilons.sum() * (1.0 + 1e-12)


def by_hand(backward, forward, epsilons, t):
    """The bound of THEORY 14.1 written out: every a and b, for every pair."""
    n, n_steps = len(backward), len(epsilons)

    def ratios(matrix):
        return np.array([[np.log(matrix[i] / matrix[j]).max() for j in range(n)] for i in range(n)])

    best = np.full((n, n), np.inf)
    for a in range(1, t + 2):
        for b in range(1, n_steps - t + 1):
            first, last = max(t - a + 1, 0), min(t + b - 1, n_steps - 1)
            value = np.full((n, n), epsilons[first : last + 1].sum())
            if a <= t:
                value = value + ratios(np.linalg.matrix_power(backward, a))
            if b < n_steps - t:
                value = value + ratios(np.linalg.matrix_power(forward, b))
            best = np.minimum(best, value)
    return best[~np.eye(n, dtype=bool)].max()


def test_bound_is_the_smallest_over_all_quilts():
    rng = np.random.default_rng(3)
    for _ in range(60):
        n, n_steps = int(rng.integers(2, 5)), int(rng.integers(1, 8))
        backward, forward, epsilons = chain(rng, n), chain(rng, n), rng.uniform(0.01, 1.0, n_steps)
        found = temporal_leakage(Adversary(backward, forward), epsilons, accounting=QUILT)
        wanted = [by_hand(backward, forward, epsilons, t) for t in range(n_steps)]
        assert found.temporal == pytest.approx(wanted, rel=1e-12)
        assert (found.temporal >= np.array(wanted) * (1.0 - 1e-15)).all()


def test_published_values():
    adversary = Adversary.from_forward([[0.9, 0.1], [0.2, 0.8]])
    assert leakage_supremum(adversary, 0.1, accounting=QUILT).temporal == pytest.approx(1.773, abs=5e-4)
    assert leakage_supremum(adversary, 0.1).temporal == pytest.approx(0.586, abs=5e-4)


def test_bound_covers_every_matrix_of_an_interval():
    rng = np.random.default_rng(4)
    known = sticky(3, stays=(0.6, 0.9))
    bound = temporal_leakage(Adversary(known, known), [0.2] * 8, accounting=QUILT)
    assert bound.attained is None
    for _ in range(40):
        stays = rng.uniform(0.6, 0.9, 3)
        rest = rng.dirichlet(np.ones(2), 3)
        matrix = np.diag(stays)
        for i in range(3):
            matrix[i, [j for j in range(3) if j != i]] = (1.0 - stays[i]) * rest[i]
        one = temporal_leakage(Adversary(matrix, matrix), [0.2] * 8, accounting=QUILT)
        assert (one.temporal <= bound.temporal * (1.0 + 1e-12)).all()


def test_periodic_correlation_has_suprema_and_budgets():
    each = [TransitionMatrix([[p, 1.0 - p], [1.0 - p, p]]) for p in (0.9, 0.6, 0.7)]
    adversary = Adversary(Periodic(each), Periodic(each))
    limit = leakage_supremum(adversary, 0.1, accounting=QUILT).temporal
    assert temporal_leakage(adversary, [0.1] * 90, accounting=QUILT).worst <= limit * (1.0 + 1e-12) < 2.0
    budget = sustainable_budget(adversary, alpha=1.0, accounting=QUILT)
    assert budget > 0.0
    assert temporal_leakage(adversary, [budget] * 90, accounting=QUILT).worst <= 1.0


def test_chain_without_mixing_has_no_supremum_or_sustainable_budget():
    adversary = Adversary(np.eye(2), np.eye(2))
    assert leakage_supremum(adversary, 0.1, accounting=QUILT).temporal == math.inf
    assert sustainable_budget(adversary, alpha=1.0, accounting=QUILT) == 0.0


@pytest.mark.parametrize("horizon", [None, 12])
def test_plans_satisfy_the_level_for_any_noise(horizon):
    adversary = Adversary.from_forward([[0.9, 0.1], [0.2, 0.8]])
    plan = plan_budget(adversary, alpha=1.0, horizon=horizon, accounting=QUILT)
    found = plan.leakage_to(adversary, horizon or 60)
    assert 0.9 < found.worst <= 1.0
    assert plan.accounting == QUILT
