"""What a sequence of releases leaks: backward, forward and temporal privacy leakage, windows, suprema."""

from temporaldp.accounting.accountant import TemporalAccountant
from temporaldp.accounting.metrics import PairLink, PairwiseLeakage
from temporaldp.accounting.profiles import leakage_profiles
from temporaldp.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.accounting.supremum import LeakageSupremum, leakage_supremum

__all__ = [
    "LeakageSeries",
    "LeakageSupremum",
    "PairLink",
    "PairwiseLeakage",
    "TemporalAccountant",
    "leakage_profiles",
    "leakage_supremum",
    "temporal_leakage",
]
