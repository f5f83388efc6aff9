"""Renewal of a level: an account for each epoch. The leakage about a step is larger than the level of one epoch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.protocol import Accounting, budgets
from temporaldp.core.accounting.series import temporal_leakage
from temporaldp.core.correlation import Adversaries, Adversary, Population

MOST_ARRIVING = 40.0
"""Nats that the search begins with. Where values are forgotten at all, less is left of them after an epoch."""

MOST_EPOCH_ROUNDS, SETTLED_EPOCHS = 30, 1e-9
"""Iterations of the incoming leakage of an epoch, each of which is a bound; and the share of it that is left to rounding, or is
not worth another iteration."""


ROUNDED_SERIES = 1e-11
"""Relative: by which series and odometers of the same releases may differ, each of them being rounded up."""


def leakage_of_epochs(
    adversary: Adversaries, epsilons: ArrayLike, *, accounting: Accounting[Any, Any] = EXACT
) -> float:
    """Return an upper bound of the leakage of a renewed level: any number of epochs, each with an account of its own, in nats.

    The states at the end of an epoch and at the start of the next one are correlated: their leakage adds up. The bound is about
    any step, and on epochs that spend at most the given budgets. inf where none is known, as where states are never forgotten
    or matrices vary, and at a delta or under a metric. For a longer memory, it is about hidden states.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        With constant matrices, or on a clock whose first phase is that of the first epoch.
    epsilons : array_like, shape (T,)
        Budgets of one epoch, in nats. The largest one alone, where epochs may end after any number of steps, as in a renewal by
        the calendar.
    accounting : Accounting

    Raises
    ------
    BudgetError
        The budgets are not admissible.

    Notes
    -----
    The evidence of all epochs before one about the state at their last step is no more than that of a release of some C nats at
    that step would be; the same of those after it and the first one's value. If with C on both sides of an epoch no more than C
    arrives at its other ends, that holds for every epoch, by induction (Theory, section 19). C shrinks as it is put in again.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix, plan_budget
    >>> matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> observer = Adversary(matrix, matrix)
    >>> month = plan_budget(observer, alpha=1.0, horizon=30, method="optimal").epsilons
    >>> round(leakage_of_epochs(observer, month), 3)
    1.39
    >>> round(leakage_of_epochs(observer, [month.max()]), 2)
    1.66
    """
    people = Population.of(adversary)
    if any(user.n_steps is not None or user.is_uncertain for user in people.users):
        return math.inf
    if accounting.delta or accounting.distances is not None:  # where C nats are no budget
        return math.inf
    one = budgets(epsilons)
    # What precedes an epoch is about hidden states, too; leakage about these is at least that about what they show
    known = [Adversary(*user.directions) if user.is_lifted else user for user in people.users]
    return max(_of_repeated(user, _long_enough(one, user.period or 1), accounting) for user in known)


def leakage_going_on(
    known_until: Callable[[int], Population], now: Population, spent: ArrayLike, epsilons: ArrayLike
) -> float:
    """Upper bound of the leakage about any step, in nats, of such epochs after other releases; by exact accounting only.

    For a correlation that has changed (Theory, section 19). inf where no bound is found.

    Parameters
    ----------
    known_until : callable (n_steps) -> Population
        All users, with the matrices of this number of steps, past and future.
    now : Population
        The same people in the same order, with the constant matrices of the future steps.
    spent : array_like, shape (t,)
        Budgets of the past steps, and of the rest of the current epoch.
    epsilons : array_like, shape (T,)
        Largest budgets of each later epoch.
    """
    known, one = np.asarray(spent, dtype=np.float64), _long_enough(budgets(epsilons), 1)
    pairs = zip(known_until(len(known) + 2 * len(one) + 1).users, now.users, strict=True)
    return max(_going_on(user, then, known, one) for user, then in pairs)


def _long_enough(one: FloatArray, period: int) -> FloatArray:
    """An epoch that is not short, or several short ones: the excess of the release in place of the past is then forgotten."""
    # Several short epochs together count as one, and so many that each block begins at the same phase of a clock
    whole = math.lcm(len(one), period)
    return np.tile(one, whole // len(one) * -(-32 // whole))


def _going_on(user: Adversary, then: Adversary, spent: FloatArray, one: FloatArray) -> float:
    rounds = _rounds(then, one, EXACT)
    if rounds is None:
        return math.inf
    after = rounds[-1][1]
    series = temporal_leakage(user, [*spent, *one, *one, after])
    arrives = float(series.backward[len(spent) - 1]) if len(spent) else 0.0
    enough = [before for before, _ in rounds if before >= arrives]
    if not enough:
        return math.inf
    at_once = float(series.temporal[: len(spent) + len(one)].max()) * (1.0 + ROUNDED_SERIES)
    return max(at_once, _within(then, one, min(enough), after, EXACT))


def _of_repeated(user: Adversary, one: FloatArray, accounting: Accounting[Any, Any]) -> float:
    rounds = _rounds(user, one, accounting)
    return math.inf if rounds is None else _within(user, one, *rounds[-1], accounting)


def _rounds(user: Adversary, one: FloatArray, accounting: Accounting[Any, Any]) -> list[tuple[float, float]] | None:
    """Decreasing bounds of an epoch's incoming leakage, past and future, that it does not raise; None if there are none."""
    found = [(MOST_ARRIVING, MOST_ARRIVING)]
    for _ in range(MOST_EPOCH_ROUNDS):
        before, after = found[-1]
        series = temporal_leakage(_from_before(user, len(one) + 2), [before, *one, after], accounting=accounting)
        last, first = float(series.backward[-2]), float(series.forward[1])
        if last > before or first > after:
            return None
        found.append((min(before, last * (1.0 + SETTLED_EPOCHS)), min(after, first * (1.0 + SETTLED_EPOCHS))))
        if max(before - last, after - first) <= 2.0 * SETTLED_EPOCHS * max(before, after):
            break
    return found


def _within(user: Adversary, one: FloatArray, before: float, after: float, accounting: Accounting[Any, Any]) -> float:
    """The largest leakage of an epoch between two others, where so much arrives at these."""
    known = _from_before(user, 3 * len(one) + 2)
    around = temporal_leakage(known, [before, *one, *one, *one, after], accounting=accounting).temporal
    return float(around[1 + len(one) : 1 + 2 * len(one)].max()) * (1.0 + ROUNDED_SERIES)


def _from_before(user: Adversary, n_steps: int) -> Adversary:
    """The adversary of so many steps, the first of which precedes an epoch, at the phase before the clock's first one."""
    return user if user.period is None else user.between(user.period - 1, n_steps)
