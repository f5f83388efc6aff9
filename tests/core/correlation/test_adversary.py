"""Adversaries: what they know, and Bayes' rule from how a chain starts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

from making import around, random_correlation, strongest_correlation
from matrices import matrices
from temporaldp import (
    Adversary,
    InputError,
    IntervalMatrix,
    LikelihoodBox,
    OutputTable,
    Periodic,
    Trajectories,
    TransitionMatrix,
    estimate_adversary,
)
from temporaldp.base.errors import MatrixError, StateError

CHAIN = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], ["a", "b"])


@given(matrices(min_n=2, max_n=3, kinds=("integers",)), st.integers(2, 5), st.integers(0, 2**16))
def test_from_forward_gives_the_posterior_of_the_joint_distribution(matrix, horizon, seed):
    initial = np.random.default_rng(seed).dirichlet(np.ones(matrix.n_states))
    adversary = Adversary.from_forward(matrix, initial=initial, horizon=horizon)
    # Independent: the joint distribution of two neighbouring times, from the definition of the chain.
    marginal = initial
    for backward in adversary.backward.matrices:
        joint = np.einsum("x,xy->yx", marginal, matrix.dense())
        assert backward.dense() == pytest.approx(joint / joint.sum(axis=1, keepdims=True), rel=1e-10)
        marginal = joint.sum(axis=1)
    assert adversary.forward is matrix
    assert adversary.n_steps == horizon


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_from_a_stationary_start_the_backward_matrix_is_constant(stored):
    chain = TransitionMatrix(stored(random_correlation(4, rng=3).dense()))
    pi = chain.stationary_distribution()
    adversary = Adversary.from_forward(chain, initial=pi)
    assert isinstance(adversary.backward, TransitionMatrix)
    assert adversary.backward == chain.reversed(pi)
    assert adversary.n_steps is None


def test_from_forward_with_a_sequence():
    other = TransitionMatrix([[0.5, 0.5], [0.5, 0.5]], ["a", "b"])
    adversary = Adversary.from_forward([CHAIN, other], initial=[0.5, 0.5])
    assert adversary.backward.matrices[0] == CHAIN.reversed([0.5, 0.5])
    assert adversary.backward.matrices[1] == other.reversed([0.45, 0.55])
    with pytest.raises(InputError, match="serve 3 steps, but horizon is 5"):
        Adversary.from_forward([CHAIN, other], initial=[0.5, 0.5], horizon=5)


def test_from_forward_refuses_undetermined_matrices():
    with pytest.raises(InputError, match="not stationary"):
        Adversary.from_forward(CHAIN, initial=[0.5, 0.5])
    with pytest.raises(InputError, match="whole number of at least 2"):
        Adversary.from_forward(CHAIN, initial=[0.5, 0.5], horizon=1)
    with pytest.raises(InputError, match="got None"):
        Adversary.from_forward(None, initial=[0.5, 0.5])
    never = TransitionMatrix([[1.0, 0.0], [0.5, 0.5]])
    with pytest.raises(MatrixError, match="'1' cannot be reached"):
        Adversary.from_forward(never, initial=[1.0, 0.0], horizon=3)


def test_adversaries_are_checked():
    other = TransitionMatrix([[0.5, 0.5], [0.5, 0.5]], ["a", "c"])
    with pytest.raises(StateError, match="lacks 'b' and has 'c'"):
        Adversary(CHAIN, other)
    with pytest.raises(StateError, match="another order"):
        Adversary(CHAIN, TransitionMatrix([[0.5, 0.5], [0.5, 0.5]], ["b", "a"]))
    with pytest.raises(InputError, match="equally long"):
        Adversary([CHAIN], [CHAIN, CHAIN])
    with pytest.raises(InputError, match="is empty"):
        Adversary([])
    with pytest.raises(MatrixError, match="square"):
        Adversary([[0.5, 0.5]])
    with pytest.raises(InputError, match=r"got str \(item 0\)"):
        Adversary(["chain"])
    assert Adversary().states is None
    assert Adversary([CHAIN, CHAIN]).n_steps == 3


def test_slow_drift_is_not_treated_as_stationary():
    # One step moves the distribution by 1e-13, but for ever: the chain ends elsewhere.
    chain = TransitionMatrix([[1 - 1e-13, 1e-13], [1e-14, 1 - 1e-14]])
    start = np.array([1.0, 10**0.5]) / (1 + 10**0.5)
    with pytest.raises(InputError, match="not stationary"):
        Adversary.from_forward(chain, initial=start)
    pi = chain.stationary_distribution()
    assert isinstance(Adversary.from_forward(chain, initial=pi).backward, TransitionMatrix)


def test_every_start_of_a_chain_that_never_moves_is_stationary():
    adversary = Adversary.from_forward(strongest_correlation(3), initial=[0.2, 0.3, 0.5])
    assert adversary.backward == strongest_correlation(3)


def test_arrays_and_data_frames_become_matrices():
    table = [[0.8, 0.2], [0.1, 0.9]]
    wanted = TransitionMatrix(table)
    frame = pd.DataFrame(table, index=["a", "b"], columns=["a", "b"])
    for known in (table, np.array(table), pd.DataFrame(table)):
        assert Adversary(known).backward == Adversary(wanted).backward
    assert Adversary(forward=frame).states == ("a", "b")
    assert Adversary([np.array(table)] * 3).n_steps == Adversary([wanted] * 3).n_steps == 4


def test_a_chain_begins_with_its_stationary_distribution_unless_another_is_given():
    chain = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
    stationary = Adversary.from_forward(chain, initial=chain.stationary_distribution())
    assert Adversary.from_forward(chain).backward == stationary.backward
    with pytest.raises(InputError, match="distribution of the first state"):
        Adversary.from_forward([chain, chain])


CYCLE = TransitionMatrix([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]], ["a", "b", "c"])
"""With uniform stationary distribution; backwards it goes round the other way."""


def test_matrices_of_different_chains_contradict_each_other():
    home, work = TransitionMatrix([[0.9, 0.1], [0.4, 0.6]]), TransitionMatrix([[0.6, 0.4], [0.1, 0.9]])
    said = Adversary(home, work).contradiction
    assert "state '0' has the share 0.8 under the backward one and 0.2 under the forward one" in said


def test_one_matrix_for_both_directions_requires_a_reversible_chain():
    assert "Adversary.from_forward" in Adversary(CYCLE, CYCLE).contradiction
    other = TransitionMatrix(np.full((3, 3), 1.0 / 3.0), states=CYCLE.states)
    # It has the stationary distribution of CYCLE, and other pairs of successive states
    assert "of all pairs of successive states would differ" in Adversary(other, CYCLE).contradiction
    symmetric = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    assert Adversary(symmetric, symmetric).contradiction is None


def test_swapped_matrices_are_not_detected():
    right = Adversary.from_forward(CYCLE)
    swapped = Adversary(right.forward, right.backward)
    assert right.contradiction is swapped.contradiction is None
    again = Adversary.from_forward(swapped.forward)  # the same process in reverse
    np.testing.assert_allclose(again.backward.dense(), swapped.backward.dense(), atol=1e-12)


@pytest.mark.parametrize(
    "unknown",
    [
        Adversary(),
        Adversary(forward=CYCLE),
        Adversary([CYCLE, CYCLE], [CYCLE, CYCLE]),
        Adversary(CYCLE, around(CYCLE, width=0.1)),
        Adversary(TransitionMatrix(np.eye(3), CYCLE.states), CYCLE),
    ],
)
def test_adversary_with_one_direction_has_no_contradiction(unknown):
    assert unknown.contradiction is None


def test_estimates_of_a_stationary_process_do_not_contradict_each_other():
    rng = np.random.default_rng(0)
    codes = np.zeros((50, 40), dtype=np.int64)
    codes[:, 0] = rng.integers(3, size=50)
    for t in range(1, 40):
        codes[:, t] = [rng.choice(3, p=CYCLE.dense()[k]) for k in codes[:, t - 1]]
    found = estimate_adversary(Trajectories(codes, states=CYCLE.states))
    assert found.contradiction is None
    assert Adversary(found.forward, found.forward).contradiction is not None


def test_an_array_of_matrices_has_one_for_each_transition():
    each = np.array([[[0.8, 0.2], [0.2, 0.8]], [[0.6, 0.4], [0.1, 0.9]]])
    expected = Adversary([TransitionMatrix(one) for one in each], None)
    assert Adversary(each) == expected and expected.n_steps == 3
    assert Adversary(TransitionMatrix(one) for one in each) == expected
    with pytest.raises(
        MatrixError, match=r"square matrix, got shape \(2, 2, 2\); Adversary takes one matrix per transition"
    ):
        TransitionMatrix(each)


@pytest.mark.parametrize("phase", [0, 1, 2])
def test_backward_matrices_of_a_clock_are_those_of_its_stationary_chain(phase, rng):
    """By enumerating pairs of states of a chain that has run for 300 rounds of the clock."""
    rows = rng.dirichlet(np.ones(3), (3, 3))
    found = Adversary.from_forward(Periodic(rows, phase=phase))
    share = np.full(3, 1 / 3)
    for step in range(900):
        share = share @ rows[(phase + step) % 3]
    for step in range(7):
        joint = share[:, None] * rows[(phase + step) % 3]
        share = joint.sum(axis=0)
        assert found.backward.at(step).dense() == pytest.approx((joint / share).T, rel=1e-9)
        assert found.forward.at(step).dense() == pytest.approx(rows[(phase + step) % 3], rel=1e-12)
    assert found.period == 3


def test_a_clock_that_begins_elsewhere_has_a_backward_matrix_for_each_step(rng):
    rows = rng.dirichlet(np.ones(3), (2, 3))
    with pytest.raises(InputError, match="horizon=T"):
        Adversary.from_forward(Periodic(rows), initial=[0.2, 0.3, 0.5])
    found = Adversary.from_forward(Periodic(rows), initial=[0.2, 0.3, 0.5], horizon=4)
    each = Adversary.from_forward([rows[0], rows[1], rows[0]], initial=[0.2, 0.3, 0.5])
    assert [m.dense().tolist() for m in found.backward.matrices] == [m.dense().tolist() for m in each.backward.matrices]
    assert found.n_steps == each.n_steps == 4


def test_steps_that_the_matrices_do_not_cover_are_refused():
    """Without matrices, nothing would be known of how people move there."""
    known = Adversary([CYCLE] * 9, [CYCLE] * 9)
    assert known.between(8, 2).n_steps == 2 and known.between(9, 1).n_steps is None
    for first, n_steps in ((20, 5), (-3, 4), (8, 5), (0, 11)):
        with pytest.raises(InputError, match="expected steps of the 10 that the matrices cover"):
            known.between(first, n_steps)


def test_names_of_a_table_are_read_or_refused():
    chain = TransitionMatrix([[0.9, 0.1], [0.3, 0.7]], states=["home", "work"])
    first = pd.Series({"work": 0.1, "home": 0.9})
    by_name = Adversary.from_forward(chain, initial=first, horizon=2)
    assert by_name == Adversary.from_forward(chain, initial=[0.9, 0.1], horizon=2)
    with pytest.raises(StateError, match="the distribution"):
        Adversary.from_forward(chain, initial=pd.Series({"work": 0.1, "house": 0.9}), horizon=2)
    bound = pd.DataFrame([[0.5, 0.4], [0.2, 0.6]], index=["work", "home"], columns=["work", "home"])
    for made in (
        lambda: IntervalMatrix(bound, bound + 0.2),
        lambda: OutputTable(pd.DataFrame([[0.6, 0.4], [0.3, 0.7]], index=["work", "home"])),
        lambda: LikelihoodBox(pd.Series({"work": 0.0, "home": 0.0}), [0.1, 0.1]),
    ):
        with pytest.raises(StateError, match="without names, in the order of the states"):
            made()
    assert OutputTable(pd.DataFrame([[0.6, 0.4], [0.3, 0.7]])).probabilities[1].tolist() == [0.3, 0.7]
    with pytest.raises(MatrixError, match=r"^expected a matrix without masked entries"):
        TransitionMatrix(np.ma.masked_array([[0.9, 0.1], [0.3, 0.7]], [[0, 1], [0, 0]]), normalize=True)
