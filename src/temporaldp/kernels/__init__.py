"""What one step leaks: the profile of a transition matrix, and the kernels that compute it."""

from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.search import compute_profile
from temporaldp.kernels.witness import Witness

__all__ = [
    "LeakageProfile",
    "Witness",
    "compute_profile",
]
