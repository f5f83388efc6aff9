"""diffprivlib's functions under a temporal accountant."""

from __future__ import annotations

import numpy as np
import pytest

from temporaldp import (
    Adversary,
    BudgetError,
    InputError,
    LeakageBudgetError,
    TemporalAccountant,
    TransitionMatrix,
    adapters,
)

dpl = pytest.importorskip("diffprivlib", reason="the extra 'diffprivlib' is not installed")
WALK = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
VALUES = np.array([0.0, 1.0, 1.0, 0.0])


def accountant(**settings):
    return TemporalAccountant(Adversary(WALK, WALK), **settings)


def histogram(epsilon, **more):
    return dpl.tools.histogram(VALUES, epsilon=epsilon, bins=2, range=(0.0, 1.0), **more)


def test_step_is_charged_before_its_queries_are_answered():
    temporal = accountant(alpha=2.0)
    guarded = adapters.diffprivlib(temporal)
    with guarded.step(epsilon=0.1):
        assert temporal.spent == pytest.approx([0.2], rel=1e-12), "a row goes, and another comes"
        histogram(0.05)
        dpl.tools.mean(VALUES, epsilon=0.05, bounds=(0.0, 1.0))
    with guarded.step(0.3):
        for _ in range(3):  # their sum is an ulp more than 0.3
            histogram(0.1, accountant=guarded)
    assert len(temporal) == 2
    assert guarded.spent_budget == [(0.05, 0), (0.05, 0), (0.1, 0), (0.1, 0), (0.1, 0)]


def test_query_beyond_the_charge_of_the_step_is_refused_before_noise_is_drawn():
    guarded = adapters.diffprivlib(accountant())
    with guarded.step(0.1):
        histogram(0.08)
        with pytest.raises(dpl.utils.BudgetError):
            histogram(0.08)
    assert guarded.total()[0] == pytest.approx(0.08)


def test_query_outside_of_a_step_is_refused():
    guarded = adapters.diffprivlib(accountant())
    with pytest.raises(BudgetError, match="no step is open"):
        histogram(0.1, accountant=guarded)
    with guarded.step(0.1), pytest.raises(BudgetError, match="open already"), guarded.step(0.1):
        pass
    with pytest.raises(BudgetError, match="no step is open"):
        histogram(0.1, accountant=guarded)


def test_refused_step_is_neither_opened_nor_charged():
    temporal = accountant(alpha=0.5)
    guarded = adapters.diffprivlib(temporal)
    with pytest.raises(LeakageBudgetError), guarded.step(0.3):
        raise AssertionError("unreachable")
    assert len(temporal) == 0
    with guarded.step(0.1):
        histogram(0.1)
    assert len(temporal) == 1


def test_one_move_is_charged_once():
    temporal = accountant()
    with adapters.diffprivlib(temporal, moves=1).step(0.1):
        dpl.tools.mean(VALUES, epsilon=0.1, bounds=(0.0, 1.0))
    assert temporal.spent == pytest.approx([0.1], rel=1e-12)
    with pytest.raises(InputError, match="expected moves"):
        adapters.diffprivlib(temporal, moves=0)
    with pytest.raises(InputError, match="expected a TemporalAccountant"):
        adapters.diffprivlib(dpl.BudgetAccountant())


def test_histogram_of_diffprivlib_needs_two_moves():
    """The noise on two counts that a replaced row moves, as diffprivlib draws it: ratios of its own distribution."""
    epsilon = 0.5
    noise = dpl.mechanisms.Geometric(epsilon=epsilon, sensitivity=1)
    assert noise.sensitivity == 1, "tools.histogram uses this mechanism with this sensitivity"
    ratio = np.exp(-epsilon)  # between neighbouring integers
    worst = max(
        abs(np.log(ratio ** abs(a - 1) * ratio ** abs(b) / (ratio ** abs(a) * ratio ** abs(b - 1))))
        for a in range(-9, 10) for b in range(-9, 10)
    )  # fmt: skip
    temporal = accountant()
    with adapters.diffprivlib(temporal).step(epsilon):
        pass
    assert epsilon < worst <= temporal.spent[0]


def test_an_interrupted_step_is_closed():
    guarded = adapters.diffprivlib(accountant())
    with pytest.raises(KeyError), guarded.step(0.1):
        raise KeyError
    assert "no step is open" in repr(guarded)
    assert dpl.BudgetAccountant.pop_default() is None
