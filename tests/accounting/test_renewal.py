"""A level that is renewed: each epoch holds it, all together do not."""

from __future__ import annotations

import numpy as np
import pytest

from temporaldp import Adversary, BudgetError, TransitionMatrix, renewal_leakage

EPSILONS = [0.1, 0.4, 0.2]


def known(rows):
    return Adversary(TransitionMatrix(rows), TransitionMatrix(rows))


def test_values_that_never_change_are_told_about_in_every_epoch():
    found = renewal_leakage(known(np.eye(2)), EPSILONS, n_epochs=4)
    assert (found.alone, found.together) == (pytest.approx(0.7, rel=1e-12), pytest.approx(2.8, rel=1e-12))
    assert (found.n_epochs, found.grows) == (4, True)


def test_values_that_remember_nothing_are_not():
    found = renewal_leakage(known(np.full((3, 3), 1 / 3)), EPSILONS)
    assert (found.alone, found.together, found.step) == (pytest.approx(0.4), pytest.approx(0.4), 1)
    assert not found.grows


@pytest.mark.parametrize("stay", [0.6, 0.9])
def test_two_values_across_one_renewal(stay):
    """Of two steps an epoch, by enumeration: what two epochs leak about the last step of the first one."""
    epsilons = np.array([0.3, 0.5])
    found = renewal_leakage(known([[stay, 1 - stay], [1 - stay, stay]]), epsilons, n_epochs=2)

    def arrives(likelihood):  # likelihood ratio of a neighbouring step, as it arrives
        return (stay * likelihood + 1 - stay) / ((1 - stay) * likelihood + stay)

    after = arrives(np.exp(0.3) * arrives(np.exp(0.5)))
    before = arrives(np.exp(0.3))
    assert found.together == pytest.approx(0.5 + np.log(after) + np.log(before), rel=1e-12)
    assert found.together > found.alone
    assert (found.epoch, found.step) == (0, 1)


def test_one_epoch_is_no_renewal():
    with pytest.raises(BudgetError):
        renewal_leakage(known(np.eye(2)), EPSILONS, n_epochs=1)
