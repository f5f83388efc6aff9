"""Adoption of another correlation by a release, recorded as an event in the ledger's chain."""

from __future__ import annotations

import os
from contextlib import suppress
from copy import copy

from temporaldp.base.errors import InputError, LedgerError
from temporaldp.core.accounting import TemporalAccountant
from temporaldp.core.accounting.adoption import KeptAdoption
from temporaldp.core.accounting.methods import accounting_from
from temporaldp.core.correlation import Adversaries, Population
from temporaldp.core.planning import Plan
from temporaldp.publish.release.chain import LedgerEvent
from temporaldp.publish.release.kept import (
    correlations_of,
    expect_kept_reserve,
    hashed_names,
    keep_correlations,
    kept_correlations,
)
from temporaldp.publish.release.ledger import ADOPT, Ledger
from temporaldp.publish.release.renewal import terms_after_adoption


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
        return writer.note(ADOPT, by=by, details=details)


def accountant_of(ledger: Ledger) -> TemporalAccountant:
    """The accountant of a ledger's release after all its steps, from the ledger and its stored matrices.

    Raises
    ------
    InputError
        The release has no accountant, or one with distances.
    LedgerError
        The matrices are not stored.
    """
    known = ledger.configuration
    if known.get("correlations") is None:
        raise InputError(
            f"{ledger.place} is the ledger of a plan alone, which has no accountant: what it may spend was fixed beforehand. "
            "For a report, give the correlation (--history FILE); to adopt another one, make a plan and a ledger for it"
        )
    if "distances" in known["accounting"]:
        raise InputError(
            f"{ledger.place} is accounted for with distances between states: only a release by Exact() without distances "
            "continues with another correlation"
        )
    accountant = resumed(unspent_accountant(ledger, known["correlations"]["users"]), ledger)
    take_in(accountant, ledger)
    return accountant


def unspent_accountant(ledger: Ledger, users: list[str]) -> TemporalAccountant:
    """The accountant of a ledger's release before its first step, with the stored matrices that have these digests."""
    known = ledger.configuration
    return TemporalAccountant(
        kept_correlations(ledger, users),
        None if "renewal" in known else known["alpha"],  # the odometer of all epochs
        accounting=accounting_from(known["accounting"]),
        horizon=known["horizon"],
        reserve=known["reserve"],
    )


def begun(accountant: TemporalAccountant, ledger: Ledger) -> TemporalAccountant:
    """An unused accountant of a ledger's release, advanced to the ledger's checkpoint, if any.

    Its matrices are stored in the ledger; if there are adoptions, the accountant has those of the first step instead.
    """
    known = ledger.configuration["correlations"]
    with suppress(LedgerError):  # a disk that is full or read-only: needed only if something is adopted one day
        keep_correlations(ledger.store, accountant.population, known["salt"])
    asked_reserve = accountant.asked_reserve
    if ledger.adoptions:
        accountant = unspent_accountant(ledger, known["users"])
    has_sustainable_reserve = accountant.alpha is not None and accountant.horizon is None and asked_reserve is None
    if has_sustainable_reserve and known["users"]:
        with suppress(LedgerError):
            expect_kept_reserve(accountant, ledger)
    return resumed(accountant, ledger)


def is_new(accountant: TemporalAccountant) -> bool:
    """Whether an accountant has spent and adopted nothing."""
    return not len(accountant) and not accountant.n_adopted


def take_in(accountant: TemporalAccountant, ledger: Ledger) -> None:
    """Count the steps and adoptions of a ledger that an accountant has not counted."""
    for event in ledger.adoptions[accountant.n_adopted :]:
        _record(accountant, ledger, event.step)
        details = event.details
        now = kept_correlations(ledger, details["users"])
        accountant.adopt_kept(KeptAdoption(event.step, now, details["both"], details["reserve"]))
    _record(accountant, ledger, len(ledger))


def resumed(accountant: TemporalAccountant, ledger: Ledger) -> TemporalAccountant:
    """The accountant from a ledger's checkpoint on; the given one where there is none, or one that does not fit it."""
    checkpoint = ledger.checkpoint
    if checkpoint is None or not checkpoint.accountant:
        return accountant
    trial = copy(accountant)
    with suppress(InputError, LedgerError):
        known = [
            KeptAdoption(e.step, kept_correlations(ledger, e.details["users"]), e.details["both"], e.details["reserve"])
            for e in ledger.adoptions
            if e.number < checkpoint.end.n_events
        ]
        # Older rows are read only if somebody asks.
        trial.resume(checkpoint.accountant, known, lambda: [row.epsilon for row in ledger[: checkpoint.end.n_steps]])
        return trial
    return accountant


def _record(accountant: TemporalAccountant, ledger: Ledger, end: int) -> None:
    for row in ledger[len(accountant) : end]:
        accountant.spend(row.epsilon, last=row.last, enforce=False)  # another machine's rounding must not refuse a fact
