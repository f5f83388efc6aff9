"""`temporaldp budget`: the epsilon to type into another library, and what an epsilon that is renewed leaks over time."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any

import typer

from temporaldp import InputError
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import say, warn
from temporaldp.apps.cli.render import answer, learning_fact, listing, working
from temporaldp.base.display import number
from temporaldp.base.errors import PlanError
from temporaldp.base.values import plural, refuse
from temporaldp.core.correlation.provenance import UNSTATED
from temporaldp.publish.deployment.wording import STEPS_A_YEAR
from temporaldp.publish.project.budgets import ObservedBudget, observed_budgets
from temporaldp.publish.project.inputs import absences
from temporaldp.publish.report import sentences as s

RELATIONS = {"replace a state": 1, "add or remove a row": 2}
"""Neighbouring data sets of libraries, and how many moves between them a changed state is."""


def budget(
    context: typer.Context,
    stay: Annotated[
        str | None,
        o.option(
            "--stay",
            key="study.stays",
            help="Probability that a person's state stays the same from step to step.",
            metavar="P[,Q,...]",
        ),
    ] = None,
    n_states: Annotated[
        int | None,
        o.option("--states", key="study.n_states", help="Number of states (default: 2, with --stay).", metavar="N"),
    ] = None,
    history: o.HistoryOption = None,
    alpha: o.AlphaOption = None,
    epsilon: Annotated[
        float | None,
        o.option("--epsilon", help="Epsilon that is renewed at each step: what does it leak over time?", metavar="E"),
    ] = None,
    horizon: Annotated[
        int | None,
        o.option("--steps", key="privacy.horizon", help="Number of steps (default: any number).", metavar="T"),
    ] = None,
    every: Annotated[
        str | None,
        o.option("--every", key="deployment.every", help="Length of a step, for the sentences.", metavar="week|..."),
    ] = None,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Compute the epsilon to type into another library, or what a renewed epsilon leaks over time.

    The habits that observers know are given by --stay or --history. For any noise with delta = 0. First order: tables
    that share noise count together, by their epsilon for a change of one state. Longer memory: noise is drawn anew.
    """
    settings = o.given(context).settings
    refuse(
        (
            stay is not None and history is not None,
            InputError("expected one of --stay and --history: a history has its own probabilities of staying"),
        ),
        (
            not settings.study.stays and not settings.has_correlation and settings.traces.path is None,
            InputError(
                "expected what observers know: a probability of staying in a state (--stay 0.9, or several to compare), or a "
                "table to estimate it from (--history FILE)"
            ),
        ),
        (
            n_states is not None and (history is not None or not settings.study.stays),
            InputError("--states is the number of states of --stay: a history has its own"),
        ),
    )
    if history is not None:  # whatever a project file has in its place
        settings = settings.model_copy(update={"study": settings.study.model_copy(update={"stays": ()})})
    every = settings.deployment.every
    step = every or "step"
    with working("accounting"):
        days = math.inf if every is None else 366.0 / STEPS_A_YEAR[every]
        level, rows, inputs = observed_budgets(settings, epsilon, step, days)
    horizon = settings.privacy.horizon
    worst = min(rows, key=lambda row: row.granted) if epsilon is None else max(rows, key=lambda row: row.leaked)
    if epsilon is None and not worst.granted:
        raise PlanError(
            f"no epsilon satisfies {s.nats(level)} for any number of {step}s for {worst.observers}: give a number of them "
            "(--steps T), of which each may have at least alpha / T"
        )
    verdict = (
        _typed(worst, len(rows), level, horizon, step) if epsilon is None else _renewed(worst, len(rows), epsilon, step)
    )
    learnt = UNSTATED if inputs is None else inputs.provenance
    name, cost = learning_fact(learnt, level if epsilon is None else worst.leaked, 0.0)
    if cost:
        verdict.append(f"{name.capitalize()}: {cost}.")
    answer(
        as_json,
        document=partial(_document, verdict, level, epsilon, horizon, rows),
        show=partial(_show, verdict, level, epsilon, horizon, step, rows),
    )
    if inputs is not None:
        warn(inputs.scarcity, inputs.provenance.warning, absences(inputs.trajectories))


def _typed(worst: ObservedBudget, n_rows: int, level: float, horizon: int | None, step: str) -> list[str]:
    """What to type for at most the level, and what it means."""
    each, added = (_share(worst.granted, moves) for moves in RELATIONS.values())
    tables = (
        f"the table of each {step}" if horizon is None else f"each of {horizon} tables" if horizon > 1 else "one table"
    )
    return [
        f"Type epsilon = {added} for {tables} where neighbouring data sets add or remove a row, {each} where they replace one.",
        f"Then at most {s.nats(level)} leak{'s' if level == 1.0 else ''} about a person's state in any {step}: a suspicion of "
        f"50 % becomes at most {s.percent(s.posterior(0.5, level))}.",
        f"This holds for {_condition(worst)}{' (the strictest of these)' if n_rows > 1 else ''}.",
    ]


def _condition(worst: ObservedBudget) -> str:
    shared = "tables that share noise count together, by their epsilon for a change of one state"
    if not worst.may_share:
        shared = "drawn anew for each table: with a longer memory, noise that tables share can reveal more"
    return f"any noise with delta = 0 ({shared}), for {worst.observers}"


def _renewed(worst: ObservedBudget, n_rows: int, epsilon: float, step: str) -> list[str]:
    """What an epsilon that is renewed leaks over time."""
    alone, over_time = (s.percent(s.posterior(0.5, one)) for one in (epsilon, worst.leaked))
    return [
        f"One {step}'s epsilon of {epsilon:g} alone: a suspicion of 50 % about a state becomes at most {alone}.",
        f"Renewed at each {step}: at most {over_time} over time ({s.nats(worst.leaked)} about one {step}), for "
        f"{_condition(worst)}{' (of those below, they learn most)' if n_rows > 1 else ''}.",
    ]


def _document(
    verdict: list[str], level: float, epsilon: float | None, horizon: int | None, rows: list[ObservedBudget]
) -> dict[str, Any]:
    least = min(row.granted for row in rows)
    return {
        "verdict": verdict,
        "alpha": level,
        "renewed_epsilon": epsilon,
        "steps": horizon,
        "epsilon_by_relation": {name: least / moves for name, moves in RELATIONS.items()},
        "user_level_epsilon": None if horizon is None else level / horizon,
        "observers": [row.document() for row in rows],
        "unit": "nats",
    }


def _show(
    verdict: list[str],
    level: float,
    epsilon: float | None,
    horizon: int | None,
    step: str,
    rows: list[ObservedBudget],
) -> None:
    say(*verdict, "")
    if epsilon is None:
        _show_levels(level, horizon, step, rows)
    else:
        _show_renewed(level, epsilon, horizon, step, rows)


def _show_levels(level: float, horizon: int | None, step: str, rows: list[ObservedBudget]) -> None:
    """A row for what is protected: one table, a state against all tables, all states of a person."""
    unending = "tables without an end"
    over = unending if horizon is None else f"all {horizon} tables"
    found = [("one table (event level)", level, "no habits")]
    found += [(f"{over} (temporal level)", row.granted, row.knows) for row in rows]
    if horizon is not None:
        found += [(unending, row.sustainable, row.knows) for row in rows]
        found.append((f"all states, {horizon} tables (user level)", level / horizon, "anything"))
    listing(
        [
            {"a state against": name, "observer knows": who}
            | {title: _share(one, moves) for title, moves in RELATIONS.items()}
            for name, one, who in found
        ],
        f"Epsilon of each table for at most {s.nats(level)}, where neighbouring data sets",
        left=("a state against", "observer knows"),
    )


def _show_renewed(level: float, epsilon: float, horizon: int | None, step: str, rows: list[ObservedBudget]) -> None:
    """A row for each observer: the leakage, and how it could be limited."""
    found = []
    for row in rows:
        cells = {
            "observer knows": row.knows,
            "over time": s.upper(row.leaked),
            "50 % becomes": s.percent(s.posterior(0.5, row.leaked)),
        }
        if horizon is not None:
            cells[f"{horizon} {step}s"] = s.upper(row.leaked_within or 0.0)
        cells["with epsilon"] = _share(row.granted, 1)
        cells[f"or {epsilon:g} once in"] = "" if row.refresh is None else plural(row.refresh, step)
        found.append(cells)
    listing(
        found,
        f"Nats about the state of one {step}; the columns at the right leak at most {s.upper(level)}",
        left=("observer knows",),
    )


def _share(epsilon: float, moves: int) -> str:
    """An epsilon for a changed state that is so many moves between neighbours, rounded down."""
    return number(epsilon / moves, down=True) if epsilon else "none"
