"""Showing it: the guarantee in words, figures, and one self-contained page."""

from temporaldp.report.content import Evidence, Provenance, TableLeakage
from temporaldp.report.page import render_report, write_report

__all__ = ["Evidence", "Provenance", "TableLeakage", "render_report", "write_report"]
