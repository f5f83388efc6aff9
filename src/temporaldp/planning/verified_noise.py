"""Less noise than accounting certifies, verified by simulation; the probability of a wrong verification is part of delta.

Each attempt depends on the results of earlier ones. So every attempt, for every user, has its share of the failure
probability, whether it is made or not: any of them is wrong with at most that probability (Theory, section 16).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from temporaldp.accounting import LeakageSeries
from temporaldp.accounting.curve.method import Verified
from temporaldp.correlation import Adversaries, Adversary
from temporaldp.correlation.adversary import exactly_known
from temporaldp.correlation.population import Population
from temporaldp.errors import BudgetError, InputError
from temporaldp.planning.histogram_noise import Noise, histogram_profile
from temporaldp.progress import part
from temporaldp.values import FloatArray, real_number, whole_number
from temporaldp.verification.leakage import verify_leakage

ATTEMPTS = 5
"""Amounts of noise that are simulated: half of what is left of the range is ruled out by each."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of verifying the noise of a plan by simulation.

    Parameters
    ----------
    failure : float
        Probability that the verification of any attempt is wrong; part of the plan's delta. 0 if the plan is the certified one.
    share : float
        Failure probability of one attempt for one user.
    draws, seed : int
        Number of draws of each attempt, and their seed.
    attempts : int
        Number of finished attempts.
    certified_noise : float
        Mean absolute noise of a count, in people, under the certified plan, which needs no simulation.
    out_of_time : bool
        Whether the search ended at its time limit.
    """

    failure: float
    share: float
    draws: int
    seed: int
    attempts: int
    certified_noise: float
    out_of_time: bool

    @property
    def sentence(self) -> str:
        """Sentence about the draws and the risk, for reports."""
        tried = f"{self.attempts} of {ATTEMPTS} attempts of {self.draws:,} draws" + (
            ", then the time was over" if self.out_of_time else ""
        )
        if not self.failure:
            return f"no less noise was verified by simulation ({tried}): this is the certified plan, which holds without it"
        return (
            f"by simulation ({tried}): the level is held but with a probability of {self.failure:g} that the draws deceive, "
            f"which is part of delta; certified without simulation is {self.certified_noise:.4g} of noise per count"
        )


@dataclass(frozen=True, slots=True)
class Simulating:
    """Limits of a search by simulation; `failure` is the probability of a wrong verification, or None for a share of delta."""

    failure: float | None = None
    draws: int = 1_000_000
    seconds: float | None = None
    seed: int = 0

    def checked(self, adversaries: Adversaries, delta: float, horizon: int | None) -> Simulating:
        """With a failure probability.

        Raises
        ------
        BudgetError
            The failure probability is not below delta, or there is no horizon.
        InputError
            A user's states cannot be simulated.
        """
        # Default share of delta that is the failure probability of the simulation
        failure = 1e-3 * delta if self.failure is None else self.failure
        real_number(failure, "failure probability, which is part of delta,", gt=0.0, lt=delta, error=BudgetError)
        if horizon is None:
            raise BudgetError("expected a horizon with verify: a simulation has a finite number of steps")
        if self.seconds is not None and not self.seconds > 0.0:
            raise InputError(f"expected seconds > 0, got {self.seconds!r}")
        whole_number(self.draws, "draws", least=1)
        for user in Population.of(adversaries).users:
            if user.states is None:
                raise InputError("expected adversaries with a correlation: without one, states cannot be drawn")
            for matrix in user.matrices:
                exactly_known(matrix)
        return replace(self, failure=failure)


def least_verified(
    users: Sequence[Adversary], noise: Noise, scales: FloatArray, certified_noise: float, *, alpha: float, delta: float,
    by: Simulating,
) -> tuple[FloatArray, Verification]:  # fmt: skip
    """The smallest verified multiple of the certified scales, and its verification; the certified scales if there is none."""
    assert by.failure is not None
    end = math.inf if by.seconds is None else time.monotonic() + by.seconds
    share = by.failure / (ATTEMPTS * len(users))
    # Smallest share of the certified noise that is tried: the bounds of one release are rarely looser
    low, high, finished = 0.8, 1.0, 0
    while finished < ATTEMPTS:
        middle = math.sqrt(low * high)
        one = Verification(by.failure, share, by.draws, by.seed, finished, certified_noise, False)
        with part(finished / ATTEMPTS, (finished + 1) / ATTEMPTS, "less noise, simulated"):
            held = is_verified(users, noise, scales * middle, alpha=alpha, delta=delta, by=one, end=end)
        if held is None:
            break
        finished += 1
        low, high = (low, middle) if held else (middle, high)
    failure = by.failure if high < 1.0 else 0.0
    return scales * high, Verification(
        failure, share, by.draws, by.seed, finished, certified_noise, finished < ATTEMPTS
    )


def is_verified(
    users: Sequence[Adversary], noise: Noise, scales: FloatArray, *, alpha: float, delta: float, by: Verification,
    end: float = math.inf,
) -> bool | None:  # fmt: skip
    """Whether alpha is satisfied at delta less the failure probability, for every user; None at the time limit."""
    made = [histogram_profile(noise, scale) for scale in scales.tolist()]
    for user in users:
        left = end - time.monotonic()
        if left <= 0.0:
            return None
        found = verify_leakage(
            user,
            made,
            delta=delta - by.failure,
            epsilon=alpha,
            failure=by.share,
            draws=by.draws,
            seconds=None if end == math.inf else left,
            seed=by.seed,
        )
        if time.monotonic() >= end:
            return None
        if not found.holds:
            return False
    return True


def verified_series(certified: LeakageSeries, alpha: float) -> LeakageSeries:
    """Series of a release that was verified to leak at most alpha: at each step alpha or the certified leakage.

    The leakage of several steps together stays the certified one.
    """
    past, future, both = (
        np.minimum(known, alpha) for known in (certified.backward, certified.forward, certified.temporal)
    )
    members = tuple(verified_series(member, alpha) for member in certified.members)
    return replace(
        certified, backward=past, forward=future, temporal=both, accounting=Verified(certified.delta), members=members
    )
