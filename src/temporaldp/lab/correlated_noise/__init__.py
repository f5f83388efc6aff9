"""Mechanisms whose outputs concern several steps: windows, matrix mechanisms, and their event-level epsilons."""

from temporaldp.lab.correlated_noise.coupling import CouplingLeakage
from temporaldp.lab.correlated_noise.matrix_mechanism import MatrixMechanism
from temporaldp.lab.correlated_noise.windows import Windows, event_epsilons

__all__ = ["CouplingLeakage", "MatrixMechanism", "Windows", "event_epsilons"]
