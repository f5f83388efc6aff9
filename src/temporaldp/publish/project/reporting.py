"""The content of a report, by its settings: on a ledger, a plan, or a release that spends an epsilon at every step."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from temporaldp.base.errors import InputError
from temporaldp.base.names import require_same_states
from temporaldp.base.values import REPLACE_PERSON, refuse
from temporaldp.core.accounting import (
    LeakageSeries,
    LeakageSupremum,
    TemporalAccountant,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.core.accounting.methods import accounting_from
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.provenance import UNSTATED, together
from temporaldp.core.planning import Guarantee, Plan
from temporaldp.core.planning.every_correlation import guaranteed_leakage
from temporaldp.core.planning.histogram_noise import laplace_scales
from temporaldp.data.counts import ReleasedHistograms, load_released
from temporaldp.data.files import load_plan
from temporaldp.publish.project.estimates import given_matrices
from temporaldp.publish.project.inputs import Inputs, gather, people_of, uncertainty_of
from temporaldp.publish.project.planning import given_plan, kept_plan
from temporaldp.publish.project.recipe import recipe_of, recipes_of
from temporaldp.publish.project.release import published_in, without_traces
from temporaldp.publish.release import Ledger
from temporaldp.publish.release.outputs import counts_of
from temporaldp.publish.release.renewal import Renewal, renewal_of
from temporaldp.publish.release.resuming import accountant_of, plan_digest
from temporaldp.publish.release.shared_account import tables_of
from temporaldp.publish.report import EpochLeakage, Publication, Report

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import ReportSettings, Settings


def _accounted(
    inputs: Inputs,
    method: Any,
    *,
    leakage: Callable[..., LeakageSeries],
    supremum: Callable[..., LeakageSupremum | None],
    **content: Any,
) -> Report:
    """Return leakage and supremum by a method, and beside exact numbers the paper's, with more content of a report.

    `leakage` and `supremum` are functions of `accounting`.
    """
    series = leakage(accounting=method)
    looser = series.accounting.looser
    return Report(
        inputs.adversaries,
        series,
        inputs.provenance,
        supremum=supremum(accounting=method),
        people=people_of(inputs, series),
        paper=None if looser is None else leakage(accounting=looser),
        paper_supremum=None if looser is None else supremum(accounting=looser),
        **({"times": inputs.times(len(series))} | content),
    )


def audit_of(inputs: Inputs, release: Any, n_steps: int, method: Any, **content: Any) -> Report:
    """Return the leakage of a release that spends an epsilon, or calls a mechanism, at every step, and its supremum.

    There is none of a correlation that is known for a number of steps only.
    """

    def supremum(**how: Any) -> LeakageSupremum | None:
        is_constant = all(one.n_steps is None for one in inputs.adversaries)
        return leakage_supremum(inputs.everyone, release, **how) if is_constant else None

    return _accounted(
        inputs,
        method,
        leakage=partial(temporal_leakage, inputs.everyone, release, horizon=n_steps),
        supremum=supremum,
        **content,
    )


def _command(asked: ReportSettings) -> str:
    """The command of a report, without the place of the protected traces."""
    shown = [] if asked.released is None else ["--released", asked.released.name]
    return shlex.join(
        ["temporaldp", "report", "TRACES", *shown, *["--set", "report.true_counts=true"] * asked.true_counts]
    )


def _publication(asked: ReportSettings) -> Publication:
    """Who publishes what."""
    return Publication(asked.controller, asked.purpose, asked.contact, asked.period, asked.approval)


def reported(settings: Settings) -> tuple[Report, Inputs | None]:
    """Return the content of a report on the plan, or else on the epsilon of every step, and what was read for it.

    Raises
    ------
    InputError
        The settings contradict each other, the plan, or the published counts.
    """
    asked, privacy = settings.report, settings.privacy
    if asked.true_counts and (settings.traces.path is None or asked.released is None):
        raise InputError("report.true_counts shows TRACES beside --released: give both")
    planned, method = given_plan(settings), privacy.accounting
    states = None if planned is None else planned.states
    if privacy.bound == "paper" and planned is not None and planned.accounting != method:
        raise InputError(
            f"the plan satisfies {planned.level} by another accounting method ({planned.accounting.name}), of which the "
            "paper's bound is not evidence: leave out --bound paper, or plan with --bound paper"
        )
    shown = None if asked.released is None else load_released(asked.released)
    if planned is not None and not planned.guarantee.is_temporal:
        return _without_correlation(settings, planned, shown), None
    inputs = gather(settings, states, None if shown is None else shown.times[0])
    if states is not None and inputs.states is not None:
        require_same_states(states, inputs.states, what="this report's correlation")
    data, given = inputs.trajectories, settings.release.population
    if data is not None and data.absence is not None and given is not None:
        data = data.of_population(given)
    if shown is not None and inputs.states is not None:
        shown = shown.reordered(inputs.states)
    if shown is not None and data is not None and shown.times != data.times:
        raise InputError("the times of the released histograms are not those of TRACES, or are in another order")
    content: dict[str, Any] = {
        "plan": planned,
        "released": shown,
        "true_counts": data.histogram() if asked.true_counts and data is not None else None,
        "n_users": given if data is None else data.n_observed,
        "name_users": asked.name_users,
        "recipes": ((0, recipe_of(_command(asked), settings, inputs.provenance)),),
        "publication": _publication(asked),
    }
    if shown is not None:
        content["times"] = shown.times
    # The steps that are asked for, else those that were released, else all that are planned, else those in the data. A plan
    # counts before the data: steps to come raise the leakage of those that were, and a report must not leave them out.
    ends = None if planned is None else planned.horizon
    if shown is not None:
        ends = len(shown.times)
    n_steps = inputs.n_steps(privacy.horizon or ends)
    if planned is None:
        found = audit_of(inputs, privacy.epsilon, n_steps, method, **content)
    else:
        is_limited = math.isfinite(method.effort) and planned.for_others.is_exact
        found = _accounted(
            inputs,
            None if method.is_exact and not is_limited else method,
            leakage=partial(planned.leakage_to, inputs.everyone, n_steps),
            supremum=partial(planned.supremum_to, inputs.everyone),
            **content,
        )
    return replace(found, uncertainty=uncertainty_of(inputs, settings.correlation, found.leakage)), inputs


def reported_ledger(settings: Settings, identifier: str, *, is_other: bool) -> tuple[Report, Inputs | None]:
    """Return the content of a report on a ledger, or on a release of a service by its identifier, and what was read for it.

    It is against the ledger's own correlation, unless that is not stored or the settings give another one (`is_other`).
    """
    asked, release = settings.report, settings.release
    assert release.ledger is not None
    if asked.true_counts:
        raise InputError("a report on a ledger shows only what was released: leave out report.true_counts")
    with Ledger(release.ledger, identifier) as ledger:
        inputs, states = None, ledger.configuration["states"]
        if settings.has_correlation and (is_other or ledger.configuration["correlations"] is None):
            begun_at = ledger[0].time if len(ledger) else None
            inputs = gather(without_traces(settings), None if states is None else tuple(states), begun_at)
        plan = kept_plan(ledger) if release.plan is None else load_plan(release.plan)
        found = report_of(ledger, plan, inputs, name_users=asked.name_users)
    shown, n_users = published_in(release.output), release.population
    if shown is not None and shown.times == found.times:
        found = replace(found, released=shown)
        if n_users is None and shown.estimates is not None:  # which sum to the public number of people
            n_users = shown.estimates.n_people
    return replace(found, n_users=n_users, publication=_publication(asked)), inputs


def _without_correlation(settings: Settings, planned: Plan, shown: ReleasedHistograms | None) -> Report:
    """A report on a plan whose guarantee needs no correlation: nothing is estimated, and no traces are read."""
    asked, n_steps = settings.report, planned.horizon or settings.privacy.horizon
    if shown is not None:
        n_steps = len(shown.times)
    if n_steps is None:
        raise InputError("the number of steps is unknown: give --released FILE, or a horizon (--horizon T)")
    leakage = guaranteed_leakage(planned.guarantee, planned.releases(n_steps), planned.horizon, planned.accounting)
    return Report(
        (Adversary(),),
        leakage,
        UNSTATED,
        times=tuple(str(step + 1) for step in range(n_steps)) if shown is None else shown.times,
        plan=planned,
        released=shown,
        n_users=settings.release.population,
        recipes=((0, recipe_of("temporaldp report", settings, planned.provenance, is_public=False)),),
        publication=_publication(asked),
        guarantee=planned.guarantee,
    )


def report_of(ledger: Ledger, plan: Plan | None, inputs: Inputs | None, *, name_users: bool) -> Report:
    """Return the content of a report on a ledger.

    The matrices of a release with an accountant are stored beside the ledger. Otherwise, or if other matrices are given,
    `inputs` has the adversaries.
    """
    known, followed = ledger.configuration, plan if plan is not None and plan.delta else None
    kept = Guarantee.of(known.get("guarantee", "temporal"))
    refuse(
        (not len(ledger), InputError(f"{ledger.place} has no steps yet, so there is nothing to report on")),
        (
            known["neighboring_relation"] == REPLACE_PERSON,
            InputError(
                f"{ledger.place} is the ledger of a learned correlation, whose guarantee is about all states of a person: "
                "`temporaldp ledger show` shows it"
            ),
        ),
        (
            plan is not None and ledger.plan != plan_digest(plan),
            InputError(f"{ledger.place} was not made with this plan: give the one that it was released with"),
        ),
        (
            "noise" in known and plan is None,
            InputError(
                f"{ledger.place} was released with noise at a delta: give its plan too (--plan), which has the scales"
            ),
        ),
        (
            followed is not None and inputs is None and kept.is_temporal,
            InputError(
                "a noise plan's ledger keeps no correlation: give --history, or --set correlation.backward=FILE"
            ),
        ),
    )
    if not kept.is_temporal:
        inputs = Inputs((Adversary(),), UNSTATED, None)
        method = accounting_from(known["accounting"])
        spent = ledger.epsilons if followed is None else followed.releases(len(ledger))
        horizon = known.get("horizon") if plan is None else plan.horizon
        leakage = guaranteed_leakage(kept, spent, horizon, method)
    elif inputs is None:
        accountant = accountant_of(ledger)
        inputs, leakage = _kept(ledger, accountant), accountant.leakage()
    elif followed is not None:
        leakage = followed.leakage_to(inputs.everyone, len(ledger))
    else:
        leakage = temporal_leakage(inputs.everyone, ledger.epsilons, accounting=accounting_from(known["accounting"]))
    renewal, looser = renewal_of(ledger), leakage.accounting.looser
    leaked_by = partial(temporal_leakage, inputs.everyone, accounting=accounting_from(known["accounting"]))
    level = float(known["alpha"]) if renewal is None else renewal.promise
    return Report(
        adversaries=inputs.adversaries,
        leakage=leakage,
        provenance=inputs.provenance,
        times=ledger.times,
        plan=followed,
        held=level if followed is None else None,
        released=_released_in(ledger),
        name_users=name_users,
        paper=temporal_leakage(inputs.everyone, ledger.epsilons, accounting=looser)
        if looser is not None and leakage.accounting.is_exact and kept.is_temporal
        else None,
        tables=tuple(
            (table, leaked_by(table.epsilons).worst if table.epsilons.any() else 0.0) for table in tables_of(ledger)
        ),
        renewal=renewal,
        epochs=() if renewal is None else _epochs(ledger, renewal, inputs),
        recipes=recipes_of(ledger),
        head=ledger.head,
        guarantee=kept,
    )


def _epochs(ledger: Ledger, renewal: Renewal, inputs: Inputs) -> tuple[EpochLeakage, ...]:
    """Leakage of each epoch by itself; most of them spend the same under the same correlation."""
    epsilons, times = ledger.epsilons, ledger.times
    method = accounting_from(ledger.configuration["accounting"])
    changes = [event.step for event in ledger.adoptions]
    known: dict[tuple[bytes, tuple[int, ...]], float] = {}
    found = []
    for first, end in renewal.epochs_of(times):
        spent = epsilons[first:end]
        key = spent.tobytes(), tuple(max(step - first, 0) for step in changes if step < end)
        if key not in known:
            people = [user.between(first, len(spent)) for user in inputs.adversaries]
            known[key] = temporal_leakage(people, spent, accounting=method).worst
        found.append(EpochLeakage(times[first], len(spent), known[key]))
    return tuple(found)


def _released_in(ledger: Ledger) -> ReleasedHistograms | None:
    """The counts that were released at all steps; None where some step has none, or something else was released."""
    known = ledger.configuration
    if known["states"] is None or "noise" in known:
        return None
    counts = counts_of([row.output for row in ledger[:]], len(known["states"]))
    if counts is None:
        return None
    return ReleasedHistograms(
        counts,
        ledger.epsilons,
        laplace_scales(ledger.epsilons),
        tuple(known["states"]),
        ledger.times,
        known["alpha"],
        accounting=accounting_from(known["accounting"]),
        guarantee=Guarantee.of(known.get("guarantee", "temporal")),
    )


def _kept(ledger: Ledger, accountant: TemporalAccountant) -> Inputs:
    """The adversaries that the accountant counts, with their matrices of every step, and where they come from."""
    users = accountant.adversaries_until(len(ledger)).users
    changes = [event.step + 1 for event in ledger.adoptions]
    kept = ", ".join(["kept beside the ledger", *(f"another one from step {step} on" for step in changes)])
    noted = {step + 1: recipe.provenances[0] for step, recipe in recipes_of(ledger) if step == 0 or step + 1 in changes}
    provenance = together(noted.values())
    if len(noted) <= len(changes):
        heading = ledger.store.heading()
        stated = json.loads((heading and heading.definition) or "{}")  # of a release of the service
        provenance = replace(given_matrices(kept), models=tuple(stated.get("models") or ()))
    elif changes:
        sentences = [f"From step {step} on: {one.sentence}" for step, one in noted.items()]
        provenance = replace(provenance, sentence=" ".join(sentences))
    if len({one.models for one in noted.values()}) > 1:  # all of them of first order: no other is adopted
        provenance = replace(provenance, source="matrices", models=(), left_out=())
    per_user = len(accountant.population) > max(1, len(provenance.models)) + len(changes)
    return Inputs(users, replace(provenance, per_user=per_user), None)
