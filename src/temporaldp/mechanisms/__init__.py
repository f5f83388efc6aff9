"""Mechanisms: boxes of likelihoods, distances of states, noise, tables of outputs, events."""

from temporaldp.mechanisms.concentrated import ConcentratedGuarantee
from temporaldp.mechanisms.discrete_noise import DiscreteGaussianNoise, DiscreteLaplaceNoise
from temporaldp.mechanisms.guarantee import PrivacyGuarantee
from temporaldp.mechanisms.likelihood_box import LikelihoodBox
from temporaldp.mechanisms.noise import GaussianNoise, LaplaceNoise
from temporaldp.mechanisms.output_table import OutputTable, RandomizedResponse
from temporaldp.mechanisms.protocol import Mechanism

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
