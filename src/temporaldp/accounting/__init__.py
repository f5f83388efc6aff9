"""What a sequence of releases leaks: backward, forward and temporal privacy leakage, windows, suprema."""

from temporaldp.accounting.accountant import TemporalAccountant
from temporaldp.accounting.curve.curves import PrivacyCurve
from temporaldp.accounting.curve.evidence import LeakageCurves
from temporaldp.accounting.curve.pair_evidence import PairLeakageCurves
from temporaldp.accounting.exact.evidence import Attained, ExactLeakage, Observation
from temporaldp.accounting.metric.evidence import PairLink, PairwiseLeakage
from temporaldp.accounting.profiles import leakage_profiles
from temporaldp.accounting.protocol import Accounting
from temporaldp.accounting.renewal import RenewalLeakage, renewal_leakage
from temporaldp.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.accounting.stepwise import Steps
from temporaldp.accounting.stepwise_accounting import StepwiseAccounting
from temporaldp.accounting.supremum import LeakageSupremum, leakage_supremum

__all__ = [
    "Accounting",
    "Attained",
    "ExactLeakage",
    "LeakageCurves",
    "LeakageSeries",
    "LeakageSupremum",
    "Observation",
    "PairLeakageCurves",
    "PairLink",
    "PairwiseLeakage",
    "PrivacyCurve",
    "RenewalLeakage",
    "Steps",
    "StepwiseAccounting",
    "TemporalAccountant",
    "leakage_profiles",
    "leakage_supremum",
    "renewal_leakage",
    "temporal_leakage",
]
