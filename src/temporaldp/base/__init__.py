"""What every other wing uses: errors, checked names and values, progress, optional libraries, results as text and JSON.

errors       every error of the package
names        names of states, people, tables and times, and sentences that list them
values       checked numbers and arrays, and results that are compared by value
documents    records as JSON and back
progress     how far a long computation is, and whether it is still wanted
display      numbers as text, results in notebooks, and their figures
arrow        results as Arrow tables
extras       optional libraries, and what installs them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, ["arrow", "display", "documents", "errors", "extras", "names", "progress", "values"]
)
