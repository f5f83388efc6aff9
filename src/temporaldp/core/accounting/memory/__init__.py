"""Accounting for chains with a longer memory."""

from temporaldp.core.accounting.memory.method import LongerMemory

__all__ = ["LongerMemory"]
