"""`temporaldp audit`: how much does this release really leak?"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from temporaldp import LeakageSeries, LeakageSupremum, leakage_supremum, temporal_leakage
from temporaldp.cli import options as o
from temporaldp.cli.inputs import Inputs, absences, gather
from temporaldp.cli.render import console, facts, say_json, steps_table, warn, working
from temporaldp.files.plans import json_number
from temporaldp.leakage.profile import positive
from temporaldp.report import Evidence
from temporaldp.report.words import number, reasons, steps


@o.grouped
def audit(
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    epsilon: Annotated[float, typer.Option("--epsilon", help="What each step promises, in nats.", show_default=False)],
    traces: o.TracesArgument = None,
    horizon: o.HorizonOption = None,
    max_leakage: Annotated[
        float | None,
        typer.Option(
            "--max-leakage", metavar="ALPHA", help="Exit with code 3 if any step leaks more.", show_default=False
        ),
    ] = None,
    all_steps: Annotated[bool, typer.Option("--all", help="Show every step in the table.")] = False,
    as_json: o.JsonOption = False,
) -> None:
    """Measure what a release that spends epsilon at every step really gives away, step by step.

    TRACES may be left out if --backward or --forward gives the correlation and --horizon the number of steps.
    """
    budget = positive(epsilon, "--epsilon")
    limit = None if max_leakage is None else positive(max_leakage, "--max-leakage")
    inputs = gather(traces, reading, known)
    n_steps = inputs.n_steps(horizon)
    with working("accounting"):
        series = temporal_leakage(inputs.everyone, epsilons=np.full(n_steps, budget))
        limits = leakage_supremum(inputs.everyone, epsilon=budget)
    warn(inputs.provenance.warning)
    warn(absences(inputs.trajectories))
    if as_json:
        say_json(audit_document(inputs, series, limits, budget))
    else:
        show_audit(inputs, series, limits, budget, all_steps=all_steps)
    if limit is not None and series.worst > limit:
        warn(f"the leakage {number(series.worst, up=True)} is above --max-leakage {limit:g}")
        raise typer.Exit(3)


def audit_document(inputs: Inputs, series: LeakageSeries, limits: LeakageSupremum, epsilon: float) -> dict[str, Any]:
    """The audit as JSON values; times from 0."""
    return {
        "epsilon": epsilon,
        "states": inputs.states,
        "times": inputs.times(len(series)),
        "backward": series.backward.tolist(),
        "forward": series.forward.tolist(),
        "temporal": series.temporal.tolist(),
        "worst_time": series.worst_time,
        "worst_leakage": series.worst,
        "worst_user": series.worst_user,
        "supremum": {name: json_number(getattr(limits, name)) for name in ("backward", "forward", "temporal")},
        "user_level": series.user_level,
        "unit": "nats",
        "neighboring_relation": "replace_one",
        "correlation": inputs.provenance.sentence,
        "warning": inputs.provenance.warning,
    }


def show_audit(
    inputs: Inputs, series: LeakageSeries, limits: LeakageSupremum, epsilon: float, *, all_steps: bool = False
) -> None:
    """The audit for people."""
    times = inputs.times(len(series))
    where = f"step {series.worst_time + 1} of {len(series)}, time {times[series.worst_time]}"
    rows = [
        ("correlation", inputs.provenance.sentence),
        ("states", ", ".join(inputs.states or ())),
        ("promised at each step", f"{epsilon:g}"),
        (
            "leakage, at worst (upper bound)",
            f"{number(series.worst, up=True)}, {series.worst / epsilon:.1f} times the promise",
        ),
        ("where", where),
        ("if it went on for ever", _limits(limits)),
        ("user level (all steps together)", number(series.user_level, up=True)),
    ]
    if series.worst_user:
        rows.insert(5, ("about", series.worst_user))
    data = inputs.trajectories
    people = "" if data is None else f"{data.n_users} people, "
    facts(f"Temporal privacy leakage of {people}{steps(len(series))} (nats, replace one person's value)", rows)
    steps_table(series, times, every_row=all_steps)
    evidence = Evidence(inputs.adversaries, series, inputs.provenance, times)
    for sentence in reasons(evidence):
        console.print(sentence, markup=False)


def _limits(limits: LeakageSupremum) -> str:
    parts = [f"{name} {number(getattr(limits, name), up=True)}" for name in ("backward", "forward", "temporal")]
    return ", ".join(parts).replace(" inf", " without bound")
