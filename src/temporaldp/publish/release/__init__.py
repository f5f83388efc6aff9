"""Releases: each step checked, drawn, stored and published exactly once, under a plan or from a ledger."""

from temporaldp.publish.release.correlations import adopt_correlation, learn_correlation
from temporaldp.publish.release.histograms import Release, filtered_histograms, release_histograms, release_snapshots
from temporaldp.publish.release.ledger import Ledger
from temporaldp.publish.release.outputs import export_ledger
from temporaldp.publish.release.shared_account import SharedRelease
from temporaldp.publish.release.stream import ContinualRelease

__all__ = [
    "ContinualRelease",
    "Ledger",
    "Release",
    "SharedRelease",
    "adopt_correlation",
    "export_ledger",
    "filtered_histograms",
    "learn_correlation",
    "release_histograms",
    "release_snapshots",
]
