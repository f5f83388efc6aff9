"""Leakage of mechanisms whose noise is shared between steps: matrix mechanisms and memoised answers."""

from temporaldp.correlated_noise.coupling import CouplingLeakage
from temporaldp.correlated_noise.matrix_mechanism import MatrixMechanism, simulate_leakage
from temporaldp.correlated_noise.memoized import MemoizedLeakage, MemoizedResponse
from temporaldp.correlated_noise.plan import MatrixPlan, plan_matrix
from temporaldp.correlated_noise.simulation import SimulatedLeakage

__all__ = [
    "CouplingLeakage",
    "MatrixMechanism",
    "MatrixPlan",
    "MemoizedLeakage",
    "MemoizedResponse",
    "SimulatedLeakage",
    "plan_matrix",
    "simulate_leakage",
]
