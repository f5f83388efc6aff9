"""`temporaldp plan`: how much may each step spend?"""

from __future__ import annotations

import dataclasses
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
from temporaldp.base.display import number
from temporaldp.base.values import refuse
from temporaldp.core.planning import Optimality, Plan, PlanComparison
from temporaldp.core.planning.histogram_noise import laplace_scales, mean_absolute_noise
from temporaldp.data.files.plans import plan_document
from temporaldp.publish.project.inputs import Inputs, absences
from temporaldp.publish.report.figures import comparison_figure
from temporaldp.publish.report.sentences import NO_EFFORT, NOISE_FIXED, NoiseBesideCounts, ended, steps


def plan(
    context: typer.Context,
    traces: o.TracesArgument = None,
    history: o.HistoryOption = None,
    alpha: o.AlphaOption = None,
    delta: o.DeltaOption = None,
    noise: o.NoiseOption = None,
    horizon: o.HorizonOption = None,
    bound: o.BoundOption = None,
    effort: o.EffortOption = None,
    compare: Annotated[bool, o.option("--compare", help="Compare the plans of all methods.")] = False,
    figure: o.FigureOption = None,
    output: Annotated[
        Path | None, o.option("--output", "-o", help="Where to write the plan (JSON).", metavar="FILE")
    ] = None,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Choose budgets, or noise at a delta, so that no step leaks more than alpha.

    Without --horizon, the plan satisfies alpha for any number of steps.
    """
    asked = o.given(context)
    settings, compared = asked.settings, compare or figure is not None
    privacy, is_pure = settings.privacy, settings.privacy.delta is None
    refuse(
        (
            is_pure and compared and privacy.horizon is None,
            BudgetError("--compare and --figure need --horizon T: without one there is only one method"),
        ),
        (
            is_pure and privacy.noise is not None,
            BudgetError("--noise is planned at a delta: give --delta D, such as 1e-6"),
        ),
        (
            not is_pure and compared,
            BudgetError("--compare and --figure are about budgets with delta = 0: leave out --delta, or them"),
        ),
        (
            not is_pure and settings.plan.is_given,
            BudgetError("plan.method and plan.objective are about budgets with delta = 0: leave out --delta, or them"),
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
        inputs = asked.inputs()
    comparison = PlanComparison({}, {})
    with working("planning"):
        if compared:
            comparison = compare_plans(inputs.everyone, **asked.budget_terms())
        ready = comparison.plans.get(settings.plan.method or "optimal")
        made: Plan = asked.plan(inputs) if ready is None else dataclasses.replace(ready, provenance=inputs.provenance)
    beside, n_people = None, settings.release.population
    if n_people is None and inputs.trajectories is not None:
        n_people = inputs.trajectories.n_users
    if n_people is not None and inputs.states is not None:
        beside = NoiseBesideCounts(made.mean_absolute_noise, n_people, len(inputs.states))
    warn(
        inputs.scarcity,
        made.provenance.warning,
        absences(inputs.trajectories),
        None if beside is None else beside.warning,
    )
    if output is not None:
        save_plan(made, output)
    answer(
        as_json,
        document=partial(_document, made, comparison, beside),
        show=partial(_show, inputs, made, beside, comparison if compare else PlanComparison({}, {})),
        draw=partial(comparison_figure, comparison, inputs.times(made.horizon or 0)),
        figure=figure,
        plan=output,
    )


def _document(made: Plan, found: PlanComparison, beside: NoiseBesideCounts | None) -> dict[str, Any]:
    """The plan as JSON values, and the plans of all methods if they were compared."""
    document = plan_document(made) | {
        "mean_absolute_noise": made.mean_absolute_noise,
        "noise_beside_counts": None if beside is None else beside.share,
    }
    if made.provenance.spends:
        document["alpha_in_all"] = made.alpha_in_all
    if found.plans:
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
            for plan in found.plans.values()
        ]
        document["without_plan"] = {method: str(error) for method, error in found.refusals.items()}
    return document


def _show(inputs: Inputs, made: Plan, beside: NoiseBesideCounts | None, compared: PlanComparison) -> None:
    """Print the plan as tables, and the plans that it is compared with."""
    first, middle, last = (number(float(made.epsilons[k]), down=True) for k in (0, len(made.epsilons) // 2, -1))
    spent = f"{first} at every step"
    if not (made.epsilons == made.epsilons[0]).all():
        between = "" if len(made.epsilons) < 3 else f"{middle} in the middle, "
        spent = f"{first} first, {between}{last} last"
    rows = [
        ("correlation", inputs.provenance.sentence),
        ("people of the history", "" if inputs.shared is None else inputs.shared.sentence),
        ("method", "" if made.delta else made.description),
        ("noise", f"{made.description}. {NOISE_FIXED}" if made.delta else ""),
        ("delta", f"{made.delta:g} (leakage and budgets are the epsilon at this delta)" if made.delta else ""),
        ("optimality", "" if made.optimality is None else _optimality(made.optimality)),
        ("horizon", "any number of steps" if made.horizon is None else steps(made.horizon)),
        ("budgets", spent),
        (
            f"largest leakage ({made.leakage.label})",
            f"{made.leakage.written()} of {made.alpha:g}",
        ),
        ("mean absolute noise per count", number(made.mean_absolute_noise)),
        (
            "noise beside counts",
            "unknown: give TRACES, or --set release.population=N" if beside is None else beside.sentence,
        ),
        learning_fact(made.provenance, made.alpha, made.delta),
    ]
    facts(f"Plan for {made.level} (nats, replace one person's state)", rows)
    say(ended(made.leakage))
    if isinstance(made.leakage, LeakageSeries):
        steps_table(made.leakage, inputs.times(len(made.leakage)), granted=True)
        naive = mean_absolute_noise(laplace_scales([made.alpha / len(made.leakage)]))
        if naive < made.mean_absolute_noise * (1.0 - 1e-6):  # plans leave up to 1e-7 of alpha unspent
            warn(
                f"alpha / T at every step satisfies the same level with less noise ({number(naive)} per count on average): use "
                "--set plan.method=optimal without --delta, which never has more noise"
            )
    others = [
        {
            "method": plan.method,
            "noise per count": number(plan.mean_absolute_noise),
            "smallest budget": number(float(plan.epsilons.min()), down=True),
            "largest budget": number(float(plan.epsilons.max()), down=True),
            "largest leakage": plan.leakage.written(),
        }
        for plan in compared.plans.values()
    ]
    listing(others, "All methods", left=("method",), boxed=True)
    for why in dict.fromkeys(map(str, compared.refusals.values())):
        names = " or ".join(method for method, error in compared.refusals.items() if str(error) == why)
        console.print(f"There is no plan by {names}: {why}.", style="dim", markup=False)


def _optimality(found: Optimality) -> str:
    """Bound of the noise that another plan by the same accounting could save; not proved if it is above 100 %."""
    least = found.error_bound
    short = math.inf if least is None or least <= 0.0 else found.error / least - 1.0
    if short > 1.0:
        return "not proved: another plan for this level could have less noise"
    most = number(100.0 * max(short, 0.0), up=True)
    return f"no plan for this level by the same accounting reduces the noise by more than {most} % ({found.objective})"
