"""Showing it: the guarantee in words, figures, and one self-contained page."""

from temporaldp.report.content import Evidence, Provenance
from temporaldp.report.page import render_report, write_report

__all__ = ["Evidence", "Provenance", "render_report", "write_report"]
