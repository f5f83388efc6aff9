"""What the page asks of the server: everything that its own arithmetic does not cover. Plain values in, plain values out."""

from __future__ import annotations

import io
from typing import Annotated, Any, Literal

from temporaldp.accounting import LeakageSeries, leakage_supremum, temporal_leakage
from temporaldp.accounting.curve.method import ApproximateDP
from temporaldp.correlation import Adversary, TransitionMatrix, estimate_adversaries
from temporaldp.correlation.states import listed
from temporaldp.errors import InputError, TraceError
from temporaldp.extras import needing
from temporaldp.planning import plan_budget, plan_noise
from temporaldp.planning.histogram_noise import histogram_profile, laplace_scales, mean_absolute_noise

with needing("serve"):
    from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

MOST_VALUES, MOST_STEPS = 30, 1000
"""Up to which the page is quick enough to think with; the command line goes on."""

MOST_COLUMNS, MOST_CELLS, MOST_DECODED = 2_000, 20_000_000, 512 << 20
"""Of a table that is uploaded, looked up before it is read: columns, entries, and bytes once it is decompressed."""

Small = Field(max_length=MOST_VALUES)

Rows = Annotated[list[Annotated[list[FiniteFloat], Small]], Small]


class Question(BaseModel):
    """A correlation and a horizon."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    names: list[str] = Field(min_length=2, max_length=MOST_VALUES)
    backward: Rows | None = None
    forward: Rows | None = None
    horizon: int = Field(ge=1, le=MOST_STEPS)

    def adversary(self) -> Adversary:
        """Who knows these matrices."""
        known = [None if rows is None else TransitionMatrix(rows, self.names) for rows in (self.backward, self.forward)]
        return Adversary(*known)


class SupremumQuestion(Question):
    """How much leaks however long the release goes on."""

    epsilon: float = Field(gt=0.0, le=100.0)

    def answer(self) -> dict[str, Any]:
        """Suprema in nats; null where there is none."""
        found = leakage_supremum(self.adversary(), self.epsilon)
        return {"temporal": _finite(found.temporal), "certified": found.certified}


class PlanQuestion(Question):
    """The least noise that keeps alpha."""

    alpha: float = Field(gt=0.0, le=100.0)

    def answer(self) -> dict[str, Any]:
        """Budgets a step, and what they mean."""
        plan = plan_budget(self.adversary(), alpha=self.alpha, horizon=self.horizon)
        assert isinstance(plan.leakage, LeakageSeries)
        return {
            "epsilons": plan.epsilons.tolist(),
            "noise": mean_absolute_noise(laplace_scales(plan.epsilons)),
            "leakage": plan.leakage.temporal.tolist(),
        }


class DeltaQuestion(Question):
    """What noise on every count leaks at a delta."""

    noise: Literal["gaussian", "laplace"]
    scale: float = Field(ge=0.05, le=50_000.0)
    delta: float = Field(ge=1e-30, lt=1.0)
    pairwise: bool = Field(
        False, description="Whether a curve for each pair of states may be used, if that is affordable."
    )

    def answer(self) -> dict[str, Any]:
        """Leakage at every step, an upper bound: quick by one privacy curve for all pairs of values, or tighter."""
        release = histogram_profile(self.noise, self.scale)
        found = temporal_leakage(
            self.adversary(),
            [release] * self.horizon,
            accounting=ApproximateDP(self.delta, pairwise=None if self.pairwise else False),
        )
        names = ("epsilons", "backward", "forward", "temporal")
        series = {name: [_finite(float(one)) for one in getattr(found, name)] for name in names}
        return series | {"error": mean_absolute_noise([self.scale], self.noise)}


class NoiseQuestion(Question):
    """The least noise that keeps alpha at a delta."""

    noise: Literal["gaussian", "laplace"]
    alpha: float = Field(gt=0.0, le=100.0)
    delta: float = Field(ge=1e-30, lt=1.0)

    def answer(self) -> dict[str, Any]:
        """Scales a step, and what they mean."""
        plan = plan_noise(
            self.adversary(),
            alpha=self.alpha,
            noise=self.noise,
            horizon=self.horizon,
            accounting=ApproximateDP(self.delta, pairwise=False),
        )
        scales = plan.scales.tolist()
        return {"scales": scales, "noise": mean_absolute_noise(scales, self.noise)}


QUESTIONS = {
    "supremum": SupremumQuestion,
    "plan": PlanQuestion,
    "delta": DeltaQuestion,
    "noise": NoiseQuestion,
}
"""By the last part of their addresses."""


def correlation_of(content: bytes, kind: str) -> dict[str, Any]:
    """Names and matrices from an upload that is held in memory alone.

    Raises
    ------
    MatrixError, TraceError
        It is no such table; the message says where.
    """
    if kind == "matrix":
        from temporaldp.files.matrices import parse_matrix

        matrix = parse_matrix(content)
        _few(matrix.n_states)
        return {"names": matrix.states, "forward": matrix.dense().tolist(), "backward": None, "note": ""}
    traces = _traces(content)
    _few(traces.n_states)
    adversary = next(iter(estimate_adversaries(traces)))
    backward, forward = adversary.backward, adversary.forward
    assert isinstance(backward, TransitionMatrix)
    assert isinstance(forward, TransitionMatrix)
    return {
        "names": adversary.states,
        "backward": backward.dense().tolist(),
        "forward": forward.dense().tolist(),
        "horizon": min(traces.n_times, MOST_STEPS),
        "note": f"{traces.n_users} people, {traces.n_times} steps",
    }


def _traces(content: bytes) -> Any:
    """Traces of a CSV file or of a Parquet file."""
    with needing("tables"):
        import pyarrow
        from pyarrow import csv, parquet

    from temporaldp.files import read_traces

    try:
        if content.startswith(b"PAR1"):
            file = parquet.ParquetFile(io.BytesIO(content))
            parts = [file.metadata.row_group(k).total_byte_size for k in range(file.metadata.num_row_groups)]
            _require_small(file.metadata.num_columns, file.metadata.num_rows, sum(parts))
            table = file.read()
            table.validate(full=True)
        else:
            _require_small(content.partition(b"\n")[0].count(b",") + 1, content.count(b"\n"), len(content))
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
    return read_traces(table)


def _require_small(n_columns: int, n_rows: int, n_bytes: int) -> None:
    if n_columns > MOST_COLUMNS or n_columns * n_rows > MOST_CELLS or n_bytes > MOST_DECODED:
        raise TraceError(
            f"expected at most {MOST_COLUMNS} columns, {MOST_CELLS} entries and {MOST_DECODED >> 20} MiB once decompressed "
            f"here, got {n_columns} columns, {n_rows} rows and {n_bytes >> 20} MiB: use `temporaldp audit`"
        )


def _few(n: int) -> None:
    if n > MOST_VALUES:
        raise InputError(
            f"expected at most {MOST_VALUES} values here, so that the page stays quick, got {n}: use `temporaldp audit`"
        )


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if abs(value) < float("inf") else None
