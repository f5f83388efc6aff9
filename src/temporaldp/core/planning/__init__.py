"""Plans: the optimal plan, the paper's two algorithms, noise at a delta, and the plans themselves."""

from temporaldp.core.planning.budget import PlanComparison, compare_plans, plan_budget, sustainable_budget
from temporaldp.core.planning.budget_plan import BudgetPlan
from temporaldp.core.planning.every_correlation import epochs_together, plan_guarantee
from temporaldp.core.planning.guarantee import Guarantee
from temporaldp.core.planning.noise import plan_noise
from temporaldp.core.planning.noise_plan import NoisePlan
from temporaldp.core.planning.people import SharePlan, plan_for_share
from temporaldp.core.planning.plan import Optimality, Plan
from temporaldp.core.planning.refresh import refresh_interval
from temporaldp.core.planning.renewal import leakage_of_epochs
from temporaldp.core.planning.replan import replan

__all__ = [
    "BudgetPlan",
    "Guarantee",
    "NoisePlan",
    "Optimality",
    "Plan",
    "PlanComparison",
    "SharePlan",
    "compare_plans",
    "epochs_together",
    "leakage_of_epochs",
    "plan_budget",
    "plan_for_share",
    "plan_guarantee",
    "plan_noise",
    "refresh_interval",
    "replan",
    "sustainable_budget",
]
