"""Former place of `temporaldp.kernels.interval`, for modules that still import from here."""

from temporaldp.kernels.interval import interval_profile

__all__ = ["interval_profile"]
