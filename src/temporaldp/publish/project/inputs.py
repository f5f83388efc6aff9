"""From settings to traces and adversaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from temporaldp.base.errors import EstimationError, InputError, StateError
from temporaldp.base.names import in_order, listed
from temporaldp.base.values import assign, refuse
from temporaldp.core.accounting import LeakageSeries, temporal_leakage
from temporaldp.core.correlation import Adversary, IntervalMatrix, Provenance, sticky
from temporaldp.core.correlation.clock import Clock
from temporaldp.core.correlation.provenance import together
from temporaldp.data.files import load_correlation, load_matrix, read_counts, read_traces
from temporaldp.data.files.traces import absence_of
from temporaldp.data.tables import CountedTraces, Traces, estimate_models, estimate_periodic
from temporaldp.data.tables.estimation import drifts
from temporaldp.data.tables.models import own_correlations
from temporaldp.data.tables.moments import phase_at
from temporaldp.data.tables.traces import SharedPeople, scarcity, shared_people
from temporaldp.lab.studies import LeakageUncertainty, leakage_uncertainty
from temporaldp.publish.project.estimates import (
    AVERAGED,
    OF_EACH_STEP,
    assuming,
    checked,
    given_matrices,
    is_elsewhere,
    learnt_of,
    over_horizon,
    provenance_of,
)

if TYPE_CHECKING:
    from temporaldp.data.tables.trace_table import TraceTable
    from temporaldp.publish.project.settings import CorrelationSettings, Settings, TableSettings, TracesSettings


Tables: TypeAlias = "tuple[TraceTable | None, Any]"
"""A history and the protected traces, as far as they were read."""

FEW_PEOPLE = 20
"""Fewer people have no most predictable 5 %."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Data and adversaries of an accounting, a plan, a release or a report.

    Parameters
    ----------
    adversaries : tuple of Adversary
        One for all users, one per user, or one per model of the provenance.
    provenance : Provenance
        Where the correlation comes from.
    trajectories : Traces or None
        The protected traces.
    scarcity : str, optional
        The warning where too few transitions were observed.
    learnt_from : Traces, optional
        The traces that the correlation was estimated from.
    stays : tuple of float, optional
        The range by which the correlation was stated.
    shared : SharedPeople, optional
        How many people of a history are protected.
    tables : Tables
        Those that were read, to be read once.
    """

    adversaries: tuple[Adversary, ...]
    provenance: Provenance
    trajectories: Traces | None
    scarcity: str | None = None
    learnt_from: Traces | None = None
    stays: tuple[float, float] | None = None
    shared: SharedPeople | None = None
    tables: Tables = (None, None)

    def __post_init__(self) -> None:
        assign(self, provenance=self.provenance.with_directions_of(self.adversaries))

    @property
    def everyone(self) -> Adversary | tuple[Adversary, ...] | dict[str, Adversary]:
        """The one adversary, one per user, or one per model by its name."""
        if len(self.adversaries) == 1:
            return self.adversaries[0]
        models = self.provenance.models
        is_named = len(models) == len(self.adversaries)  # not where another correlation was adopted
        return dict(zip(models, self.adversaries, strict=True)) if is_named else self.adversaries

    @property
    def smoothing(self) -> Adversary:
        """The adversary whose correlation smooths counts: of several models, the first one of known matrices of states."""
        simple = (one for one in self.adversaries if not one.is_lifted and not one.is_uncertain)
        return next(simple, self.adversaries[0].shown)

    @property
    def states(self) -> tuple[str, ...] | None:
        """States of the correlation, or else of the data."""
        known = self.adversaries[0].shown.states
        return known if known is not None or self.trajectories is None else self.trajectories.states

    def n_steps(self, horizon: int | None) -> int:
        """Return the horizon, or the number of steps of the data if no horizon is given."""
        if horizon is None and self.trajectories is None:
            raise InputError("the number of steps is unknown: give TRACES, or a horizon (--horizon T)")
        is_periodic = any(one.period is not None for one in self.adversaries)
        if horizon is None and is_periodic and (missing := holes(self.trajectories)):
            raise InputError(
                f"expected every step of the data, because each has its own phase of the clock (correlation.period), but times "
                f"are missing between {missing[0][0]!r} and {missing[0][1]!r}: give the number of all steps from the first to "
                "the last (--horizon T), or put events on a grid (--set traces.every=15min --set traces.fill=last)"
            )
        return horizon if horizon is not None else self.trajectories.n_times  # type: ignore[union-attr]

    def times(self, n_steps: int) -> tuple[str, ...]:
        """Return the labels of the steps: those of the data if their number fits, else 1, 2, ..."""
        if self.trajectories is not None and self.trajectories.n_times == n_steps:
            return self.trajectories.times
        return tuple(str(step + 1) for step in range(n_steps))


def gather(
    settings: Settings,
    states: tuple[str, ...] | None = None,
    begun_at: str | None = None,
    tables: Tables = (None, None),
) -> Inputs:
    """Read the data, if there are any, and read or estimate the correlation; `states` are a plan's, in its order.

    A release that has steps already began at the time `begun_at`, by default at the first time of the data. `tables` that were
    read before are not read again.

    Raises
    ------
    InputError
        The settings contradict each other, or do not determine a correlation.
    """
    traces, known = settings.traces, settings.correlation
    if traces.is_counted:
        return _counted(settings, states)
    _require_one_source(settings)
    if known.stays is not None:
        return _stated(traces, known.stays, states)
    if known.file is not None:
        return _from_file(traces, known.file, states)
    if known.backward is not None or known.forward is not None:
        adversary = _given(known, states)
        files = ", ".join(path.name for path in (known.backward, known.forward) if path is not None)
        return Inputs((adversary,), checked(given_matrices(files), adversary), _optional(traces, adversary.states))
    if traces.path is None and settings.history.path is None:
        raise InputError(
            "no correlation is given: expected TRACES or a history (--history FILE) to estimate it from, a file "
            "(--set correlation.file=FILE), matrices (--set correlation.backward=FILE, --set correlation.forward=FILE), or a "
            "range (--set correlation.stays=0.7:0.95)"
        )
    if settings.history.path is None:
        assert traces.path is not None
        everything = read(traces, states)
        return _estimated(everything, settings, everything, None)
    return _from_history(settings, states, begun_at, tables)


def _from_history(settings: Settings, states: tuple[str, ...] | None, begun_at: str | None, tables: Tables) -> Inputs:
    """Correlation estimated from other traces than those that are protected."""
    history, traces, known = settings.history_table, settings.traces, settings.correlation
    assert history.path is not None
    past = tables[0] or read(history, states)
    protected = tables[1] or _optional(traces.with_data(), past.states)
    data = None if traces.path is None else protected
    shared = None if protected is None else shared_people(past, protected)
    if data is not None and None not in (past.step, data.step) and past.step != data.step:
        raise InputError(
            f"one step of {history.path.name} is {past.step}, one step of the release is {data.step}: expected a history with "
            "steps of the same length, because a correlation depends on it"
        )
    if known.per_user and data is not None and (unknown := in_order(set(data.users) - set(past.users))):
        raise InputError(
            f"correlation.per_user needs a history of every user in TRACES, but {history.path.name} has no user "
            f"{listed(unknown)}: leave out correlation.per_user, or give a longer history"
        )
    can_be_absent = known.prior > 0.0 or known.confidence is not None
    if (
        traces.absent is not None
        and not can_be_absent
        and traces.absent in past.states
        and not past.histogram()[:, past.states.index(traces.absent)].any()
    ):
        raise InputError(
            f"no user in {history.path.name} is ever {traces.absent!r}: every user has a row at every time, so "
            "transitions to and from absence cannot be estimated. Give a history with absences, or a prior "
            "(--set correlation.prior=1)"
        )
    return replace(_estimated(past, settings, data, shared, begun_at), shared=shared, tables=(past, protected))


def _require_one_source(settings: Settings) -> None:
    """Refuse settings that contradict each other."""
    known = settings.correlation
    given = [known.backward is not None or known.forward is not None, known.file is not None, known.stays is not None]
    refuse(
        (
            sum(given) > 1,
            InputError(
                "expected one of correlation.backward and correlation.forward, correlation.file, and correlation.stays"
            ),
        ),
        (
            any(given) and (settings.history.path is not None or known.is_estimated),
            InputError(
                "correlation.backward, .forward, .file and .stays replace estimation: leave out the history and "
                "correlation.models, .prior, .directions, .per_user, .confidence, .period and .phase"
            ),
        ),
        (
            known.phase is not None and known.period is None,
            InputError("correlation.phase is a step of a clock: set correlation.period too"),
        ),
        (
            known.confidence is not None and (known.prior > 0.0 or known.period is not None),
            InputError(
                "correlation.confidence covers every prior and every time: leave out correlation.prior and correlation.period"
            ),
        ),
        (
            bool(known.models) and (known.per_user or known.confidence is not None or known.directions != "both"),
            InputError(
                "correlation.models are about all users and both directions: leave out correlation.per_user, .directions and "
                ".confidence, of which the models are 'per person' and 'confidence 0.95'"
            ),
        ),
        (
            bool(known.models)
            and (known.period is not None) != any(name.startswith("time of day") for name in known.models),
            InputError("the model 'time of day' and correlation.period need each other: give both, or leave out both"),
        ),
        (
            known.per_user and known.period is not None,
            InputError("correlation.period estimates one clock for all users: leave out correlation.per_user"),
        ),
    )


def _estimated(
    past: Traces, settings: Settings, data: Traces | None, shared: SharedPeople | None, begun_at: str | None = None
) -> Inputs:
    """Estimate one matrix per direction, or one for each phase of a clock."""
    known, provenance = settings.correlation, replace(provenance_of(settings, shared), step=past.step)
    if known.period is None:
        return _of_models(past, settings, data, provenance, None)
    clock, phase = Clock(past.times[0], past.step, known.period), known.phase
    if begun_at is None and data is not None and data is not past:
        begun_at = data.times[0]
    if phase is None and begun_at is not None:
        phase = phase_at(clock, begun_at)
        if phase is None:
            raise InputError(
                f"the phase of the first step cannot be computed: the distance of {begun_at!r} from the history's first time, "
                f"{past.times[0]!r}, is unknown. Write the times of both tables as dates or numbers of one kind (both with a "
                "time zone, or both without one), or give the phase (--set correlation.phase=K)"
            )
    provenance = replace(provenance, clock=replace(clock, phase=phase or 0))
    if known.models:
        return _of_models(past, settings, data, provenance, phase)
    made = estimate_periodic(past, period=known.period, phase=phase, prior=known.prior)
    if known.directions != "both":
        made = Adversary(**{known.directions: getattr(made, known.directions)})
    return Inputs((made,), provenance, data, scarcity(past), learnt_from=past)


def _stated(traces: TracesSettings, stays: tuple[float, float], states: tuple[str, ...] | None) -> Inputs:
    """A range of correlations; the data or traces.states name the states."""
    data = _optional(traces, states)
    named = data.states if data is not None else states or traces.states
    if named is None:
        raise InputError("correlation.stays needs the states: give TRACES, or --set traces.states=A,B,C")
    matrix = sticky(stays=stays, states=named)
    return Inputs((Adversary(matrix, matrix),), matrix.provenance, data, stays=stays)


def _from_file(traces: TracesSettings, path: Path, states: tuple[str, ...] | None) -> Inputs:
    """Correlation of a file, in the order of a plan's states."""
    loaded = load_correlation(path)
    if states is not None and loaded.states is not None and set(states) == set(loaded.states):
        names = states
        loaded = Adversary(*(one.mapped(lambda matrix: matrix.reordered(names)) for one in loaded.directions))
    provenance = together(matrix.provenance for matrix in loaded.matrices if isinstance(matrix, IntervalMatrix))
    provenance = checked(provenance if provenance.sentence else given_matrices(path.name), loaded)
    return Inputs((loaded,), provenance, _optional(traces, loaded.states))


def people_of(inputs: Inputs, leakage: LeakageSeries) -> tuple[float, float, int] | None:
    """Leakage that 95 % of the people of the history do not exceed, and the largest one, by the matrices of each; their number.

    Of many people, some at equal distances in the history are compared, which the largest one is of.

    None for a delta, and where there are few people or so many states that their leakage would take minutes.
    """
    if inputs.learnt_from is None or leakage.delta:
        return None
    with suppress(EstimationError):  # of all people together, which the rows of each are tied to
        people = own_correlations(inputs.learnt_from, prior=inputs.provenance.prior)
        if len(people) >= FEW_PEOPLE:
            found = temporal_leakage(people, leakage.epsilons)
            each = np.sort([one.worst for one in found.members])
            return float(each[math.ceil(0.95 * len(each)) - 1]), float(each[-1]), len(each)
    return None


def uncertainty_of(inputs: Inputs, known: CorrelationSettings, leakage: LeakageSeries) -> LeakageUncertainty | None:
    """Return the distribution of plausible leakage, where a confidence is given; None elsewhere."""
    if known.confidence is None or known.per_user or inputs.learnt_from is None or leakage.delta:
        return None
    return leakage_uncertainty(
        inputs.learnt_from,
        epsilons=leakage.epsilons,
        confidence=known.confidence,
        stationary=inputs.adversaries[0].n_steps is None,
    )


def read(table: TableSettings, states: Sequence[str] | None = None) -> TraceTable:
    """Read traces by their settings; `states` are those of a correlation or plan, unless the settings list the same.

    Raises
    ------
    StateError
        The traces have another state, such as an absence, which the correlation or plan does not cover.
    """
    found = read_traces(
        table.path,
        layout=table.layout,
        user=table.user,
        time=table.time,
        state=table.state,
        by=table.by,
        end=table.end,
        end_state=table.end_state,
        states=_domain(table, states),
        states_from=table.states_from,
        other=table.other,
        missing=table.missing,
        time_format=table.time_format,
        decimal=table.decimal,
        delimiter=table.delimiter,
        encoding=table.encoding,
        gaps=table.gaps,
        sort=table.sort,
        ties=table.ties,
        absent=table.absent,
        every=table.every,
        fill=table.fill,
        fill_limit=table.fill_limit,
        timezone=table.timezone,
        where=table.where,
        memory=table.memory,
    )
    if states is not None and set(found.states) != set(states):
        raise StateError(
            f"the traces have the states {listed(found.states)}, but the correlation or plan has {listed(states)}, "
            "which does not cover the others. Estimate it from a history with these states, or leave out traces.absent"
        )
    return found


def read_data(traces: TracesSettings, states: Sequence[str] | None = None, *, correlation: bool = False) -> Traces:
    """Read the protected traces, or counts in place of them; with `correlation`, counts of transitions too.

    Raises
    ------
    InputError
        Both or neither are given.
    """
    if not traces.is_counted:
        if traces.path is None:
            raise InputError(
                "expected TRACES, or traces.path in the project file (or counts: --set traces.counts=FILE, "
                "--set traces.transitions=FILE)"
            )
        return read(traces, states)
    if not correlation and traces.counts is None:
        raise InputError("transitions are not counts to publish: give a table with --set traces.counts=FILE")
    return read_counts(
        transitions=traces.transitions if correlation else None,
        counts=traces.counts,
        states=_domain(traces, states),
        by=traces.by,
        where=traces.where,
        delimiter=traces.delimiter,
    )


def _counted(settings: Settings, states: tuple[str, ...] | None) -> Inputs:
    """Counts in place of traces: the correlation from their transitions, a history or matrices."""
    traces, known = settings.traces, settings.correlation
    if traces.transitions is None:
        without = settings.model_copy(update={"traces": traces.model_copy(update={"counts": None})})
        found = gather(without, states)
        return replace(found, trajectories=read_data(traces, found.states))
    if settings.has_other_source:
        raise InputError("traces.transitions determine the correlation: leave out the history and other correlations")
    if known.period is not None or known.models:
        raise InputError(
            "correlation.period and correlation.models need the states of each person over time: give TRACES, counts of "
            "transitions have none"
        )
    data = read_data(traces, states, correlation=True)
    assert isinstance(data, CountedTraces)
    made = learnt_of(data, settings)
    provenance = replace(provenance_of(settings, None), step=data.step)
    found = Inputs(made, assuming(provenance, made), data, scarcity(data))
    return found if data.has_histogram else replace(found, trajectories=None)


def _domain(table: TableSettings, states: Sequence[str] | None) -> Sequence[str] | None:
    """The public list of states: that of the settings, or of a correlation or plan, which must be the same."""
    away = absence_of(table.absent, table.fill, table.fill_limit, table.end, table.end_state)
    unlisted = {away, table.other}  # are states, listed or not
    if table.states is not None and states is not None and {*table.states} - unlisted != {*states} - unlisted:
        raise StateError(
            f"traces.states lists {', '.join(table.states)}, but the correlation or plan has {', '.join(states)}"
        )
    return states or table.states


def absences(data: Traces | None) -> str | None:
    """Return the warning where a user is not observed at every step; None where every user is."""
    if data is None or data.absence is not None or int(data.histogram().sum()) == data.n_users * data.n_times:
        return None
    return (
        "some people are not observed at every step. How many are observed when is treated as public and is not protected; "
        "to protect it, give those who are absent a state of their own (--set traces.absent=NAME)"
    )


def holes(data: Traces | None) -> tuple[tuple[str, str], ...]:
    """Return consecutive times of the data that are more than one step apart."""
    if data is None:
        return ()
    return tuple((data.times[k], data.times[k + 1]) for k in np.flatnonzero(~data.consecutive))


def hole_sentence(data: Traces | None) -> str | None:
    """Return the warning where times are missing; None where none is."""
    found = holes(data)
    if data is None or not found:
        return None
    named = ", ".join(f"between {one!r} and {other!r}" for one, other in found[:3])
    more = "" if len(found) <= 3 else f", and {len(found) - 3} more times"
    return (
        f"times are missing {named}{more}: one step is {data.step or 1}. The audit treats such times as neighbours, although "
        "states so far apart are mostly less correlated; steps that were released in between are not counted "
        "(--horizon counts them)"
    )


def _optional(traces: TracesSettings, states: Sequence[str] | None) -> TraceTable | None:
    return None if traces.path is None else read(traces, states)


def _given(known: CorrelationSettings, states: tuple[str, ...] | None) -> Adversary:
    """The adversary of given matrices, their states in one order: that of a plan, or of the first matrix."""
    matrices = [None if path is None else load_matrix(path) for path in (known.backward, known.forward)]
    order = states or next(matrix.states for matrix in matrices if matrix is not None)
    return Adversary(
        *(m.reordered(order) if m is not None and set(m.states) == set(order) else m for m in matrices),
    )


def _of_models(
    past: Traces, settings: Settings, data: Traces | None, provenance: Provenance, phase: int | None
) -> Inputs:
    """One adversary for each model of the settings; without models, of first order."""
    known = settings.correlation
    several = {}
    if known.models:
        stationary = is_elsewhere(settings)
        several = estimate_models(
            past, known.models, prior=known.prior, period=known.period, phase=phase, stationary=stationary
        )
        provenance = replace(provenance, models=tuple(several))
    learnt = tuple(over_horizon(one, settings.privacy.horizon) for one in several.values()) or learnt_of(past, settings)
    if known.confidence is None and not known.per_user and drifts(past):
        provenance = replace(
            provenance, sentence=f"{provenance.sentence} {AVERAGED}{'' if known.models else OF_EACH_STEP}"
        )
    return Inputs(learnt, assuming(provenance, learnt), data, scarcity(past), learnt_from=past)
