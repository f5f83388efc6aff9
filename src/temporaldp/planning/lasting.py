"""What every step can spend for ever: the largest constant budget whose supremum holds a level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.ways import way_of_epsilons
from temporaldp.planning.holding import Users

FloatArray = NDArray[np.float64]


def lasting_budget(users: Users, alpha: float, *, known: float, metric: FloatArray | None = None) -> float:
    """As `Accounting.lasting_epsilon`, and no less than what is known to hold."""
    way = way_of_epsilons("exact", metric, users[0][1].states)
    return max(known, way.lasting_epsilon([one for _, one in users], alpha))
