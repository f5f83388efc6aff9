"""`temporaldp audit`: how much does this release really leak?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from temporaldp import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    InputError,
    LeakageSeries,
    LeakageSupremum,
    PrivacyGuarantee,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.cli import options as o
from temporaldp.cli.inputs import Inputs, absences, gather
from temporaldp.cli.render import console, facts, say_json, steps_table, warn, working
from temporaldp.files.plans import json_number
from temporaldp.leakage.profile import positive
from temporaldp.planning.noise import histogram_noise
from temporaldp.report import Evidence
from temporaldp.report.words import number, reasons, steps, two_bounds


@o.grouped
def audit(
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    traces: o.TracesArgument = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="What each step promises, in nats.", show_default=False)
    ] = None,
    delta: o.DeltaOption = None,
    mechanism: o.MechanismOption = None,
    scale: Annotated[
        float | None,
        typer.Option(
            "--scale", metavar="S", help="With --mechanism: the scale of the noise, in counts.", show_default=False
        ),
    ] = None,
    horizon: o.HorizonOption = None,
    max_leakage: Annotated[
        float | None,
        typer.Option(
            "--max-leakage",
            metavar="ALPHA",
            help="Exit with code 3 if any step leaks more, by the smaller of the bounds computed.",
            show_default=False,
        ),
    ] = None,
    bound: o.BoundsOption = o.Bounds.AUTO,
    all_steps: Annotated[bool, typer.Option("--all", help="Show every step in the table.")] = False,
    as_json: o.JsonOption = False,
) -> None:
    """Measure what a release that spends epsilon at every step really gives away, step by step.

    TRACES may be left out if --backward or --forward gives the correlation and --horizon the number of steps.
    """
    promise = _promise(epsilon, delta, mechanism, scale)
    if delta is not None and bound is o.Bounds.BOTH:
        raise InputError("--bound both is about delta = 0: with --delta there is one bound, for all pairs of values")
    limit = None if max_leakage is None else positive(max_leakage, "--max-leakage")
    inputs = gather(traces, reading, known)
    n_steps = inputs.n_steps(horizon)
    with working("accounting"):
        if delta is not None:
            found = audit_with_delta(inputs, promise, delta, n_steps)
        else:
            assert isinstance(promise, float)
            found = audit_of(inputs, promise, n_steps, by_pairs=inputs.by_pairs(bound))
    warn(inputs.provenance.warning)
    warn(absences(inputs.trajectories))
    if as_json:
        say_json(audit_document(inputs, found))
    else:
        show_audit(inputs, found, all_steps=all_steps)
        if bound is o.Bounds.AUTO and found.pairwise is None and not found.delta:
            console.print("[dim]Many states or people: --bound both computes the tighter bound, pair by pair, too.[/]")
    if limit is not None and found.least > limit:
        warn(f"the leakage {number(found.least, up=True)} is above --max-leakage {limit:g} ({found.by})")
        raise typer.Exit(3)


def _promise(
    epsilon: float | None, delta: float | None, mechanism: o.Noises | None, scale: float | None
) -> float | DiscreteGaussianNoise | DiscreteLaplaceNoise:
    """What each step publishes: an epsilon, or noise of a scale."""
    if (mechanism is None) != (scale is None):
        raise InputError("expected --mechanism and --scale together: the kind of noise, and how much of it")
    if (epsilon is None) == (scale is None):
        raise InputError(
            "expected one of --epsilon E (what each step promises) and --mechanism M --scale S (its noise)"
        )
    if scale is None:
        assert epsilon is not None
        return positive(epsilon, "--epsilon")
    if delta is None:
        raise InputError("--mechanism is audited at a delta: give --delta D, such as 1e-6")
    return histogram_noise("gaussian" if mechanism is o.Noises.GAUSSIAN else "laplace", positive(scale, "--scale"))


@dataclass(frozen=True, slots=True)
class Audit:
    """What a constant budget leaks, by the paper's bound and, if computed, pair by pair."""

    epsilon: float
    uniform: LeakageSeries
    limits: LeakageSupremum
    pairwise: LeakageSeries | None = None
    pairwise_limits: LeakageSupremum | None = None

    @property
    def delta(self) -> float:
        """The delta at which leakage is an epsilon; 0 for pure differential privacy."""
        return self.uniform.delta

    @property
    def by(self) -> str:
        """What the smaller number is, in words."""
        if self.delta:
            return f"at delta {self.delta:g}"
        if self.pairwise is None:
            return "by the paper's bound; --bound both computes the tighter one"
        return "by the tighter bound"

    @property
    def least(self) -> float:
        """The smaller bound of the largest leakage of any step; both are guarantees."""
        return self.uniform.worst if self.pairwise is None else self.pairwise.worst


def audit_of(inputs: Inputs, epsilon: float, n_steps: int, *, by_pairs: bool) -> Audit:
    """Both bounds of a release that spends epsilon at every step, and what they are in the limit."""
    spent = np.full(n_steps, epsilon)
    uniform = temporal_leakage(inputs.everyone, epsilons=spent)
    limits = leakage_supremum(inputs.everyone, epsilon=epsilon)
    if not by_pairs:
        return Audit(epsilon, uniform, limits)
    return Audit(
        epsilon,
        uniform,
        limits,
        temporal_leakage(inputs.everyone, epsilons=spent, bound="pairwise"),
        leakage_supremum(inputs.everyone, epsilon=epsilon, bound="pairwise"),
    )


def audit_with_delta(inputs: Inputs, promise: Any, delta: float, n_steps: int) -> Audit:
    """What a release of the same noise at every step leaks, as epsilon at a delta."""
    mechanism = PrivacyGuarantee(promise) if isinstance(promise, float) else promise
    series = temporal_leakage(inputs.everyone, mechanisms=[mechanism] * n_steps, delta=delta)
    limits = leakage_supremum(inputs.everyone, mechanism=mechanism, delta=delta)
    return Audit(float(series.epsilons[0]), series, limits)


def audit_document(inputs: Inputs, found: Audit) -> dict[str, Any]:
    """The audit as JSON values; times from 0. The paper's bound stands at the top, the tighter one under "pairwise"."""
    pairwise = None
    if found.pairwise is not None and found.pairwise_limits is not None:
        worst = found.pairwise.worst_member.pairs
        pair = None if worst is None else worst.worst_pair(found.pairwise.worst_time)
        pairwise = _bound_document(found.pairwise, found.pairwise_limits) | {"worst_pair": pair}
    return {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "gap": json_number(_gap(found.uniform)) if found.delta else None,
        "states": inputs.states,
        "times": inputs.times(len(found.uniform)),
        **_bound_document(found.uniform, found.limits),
        "bounds": ["uniform"] if pairwise is None else ["uniform", "pairwise"],
        "pairwise": pairwise,
        "user_level": found.uniform.user_level,
        "unit": "nats",
        "neighboring_relation": "replace_one",
        "correlation": inputs.provenance.sentence,
        "warning": inputs.provenance.warning,
    }


def _bound_document(series: LeakageSeries, limits: LeakageSupremum) -> dict[str, Any]:
    return {
        "backward": series.backward.tolist(),
        "forward": series.forward.tolist(),
        "temporal": series.temporal.tolist(),
        "worst_time": series.worst_time,
        "worst_leakage": series.worst,
        "worst_user": series.worst_user,
        "supremum": {name: json_number(getattr(limits, name)) for name in ("backward", "forward", "temporal")},
    }


def _gap(series: LeakageSeries) -> float:
    """How much of the worst leakage discretisation can be."""
    curves = series.worst_member.curves
    return 0.0 if curves is None else float(curves.gaps()[series.worst_time])


def show_audit(inputs: Inputs, found: Audit, *, all_steps: bool = False) -> None:
    """The audit for people."""
    series, epsilon = found.uniform, found.epsilon
    times = inputs.times(len(series))
    evidence = Evidence(inputs.adversaries, series, inputs.provenance, times, pairwise=found.pairwise, name_users=True)
    rows = [
        ("correlation", inputs.provenance.sentence),
        ("states", ", ".join(inputs.states or ())),
        (
            "promised at each step",
            f"{number(epsilon, up=True)} at delta {found.delta:g}" if found.delta else f"{epsilon:g}",
        ),
        ("leakage, at worst (upper bound)", _times(series.worst, epsilon)),
        ("where", _where(evidence.explained_step, times)),
        ("if it went on for ever", _limits(found.limits)),
        ("user level (all steps together)", number(series.user_level, up=True)),
    ]
    if series.worst_user:
        rows.insert(5, ("about", series.worst_user))
    if found.pairwise is not None and found.pairwise_limits is not None:
        rows[-1:-1] = [
            ("the same, pair by pair (tighter bound)", _times(found.pairwise.worst, epsilon)),
            ("where", _where(found.pairwise.worst_time, times)),
            ("if it went on for ever", _limits(found.pairwise_limits)),
        ]
    if found.delta:
        rows[-1:-1] = [("of it discretisation, at most", number(_gap(series), up=True))]
    data = inputs.trajectories
    people = "" if data is None else f"{data.n_users} people, "
    unit = f"nats at delta {found.delta:g}" if found.delta else "nats"
    facts(f"Temporal privacy leakage of {people}{steps(len(series))} ({unit}, replace one person's value)", rows)
    steps_table(series, times, every_row=all_steps, pairwise=found.pairwise)
    for sentence in (*reasons(evidence), *two_bounds(evidence)):
        console.print(sentence, markup=False)


def _where(step: int, times: Sequence[str]) -> str:
    return f"step {step + 1} of {len(times)}, time {times[step]}"


def _times(leakage: float, epsilon: float) -> str:
    return f"{number(leakage, up=True)}, {leakage / epsilon:.1f} times the promise"


def _limits(limits: LeakageSupremum) -> str:
    parts = [f"{name} {number(getattr(limits, name), up=True)}" for name in ("backward", "forward", "temporal")]
    return ", ".join(parts).replace(" inf", " without bound")
