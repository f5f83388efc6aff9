"""Research on releases, and other libraries: clients of the public functions.

correlated_noise  outputs about several steps, and their event-level budgets
studies           diagnosis, uncertainty, longer memory, populations, the worst member of a set, the attack
adapters          mechanisms and accountants of other libraries
cluster           populations on Spark
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["adapters", "cluster", "correlated_noise", "studies"])
