"""How far a bound of leakage at a delta is from the leakage of the release itself, by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from temporaldp.accounting.simulation.verification import verified_at
from temporaldp.correlation import Adversary

SHARES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
"""Of the certified leakage: where it is asked whether the release itself leaks more, or less."""

FAILURE_SHARE = 1e-3
"""Of delta is the probability that draws deceive, unless one is given."""


@dataclass(frozen=True, slots=True)
class OwnLeakage:
    """The worst leakage of a release itself, between two bounds; from `own_leakage`.

    Parameters
    ----------
    delta, failure : float
        Both bounds hold, but with a probability of `failure` that the draws deceive.
    lower, upper : float
        In nats. `upper` is `certified` where nothing smaller was verified, `lower` 0 where nothing was refuted.
    certified : float
        The upper bound by the curves of all pairs, which no draw can deceive.
    """

    delta: float
    failure: float
    lower: float
    upper: float
    certified: float

    @property
    def ratio(self) -> float:
        """How many times as large as the release's own leakage the certified bound is, at most; inf where `lower` is 0."""
        return self.certified / self.lower if self.lower > 0.0 else math.inf

    @property
    def sentence(self) -> str:
        """In words."""
        low, high = math.floor(1e3 * self.lower) / 1e3, math.ceil(1e3 * self.upper) / 1e3
        told = f"between {low:g} and {high:g}, but with a probability of {self.failure:g} that the draws deceive"
        if math.isinf(self.ratio):
            return f"{told}; too few draws to say how far the bound is from it"
        return f"{told}; the bound is at most {math.ceil(100.0 * self.ratio) / 100.0:g} times as much"


def own_leakage(
    adversary: Adversary,
    mechanisms: Sequence[Any],
    *,
    delta: float,
    failure: float | None = None,
    draws: int = 400_000,
    seconds: float | None = None,
    seed: int = 0,
) -> OwnLeakage:
    """Confidence bounds of the worst leakage at a delta of a release itself: the distance of `temporal_leakage` from it.

    At some shares of the certified leakage, chosen before anything is drawn, `verify_leakage` asks by the same draws whether
    the release leaks more, or less; each has its share of the failure probability.

    Parameters
    ----------
    adversary : Adversary
    mechanisms, delta, draws, seconds, seed
        As for `verify_leakage`, whose errors it has.
    failure : float, optional
        Probability that the draws deceive, below delta. Default: a thousandth of it.

    Examples
    --------
    >>> from temporaldp import Adversary, GaussianNoise, TransitionMatrix
    >>> walk = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    >>> found = own_leakage(walk, [GaussianNoise(4.0, sensitivity=1.0)] * 3, delta=1e-2, draws=40_000)
    >>> found.lower < found.upper <= found.certified, found.ratio < 1.5
    (True, True)
    """
    chance = FAILURE_SHARE * delta if failure is None else failure

    def looked_at(certified: float) -> list[float]:
        return [share * certified for share in (*SHARES, 1.0)]

    found = verified_at(
        adversary, mechanisms, delta, looked_at, failure=chance, draws=draws, seconds=seconds, seed=seed
    )
    certified = found[-1].epsilon
    lower = max((one.epsilon for one in found if one.is_refuted), default=0.0)
    upper = min((one.epsilon for one in found if one.holds), default=certified)
    return OwnLeakage(delta, chance, lower, upper, certified)
