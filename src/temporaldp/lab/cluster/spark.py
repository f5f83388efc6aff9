"""Leakage of each person on Spark's workers: the driver receives quantiles and the largest, not the traces.

Each person is one row when their transitions reach a worker. Spark commits the result of a task only at its end, so that a task
that crashes is repeated from its rows, and a person is counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from temporaldp.base.errors import BudgetError, InputError, TraceError
from temporaldp.base.extras import needing
from temporaldp.base.values import positive, real_number, whole_number
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.data.files.atomic import brief
from temporaldp.data.tables import CountedTraces, estimate_adversaries
from temporaldp.data.tables.relations import SparkRows
from temporaldp.data.tables.trace_table import TraceTable
from temporaldp.lab.studies.distribution import leakage_distribution

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from temporaldp.data.tables.trace_table import Counting


@dataclass(frozen=True, slots=True)
class SparkLeakage:
    """Largest temporal leakage of each person in a Spark DataFrame, with summaries for the driver.

    Parameters
    ----------
    frame : pyspark DataFrame
        Columns user and leakage, in nats, largest first. Cached by the cluster until `close`.
    """

    frame: DataFrame

    def quantile(self, share: float) -> float:
        """Smallest level that the leakage about at least this share of people does not exceed."""
        real_number(share, "share of people", gt=0.0, le=1.0)
        asked = self.frame.selectExpr(f"percentile_disc({share!r}) WITHIN GROUP (ORDER BY leakage) AS level")
        return float(_ran(asked.collect)[0].level)

    def share_above(self, level: float) -> float:
        """Share of people with leakage above a level."""
        asked = self.frame.selectExpr(
            f"avg(CASE WHEN leakage > double('{float(level)!r}') THEN 1.0 ELSE 0.0 END) AS share"
        )
        return float(_ran(asked.collect)[0].share)

    def worst(self, n_people: int = 10) -> dict[str, float]:
        """The people with the largest leakage, and their leakage, largest first."""
        return {row.user: float(row.leakage) for row in _ran(self.frame.limit(n_people).collect)}

    def close(self) -> None:
        """Remove the cached numbers from the cluster."""
        self.frame.unpersist()


def leakage_on_spark(
    traces: TraceTable,
    *,
    epsilon: float,
    prior: float = 0.0,
    horizon: int | None = None,
    accounting: Accounting[Any, Any] = EXACT,
) -> SparkLeakage:
    """Largest temporal leakage of each person, estimated from their own trace, computed on the workers.

    Equal to `leakage_distribution` of ``estimate_adversaries(traces, prior=prior, per_user=True)``. The Python of the
    workers (Spark's setting PYSPARK_PYTHON) needs temporaldp installed.

    Parameters
    ----------
    traces : TraceTable
        `read_traces` of a Spark DataFrame.
    epsilon : float, > 0
        Budget of every step, in nats.
    prior : float, >= 0
        Dirichlet prior.
    horizon : int, optional
        Number of steps. Default: an infinite horizon.
    accounting : Accounting

    Raises
    ------
    InputError, BudgetError
        The traces are not on Spark, or a number is not admissible.
    TraceError
        The job failed, with Spark's reason, such as a person whose trace determines no correlation without a prior.
    """
    steps = None if horizon is None else whole_number(horizon, "the horizon", least=1, error=BudgetError)
    asked = {"epsilon": positive(epsilon, "epsilon"), "horizon": steps, "accounting": accounting}
    sums = traces.user_sums() if isinstance(traces, TraceTable) else None
    if not isinstance(sums, SparkRows):
        raise InputError(
            "expected traces that were read from a Spark DataFrame; for others, leakage_distribution does it here"
        )
    columns = [name for name in sums.relation().columns if name != "whose"]
    packed = sums.then(
        f"SELECT whose, collect_list(struct({', '.join(columns)})) AS sums FROM rows GROUP BY whose"
    ).relation()
    work = _worker(columns, traces.states, traces.counting, prior, asked)
    frame = _ran(
        lambda: packed.mapInArrow(work, "user string, leakage double").orderBy(
            ["leakage", "user"], ascending=[False, True]
        )
    )
    return SparkLeakage(frame.persist())


def _worker(
    columns: list[str], states: tuple[str, ...], counting: Counting, prior: float, asked: dict[str, Any]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Process batches of people on a worker, one row each."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        with needing("tables"):
            import pyarrow as pa

        for batch in batches:
            if not batch.num_rows:
                continue
            people = pa.Table.from_batches([batch])
            sums = people.column("sums").combine_chunks()
            entries = sums.flatten()
            whose = people.column("whose").combine_chunks().take(sums.value_parent_indices())
            flat = pa.table({"whose": whose} | {name: entries.field(name) for name in columns})
            learnt = CountedTraces(states, of_users=counting.by_name(flat))
            found = leakage_distribution(estimate_adversaries(learnt, prior=prior, per_user=True), **asked)
            yield pa.record_batch([pa.array(found.names), pa.array(found.leakage)], ["user", "leakage"])

    return work


def _ran(query: Callable[[], Any]) -> Any:
    """Run a Spark job; a failed job raises an error of this package with its reason."""
    with needing("spark"):
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

    try:
        return query()
    except (PySparkException, Py4JError) as error:
        said = [line for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in reversed(said) if "Error: " in line), said[0] if said else "")
        missing = "ModuleNotFoundError: " in reason
        advice = "; install temporaldp where the workers run, and name that Python in PYSPARK_PYTHON" if missing else ""
        raise TraceError(f"the Spark job died: {brief(Exception(reason))}; nothing was written{advice}") from None
