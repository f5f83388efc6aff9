"""A correlation learned from protected traces with differential privacy: one noisy histogram of transitions."""

from __future__ import annotations

import os

import numpy as np

from temporaldp.base.errors import EstimationError
from temporaldp.base.values import positive, real_number, whole_number
from temporaldp.core.accounting import accounting_blocks, temporal_leakage
from temporaldp.core.correlation import Adversary
from temporaldp.core.planning import BudgetPlan
from temporaldp.data.counts.transitions import TransitionHistogram, adversary_of
from temporaldp.data.tables.traces import Traces
from temporaldp.publish.release.high_water import require_decision
from temporaldp.publish.release.store import Store
from temporaldp.publish.release.stream import ContinualRelease

MOST_STATES = 2_000
"""States up to which a noisy table of transitions is drawn: beyond, nearly all of it would be noise."""

CONTRIBUTED = 10
"""Transitions of each person, unless it is said how many: more of them cost noise, fewer cost data."""


def learn_correlation(
    trajectories: Traces,
    *,
    epsilon: float,
    contributed: int = CONTRIBUTED,
    confidence: float = 0.95,
    ledger: str | os.PathLike[str] | Store | None = None,
    begin_anew: bool = False,
    rng: np.random.Generator | int | None = None,
) -> Adversary:
    """Learn a correlation from protected traces with differential privacy, as intervals for sampling error and noise.

    At most `contributed` transitions of each person, drawn at random, are counted, and exact discrete Laplace noise of scale
    ``2 contributed / epsilon`` (OpenDP) is added to every cell of the table: epsilon-DP for all states of a person together,
    under replacement of the person. So for every correlation that the adversary knows, a release that is alpha-DP_T is
    (alpha + epsilon)-DP_T together with everything that is published about the correlation (Theory, section 12).

    Parameters
    ----------
    trajectories : Traces
        The list of states, the times and the number of people are assumed to be public.
    epsilon : float, > 0
        In nats.
    contributed : int, >= 1
        l. The noise is proportional to it; the usual number of transitions per person is a good choice.
    confidence : float
        Probability (0 to 1) that all entries of both matrices are in their intervals, if the states form a stationary Markov
        chain. In such a chain the states before and after a transition have the same distribution: where the noisy counts
        contradict that, `Adversary.contradiction` is a warning that the backward intervals may not contain the truth.
    ledger : path or str, optional
        A separate ledger for this spend (an SQLite file, made if there is none, or a PostgreSQL URL). A stored result is
        returned and never drawn again.
    begin_anew : bool
        As for `ContinualRelease`: learn again although the ledger of the spend was lost, so that both spends add up. Refused
        where nothing is missing.
    rng : numpy Generator or seed, optional
        Source of the choice of transitions, made for each person on their own, so that privacy does not depend on it; the
        noise is always OpenDP's.

    Returns
    -------
    Adversary
        With a backward and a forward `IntervalMatrix`, whose origin records the epsilon spent.

    Raises
    ------
    LedgerMismatchError
        The ledger is that of another release.
    BudgetError
        epsilon is not positive, or so small that noise would not fit.
    InputError, EstimationError
        contributed or confidence are out of range; more than 2,000 states.

    Examples
    --------
    >>> from temporaldp import load_sample
    >>> adversary = learn_correlation(load_sample(), epsilon=1.0)
    >>> adversary.forward.origin.source, adversary.forward.origin.epsilon
    ('learnt', 1.0)
    """
    level = real_number(confidence, "confidence", gt=0.0, lt=1.0)
    each = whole_number(contributed, "the number of transitions of each person", least=1)
    if trajectories.n_states > MOST_STATES:
        raise EstimationError(
            f"expected at most {MOST_STATES} states for a noisy table of transitions, got {trajectories.n_states}; group them"
        )
    mechanism = TransitionHistogram(trajectories.n_states, each, rng)
    budget = positive(epsilon, "epsilon")
    if ledger is None:
        require_decision(None, begin_anew=begin_anew)
        return adversary_of(mechanism(trajectories, budget), trajectories, mechanism, budget, level)
    # One step, of one budget; accountants of blocks around count states, not people.
    plan = BudgetPlan(
        leakage=temporal_leakage(Adversary(), [budget]), alpha=budget, epsilons=np.array([budget]), method="uniform"
    )
    described = f"{mechanism!r} of {trajectories.n_users} people"
    with (
        accounting_blocks.settled(),
        ContinualRelease(
            mechanism,
            ledger=ledger,
            plan=plan,
            states=trajectories.states,
            step=trajectories.step,
            description=described,
            begin_anew=begin_anew,
        ) as release,
    ):
        noisy = np.asarray(release.release(trajectories, time="correlation", epsilon=budget, last=True))
    return adversary_of(noisy, trajectories, mechanism, budget, level)
