"""Questions of the page and their answers: JSON values, and arrays."""

from __future__ import annotations

import io
import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat

from temporaldp.base.errors import InputError, TraceError
from temporaldp.base.extras import needing
from temporaldp.base.names import listed
from temporaldp.core.accounting import (
    ApproximateDP,
    Exact,
    LeakageSeries,
    PaperBound,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.core.correlation import Adversary, TransitionMatrix, lazy_walk
from temporaldp.core.planning import plan_budget, plan_noise, sustainable_budget
from temporaldp.core.planning.histogram_noise import histogram_profile, laplace_scales, mean_absolute_noise
from temporaldp.data.tables import estimate_adversaries
from temporaldp.publish.report.sentences import odds, posteriors

PAGE_STATES, PAGE_STEPS = 30, 1000
"""Largest correlation and horizon that the page answers quickly; the command line has no such limit."""

PageRows = Annotated[
    list[Annotated[list[FiniteFloat], Field(max_length=PAGE_STATES)]],
    Field(max_length=PAGE_STATES),
]


class PageQuestion(BaseModel, extra="forbid", frozen=True):
    """A correlation and a horizon."""

    names: list[str] = Field(min_length=2, max_length=PAGE_STATES)
    stays: float | None = Field(None, ge=0.0, le=1.0, description="In place of matrices: a chain that stays with this.")
    backward: PageRows | Literal["bayes"] | None = Field(
        None, description='"bayes": from the stationary forward chain.'
    )
    forward: PageRows | None = None
    knows: Literal["both", "past", "future"] = "both"
    horizon: int = Field(ge=1, le=PAGE_STEPS)

    def adversary(self) -> Adversary:
        """The adversary who knows these matrices, or one of them.

        Raises
        ------
        InputError
            The matrices are not admissible, or none is given.
        """
        if self.stays is not None:
            walk = lazy_walk(self.stays, self.names)
            known = Adversary(walk, walk)
        elif self.backward == "bayes" and self.knows != "future":
            known = Adversary.from_forward(TransitionMatrix(self.forward, self.names))
        else:
            known = Adversary(
                *(
                    None if rows in (None, "bayes") else TransitionMatrix(rows, self.names)
                    for rows in (self.backward, self.forward)
                )
            )
        found = Adversary(
            None if self.knows == "future" else known.backward, None if self.knows == "past" else known.forward
        )
        if found.states is None:
            raise InputError("expected a correlation: a matrix backward, forward or both")
        return found


class LeakageQuestion(PageQuestion):
    """Leakage at every step, its evidence, and its supremum."""

    epsilon: float = Field(gt=0.0, le=100.0)
    step: int | None = Field(None, ge=0, description="The step whose observation is shown, from 0; default: the worst.")

    def answer(self) -> dict[str, Any]:
        """Return the exact leakage and the paper's bound, pairs of states, a witness and the supremum."""
        adversary, epsilons = self.adversary(), [self.epsilon] * self.horizon
        series = temporal_leakage(adversary, epsilons)
        limits = leakage_supremum(adversary, self.epsilon)
        assert series.evidence is not None
        step = series.worst_time if self.step is None else min(self.step, self.horizon - 1)
        return _shown(adversary, series, 0.0) | {
            "paper": _curves(temporal_leakage(adversary, epsilons, accounting=PaperBound())),
            "pairs": np.transpose(series.evidence.best_pairs["temporal"]),
            "step": step,
            "high": series.evidence.witness(step).high,
            "supremum": {"temporal": limits.temporal, "certified": limits.certified},
        }


class PlanQuestion(PageQuestion):
    """The least noise that satisfies alpha."""

    alpha: float = Field(gt=0.0, le=100.0)

    def answer(self) -> dict[str, Any]:
        """Return the budget of every step and the mean noise."""
        plan = plan_budget(self.adversary(), alpha=self.alpha, horizon=self.horizon)
        return {"epsilons": plan.epsilons, "noise": mean_absolute_noise(laplace_scales(plan.epsilons))}


class ConstantQuestion(PlanQuestion):
    """The largest constant budget that satisfies alpha."""

    def answer(self) -> dict[str, Any]:
        """Return the budget of each step, a lower bound within 1e-8, and its noise."""
        epsilon = sustainable_budget(self.adversary(), self.alpha, self.horizon)
        scales = laplace_scales([epsilon])
        return {"epsilon": epsilon, "scale": float(scales[0]), "noise": mean_absolute_noise(scales)}


class SweepQuestion(PageQuestion):
    """Leakage of a release under chains with several probabilities of staying."""

    epsilon: float = Field(gt=0.0, le=100.0)

    def answer(self) -> dict[str, Any]:
        """Return the largest leakage of each chain, exact and by the paper's bound."""
        sweep = [k / 25 for k in range(25)] + [0.99]
        chains = [self.model_copy(update={"stays": stays}).adversary() for stays in sweep]
        return {"stays": sweep} | {
            name: [temporal_leakage(one, [self.epsilon] * self.horizon, accounting=method).worst for one in chains]
            for name, method in (("exact", Exact()), ("paper", PaperBound()))
        }


class DeltaQuestion(PageQuestion):
    """Leakage at a delta of noise on every count."""

    noise: Literal["gaussian", "laplace"]
    scale: float = Field(ge=0.05, le=50_000.0)
    delta: float = Field(ge=1e-30, lt=1.0)
    pairwise: bool = Field(
        False, description="Whether a curve for each pair of states may be used, if that is affordable."
    )

    def answer(self) -> dict[str, Any]:
        """Return an upper bound of leakage at every step: one privacy curve for all pairs (fast), or one for each (tight)."""
        release, adversary = histogram_profile(self.noise, self.scale), self.adversary()
        method = ApproximateDP(self.delta, pairwise=None if self.pairwise else False)
        series = temporal_leakage(adversary, [release] * self.horizon, accounting=method)
        return _shown(adversary, series, self.delta) | {"tight": self.pairwise}


class NoiseQuestion(PlanQuestion):
    """The least noise that satisfies alpha at a delta."""

    noise: Literal["gaussian", "laplace"]
    delta: float = Field(ge=1e-30, lt=1.0)

    def answer(self) -> dict[str, Any]:
        """Return the noise scale of every step and the mean absolute noise of a count."""
        plan = plan_noise(
            self.adversary(),
            alpha=self.alpha,
            noise=self.noise,
            horizon=self.horizon,
            accounting=ApproximateDP(self.delta, pairwise=False),
        )
        return {"scales": plan.scales, "noise": mean_absolute_noise(plan.scales, self.noise)}


QUESTIONS: dict[str, type[Any]] = {
    "leakage": LeakageQuestion,
    "constant": ConstantQuestion,
    "sweep": SweepQuestion,
    "plan": PlanQuestion,
    "delta": DeltaQuestion,
    "noise": NoiseQuestion,
}
"""By the last part of their addresses."""


def _shown(adversary: Adversary, series: LeakageSeries, delta: float) -> dict[str, Any]:
    """Common part of answers about leakage: matrices, curves, and sentences about the largest leakage."""
    return {
        "matrices": _matrices(adversary),
        "curves": _curves(series),
        "meaning": f"{odds(series.worst, delta)}. {posteriors(series.worst, delta)}" if series.worst < math.inf else "",
    }


def _matrices(adversary: Adversary) -> dict[str, Any]:
    """The matrices backward and forward, row by row; null for one that is unknown."""
    known = {"backward": adversary.backward, "forward": adversary.forward}
    return {side: matrix.dense() if isinstance(matrix, TransitionMatrix) else None for side, matrix in known.items()}


def _curves(series: LeakageSeries) -> dict[str, Any]:
    """Leakage at every step, and the largest."""
    return {
        name: getattr(series, name) for name in ("epsilons", "backward", "forward", "temporal", "worst", "worst_time")
    }


def correlation_of(content: bytes, kind: str, roles: dict[str, Any]) -> dict[str, Any]:
    """Names and matrices from an upload, in memory alone; or its columns, if they must be chosen.

    `roles` are the chosen names of the columns "user", "time" and "state".

    Raises
    ------
    MatrixError, TraceError
        The upload is not a table of traces; the message names the place.
    """
    if kind == "matrix":
        from temporaldp.data.files.matrices import parse_matrix

        matrix = parse_matrix(content)
        _few(matrix.n_states)
        return {"names": matrix.states, "forward": matrix.dense(), "backward": None, "note": ""}
    from temporaldp.data.files import read_traces

    table = _table(content)
    try:
        traces = read_traces(table, **roles)
    except TraceError as error:
        if roles or {"user", "time", "state"} <= set(table.column_names):
            raise
        # What follows are options of the library, which a page does not have.
        return {"columns": table.column_names[:200], "problem": str(error).partition("; ")[0]}
    _few(traces.n_states)
    adversary = next(iter(estimate_adversaries(traces)))
    return _matrices(adversary) | {
        "names": adversary.states,
        "horizon": min(traces.n_times, PAGE_STEPS),
        "note": f"{traces.n_users} people, {traces.n_times} steps",
    }


def _table(content: bytes) -> Any:
    """The table of a CSV file or of a Parquet file."""
    with needing("tables"):
        import pyarrow
        from pyarrow import csv, parquet

    try:
        if content.startswith(b"PAR1"):
            file = parquet.ParquetFile(io.BytesIO(content))
            parts = [file.metadata.row_group(k).total_byte_size for k in range(file.metadata.num_row_groups)]
            _require_small(file.metadata.num_columns, file.metadata.num_rows, sum(parts))
            table = file.read()
            table.validate(full=True)
        else:
            lines = content.splitlines()  # a quoted line break makes two, with fewer columns each
            _require_small(max((line.count(b",") for line in lines), default=0) + 1, len(lines), len(content))
            table = csv.read_csv(io.BytesIO(content))
        names = table.column_names
    except MemoryError:
        raise
    except (OSError, pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise TraceError(
            f"expected traces as CSV with a header (user, time, state; or user and a column a step), or Parquet: {error}"
        ) from None
    if len(set(names)) < len(names):
        raise TraceError(f"expected columns with different names, got {listed(names)}")
    return table


def _require_small(n_columns: int, n_rows: int, n_bytes: int) -> None:
    """Refuse a table by what its bytes say of it, before it is read; its bytes once they are decompressed."""
    if n_columns > 2_000 or n_columns * n_rows > 20_000_000 or n_bytes > 512 << 20:
        raise TraceError(
            "expected at most 2000 columns, 20000000 entries and 512 MiB once decompressed "
            f"here, got {n_columns} columns, {n_rows} rows and {n_bytes >> 20} MiB: use `temporaldp audit`"
        )


def _few(n: int) -> None:
    if n > PAGE_STATES:
        raise InputError(f"expected at most {PAGE_STATES} states on this page, got {n}: use `temporaldp audit`")
