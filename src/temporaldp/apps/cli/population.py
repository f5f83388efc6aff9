"""`temporaldp population`: who is leaked about how much, person by person or group by group."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from temporaldp import Adversary, InputError, estimate_adversaries, plan_budget
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import warn
from temporaldp.apps.cli.render import answer, at_most, facts, require_places, working
from temporaldp.base.display import number
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.planning import plan_for_share
from temporaldp.data.files.columns import save_columns
from temporaldp.data.tables import CountedTraces
from temporaldp.data.tables.traces import scarcity
from temporaldp.lab.studies import LeakageDistribution, leakage_distribution
from temporaldp.publish.project.inputs import absences, read_data
from temporaldp.publish.report.sentences import PAPER_BOUND, between, steps
from temporaldp.publish.report.study_figures import population_figure

SHARES = (0.5, 0.9, 0.99, 1.0)
"""Of people, whose largest leakage is reported."""

Planned: TypeAlias = tuple[dict[str, Any], list[tuple[str, str]]]
"""Budgets as JSON values and as rows of a table."""


def population(
    context: typer.Context,
    traces: o.TracesArgument = None,
    epsilon: o.EpsilonOption = None,
    horizon: o.HorizonOption = None,
    bound: o.BoundOption = None,
    effort: o.EffortOption = None,
    above: Annotated[
        float | None,
        o.option("--above", key="study.above", help="Report the share of users above this leakage.", metavar="LEVEL"),
    ] = None,
    alpha: Annotated[
        float | None,
        o.option("--alpha", key="privacy.alpha", help="Also plan a budget that satisfies this level.", metavar="A"),
    ] = None,
    share: Annotated[
        float | None,
        o.option("--share", key="study.share", help="Share of users for whom the budget satisfies it.", metavar="S"),
    ] = None,
    figure: o.FigureOption = None,
    output: Annotated[
        Path | None, o.option("--output", "-o", help="Leakage of every user (.csv, .parquet).", metavar="FILE")
    ] = None,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Compute the distribution of leakage over users, or over groups (--set traces.by=COLUMN).

    Without --horizon, leakage is the supremum. Names of users are printed: for internal use only.
    """
    settings = o.given(context).settings
    privacy, study, prior = settings.privacy, settings.study, settings.correlation.prior
    if privacy.epsilon is None:
        raise InputError("expected --epsilon E, the epsilon of every step, in nats")
    require_places(output, figure=figure, reads=settings.inputs)
    with working("reading traces"):
        data = read_data(settings.traces, correlation=True)
    groups, method = settings.traces.by is not None, privacy.accounting
    sizes = data.group_sizes() if groups else None
    who = "groups" if groups and sizes is None else "people"  # how many people made counted transitions is unknown
    people = partial(estimate_adversaries, data, prior=prior, per_user=not groups, per_group=groups)
    with working("leakage of every person"):
        found = leakage_distribution(
            people(),
            epsilon=privacy.epsilon,
            horizon=privacy.horizon,
            people=sizes,
            accounting=method,
        )
    warn(scarcity(data), None if isinstance(data, CountedTraces) else absences(data))
    planned: Planned = {}, []
    if privacy.alpha is not None:
        with working("budgets of all people"):
            planned = _planned(list(people()), privacy.alpha, study.share, method, groups=groups)
    if output is not None:
        save_columns({"name": found.names, "leakage": found.leakage.tolist(), "people": found.people.tolist()}, output)
    answer(
        as_json,
        document=partial(_document, found, study.above, planned[0]),
        show=partial(_show, found, study.above, who, planned[1]),
        draw=partial(population_figure, found, level=study.above, groups=groups),
        figure=figure,
        table=output,
    )


def _planned(
    people: list[Adversary], alpha: float, share: float, method: Accounting[Any, Any], *, groups: bool
) -> Planned:
    """Budgets of each step: one for each group, or one for a share of all people."""
    what = f"budget of each step (alpha = {alpha:g})"
    if groups:
        if share != 1.0:
            raise InputError("--share is a share of users: leave out traces.by, or --share")
        budgets = {str(one.name): float(plan_budget(one, alpha=alpha, accounting=method).epsilons[0]) for one in people}
        each = ", ".join(f"{name} {number(budget, down=True)}" for name, budget in budgets.items())
        return {"alpha": alpha, "budgets": budgets}, [(what, each)]
    plan = plan_for_share(people, alpha=alpha, share=share, accounting=method)
    document = {
        "alpha": alpha,
        "budget": plan.epsilon,
        "share_held": plan.share,
        "not_held": list(plan.names),
        "sentence": plan.sentence,
    }
    return document, [(what, number(plan.epsilon, down=True)), ("people above alpha", plan.sentence)]


def _document(found: LeakageDistribution, level: float | None, planned: dict[str, Any]) -> dict[str, Any]:
    return {
        "epsilon": found.epsilon,
        "horizon": found.horizon,
        "accounting": found.accounting,
        "is_exact": found.is_exact,
        "people": found.n_people,
        "quantiles": {f"{share:g}": found.quantile(share) for share in SHARES},
        "attained": None if found.attained is None else {f"{share:g}": found.sides(share)[0] for share in SHARES},
        "worst": found.worst,
        "worst_names": found.names[:5],
        "above": level,
        "share_above": None if level is None else found.share_above(level),
        "unit": "nats",
        **planned,
    }


def _show(found: LeakageDistribution, level: float | None, who: str, planned: list[tuple[str, str]]) -> None:
    """Print the distribution over people, or groups, and the rows about what is planned."""
    effort, attained = found.accounting.effort, found.leakage if found.attained is None else found.attained
    largest = zip(found.names[:5], attained.tolist(), found.leakage.tolist(), strict=False)
    above = "" if level is None else f"{at_most(found)}{number(100.0 * found.share_above(level))} % of {who}"
    horizon = "infinite horizon" if found.horizon is None else steps(found.horizon)
    rows = [
        ("epsilon of each step", number(found.epsilon, up=True)),
        ("leakage", found.label if found.accounting.is_exact else PAPER_BOUND),
        *((f"{100.0 * share:g} % of {who} leak at most", between(*found.sides(share), effort)) for share in SHARES),
        ("largest leakage", ", ".join(f"{name} ({between(low, high, effort)})" for name, low, high in largest)),
        (f"above {level or 0.0:g}", above),
        *planned,
    ]
    facts(f"Leakage of {found.n_people} {who}, {horizon} (nats, replace one person's state)", rows)
