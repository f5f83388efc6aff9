"""Studies of a release or a correlation: diagnosis, uncertainty, populations, and the attack."""

from temporaldp.lab.studies.diagnosis import Diagnosis, ModelLeakage, diagnose
from temporaldp.lab.studies.distribution import LeakageDistribution, leakage_distribution
from temporaldp.lab.studies.release_attack import ReleaseAttack, attack_release
from temporaldp.lab.studies.uncertainty import (
    LeakageUncertainty,
    leakage_bootstrap,
    leakage_posterior,
    leakage_uncertainty,
)
from temporaldp.lab.studies.worst_member import WorstMember, worst_member

__all__ = [
    "Diagnosis",
    "LeakageDistribution",
    "LeakageUncertainty",
    "ModelLeakage",
    "ReleaseAttack",
    "WorstMember",
    "attack_release",
    "diagnose",
    "leakage_bootstrap",
    "leakage_distribution",
    "leakage_posterior",
    "leakage_uncertainty",
    "worst_member",
]
