"""The filter by the exact leakage: what is admitted holds the level, nearly all that does is admitted, and a reserve lasts."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest

import temporaldp as tdp
from data_sets import sleep_sample
from exact_cases import random_rows
from exact_oracles import boxes_of, enumerated_boxes
from methods import method_of
from temporaldp import Adversary, TransitionMatrix, estimate_adversaries, temporal_leakage
from temporaldp.base.errors import BudgetError
from temporaldp.core.accounting.exact.filter import ExactFilter

RING = TransitionMatrix(np.roll(np.eye(6), 1, axis=1) * 0.4 + np.eye(6) * 0.2 + np.roll(np.eye(6), -1, axis=1) * 0.4)
STAYS = TransitionMatrix([[0.99, 0.01], [0.01, 0.99]])


def random_adversary(rng, n, *, n_steps=None, directions="both") -> Adversary:
    def one():
        if n_steps is None:
            return TransitionMatrix(random_rows(n, rng))
        few = [TransitionMatrix(random_rows(n, rng)) for _ in range(3)]
        return [few[k] for k in rng.integers(0, 3, n_steps - 1)]

    return Adversary(None if directions == "forward" else one(), None if directions == "backward" else one())


def mixing_adversary(rng, n, directions="both") -> Adversary:
    """Rows that have values in common: every level has a sustainable budget."""
    both = [TransitionMatrix(0.8 * random_rows(n, rng) + 0.2 / n) for _ in range(2)]
    return Adversary(None if directions == "forward" else both[0], None if directions == "backward" else both[1])


def worst(adversary, epsilons) -> float:
    """By the series: nothing of the filter."""
    return temporal_leakage(adversary, epsilons).worst


def tailed(spent, standing, steps=60):
    return [*spent, *([standing.reserve] * steps)]


def spend_at_random(standing, rng, steps, check):
    """A twentieth each of zeros and of everything that is left; others around what is kept or remains, some of them refused."""
    spent = []
    for _ in range(steps):
        most = standing.largest()
        kind = rng.integers(20)
        usual = max(standing.reserve, 0.3 * most)
        asked = 0.0 if kind == 0 else most if kind == 1 else float(rng.choice([1.0, 0.1, 3.0]) * usual * rng.random())
        admitted = standing.admits(asked)
        assert admitted or asked > most
        if admitted:
            standing = standing.after(asked)
            spent.append(asked)
            check(spent, standing)
    return standing, spent


# Soundness


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_admitted_budgets_satisfy_the_level_over_an_infinite_horizon(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    adversary = mixing_adversary(rng, n, ("both", "both", "backward", "forward")[seed % 4])
    alpha = float(rng.choice([0.05, 1.0, 4.0]))
    reserve = tdp.sustainable_budget(adversary, alpha=alpha) * float(rng.choice([1.0, 0.5, 0.0]))
    standing = ExactFilter.at_start(adversary, alpha=alpha, reserve=reserve)
    assert standing.reserve <= reserve

    def check(spent, now):
        assert now.keeps_reserve
        assert worst(adversary, tailed(spent, now)) <= alpha

    spend_at_random(standing, rng, 20, check)


@pytest.mark.parametrize("seed", range(8))
def test_no_mechanism_exceeds_the_level(seed):
    """Every mechanism enumerated, with varying matrices and with zeros, ties and near-certainty in them."""
    rng = np.random.default_rng(100 + seed)
    n, n_steps = (2, 6) if seed % 2 else (3, 5)
    adversary = random_adversary(rng, n, n_steps=n_steps if seed % 4 < 2 else None)
    standing = ExactFilter.at_start(adversary, alpha=1.0, horizon=n_steps)

    def rows(correlation):
        return [correlation.at(t).dense() for t in range(n_steps - 1)]

    def check(spent, now):
        low, high = boxes_of(spent, n)
        some = len(spent) - 1
        backward, forward = rows(adversary.backward)[:some], rows(adversary.forward)[:some]
        assert enumerated_boxes(backward, forward, low, high)[2].max() <= 1.0 + 1e-13

    spent = []
    for step in range(n_steps):
        most = standing.largest()
        epsilon = most * (1.0 if step == n_steps - 1 else rng.choice([0.3, 0.9]))
        assert standing.admits(epsilon)
        standing = standing.after(epsilon)
        spent.append(epsilon)
        check(spent, standing)
    assert standing.is_over
    assert standing.largest() == 0.0


@pytest.mark.long
def test_spending_the_largest_budget_at_every_step_keeps_the_reserve():
    """Budgets that reach the level to the last digit leave the reserve admissible."""
    adversary = next(estimate_adversaries(sleep_sample()))
    reserve = tdp.sustainable_budget(adversary, alpha=1.0)
    standing = ExactFilter.at_start(adversary, alpha=1.0, reserve=reserve)
    assert reserve * (1.0 - 1e-9) <= standing.reserve <= reserve
    spent = []
    for _ in range(40):
        spent.append(standing.largest())
        assert spent[-1] >= standing.reserve
        standing = standing.after(spent[-1])
    found = worst(adversary, tailed(spent, standing, 200))
    assert 1.0 - 2e-11 <= found <= 1.0


# Tightness


def largest_by_series(adversary, spent, reserve, alpha, *, steps):
    """The largest next budget, by bisection over the whole series."""
    low, high = 0.0, alpha
    while high - low > 1e-10 * high:
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if worst(adversary, [*spent, middle, *([reserve] * steps)]) <= alpha else (low, middle)
        )
    return low


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_remaining_budget_is_the_largest_that_the_series_allows(seed):
    rng = np.random.default_rng(200 + seed)
    n = int(rng.integers(2, 6))
    adversary = mixing_adversary(rng, n, ("both", "backward", "forward")[seed % 3])
    reserve = tdp.sustainable_budget(adversary, alpha=1.0) * (0.9 if seed % 2 else 0.0)
    standing = ExactFilter.at_start(adversary, alpha=1.0, reserve=reserve)
    assert standing.reserve == reserve
    spent = []
    for step in range(7):
        if step in (2, 6):
            largest = largest_by_series(adversary, spent, reserve, 1.0, steps=200 if reserve else 0)
            assert standing.largest() == pytest.approx(largest, rel=1e-9, abs=1e-9)
        epsilon = standing.largest() * rng.uniform(0.3, 0.95)
        spent.append(epsilon)
        standing = standing.after(epsilon)


@pytest.mark.parametrize("seed", range(3))
def test_papers_bound_admits_no_more_under_the_same_reserve(seed):
    """Alone, the paper's filter keeps a smaller reserve and may admit more at first, so reserves are compared too."""
    rng = np.random.default_rng(400 + seed)
    adversary = mixing_adversary(rng, 3, ("both", "backward", "forward")[seed])
    reserve = tdp.TemporalAccountant(adversary, alpha=1.0, accounting=tdp.PaperBound()).reserve
    assert reserve <= tdp.TemporalAccountant(adversary, alpha=1.0).reserve
    exact, paper = (
        tdp.TemporalAccountant(adversary, alpha=1.0, reserve=reserve, accounting=method_of(bound))
        for bound in ("exact", "paper")
    )
    for share in rng.choice([0.0, 0.3, 1.0], 8):
        granted = paper.remaining()
        assert granted <= exact.remaining() * (1.0 + 1e-10)
        for accountant in (exact, paper):
            accountant.spend(share * granted * (1.0 - 1e-10))


@pytest.mark.long
def test_last_step_may_use_the_reserve():
    adversary = next(estimate_adversaries(sleep_sample()))
    standing = ExactFilter.at_start(adversary, alpha=1.0, reserve=0.14)
    spent = [0.1, 0.2, 0.14]
    for epsilon in spent:
        standing = standing.after(epsilon)
    largest = largest_by_series(adversary, spent, 0.0, 1.0, steps=0)
    assert standing.largest(last=True) == pytest.approx(largest, rel=1e-9)
    assert standing.largest() < 0.7 * largest
    assert ExactFilter.at_start(adversary, alpha=1.0).largest(last=True) == pytest.approx(1.0, rel=1e-15)


# Horizons, varying matrices, what is not known


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.long
def test_time_varying_matrices(seed):
    rng = np.random.default_rng(300 + seed)
    n, n_steps = int(rng.integers(2, 5)), 25
    few = [TransitionMatrix(0.7 * random_rows(n, rng) + 0.3 / n) for _ in range(3)]
    both = [[few[k] for k in rng.integers(0, 3, n_steps - 1)] for _ in range(2)]
    adversary = Adversary(both[0], both[1] if seed % 2 else few[0])
    standing = ExactFilter.at_start(adversary, alpha=1.0)
    spent = []
    for step in range(n_steps):
        if step in (5, n_steps - 2):
            largest = largest_by_series(adversary, spent, 0.0, 1.0, steps=n_steps - step - 1)
            assert standing.largest() == pytest.approx(largest, rel=1e-9)
        spent.append(standing.largest() * rng.uniform(0.0, 0.9))
        standing = standing.after(spent[-1])
        assert worst(adversary, [*spent, *([0.0] * (n_steps - step - 1))]) <= 1.0


def test_a_reserve_beside_matrices_that_vary_is_refused():
    """It would be certified as if the last matrix stayed."""
    calm, busy = (TransitionMatrix([[stay, 1.0 - stay], [1.0 - stay, stay]]) for stay in (0.6, 0.9))
    for varying in (Adversary([busy, calm]), Adversary(tdp.Periodic([busy, calm]))):
        for method in (tdp.Exact(), tdp.PaperBound()):
            with pytest.raises(tdp.BudgetError, match="one matrix for each direction"):
                tdp.TemporalAccountant(varying, alpha=1.0, horizon=3, reserve=0.1, accounting=method)
            assert tdp.TemporalAccountant(varying, alpha=1.0, horizon=3, reserve=0.0, accounting=method).reserve == 0.0


def test_filter_without_correlations_admits_alpha_at_every_step():
    standing = ExactFilter.at_start(Adversary(), alpha=1.0, reserve=0.3)
    for _ in range(3):
        assert standing.largest() == 1.0
        assert standing.admits(1.0)
        assert not standing.admits(1.0 + 1e-12)
        standing = standing.after(1.0)


# The reserve


@pytest.mark.parametrize(
    "n_steps", [20, pytest.param(60, marks=pytest.mark.long), pytest.param(1_000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "matrix", [RING, STAYS, TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])], ids=["ring", "stays", "two"]
)
def test_reserve_is_always_admitted(matrix, n_steps):
    """The paper's bound has no sustainable budget on the ring, whose rows are disjoint."""
    adversary = Adversary(matrix, matrix)
    reserve = tdp.sustainable_budget(adversary, alpha=1.0)
    assert reserve > 0.0
    rng = np.random.default_rng(1)
    standing = ExactFilter.at_start(adversary, alpha=1.0, reserve=reserve)
    spent = []
    for step in range(n_steps):
        epsilon = standing.largest() if step % 100 == 7 else standing.reserve * (1.0 if step % 3 else rng.random())
        assert standing.admits(epsilon)
        standing = standing.after(epsilon)
        spent.append(epsilon)
    assert standing.keeps_reserve
    assert worst(adversary, tailed(spent, standing, n_steps)) <= 1.0


@pytest.mark.long
@pytest.mark.parametrize(
    ("backward", "forward", "alpha"),
    [
        (
            [
                [0.9925, 0.0053, 0.0022, 0.0],
                [0.0, 0.0, 0.9919, 0.0081],
                [0.007, 0.0015, 0.0, 0.9915],
                [0.0002, 0.9922, 0.0076, 0.0],
            ],
            [[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0005, 0.9995], [0.303, 0.006, 0.0, 0.691], [0.0001, 0.0744, 0.9255, 0.0]],
            1.0,
        ),
        (
            [[0.99899, 0.00019, 0.00082], [0.00004, 0.99957, 0.00039], [0.00041, 0.0006, 0.99899]],
            [[0.00189, 0.00108, 0.99703], [0.0, 0.99888, 0.00112], [0.96056, 0.03314, 0.0063]],
            1.0,
        ),
    ],
)  # fmt: skip
def test_reserve_of_a_nearly_deterministic_chain_is_found_quickly(backward, forward, alpha):
    """Rollouts of thousands of steps, for which earlier versions took minutes."""
    adversary = Adversary(TransitionMatrix(backward), TransitionMatrix(forward))
    start = time.process_time()
    accountant = tdp.TemporalAccountant(adversary, alpha=alpha)
    reserve = accountant.reserve
    assert time.process_time() - start < 120.0
    assert worst(adversary, [reserve] * 300) <= alpha
    assert accountant.remaining() >= reserve


def test_too_large_a_reserve_is_refused():
    adversary = Adversary(RING, RING)
    most = tdp.sustainable_budget(adversary, alpha=1.0)
    for asked in (1.001 * most, 2.0, 1e3):
        with pytest.raises(BudgetError, match="reserve"):
            ExactFilter.at_start(adversary, alpha=1.0, reserve=asked)


# What was spent all the same


def test_budget_that_is_not_admitted_is_still_counted():
    adversary = next(estimate_adversaries(sleep_sample()))
    start = ExactFilter.at_start(adversary, alpha=1.0, reserve=0.14)
    most, last = start.largest(), start.largest(last=True)
    assert most < 0.8 < last
    strained = start.after(0.8)
    assert not strained.keeps_reserve
    assert not strained.broken
    assert strained.reserve == 0.0
    assert strained.admits(0.0)
    later, spent = strained, [0.8]
    while not later.keeps_reserve:
        assert later.largest() <= 1.0
        later = later.after(0.0)
        spent.append(0.0)
    assert later.admits(0.14)
    assert worst(adversary, [*spent, *([0.14] * 100)]) <= 1.0
    broken = start.after(1.5)
    assert broken.broken
    for _ in range(3):
        assert broken.largest() == 0.0
        assert broken.largest(last=True) == 0.0
        assert broken.admits(0.0)
        assert not broken.admits(1e-6)
        broken = broken.after(0.1)


def test_filter_state_is_immutable_and_can_be_pickled():
    adversary = next(estimate_adversaries(sleep_sample()))
    start = ExactFilter.at_start(adversary, alpha=1.0, reserve=0.14)
    one = start.after(0.2)
    copy = pickle.loads(pickle.dumps(one))
    assert start.n_steps == 0
    assert start.largest() > one.largest()
    assert copy.after(0.1).largest() == one.after(0.1).largest()


@pytest.mark.long
def test_filter_state_does_not_grow_with_the_number_of_steps():
    matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    standing = ExactFilter.at_start(Adversary(matrix, matrix), alpha=1.0, reserve=0.2)
    sizes = []
    for _ in range(600):
        standing = standing.after(0.2)
        sizes.append(len(pickle.dumps(standing)))
    assert max(sizes[300:]) <= max(sizes[:300]) * 1.01
