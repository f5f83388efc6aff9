"""Two values of a person as one: as histories of both show it, or as if they were independent; and what that leaks."""

from __future__ import annotations

import numpy as np
import pytest

from making import from_sequences
from temporaldp import Adversary, InputError, Trajectories, TransitionMatrix, estimate_adversaries, temporal_leakage
from temporaldp.core.correlation import independent_adversary
from temporaldp.data.tables import joint_trajectories

ONE = np.array([[0.9, 0.1], [0.3, 0.7]])
TWO = np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]])


def known(rows, *, both=True):
    return Adversary(TransitionMatrix(rows), TransitionMatrix(rows) if both else None)


def test_joint_matrix_is_the_product_of_independent_chains():
    joint = independent_adversary(known(ONE), known(TWO)).backward.probabilities
    for a, b, c, d in np.ndindex(2, 3, 2, 3):
        assert joint[3 * a + b, 3 * c + d] == pytest.approx(ONE[a, c] * TWO[b, d], rel=1e-15)
    assert np.allclose(joint.sum(axis=1), 1.0, rtol=0, atol=1e-15)


def test_a_table_about_both_leaks_at_least_what_it_leaks_about_each():
    epsilons = [0.3, 0.1, 0.4, 0.2]
    joint = temporal_leakage(independent_adversary(known(ONE), known(TWO)), epsilons).temporal
    for rows in (ONE, TWO):
        assert (joint >= temporal_leakage(known(rows), epsilons).temporal * (1 - 1e-12)).all()


def test_adversaries_of_different_kinds_are_refused():
    assert not independent_adversary(known(ONE, both=False), known(TWO, both=False)).forward
    with pytest.raises(InputError, match="all forward"):
        independent_adversary(known(ONE), known(TWO, both=False))
    with pytest.raises(InputError, match="constant"):
        independent_adversary(Adversary([TransitionMatrix(ONE)], None))
    with pytest.raises(InputError, match="one adversary or more"):
        independent_adversary()
    with pytest.raises(InputError, match="joint states"):
        independent_adversary(known(np.eye(40)), known(np.eye(40)))


def test_joint_traces_have_the_users_and_transitions_of_both():
    """Against counting by hand: people and times of one alone are left out, and so are steps that either lacks."""
    one = {"Ann": "AASAS", "Bo": "SSAAA", "Cy": "ASASA"}
    two = {"Cy": "HOHO", "Ann": "HHOO"}
    first = Trajectories(
        np.array([["AS".index(v) for v in row] for row in one.values()]),
        states=["A", "S"],
        users=one,
        times=range(5),
        step="1 hours",
    )
    second = Trajectories(
        np.array([[*map("HO".index, row[:3]), -1, "HO".index(row[3])] for row in two.values()]), states=["H", "O"], users=two,
        times=range(5), consecutive=np.array([True, False, True, True]),
    )  # fmt: skip
    joint = joint_trajectories(first, second)
    assert (joint.users, joint.step) == (("Ann", "Cy"), "1 hours")
    expected = np.zeros((len(joint.states), len(joint.states)), dtype=int)
    for user in joint.users:
        values = [joint.states.index(f"{a}, {b}") for a, b in zip(one[user][:2], two[user][:2], strict=True)]
        expected[values[0], values[1]] += 1  # from 2 to 3 one of them is not a step, at 4 one is absent
    assert (joint.transition_counts() == expected).all()
    later = joint_trajectories(
        Trajectories(first.codes[:, 1:], states=["A", "S"], users=first.users, times=first.times[1:]), second
    )
    assert later.times == ("1", "2", "3", "4") and later.consecutive.tolist() == [False, True, True]


def test_traces_without_common_users_or_times_are_refused():
    walks = from_sequences([["a", "b"]], users=["Ann"])
    for other in (
        from_sequences([["a", "b"]], users=["Bo"]),
        Trajectories(np.array([[0, 1]]), states=["a", "b"], users=["Ann"], times=[7, 8]),
    ):
        with pytest.raises(InputError):
            joint_trajectories(walks, other)
    with pytest.raises(InputError):
        joint_trajectories()
    many = Trajectories(np.arange(1100)[None], states=[f"s{k}" for k in range(1100)], users=["Ann"])
    with pytest.raises(InputError, match="at most 1000 joint states, got 1100"):
        joint_trajectories(many, many)


def test_coarser_copy_of_a_state_does_not_change_the_estimate():
    """Impossible pairs get no share of a prior, so the estimate for the fine states is that of the fine table alone."""
    rng = np.random.default_rng(3)
    fine = Trajectories(rng.integers(0, 4, (30, 12)), states=list("abcd"))
    coarse = Trajectories(fine.codes // 2, states=["ab", "cd"])
    joint = joint_trajectories(fine, coarse)
    assert joint.states == ("a, ab", "b, ab", "c, cd", "d, cd")
    for prior in (0.0, 1.0):
        alone, both = (next(estimate_adversaries(traces, prior=prior)) for traces in (fine, joint))
        assert (both.backward.probabilities == alone.backward.probabilities).all()
        assert (both.forward.probabilities == alone.forward.probabilities).all()
