"""Leakage over time of a published system, from its record in the public registry alone."""

from temporaldp.publish.deployment.assumptions import Assumptions
from temporaldp.publish.deployment.card import DeploymentCard
from temporaldp.publish.deployment.over_time import LeakageOverTime
from temporaldp.publish.deployment.record import Deployment
from temporaldp.publish.deployment.unit import PrivacyUnit

__all__ = ["Assumptions", "Deployment", "DeploymentCard", "LeakageOverTime", "PrivacyUnit"]
