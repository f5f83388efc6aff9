"""Mechanisms: boxes of likelihoods, distances of states, noise, tables of outputs, events."""

from temporaldp.core.mechanisms.concentrated import ConcentratedGuarantee
from temporaldp.core.mechanisms.discrete_noise import DiscreteGaussianNoise, DiscreteLaplaceNoise
from temporaldp.core.mechanisms.guarantee import PrivacyGuarantee
from temporaldp.core.mechanisms.likelihood_box import LikelihoodBox
from temporaldp.core.mechanisms.noise import GaussianNoise, LaplaceNoise
from temporaldp.core.mechanisms.output_table import OutputTable, RandomizedResponse
from temporaldp.core.mechanisms.protocol import Mechanism

__all__ = [
    "ConcentratedGuarantee",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "GaussianNoise",
    "LaplaceNoise",
    "LikelihoodBox",
    "Mechanism",
    "OutputTable",
    "PrivacyGuarantee",
    "RandomizedResponse",
]
