"""What one step leaks: the profile of a transition matrix, and the kernels that compute it."""

from temporaldp.kernels.batch import BATCHED, LeakageProfiles, compute_profiles
from temporaldp.kernels.profile import LeakageProfile
from temporaldp.kernels.search import compute_profile, loss
from temporaldp.kernels.witness import Witness

__all__ = [
    "BATCHED",
    "LeakageProfile",
    "LeakageProfiles",
    "Witness",
    "compute_profile",
    "compute_profiles",
    "loss",
]
