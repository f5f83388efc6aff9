"""How often a budget may be refreshed, so that all epochs together satisfy a level."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate, repeat

from temporaldp.base.errors import InputError
from temporaldp.base.values import positive, whole_number
from temporaldp.core.accounting.supremum import leakage_supremum
from temporaldp.core.correlation import Adversary, TransitionMatrix
from temporaldp.core.correlation.protocol import Correlation

NEAR_PROMISE = 1.1
"""Level of a renewed budget where none is given, as a multiple of it: no interval between releases keeps leakage at 1."""


def refresh_interval(adversary: Adversary, epsilon: float, alpha: float, *, most: int = 1000) -> int | None:
    """Number of steps from one release to the next, with which leakage stays at or below alpha over an infinite horizon.

    An epsilon is spent at every k-th step, about the state of this step, and nothing in between. Leakage is bounded at every
    step: at those of releases it is exact, by the matrices of k steps; between them it is at most the paper's loss of what the
    releases before and after leak. The smallest such k if leakage decreases with k, as for chains that stay or move uniformly;
    of other chains, one with which the level holds. A budget that covers several states of a person per epoch needs more:
    the last state of an epoch is one step from the first of the next.

    Parameters
    ----------
    adversary : Adversary
        With one matrix per direction that is known exactly, or none.
    epsilon : float, > 0
        Event-level epsilon of one release, in nats.
    alpha : float, > 0
        Level, in nats.
    most : int
        Largest interval that is tried.

    Returns
    -------
    int or None
        In steps; None if no interval up to `most` was found.

    Raises
    ------
    InputError
        The matrices vary with time or are known up to intervals, or states are hidden.

    Examples
    --------
    >>> week = TransitionMatrix([[0.9, 0.1], [0.1, 0.9]])
    >>> refresh_interval(Adversary(week, week), 1.0, 1.1)
    14
    """
    if not isinstance(adversary, Adversary) or adversary.is_lifted or not adversary.is_constant:
        raise InputError("expected one adversary, with one matrix per direction that is known exactly")
    epsilon, alpha = positive(epsilon, "epsilon"), positive(alpha, "alpha")
    whole_number(most, "most", least=1)
    if not alpha > epsilon:
        return None

    def holds(interval: int) -> bool:
        return _holds(adversary, interval, epsilon, alpha)

    tried = next(filter(holds, (2**power for power in range(most.bit_length()))), most)
    found = bisect_left(range(tried), True, lo=tried // 2 + 1, key=holds)
    return found if found < tried or holds(tried) else None


def _holds(adversary: Adversary, interval: int, epsilon: float, alpha: float) -> bool:
    """Whether releases at every so many steps satisfy the level at every step."""
    past, future = (_powers(known, interval) for known in adversary.directions)
    apart = Adversary(*(powers[-1] if powers else None for powers in (past, future)))
    limits = leakage_supremum(apart, epsilon)
    if not limits.temporal <= alpha:
        return False
    before, after = (
        [matrix.leakage_profile().loss(limit) for matrix in powers[:-1]] or [0.0] * (interval - 1)
        for powers, limit in ((past, limits.backward), (future, limits.forward))
    )
    return all(one + other <= alpha for one, other in zip(before, reversed(after), strict=True))


def _powers(known: Correlation, most: int) -> list[TransitionMatrix]:
    """The matrices of 1, ..., `most` steps; none of an unknown direction."""
    return list(accumulate(repeat(known.at(0), most), lambda one, other: one @ other)) if known else []
