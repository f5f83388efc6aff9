"""Many users at once leak what each leaks alone."""

from __future__ import annotations

import numpy as np
import pytest
from temporaldp.accounting.exact.population import exact_population, worth_the_kernel

import oracles
from exact_oracles import boxes_of, defined_by_sign_rule
from temporaldp import Adversary, PaperBound, TransitionMatrix, temporal_leakage
from temporaldp.accounting.exact import population as module
from temporaldp.accounting.exact.evidence import ExactLeakage

pytest.importorskip("numba")

pytestmark = pytest.mark.long  # the kernel of whole populations takes half a minute to compile

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
        Adversary(TransitionMatrix(rows(rng, n, kind)), TransitionMatrix(rows(rng, n, kind)), name=kind)
        for kind in kinds
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


def assert_same(users, spent):
    """Each user's numbers, from both sides, against the way of one user."""
    found = exact_population(users, spent)
    assert (found.attained <= found.proved).all()
    for row, one in zip(found.which, users, strict=True):
        alone = temporal_leakage(one, spent)
        for k, direction in enumerate(DIRECTIONS):
            low, high = getattr(alone.attained, direction), getattr(alone, direction)
            # Neither way attains more than the other proves.
            assert (found.attained[row, k] <= high).all()
            assert (low <= found.proved[row, k]).all()
            # Where next to nothing is left of what older steps published, rounding is what keeps the sides apart.
            tolerance = 1e-12 * high + 4.0 * (high - low) + 1e-13
            assert (np.abs(found.proved[row, k] - high) <= tolerance).all(), one.name
            assert (np.abs(found.attained[row, k] - low) <= tolerance).all(), one.name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constant", "large", "small", "varying", "ends", "late"])
@pytest.mark.parametrize(("n", "n_steps"), [(2, 60), (3, 20), (5, 12)])
def test_many_users_leak_what_each_leaks_alone(rng, n, n_steps, kind):
    users = people(rng, n, ["dirichlet", "sparse", "stays", "identity", "even", "ring"])
    assert_same(users, budgets(rng, n_steps, kind))


@pytest.mark.parametrize(("n", "n_steps", "kind"), [(8, 30, "constant"), (9, 25, "varying"), (12, 40, "constant")])
def test_with_more_pairs_than_are_all_solved(rng, n, n_steps, kind):
    assert_same(people(rng, n, ["dirichlet", "sparse", "stays"])[:5], budgets(rng, n_steps, kind))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_steps", "epsilon"), [(3, 200, 0.1), (4, 200, 1e-4), (9, 150, 0.1), (10, 250, 0.1)])
def test_steps_that_share_an_answer_leak_what_each_leaks_alone(rng, n, n_steps, epsilon):
    users = people(rng, n, ["dirichlet", "even"])
    assert_same(users, np.full(n_steps, epsilon))
    found = exact_population(users[:1], np.full(n_steps, epsilon))
    # Far from both ends a step's answer is that of any other: to the last bit, as it is one.
    middle = slice(n_steps // 2 - 2, n_steps // 2 + 2)
    for one in (found.proved, found.attained, found.pairs):
        assert (one[0, 0, middle] == one[0, 0, -1]).all()
        assert (one[0, 1, middle] == one[0, 1, 0]).all()
        assert (one[0, 2, middle] == one[0, 2, middle][0]).all()


def test_fewer_rows_change_no_number(rng):
    """The last row of few stands for any number of steps: what is proved there holds of long series, what is attained too."""
    users = people(rng, 10, ["dirichlet"] * 2)[:3]
    for n_steps in (70, 100, 200):
        few = exact_population(users, np.full(n_steps, 0.2))
        nearly = np.full(n_steps, 0.2)
        nearly[::2] = np.nextafter(0.2, 1.0)  # no two windows alike: every step is solved
        every = exact_population(users, nearly)
        assert (few.attained <= every.proved * (1.0 + 1e-15)).all()
        assert (every.attained <= few.proved * (1.0 + 1e-14)).all()
        np.testing.assert_allclose(few.proved, every.proved, rtol=2e-12)  # proofs of varied budgets are less close


@pytest.mark.parametrize("kind", ["dirichlet", "sparse"])
def test_a_settled_series_against_sixty_digits(rng, kind):
    n, n_steps, epsilon = 3, 100, 0.3
    past, future = (rows(rng, n, kind) for _ in range(2))
    found = exact_population([Adversary(TransitionMatrix(past), TransitionMatrix(future))], np.full(n_steps, epsilon))
    low, high = boxes_of(np.full(n_steps - 1, epsilon), n)
    last = np.max(defined_by_sign_rule([past] * (n_steps - 1), low, high)) + epsilon
    first = np.max(defined_by_sign_rule([future] * (n_steps - 1), low, high)) + epsilon
    for (k, step), expected in {(0, -1): last, (1, 0): first}.items():
        assert found.attained[0, k, step] <= expected + 1e-14 <= found.proved[0, k, step] + 2e-14
        assert found.proved[0, k, step] == pytest.approx(expected, rel=1e-12)
    before, after = (
        defined_by_sign_rule([one] * m, *boxes_of(np.full(m, epsilon), n)) for one, m in ((past, 50), (future, 49))
    )
    both = np.max((before + after)[~np.eye(n, dtype=bool)]) + epsilon
    assert found.attained[0, 2, 50] <= both + 1e-14 <= found.proved[0, 2, 50] + 2e-14
    assert found.proved[0, 2, 50] == pytest.approx(both, rel=1e-12)


@pytest.mark.parametrize("n_steps", [1, 2])
def test_hardly_any_steps(rng, n_steps):
    assert_same(people(rng, 3, ["dirichlet", "identity"]), np.full(n_steps, 0.2))


@pytest.mark.parametrize("kind", ["dirichlet", "sparse", "stays"])
def test_it_is_the_leakage_of_the_definition(rng, kind):
    for n, n_steps in ((2, 5), (3, 4)):
        users = people(rng, n, [kind] * 3)[:3]
        spent = rng.uniform(0.05, 1.0, n_steps)
        found = exact_population(users, spent)
        for row, one in zip(found.which, users, strict=True):
            pasts, futures = ([matrix.dense()] * (n_steps - 1) for matrix in (one.backward, one.forward))
            for k, expected in enumerate(oracles.defined_leakage(pasts, futures, spent)):
                np.testing.assert_allclose(found.proved[row, k], expected, rtol=1e-12)
                np.testing.assert_allclose(found.attained[row, k], expected, rtol=1e-12)


def test_the_series_of_many_users_takes_the_kernel(rng, monkeypatch):
    users = people(rng, 4, ["dirichlet", "sparse", "stays"] * 3)
    users = {f"{number} {one.name}": one for number, one in enumerate(users)}
    spent = np.full(15, 0.2)
    slow = temporal_leakage(users, spent)
    monkeypatch.setattr(module, "WORTH_COMPILING", 1)
    monkeypatch.setenv("TEMPORALDP_KERNELS", "numba")
    fast = temporal_leakage(users, spent)
    assert isinstance(fast.worst_member.evidence, module.MemberLeakage)
    assert fast.worst_user == slow.worst_user
    assert fast.worst_pair() == slow.worst_pair()
    np.testing.assert_allclose(fast.temporal, slow.temporal, rtol=2e-12)
    np.testing.assert_allclose(fast.attained.temporal, slow.attained.temporal, rtol=2e-12)
    assert fast.members[-1].evidence is None  # nothing is known of that user
    assert not fast.members[0].temporal.flags.writeable


def test_each_member_can_tell_more(rng, monkeypatch):
    users = people(rng, 4, ["dirichlet"])
    monkeypatch.setattr(module, "WORTH_COMPILING", 1)
    monkeypatch.setenv("TEMPORALDP_KERNELS", "numba")
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
                assert member.evidence.worst_pair(step, direction) == alone.worst_pair(step, direction)
            here, there = member.evidence.witness(step), alone.witness(step)
            assert (here.value, here.other_value) == (there.value, there.other_value)
            assert here.leakage == pytest.approx(there.leakage, rel=1e-12)
            assert (here.high == there.high).all()


def test_when_leakage_does_not_settle_the_kernel_gives_up_and_says_what_is_known(rng, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_ALONE", 20)
    user, spent = people(rng, 4, ["stays"])[0], np.full(100, 0.1)
    found, paper = exact_population([user], spent), temporal_leakage(user, spent, accounting=PaperBound())
    for k, direction in enumerate(DIRECTIONS):
        np.testing.assert_allclose(found.proved[0, k], getattr(paper, direction), rtol=1e-12)
    assert (found.attained == spent).all()
    expected = temporal_leakage(user, spent)
    monkeypatch.setattr(module, "WORTH_COMPILING_ALONE", 1)
    monkeypatch.setenv("TEMPORALDP_KERNELS", "numba")
    assert worth_the_kernel([user], spent)
    np.testing.assert_allclose(temporal_leakage(user, spent).temporal, expected.temporal, rtol=1e-12)


def test_when_it_applies(rng, monkeypatch):
    monkeypatch.setenv("TEMPORALDP_KERNELS", "numba")
    one = people(rng, 20, ["dirichlet"])[:1]
    assert worth_the_kernel(one, np.full(1_000, 0.1))
    assert not worth_the_kernel(one, rng.uniform(0.1, 0.2, 1_000))  # settles nowhere
    many = people(rng, 5, ["dirichlet"]) * 30
    spent = np.full(47, 0.1)
    assert worth_the_kernel(many, spent)
    assert not worth_the_kernel(many[:2], spent)  # not worth loading
    assert not worth_the_kernel(many, np.zeros(47))
    assert not worth_the_kernel(many, np.full(47, 10.0))  # ratios would leave the range of doubles
    varying = Adversary((TransitionMatrix(np.eye(5)),) * 46)
    assert not worth_the_kernel([*many, varying], spent)
    assert not worth_the_kernel([*many, Adversary(TransitionMatrix(np.eye(4)))], spent)
    monkeypatch.setenv("TEMPORALDP_KERNELS", "numpy")
    assert not worth_the_kernel(many, spent)


def test_a_user_whom_the_kernel_gives_up_is_asked_about_again(kernels):
    """Values that hardly ever change, large budgets: the kernel's sides were far apart (48.5 proved, 14.3 true)."""
    if kernels == "numpy":
        pytest.skip("there is no kernel of populations in NumPy")
    rng = np.random.default_rng(3)
    n, spent = 11, np.full(60, 1.4)
    users = []
    for _ in range(9):
        rows_ = 0.95 * np.eye(n) + 0.05 * rng.dirichlet(np.full(n, 0.3), n)
        users.append(Adversary(TransitionMatrix(rows_ / rows_.sum(axis=1, keepdims=True)), None))
    assert worth_the_kernel(users, spent)
    series = temporal_leakage(users, spent)
    for member, one in zip(series.members, users, strict=True):
        alone = temporal_leakage(one, spent)
        np.testing.assert_allclose(member.temporal, alone.temporal, rtol=2e-9)
