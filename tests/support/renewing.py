"""A release that is renewed: one person of two values, and a plan of three steps that begins again."""

from __future__ import annotations

import numpy as np

from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    TemporalAccountant,
    TransitionMatrix,
    plan_budget,
)

BACK, FORTH = np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[0.8, 0.2], [0.3, 0.7]])
ADVERSARY = Adversary(TransitionMatrix(BACK), TransitionMatrix(FORTH))
PLAN = plan_budget(ADVERSARY, alpha=1.0, horizon=3)


def opened(place, *, plan=PLAN, adversary=ADVERSARY, renewed="steps", step=None, timezone=None, **terms):
    """The release with this ledger, by an accountant with these terms."""
    accountant = TemporalAccountant(adversary, **terms)
    terms = {"ledger": place, "plan": plan, "accountant": accountant, "renewed": renewed, "step": step}
    return ContinualRelease(DiscreteLaplaceHistogram(2), **terms, timezone=timezone)
