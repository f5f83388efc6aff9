"""Two values that develop independently: their joint matrix, and what it leaks."""

from __future__ import annotations

import numpy as np
import pytest

from temporaldp import Adversary, InputError, TransitionMatrix, independent_adversary, temporal_leakage

ONE = np.array([[0.9, 0.1], [0.3, 0.7]])
TWO = np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]])


def known(rows, *, both=True):
    return Adversary(TransitionMatrix(rows), TransitionMatrix(rows) if both else None)


def test_each_joint_step_is_one_of_each():
    joint = independent_adversary(known(ONE), known(TWO)).backward.probabilities
    for a, b, c, d in np.ndindex(2, 3, 2, 3):
        assert joint[3 * a + b, 3 * c + d] == pytest.approx(ONE[a, c] * TWO[b, d], rel=1e-15)
    assert np.allclose(joint.sum(axis=1), 1.0, rtol=0, atol=1e-15)


def test_a_table_about_both_leaks_at_least_what_it_leaks_about_each():
    epsilons = [0.3, 0.1, 0.4, 0.2]
    joint = temporal_leakage(independent_adversary(known(ONE), known(TWO)), epsilons=epsilons).temporal
    for rows in (ONE, TWO):
        assert (joint >= temporal_leakage(known(rows), epsilons=epsilons).temporal * (1 - 1e-12)).all()


def test_what_is_not_known_alike_is_refused():
    assert independent_adversary(known(ONE, both=False), known(TWO, both=False)).forward is None
    with pytest.raises(InputError, match="all forward"):
        independent_adversary(known(ONE), known(TWO, both=False))
    with pytest.raises(InputError, match="constant"):
        independent_adversary(Adversary([TransitionMatrix(ONE)], None))
    with pytest.raises(InputError, match="one adversary or more"):
        independent_adversary()
    with pytest.raises(InputError, match="joint values"):
        independent_adversary(known(np.eye(40)), known(np.eye(40)))
