"""What every other wing uses: errors, checked values, progress, optional libraries, and results as text, tables and JSON.

errors       every error of the package
values       checked numbers and arrays, and results that are compared by value
documents    records as JSON and back
progress     how far a long computation is, and whether it is still wanted
display      numbers as text, results in notebooks, and their figures
arrow        results as Arrow tables
extras       optional libraries, and what installs them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, ["arrow", "display", "documents", "errors", "extras", "progress", "values"]
)
