"""Plans by the settings: of the guarantee, the level and the horizon that they name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import IntArray
from temporaldp.core.accounting import ApproximateDP
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.provenance import UNSTATED
from temporaldp.core.planning import Guarantee, Plan, plan_budget, plan_guarantee, plan_noise
from temporaldp.core.planning.every_correlation import checked_draw_every, drawn_steps
from temporaldp.core.planning.histogram_noise import Noise
from temporaldp.data.files import load_plan
from temporaldp.data.files.plans import plan_from
from temporaldp.data.smoothing import GuaranteeComparison, PublicCorrelation, compare_guarantees, level_for_error
from temporaldp.data.tables import Traces
from temporaldp.data.tables.moments import STEP_LENGTH, steps_between
from temporaldp.publish.project.inputs import Inputs, gather
from temporaldp.publish.release import Ledger
from temporaldp.publish.release.ledger import configuration_at
from temporaldp.publish.report.sentences import even_split, observers

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import Settings


USUAL_DELTA = 1e-6
"""Of the rows at a delta, where the settings have none."""


def guarantee_of(settings: Settings, step: str | None) -> Guarantee:
    """The guarantee of the settings; one such as window:7d has as many steps of this length as fit into it, rounded up.

    Raises
    ------
    InputError
        There is no such guarantee, or the length of a step is unknown.
    """
    text = settings.privacy.guarantee
    kind, _, length = text.partition(":")
    if kind == "event":
        raise InputError(
            "the event level protects no state against the releases of other steps, and is printed for comparison only: take "
            "privacy.guarantee = temporal, user, user:W or window:W"
        )
    if kind not in {"user", "window"} or not length or length.isdecimal():
        return Guarantee.of(text)
    from temporaldp.data.tables.grid import spacing

    microseconds, unit = spacing(length)
    known = None if step is None else STEP_LENGTH.fullmatch(step)
    if unit is None or known is None or known[2] != "seconds":
        raise InputError(
            f"expected a number of steps, such as {kind}:7, got {text!r}, and the length of a step is {step or 'unknown'}"
        )
    return Guarantee(kind, math.ceil(microseconds / 1e6 / float(known[1]) * (1.0 - 1e-12)))  # type: ignore[arg-type]


def step_of(inputs: Inputs) -> str | None:
    """Length of one step of the history or, without one, of the data."""
    known, data = inputs.provenance.step, inputs.trajectories
    return known if known is not None or data is None else data.step


def planned(settings: Settings, inputs: Inputs) -> Plan:
    """Plan budgets, or noise if a delta is set, that satisfy the level.

    Raises
    ------
    InputError
        No alpha is set, or the settings contradict each other.
    PlanError
        No plan satisfies it.
    """
    privacy = settings.privacy
    checked_draw_every(settings.plan.draw_every, privacy.horizon, privacy.delta or 0.0)
    if privacy.alpha is None:
        raise InputError("expected a level: --alpha A, or privacy.alpha in the project file")
    kept = guarantee_of(settings, step_of(inputs))
    made: Plan
    if kept.is_temporal and not _knows_correlation(settings):
        raise InputError(
            "the temporal level needs a correlation: give a history (--history FILE), or another guarantee"
        )
    if not kept.is_temporal:
        made = plan_guarantee(
            kept,
            privacy.alpha,
            privacy.horizon,
            delta=privacy.delta or 0.0,
            noise=privacy.noise,
            draw_every=settings.plan.draw_every,
        )
        return replace(made, states=inputs.states, provenance=replace(UNSTATED, step=step_of(inputs)))
    if privacy.delta is not None:
        made = plan_noise(
            inputs.everyone,
            alpha=privacy.alpha,
            noise=privacy.noise or "gaussian",
            horizon=privacy.horizon,
            accounting=ApproximateDP(privacy.delta),
            equal=settings.plan.method != "optimal",
        )
    else:
        made = plan_budget(inputs.everyone, method=settings.plan.method, **budget_terms(settings))
    return replace(made, provenance=inputs.provenance)


def planning_inputs(settings: Settings) -> Inputs:
    """The data and the correlation as far as the settings have them; an adversary without one where they have none."""
    if _knows_correlation(settings):
        return gather(settings)
    return Inputs((Adversary(),), UNSTATED, None)


def _knows_correlation(settings: Settings) -> bool:
    return settings.has_correlation or settings.traces.path is not None or settings.traces.transitions is not None


def can_plan(settings: Settings) -> bool:
    """Whether the guarantee in use needs no correlation, or one is given."""
    return settings.privacy.guarantee != "temporal" or _knows_correlation(settings)


def compared(settings: Settings, inputs: Inputs, made: Plan | None, levels: Sequence[float]) -> GuaranteeComparison:
    """Compare guarantees at some levels, with the plan in use; without a horizon, also those of a window and of epochs.

    The window is that of the settings, else a day of steps, or a week of days; the epoch that of the settings, else a year.
    """
    step = step_of(inputs)
    kept = guarantee_of(settings, step)
    windows, epochs = ([kept.steps] if kept.steps and kept.kind == kind else [] for kind in ("window", "user"))
    if kept.steps is None and settings.privacy.horizon is None:
        windows, epochs = periods_of_streams(step)
    terms = _public_terms(settings, inputs)
    n = len(inputs.states or settings.traces.states or ()) or None
    delta = settings.privacy.delta or USUAL_DELTA
    found = compare_guarantees(
        alphas=levels, plan=made, windows=windows, epochs=epochs, n_states=n, delta=delta, **terms
    )
    away, past = settings.traces.absent, None if settings.history.path is None else inputs.learnt_from
    if past is not None and away in past.states and found.n_people is not None:  # counts are of those who are present
        counts = past.histogram().sum(axis=0)
        present = 1.0 - counts[past.states.index(away)] / counts.sum()
        found = replace(found, n_people=max(round(found.n_people * present), 1), n_states=len(past.states) - 1)
    return replace(found, observers=observers(inputs.provenance))


def periods_of_streams(step: str | None) -> tuple[list[int], list[int]]:
    """Steps of the windows and of the epochs that streams are compared by: a day, or seven steps; and a year, if known."""
    a_day, a_year = (
        None if step is None else steps_between(step, "2024-01-01", end) for end in ("2024-01-02", "2025-01-01")
    )
    windows = [7 if a_day is None or a_day < 2.0 else math.ceil(a_day)]
    return windows, [] if a_year is None or a_year < 2.0 else [math.ceil(a_year)]


def level_of_error(settings: Settings, inputs: Inputs, largest: float) -> float:
    """The level at which counts under the guarantee in use have this error, in people."""
    kept, delta = guarantee_of(settings, step_of(inputs)), settings.privacy.delta or 0.0
    terms = _public_terms(settings, inputs)
    return level_for_error(largest, guarantee=kept, delta=delta, draw_every=settings.plan.draw_every, **terms)


def _public_terms(settings: Settings, inputs: Inputs) -> dict[str, Any]:
    """What guarantees are compared by: adversaries, public numbers, and the public correlation where there is one."""
    privacy, n_people, public = settings.privacy, settings.release.population, None
    if n_people is None and inputs.trajectories is not None:
        n_people = inputs.trajectories.n_observed
    if settings.has_other_source:
        with suppress(InputError):  # one that cannot smooth counts
            public = public_part(inputs, same_start=settings.release.same_start)
    return {
        "adversary": inputs.everyone if _knows_correlation(settings) else None,
        "horizon": privacy.horizon,
        "n_people": n_people,
        "correlation": public,
        "past_counts": None if public is None else past_counts(inputs.learnt_from, public.states),
        "noise": privacy.noise or "gaussian",
        "accounting": privacy.accounting,
    }


def past_counts(history: Traces | None, states: Sequence[str]) -> IntArray | None:
    """How many people of a history are in each of these states at each step; None where that is unknown."""
    if history is None or not history.has_histogram or set(history.states) != set(states):
        return None
    return history.histogram()[:, [history.states.index(state) for state in states]]


def public_part(inputs: Inputs, *, same_start: bool) -> PublicCorrelation:
    """Return the one public correlation of the inputs, with the first histogram of the history if it begins alike."""
    if inputs.provenance.per_user:
        raise InputError("counts are smoothed by one correlation for all users: leave out correlation.per_user")
    initial = None
    if same_start:
        if inputs.learnt_from is None:
            raise InputError(
                "release.same_start means that the release begins as a history does: give --history FILE too"
            )
        initial = inputs.learnt_from.histogram()[0]
    return PublicCorrelation.of(inputs.smoothing, inputs.provenance, initial=initial)


def budget_terms(settings: Settings) -> dict[str, Any]:
    """Return the keyword arguments that all planning methods of budgets share."""
    privacy, every = settings.privacy, settings.plan.draw_every
    return {
        "alpha": privacy.alpha,
        "horizon": privacy.horizon,
        "objective": settings.plan.objective,
        "accounting": privacy.accounting,
        **({} if every == 1 else {"weights": drawn_steps(privacy.horizon or 1, every)}),
    }


def beaten_by_even_split(alpha: float, n_drawn: int, delta: float, kind: Noise, noise: float) -> str | None:
    """Warning where equal noise at the user level, drawn at as many steps, is less than this of the temporal level."""
    split = plan_guarantee("user", alpha, n_drawn, delta=delta, noise=kind if delta else None)
    return even_split(noise, split.mean_absolute_noise)


def kept_plan(ledger: Ledger) -> Plan | None:
    """The plan that a release made from its settings, as its ledger keeps it."""
    kept = [event.details for event in ledger.events if event.kind == "plan"] if len(ledger) else []
    return plan_from(kept[-1]) if kept else None


def given_plan(settings: Settings) -> Plan | None:
    """Load the plan that the settings name, or that their ledger keeps; the settings may not contradict it."""
    place: object = settings.release.plan
    found: Plan | None = None
    if settings.release.plan is not None:
        found = load_plan(settings.release.plan)
    elif settings.release.ledger is not None and configuration_at(settings.release.ledger) is not None:
        place = settings.release.ledger
        with Ledger(settings.release.ledger) as ledger:
            found = kept_plan(ledger)
    if found is None:
        return None
    privacy = settings.privacy
    if "draw_every" in settings.plan.model_fields_set:
        wanted = drawn_steps(len(found.scales), settings.plan.draw_every) > 0.0
        is_other = not np.array_equal(np.isfinite(found.scales), wanted)
        if is_other or (found.horizon is None and settings.plan.draw_every > 1):
            raise InputError(
                f"{place} is drawn at {found.n_drawn or 'all'} of {found.horizon or 'all'} steps, others than those of "
                f"plan.draw_every = {settings.plan.draw_every}: leave out one of them, or plan again"
            )
    terms = [("alpha", found.alpha), ("horizon", found.horizon), ("delta", found.delta or None)]
    for key, value in terms:
        asked = getattr(privacy, key)
        if asked is not None and asked != value:
            raise InputError(
                f"{place} has {key} {value}, but privacy.{key} is {asked}: leave out one of them, or plan again"
            )
    asked = guarantee_of(settings, found.provenance.step)
    if "guarantee" in privacy.model_fields_set and asked != found.guarantee:
        raise InputError(
            f"{place} has the guarantee {found.guarantee}, but privacy.guarantee is {asked}: leave out one of them, or plan "
            "again"
        )
    return found
