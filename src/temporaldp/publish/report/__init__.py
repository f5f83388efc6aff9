"""Reports: the guarantee in sentences, figures, and one self-contained page."""

from temporaldp.publish.report import figures, study_figures  # noqa: F401  # the figures that `plot` draws
from temporaldp.publish.report.content import EpochLeakage, Publication, Recipe, Report
from temporaldp.publish.report.page import render_report, write_report

__all__ = [
    "EpochLeakage",
    "Publication",
    "Recipe",
    "Report",
    "render_report",
    "write_report",
]
