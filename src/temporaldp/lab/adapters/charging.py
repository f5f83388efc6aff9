"""Conversion of guarantees of other libraries to guarantees for one replaced state, and their charge to an accountant."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.core.accounting import TemporalAccountant, accounting_blocks
from temporaldp.core.mechanisms import ConcentratedGuarantee, PrivacyGuarantee
from temporaldp.core.mechanisms.distances import require_no_nearer

Promise: TypeAlias = float | PrivacyGuarantee | ConcentratedGuarantee
"""Of one step: an epsilon in nats, (epsilon, delta), or rho."""


def promise(epsilon: float | None = None, *, delta: float = 0.0, rho: float | None = None) -> Promise:
    """A library's promise; `BudgetError` if it bounds nothing."""
    numbers = [number for number in (epsilon, delta, rho) if number is not None]
    if not all(math.isfinite(number) and number >= 0.0 for number in numbers) or delta >= 1.0:
        raise BudgetError(
            f"expected a finite budget for the step, got epsilon={epsilon}, delta={delta}, rho={rho}; an accountant cannot "
            "charge what is not bounded"
        )
    if rho is not None:
        return ConcentratedGuarantee(float(rho))
    assert epsilon is not None
    return PrivacyGuarantee(float(epsilon), float(delta)) if delta else float(epsilon)


def over_moves(promised: Promise, moves: int) -> Promise:
    """The promise for data that are so many moves between neighbours apart (group privacy), rounded up."""
    if isinstance(moves, bool) or not isinstance(moves, int) or moves < 1:
        raise InputError(
            f"expected moves = 1 if neighbouring data sets of the library replace a state, or at least 2 if they add or remove "
            f"a row, got {moves!r}"
        )
    if isinstance(promised, float):
        return PrivacyGuarantee(promised).grouped(moves).epsilon
    return promised.grouped(moves)


def checked(accountant: Any) -> TemporalAccountant:
    """Return the accountant; `InputError` if it is none."""
    if not isinstance(accountant, TemporalAccountant):
        raise InputError(f"expected a TemporalAccountant, got {type(accountant).__name__}")
    return accountant


def charge(accountant: TemporalAccountant, promised: Promise) -> None:
    """Spend a step's promise with the accountant and those of the blocks around the caller: with all of them, or none.

    Raises
    ------
    LeakageBudgetError
        The level would break; nothing was spent.
    BudgetError
        The horizon is over, or a delta is promised to an accountant that counts pure epsilons.
    InputError
        The argument is not an accountant, or its metric would count less than is promised.
    """
    with checked(accountant):
        for one in accounting_blocks.charged():
            require_no_nearer(one.accounting.distances, "another library's mechanism")
            if not isinstance(promised, float) and not one.accounting.delta:
                raise BudgetError(
                    f"this accountant counts epsilons with delta = 0, and the step promises {promised!r}: give a "
                    "TemporalAccountant under approximate DP (delta > 0), which accepts any mechanism"
                )
        accounting_blocks.charge([promised])  # type: ignore[list-item]
