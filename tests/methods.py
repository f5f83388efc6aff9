"""Accounting methods by name, for parametrized tests."""

from temporaldp import Exact, PaperBound
from temporaldp.accounting import Accounting

METHODS = {"exact": Exact(), "paper": PaperBound()}


def method_of(name):
    """The method of a name; a method is returned as it is."""
    return name if isinstance(name, Accounting) else METHODS[name]
