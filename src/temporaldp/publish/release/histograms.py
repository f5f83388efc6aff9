"""Releases under a plan or step by step: of snapshots by any mechanism, and of the histograms of trajectories."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic

import numpy as np

from temporaldp.base.display import bound
from temporaldp.base.errors import BudgetError, InputError, LateDataError, SpentError, TraceError
from temporaldp.base.names import require_same_states
from temporaldp.base.values import FloatArray, IntArray, compared_by_value, copy_in, real_number, sum_up
from temporaldp.core.accounting import accounting_blocks
from temporaldp.core.planning import Plan
from temporaldp.data.counts.histogram import histogram_mechanism
from temporaldp.data.counts.released import ReleasedHistograms
from temporaldp.data.counts.smoothed import SmoothedHistograms
from temporaldp.data.tables.moments import is_near, moment, require_phase
from temporaldp.data.tables.traces import LEAST_REACHED, Traces, as_traces
from temporaldp.publish.release.filtering import stored, stored_estimate
from temporaldp.publish.release.guards import Guard
from temporaldp.publish.release.step import Output, Snapshot
from temporaldp.publish.release.stream import ContinualRelease


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release(Generic[Output]):
    """Outputs of a release and the budget spent at each step.

    Parameters
    ----------
    outputs : tuple of length T
        One for each step, of the mechanism's own type; None for a step without a budget.
    epsilons : array, shape (T,)
        Budget of each step in nats, as the mechanism reports it: at most that of the plan. Under a noise plan, the epsilon of
        the plan at its delta.
    """

    outputs: tuple[Output | None, ...]
    epsilons: FloatArray

    def __post_init__(self) -> None:
        copy_in(self, "epsilons")

    def __repr__(self) -> str:
        return f"Release({len(self.outputs)} steps, spent {bound(sum_up(self.epsilons))} nats in all)"


def release_snapshots(
    mechanism: Callable[[Snapshot, float], Output], snapshots: Iterable[Snapshot], plan: Plan, *, start: int = 0
) -> Release[Output]:
    """Run a mechanism once per snapshot under a plan, so that every step satisfies the plan's alpha.

    The paper's conversion of any DP mechanism into one with alpha-DP_T (Section V). All snapshots are read, and their number
    is checked against the plan, before the first noise is drawn.

    Parameters
    ----------
    mechanism : callable (snapshot, epsilon) -> output, or under a noise plan (snapshot, scale) -> output
        epsilon-DP under replacement of one person's state in the snapshot, with fresh randomness at every call; this
        cannot be checked here. If it has a method ``epsilon_spent(epsilon)``, that is what counts as spent, otherwise the
        budget itself. Under a noise plan, a histogram with noise of the given scale; its attribute ``noise`` names the kind.
    snapshots : iterable of length T
        The database, or counts of it, at each step.
    plan : BudgetPlan or NoisePlan
    start : int
        The plan's step (from 0) of the first snapshot: ``len(accountant)`` for a plan from `replan`.

    Returns
    -------
    Release
        A step with budget 0 is not published: the mechanism is not called for it.

    Raises
    ------
    BudgetError
        There are no snapshots, more of them than the plan has steps, or the mechanism reports an epsilon above the budget that
        it was given. Nothing was drawn.
    InputError
        The mechanism does not fit the kind of plan.
    LeakageBudgetError
        Inside the block of a `TemporalAccountant` that refuses the budgets. Nothing was drawn or spent.

    Examples
    --------
    >>> from temporaldp import Adversary, plan_budget
    >>> plan = plan_budget(Adversary(), alpha=1.0)
    >>> release_snapshots(lambda count, epsilon: f"{count} with {epsilon:.0f}", [7, 8], plan).outputs
    ('7 with 1', '8 with 1')
    """
    taken = list(snapshots)
    if not taken:
        raise BudgetError("expected at least one snapshot, got none")
    steps = plan.measurements(mechanism, len(taken), start=start)
    spent = [step.epsilon for step in steps]
    plan.charge(spent)
    with accounting_blocks.settled():
        outputs = tuple(step.draw(one) for step, one in zip(steps, taken, strict=True))
    return Release(outputs, np.array(spent))


CORRECT_ROWS = (
    "nothing was drawn. Correct these rows or leave them out (--set traces.where=CONDITION); if they are right, accept every "
    "row with reached=0 (--set release.reached=0)"
)


def release_histograms(
    traces: Traces | Any,
    plan: Plan | ContinualRelease[Any, Any],
    *,
    start: int = 0,
    reached: float = LEAST_REACHED,
) -> ReleasedHistograms:
    """Publish the number of people in each state at each step that has a budget, under a plan or by a continual release.

    Exact discrete Laplace noise from OpenDP, or that of a noise plan; neighbouring databases differ in one person's state at a
    step, so the L1 sensitivity of a histogram is 2. With a plan, a repeated call draws and spends again. A continual release
    returns the stored counts of every step of its ledger, and continues with those that follow.

    Parameters
    ----------
    traces : Traces, or a table
        T steps. A table has the columns user, time and state; `read_traces` takes others.
        Its states are the public domain; the number of people at each step is public.
    plan : BudgetPlan or NoisePlan, or ContinualRelease of a histogram
        With at least T steps, and for the same states.
    start : int
        The plan's step (from 0) of the first time: ``len(accountant)`` for a plan from `replan`. Not for a continual release.
    reached : float
        Share of the people who must have rows at the last new step or after it, unless people leave one by one; a single row
        with a wrong date would otherwise use up all steps to it. With 0, every row is accepted, also of a time that is
        ahead of the clock by more than a step.

    Raises
    ------
    BudgetError
        The plan is shorter than the data. Nothing was drawn.
    StateError
        The plan was made for other states. Nothing was drawn.
    TraceError
        New steps are beyond the last time that enough people have `reached`, or beyond the clock. Nothing was drawn.
    InputError
        There is no plan, it was made for steps of another length or another phase of a clock, or a time comes before one that
        the ledger has. Nothing was drawn.
    LedgerError
        The ledger cannot be read or written. Steps before the one that failed are stored: running again continues after them.
    """
    trajectories = as_traces(traces)
    if isinstance(plan, ContinualRelease):
        return _continued(trajectories, plan, reached)
    if not isinstance(plan, Plan):
        raise InputError(
            f"expected a plan or a continual release, got {plan!r}: `plan_budget` and `plan_noise` make plans that satisfy a "
            "level"
        )
    states, step = plan.states, plan.provenance.step
    if states is not None:
        require_same_states(states, trajectories.states, what="the data (the plan was made for others)")
    require_same_step(step, trajectories.step, what="plan")
    require_reached(trajectories, trajectories.times, reached)
    require_phase(plan, trajectories.times[0], start)
    if plan.has_phases and not trajectories.consecutive.all():
        raise InputError(
            "expected data of every step: each budget of the plan is that of its step, as with a clock, and times are "
            "missing. Put events on a grid (every='15min'), or release with a ledger, which passes over missing steps"
        )
    mechanism = histogram_mechanism(plan, trajectories.n_states)
    result = release_snapshots(mechanism, trajectories.histogram(), plan, start=start)
    return _assemble(trajectories, result.outputs, range(start, start + len(result.outputs)), result.epsilons, plan)


def _assemble(
    trajectories: Traces,
    outputs: Sequence[IntArray | None],
    steps: Sequence[int],
    spent: FloatArray,
    held: Plan | Guard,
    *,
    is_filtered: bool = False,
) -> ReleasedHistograms:
    """The published steps' counts; of a stream that publishes none of them, and filters none, steps without counts."""
    published = [t for t, output in enumerate(outputs) if output is not None]
    if not published and (not isinstance(held, Guard) or is_filtered):
        raise BudgetError("none of these steps was published or has a budget")
    shown = published or range(len(outputs))  # steps between draws, which estimates may fill
    nothing = np.zeros(trajectories.n_states, dtype=np.int64)
    return ReleasedHistograms(
        np.stack([nothing if output is None else output for output in (outputs[t] for t in shown)]),
        spent[shown],
        held.drawn_scales([steps[t] for t in shown], spent[shown]),
        trajectories.states,
        tuple(trajectories.times[t] for t in shown),
        held.promise if isinstance(held, Guard) else held.alpha,
        accounting=held.accounting,
        delta=held.delta,
        noise=held.noise,
        guarantee=held.guarantee,
    )


def _continued(trajectories: Traces, stream: ContinualRelease[Any, Any], reached: float) -> ReleasedHistograms:
    """Steps that the ledger has, as they were; then the others."""
    if stream.states is not None:
        require_same_states(stream.states, trajectories.states, what="the data (the ledger is about others)")
    require_same_step(stream.step, trajectories.step, what="release")
    stream.refresh()
    new = [time for time in trajectories.times if not stream.has(time)]
    require_reached(trajectories, new, reached)
    _require_continuation(trajectories, stream, new)
    truth = trajectories.histogram()
    outputs = []
    for row, time in zip(truth, trajectories.times, strict=True):
        *missing, label = [time] if stream.has(time) else stream.completed([time])
        for one in missing:
            stream.skip(time=one)
        outputs.append(stream.release(row, time=label))
    rows = [stream.row(time) for time in trajectories.times]
    spent = np.array([row.epsilon for row in rows])
    filters = stream.correlation is not None
    released = _assemble(trajectories, outputs, [row.step for row in rows], spent, stream.guard, is_filtered=filters)
    # A time is published under the label that it had first, in whatever spelling it comes again.
    return replace(released, times=tuple(stream.row(time).time for time in released.times))


def require_reached(traces: Traces, new: Sequence[str], share: float) -> None:
    """Raise `TraceError` where `new` times are beyond the clock, or beyond the last time that a share of people have reached.

    Beyond it, people may leave one by one. Rows are wrong where the number who come further falls below that share at once, or
    where they are further from the person's row before than any other row.
    """
    real_number(share, "the share of people who have reached the last step", ge=0.0, lt=1.0)
    places = {time: t for t, time in enumerate(traces.times)}
    steps = [places[time] for time in new] if share > 0.0 else []
    now = datetime.now(UTC)
    ahead = [
        t
        for t in steps
        if moment(traces.times[t]).clock is not None and not is_near(traces.step, None, traces.times[t], now)
    ]
    if ahead:
        rows = traces.rows_after(ahead[0] - 1)
        raise TraceError(f"expected times up to now, but {_named(rows)} in the future: {CORRECT_ROWS}")
    come = np.cumsum(traces.ends()[::-1])[::-1]
    common = int(np.flatnonzero(come >= share * come[0] * (1.0 - 1e-12))[-1])
    if not steps or steps[-1] <= common:
        return
    is_cliff = come[common + 1] < share * come[common]
    if rows := traces.rows_after(common, unusual=not is_cliff):
        raise TraceError(
            f"expected no step after {traces.times[common]!r}, the last time that {100.0 * share:g} % of the people have "
            f"reached, but {_named(rows)} later, and a release cannot go back: {CORRECT_ROWS}"
        )


def _named(rows: Sequence[str]) -> str:
    """The first three of some rows, and the verb."""
    more = "" if len(rows) <= 3 else f" and {len(rows) - 3} more"
    return f"{', '.join(rows[:3])}{more} {'is' if len(rows) == 1 else 'are'}"


def require_same_step(expected: str | None, found: str | None, *, what: str, of: str = "data") -> None:
    """Raise `InputError` where the steps of the data, or a history, have another length than those of the plan or ledger."""
    if None not in (expected, found) and expected != found:
        raise InputError(
            f"one step of the {what} is {expected}, one step of the {of} {found}: a correlation over another "
            "length of time does not apply; plan with a history of the same step"
        )


def _require_continuation(trajectories: Traces, stream: ContinualRelease[Any, Any], new: list[str]) -> None:
    """New steps must follow all that the ledger has, one step or more apart, and there must be budgets for all of them."""
    times = trajectories.times
    if new and any(time not in new for time in times[times.index(new[0]) :]):
        raise LateDataError(
            f"time {new[0]!r} comes before steps that were released already, but was not released itself; steps are accounted "
            "for in order, so a late one can no longer be released: leave it out"
        )
    steps, horizon = stream.completed(new), stream.guard.horizon
    left = math.inf if horizon is None else horizon - len(stream)
    if len(steps) > left:
        raise SpentError(
            f"the release ends before the data do: its plan or horizon has room for {max(left, 0)} more, the data have "
            f"{len(steps)} new steps; leave out the last, or begin another release with a ledger of its own, such as one whose "
            "plan is renewed (`--set privacy.renew=monthly`)"
        )
    stream.require_next(steps)


def filtered_histograms(
    trajectories: Traces, stream: ContinualRelease[Any, Any], *, times: Sequence[str] | None = None
) -> SmoothedHistograms:
    """The filtered counts of those times that a continual release has published, as its ledger keeps them.

    Parameters
    ----------
    trajectories : Traces
    stream : ContinualRelease
        With a correlation to filter by.
    times : sequence of str, optional
        Default: those of the data.

    Raises
    ------
    InputError
        The release has no correlation to filter by.
    """
    rows = [stream.row(time) for time in (trajectories.times if times is None else times) if stream.has(time)]
    rows = [row for row in rows if row.output is not None]
    if stream.correlation is None or not rows:
        raise InputError("expected a release with a correlation to filter by, and at least one published step")
    found = [stored_estimate(row) for row in rows]
    return SmoothedHistograms(
        np.stack([one.counts for one in found]),
        np.stack([one.lower for one in found]),
        np.stack([one.upper for one in found]),
        trajectories.states,
        tuple(row.time for row in rows),
        np.array([stored(row)["total"] for row in rows], dtype=np.float64),
        np.ones(len(rows), dtype=bool),
        stream.correlation.provenance,
        "past releases",
    )
