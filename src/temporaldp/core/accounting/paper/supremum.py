"""The largest sustainable budget by the paper's bound: the root that both of the paper's algorithms search for.

Notation
--------
a_B, a_F    levels at which BPL and FPL are held
s_B, s_F    sustainable budgets, ``s(a) = a - L(a)``: increasing, s(0) = 0
e           the budget of a middle step; ``s_B(a_B) = e = s_F(a_F)`` and ``a_B + a_F - e = alpha``

With ``a_F = alpha - L_B(a_B)`` the second equation holds by itself, and ``s_B(a_B) - s_F(a_F)`` increases with a_B from
``-s_F(alpha) <= 0`` to ``s_B(alpha) - s_F(s_B(alpha)) >= 0``: a bracket, so the root is found without the paper's open loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from temporaldp.base.values import SMALLEST, ULP
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.core.kernels import LeakageProfile


@dataclass(frozen=True, slots=True)
class ConstantBudget:
    """Levels of both directions, and the budget that satisfies them over an infinite horizon; lower bounds by rounding only."""

    backward_level: float
    forward_level: float
    budget: float


def constant_budget(backward: LeakageProfile | None, forward: LeakageProfile | None, alpha: float) -> ConstantBudget:
    """Return the largest sustainable budget at a level alpha > 0; 0 where no positive budget is sustainable."""
    from scipy.optimize import brentq

    def forward_level(level: float) -> float:
        return alpha - (level - _sustainable(backward, level))

    def imbalance(level: float) -> float:
        return _sustainable(backward, level) - _sustainable(forward, forward_level(level))

    if _sustainable(backward, alpha) <= 0.0 or _sustainable(forward, alpha) <= 0.0:
        return ConstantBudget(alpha, alpha, 0.0)
    level = alpha
    if imbalance(alpha) > 0.0:
        # Absolute tolerance of the root: none to speak of; the relative one decides
        level = float(brentq(imbalance, 0.0, alpha, xtol=1e-300, rtol=4.0 * ULP, maxiter=1000))
    other = forward_level(level)
    return ConstantBudget(level, other, min(_sustainable(backward, level), _sustainable(forward, other)))


def merged_profile(correlation: Correlation) -> LeakageProfile | None:
    """The pointwise largest loss over the matrices of one direction; None if the adversary knows none."""
    profiles = [matrix.leakage_profile() for matrix in correlation.matrices]
    return reduce(LeakageProfile.merge, profiles) if profiles else None


def _sustainable(profile: LeakageProfile | None, level: float) -> float:
    """s(level); an unknown correlation leaks nothing, so everything can be spent again and again."""
    if level < SMALLEST:
        return 0.0
    return level if profile is None else profile.sustainable_budget(alpha=level)
