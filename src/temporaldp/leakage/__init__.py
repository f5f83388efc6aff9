"""What one step leaks: the profile of a transition matrix, and the kernels that compute it."""

from temporaldp.leakage.batch import BATCHED, LeakageProfiles, compute_profiles
from temporaldp.leakage.profile import LeakageProfile
from temporaldp.leakage.search import compute_profile
from temporaldp.leakage.single import loss
from temporaldp.leakage.witness import Witness

__all__ = [
    "BATCHED",
    "LeakageProfile",
    "LeakageProfiles",
    "Witness",
    "compute_profile",
    "compute_profiles",
    "loss",
]
