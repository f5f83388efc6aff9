"""`temporaldp population`: who is leaked about how much, person by person or group by group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from temporaldp import Adversary, CountedTraces, InputError, estimate_adversaries, plan_budget, plan_for_share
from temporaldp.cli import options as o
from temporaldp.cli.inputs import absences, read_data, scarcity
from temporaldp.cli.render import console, facts, say_json, warn, working
from temporaldp.files.atomic import require_writable
from temporaldp.files.columns import save_columns
from temporaldp.files.plans import json_number
from temporaldp.report.population import population_figure
from temporaldp.report.style import figure_suffix, save_figure
from temporaldp.report.words import number, steps
from temporaldp.studies import LeakageDistribution, leakage_distribution
from temporaldp.values import positive

SHARES = (0.5, 0.9, 0.99, 1.0)
MOST_NAMED = 5


@o.grouped
def population(
    reading: o.TraceOptions,
    epsilon: Annotated[float, typer.Option("--epsilon", help="What each step promises, in nats.", show_default=False)],
    traces: o.TracesArgument = None,
    prior: o.PriorOption = 0.0,
    horizon: o.HorizonOption = None,
    bound: o.BoundOption = o.Bounds.EXACT,
    above: Annotated[
        float | None,
        typer.Option("--above", metavar="LEVEL", help="Say which share of people is above this.", show_default=False),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", help="Also plan: a budget that holds this level for ever.", show_default=False),
    ] = None,
    share: Annotated[
        float, typer.Option("--share", help="With --alpha: for this share of people; 1 is for the worst-off.")
    ] = 1.0,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw the distribution (.png or .svg).", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Everybody's leakage, worst first (.csv, .parquet)."),
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Tell the leakage of each person (or, with --by, of each group) as a distribution: quantiles, and the share above a level.

    With --horizon, of a release of so many steps; without, for ever. Names are printed: for internal use only.
    """
    promise, level = positive(epsilon, "--epsilon"), None if above is None else positive(above, "--above")
    for place in (figure, output):
        if place is not None:
            require_writable(place, reads=(traces, *reading.files))
    if figure is not None:
        figure_suffix(figure)
    data = read_data(traces, reading, correlation=True)
    groups = reading.by is not None

    def people() -> Iterator[Adversary]:
        return estimate_adversaries(data, prior=prior, per_user=not groups, per_group=groups)

    sizes = getattr(data, "groups", None) if groups else None
    with working("leakage of every person"):
        found = leakage_distribution(
            people(), epsilon=promise, horizon=horizon, people=sizes, accounting=bound.accounting
        )
    warn(scarcity(data))
    warn(None if isinstance(data, CountedTraces) else absences(data))
    plans: dict[str, Any] = {}
    if alpha is not None:
        with working("everybody's own budget"):
            plans = _plans(list(people()), positive(alpha, "--alpha"), share, bound, groups=groups)
    if figure is not None:
        with working("drawing", writes=True):
            save_figure(population_figure(found, level=level, groups=groups), figure)
    if output is not None:
        _save(found, output)
    if as_json:
        say_json(_document(found, level) | plans)
        return
    _show(found, level, "group" if groups else "person", plans)
    for what, place in (("figure", figure), ("table", output)):
        if place is not None:
            console.print(f"{what} written to {place}", soft_wrap=True, markup=False)


def _plans(people: list[Adversary], alpha: float, share: float, bound: o.Bounds, *, groups: bool) -> dict[str, Any]:
    """What each step may spend: for each group its own budget, or one budget for a share of all people."""
    if groups:
        if share != 1.0:
            raise InputError("--share is of people: leave out --by, or --share")
        budgets = {
            str(one.name): float(plan_budget(one, alpha=alpha, accounting=bound.accounting).epsilons[0])
            for one in people
        }
        return {"alpha": alpha, "budgets": budgets}
    plan = plan_for_share(people, alpha=alpha, share=share, accounting=bound.accounting)
    return {
        "alpha": alpha,
        "budget": plan.epsilon,
        "share_held": plan.share,
        "not_held": list(plan.names),
        "says": plan.sentence,
    }


def _save(found: LeakageDistribution, output: Path) -> None:
    everybody = {"name": found.names, "leakage": found.leakage.tolist(), "people": found.people.tolist()}
    save_columns(everybody, output)


def _document(found: LeakageDistribution, level: float | None) -> dict[str, Any]:
    return {
        "epsilon": found.epsilon,
        "horizon": found.horizon,
        "accounting": found.accounting.document(),
        "people": found.n_people,
        "quantiles": {f"{share:g}": json_number(found.quantile(share)) for share in SHARES},
        "worst": json_number(found.worst),
        "worst_names": list(found.names[:MOST_NAMED]),
        "above": level,
        "share_above": None if level is None else found.share_above(level),
        "unit": "nats",
    }


def _show(found: LeakageDistribution, level: float | None, whose: str, plans: dict[str, Any]) -> None:
    """The distribution for people."""
    kind = "exact" if found.accounting.is_exact else "the paper's upper bound"
    rows = [("promised at each step", number(found.epsilon, up=True)), ("leakage is", kind)]
    rows += [(f"{100.0 * share:g} % of people leak at most", _level(found.quantile(share))) for share in SHARES]
    worst = [f"{name} ({_level(value)})" for name, value in zip(found.names[:MOST_NAMED], found.leakage, strict=False)]
    rows.append(("worst-off", ", ".join(worst)))
    if level is not None:
        rows.append((f"above {level:g}", f"{100.0 * found.share_above(level):.3g} % of people"))
    if "budgets" in plans:
        granted = [f"{name} {number(budget, down=True)}" for name, budget in plans["budgets"].items()]
        rows.append((f"each step may spend (alpha = {plans['alpha']:g})", ", ".join(granted)))
    if "budget" in plans:
        rows.append((f"each step may spend (alpha = {plans['alpha']:g})", number(plans["budget"], down=True)))
        rows.append(("what that leaves", plans["says"]))
    long = "for ever" if found.horizon is None else steps(found.horizon)
    facts(f"Leakage of {found.n_people} people, {whose} by {whose}, {long} (nats, replace one person's value)", rows)


def _level(value: float) -> str:
    return number(value, up=True).replace("inf", "without bound")
