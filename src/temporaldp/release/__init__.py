"""Releases: each step checked, drawn, stored and published exactly once, under a plan or from a ledger."""

from temporaldp.release.adopting import adopt_correlation
from temporaldp.release.export import export_ledger
from temporaldp.release.histograms import filtered_histograms, release_histograms
from temporaldp.release.learning import learn_correlation
from temporaldp.release.ledger import Ledger
from temporaldp.release.shared_account import SharedRelease
from temporaldp.release.snapshots import Release, release_snapshots
from temporaldp.release.stream import ContinualRelease

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
