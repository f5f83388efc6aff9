"""Temporal correlations: transition matrices, their estimation, and generators."""

from temporaldp.correlation.adversary import Adversary
from temporaldp.correlation.counted import CountedTraces
from temporaldp.correlation.estimation import estimate_adversaries, estimate_adversary, estimate_transition_matrix
from temporaldp.correlation.generators import random_correlation, smoothed_correlation, strongest_correlation
from temporaldp.correlation.interval_matrix import IntervalMatrix, sticky
from temporaldp.correlation.joined import joint_trajectories, transition_trajectories
from temporaldp.correlation.joint import independent_adversary
from temporaldp.correlation.lifted_chain import LiftedChain
from temporaldp.correlation.longer_memory import estimate_dwell_times, estimate_words
from temporaldp.correlation.origin import Origin
from temporaldp.correlation.pairs import pair_adversary
from temporaldp.correlation.periodic_estimation import estimate_periodic
from temporaldp.correlation.population import Adversaries, Population
from temporaldp.correlation.protocol import Changing, Correlation, NoCorrelation, Periodic, PerStep
from temporaldp.correlation.traces import Traces
from temporaldp.correlation.trajectories import Trajectories
from temporaldp.correlation.transition import ROW_SUM_TOLERANCE, TransitionMatrix

__all__ = [
    "ROW_SUM_TOLERANCE",
    "Adversaries",
    "Adversary",
    "Changing",
    "Correlation",
    "CountedTraces",
    "IntervalMatrix",
    "LiftedChain",
    "NoCorrelation",
    "Origin",
    "PerStep",
    "Periodic",
    "Population",
    "Traces",
    "Trajectories",
    "TransitionMatrix",
    "estimate_adversaries",
    "estimate_adversary",
    "estimate_dwell_times",
    "estimate_periodic",
    "estimate_transition_matrix",
    "estimate_words",
    "independent_adversary",
    "joint_trajectories",
    "pair_adversary",
    "random_correlation",
    "smoothed_correlation",
    "sticky",
    "strongest_correlation",
    "transition_trajectories",
]
