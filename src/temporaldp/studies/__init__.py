"""Studies of a release or a correlation: diagnosis, uncertainty, populations, verification by simulation, and the attack."""

from temporaldp.studies.diagnosis import Diagnosis, ModelLeakage, diagnose
from temporaldp.studies.distribution import LeakageDistribution, leakage_distribution
from temporaldp.studies.leakage_draws import LeakageDraws, leakage_bootstrap, leakage_posterior
from temporaldp.studies.lifted_leakage import LiftedLeakage, lifted_leakage
from temporaldp.studies.release_attack import ReleaseAttack, attack_release
from temporaldp.studies.uncertainty import LeakageUncertainty, leakage_uncertainty
from temporaldp.studies.worst_member import WorstMember, worst_member
from temporaldp.verification import OwnLeakage, VerifiedLeakage, own_leakage, verify_leakage

__all__ = [
    "Diagnosis",
    "LeakageDistribution",
    "LeakageDraws",
    "LeakageUncertainty",
    "LiftedLeakage",
    "ModelLeakage",
    "OwnLeakage",
    "ReleaseAttack",
    "VerifiedLeakage",
    "WorstMember",
    "attack_release",
    "diagnose",
    "leakage_bootstrap",
    "leakage_distribution",
    "leakage_posterior",
    "leakage_uncertainty",
    "lifted_leakage",
    "own_leakage",
    "verify_leakage",
    "worst_member",
]
