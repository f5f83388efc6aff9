"""Functions of arrays, and the leakage profile of a transition matrix."""

from temporaldp.core.kernels.profile import LeakageProfile, Witness
from temporaldp.core.kernels.search import compute_profiles

__all__ = [
    "LeakageProfile",
    "Witness",
    "compute_profiles",
]
