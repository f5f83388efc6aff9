"""From options to adversaries and data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from temporaldp import (
    Adversary,
    InputError,
    Source,
    StateError,
    Trajectories,
    estimate_adversaries,
    load_matrix,
    read_traces,
)
from temporaldp.cli.options import CorrelationOptions, Known, TraceOptions
from temporaldp.cli.render import working
from temporaldp.correlation.estimation import Direction
from temporaldp.correlation.states import in_order, listed
from temporaldp.progress import progressed
from temporaldp.report import Provenance


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that a subcommand works on."""

    adversaries: tuple[Adversary, ...]
    provenance: Provenance
    trajectories: Trajectories | None
    step: str | None = None

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
        return Source(self.states, self.step, self.provenance.sentence, self.provenance.warning)

    def n_steps(self, horizon: int | None) -> int:
        """The horizon if it is given, else the number of steps in the data."""
        if horizon is None and self.trajectories is None:
            raise InputError("without TRACES the number of steps is unknown; give --horizon T")
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
    if given and (known.history is not None or known.per_user or known.prior or known.learn is not Known.BOTH):
        raise InputError("--backward and --forward replace learning: drop --history, --per-user, --prior and --learn")
    if given:
        adversary = _given(known, states)
        return Inputs((adversary,), _provenance(traces, known, reading), _optional(traces, reading, adversary.states))
    if traces is None and known.history is None:
        raise InputError("expected TRACES or --history to learn from, or matrices with --backward and --forward")
    if known.history is None:
        assert traces is not None
        everything = read(traces, reading, states)
        return Inputs(_learnt(everything, known), _provenance(traces, known, reading), everything, everything.step)
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
    return Inputs(_learnt(past, known), _provenance(traces, known, reading), data, past.step)


def read(path: Path, reading: TraceOptions, states: Sequence[str] | None = None) -> Trajectories:
    """Traces by the given options; `states` decides unless --states does."""
    named = None if reading.states is None else [name.strip() for name in reading.states.split(",")]
    if named is not None and states is not None and set(named) != set(states):
        raise StateError(f"--states names {', '.join(named)}, but the correlation or plan names {', '.join(states)}")
    return read_traces(
        path,
        layout=reading.layout.value,
        user=reading.user,
        time=reading.time,
        state=reading.state,
        states=states or named,
        delimiter=reading.delimiter,
        gaps=reading.gaps,
        sort=reading.sort,
    )


def absences(data: Trajectories | None) -> str | None:
    """What a reader must know where somebody is not observed at every step; None if everybody always is."""
    if data is None or (data.codes >= 0).all():
        return None
    return (
        "some people are not observed at every step. How many are observed when is treated as public and is not protected; "
        "if it must be, give those who are absent a state of their own"
    )


def _optional(traces: Path | None, reading: TraceOptions, states: Sequence[str] | None) -> Trajectories | None:
    return None if traces is None else read(traces, reading, states)


def _given(known: CorrelationOptions, states: tuple[str, ...] | None) -> Adversary:
    """The adversary of the given matrices, their states in one order: the plan's, or the first matrix's."""
    matrices = [None if path is None else load_matrix(path) for path in (known.backward, known.forward)]
    order = states or next(matrix.states for matrix in matrices if matrix is not None)
    return Adversary(
        *(m.reordered(order) if m is not None and set(m.states) == set(order) else m for m in matrices),
    )


def _learnt(data: Trajectories, known: CorrelationOptions) -> tuple[Adversary, ...]:
    directions: tuple[Direction, ...] = ("backward", "forward")
    if known.learn is not Known.BOTH:
        directions = ("backward",) if known.learn is Known.BACKWARD else ("forward",)
    found = estimate_adversaries(data, prior=known.prior, per_user=known.per_user, directions=directions)
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
        return Provenance("protected" if same else "history", known.prior, known.per_user, known.history.name, given)
    assert traces is not None
    return Provenance("protected", known.prior, known.per_user, traces.name, reading.states is not None)
