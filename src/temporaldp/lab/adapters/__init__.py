"""Adapters that guard OpenDP, Tumult Analytics, diffprivlib and dp-accounting with a temporal accountant.

Every adapter charges the accountant for a whole step before it returns any answer of that step; a step that would exceed the
level is refused. Within a step, the library enforces its own budget.
"""

from temporaldp.lab.adapters.diffprivlib_steps import diffprivlib
from temporaldp.lab.adapters.dp_accounting_accountant import dp_accounting
from temporaldp.lab.adapters.opendp_steps import opendp
from temporaldp.lab.adapters.tumult_steps import tumult

__all__ = ["diffprivlib", "dp_accounting", "opendp", "tumult"]
