"""Leakage over time of a published system, from its record in the public registry alone."""

from temporaldp.deployment.card import DeploymentCard
from temporaldp.deployment.over_time import LeakageOverTime
from temporaldp.deployment.question import Question
from temporaldp.deployment.record import Deployment
from temporaldp.deployment.unit import PrivacyUnit

__all__ = ["Deployment", "DeploymentCard", "LeakageOverTime", "PrivacyUnit", "Question"]
