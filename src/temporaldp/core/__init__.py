"""What a scientist reads: arrays in, numbers out. No files, no queries, no time zones.

kernels      functions of arrays, in NumPy
correlation  transition matrices, and the adversaries who know them
mechanisms   what one release reveals
accounting   what releases leak: `Exact` and the other methods, series, suprema, the accountant
planning     budgets and noise that satisfy a level
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, ["accounting", "correlation", "kernels", "mechanisms", "planning"]
)
