"""How much to spend: the paper's two algorithms and the plan itself."""

from temporaldp.planning.budget import plan_budget
from temporaldp.planning.plan import BudgetPlan

__all__ = ["BudgetPlan", "plan_budget"]
