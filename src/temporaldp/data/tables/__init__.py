"""Traces of people over time, and the correlations that they show."""

from temporaldp.data.tables.counted import CountedTraces
from temporaldp.data.tables.estimation import (
    estimate_adversaries,
    estimate_adversary,
    estimate_periodic,
    estimate_transition_matrix,
)
from temporaldp.data.tables.longer_memory import estimate_dwell_times, estimate_words
from temporaldp.data.tables.models import estimate_models
from temporaldp.data.tables.traces import Traces
from temporaldp.data.tables.trajectories import Trajectories, joint_trajectories, transition_trajectories

__all__ = [
    "CountedTraces",
    "Traces",
    "Trajectories",
    "estimate_adversaries",
    "estimate_adversary",
    "estimate_dwell_times",
    "estimate_models",
    "estimate_periodic",
    "estimate_transition_matrix",
    "estimate_words",
    "joint_trajectories",
    "transition_trajectories",
]
