"""Showing it: the guarantee in words, figures, and one self-contained page."""

from temporaldp.report.content import EpochLeakage, Evidence, Provenance, RenewedLeakage, TableLeakage
from temporaldp.report.page import render_report, write_report

__all__ = [
    "EpochLeakage",
    "Evidence",
    "Provenance",
    "RenewedLeakage",
    "TableLeakage",
    "render_report",
    "write_report",
]
