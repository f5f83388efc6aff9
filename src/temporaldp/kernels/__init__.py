"""Compiled functions of arrays, and the leakage profile of a transition matrix."""

from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.search import compute_profile
from temporaldp.kernels.witness import Witness

__all__ = [
    "LeakageProfile",
    "Witness",
    "compute_profile",
]
