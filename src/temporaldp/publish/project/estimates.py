"""Estimates by the settings of a project, and where they come from, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from temporaldp.base.errors import InputError
from temporaldp.base.progress import progressed
from temporaldp.core.correlation import Adversary, Provenance
from temporaldp.data.tables import Traces, estimate_adversaries
from temporaldp.data.tables.estimation import BEGINS_ALIKE, Direction
from temporaldp.data.tables.models import LONGER_MEMORY
from temporaldp.data.tables.traces import SharedPeople

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import CorrelationSettings, Settings

AVERAGED = (
    "The shares of states change over the steps of these traces: matrices, above all backward ones, are averages."
)

OF_EACH_STEP = (
    " correlation.confidence=0.95 with release.same_start=true bounds each step of a release that begins alike."
)


def given_matrices(name: str) -> Provenance:
    """Return the provenance of matrices that were given, by the name of their files."""
    return Provenance("matrices", f"Given as transition matrices ({name}).")


def checked(provenance: Provenance, adversary: Adversary) -> Provenance:
    """The provenance of a correlation, with the warning of an adversary whose directions contradict a stationary chain."""
    why = adversary.contradiction
    warnings = [provenance.warning, f"{why[:1].upper()}{why[1:]}." if why else None]
    return replace(provenance, warning=" ".join(filter(None, warnings)) or None)


def assuming(provenance: Provenance, adversaries: Sequence[Adversary]) -> Provenance:
    """The provenance of an estimate, with what its backward intervals assume, and a warning where the data contradict that."""
    uncertain = next((one for one in adversaries if one.is_uncertain), adversaries[0])
    backward = uncertain.backward
    if not any(matrix.is_set for matrix in backward.matrices):
        return provenance
    assumed = "assume a stationary chain"
    if backward.n_steps is not None:
        assumed = f"are those of each of {backward.n_steps} steps, because the shares of states change; {BEGINS_ALIKE}"
    return checked(replace(provenance, sentence=f"{provenance.sentence} Backward intervals {assumed}."), uncertain)


def is_elsewhere(settings: Settings) -> bool:
    """Whether the release has other steps than the traces that the correlation is estimated from."""
    return settings.history.path is not None and not settings.release.same_start


def learnt_of(data: Traces, settings: Settings) -> tuple[Adversary, ...]:
    """First-order estimates by the settings: one for all users, or one for each."""
    known = settings.correlation
    directions: tuple[Direction, ...] = ("backward", "forward") if known.directions == "both" else (known.directions,)
    found = estimate_adversaries(
        data,
        prior=known.prior,
        per_user=known.per_user,
        directions=directions,
        confidence=known.confidence,
        stationary=is_elsewhere(settings),
    )
    learnt = []
    for each in found:
        learnt.append(over_horizon(each, settings.privacy.horizon))
        for matrix in learnt[-1].matrices:
            matrix.leakage_profile()  # the expensive part, cached by the matrix
        progressed("estimating correlations", len(learnt) / (data.n_users if known.per_user else 1))
    return tuple(learnt)


def over_horizon(adversary: Adversary, horizon: int | None) -> Adversary:
    """The adversary of the first steps alone, where there are intervals of each step of the traces."""
    if horizon is None or adversary.n_steps is None:
        return adversary
    if horizon > adversary.n_steps:
        raise InputError(
            f"the shares of states change over the {adversary.n_steps} steps of the traces, so each step has its own "
            f"backward intervals (correlation.confidence), and those of later steps are unknown, but the horizon is {horizon}: "
            f"take --horizon {adversary.n_steps} or fewer, longer traces, or leave out correlation.confidence or same_start"
        )
    return adversary.between(0, horizon)


def provenance_of(settings: Settings, shared: SharedPeople | None) -> Provenance:
    """Provenance of an estimated correlation; that of a history depends on the people it shares with the protected traces."""
    traces, known, history = settings.traces, settings.correlation, settings.history.path
    learnt_from = history or traces.path or traces.transitions
    assert learnt_from is not None
    if history is not None and (shared is None or not shared.n_observed):
        return estimated_from(f"other traces ({learnt_from.name})", known)
    states = "" if traces.has_domain else " So does the list of states, unless traces.states gives it."
    warning = (
        "The correlation was estimated from the protected traces themselves. The budgets, and everything published about them, "
        f"depend on the protected data outside the guarantee.{states} Before publishing, estimate the correlation from "
        "public or historical data (--history), or with differential privacy (temporaldp learn, then correlation.file)."
    )
    found = estimated_from(f"the protected traces themselves ({learnt_from.name})", known)
    return replace(found, source="protected", warning=warning)


def estimated_from(traces: str, known: CorrelationSettings) -> Provenance:
    """Return the provenance of a correlation that was estimated by its settings from these traces, in words."""
    whose = "one correlation per user" if known.per_user else "one correlation for the whole population"
    how = "by maximum likelihood, without a prior"
    if known.prior:
        how = f"with a Dirichlet prior of {known.prior:g} per cell"
    if known.confidence is not None:
        how = f"as intervals that contain all entries at {100.0 * known.confidence:g} % confidence"
    if known.models:
        whose = f"the model{'s'[: len(known.models) > 1]} {', '.join(known.models)} for the whole population"
        how = f"first-order matrices {how}"
        if any(name.startswith(LONGER_MEMORY) for name in known.models):
            how += ", a longer memory with the weight of one first-order transition for each hidden state"
    if known.period is not None:
        how += f", one matrix for each of {known.period} phases of a clock, tied to that of all phases"
    return Provenance(
        "history",
        f"Estimated from {traces}: {whose}, {how}.",
        prior=known.prior,
        confidence=known.confidence or 0.0,
        per_user=known.per_user,
        left_out=tuple(one for one in known.left_out if not any(name.startswith(one) for name in known.models)),
    )
