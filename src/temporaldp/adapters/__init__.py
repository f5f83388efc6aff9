"""A temporal accountant around what runs already: OpenDP, Tumult Analytics, diffprivlib, and dp-accounting's interface.

Every adapter keeps one order: the accountant is charged for a step, whole, before anything of it is answered, and refuses it
where the level would break. Within the step the library's own budget holds.
"""

from temporaldp.adapters.diffprivlib_steps import diffprivlib
from temporaldp.adapters.dp_accounting_accountant import dp_accounting
from temporaldp.adapters.loss_distributions import loss_distribution
from temporaldp.adapters.opendp_steps import opendp
from temporaldp.adapters.tumult_steps import tumult

__all__ = ["diffprivlib", "dp_accounting", "loss_distribution", "opendp", "tumult"]
