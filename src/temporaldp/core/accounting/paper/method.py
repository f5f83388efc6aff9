"""The paper's accounting method: one number is carried from step to step, an upper bound in microseconds.

``BPL_t = L_B(BPL_{t-1}) + e_t``, ``FPL_t = L_F(FPL_{t+1}) + e_t``, ``TPL_t = BPL_t + FPL_t - e_t`` (Equations 13, 15 and 10 of
Cao, Yoshikawa, Xiao and Xiong, ICDE 2017); over an infinite horizon, their Theorem 5 with `<` for its `<=`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from temporaldp.base.values import LARGEST, SMALLEST, ULP, FloatArray
from temporaldp.core.accounting.margins import STEP_MARGIN
from temporaldp.core.accounting.paper.arrivals import RAISED_LOSS, added, arrivals_of_users
from temporaldp.core.accounting.paper.online import (
    PaperFilter,
    PaperReserve,
    PaperSteps,
    asked_reserve,
    largest_reserve,
)
from temporaldp.core.accounting.protocol import SIDES, Accounting, Leakage, Limits, Side, budgets, constant_matrix
from temporaldp.core.accounting.stepwise import StepwiseOdometer
from temporaldp.core.correlation import Adversary
from temporaldp.core.mechanisms.likelihood_box import intervals, widths


class PaperBound(Accounting[FloatArray, FloatArray]):
    """The paper's recursions: one number is carried from step to step, an upper bound in microseconds.

    ``BPL_t = L_B(BPL_{t-1}) + e_t``, ``FPL_t = L_F(FPL_{t+1}) + e_t``, ``TPL_t = BPL_t + FPL_t - e_t`` (Equations 13, 15, 10
    of Cao, Yoshikawa, Xiao and Xiong, ICDE 2017). Releases are numbers (epsilons in nats) or boxes of likelihoods, which count
    by their width.
    """

    name = "paper"
    scope = "by the paper's bound"
    plans = "by recursion"
    remedy = "Plan by the exact leakage, which is the default."
    takes_sets = True
    allows_any_level = True

    sentence = (
        "Leakage is an upper bound by the recursions of the paper: BPL(t) = L_B(BPL(t-1)) + epsilon(t), FPL(t) = "
        "L_F(FPL(t+1)) + epsilon(t) and TPL(t) = BPL(t) + FPL(t) - epsilon(t), where L_B and L_F are the temporal privacy "
        "losses of the backward and the forward transition matrix."
    )

    def convert(self, releases: Sequence[Any], users: Sequence[Adversary]) -> FloatArray:
        """The epsilon of each step; the width of a box."""
        boxes = intervals(releases, users[0].n_states)
        return budgets(releases) if boxes is None else widths(*boxes)

    def arrivals(self, user: Adversary, side: Side, releases: FloatArray) -> FloatArray:
        """Zero at the first step, then the loss of the leakage one step before."""
        (arrived,) = _arrivals([user], side, releases)
        return np.asarray(arrived)

    def leakage(self, user: Adversary, past: FloatArray, releases: FloatArray, future: FloatArray) -> Leakage:
        """Sums of incoming leakage and epsilons."""
        return Leakage(added(past, releases), added(future, releases), added(added(past, releases), future))

    def supremum_arrivals(self, user: Adversary, side: Side, release: FloatArray) -> FloatArray:
        """The fixed point of the recursion, by a closed form over the profile; inf where there is none."""
        matrix = constant_matrix(user, side)
        if matrix is None:
            return np.zeros(1)
        # Steps of the recursion round up, by a share of what they pass on: as if each of them had spent so much more.
        epsilon, profile = float(release[0]), matrix.leakage_profile()
        level = profile.supremum(epsilon=epsilon)
        above = profile.supremum(epsilon=min(epsilon + 4.0 * RAISED_LOSS * level, LARGEST))
        return np.array([added(above, -epsilon) if above <= 3.0 * level < math.inf else math.inf])

    def supremum_leakage(self, user: Adversary, past: FloatArray, release: FloatArray, future: FloatArray) -> Limits:
        """Sums of incoming leakage and the epsilon. There is certainly none where a smaller epsilon has none either."""
        before, own, after = (float(one[0]) for one in (past, release, future))
        both = added(added(before, own), after)
        certified = math.isfinite(both) or any(
            matrix is not None
            and matrix.leakage_profile().supremum(epsilon=max(own * (1.0 - 1e-12), SMALLEST)) == math.inf
            for matrix in (constant_matrix(user, side) for side in SIDES)
        )
        return Limits(added(before, own), added(after, own), both, certified=certified)

    def plan_margin(self, alpha: float, horizon: int, n_states: int) -> float:
        """A share for each step."""
        return horizon * STEP_MARGIN

    def sustainable_epsilon(self, users: Sequence[Adversary], alpha: float) -> float:
        """Sustainable budget by the paper's Algorithm 2 without its loop, less the rounding of every step."""
        return largest_reserve([PaperSteps(user) for user in users], alpha).epsilon * (1.0 - 4.0 * ULP)

    def odometer(self, user: Adversary) -> StepwiseOdometer[float, float]:
        """Odometer by the recursion, as far back as it changes."""
        return StepwiseOdometer(PaperSteps(user))

    def filters(
        self, users: Sequence[Adversary], alpha: float, reserve: float | None, horizon: int | None
    ) -> tuple[list[PaperFilter], float]:
        """Filters in closed form."""
        steps = [PaperSteps(user) for user in users]
        if reserve is not None:
            kept = asked_reserve(steps, alpha, reserve)
        else:
            kept = PaperReserve(0.0, (0.0,) * len(users)) if horizon is not None else largest_reserve(steps, alpha)
        found = [PaperFilter.at_start(one, alpha, v, horizon) for one, v in zip(steps, kept.arriving, strict=True)]
        return found, kept.epsilon

    def series(self, users: Sequence[Adversary], releases: FloatArray) -> list[Leakage]:
        """All users at once."""
        past, future = (_arrivals(users, side, releases) for side in ("backward", "forward"))
        return [
            self.leakage(user, before, releases, after) for user, before, after in zip(users, past, future, strict=True)
        ]


def _arrivals(users: Sequence[Adversary], side: Side, releases: FloatArray) -> FloatArray:
    """Incoming leakage of every step of every user, shape (users, T)."""
    if side == "backward":
        return arrivals_of_users([user.backward for user in users], releases)
    # Forward leakage runs from the last step to the first: the same recursion on everything reversed.
    return arrivals_of_users([user.forward.in_reverse() for user in users], releases[::-1])[:, ::-1]


PAPER = PaperBound()
"""No other method exceeds its bound."""
