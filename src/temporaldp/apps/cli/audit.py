"""`temporaldp audit`: the leakage of a release."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from temporaldp import (
    Adversary,
    InputError,
    LeakageSeries,
    PrivacyGuarantee,
    temporal_leakage,
)
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import console, say, warn
from temporaldp.apps.cli.render import (
    ROWS_ON_SCREEN,
    answer,
    at_most,
    facts,
    listing,
    require_places,
    steps_table,
    working,
)
from temporaldp.base.display import number
from temporaldp.base.values import refuse
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.accounting.protocol import DIRECTIONS, Accounting
from temporaldp.core.correlation import lazy_walk
from temporaldp.core.planning.histogram_noise import histogram_profile
from temporaldp.lab.studies.uncertainty import quantile
from temporaldp.publish.project.inputs import Inputs, absences, gather, hole_sentence, holes, uncertainty_of
from temporaldp.publish.project.reporting import audit_of
from temporaldp.publish.report import Report, explanation
from temporaldp.publish.report.figures import audit_figure, leakage_figure
from temporaldp.publish.report.sentences import (
    INFINITE_HORIZON,
    NO_EFFORT,
    PAPER_BOUND,
    at_delta,
    ended,
    learning_cost,
    supremum,
)
from temporaldp.publish.report.study_figures import range_figure, uncertainty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from temporaldp.publish.project.settings import PrivacySettings


def audit(
    context: typer.Context,
    traces: o.TracesArgument = None,
    history: o.HistoryOption = None,
    epsilon: o.EpsilonOption = None,
    delta: o.DeltaOption = None,
    noise: o.NoiseOption = None,
    scale: Annotated[
        float | None, o.option("--scale", key="privacy.scale", help="Scale of the noise, in counts.", metavar="S")
    ] = None,
    horizon: o.HorizonOption = None,
    alpha: Annotated[
        float | None,
        o.option("--alpha", key="privacy.alpha", help="Exit with code 3 if any step leaks more, in nats.", metavar="A"),
    ] = None,
    bound: o.BoundOption = None,
    effort: o.EffortOption = None,
    figure: o.FigureOption = None,
    details: Annotated[bool, o.option("--details", help="Show the leakage step by step.")] = False,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Compute the leakage of a release that spends epsilon at every step.

    TRACES may be omitted if a correlation and --horizon are given.
    """
    settings = o.given(context).settings
    privacy = settings.privacy
    release = _mechanism(privacy)
    method: Accounting[Any, Any] = privacy.accounting
    if privacy.delta is not None:
        refuse(
            (privacy.effort is not None, InputError(NO_EFFORT)),
            (
                privacy.bound == "paper",
                InputError("--bound paper is an accounting method for delta = 0: leave it out, or --delta"),
            ),
        )
        method = ApproximateDP(privacy.delta)
    require_places(figure=figure, reads=settings.inputs)
    with working("reading data"):
        inputs = gather(settings)
    with working("accounting"):
        found = audit_of(inputs, release, inputs.n_steps(privacy.horizon), method, name_users=True)
        found = replace(found, uncertainty=uncertainty_of(inputs, settings.correlation, found.leakage))
    is_determined, alpha = inputs.scarcity is None, privacy.alpha
    satisfied = None if alpha is None else explanation.level(found, alpha, is_determined=is_determined)
    verdict = explanation.verdict(found, satisfied, is_determined=is_determined)
    answer(
        as_json,
        document=lambda: {"verdict": verdict} | _document(inputs, found),
        show=partial(_show, inputs, found, verdict, details),
        draw=partial(_figure, inputs, found),
        figure=figure,
    )
    missing = hole_sentence(inputs.trajectories) if privacy.horizon is None else None
    warn(inputs.scarcity, inputs.provenance.warning, absences(inputs.trajectories), missing)
    if alpha is not None and not (is_determined and found.leakage.worst <= alpha):
        advice = " The audit is of one budget, or one noise, at every step: `temporaldp plan` finds what satisfies it"
        warn(f"{satisfied}{advice if is_determined else ''}")
        raise typer.Exit(3)


def _mechanism(privacy: PrivacySettings) -> Any:
    """Mechanism of each step: an epsilon, or noise of a scale. A scale requires its noise and a delta."""
    if privacy.scale is None:
        if privacy.epsilon is None:
            raise InputError("expected --epsilon E (of every step), or --noise M --scale S --delta D")
        return privacy.epsilon if privacy.delta is None else PrivacyGuarantee(privacy.epsilon)
    if privacy.epsilon is not None:
        raise InputError("expected one of --epsilon E and --noise M --scale S: a scale determines the epsilon")
    if privacy.noise is None or privacy.delta is None:
        raise InputError("expected --noise, --scale and --delta together: noise of a scale is accounted at a delta")
    return histogram_profile(privacy.noise, privacy.scale)


def _document(inputs: Inputs, found: Report) -> dict[str, Any]:
    """The audit as JSON values; times from 0. Beside exact numbers the paper's stand under "paper"."""
    series, paper, whole, uncertainty = found.leakage, None, None, None
    if found.paper is not None:
        paper = _directions(found.paper, worst_leakage=found.paper.worst, supremum=_directions(found.paper_supremum))
    if found.supremum is not None:
        attained = _directions(found.supremum.lower)
        whole = _directions(found.supremum, certified=found.supremum.certified, attained=attained)
    if found.uncertainty is not None:
        one = found.uncertainty
        uncertainty = {
            "confidence": one.confidence,
            "assumes_stationary": one.is_stationary,
            "estimate": one.estimate,
            "posterior_quantile": quantile(one.posterior, one.confidence),
            "people_quantile": None if one.people is None else quantile(one.people, one.confidence),
            "attained": one.attained,
            "guaranteed": one.guaranteed,
        }
    return {
        "epsilon": float(series.epsilons[0]),
        "delta": series.delta,
        "gap": _gap(series),
        "states": inputs.states,
        "times": found.times,
        "accounting": series.accounting,
        "effort": None if math.isinf(series.accounting.effort) else series.accounting.effort,
        "is_exact": series.is_exact,
        **{name: getattr(series, name) for name in DIRECTIONS},
        "attained": _directions(series.attained),
        "worst_time": series.worst_time,
        "worst_leakage": series.worst,
        "worst_user": series.worst_user,
        "worst_pair": series.worst_pair(),
        "supremum": whole,
        "models": explanation.by_model(series, inputs.provenance),
        "people": None
        if found.people is None
        else dict(zip(("most_predictable", "largest", "compared"), found.people, strict=True)),
        "witness": _witness(series),
        "paper": paper,
        "uncertainty": uncertainty,
        "learning_epsilon": inputs.provenance.epsilon,
        "user_level": series.user_level,
        "unit": "nats",
        "neighboring_relation": "replace_one",
        "correlation": inputs.provenance.sentence,
        "history": inputs.shared,
        "warning": inputs.provenance.warning,
        "scarcity": inputs.scarcity,
        "holes": holes(inputs.trajectories),
    }


def _directions(leakage: object, **more: Any) -> dict[str, Any] | None:
    """Backward, forward and temporal leakage, and more about them; None for None."""
    return None if leakage is None else {name: getattr(leakage, name) for name in DIRECTIONS} | more


def _witness(series: LeakageSeries) -> dict[str, Any] | None:
    """The observation that attains the leakage of the worst step; None where none is known."""
    member = series.worst_member
    if not (member.is_exact and member.evidence and member.evidence.best_pairs):
        return None
    seen = series.witness()
    return {
        "time": seen.time,
        "state": seen.state,
        "other_state": seen.other_state,
        "high": [seen.counts_high(step) for step in range(len(seen))],
        "leakage": seen.leakage,
    }


def _figure(inputs: Inputs, evidence: Report) -> Figure:
    if evidence.uncertainty is not None:
        return uncertainty_figure(evidence.uncertainty)
    if inputs.stays is not None and inputs.states is not None and not evidence.leakage.delta:
        return _range(inputs.stays, len(inputs.states), evidence.leakage)
    seen = evidence.observation
    if seen is None:
        return leakage_figure(evidence.leakage, evidence.times)
    return audit_figure(evidence.leakage, evidence.times, seen, paper=evidence.paper)


def _range(stays: tuple[float, float], n_states: int, guarantee: LeakageSeries) -> Figure:
    """Leakage of chains that stay with a given probability and otherwise move uniformly, over the range."""
    chances = np.linspace(*stays, 13)
    known = [lazy_walk(float(p), n_states) for p in chances]
    series = temporal_leakage({f"{k}": Adversary(one, one) for k, one in enumerate(known)}, guarantee.epsilons)
    return range_figure(chances.tolist(), [one.worst for one in series.members], guarantee.worst)


def _gap(series: LeakageSeries) -> float | None:
    """Bound of the discretisation error of the largest leakage; None if it is unknown: for each pair, and without a delta."""
    known = series.worst_member.evidence
    return None if known is None else known.gap(series.worst_time)


def _show(inputs: Inputs, evidence: Report, verdict: list[str], details: bool) -> None:
    """Print the verdict, then what it rests on."""
    say(*verdict)
    if inputs.scarcity is None:
        console.print()
        listing(
            explanation.by_observer(evidence.leakage, inputs.provenance, evidence.people), left=("the observer knows",)
        )
    series, limits, data = evidence.leakage, evidence.supremum, inputs.trajectories
    whole = "" if limits is None else ", ".join(f"{name} {supremum(limits, name)}" for name in DIRECTIONS)
    gap, learnt, at = _gap(series), inputs.provenance.epsilon, at_delta(series.delta)
    epsilon, states = float(series.epsilons[0]), inputs.states or ()
    named = ", ".join(states[: explanation.STATES_IN_WORDS])
    rows = [
        ("correlation", inputs.provenance.sentence),
        ("people of the history", "" if inputs.shared is None else inputs.shared.sentence),
        ("people", "" if data is None else str(data.n_users)),
        ("states", named if len(states) <= explanation.STATES_IN_WORDS else f"{named}, ... ({len(states)} states)"),
        ("epsilon of each step", number(epsilon, up=True) + at),
        ("largest leakage", f"{at_most(series)}{number(series.worst / epsilon, up=True)} times epsilon"),
        (INFINITE_HORIZON, whole or "none: the correlation is known for these steps only"),
        (f"by {PAPER_BOUND}", explanation.paper(evidence)),
        ("discretisation error, at most", "" if gap is None else number(gap, up=True)),
        (
            "cost of learning the correlation",
            learning_cost(learnt, series.worst + learnt, series.delta) if learnt else "",
        ),
    ]
    console.print()
    facts(f"Details (nats{at}, replace one person's state)", rows if inputs.scarcity is None else rows[:5])
    if inputs.scarcity is not None:
        return
    if details or len(series) <= ROWS_ON_SCREEN:
        steps_table(series, evidence.times)
    uncertain = None if evidence.uncertainty is None else explanation.uncertainty(evidence.uncertainty)
    seen = explanation.witness(evidence, "--figure FILE draws")
    say(ended(series, limits), uncertain, *explanation.reasons(evidence), seen)
