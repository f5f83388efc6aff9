"""What a sequence of releases leaks: backward, forward and temporal privacy leakage, windows, suprema."""

from temporaldp.accounting.accountant import TemporalAccountant
from temporaldp.accounting.curves import PrivacyCurve
from temporaldp.accounting.discrete_noise import DiscreteGaussianNoise, DiscreteLaplaceNoise
from temporaldp.accounting.exact_evidence import Attained, ExactLeakage, Observation
from temporaldp.accounting.leakage_curves import LeakageCurves
from temporaldp.accounting.likelihood_box import LikelihoodBox
from temporaldp.accounting.mechanisms import (
    GaussianNoise,
    LaplaceNoise,
    OutputTable,
    PrivacyGuarantee,
    RandomizedResponse,
)
from temporaldp.accounting.pair_leakage import PairLink, PairwiseLeakage
from temporaldp.accounting.profiles import leakage_profiles
from temporaldp.accounting.protocol import Accounting
from temporaldp.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.accounting.stepwise import Steps
from temporaldp.accounting.stepwise_accounting import StepwiseAccounting
from temporaldp.accounting.supremum import LeakageSupremum, leakage_supremum

__all__ = [
    "Accounting",
    "Attained",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "ExactLeakage",
    "GaussianNoise",
    "LaplaceNoise",
    "LeakageCurves",
    "LeakageSeries",
    "LeakageSupremum",
    "LikelihoodBox",
    "Observation",
    "OutputTable",
    "PairLink",
    "PairwiseLeakage",
    "PrivacyCurve",
    "PrivacyGuarantee",
    "RandomizedResponse",
    "Steps",
    "StepwiseAccounting",
    "TemporalAccountant",
    "leakage_profiles",
    "leakage_supremum",
    "temporal_leakage",
]
