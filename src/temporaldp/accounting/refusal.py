"""Why a budget is refused: which step would leak how much, about whom, and what would be admitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from temporaldp.accounting.filter import Filters
from temporaldp.accounting.protocol import Accounting
from temporaldp.correlation import Adversary
from temporaldp.errors import LeakageBudgetError

RECENT, TO_COME = 256, (0, 64, 512, 4096)
"""Steps before and after a refused one, with the reserve, whose leakage tells why it was refused: as many as show it."""

MOST_SHOWN = TO_COME[-1] + 2
"""Steps from a refused one on whose matrices are needed to say why."""


def refusal(
    allowed: Filters,
    method: Accounting[Any, Any],
    user: Adversary,
    name: str | None,
    spent: Sequence[float],
    epsilon: float,
    *,
    last: bool,
) -> LeakageBudgetError:
    """The error that says why `epsilon` cannot be spent next; `user` is one whose filter refuses it.

    Parameters
    ----------
    allowed : Filters
        After all that was spent.
    method : Accounting
        By which the user is counted.
    user, name : Adversary, str or None
    spent : sequence of float
    epsilon : float
    last : bool
        Whether no step was to follow.
    """
    kept = 0.0 if allowed.is_final(last) else allowed.reserve
    largest = allowed.largest(last)
    leakage, time = _leakage_around(method, user, spent, epsilon, kept, allowed.alpha)
    advice = f"the largest epsilon admitted at that step is {largest:.10g}"
    if kept > 0.0:
        advice += f" ({allowed.largest(last=True):.10g} with last=True, if no step follows)"
    about = "" if name is None else f" about {name!r}"
    later = f", with the {kept:.6g} a step kept for later" if kept > 0.0 else ""
    return LeakageBudgetError(
        f"epsilon = {epsilon:.10g} at step {len(spent)} would leak {leakage:.10g} nats{about} at step {time}{later}, above "
        f"alpha = {allowed.alpha:g}; {advice}. Nothing was spent (steps count from 0)",
        requested=epsilon,
        largest=largest,
        worst_time=time,
        leakage=leakage,
        alpha=allowed.alpha,
        user=name,
    )


def _leakage_around(
    method: Accounting[Any, Any], user: Adversary, spent: Sequence[float], epsilon: float, kept: float, alpha: float
) -> tuple[float, int]:
    """The largest leakage, and its step, if the refused epsilon and then the reserve were spent; as far as shows it."""
    first = max(0, len(spent) - RECENT)
    leakage, time = 0.0, 0
    for following in TO_COME if kept > 0.0 else (0,):
        steps = [*spent[first:], epsilon, *[kept] * following]
        if user.n_steps is not None:
            steps = steps[: user.n_steps - first]
        (found,) = method.series([user.between(first, len(steps))], method.of_epsilons(np.array(steps)))
        step = int(np.argmax(found.temporal))
        leakage, time = float(found.temporal[step]), first + step
        if leakage > alpha:
            break
    return max(leakage, alpha), time  # what is refused exceeds the level in the end
