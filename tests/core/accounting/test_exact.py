"""The exact leakage against every mechanism enumerated, rational certificates, the paper's bound, and known numbers."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import circulant

from data_sets import sleep_sample
from exact_cases import LONGEST, random_boxes, random_rows
from exact_oracles import (
    boxes_of,
    defined_by_sign_rule,
    enumerated_boxes,
    exponential,
    proved_ratio,
    rational_certificate,
    rational_ratio,
)
from methods import method_of
from places import REPOSITORY
from temporaldp import (
    Adversary,
    LikelihoodBox,
    PaperBound,
    TransitionMatrix,
    estimate_adversaries,
    leakage_supremum,
    temporal_leakage,
)

DIRECTIONS = ("backward", "forward", "temporal")
TOLERANCE = 1e-12
"""Of an equality, relative to max(1, value): the width between both sides."""

ROUNDING = 1e-13
"""Of the enumeration, which is in doubles: what an inequality may be missed by."""

ULPS = 1.0 + 64.0 * np.finfo(float).eps
"""The paper's recursion rounds to the nearest, twice a step; this bound, where both are equal, to the safe side."""

VALUES = json.loads((REPOSITORY / "tests" / "support" / "exact_values.json").read_text())


@dataclass(frozen=True)
class Case:
    """A chain and what each release says; None: that direction is not known."""

    backward: list[np.ndarray] | None
    forward: list[np.ndarray] | None
    low: np.ndarray
    high: np.ndarray
    kind: str = "epsilons"

    @property
    def adversary(self):
        return Adversary(*(_correlation(one) for one in (self.backward, self.forward)))

    def leakage(self, bound="exact"):
        """What the product says."""
        if self.kind == "epsilons":
            return temporal_leakage(self.adversary, self.high[:, 0], accounting=method_of(bound))
        boxes = [LikelihoodBox(low, high) for low, high in zip(self.low, self.high, strict=True)]
        return temporal_leakage(self.adversary, boxes, accounting=method_of(bound))

    def towards(self, t, direction):
        """The matrices and boxes of one direction's steps, running towards step t."""
        if direction == "backward":
            return (self.backward or [])[:t], self.low[:t], self.high[:t]
        return (self.forward or [])[t:][::-1], self.low[t + 1 :][::-1], self.high[t + 1 :][::-1]

    def own(self, t, i, j):
        """The largest log ratio of the release at t itself, without rounding."""
        return Fraction(float(self.high[t, i])) - Fraction(float(self.low[t, j]))


def _correlation(matrices):
    """One matrix where all are the same, so that both forms are tried; a sequence otherwise."""
    if not matrices:
        return None
    if all(matrix is matrices[0] for matrix in matrices):
        return TransitionMatrix(matrices[0])
    return [TransitionMatrix(matrix) for matrix in matrices]


def random_case(kind, n, rng, steps=None):
    steps = int(rng.integers(1, LONGEST[n] + 1)) if steps is None else steps
    low, high = random_boxes(kind, steps, n, rng)
    known = rng.choice(["both", "both", "both", "backward", "forward"])
    backward, forward = (
        None
        if known not in ("both", direction)
        else [random_rows(n, rng)] * (steps - 1)
        if rng.random() < 0.4
        else [random_rows(n, rng) for _ in range(steps - 1)]
        for direction in ("backward", "forward")
    )
    return Case(backward, forward, low, high, kind)


def assert_is(found, truth, case):
    """Both sides enclose the truth, and are as close as is promised."""
    for direction, true in zip(DIRECTIONS, truth, strict=True):
        upper, attained = getattr(found, direction), getattr(found.attained, direction)
        room = np.maximum(1.0, true)
        assert (true <= upper + ROUNDING * room).all(), (direction, case)
        assert (attained <= true + ROUNDING * room).all(), (direction, case)
        assert (attained <= upper).all(), (direction, case)
        assert (upper - attained <= TOLERANCE * room).all(), (direction, case)
        assert (np.abs(upper - true) <= TOLERANCE * room).all(), (direction, case)


@pytest.mark.parametrize("kind", ["epsilons", "absent", "own noise"])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("n_cases", [30, pytest.param(170, marks=pytest.mark.long)])
def test_exact_leakage_equals_the_definition_and_never_exceeds_the_paper(n_cases, kind, n):
    """2,040 cases, the first 360 of them always: matrices with zeros, that vary or do not, unknown directions, zero budgets."""
    rng = np.random.default_rng([n, len(kind)])
    for _ in range(n_cases):
        case = random_case(kind, n, rng)
        found = case.leakage()
        assert found.accounting.name == "exact"
        assert_is(found, enumerated_boxes(case.backward, case.forward, case.low, case.high), case)
        paper = case.leakage("paper")
        for direction in DIRECTIONS:
            assert (getattr(found, direction) <= getattr(paper, direction) * ULPS).all(), (direction, case)


@pytest.mark.parametrize(("n", "steps"), [(2, 11), (3, 7), (4, 5), (5, 5)])
def test_exact_leakage_equals_the_definition_over_long_enumerations(n, steps):
    """Up to a million likelihoods each way."""
    case = random_case("epsilons", n, np.random.default_rng(n), steps)
    assert_is(case.leakage(), enumerated_boxes(case.backward, case.forward, case.low, case.high), case)


@pytest.mark.parametrize("kind", ["epsilons", "absent", "own noise"])
def test_one_matrix_for_both_directions_equals_the_definition_too(kind):
    """Releases that are the same from either end are computed once; the sum of both directions bounds them together."""
    rng = np.random.default_rng([7, len(kind)])
    for k in range(20):
        case = random_case(kind, 3, rng, steps=5)
        rows = [random_rows(3, rng)] * 4
        low, high = (case.low, case.high) if k % 2 else (each + each[::-1] for each in (case.low, case.high))
        case = Case(rows, rows, low, high, kind)
        assert_is(case.leakage(), enumerated_boxes(rows, rows, low, high), case)


@pytest.mark.long
@pytest.mark.parametrize("n", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_long_series_agree_with_60_digit_arithmetic(n):
    """Fifty steps, every pair, the last step from the past and the first from the future."""
    rng = np.random.default_rng([7, n])
    matrices = [rng.dirichlet(np.full(n, 0.4), n) for _ in range(49)]
    low, high = boxes_of(rng.uniform(0.0, 0.6, 50), n)
    case = Case(matrices, matrices[::-1], low, high)
    found = case.leakage()
    last = np.max(defined_by_sign_rule(*case.towards(49, "backward")) - 99.0 * np.eye(n)) + high[49, 0]
    first = np.max(defined_by_sign_rule(*case.towards(0, "forward")) - 99.0 * np.eye(n)) + high[0, 0]
    assert found.attained.backward[-1] <= last + 1e-14 <= found.backward[-1] + 2e-14
    assert found.attained.forward[0] <= first + 1e-14 <= found.forward[0] + 2e-14
    assert found.backward[-1] == pytest.approx(last, rel=1e-12)
    assert found.forward[0] == pytest.approx(first, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "stays", "steps"), [(2.0, 0.5, 150), (0.3, 0.8, 400), (0.22, 0.8, 400), (1.0, 0.3, 90)]
)
def test_transient_state_accumulates_leakage(epsilon, stays, steps):
    """Known in closed form: every output favours that state. Newton's method alone needs one iteration per step."""
    matrix = TransitionMatrix([[stays, 1.0 - stays], [0.0, 1.0]])
    found = temporal_leakage(Adversary(matrix), [epsilon] * steps)
    growth = np.exp(epsilon) * stays
    gathered = np.cumsum(np.concatenate(([1.0], np.expm1(epsilon) * stays * growth ** np.arange(steps - 1))))
    np.testing.assert_allclose(found.backward, epsilon + np.log(gathered), rtol=1e-9)
    np.testing.assert_allclose(found.attained.backward, epsilon + np.log(gathered), rtol=1e-9)


@pytest.mark.parametrize("n_cases", [15, pytest.param(60, marks=pytest.mark.long)])
def test_two_states_with_symmetric_rows_attain_the_papers_bound(n_cases):
    rng = np.random.default_rng(9)
    for _ in range(n_cases):
        stays = rng.uniform(0.0, 1.0, (2, 7))
        backward, forward = ([np.array([[p, 1.0 - p], [1.0 - p, p]]) for p in side] for side in stays)
        case = Case(backward, forward, *boxes_of(rng.uniform(0.0, 2.0, 8), 2))
        found, paper = case.leakage(), case.leakage("paper")
        for direction in DIRECTIONS:
            np.testing.assert_allclose(getattr(found, direction), getattr(paper, direction), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", ["epsilons", "absent", "own noise"])
@pytest.mark.long
def test_leakage_is_monotone_in_every_budget(kind):
    rng = np.random.default_rng([10, len(kind)])
    for _ in range(20):
        n = int(rng.integers(2, 6))
        case = random_case(kind, n, rng, steps=5)
        less = case.leakage()
        for t in range(5):
            low, high = case.low.copy(), case.high.copy()
            low[t], high[t] = 1.5 * low[t], 1.5 * high[t] + 0.1 * (high[t] > 0.0)
            if kind != "epsilons":
                low[t] -= 0.1 * (high[t] > 0.0)
            more = Case(case.backward, case.forward, low, high, kind).leakage()
            for direction in DIRECTIONS:  # true <= upper, attained <= true: exact inequalities
                assert (getattr(more, direction) >= getattr(less.attained, direction)).all()


@pytest.mark.parametrize("kind", ["epsilons", "own noise"])
@pytest.mark.long
def test_relabelling_states_does_not_change_leakage(kind):
    rng = np.random.default_rng([11, len(kind)])
    for _ in range(25):
        n = int(rng.integers(2, 9))
        case = random_case(kind, n, rng, steps=6)
        order = rng.permutation(n)
        backward, forward = (
            None if side is None else [matrix[np.ix_(order, order)] for matrix in side]
            for side in (case.backward, case.forward)
        )
        renamed = Case(backward, forward, case.low[:, order], case.high[:, order], kind).leakage()
        found = case.leakage()
        for direction in DIRECTIONS:
            np.testing.assert_allclose(
                getattr(renamed, direction), getattr(found, direction), rtol=TOLERANCE, atol=TOLERANCE
            )


def test_time_reversed_forward_is_backward():
    rng = np.random.default_rng(12)
    for _ in range(10):
        case = random_case("own noise", 3, rng, steps=5)
        turn = [None if side is None else side[::-1] for side in (case.forward, case.backward)]
        found, turned = case.leakage(), Case(*turn, case.low[::-1], case.high[::-1], case.kind).leakage()
        np.testing.assert_allclose(found.backward, turned.forward[::-1], rtol=TOLERANCE, atol=TOLERANCE)
        np.testing.assert_allclose(found.temporal, turned.temporal[::-1], rtol=TOLERANCE, atol=TOLERANCE)


def known_adversary(known):
    if known["name"] == "sample":
        return next(estimate_adversaries(sleep_sample()))
    return Adversary(*(TransitionMatrix(known[name]) for name in ("backward_matrix", "forward_matrix")))


@pytest.mark.parametrize("known", VALUES["cases"], ids=lambda known: f"{known['name']} {known['epsilon']}")
def test_known_numbers(known):
    adversary, epsilons = known_adversary(known), np.full(known["T"], known["epsilon"])
    found = temporal_leakage(adversary, epsilons)
    for side in (found, found.attained):
        assert side.backward[-1] == pytest.approx(known["backward"], rel=1e-10)
        assert side.forward[0] == pytest.approx(known["forward"], rel=1e-10)
        assert max(side.temporal) == pytest.approx(known["temporal"], rel=1e-10)
    paper = temporal_leakage(adversary, epsilons, accounting=PaperBound())
    assert paper.worst == pytest.approx(known["paper"], rel=1e-10)


@pytest.mark.parametrize("known", VALUES["suprema"], ids=lambda known: f"{known['name']} {known['epsilon']}")
def test_known_suprema(known):
    found = leakage_supremum(known_adversary(known), known["epsilon"])
    for direction in DIRECTIONS:
        for side in (found, found.lower):
            assert getattr(side, direction) == pytest.approx(known[direction], rel=1e-9)


def proved_cases():
    """40 cases of 2 to 4 values and 2 to 5 steps."""
    rng = np.random.default_rng(13)
    for number in range(40):
        kind = ("epsilons", "absent", "own noise")[number % 3]
        n = int(rng.integers(2, 5))
        yield random_case(kind, n, rng, steps=int(rng.integers(2, 6)))


def observation_of(series, t):
    """The pair of values that step t tells apart best, and which values each other step's output speaks for."""
    witness = series.witness(t)
    named = series.evidence.states
    pair = named.index(witness.state), named.index(witness.other_state)
    return pair, {"backward": witness.high[:t], "forward": witness.high[t + 1 :][::-1]}


@pytest.mark.long
def test_attained_leakage_is_confirmed_in_rational_arithmetic():
    """The reported witness, replayed without rounding, leaks at least the stated amount. No tolerance."""
    for case in proved_cases():
        found = case.leakage()
        for t in range(len(case.low)):
            pair, raised = observation_of(found, t)
            ratio = exponential(case.own(t, *pair))[1]
            for direction in ("backward", "forward"):
                matrices, low, high = case.towards(t, direction)
                if matrices:
                    ratio *= rational_ratio(matrices, raised[direction], low, high, pair)[1]
            leakage = found.witness(t).leakage
            assert exponential(leakage)[0] <= ratio, (t, case)
            assert leakage == pytest.approx(found.attained.temporal[t], rel=TOLERANCE, abs=0), (t, case)


@pytest.mark.long
@pytest.mark.parametrize("t", [0, 700, 1_499])
def test_witness_of_a_long_release_attains_the_stated_leakage(t):
    """Its likelihoods, multiplied step by step, for budgets that stay the same for long and change twice."""
    rng = np.random.default_rng(5)
    backward, forward = random_rows(4, rng), random_rows(4, rng)
    epsilons = np.repeat([0.3, 0.1, 0.5], 500)
    adversary = Adversary(TransitionMatrix(backward), TransitionMatrix(forward))
    series = temporal_leakage(adversary, epsilons)
    (i, j), raised = observation_of(series, t)
    leakage = epsilons[t]
    for rows, high, spent in (
        (backward, raised["backward"], epsilons[:t]),
        (forward, raised["forward"], epsilons[t + 1 :][::-1]),
    ):
        likelihood = np.ones(4)
        for speaks, epsilon in zip(high, spent, strict=True):
            likelihood = rows @ (likelihood * np.where(speaks, np.exp(epsilon), 1.0))
            likelihood /= likelihood.max()
        leakage += np.log(likelihood[i] / likelihood[j])
    assert leakage == pytest.approx(series.witness(t).leakage, rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_bounds_of_each_direction_are_confirmed_in_rational_arithmetic(direction):
    """For every pair of states the sign rule evaluated at the stated leakage is at most 0. No tolerance."""
    for case in proved_cases():
        upper = getattr(case.leakage(), direction)
        for t in range(len(case.low)):
            matrices, low, high = case.towards(t, direction)
            for i, j in itertools.permutations(range(case.low.shape[1]), 2):
                room = Fraction(float(upper[t])) - case.own(t, i, j)
                if matrices:
                    assert rational_certificate(matrices, low, high, (i, j), exponential(room)[1]) <= 0, (t, i, j, case)
                else:
                    assert room >= 0, (t, i, j, case)


@pytest.mark.long
def test_bounds_of_temporal_leakage_are_confirmed_in_rational_arithmetic():
    """The proved ratios of the past and the future of a pair multiply to at most the stated leakage. No tolerance."""
    for case in itertools.islice(proved_cases(), 8):
        upper = case.leakage().temporal
        for t in range(len(case.low)):
            for pair in itertools.permutations(range(case.low.shape[1]), 2):
                ratio = exponential(case.own(t, *pair))[0]
                for direction in ("backward", "forward"):
                    matrices, low, high = case.towards(t, direction)
                    if matrices:
                        ratio *= proved_ratio(matrices, low, high, pair)
                assert ratio <= exponential(float(upper[t]))[1], (t, pair, case)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [5.0, 20.0, 40.0])
def test_large_budgets_agree_with_60_digit_arithmetic(epsilon):
    """A tried ratio can be e^50 times the solution here, so that their difference has no correct digit."""
    rng = np.random.default_rng(14)
    ring = circulant([0.6, 0.2, 0.0, 0.0, 0.0, 0.2])
    for matrix in (ring, *(random_rows(int(rng.integers(3, 6)), rng) for _ in range(6))):
        case = Case([matrix] * 7, None, *boxes_of(np.full(8, epsilon), len(matrix)))
        found = case.leakage()
        for t in (2, 7):
            true = np.max(defined_by_sign_rule(*case.towards(t, "backward")) - 999.0 * np.eye(len(matrix))) + epsilon
            assert found.attained.backward[t] * (1.0 - 1e-15) <= true <= found.backward[t] * (1.0 + 1e-15)
            assert found.backward[t] == pytest.approx(true, rel=TOLERANCE)


@pytest.mark.parametrize(("large", "small"), [(50.0, 1e-13), (200.0, 1e-11), (1.0, 1e-15)])
def test_small_budgets_after_large_ones_are_not_lost(large, small):
    """Where states are remembered for good from some step on, budgets add up: also those that the sum so far hides."""
    mixed, kept = TransitionMatrix(np.full((2, 2), 0.5)), TransitionMatrix(np.eye(2))
    budgets = [large] * 31 + [small / 1024.0] + [small] * 32
    series = temporal_leakage(Adversary(backward=[mixed] * 31 + [kept] * 32), budgets)
    truth = small * (1.0 / 1024.0 + np.arange(33))
    assert (series.backward[31:] >= truth * (1.0 - 1e-15)).all()
    np.testing.assert_allclose(series.backward[31:], truth, rtol=1e-9)


def test_leakage_of_many_steps_between_states_that_are_hardly_ever_left():
    """Two groups of states between which an observation never errs: budgets add up, beyond the range of single precision."""
    n, leave = 64, 1.0000001e-20
    matrix = np.zeros((n, n))
    for state, home, other in ((0, 0, 4), (4, 0, 5), (5, 0, 1), (1, 1, 2), (2, 1, 3), (3, 1, 0)):
        matrix[state, [home, other]] = 1.0 - leave, leave
    matrix[6:60, 1], matrix[6:60, 2] = 1.0 - leave, leave
    matrix[60:, 60:] = 0.25
    order = np.append([0, 1], 2 + np.random.default_rng(0).permutation(n - 2))
    series = temporal_leakage(Adversary(backward=TransitionMatrix(matrix[np.ix_(order, order)])), [2.39] * 110)
    truth = 2.39 * np.arange(1, 111)
    assert (series.backward >= truth * (1.0 - 1e-12)).all()
    np.testing.assert_allclose(series.backward, truth, rtol=1e-9)
