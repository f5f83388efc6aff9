"""`temporaldp plan`: which guarantee, and how much may each step spend?"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from temporaldp import BudgetError, LeakageSeries, compare_plans, save_plan
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import console, say, warn
from temporaldp.apps.cli.render import answer, facts, learning_fact, listing, require_places, steps_table, working
from temporaldp.base.display import number, spread
from temporaldp.base.errors import PlanError
from temporaldp.base.values import refuse
from temporaldp.core.planning import Optimality, Plan, PlanComparison
from temporaldp.data.files.plans import plan_document
from temporaldp.data.smoothing import GuaranteeComparison
from temporaldp.publish.project.inputs import Inputs, absences, people_of
from temporaldp.publish.project.planning import (
    beaten_by_even_split,
    budget_terms,
    can_plan,
    compared,
    level_of_error,
    planned,
    planning_inputs,
)
from temporaldp.publish.report import explanation
from temporaldp.publish.report.figures import comparison_figure
from temporaldp.publish.report.sentences import (
    NO_EFFORT,
    NOISE_FIXED,
    at_delta,
    chain,
    ended,
    guarantee_line,
    nats,
    steps,
)
from temporaldp.publish.report.study_figures import guarantees_figure


def plan(
    context: typer.Context,
    traces: o.TracesArgument = None,
    history: o.HistoryOption = None,
    alphas: Annotated[
        str | None,
        o.option("--alpha", key="study.alphas", help="Level, in nats; or several to compare.", metavar="A[,B,...]"),
    ] = None,
    guarantee: Annotated[
        str | None,
        o.option(
            "--guarantee", key="privacy.guarantee", help="What is protected.", metavar="temporal|user[:W]|window:W"
        ),
    ] = None,
    delta: o.DeltaOption = None,
    horizon: o.HorizonOption = None,
    error: Annotated[
        float | None,
        o.option(
            "--error", key="study.error", help="Find the level with this error of a count, in users.", metavar="E"
        ),
    ] = None,
    bound: o.BoundOption = None,
    effort: o.EffortOption = None,
    details: Annotated[bool, o.option("--details", help="Print budgets and steps, and how they were found.")] = False,
    compare: Annotated[
        bool, o.option("--compare", help="Compare the plans of all methods of the temporal level.")
    ] = False,
    figure: o.FigureOption = None,
    output: Annotated[
        Path | None, o.option("--output", "-o", help="Where to write the plan (JSON).", metavar="FILE")
    ] = None,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Compare what each guarantee costs, and plan the one in use, so no step leaks more than alpha.

    The temporal level needs a correlation (--history). Without --horizon, a plan satisfies alpha for any number of steps.
    """
    settings = o.given(context).settings
    privacy, study, is_pure = settings.privacy, settings.study, settings.privacy.delta is None
    levels = study.alphas or (() if privacy.alpha is None else (privacy.alpha,))
    refuse(
        (
            not levels and study.error is None,
            BudgetError("expected a level: --alpha A, or privacy.alpha in the project file; or --error E to find it"),
        ),
        (
            compare and (not is_pure or privacy.horizon is None or settings.privacy.guarantee != "temporal"),
            BudgetError(
                "--compare is about budgets of the temporal level with delta = 0: leave out --delta and --guarantee, and give "
                "--horizon T"
            ),
        ),
        (
            compare and settings.plan.draw_every > 1,
            BudgetError("--compare is about methods that draw every step: leave out plan.draw_every"),
        ),
        (
            is_pure and privacy.noise is not None,
            BudgetError("privacy.noise is planned for a delta: give --delta D, such as 1e-6"),
        ),
        (
            not is_pure
            and (settings.plan.method not in {None, "optimal"} or "objective" in settings.plan.model_fields_set),
            BudgetError("plan.objective, and methods but optimal, are about delta = 0: leave out --delta, or them"),
        ),
        (
            not is_pure and privacy.effort is not None,
            BudgetError(NO_EFFORT),
        ),
        (
            not is_pure and privacy.bound == "paper",
            BudgetError("--bound paper is an accounting method for delta = 0: leave it out, or --delta"),
        ),
    )
    require_places(output, figure=figure, reads=settings.inputs)
    with working("reading data"):
        inputs = planning_inputs(settings)
    made, refusal = None, None
    with working("planning"):
        if study.error is not None:
            levels = (level_of_error(settings, inputs, study.error),)
        settings = settings.model_copy(update={"privacy": privacy.model_copy(update={"alpha": levels[0]})})
        methods = compare_plans(inputs.everyone, **budget_terms(settings)) if compare else PlanComparison({}, {})
        try:
            made = planned(settings, inputs) if output is not None or can_plan(settings) else None
        except PlanError as error_of_plan:
            refusal = error_of_plan
        if refusal is not None and output is not None:
            raise refusal
        found = compared(settings, inputs, made, levels)
    # Also of another guarantee: the rows of the temporal level depend on the correlation.
    warn(inputs.scarcity, inputs.provenance.warning, absences(inputs.trajectories))
    if made is not None:
        warn(_beaten(made))
    if made is not None and output is not None:
        save_plan(made, output)
    answer(
        as_json,
        document=partial(_document, made, found, methods),
        show=partial(_show, inputs, made, found, methods, details=details),
        draw=partial(comparison_figure, methods, inputs.times(made.horizon or 0))
        if compare and made is not None
        else partial(guarantees_figure, found),
        figure=figure,
        plan=output if made is not None else None,
    )
    if refusal is not None:
        raise refusal


def _beaten(made: Plan) -> str | None:
    """Warning where the user level has less noise at the same level; None elsewhere."""
    if made.n_drawn is None or not made.guarantee.is_temporal:
        return None
    return beaten_by_even_split(made.alpha, made.n_drawn, made.delta, made.noise, made.mean_absolute_noise)


def _document(made: Plan | None, found: GuaranteeComparison, methods: PlanComparison) -> dict[str, Any]:
    """The plan as JSON values, the guarantees, and the plans of all methods if they were compared."""
    best, columns = found.advised, found.columns()
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    document: dict[str, Any] = {} if made is None else plan_document(made)
    if made is not None:
        document |= {
            "mean_absolute_noise": made.mean_absolute_noise,
            "noise_share": found.share(made.mean_absolute_noise),
        }
        if made.guarantee.is_temporal and isinstance(made.leakage, LeakageSeries):
            document["models"] = explanation.by_model(made.leakage, made.provenance)
        if made.provenance.spends:
            document["alpha_in_all"] = made.alpha_in_all
    document |= {
        "guarantees": rows,
        "advice": found.advice,
        "advised": None
        if best is None
        else {"guarantee": str(best.guarantee), "delta": best.delta, "draw_every": best.draw_every},
    }
    if methods.plans:
        document["comparison"] = [
            {
                "method": plan.method,
                "accounting": plan.accounting,
                "mean_absolute_noise": plan.mean_absolute_noise,
                "mean_inverse_epsilon": float(np.mean(1.0 / plan.epsilons)),
                "smallest_epsilon": float(plan.epsilons.min()),
                "largest_epsilon": float(plan.epsilons.max()),
                "worst_leakage": plan.leakage.worst,
            }
            for plan in methods.plans.values()
        ]
        document["without_plan"] = {method: str(error) for method, error in methods.refusals.items()}
    return document


def _show(
    inputs: Inputs, made: Plan | None, found: GuaranteeComparison, methods: PlanComparison, *, details: bool
) -> None:
    """Print the verdict, the table of guarantees and the advice; then budgets and steps, and other methods if asked."""
    in_use = None if made is None else next((k for k, row in enumerate(found.rows) if row.plan is made), None)
    if made is not None:
        verdict = f"{guarantee_line(made.alpha, made.delta, made.guarantee, made.provenance)}: {_noise(found, made)}."
        name, cost = learning_fact(made.provenance, made.alpha, made.delta)
        say(verdict[:1].upper() + verdict[1:], f"{name.capitalize()}: {cost}." if cost else None, "")
    models = chain(inputs.provenance) if inputs.provenance.sentence else "the correlation"
    has_levels = len({row.alpha for row in found.rows}) > 1
    rows = [
        {
            "guarantee": ("> " if k == in_use else "  ")
            + ", ".join(filter(None, [row.guarantee.wording.label, row.drawn])),
            "delta": f"{row.delta:g}",
            **({"alpha": number(row.alpha, up=True)} if has_levels else {}),
            "noise": "-" if row.plan is None else number(row.noise),
            "of a count": _percent(found, row.noise),
            "estimates": "-" if row.error is None else number(row.error),
            "observers": f"who know {models}" if row.guarantee.is_temporal else row.guarantee.wording.observers,
        }
        for k, row in enumerate(found.rows)
    ]
    title = "Mean error of a count, in people"
    if found.n_people is not None:
        title += f": {found.n_people} people" + ("" if found.n_states is None else f", {found.n_states} states")
    listing(rows, title, left=("guarantee", "observers"), bold=in_use)
    for why in dict.fromkeys(row.refusal for row in found.rows if row.refusal):
        names = ", ".join(dict.fromkeys(row.guarantee.wording.label for row in found.rows if row.refusal == why))
        console.print(f"No plan for the {names}: {why.removesuffix('.')}.", style="dim", markup=False)
    for row in found.rows:
        if row.five_epochs is not None:
            most = f"{nats(row.five_epochs)}{at_delta(row.delta)}"
            console.print(f"Five times as long, together: at most {most} ({row.name}).", style="dim", markup=False)
    say("", found.advice)
    if made is not None and made.guarantee.is_temporal and isinstance(made.leakage, LeakageSeries):
        console.print()
        rows = explanation.by_observer(made.leakage, inputs.provenance, people_of(inputs, made.leakage))
        listing(rows, "Largest leakage of any step, by what the observer knows", left=("the observer knows",))
    if made is not None and details:
        _show_details(inputs, made)
    _show_methods(methods)


def _percent(found: GuaranteeComparison, noise: float) -> str:
    share = found.share(noise)
    return "-" if share is None else f"{number(100.0 * share)} %"


def _noise(found: GuaranteeComparison, made: Plan) -> str:
    """The noise of the plan in use, compared with an average count."""
    noise, share = made.mean_absolute_noise, found.share(made.mean_absolute_noise)
    compared_with = "" if share is None else f", {number(100.0 * share)} % of an average count"
    gaps = "" if made.n_drawn == made.horizon else f" ({made.n_drawn} of {made.horizon} steps are drawn)"
    return f"noise of {number(noise)} people on a count{compared_with}{gaps}"


def _show_details(inputs: Inputs, made: Plan) -> None:
    """Print budgets and steps, and how they were found."""
    first, middle, last = (number(float(made.epsilons[k]), down=True) for k in (0, len(made.epsilons) // 2, -1))
    spent = f"{first} at every step"
    if made.n_drawn != made.horizon:
        spent = (
            f"{spread(made.epsilons[made.epsilons > 0.0], down=True)}, drawn at {made.n_drawn} of {made.horizon} steps"
        )
    elif not (made.epsilons == made.epsilons[0]).all():
        between = "" if len(made.epsilons) < 3 else f"{middle} in the middle, "
        spent = f"{first} first, {between}{last} last"
    rows = [
        ("correlation", inputs.provenance.sentence if made.guarantee.is_temporal else ""),
        ("people of the history", "" if inputs.shared is None else inputs.shared.sentence),
        ("method", "" if made.delta else made.description),
        ("noise", f"{made.description}. {NOISE_FIXED}" if made.delta else ""),
        ("delta", f"{made.delta:g} (leakage and budgets are the epsilon at this delta)" if made.delta else ""),
        ("optimality", "" if made.optimality is None else _optimality(made.optimality)),
        ("horizon", "any number of steps" if made.horizon is None else steps(made.horizon)),
        ("budgets", spent),
        (f"largest leakage ({made.leakage.label})", f"{made.leakage.written()} of {made.alpha:g}"),
    ]
    facts(f"Plan for {made.level} (nats, replace one person's state)", rows)
    say(ended(made.leakage))
    if isinstance(made.leakage, LeakageSeries):
        steps_table(made.leakage, inputs.times(len(made.leakage)), granted=True)


def _show_methods(found: PlanComparison) -> None:
    """Print the plans of all methods."""
    others = [
        {
            "method": plan.method,
            "noise per count": number(plan.mean_absolute_noise),
            "smallest budget": number(float(plan.epsilons.min()), down=True),
            "largest budget": number(float(plan.epsilons.max()), down=True),
            "largest leakage": plan.leakage.written(),
        }
        for plan in found.plans.values()
    ]
    listing(others, "All methods", left=("method",), boxed=True)
    for why in dict.fromkeys(map(str, found.refusals.values())):
        names = " or ".join(method for method, error in found.refusals.items() if str(error) == why)
        console.print(f"There is no plan by {names}: {why}.", style="dim", markup=False)


def _optimality(found: Optimality) -> str:
    """Bound of the noise that another plan by the same accounting could save; not proved if it is above 100 %."""
    least = found.error_bound
    short = math.inf if least is None or least <= 0.0 else found.error / least - 1.0
    if short > 1.0:
        return "not proved: another plan for this level could have less noise"
    most = number(100.0 * max(short, 0.0), up=True)
    return f"no plan for this level by the same accounting reduces the noise by more than {most} % ({found.objective})"
