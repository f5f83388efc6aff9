"""A level that is renewed: so much an epoch, and then again. What leaks about a step then is more than that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.accounting.protocol import AnyBound
from temporaldp.accounting.series import temporal_leakage
from temporaldp.accounting.ways import budgets
from temporaldp.correlation import Adversaries
from temporaldp.errors import BudgetError
from temporaldp.values import whole_number


@dataclass(frozen=True, slots=True)
class RenewalLeakage:
    """The largest leakage about any step of epochs that all spend the same; from `renewal_leakage`. In nats.

    Parameters
    ----------
    alone : float
        If there were only one epoch: what each of them holds by itself.
    together : float
        With all of them.
    epoch, step : int
        Where that is, the first such step: numbers from 0, the step within its epoch.
    n_epochs : int
    grows : bool
        Whether more epochs raise it: the last one did, by more than a millionth.
    """

    alone: float
    together: float
    epoch: int
    step: int
    n_epochs: int
    grows: bool


SAME = 1e-6
"""Relative: leakages so near to one another are the same, of two steps and of one epoch more."""


def renewal_leakage(
    adversary: Adversaries, epsilons: ArrayLike, *, n_epochs: int = 3, bound: AnyBound = "exact"
) -> RenewalLeakage:
    """What leaks if a level is renewed: the same budgets in every epoch, and an account of its own for each.

    The values of an epoch's last steps say something about the next one's first ones: what both release adds up. Exact, or an
    upper bound with ``bound="paper"``, as `temporal_leakage`.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        With constant matrices, or for all steps of all epochs.
    epsilons : array_like, shape (T,)
        What one epoch spends, step by step, in nats.
    n_epochs : int, >= 2
    bound : {"exact", "paper"}

    Raises
    ------
    BudgetError
        The budgets or the number of epochs are none.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix, plan_budget
    >>> matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> month = plan_budget(Adversary(matrix, matrix), alpha=1.0, horizon=30, method="optimal").epsilons
    >>> found = renewal_leakage(Adversary(matrix, matrix), month)
    >>> round(found.alone, 3), round(found.together, 3), found.step, found.grows
    (1.0, 1.39, 29, False)
    """
    n = whole_number(n_epochs, "n_epochs", least=2, error=BudgetError)
    one = budgets(epsilons)
    alone = temporal_leakage(adversary, epsilons=one, bound=bound).worst
    before = temporal_leakage(adversary, epsilons=np.tile(one, n - 1), bound=bound).worst
    whole = temporal_leakage(adversary, epsilons=np.tile(one, n), bound=bound)
    first = int(np.flatnonzero(whole.temporal >= whole.worst * (1.0 - SAME))[0])
    epoch, step = divmod(first, len(one))
    return RenewalLeakage(alone, whole.worst, epoch, step, n, whole.worst > before * (1.0 + SAME))
