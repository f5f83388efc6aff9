"""The correlation of a release: adopted from a step on, or learned from protected traces with differential privacy."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from temporaldp.base.errors import EstimationError, InputError, PlanError
from temporaldp.base.values import positive, real_number, whole_number
from temporaldp.core.accounting import TemporalAccountant, accounting_blocks, temporal_leakage
from temporaldp.core.accounting.exact.method import Exact
from temporaldp.core.accounting.monotone_search import largest
from temporaldp.core.correlation import Adversaries, Adversary, Population
from temporaldp.core.planning import BudgetPlan, Plan
from temporaldp.core.planning.renewal import leakage_going_on
from temporaldp.data.counts.transitions import TransitionHistogram, adversary_of
from temporaldp.data.tables.traces import Traces
from temporaldp.publish.release.chain import LedgerEvent
from temporaldp.publish.release.database import Store
from temporaldp.publish.release.key_and_marks import require_decision
from temporaldp.publish.release.ledger import Ledger
from temporaldp.publish.release.renewal import renewal_of, repeated_budgets, require_renewable
from temporaldp.publish.release.resuming import (
    accountant_of,
    correlations_of,
    hashed_names,
    keep_correlations,
    plan_digest,
)
from temporaldp.publish.release.stream import ContinualRelease


def adopt_correlation(
    ledger: str | os.PathLike[str] | Ledger,
    adversary: Adversaries,
    *,
    both: bool = False,
    by: str | None = None,
    plan: Plan | None = None,
) -> LedgerEvent:
    """Account for a ledger's release with other matrices from the next step on; steps so far keep theirs.

    All steps satisfy the level (`TemporalAccountant.adopt`). Open releases read the adoption before their next step; a release
    that is opened later is given the new correlation.

    Parameters
    ----------
    ledger : path, str or Ledger
    adversary : Adversary, or an iterable or mapping of them
        The correlations from the next step on.
    both : bool
        Satisfy the level whether the correlation has changed or not.
    by : str, optional
        Name of the person who adopts it, for the ledger. Default: that of the user account.
    plan : BudgetPlan, optional
        Plan of a renewed level, which requires one: made with the new correlation, for the same alpha and number of steps. Each
        epoch satisfies alpha by itself; the remaining steps of the current epoch spend a share of the plan's budgets.

    Returns
    -------
    LedgerEvent
        Its details contain the reserve that every later step may spend, in nats; for a renewed level, that share and the upper
        bound of the leakage of all epochs.

    Raises
    ------
    InputError
        The release is not accounted for exactly, has a horizon or no accountant, or the matrices or the plan do not fit.
    PlanError
        The plan does not satisfy its level for the new correlation, or the leakage of its renewal is unbounded.
    LedgerError
        The ledger cannot be written, or its matrices are not stored in it. Nothing is changed.

    Examples
    --------
    >>> import tempfile
    >>> from temporaldp import Adversary, ContinualRelease, DiscreteLaplaceHistogram, TransitionMatrix
    >>> calm, busy = (TransitionMatrix([[p, 1.0 - p], [1.0 - p, p]]) for p in (0.6, 0.9))
    >>> def publish(place, matrix, hour):
    ...     accountant = TemporalAccountant(Adversary(matrix, matrix), alpha=1.0)
    ...     with ContinualRelease(DiscreteLaplaceHistogram(2), ledger=place, accountant=accountant) as stream:
    ...         _ = stream.release([70, 30], time=hour)
    ...         return len(stream), 0.0 < stream.accountant.total() <= 1.0
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = publish(f"{folder}/release.db", calm, 9)
    ...     event = adopt_correlation(f"{folder}/release.db", Adversary(busy, busy), by="Ann")
    ...     first, (event.by, event.step), publish(f"{folder}/release.db", busy, 10)
    ((1, True), ('Ann', 1), (2, True))
    """
    if not isinstance(ledger, Ledger):
        with Ledger(ledger) as opened:
            return adopt_correlation(opened, adversary, both=both, by=by, plan=plan)
    is_renewed = "renewal" in ledger.configuration
    if plan is not None and not is_renewed:
        raise InputError(f"the level of {ledger.place} is not renewed: it adopts a correlation alone, without a plan")
    now = Population.of(adversary)
    with ledger.writing() as writer:
        accountant = accountant_of(ledger)
        salt = ledger.configuration["correlations"]["salt"]
        named = hashed_names(now, salt)
        accountant.adopt(named, both=both)
        keep_correlations(writer.transaction, now, salt)
        users = correlations_of(now.users, salt=salt)["users"]
        details = {"users": users, "both": both, "reserve": accountant.reserve}
        details |= terms_after_adoption(ledger, accountant, plan) if is_renewed else {}
        return writer.note("adopt", by=by, details=details)


def terms_after_adoption(ledger: Ledger, accountant: TemporalAccountant, plan: Plan | None) -> dict[str, Any]:
    """Details of the event by which a renewed level adopts another correlation, as JSON values.

    The plan, made with that correlation, is valid from the next step on. The remaining steps of the current epoch spend a
    share of it, so that the epoch by itself satisfies alpha exactly, with the old matrices for its first steps and the new ones
    for its last.

    Raises
    ------
    InputError
        There is no plan, or one of another kind, level or length.
    PlanError
        It does not satisfy its level for the new correlation, or the leakage of all epochs is unbounded.
    """
    renewal = renewal_of(ledger)
    assert renewal is not None
    if not isinstance(plan, BudgetPlan) or plan.accounting.distances is not None:
        raise InputError(
            f"the level of {ledger.place} is renewed, by a plan that rests on the correlation that it was made with: make a "
            "plan with the new one (`temporaldp plan`), and give it too (--plan)"
        )
    if (plan.alpha, plan.horizon) != (renewal.alpha, renewal.n_steps):
        raise InputError(
            f"expected a plan of alpha = {renewal.alpha:g} for {renewal.n_steps} steps, as {ledger.place} has, got one of "
            f"{plan.alpha:g} for {'an infinite horizon' if plan.horizon is None else f'{plan.horizon} steps'}"
        )
    require_renewable(plan, renewal.every, accountant.population, Exact())
    spent, first = ledger.epsilons, (renewal.epochs_of(ledger.times) or [(0, 0)])[-1][0]
    done = len(spent) - first
    rest = plan.epsilons[done:] if done else plan.epsilons[:0]
    people = accountant.adversaries_until(len(spent) + len(rest)).users
    of_epoch = [user.between(first, done + len(rest)) for user in people]

    def alone(share: float) -> float:
        return temporal_leakage(of_epoch, [*spent[first:], *(share * rest)]).worst

    share = largest(alone, 0.0, 1.0, plan.alpha) if len(rest) else 1.0
    repeated = repeated_budgets(plan, renewal.every)
    going_on = np.concatenate((spent, share * rest)) if renewal.every == "steps" else spent
    promise = leakage_going_on(accountant.adversaries_until, accountant.population, going_on, repeated)
    if math.isinf(promise):
        raise PlanError(
            "the leakage of the releases so far does not vanish within an epoch of the new plan: there is no finite bound"
        )
    return {"plan": plan_digest(plan), "share": share, "promise": promise}


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
        With a backward and a forward `IntervalMatrix`, whose provenance records the epsilon spent.

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
    >>> adversary.forward.provenance.source, adversary.forward.provenance.epsilon
    ('learnt', 1.0)
    """
    level = real_number(confidence, "confidence", gt=0.0, lt=1.0)
    each = whole_number(contributed, "the number of transitions of each person", least=1)
    if trajectories.n_states > 2_000:  # nearly all of the table would be noise
        raise EstimationError(
            f"expected at most 2000 states for a noisy table of transitions, got {trajectories.n_states}; group them"
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
