"""Differential privacy under temporal correlations: quantify the leakage, bound it, and spend it on real releases."""

from temporaldp.accounting import LeakageSeries, LeakageSupremum, leakage_supremum, temporal_leakage
from temporaldp.correlation import (
    ROW_SUM_TOLERANCE,
    Adversary,
    Trajectories,
    TransitionMatrix,
    estimate_adversaries,
    estimate_transition_matrix,
    random_correlation,
    smoothed_correlation,
    strongest_correlation,
)
from temporaldp.errors import (
    BudgetError,
    EstimationError,
    InputError,
    MatrixError,
    MissingFileError,
    OutputError,
    PlanError,
    StateError,
    TemporaldpError,
    TraceError,
)
from temporaldp.files import load_matrix, load_plan, load_sample, read_traces, save_matrix, save_plan
from temporaldp.leakage import LeakageProfile, Witness
from temporaldp.planning import BudgetPlan, compare_plans, plan_budget
from temporaldp.release import (
    HISTOGRAM_SENSITIVITY,
    DiscreteLaplaceHistogram,
    Release,
    ReleasedHistograms,
    consistent_counts,
    load_released,
    release,
    release_histograms,
    save_released,
)

__version__ = "0.1.0"

__all__ = [
    "HISTOGRAM_SENSITIVITY",
    "ROW_SUM_TOLERANCE",
    "Adversary",
    "BudgetError",
    "BudgetPlan",
    "DiscreteLaplaceHistogram",
    "EstimationError",
    "InputError",
    "LeakageProfile",
    "LeakageSeries",
    "LeakageSupremum",
    "MatrixError",
    "MissingFileError",
    "OutputError",
    "PlanError",
    "Release",
    "ReleasedHistograms",
    "StateError",
    "TemporaldpError",
    "TraceError",
    "Trajectories",
    "TransitionMatrix",
    "Witness",
    "compare_plans",
    "consistent_counts",
    "estimate_adversaries",
    "estimate_transition_matrix",
    "leakage_supremum",
    "load_matrix",
    "load_plan",
    "load_released",
    "load_sample",
    "plan_budget",
    "random_correlation",
    "read_traces",
    "release",
    "release_histograms",
    "save_matrix",
    "save_plan",
    "save_released",
    "smoothed_correlation",
    "strongest_correlation",
    "temporal_leakage",
]
