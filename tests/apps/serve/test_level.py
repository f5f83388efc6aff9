"""The level's own reckoning agrees with the enumeration of every mechanism, and notices a budget too much."""

from __future__ import annotations

import numpy as np
import pytest

import exact_oracles
from level import worst_leakage


def test_the_sign_rule_agrees_with_enumeration(rng):
    for _ in range(5):
        backward, forward = rng.dirichlet(np.ones(3), size=(2, 3))
        epsilons = rng.uniform(0.0, 0.8, size=4)
        low, high = exact_oracles.boxes_of(epsilons, 3)
        *_, tpl = exact_oracles.enumerated_boxes([backward] * 3, [forward] * 3, low, high)
        assert worst_leakage(backward, forward, epsilons) == pytest.approx(tpl.max(), rel=1e-12)
