"""`report --ledger`: the content of a report on a release, from its ledger."""

from __future__ import annotations

from dataclasses import replace

from temporaldp import InputError, Ledger, LedgerError, ReleasedHistograms, temporal_leakage
from temporaldp.accounting import TemporalAccountant
from temporaldp.accounting.accountant import account_of
from temporaldp.accounting.methods import accounting_from
from temporaldp.accounting.paper.method import PaperBound
from temporaldp.planning import Plan
from temporaldp.planning.histogram_noise import laplace_scales
from temporaldp.project.inputs import Inputs
from temporaldp.project.recipe import recipes_of
from temporaldp.release.adopting import accountant_of
from temporaldp.release.kept import plan_digest
from temporaldp.release.ledger import ADOPT
from temporaldp.release.outputs import counts_of
from temporaldp.release.renewal import Renewal, renewal_of
from temporaldp.release.shared_account import TableSpent, tables_of
from temporaldp.report import EpochLeakage, Evidence, Provenance


def evidence_of(ledger: Ledger, plan: Plan | None, inputs: Inputs | None, *, name_users: bool) -> Evidence:
    """Return the content of a report on a ledger.

    The matrices of a release with an accountant are stored beside the ledger. Otherwise, or if other matrices are given,
    `inputs` has the adversaries.
    """
    if not len(ledger):
        raise InputError(f"{ledger.place} has no steps yet, so there is nothing to report on")
    known = ledger.configuration
    if plan is not None and ledger.plan != plan_digest(plan):
        raise InputError(f"{ledger.place} was not made with this plan: give the one that it was released with")
    if "noise" in known and plan is None:
        raise InputError(
            f"{ledger.place} was released with noise at a delta: give its plan too (--plan), which has the scales"
        )
    if plan is not None and plan.delta:
        if inputs is None:
            raise InputError(
                "a noise plan's ledger keeps no correlation: give --history, or --set correlation.backward=FILE"
            )
        leakage = plan.leakage_to(inputs.everyone, len(ledger))
    elif inputs is None:
        accountant = accountant_of(ledger)
        assert accountant is not None
        inputs, leakage = _kept(ledger, accountant), accountant.leakage()
    else:
        leakage = temporal_leakage(inputs.everyone, ledger.epsilons, accounting=accounting_from(known["accounting"]))
    paper = None
    if leakage.accounting.is_exact:
        paper = temporal_leakage(inputs.everyone, ledger.epsilons, accounting=PaperBound())
    renewal = renewal_of(ledger)
    level = float(known["alpha"]) if renewal is None else renewal.promise
    followed = plan if plan is not None and plan.delta else None
    return Evidence(
        adversaries=inputs.adversaries,
        leakage=leakage,
        provenance=inputs.provenance,
        times=ledger.times,
        plan=followed,
        held=level if followed is None else None,
        released=released_in(ledger),
        name_users=name_users,
        paper=paper,
        tables=tuple((table, _alone(table, inputs)) for table in tables_of(ledger)),
        renewal=renewal,
        epochs=() if renewal is None else _epochs(ledger, renewal, inputs),
        recipes=recipes_of(ledger),
    )


def _epochs(ledger: Ledger, renewal: Renewal, inputs: Inputs) -> tuple[EpochLeakage, ...]:
    """Leakage of each epoch by itself; most of them spend the same under the same correlation."""
    epsilons, times = ledger.epsilons, ledger.times
    method = accounting_from(ledger.configuration["accounting"])
    changes = [event.step for event in ledger.events if event.kind == ADOPT]
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


def _alone(table: TableSpent, inputs: Inputs) -> float:
    """Leakage of one table of an account by itself; 0 if nothing was published."""
    return temporal_leakage(inputs.everyone, table.epsilons).worst if table.epsilons.any() else 0.0


def released_in(ledger: Ledger) -> ReleasedHistograms | None:
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
    )


def _kept(ledger: Ledger, accountant: TemporalAccountant) -> Inputs:
    """The adversaries that the accountant counts, with their matrices of every step, and where they come from."""
    users = account_of(accountant).adversaries_until(len(ledger)).users
    changes = [event.step + 1 for event in ledger.events if event.kind == ADOPT]
    if not users:
        raise LedgerError(f"{ledger.place} has an accountant without users")
    kept = ", ".join(["kept beside the ledger", *(f"another one from step {step} on" for step in changes)])
    noted = [(step + 1, recipe.provenance) for step, recipe in recipes_of(ledger)]
    known = {step: one for step, one in noted if step == 1 or step in changes}
    provenance = Provenance("matrices", name=kept)
    if known and len(known) == 1 + len(changes):
        sentences = [f"From step {step} on: {one.sentence}" for step, one in known.items()]
        first = known[min(known)]
        text = " ".join(sentences) if changes else ""
        provenance = replace(first, text=text or first.text, epsilon=sum(one.epsilon for one in known.values()))
    per_user = len(account_of(accountant).population) > 1 + len(changes)
    return Inputs(users, replace(provenance, per_user=per_user), None)
