"""How much to spend: the optimal plan, the paper's two algorithms, and the plan itself."""

from temporaldp.planning.budget import compare_plans, plan_budget, sustainable_budget
from temporaldp.planning.plan import BudgetPlan
from temporaldp.planning.replan import replan

__all__ = ["BudgetPlan", "compare_plans", "plan_budget", "replan", "sustainable_budget"]
