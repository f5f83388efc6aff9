"""Temporal correlations: transition matrices, generators of them, and the adversaries who know them."""

from temporaldp.core.correlation.adversary import Adversary
from temporaldp.core.correlation.generators import (
    lazy_walk,
)
from temporaldp.core.correlation.interval_matrix import IntervalMatrix, sticky
from temporaldp.core.correlation.joint import independent_adversary
from temporaldp.core.correlation.lifted_chain import LiftedChain
from temporaldp.core.correlation.pairs import pair_adversary
from temporaldp.core.correlation.population import Adversaries, Population
from temporaldp.core.correlation.protocol import Changing, Correlation, NoCorrelation, Periodic, PerStep
from temporaldp.core.correlation.provenance import Provenance
from temporaldp.core.correlation.transition import ROW_SUM_TOLERANCE, TransitionMatrix

__all__ = [
    "ROW_SUM_TOLERANCE",
    "Adversaries",
    "Adversary",
    "Changing",
    "Correlation",
    "IntervalMatrix",
    "LiftedChain",
    "NoCorrelation",
    "PerStep",
    "Periodic",
    "Population",
    "Provenance",
    "TransitionMatrix",
    "independent_adversary",
    "lazy_walk",
    "pair_adversary",
    "sticky",
]
