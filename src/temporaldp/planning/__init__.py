"""Plans: the optimal plan, the paper's two algorithms, noise at a delta, and the plans themselves."""

from temporaldp.planning.budget import PlanComparison, compare_plans, plan_budget, sustainable_budget
from temporaldp.planning.budget_plan import BudgetPlan
from temporaldp.planning.noise import plan_noise
from temporaldp.planning.noise_plan import NoisePlan
from temporaldp.planning.people import SharePlan, plan_for_share
from temporaldp.planning.plan import Optimality, Plan
from temporaldp.planning.renewal import RenewalLeakage, renewal_leakage
from temporaldp.planning.replan import replan
from temporaldp.planning.source import Source

__all__ = [
    "BudgetPlan",
    "NoisePlan",
    "Optimality",
    "Plan",
    "PlanComparison",
    "RenewalLeakage",
    "SharePlan",
    "Source",
    "compare_plans",
    "plan_budget",
    "plan_for_share",
    "plan_noise",
    "renewal_leakage",
    "replan",
    "sustainable_budget",
]
