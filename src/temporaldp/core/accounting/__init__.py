"""Leakage of a sequence of releases: backward, forward and temporal privacy leakage, windows, suprema."""

from temporaldp.core.accounting.accountant import TemporalAccountant
from temporaldp.core.accounting.curve.evidence import LeakageCurves, PrivacyCurve
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.accounting.exact.evidence import ExactLeakage, Observation
from temporaldp.core.accounting.exact.method import Exact
from temporaldp.core.accounting.interval.method import IntervalBound
from temporaldp.core.accounting.methods import accounting_from
from temporaldp.core.accounting.metric.method import MetricPrivacy
from temporaldp.core.accounting.pairwise import PairwiseLeakage
from temporaldp.core.accounting.paper.method import PaperBound
from temporaldp.core.accounting.protocol import Accounting, Attained, Evidence
from temporaldp.core.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.core.accounting.stepwise import Steps
from temporaldp.core.accounting.stepwise_accounting import StepwiseAccounting
from temporaldp.core.accounting.supremum import LeakageSupremum, leakage_supremum

__all__ = [
    "Accounting",
    "ApproximateDP",
    "Attained",
    "Evidence",
    "Exact",
    "ExactLeakage",
    "IntervalBound",
    "LeakageCurves",
    "LeakageSeries",
    "LeakageSupremum",
    "MetricPrivacy",
    "Observation",
    "PairwiseLeakage",
    "PaperBound",
    "PrivacyCurve",
    "Steps",
    "StepwiseAccounting",
    "TemporalAccountant",
    "accounting_from",
    "leakage_supremum",
    "temporal_leakage",
]
