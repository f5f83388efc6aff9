"""Input and output: traces, matrices, plans, tables. Files are written completely or not at all."""

from temporaldp.data.files.counts import read_counts
from temporaldp.data.files.matrices import load_correlation, load_matrix, save_correlation, save_matrix
from temporaldp.data.files.plans import load_leakage, load_plan, save_leakage, save_plan
from temporaldp.data.files.traces import load_sample, read_traces, sample_commuters

__all__ = [
    "load_correlation",
    "load_leakage",
    "load_matrix",
    "load_plan",
    "load_sample",
    "read_counts",
    "read_traces",
    "sample_commuters",
    "save_correlation",
    "save_leakage",
    "save_matrix",
    "save_plan",
]
