"""Reports: the guarantee in sentences, figures, and one self-contained page."""

from temporaldp.publish.report import figures, population, tradeoff_figure  # noqa: F401  # the figures that `plot` draws
from temporaldp.publish.report.content import EpochLeakage, Evidence, Recipe
from temporaldp.publish.report.page import render_report, write_report

__all__ = [
    "EpochLeakage",
    "Evidence",
    "Recipe",
    "render_report",
    "write_report",
]
