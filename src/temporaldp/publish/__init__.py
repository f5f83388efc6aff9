"""Releases, their ledgers, and what is said about them.

release      the ledger; continual, shared and renewed releases
report       pages and figures about leakage, and the sentences that all outputs share
project      the project file: from its settings to data, adversaries, releases and reports
deployment   cards for published systems
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["deployment", "project", "release", "report"])
