"""How much to spend: the optimal plan, the paper's two algorithms, noise at a delta, and the plans themselves."""

from temporaldp.planning.budget import PlanComparison, compare_plans, plan_budget, sustainable_budget
from temporaldp.planning.noise import plan_noise
from temporaldp.planning.plan import BudgetPlan, NoisePlan, Optimality, Plan, Source
from temporaldp.planning.replan import replan

__all__ = [
    "BudgetPlan",
    "NoisePlan",
    "Optimality",
    "Plan",
    "PlanComparison",
    "Source",
    "compare_plans",
    "plan_budget",
    "plan_noise",
    "replan",
    "sustainable_budget",
]
