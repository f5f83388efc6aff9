"""Many users at once leak what each leaks alone."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
from exact_oracles import boxes_of, defined_by_sign_rule
from temporaldp import Adversary, TransitionMatrix, temporal_leakage
from temporaldp.core.accounting.exact.evidence import ExactLeakage

pytestmark = pytest.mark.long

DIRECTIONS = ("backward", "forward", "temporal")


def rows(rng, n, kind):
    """A random transition matrix of one kind."""
    matrix = rng.dirichlet(np.full(n, 0.4 if kind == "sparse" else 1.0), size=n)
    if kind == "sparse":
        matrix[matrix < 0.1] = 0.0
    elif kind == "stays":
        matrix = 0.7 * np.eye(n) + 0.3 * matrix
    elif kind == "identity":
        matrix = np.eye(n)
    elif kind == "even":
        matrix = np.tile(matrix[0], (n, 1))
    elif kind == "ring":
        matrix = 0.6 * np.eye(n) + 0.2 * (np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))
    return matrix / matrix.sum(axis=1, keepdims=True)


def people(rng, n, kinds):
    """One user for each kind, with two matrices; then one with one matrix both ways, and two who are half known."""
    users = [
        Adversary(TransitionMatrix(rows(rng, n, kind)), TransitionMatrix(rows(rng, n, kind)), name=f"{kind} {k}")
        for k, kind in enumerate(kinds)
    ]
    shared, other = (TransitionMatrix(rows(rng, n, "dirichlet")) for _ in range(2))
    users += [Adversary(shared, shared, name="shared"), Adversary(shared, None, name="past")]
    users += [Adversary(None, other, name="future"), Adversary(shared, other, name="both"), Adversary(name="nothing")]
    return users


def budgets(rng, n_steps, kind):
    """Epsilons of one kind."""
    spent = np.full(n_steps, 0.1)
    if kind == "large":
        spent[:] = 1.5
    elif kind == "small":
        spent[:] = 1e-6
    elif kind == "varying":
        spent = rng.uniform(0.0, 0.4, n_steps)
        spent[rng.random(n_steps) < 0.3] = 0.0
    elif kind == "ends":
        spent[0], spent[-1] = 0.5, 0.3
    elif kind == "late":
        spent[: n_steps // 2] = 0.0
    return spent


def both_sides(series, direction):
    """Attained and proved of a series."""
    return getattr(series.attained, direction), getattr(series, direction)


def assert_same(users, spent):
    """Each user's numbers, from both sides, against the computation of one user."""
    for member, one in zip(temporal_leakage(users, spent).members, users, strict=True):
        alone = temporal_leakage(one, spent)
        for direction in DIRECTIONS:
            attained, proved = both_sides(member, direction)
            low, high = both_sides(alone, direction)
            assert (attained <= proved).all()
            # Neither computation attains more than the other proves.
            assert (attained <= high).all()
            assert (low <= proved).all()
            # Where next to nothing is left of what older steps published, rounding is what keeps the sides apart.
            tolerance = 1e-12 * high + 4.0 * (high - low) + 1e-13
            assert (np.abs(proved - high) <= tolerance).all(), one.name
            assert (np.abs(attained - low) <= tolerance).all(), one.name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constant", "large", "small", "varying", "ends", "late"])
@pytest.mark.parametrize(("n", "n_steps"), [(2, 60), (3, 20), (5, 12)])
def test_leakage_of_many_users_equals_that_of_each_alone(rng, n, n_steps, kind):
    users = people(rng, n, ["dirichlet", "sparse", "stays", "identity", "even", "ring"])
    assert_same(users, budgets(rng, n_steps, kind))


@pytest.mark.parametrize(("n", "n_steps", "kind"), [(8, 30, "constant"), (9, 25, "varying"), (12, 40, "constant")])
def test_populations_with_more_pairs_than_are_solved(rng, n, n_steps, kind):
    assert_same(people(rng, n, ["dirichlet", "sparse", "stays"])[:5], budgets(rng, n_steps, kind))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_steps", "epsilon"), [(3, 200, 0.1), (4, 200, 1e-4), (9, 150, 0.1), (10, 250, 0.1)])
def test_steps_with_a_shared_solution_equal_those_of_each_user_alone(rng, n, n_steps, epsilon):
    users = people(rng, n, ["dirichlet", "even"])
    assert_same(users, np.full(n_steps, epsilon))
    found = temporal_leakage(users, np.full(n_steps, epsilon)).members[0]
    # Far from both ends a step's answer is that of any other, but for rounding.
    middle = slice(n_steps // 2 - 2, n_steps // 2 + 2)
    for one in (found, found.attained):
        np.testing.assert_allclose(one.backward[middle], one.backward[-1], rtol=1e-12)
        np.testing.assert_allclose(one.forward[middle], one.forward[0], rtol=1e-12)
        np.testing.assert_allclose(one.temporal[middle], one.temporal[middle][0], rtol=1e-12)


def test_shared_solutions_equal_those_computed_per_step(rng):
    """Budgets of which every second one is an ulp larger share no answers."""
    users = people(rng, 10, ["dirichlet"] * 2)[:3]
    for n_steps in (70, 100, 200):
        few = temporal_leakage(users, np.full(n_steps, 0.2))
        nearly = np.full(n_steps, 0.2)
        nearly[::2] = np.nextafter(0.2, 1.0)  # no two windows alike: every step is solved
        every = temporal_leakage(users, nearly)
        for one, other in zip(few.members, every.members, strict=True):
            for direction in DIRECTIONS:
                attained, proved = both_sides(one, direction)
                low, high = both_sides(other, direction)
                assert (attained <= high * (1.0 + 1e-15)).all()
                assert (low <= proved * (1.0 + 1e-14)).all()
                np.testing.assert_allclose(proved, high, rtol=2e-12)


@pytest.mark.parametrize("kind", ["dirichlet", "sparse"])
def test_converged_series_agrees_with_60_digit_arithmetic(rng, kind):
    n, n_steps, epsilon = 3, 100, 0.3
    past, future = (rows(rng, n, kind) for _ in range(2))
    user = Adversary(TransitionMatrix(past), TransitionMatrix(future))
    found = temporal_leakage([user, user], np.full(n_steps, epsilon)).members[0]
    low, high = boxes_of(np.full(n_steps - 1, epsilon), n)
    last = np.max(defined_by_sign_rule([past] * (n_steps - 1), low, high)) + epsilon
    first = np.max(defined_by_sign_rule([future] * (n_steps - 1), low, high)) + epsilon
    before, after = (
        defined_by_sign_rule([one] * m, *boxes_of(np.full(m, epsilon), n)) for one, m in ((past, 50), (future, 49))
    )
    both = np.max((before + after)[~np.eye(n, dtype=bool)]) + epsilon
    for direction, step, expected in (("backward", -1, last), ("forward", 0, first), ("temporal", 50, both)):
        attained, proved = both_sides(found, direction)
        assert attained[step] <= expected + 1e-14 <= proved[step] + 2e-14
        assert proved[step] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_steps", [1, 2])
def test_very_short_horizons(rng, n_steps):
    assert_same(people(rng, 3, ["dirichlet", "identity"]), np.full(n_steps, 0.2))


@pytest.mark.parametrize("kind", ["dirichlet", "sparse", "stays"])
def test_leakage_of_populations_equals_the_definition(rng, kind):
    for n, n_steps in ((2, 5), (3, 4)):
        users = people(rng, n, [kind] * 3)[:3]
        spent = rng.uniform(0.05, 1.0, n_steps)
        for found, one in zip(temporal_leakage(users, spent).members, users, strict=True):
            pasts, futures = ([matrix.dense()] * (n_steps - 1) for matrix in (one.backward, one.forward))
            expected = oracles.defined_leakage(pasts, futures, spent)
            for direction, true in zip(DIRECTIONS, expected, strict=True):
                for side in both_sides(found, direction):
                    np.testing.assert_allclose(side, true, rtol=1e-12)


def test_the_series_of_many_users_is_that_of_the_worst_at_every_step(rng):
    users = people(rng, 4, ["dirichlet", "sparse", "stays"] * 3)
    users = {f"{number} {one.name}": one for number, one in enumerate(users)}
    spent = np.full(15, 0.2)
    found = temporal_leakage(users, spent)
    each = {name: temporal_leakage(one, spent) for name, one in users.items()}
    assert found.worst_user == max(each, key=lambda name: each[name].worst)
    assert found.worst_pair() == each[found.worst_user].worst_pair()
    np.testing.assert_allclose(found.temporal, np.max([one.temporal for one in each.values()], axis=0), rtol=2e-12)
    assert found.members[-1].evidence is None  # nothing is known of that user
    assert not found.members[0].temporal.flags.writeable


def test_each_member_has_details(rng):
    users = people(rng, 4, ["dirichlet"])
    series = temporal_leakage(users, rng.uniform(0.0, 0.5, 12))
    for one, member in zip(users, series.members, strict=True):
        if one.states is None:
            continue
        alone = temporal_leakage(one, series.epsilons).evidence
        assert isinstance(member.evidence, ExactLeakage)
        assert repr(member.evidence) == repr(alone)
        for step in (0, 5, -1):
            for direction in DIRECTIONS:
                np.testing.assert_allclose(
                    member.evidence.metric(step, direction), alone.metric(step, direction), rtol=1e-10, atol=1e-13
                )
            here, there = member.evidence.witness(step), alone.witness(step)
            assert here.leakage == pytest.approx(there.leakage, rel=1e-12)
            if step == 5:  # at either end all pairs are alike to those who know one direction
                assert (here.state, here.other_state) == (there.state, there.other_state)
                assert (here.high == there.high).all()


def test_nearly_constant_states_under_large_budgets():
    rng = np.random.default_rng(3)
    n, spent = 11, np.full(60, 1.4)
    users = []
    for _ in range(9):
        rows_ = 0.95 * np.eye(n) + 0.05 * rng.dirichlet(np.full(n, 0.3), n)
        users.append(Adversary(TransitionMatrix(rows_ / rows_.sum(axis=1, keepdims=True)), None))
    series = temporal_leakage(users, spent)
    for member, one in zip(series.members, users, strict=True):
        alone = temporal_leakage(one, spent)
        np.testing.assert_allclose(member.temporal, alone.temporal, rtol=2e-9)
