"""What a sequence of releases leaks: backward, forward and temporal privacy leakage, windows, suprema."""

from temporaldp.accounting.accountant import TemporalAccountant
from temporaldp.accounting.curves import PrivacyCurve
from temporaldp.accounting.diagnosis import Diagnosis, ModelLeakage, diagnose
from temporaldp.accounting.distribution import LeakageDistribution, leakage_distribution
from temporaldp.accounting.exact_evidence import Attained, ExactLeakage, Observation
from temporaldp.accounting.leakage_curves import LeakageCurves
from temporaldp.accounting.leakage_draws import LeakageDraws, leakage_bootstrap, leakage_posterior
from temporaldp.accounting.lifted_leakage import LiftedLeakage, lifted_leakage
from temporaldp.accounting.own_leakage import OwnLeakage, own_leakage
from temporaldp.accounting.pair_leakage import PairLink, PairwiseLeakage
from temporaldp.accounting.pair_leakage_curves import PairLeakageCurves
from temporaldp.accounting.profiles import leakage_profiles
from temporaldp.accounting.protocol import Accounting
from temporaldp.accounting.renewal import RenewalLeakage, renewal_leakage
from temporaldp.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.accounting.stepwise import Steps
from temporaldp.accounting.stepwise_accounting import StepwiseAccounting
from temporaldp.accounting.supremum import LeakageSupremum, leakage_supremum
from temporaldp.accounting.uncertainty import LeakageUncertainty, leakage_uncertainty
from temporaldp.accounting.verification import VerifiedLeakage, verify_leakage
from temporaldp.accounting.worst_member import WorstMember, worst_member

__all__ = [
    "Accounting",
    "Attained",
    "Diagnosis",
    "ExactLeakage",
    "LeakageCurves",
    "LeakageDistribution",
    "LeakageDraws",
    "LeakageSeries",
    "LeakageSupremum",
    "LeakageUncertainty",
    "LiftedLeakage",
    "ModelLeakage",
    "Observation",
    "OwnLeakage",
    "PairLeakageCurves",
    "PairLink",
    "PairwiseLeakage",
    "PrivacyCurve",
    "RenewalLeakage",
    "Steps",
    "StepwiseAccounting",
    "TemporalAccountant",
    "VerifiedLeakage",
    "WorstMember",
    "diagnose",
    "leakage_bootstrap",
    "leakage_distribution",
    "leakage_posterior",
    "leakage_profiles",
    "leakage_supremum",
    "leakage_uncertainty",
    "lifted_leakage",
    "own_leakage",
    "renewal_leakage",
    "temporal_leakage",
    "verify_leakage",
    "worst_member",
]
