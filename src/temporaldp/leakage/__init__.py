"""What one step leaks: the profile of a transition matrix, and the kernels that compute it."""

from temporaldp.leakage.pairs import compute_profile
from temporaldp.leakage.profile import LeakageProfile
from temporaldp.leakage.witness import Witness

__all__ = ["LeakageProfile", "Witness", "compute_profile"]
