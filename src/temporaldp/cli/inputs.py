"""From options to adversaries and data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from temporaldp import (
    Adversary,
    CountedTraces,
    InputError,
    IntervalMatrix,
    LeakageSeries,
    Source,
    StateError,
    Traces,
    estimate_adversaries,
    estimate_periodic,
    load_correlation,
    load_matrix,
    read_counts,
    read_traces,
    sticky,
)
from temporaldp.cli.options import CorrelationOptions, Known, TraceOptions
from temporaldp.cli.render import working
from temporaldp.correlation.coverage import coverage
from temporaldp.correlation.estimation import Direction
from temporaldp.correlation.origin import together
from temporaldp.correlation.states import in_order, listed
from temporaldp.progress import progressed
from temporaldp.report import Provenance
from temporaldp.studies import LeakageUncertainty, leakage_uncertainty

SHOWN_HOLES = 3
"""Holes in the times that are told one by one."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that a subcommand works on.

    `learnt_from` are the traces that the correlation was learnt from, `stays` the range by which it was stated.
    """

    adversaries: tuple[Adversary, ...]
    provenance: Provenance
    trajectories: Traces | None
    step: str | None = None
    scarcity: str | None = None
    learnt_from: Traces | None = None
    stays: tuple[float, float] | None = None

    @property
    def everyone(self) -> Adversary | tuple[Adversary, ...]:
        """The one adversary, which may be nameless, or all of them."""
        return self.adversaries[0] if len(self.adversaries) == 1 else self.adversaries

    @property
    def states(self) -> tuple[str, ...] | None:
        """The states of the correlation, or else of the data."""
        known = self.adversaries[0].states
        return known if known is not None or self.trajectories is None else self.trajectories.states

    @property
    def source(self) -> Source:
        """What a plan says of the correlation."""
        how = self.provenance
        return Source(self.states, self.step, how.sentence, how.warning, how.epsilon)

    def n_steps(self, horizon: int | None) -> int:
        """The horizon if it is given, else the number of steps in the data."""
        if horizon is None and self.trajectories is None:
            raise InputError("without TRACES or --counts the number of steps is unknown; give --horizon T")
        if horizon is not None and horizon < 1:
            raise InputError(f"expected --horizon of at least 1 step, got {horizon}")
        return horizon if horizon is not None else self.trajectories.n_times  # type: ignore[union-attr]

    def times(self, n_steps: int) -> tuple[str, ...]:
        """Labels of the steps: the data's where they fit, else 1, 2, ..."""
        if self.trajectories is not None and self.trajectories.n_times == n_steps:
            return self.trajectories.times
        return tuple(str(step + 1) for step in range(n_steps))


def gather(
    traces: Path | None, reading: TraceOptions, known: CorrelationOptions, states: tuple[str, ...] | None = None
) -> Inputs:
    """Read the data if there are any, and find out what the adversary knows; `states` are a plan's, in its order."""
    given = known.backward is not None or known.forward is not None
    if reading.counted:
        if traces is not None:
            raise InputError("--transitions and --counts take the place of TRACES: give one or the other")
        return _counted(reading, known, states)
    _require_one_source(known, given)
    if known.stays is not None:
        return _stated(traces, reading, known.stays, states)
    if known.correlation is not None:
        return _from_file(traces, reading, known.correlation, states)
    if given:
        adversary = _given(known, states)
        return Inputs((adversary,), _provenance(traces, known, reading), _optional(traces, reading, adversary.states))
    if traces is None and known.history is None:
        raise InputError(
            "expected TRACES, --transitions or --history to learn from, or matrices with --backward and --forward"
        )
    if known.history is None:
        assert traces is not None
        everything = read(traces, reading, states)
        return _made(everything, known, _provenance(traces, known, reading), everything)
    past = read(known.history, reading, states)
    data = _optional(traces, reading, past.states)
    if data is not None and None not in (past.step, data.step) and past.step != data.step:
        raise InputError(
            f"one step of {known.history.name} is {past.step}, one step of the release is {data.step}: a correlation over "
            "another length of time says nothing about it; give a history of the same step"
        )
    if known.per_user and data is not None and (unknown := in_order(set(data.users) - set(past.users))):
        raise InputError(
            f"--per-user needs a history of everybody in TRACES, but {known.history.name} has nobody called "
            f"{listed(unknown)}; leave out --per-user or give a longer history"
        )
    _require_absences(past, reading, known)
    return _made(past, known, _provenance(traces, known, reading), data)


def _require_absences(past: Traces, reading: TraceOptions, known: CorrelationOptions) -> None:
    """Raise `InputError` where absence is a value of which the history tells nothing, nor anything else."""
    if reading.absent is None or known.prior or known.confidence is not None:
        return
    assert known.history is not None
    if not past.histogram()[:, past.states.index(reading.absent)].any():
        raise InputError(
            f"nobody in {known.history.name} is ever {reading.absent!r}: everybody has a row at every time, so that it does "
            "not tell how people come and go. Give a history in which some are absent, or a prior (--prior 1)"
        )


def _require_one_source(known: CorrelationOptions, given: bool) -> None:
    """Options that contradict one another, or say nothing without another one, are refused."""
    ways = [given, known.correlation is not None, known.stays is not None]
    if sum(ways) > 1:
        raise InputError("expected one of --backward and --forward, --correlation, and --stays")
    if any(ways) and known.learning:
        raise InputError(
            "--backward, --forward, --correlation and --stays replace learning: drop --history, --per-user, --prior, --learn, "
            "--confidence, --period and --phase"
        )
    if known.phase is not None and known.period is None:
        raise InputError("--phase says at which step of a clock the release begins: give --period P too")
    if known.confidence is not None and (known.prior or known.period is not None):
        raise InputError("--confidence holds whatever a prior would say, at every time: drop --prior and --period")
    if known.per_user and known.period is not None:
        raise InputError("--period learns one clock for everybody: drop --per-user")


def _made(
    past: Traces,
    known: CorrelationOptions,
    provenance: Provenance,
    data: Traces | None,
) -> Inputs:
    """Inputs learnt from traces: one matrix a direction, or one for each phase of a clock."""
    if known.period is None:
        return Inputs(_learnt(past, known), provenance, data, past.step, scarcity(past), learnt_from=past)
    clock = estimate_periodic(past, period=known.period, phase=known.phase, prior=known.prior)
    if known.learn is not Known.BOTH:
        side = known.learn.value
        clock = Adversary(**{side: getattr(clock, side)})
    return Inputs((clock,), provenance, data, past.step, scarcity(past), learnt_from=past)


def _stated(traces: Path | None, reading: TraceOptions, stays: str, states: tuple[str, ...] | None) -> Inputs:
    """A range of correlations that somebody states; the data or --states name the states."""
    try:
        least, most = (float(part) for part in stays.split(":"))
    except ValueError:
        raise InputError(f"expected --stays FROM:TO, two probabilities such as 0.7:0.95, got {stays!r}") from None
    data = _optional(traces, reading, states)
    named = data.states if data is not None else states
    listing = _names(reading.states)
    if named is None and listing is not None:
        named = tuple(listing)
    if named is None:
        raise InputError("--stays needs the states: give TRACES, or --states A,B,C")
    matrix = sticky(stays=(least, most), states=named)
    provenance = Provenance("stated", text=matrix.origin.sentence)
    return Inputs((Adversary(matrix, matrix),), provenance, data, stays=(least, most))


def _from_file(traces: Path | None, reading: TraceOptions, path: Path, states: tuple[str, ...] | None) -> Inputs:
    """What a file of both directions holds, in the order of a plan's states, with where it comes from."""
    loaded = load_correlation(path)
    if states is not None and loaded.states is not None and set(states) == set(loaded.states):
        names = states
        loaded = Adversary(*(one.mapped(lambda matrix: matrix.reordered(names)) for one in loaded.directions))
    origin = together(matrix.origin for matrix in loaded.matrices if isinstance(matrix, IntervalMatrix))
    provenance = Provenance("matrices", name=path.name)
    if origin is not None:
        source: Literal["learnt", "stated"] = "learnt" if origin.source == "learnt" else "stated"
        provenance = Provenance(source, name=path.name, text=origin.sentence, epsilon=origin.epsilon)
    return Inputs((loaded,), provenance, _optional(traces, reading, loaded.states))


def uncertainty_of(inputs: Inputs, known: CorrelationOptions, leakage: LeakageSeries) -> LeakageUncertainty | None:
    """What is plausible beside what is guaranteed, where --confidence asks for it; None elsewhere, and at a delta."""
    if known.confidence is None or known.per_user or inputs.learnt_from is None or leakage.delta:
        return None
    return leakage_uncertainty(inputs.learnt_from, epsilons=leakage.epsilons, confidence=known.confidence)


def read(path: Path, reading: TraceOptions, states: Sequence[str] | None = None) -> Traces:
    """Traces by the given options; `states` decides unless --states does."""
    with working("reading traces"):
        return read_traces(
            path,
            layout=reading.layout.value,
            user=reading.user,
            time=reading.time,
            state=reading.state,
            by=reading.by,
            states=_domain(reading, states),
            delimiter=reading.delimiter,
            gaps=reading.gaps,
            sort=reading.sort,
            absent=reading.absent,
            every=reading.every,
            fill=None if reading.fill is None else reading.fill.value,
            zone=reading.zone,
            people=_names(reading.people),
            groups=_names(reading.groups),
            since=reading.since,
            until=reading.until,
            memory=reading.memory,
        )


def read_data(
    path: Path | None, reading: TraceOptions, states: Sequence[str] | None = None, *, correlation: bool = False
) -> Traces:
    """Traces, or the counts that take their place: of people at each time, or with `correlation` whatever there is."""
    if path is not None and not reading.counted:
        return read(path, reading, states)
    if path is not None:
        raise InputError("--transitions and --counts take the place of TRACES: give one or the other")
    if reading.counts is None and not (correlation and reading.transitions is not None):
        raise InputError("expected TRACES, or --counts in their place")
    return read_counts(
        transitions=reading.transitions if correlation else None,
        counts=reading.counts,
        states=_domain(reading, states),
        by=reading.by,
        groups=_names(reading.groups),
        since=reading.since,
        until=reading.until,
        delimiter=reading.delimiter,
    )


def _counted(reading: TraceOptions, known: CorrelationOptions, states: tuple[str, ...] | None) -> Inputs:
    """Counts in place of traces: the correlation from --transitions, from a history or from matrices."""
    given = known.backward is not None or known.forward is not None
    elsewhere = given or known.history is not None or known.correlation is not None or known.stays is not None
    if reading.transitions is None or elsewhere:
        if reading.transitions is not None:
            raise InputError(
                "--transitions say what the adversary knows: leave out --history, --backward, --forward, --correlation and "
                "--stays"
            )
        found = gather(None, replace(reading, counts=None), known, states)
        return replace(found, trajectories=read_data(None, reading, found.states))
    data = read_data(None, reading, states, correlation=True)
    assert isinstance(data, CountedTraces)
    if known.period is not None:
        raise InputError("--period needs to know when people move: give TRACES, counts of transitions do not say it")
    learnt = _learnt(data, known)
    provenance = Provenance(
        "protected",
        known.prior,
        known.per_user,
        reading.transitions.name,
        reading.states is not None,
        confidence=known.confidence or 0.0,
    )
    return Inputs(learnt, provenance, data if data.has_histogram else None, data.step, scarcity(data))


def _domain(reading: TraceOptions, states: Sequence[str] | None) -> Sequence[str] | None:
    """The public list of states: --states, or those of a correlation or a plan, which must be the same."""
    named = _names(reading.states)
    if named is not None and states is not None and set(named) != set(states):
        raise StateError(f"--states names {', '.join(named)}, but the correlation or plan names {', '.join(states)}")
    return states or named


def _names(listing: str | None) -> list[str] | None:
    """Names that are separated by commas."""
    return None if listing is None else [name.strip() for name in listing.split(",")]


def scarcity(learnt_from: Traces) -> str | None:
    """What must be said first where too few transitions were observed; None where there are enough, or nobody knows."""
    if isinstance(learnt_from, CountedTraces) and not learnt_from.has_histogram:
        return None
    covered = coverage(learnt_from)
    return covered.sentence if covered.is_scarce else None


def absences(data: Traces | None) -> str | None:
    """What a reader must know where somebody is not observed at every step; None if everybody always is."""
    if data is None or int(data.histogram().sum()) == data.n_users * data.n_times:
        return None
    return (
        "some people are not observed at every step. How many are observed when is treated as public and is not protected; "
        "if it must be, give those who are absent a state of their own"
    )


def holes(data: Traces | None) -> tuple[tuple[str, str], ...]:
    """Times that follow one another in the data, but are more than one step apart."""
    if data is None:
        return ()
    return tuple((data.times[k], data.times[k + 1]) for k in np.flatnonzero(~data.consecutive))


def hole_sentence(data: Traces | None) -> str | None:
    """What a reader of an audit must know where times are missing; None where none is."""
    found = holes(data)
    if data is None or not found:
        return None
    named = ", ".join(f"between {one!r} and {other!r}" for one, other in found[:SHOWN_HOLES])
    more = "" if len(found) <= SHOWN_HOLES else f", and {len(found) - SHOWN_HOLES} more times"
    return (
        f"times are missing {named}{more}: one step is {data.step or 1}. The audit takes such times for neighbours, although "
        "values so far apart mostly tell less about one another; steps that were released in between are not counted "
        "(--horizon counts them)"
    )


def _optional(traces: Path | None, reading: TraceOptions, states: Sequence[str] | None) -> Traces | None:
    return None if traces is None else read(traces, reading, states)


def _given(known: CorrelationOptions, states: tuple[str, ...] | None) -> Adversary:
    """The adversary of the given matrices, their states in one order: the plan's, or the first matrix's."""
    matrices = [None if path is None else load_matrix(path) for path in (known.backward, known.forward)]
    order = states or next(matrix.states for matrix in matrices if matrix is not None)
    return Adversary(
        *(m.reordered(order) if m is not None and set(m.states) == set(order) else m for m in matrices),
    )


def _learnt(data: Traces, known: CorrelationOptions) -> tuple[Adversary, ...]:
    directions: tuple[Direction, ...] = ("backward", "forward")
    if known.learn is not Known.BOTH:
        directions = ("backward",) if known.learn is Known.BACKWARD else ("forward",)
    found = estimate_adversaries(
        data, prior=known.prior, per_user=known.per_user, directions=directions, confidence=known.confidence
    )
    total = data.n_users if known.per_user else 1
    learnt = []
    with working("learning correlations"):
        for adversary in found:
            learnt.append(adversary)
            for matrix in adversary.matrices:
                matrix.leakage_profile()  # takes the time, and stays with the matrix
            progressed("learning correlations", len(learnt) / total)
    return tuple(learnt)


def _provenance(traces: Path | None, known: CorrelationOptions, reading: TraceOptions) -> Provenance:
    matrices = [path for path in (known.backward, known.forward) if path is not None]
    if matrices:
        return Provenance("matrices", name=", ".join(path.name for path in matrices))
    if known.history is not None:
        same = traces is not None and traces.exists() and known.history.exists() and traces.samefile(known.history)
        given = reading.states is not None
        source: Literal["protected", "history"] = "protected" if same else "history"
        return Provenance(
            source,
            known.prior,
            known.per_user,
            known.history.name,
            given,
            confidence=known.confidence or 0.0,
            period=known.period or 0,
        )
    assert traces is not None
    return Provenance(
        "protected",
        known.prior,
        known.per_user,
        traces.name,
        reading.states is not None,
        confidence=known.confidence or 0.0,
        period=known.period or 0,
    )
