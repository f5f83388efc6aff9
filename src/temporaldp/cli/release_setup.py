"""What holds the level of `temporaldp release`, and the data that it publishes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from temporaldp import DiscreteLaplaceHistogram, InputError, NoisyHistogram, TemporalAccountant, Traces, load_plan
from temporaldp.accounting.paper.method import PaperBound
from temporaldp.cli import options as o
from temporaldp.cli.inputs import gather, read_data
from temporaldp.planning import NoisePlan, Plan, Source
from temporaldp.release.epochs import Every
from temporaldp.release.histogram import histogram_mechanism


@dataclass(frozen=True, slots=True)
class Setup:
    """What a release is made of: what holds the level (a plan, an accountant, or both), and the data."""

    plan: Plan | None
    accountant: TemporalAccountant | None
    data: Traces
    source: Source
    renewed: Every | None = None

    @property
    def mechanism(self) -> DiscreteLaplaceHistogram | NoisyHistogram:
        """What publishes a histogram."""
        n_states = self.data.n_states
        return DiscreteLaplaceHistogram(n_states) if self.plan is None else histogram_mechanism(self.plan, n_states)


def setup_of(
    traces: Path | None,
    reading: o.TraceOptions,
    known: o.CorrelationOptions,
    plan: Path | None,
    alpha: float | None,
    horizon: int | None,
    bound: o.Bounds | None,
    *,
    smoothing: bool,
    renewed: Every | None = None,
) -> Setup:
    """What holds the level of a release with a ledger."""
    _require_one_level(plan, alpha, horizon)
    planned = None if plan is None else load_plan(plan)
    if renewed:
        _require_renewable(planned, known)
    if known == o.CorrelationOptions():
        if planned is None:
            raise InputError(
                "--alpha needs what the adversary knows: --history, or --backward and --forward. It is not learnt from TRACES: "
                "they grow from run to run, and are what is to be protected"
            )
        if bound is not None:
            raise InputError(
                "--bound says by which leakage an accountant counts, and the plan alone has none: it holds alpha by the bound "
                "that it was made with. Leave out --bound, or give what the adversary knows (--history)"
            )
        return plan_alone(planned, traces, reading)
    if not any(known.files) and known.stays is None:
        raise InputError(
            "with --ledger, a correlation is learnt from --history, or with privacy (--correlation), never from TRACES: they "
            "grow from run to run, and are what is to be protected"
        )
    if isinstance(planned, NoisePlan):
        if smoothing and alpha is None and bound is None:  # the correlation is there to smooth by
            return plan_alone(planned, traces, reading)
        raise InputError(
            "the plan's noise is fixed beforehand and holds the level by itself: leave out --history, --backward and "
            "--forward. They are for an accountant, which lets budgets be chosen as one goes; at a delta that may not be, "
            "because hockey-stick divergences do not compose along adaptive paths"
        )
    counted = bound or (
        o.Bounds.PAPER if renewed and planned and isinstance(planned.accounting, PaperBound) else o.Bounds.EXACT
    )
    if planned is not None and planned.accounting.is_exact and counted is o.Bounds.PAPER:
        raise InputError(
            "the plan holds alpha by the exact leakage, and the paper's bound of it is larger: leave out --bound paper, or plan"
            " with --bound paper"
        )
    found = gather(traces, reading, known, None if planned is None else planned.source.states)
    assert found.trajectories is not None
    level, ends = (alpha, horizon) if planned is None else (planned.alpha, planned.horizon)
    if renewed:
        level, ends = None, None  # the plan holds its level within each epoch; the odometer counts all of them
    accountant = TemporalAccountant(found.everyone, alpha=level, horizon=ends, accounting=counted.accounting)
    source = found.source
    if planned is not None:
        source = source.with_learning_of(planned.source)
        source = replace(source, warning=planned.source.warning or source.warning)
    return Setup(planned, accountant, found.trajectories, source, renewed)


def _require_one_level(plan: Path | None, alpha: float | None, horizon: int | None) -> None:
    if plan is None and alpha is None:
        raise InputError("--ledger needs something that holds a level: --plan PLAN, or --alpha A with a correlation")
    if plan is not None and alpha is not None:
        raise InputError("--plan has a level of its own: leave out --alpha, or the plan")
    if plan is not None and horizon is not None:
        raise InputError("--horizon goes with --alpha: a plan has its own")


def _require_renewable(planned: Plan | None, known: o.CorrelationOptions) -> None:
    if planned is None or planned.horizon is None or isinstance(planned, NoisePlan):
        raise InputError(
            "--renew begins a plan of budgets again: give --plan PLAN, from `temporaldp plan --alpha A "
            "--horizon T` without a delta"
        )
    if known == o.CorrelationOptions():
        raise InputError(
            "--renew needs what the adversary knows, to say what leaks from one epoch to the next: give --history"
        )


def plan_alone(plan: Plan, traces: Path | None, reading: o.TraceOptions) -> Setup:
    """Of a plan that holds the level by itself."""
    return Setup(plan, None, read_data(traces, reading, plan.source.states), plan.source)
