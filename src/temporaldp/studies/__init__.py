"""Studies of a release or a correlation: diagnosis, uncertainty, populations, and the attack."""

from temporaldp.studies.diagnosis import Diagnosis, ModelLeakage, diagnose
from temporaldp.studies.distribution import LeakageDistribution, leakage_distribution
from temporaldp.studies.leakage_draws import LeakageDraws, leakage_bootstrap, leakage_posterior
from temporaldp.studies.lifted_leakage import LiftedLeakage, lifted_leakage
from temporaldp.studies.release_attack import ReleaseAttack, attack_release
from temporaldp.studies.uncertainty import LeakageUncertainty, leakage_uncertainty
from temporaldp.studies.worst_member import WorstMember, worst_member

__all__ = [
    "Diagnosis",
    "LeakageDistribution",
    "LeakageDraws",
    "LeakageUncertainty",
    "LiftedLeakage",
    "ModelLeakage",
    "ReleaseAttack",
    "WorstMember",
    "attack_release",
    "diagnose",
    "leakage_bootstrap",
    "leakage_distribution",
    "leakage_posterior",
    "leakage_uncertainty",
    "lifted_leakage",
    "worst_member",
]
