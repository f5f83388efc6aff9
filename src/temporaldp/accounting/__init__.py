"""Leakage of a sequence of releases: backward, forward and temporal privacy leakage, windows, suprema."""

from temporaldp.accounting.accountant import TemporalAccountant
from temporaldp.accounting.curve.evidence import LeakageCurves, PrivacyCurve
from temporaldp.accounting.curve.method import ApproximateDP
from temporaldp.accounting.exact.evidence import ExactLeakage, Observation
from temporaldp.accounting.exact.method import Exact
from temporaldp.accounting.interval.method import IntervalBound
from temporaldp.accounting.methods import accounting_from
from temporaldp.accounting.metric.method import MetricPrivacy
from temporaldp.accounting.pairwise import PairwiseLeakage
from temporaldp.accounting.paper.method import PaperBound
from temporaldp.accounting.protocol import Accounting, Attained, Evidence
from temporaldp.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.accounting.stepwise import Steps
from temporaldp.accounting.stepwise_accounting import StepwiseAccounting
from temporaldp.accounting.supremum import LeakageSupremum, leakage_supremum

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
