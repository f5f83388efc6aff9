"""Leakage of mechanisms with finitely many outputs, against sums over all paths of states and sequences of outputs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    Exact,
    GaussianNoise,
    InputError,
    LaplaceNoise,
    Mechanism,
    OutputTable,
    PaperBound,
    Periodic,
    PrivacyGuarantee,
    RandomizedResponse,
    TemporalAccountant,
    TransitionMatrix,
    leakage_supremum,
    load_leakage,
    save_leakage,
    temporal_leakage,
)
from temporaldp.base.errors import StateError
from temporaldp.core.accounting.exact.outputs import FiniteOutputs

WALK = TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
WALKER = Adversary.from_forward(WALK)


def enumerated(matrices, initial, tables):
    """Leakage of each step: the largest log ratio over two states, of the likelihood of every sequence of outputs."""
    n, n_steps = len(initial), len(tables)
    paths = np.array(list(itertools.product(range(n), repeat=n_steps)))
    chance = np.array(
        [initial[p[0]] * math.prod(m[a, b] for m, a, b in zip(matrices, p, p[1:], strict=False)) for p in paths]
    )
    worst = np.zeros(n_steps)
    for outputs in itertools.product(*(range(table.shape[1]) for table in tables)):
        joint = chance * np.prod(
            [table[paths[:, t], o] for t, (table, o) in enumerate(zip(tables, outputs, strict=True))], axis=0
        )
        for t in range(n_steps):
            known = np.array([joint[paths[:, t] == k].sum() / chance[paths[:, t] == k].sum() for k in range(n)])
            worst[t] = max(worst[t], math.log(known.max() / known.min()))
    return worst


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(12, 80))])
def test_every_sequence_of_outputs(seed):
    rng = np.random.default_rng(seed)
    n, n_steps = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    matrices = [rng.dirichlet(np.full(n, rng.choice([0.5, 2.0])), size=n) for _ in range(n_steps - 1)]
    initial = rng.dirichlet(np.ones(n))
    tables = [rng.dirichlet(np.full(int(rng.integers(2, 4)), 3.0), size=n) for _ in range(n_steps)]
    adversary = Adversary.from_forward(matrices, initial=initial)
    found = temporal_leakage(adversary, [Mechanism.from_outputs(table) for table in tables])
    true = enumerated(matrices, initial, tables)
    assert found.accounting.name == "outputs"
    assert (found.temporal >= true * (1.0 - 1e-12)).all()
    assert found.temporal == pytest.approx(true, abs=1e-8)
    assert (found.attained.temporal <= true * (1.0 + 1e-12)).all()


@pytest.mark.parametrize("seed", range(8))
def test_a_mechanism_leaks_no_more_than_any_with_its_epsilon(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    adversary = Adversary.from_forward(rng.dirichlet(np.ones(n), size=n))
    releases = [Mechanism.from_outputs(rng.dirichlet(np.full(3, 5.0), size=n)) if k % 3 else None for k in range(12)]
    found = temporal_leakage(adversary, releases)
    any_mechanism = temporal_leakage(adversary, [0.0 if one is None else one.pure_epsilon for one in releases])
    assert (found.temporal <= any_mechanism.temporal * (1.0 + 1e-12)).all()
    assert found.worst < any_mechanism.worst
    assert found.attained.temporal == pytest.approx(found.temporal, rel=1e-3)


def test_two_states_and_randomised_response_attain_the_leakage_of_any_mechanism():
    response = temporal_leakage(WALKER, [RandomizedResponse(0.5)] * 20)
    assert response.temporal == pytest.approx(temporal_leakage(WALKER, [0.5] * 20).temporal, rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_a_supremum_is_approached_and_never_exceeded(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    adversary = Adversary.from_forward(rng.dirichlet(np.ones(n), size=n))
    release = Mechanism.from_outputs(rng.dirichlet(np.full(3, 5.0), size=n))
    limits, series = leakage_supremum(adversary, release), temporal_leakage(adversary, [release] * 40)
    assert series.attained.temporal.max() <= limits.temporal <= series.worst * (1.0 + 1e-3)
    assert limits.backward >= series.attained.backward.max()


def test_a_supremum_of_states_that_are_never_left_is_not_bounded():
    stuck = TransitionMatrix(np.eye(2))
    assert leakage_supremum(Adversary(stuck, stuck), RandomizedResponse(0.5)).temporal == math.inf
    assert leakage_supremum(Adversary(), RandomizedResponse(0.5)).temporal == pytest.approx(0.5)


def test_any_pure_mechanism_counts_by_its_epsilon():
    laplace = LaplaceNoise(20.0, sensitivity=1.0, coordinates=2)
    given = [laplace, PrivacyGuarantee(0.1), None, 0.1, (laplace, laplace)]
    for method in (Exact(), PaperBound()):
        found = temporal_leakage(WALKER, given, accounting=method)
        assert found.epsilons == pytest.approx([0.1, 0.1, 0.0, 0.1, 0.2], rel=1e-12)
    accountant = TemporalAccountant(WALKER, alpha=1.0)
    accountant.spend(RandomizedResponse(0.1))
    assert accountant.spent == pytest.approx([0.1])
    # beside other mechanisms, a table counts by its epsilon too
    mixed = temporal_leakage(WALKER, [RandomizedResponse(0.1), 0.1])
    assert mixed.temporal == pytest.approx(temporal_leakage(WALKER, [0.1, 0.1]).temporal)


def test_a_budget_of_zero_is_a_step_without_a_release():
    chain = TransitionMatrix([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    answer = OutputTable([[0.6, 0.3, 0.1], [0.3, 0.3, 0.4], [0.2, 0.7, 0.1]])
    none, zero = (temporal_leakage(Adversary(chain, chain), [answer, one, answer]) for one in (None, 0))
    assert zero.temporal.tolist() == none.temporal.tolist() and zero.accounting.name == none.accounting.name
    assert zero.temporal[1] < temporal_leakage(Adversary(chain, chain), [answer, 1e-9, answer]).temporal[1]


@pytest.mark.parametrize("other", [OutputTable([[1.0, 0.0], [0.5, 0.5]]), 0.5, GaussianNoise(3.0, sensitivity=1.0)])
def test_what_has_no_likelihoods_is_never_taken_for_no_release(other):
    """The method of one series, used for another one: what it cannot count would otherwise leak nothing."""
    chain = TransitionMatrix([[0.9, 0.1], [0.1, 0.9]])
    method = temporal_leakage(Adversary(chain, chain), [RandomizedResponse(0.5)] * 2).accounting
    with pytest.raises(InputError, match="expected tables of outputs"):
        temporal_leakage(Adversary(chain, chain), [other] * 3, accounting=method)


def test_a_delta_of_zero_is_exact():
    assert ApproximateDP(0.0) == Exact() == ApproximateDP(0)
    assert temporal_leakage(WALKER, [0.1] * 3, accounting=ApproximateDP(0)).accounting == Exact()


def test_what_is_not_pure_or_has_other_states_is_refused():
    with pytest.raises(BudgetError, match=r"pure epsilon at step 1.*ApproximateDP"):
        temporal_leakage(WALKER, [0.1, GaussianNoise(10.0, sensitivity=1.0)])
    certain = Mechanism.from_outputs([[0.5, 0.5], [1.0, 0.0]])
    with pytest.raises(BudgetError, match="pure epsilon"):
        temporal_leakage(WALKER, [certain] * 3)
    with pytest.raises(StateError, match="3 rows"):
        temporal_leakage(WALKER, [Mechanism.from_outputs(np.full((3, 2), 0.5))] * 3)


def test_results_are_kept_in_files(tmp_path):
    found = temporal_leakage(WALKER, [RandomizedResponse(0.3)] * 4)
    save_leakage(found, tmp_path / "leakage.json")
    assert load_leakage(tmp_path / "leakage.json").temporal == pytest.approx(found.temporal)
    assert found.evidence.worst_pair(2) in {("0", "1"), ("1", "0")}


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 60))])
def test_states_that_answer_nearly_alike_lose_no_extreme_sequence(seed):
    """Vectors that lie nearly in a plane, of which a convex hull in doubles drops corners."""
    rng = np.random.default_rng(seed)
    n, m, n_steps = int(rng.integers(3, 6)), int(rng.integers(2, 4)), 6
    noise = 10.0 ** -rng.uniform(8.0, 16.0)
    matrix = 0.999 * np.eye(n) + 0.001 * rng.dirichlet(np.ones(n), size=n)
    if seed % 2:
        matrix = rng.dirichlet(np.ones(2), size=n) @ rng.dirichlet(np.ones(n), size=2)
    kinds = rng.dirichlet(np.ones(m), size=2)[(np.arange(n) == 0).astype(int)]
    table = kinds * np.exp(noise * rng.uniform(-1.0, 1.0, size=(n, m)))
    table /= table.sum(axis=1, keepdims=True)
    walk = TransitionMatrix(matrix, normalize=True)
    found = temporal_leakage(Adversary(walk), [Mechanism.from_outputs(table)] * n_steps)
    vectors = np.ones((1, n))
    for step in range(n_steps):
        seen = (table.T[:, None, :] * vectors[None]).reshape(-1, n)
        true = float(np.log(seen.max(axis=1) / seen.min(axis=1)).max())
        assert true * (1.0 - 1e-12) <= found.backward[step] <= true + 1e-6
        vectors = seen @ walk.dense().T


def test_corners_that_a_hull_dropped():
    """Four states that answer exactly alike: 2.5580 nats by the first output six times, of which 1.9682 were found."""
    kept, others = [0.107, 0.429, 0.464], [0.07, 0.505, 0.425]
    walk = TransitionMatrix(0.9990 * np.eye(5) + 0.0002, normalize=True)
    table = Mechanism.from_outputs([kept, others, others, others, others])
    vector = np.ones(5)
    for step in range(6):
        vector = table.probabilities[:, 0] * (walk.dense() @ vector if step else vector)
    found = temporal_leakage(Adversary(walk), [table] * 6)
    assert found.backward[-1] >= math.log(vector.max() / vector.min()) * (1.0 - 1e-12)


def test_responses_for_other_states_are_refused_and_extreme_ones_count_by_their_epsilon():
    with pytest.raises(StateError, match="3 rows"):
        temporal_leakage(WALKER, [RandomizedResponse(0.5, 3)] * 2)
    assert temporal_leakage(WALKER, [RandomizedResponse(800.0)]).worst == pytest.approx(800.0)
    assert (
        temporal_leakage(WALKER, [RandomizedResponse(1e-12)] * 3).worst >= temporal_leakage(WALKER, [1e-12] * 3).worst
    )


def test_several_mechanisms_at_one_step_are_one_step_of_an_accountant():
    pair = (PrivacyGuarantee(0.1), PrivacyGuarantee(0.1))
    accountant = TemporalAccountant(WALKER, alpha=1.0).spend(pair)
    assert accountant.spent == pytest.approx([0.2])
    assert TemporalAccountant(WALKER, alpha=1.0).spend((0.1, 0.1)).spent == pytest.approx([0.1, 0.1])


def test_tables_of_three_states_on_a_clock_and_of_no_step():
    rows = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    busy, calm = TransitionMatrix(rows), TransitionMatrix(np.full((3, 3), 1 / 3))
    clock = Adversary(Periodic([busy, calm]))
    found = leakage_supremum(clock, RandomizedResponse(0.5, 3))
    assert found.worst == pytest.approx(leakage_supremum(clock, 0.5).worst, rel=1e-9)
    with pytest.raises(InputError, match="expected tables of outputs"):
        temporal_leakage(WALKER, [None] * 3, accounting=FiniteOutputs())
