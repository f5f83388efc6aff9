"""What the adversary knows: transition matrices, estimating them, generating them."""

from temporaldp.correlation.adversary import Adversary
from temporaldp.correlation.estimation import estimate_adversaries, estimate_transition_matrix
from temporaldp.correlation.generators import random_correlation, smoothed_correlation, strongest_correlation
from temporaldp.correlation.population import Adversaries, Population
from temporaldp.correlation.trajectories import Trajectories
from temporaldp.correlation.transition import ROW_SUM_TOLERANCE, TransitionMatrix

__all__ = [
    "ROW_SUM_TOLERANCE",
    "Adversaries",
    "Adversary",
    "Population",
    "Trajectories",
    "TransitionMatrix",
    "estimate_adversaries",
    "estimate_transition_matrix",
    "random_correlation",
    "smoothed_correlation",
    "strongest_correlation",
]
