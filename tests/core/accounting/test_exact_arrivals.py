"""Releases that are given as boxes, and metrics that are boxes: bad input, windows, suprema, and what they are worth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.linalg import circulant

from exact_cases import random_boxes, random_rows
from methods import method_of
from temporaldp import (
    Adversary,
    BudgetError,
    Exact,
    GaussianNoise,
    InputError,
    LikelihoodBox,
    MetricPrivacy,
    PaperBound,
    TransitionMatrix,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.base.errors import StateError
from temporaldp.core.accounting.metric.method import BoxMetric, IntervalMetric

DIRECTIONS = ("backward", "forward", "temporal")
WALK = TransitionMatrix([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]])
BOTH = Adversary(WALK, WALK)
BOX_OF_THREE = LikelihoodBox([0] * 3, [1] * 3)
PLAIN = 1.0 - np.eye(3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: LikelihoodBox.add_or_remove(-1.0, 3, absent=0), ("epsilon", "-1.0")),
        (lambda: LikelihoodBox.add_or_remove(math.inf, 3, absent=0), ("epsilon", "inf")),
        (lambda: LikelihoodBox.add_or_remove(1.0, 3, absent=3), ("absent", "from 0 to 2", "got 3")),
        (
            lambda: temporal_leakage(BOTH, [LikelihoodBox([0, 0], [1, 1])]),
            ("releases[0]", "2 values", "3 states"),
        ),
        (
            lambda: temporal_leakage({"ann": BOTH}, [None, LikelihoodBox([0, 0], [1, 1])]),
            ("releases[1]", "3 states"),
        ),
        (lambda: temporal_leakage(BOTH, [GaussianNoise(1.0, 1.0)]), ("got GaussianNoise", "ApproximateDP(1e-6)")),
        (
            lambda: temporal_leakage(BOTH, [LikelihoodBox([0] * 3, [1] * 3), "noise"]),
            ("LikelihoodBox, a number", "'noise' at step 1"),
        ),
        *(
            (
                lambda accounting=accounting: temporal_leakage(BOTH, [BOX_OF_THREE], accounting=accounting),
                ("got a LikelihoodBox", "Exact() or PaperBound()"),
            )
            for accounting in (MetricPrivacy(PLAIN), BoxMetric(PLAIN), IntervalMetric(PLAIN))
        ),
        (
            lambda: temporal_leakage(Adversary([WALK]), [LikelihoodBox([0] * 3, [1] * 3)] * 3),
            ("matrices for 2 steps", "there are 3"),
        ),
        (lambda: leakage_supremum(BOTH, LikelihoodBox([0, 0], [1, 1])), ("2 values", "3 states")),
        (lambda: leakage_supremum(Adversary([WALK]), LikelihoodBox([0] * 3, [1] * 3)), ("constant",)),
        (lambda: leakage_supremum(BOTH, LikelihoodBox([0] * 3, [0] * 3)), ("epsilon of each release", ">= 1e-100")),
    ],
)
def test_invalid_use_of_boxes_is_refused(call, words):
    with pytest.raises((InputError, BudgetError, StateError)) as refused:
        call()
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_a_step_without_a_release_has_budget_0():
    for accounting in (Exact(), PaperBound(), MetricPrivacy(PLAIN)):
        some, same = (temporal_leakage(BOTH, [0.3, one, 0.2], accounting=accounting) for one in (None, 0.0))
        assert some == same
        assert temporal_leakage(BOTH, [None, None], accounting=accounting).worst == 0.0


def test_a_step_without_a_release_is_an_empty_box():
    box, empty = LikelihoodBox([-1.0, -0.5, 0.0], [1.0, 0.5, 0.0]), LikelihoodBox([0.0] * 3, [0.0] * 3)
    some, same = (temporal_leakage(BOTH, [box, one, box]) for one in (None, empty))
    for direction in DIRECTIONS:
        assert getattr(some, direction).tolist() == getattr(same, direction).tolist()
    assert some.epsilons.tolist() == pytest.approx([1.5, 0.0, 1.5])


@pytest.mark.parametrize("bound", ["exact", "paper"])
def test_without_correlation_a_box_leaks_its_epsilon(bound):
    box = LikelihoodBox([-1.0, 0.0, 0.0], [1.0, 0.0, 0.0])  # what value 0 differs from itself by is nobody's leakage
    series = temporal_leakage(Adversary(), [box, None], accounting=method_of(bound))
    assert series.temporal.tolist() == series.epsilons.tolist()
    assert series.epsilons == pytest.approx([box.epsilon, 0.0])
    assert box.epsilon == 1.0
    assert leakage_supremum(Adversary(), box, accounting=method_of(bound)).temporal == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["absent", "own noise"])
def test_window_of_boxes_adds_its_ends_and_the_steps_between(kind):
    rng = np.random.default_rng(len(kind))
    for _ in range(5):
        n, steps = int(rng.integers(2, 5)), 6
        boxes = [LikelihoodBox(*one) for one in zip(*random_boxes(kind, steps, n, rng), strict=True)]
        adversary = Adversary(*(TransitionMatrix(random_rows(n, rng)) for _ in range(2)))
        series = temporal_leakage(adversary, boxes)
        apart = [box.epsilon for box in boxes]
        assert series.epsilons == pytest.approx(apart)
        assert series.window(2, 3) == series.temporal[2]
        assert series.window(1, 3) == pytest.approx(series.backward[1] + series.forward[2])
        assert series.window(1, 5) == pytest.approx(series.backward[1] + sum(apart[2:4]) + series.forward[4])
        assert series.window(None, None) <= series.user_level * (1.0 + 1e-12)
        assert series.user_level == pytest.approx(sum(apart))


@pytest.mark.long
def test_smaller_boxes_never_leak_more_and_a_cube_equals_pure_dp():
    rng = np.random.default_rng(5)
    for _ in range(10):
        n, steps = int(rng.integers(2, 6)), 5
        adversary = Adversary(*(TransitionMatrix(random_rows(n, rng)) for _ in range(2)))
        epsilons = rng.uniform(0.1, 1.0, steps)
        plain = temporal_leakage(adversary, epsilons)
        cubes = [LikelihoodBox(np.full(n, -e / 2), np.full(n, e / 2)) for e in epsilons]
        same = temporal_leakage(adversary, cubes)
        shares = rng.uniform(0.0, 0.5, (2, steps, n))
        inside = [LikelihoodBox(-e * a, e * b) for e, a, b in zip(epsilons, *shares, strict=True)]
        less = temporal_leakage(adversary, inside)
        for direction in DIRECTIONS:
            assert getattr(same, direction) == pytest.approx(getattr(plain, direction), rel=1e-12)
            assert (getattr(less.attained, direction) <= getattr(plain, direction)).all()


# Metrics


@pytest.mark.long
def test_a_metric_that_is_a_box_is_exact():
    rng = np.random.default_rng(7)
    for n, kind in itertools.product((2, 3, 5), ("plain", "a + b")):
        adversary = Adversary(*(TransitionMatrix(rng.dirichlet(np.ones(n), n)) for _ in range(2)))
        shares = np.full(n, 0.5) if kind == "plain" else rng.uniform(0.1, 1.0, n)
        metric = shares[:, None] + shares[None, :]
        np.fill_diagonal(metric, 0.0)
        epsilons = rng.uniform(0.1, 1.0, 4)
        found = temporal_leakage(adversary, epsilons, accounting=MetricPrivacy(metric))
        assert found.accounting.name == "exact metric"
        boxes = [LikelihoodBox(-e * shares, e * shares) for e in epsilons]
        same = temporal_leakage(adversary, boxes)
        for direction in DIRECTIONS:
            assert getattr(found, direction) == pytest.approx(getattr(same, direction), rel=1e-12)
        limit = leakage_supremum(adversary, 0.2, accounting=MetricPrivacy(metric))
        assert limit.accounting.name == "exact metric"
        other = leakage_supremum(adversary, LikelihoodBox(-0.2 * shares, 0.2 * shares))
        for direction in DIRECTIONS:
            assert getattr(limit.lower, direction) <= getattr(other, direction)
            assert getattr(other.lower, direction) <= getattr(limit, direction)
            assert getattr(limit, direction) == pytest.approx(getattr(other, direction), rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_bounds_stay_close_over_long_series_of_boxes(seed):
    """Large spreads and small leakage together: the two sides of a rollout differ by less than either has digits."""
    rng = np.random.default_rng(seed)
    n, steps = int(rng.integers(3, 7)), 60
    rows = random_rows(n, rng) if seed % 2 else circulant(rng.dirichlet(np.ones(n)))
    sizes = 10.0 ** rng.uniform(-2.0, 0.3, (2, steps, n))
    boxes = [LikelihoodBox(-low, high) for low, high in zip(*sizes, strict=True)]
    series = temporal_leakage(Adversary(TransitionMatrix(rows / rows.sum(axis=1, keepdims=True))), boxes)
    assert (series.attained.backward <= series.backward).all()
    assert (series.backward <= series.attained.backward * (1.0 + 1e-8)).all()


def test_attained_leakage_of_a_single_box_is_at_most_its_width():
    box = LikelihoodBox([-3.1, -0.7, -0.3], [0.9, 2.9, 0.1])
    series = temporal_leakage(Adversary(backward=BOTH.backward), [box] * 3)
    own = max(high - low for i, high in enumerate(box.high) for j, low in enumerate(box.low) if i != j)
    assert series.attained.forward.max() <= own <= series.forward.min()
