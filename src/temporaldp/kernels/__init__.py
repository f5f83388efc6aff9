"""Functions of arrays, and the leakage profile of a transition matrix."""

from temporaldp.kernels.profile import LeakageProfile, Witness
from temporaldp.kernels.search import compute_profiles

__all__ = [
    "LeakageProfile",
    "Witness",
    "compute_profiles",
]
