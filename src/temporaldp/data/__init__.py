"""Tables of people over time, and counts made from them.

tables       traces of any size, their steps and states, and correlations estimated from them
files        files of traces, matrices, plans and counts, in and out
counts       mechanisms of counts, sums and transitions; consistent and smoothed counts
smoothing    the state space of counts: filter, smoother, tradeoffs
sample       the bundled traces
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["counts", "files", "smoothing", "tables"])
