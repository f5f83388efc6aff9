"""Tumult Analytics: a session, which is the data of one step, charged to a temporal accountant."""

from __future__ import annotations

from typing import Any

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.core.accounting import TemporalAccountant
from temporaldp.lab.adapters.charging import Promise, charge, over_moves, promise


def tumult(session: Any, accountant: TemporalAccountant, budget: Any, *, moves: int = 2) -> Any:
    """Charge the whole budget of a Tumult Analytics session, on the data of one step, to a temporal accountant.

    The session itself never answers beyond its budget, so that it can be used unchanged afterwards.

    Parameters
    ----------
    session : tmlt.analytics.Session
        Session for this step, without answers so far.
    accountant : TemporalAccountant
        A `PureDPBudget` is accepted by any accountant; `ApproxDPBudget` and `RhoZCDPBudget` by one under approximate DP.
    budget : tmlt.analytics.PrivacyBudget
        Budget of the session, all of which must be left.
    moves : int
        Number of the session's protected changes that replace one person's state: 2 for `AddOneRow` and `AddRowsWithID`, a
        removal and an addition; 1 for `AddMaxRows(2)` with one row per person.

    Returns
    -------
    tmlt.analytics.Session
        The session.

    Raises
    ------
    LeakageBudgetError
        The level would be exceeded. Nothing was spent: do not use the session.
    BudgetError
        The session has answered already; its budget is infinite; or it has a delta, and the accountant counts pure epsilons.
    InputError
        The arguments are not a session and a budget of Tumult Analytics.
    """
    if not hasattr(session, "remaining_privacy_budget") or not hasattr(session, "evaluate"):
        raise InputError(f"expected a Session of Tumult Analytics, got {type(session).__name__}")
    left = session.remaining_privacy_budget
    promised = _promise(budget)
    if type(left) is not type(budget) or left != budget:
        raise BudgetError(
            f"expected a session of which nothing was asked yet, with {budget!r} left, got one with {left!r}: its "
            "earlier answers were not charged"
        )
    charge(accountant, over_moves(promised, moves))
    return session


def _promise(budget: Any) -> Promise:
    """A budget of Tumult Analytics as a promise."""
    match type(budget).__name__:
        case "PureDPBudget":
            return promise(budget.epsilon)
        case "ApproxDPBudget":
            return promise(budget.epsilon, delta=budget.delta)
        case "RhoZCDPBudget":
            return promise(rho=budget.rho)
        case other:
            raise InputError(f"expected PureDPBudget, ApproxDPBudget or RhoZCDPBudget of Tumult Analytics, got {other}")
