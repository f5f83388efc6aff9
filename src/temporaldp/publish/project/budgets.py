"""What epsilon each table may have under a level, and what an epsilon that is renewed with each table leaks over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.base.errors import BudgetError
from temporaldp.base.values import positive
from temporaldp.core.accounting import Exact, PaperBound, leakage_supremum, temporal_leakage
from temporaldp.core.correlation import Adversaries, Adversary, Population, lazy_walk
from temporaldp.core.planning import refresh_interval, sustainable_budget
from temporaldp.core.planning.refresh import NEAR_PROMISE
from temporaldp.publish.project.inputs import Inputs, gather
from temporaldp.publish.report.sentences import chain, observers

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import Settings


@dataclass(frozen=True, slots=True)
class ObservedBudget:
    """One epsilon for each table, by an observer of tables without an end, in nats, with delta = 0.

    Parameters
    ----------
    stays : float or None
        The probability of staying that the observer knows; None where the correlation was estimated.
    knows : str
        What the observer knows, in few words.
    observers : str
        For whom the numbers hold.
    leaked : float
        The supremum of leakage about the state of one step under the epsilon that was given; under `sustainable` without one.
    leaked_within : float or None
        The same for a known number of steps.
    sustainable : float
        Largest epsilon of each table that satisfies the level for any number of tables; 0 if there is none.
    within : float or None
        The same for a known number of tables.
    refresh : int or None
        Number of steps between releases of the given epsilon that satisfies the level; None if none was found, or without one.
    may_share : bool
        Whether the numbers hold for noise that tables share, too: not for a longer memory.
    """

    stays: float | None
    knows: str
    observers: str
    leaked: float
    leaked_within: float | None
    sustainable: float
    within: float | None
    refresh: int | None
    may_share: bool

    @property
    def granted(self) -> float:
        """Largest epsilon of each table: for the known number of tables, or for any number."""
        return self.sustainable if self.within is None else self.within

    def document(self) -> dict[str, Any]:
        """The numbers as JSON values."""
        return {
            "stays": self.stays,
            "observers": self.observers,
            "epsilon": self.granted,
            "sustainable_epsilon": self.sustainable,
            "leakage": self.leaked if self.leaked_within is None else self.leaked_within,
            "leakage_over_time": self.leaked,
            "refresh": self.refresh,
        }


def observed_budgets(
    settings: Settings, epsilon: float | None, step: str, most_days: float = math.inf
) -> tuple[float, list[ObservedBudget], Inputs | None]:
    """The level; a row for each probability of staying, or else for the correlation of the inputs; and these, where read.

    Parameters
    ----------
    settings : Settings
        The level (by default 1.1 times the epsilon), the number of steps, and probabilities of staying or inputs.
    epsilon : float, optional
        Renewed at each step.
    step : str
        Name of a step.
    most_days : float
        Its length, if known, which no step of a history may exceed.

    Raises
    ------
    InputError
        The inputs do not determine a correlation.
    BudgetError
        No level and no epsilon are given.
    """
    if epsilon is not None:
        positive(epsilon, "the epsilon of each table (--epsilon)")
    study, alpha, horizon = settings.study, settings.privacy.alpha, settings.privacy.horizon
    if alpha is None and epsilon is None:
        raise BudgetError("expected a level, such as --alpha 1, or the epsilon of each table, such as --epsilon 1")
    level = alpha if alpha is not None else NEAR_PROMISE * (epsilon or 0.0)
    known: list[tuple[float | None, str, str, Adversaries]] = []
    else_move = ", and otherwise move to each other state with equal probability" if study.n_states > 2 else ""
    for stays in study.stays:
        walk = lazy_walk(stays, study.n_states)
        who = f"observers who know that people stay in one of {study.n_states} states with probability {stays:g}"
        known.append((stays, f"stays {stays:g}", f"{who} from {step} to {step}{else_move}", Adversary(walk, walk)))
    inputs = None if known else gather(settings)
    if inputs is not None:
        inputs.provenance.require_steps_within(most_days, f"a table is of each {step} (--every, deployment.every)")
        known.append((None, chain(inputs.provenance), observers(inputs.provenance), inputs.everyone))
    return level, [_observed(*one, level, horizon, epsilon) for one in known], inputs


def _observed(
    stays: float | None,
    knows: str,
    who: str,
    adversary: Adversaries,
    level: float,
    horizon: int | None,
    epsilon: float | None,
) -> ObservedBudget:
    method = PaperBound() if isinstance(adversary, Adversary) and adversary.is_interchangeable else Exact()
    sustainable = sustainable_budget(adversary, level)
    within = None if horizon is None else max(sustainable, sustainable_budget(adversary, level, horizon))
    spent, refresh = sustainable if epsilon is None else epsilon, None
    if epsilon is not None and isinstance(adversary, Adversary) and adversary.is_constant and not adversary.is_lifted:
        refresh = refresh_interval(adversary, epsilon, level)
    leaked = leakage_supremum(adversary, spent, accounting=method).temporal if spent else math.inf
    of_steps = epsilon if epsilon is not None else within
    series = None
    if horizon is not None and of_steps:
        series = temporal_leakage(adversary, np.full(horizon, of_steps), accounting=method).worst
    may_share = not any(one.is_lifted for one in Population.of(adversary).users)
    return ObservedBudget(stays, knows, who, leaked, series, sustainable, within, refresh, may_share)
