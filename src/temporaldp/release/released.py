"""Released histograms: made from trajectories and a plan, kept as Parquet or CSV."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.events import REPLACE_ONE
from temporaldp.correlation import Trajectories
from temporaldp.correlation.states import require_same_states
from temporaldp.errors import BudgetError, InputError
from temporaldp.files.atomic import brief, replacing, require_file
from temporaldp.files.moments import distance, in_words, step_length
from temporaldp.planning import BudgetPlan
from temporaldp.release.consistent import consistent_counts
from temporaldp.release.continual import release
from temporaldp.release.histogram import HISTOGRAM_SENSITIVITY, DiscreteLaplaceHistogram
from temporaldp.release.stream import ContinualRelease

if TYPE_CHECKING:
    import pandas as pd

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

METADATA_KEY = b"temporaldp"
COLUMNS = ("time", "state", "count", "epsilon")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReleasedHistograms:
    """Noisy histograms of T steps, with what each step spent.

    Parameters
    ----------
    counts : int array, shape (T, n)
    epsilons : array, shape (T,)
        Spent at each step in nats, by OpenDP's privacy map.
    states : tuple of n names
    times : tuple of T labels
    alpha : float or None
        Level of the plan that was followed; None where a file does not say.
    consistent : bool
        Whether the counts were post-processed to non-negative integers with the public total.
    neighboring_relation : str
        What the guarantee refers to.
    """

    counts: IntArray
    epsilons: FloatArray
    states: tuple[str, ...]
    times: tuple[str, ...]
    alpha: float | None = None
    consistent: bool = False
    neighboring_relation: str = REPLACE_ONE

    def __post_init__(self) -> None:
        for field, kind in (("counts", np.int64), ("epsilons", np.float64)):
            array = np.array(getattr(self, field), dtype=kind)
            array.flags.writeable = False
            object.__setattr__(self, field, array)
        if self.counts.shape != (len(self.times), len(self.states)) or self.epsilons.shape != (len(self.times),):
            raise InputError(
                f"expected counts ({len(self.times)}, {len(self.states)}) and {len(self.times)} epsilons, "
                f"got {self.counts.shape} and {self.epsilons.shape}"
            )
        if not (np.isfinite(self.epsilons) & (self.epsilons > 0.0)).all():
            raise InputError(f"expected finite epsilons > 0, got {self.epsilons.min()} to {self.epsilons.max()}")

    def __repr__(self) -> str:
        return f"ReleasedHistograms({len(self.times)} steps, {len(self.states)} states, {self.neighboring_relation})"

    def columns(self) -> dict[str, list[Any]]:
        """Long form: one entry per time and state, in columns time, state, count, epsilon."""
        n = len(self.states)
        return {
            "time": [time for time in self.times for _ in range(n)],
            "state": list(self.states) * len(self.times),
            "count": self.counts.ravel().tolist(),
            "epsilon": np.repeat(self.epsilons, n).tolist(),
        }

    def reordered(self, states: tuple[str, ...]) -> ReleasedHistograms:
        """The same histograms with their states in the given order, which must name the same states."""
        if set(states) != set(self.states):
            require_same_states(states, self.states, what="the released histograms")
        order = [self.states.index(state) for state in states]
        return replace(self, counts=self.counts[:, order], states=states)

    def to_frame(self) -> pd.DataFrame:
        """The columns time, state, count, epsilon as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.columns())


def release_histograms(
    trajectories: Trajectories,
    plan: BudgetPlan | ContinualRelease[Any, Any],
    *,
    consistent: bool = False,
    start: int = 0,
) -> ReleasedHistograms:
    """Publish how many people are in each state at each step that has a budget, under a plan or by a continual release.

    Exact discrete Laplace noise from OpenDP; neighbouring databases differ in one person's value at a step, so the L1
    sensitivity of a histogram is 2. With a plan, calling it again draws and spends again. A continual release gives the same
    counts again for every step that its ledger has, and goes on with those that follow.

    Parameters
    ----------
    trajectories : Trajectories
        T steps. Its states are the public domain; the number of people at each step is public.
    plan : BudgetPlan, or ContinualRelease of a DiscreteLaplaceHistogram
        With at least T steps, and for the same states.
    consistent : bool
        Post-process to non-negative integers that keep the public total of each step.
    start : int
        The plan's step (from 0) of the first time: ``len(accountant)`` for a plan from `replan`. Not for a continual release.

    Raises
    ------
    BudgetError
        The plan is shorter than the data. Nothing was drawn.
    StateError
        The plan was made for other states. Nothing was drawn.
    InputError
        The plan was made for steps of another length, or a time comes before one that the ledger has. Nothing was drawn.
    LedgerError
        The ledger cannot be read or written. Steps before the one that failed are stored: running again goes on after them.
    """
    if isinstance(plan, ContinualRelease):
        return _continued(trajectories, plan, consistent)
    if plan.states is not None:
        require_same_states(plan.states, trajectories.states, what="the data")
    _require_same_step(plan.step, trajectories.step, what="plan")
    truth = trajectories.histogram()
    result = release(DiscreteLaplaceHistogram(n_states=trajectories.n_states), truth, plan, start=start)
    published = [t for t, output in enumerate(result.outputs) if output is not None]
    counts = np.stack([output for output in result.outputs if output is not None])
    return _assemble(trajectories, published, counts, result.epsilons[published], plan.alpha, consistent)


def _assemble(
    trajectories: Trajectories,
    published: list[int],
    counts: IntArray,
    spent: FloatArray,
    alpha: float,
    consistent: bool,
) -> ReleasedHistograms:
    """The published steps' counts, post-processed if asked."""
    if consistent:  # the number of people is public, and taken from the data at hand
        totals = trajectories.histogram().sum(axis=1).tolist()
        counts = np.stack([consistent_counts(row, total=totals[t]) for row, t in zip(counts, published, strict=True)])
    times = tuple(trajectories.times[t] for t in published)
    return ReleasedHistograms(counts, spent, trajectories.states, times, alpha, consistent)


def _continued(trajectories: Trajectories, stream: ContinualRelease[Any, Any], consistent: bool) -> ReleasedHistograms:
    """Steps that the ledger has, as they were; then the others."""
    if stream.states is not None:
        require_same_states(stream.states, trajectories.states, what="the data")
    _require_same_step(stream.step, trajectories.step, what="release")
    stream.refresh()
    new = [time for time in trajectories.times if not stream.has(time)]
    _require_continuation(trajectories, stream, new)
    truth = trajectories.histogram()
    outputs = [stream.release(row, time=time) for row, time in zip(truth, trajectories.times, strict=True)]
    published = [t for t, output in enumerate(outputs) if output is not None]
    if not published:
        raise BudgetError("none of these steps was published, or has a budget to be")
    counts = np.stack([output for output in outputs if output is not None])
    epsilons = np.array([stream.row(trajectories.times[t]).epsilon for t in published])
    released = _assemble(trajectories, published, counts, epsilons, stream.alpha, consistent)
    # A time is published under the label that it had first, in whatever spelling it comes again.
    return replace(released, times=tuple(stream.row(time).time for time in released.times))


def _require_same_step(expected: str | None, found: str | None, *, what: str) -> None:
    if None not in (expected, found) and expected != found:
        raise InputError(
            f"the {what} is for steps of {expected}, the data have steps of {found}: a correlation over another "
            "length of time says nothing about them; plan with a history of the same step"
        )


def _require_continuation(trajectories: Trajectories, stream: ContinualRelease[Any, Any], new: list[str]) -> None:
    """New steps must follow all that the ledger has, one step or more apart, and there must be budgets for all of them."""
    times = trajectories.times
    if new and any(time not in new for time in times[times.index(new[0]) :]):
        raise InputError(
            f"time {new[0]!r} comes before steps that were released already, but was not released itself; steps are accounted "
            "for in order, so a late one cannot be released any more: leave it out"
        )
    left = stream.steps_left
    if left is not None and len(new) > left:
        raise BudgetError(
            f"the release ends before the data do: its plan or horizon has room for {max(left, 0)} more, the data have "
            f"{len(new)} new steps; leave out the last, or begin another release with a ledger of its own"
        )
    stream.require_next(new)


def gap_before(trajectories: Trajectories, stream: ContinualRelease[Any, Any]) -> str | None:
    """What to know where new steps do not follow the last one released at once; None if they do, or nothing says."""
    new = [time for time in trajectories.times if not stream.has(time)]
    if not new or not len(stream):
        return None
    before = stream.ledger[-1].time
    length, step = distance(before, new[0]), stream.step or trajectories.step
    expected = None if step is None else step_length(step, new[0])
    if length is None or expected is None or length < 1.5 * expected:
        return None
    return (
        f"{new[0]} is {in_words(length, new[0])} after {before}, the last step released, and one step is {step}: the times "
        "between were passed over, and cannot be released any more"
    )


def save_released(released: ReleasedHistograms, path: str | Path) -> None:
    """Write released histograms: Parquet (with the guarantee in its metadata) or CSV, one row per time and state.

    Raises
    ------
    InputError
        The suffix is neither .parquet nor .csv.
    OutputError
        The file cannot be written; what stood there is untouched.
    """
    write = _write_parquet if release_suffix(path) == ".parquet" else _write_csv
    with replacing(path) as temporary:
        write(released, temporary)


def load_released(path: str | Path) -> ReleasedHistograms:
    """Read histograms that `save_released` wrote.

    Raises
    ------
    MissingFileError
        There is no such file.
    InputError
        It holds something else.
    """
    read = _read_parquet if release_suffix(path) == ".parquet" else _read_csv
    source = require_file(path, "released histograms")
    try:
        return read(source)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, OSError, csv.Error) as error:
        raise InputError(
            f"{source}: expected histograms as `temporaldp release` writes them, got something else: {brief(error)}"
        ) from None


def release_suffix(path: str | Path) -> str:
    """The suffix of a place for released histograms, if it is one that can be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in {".parquet", ".csv"}:
        raise InputError(f"expected a file ending in .parquet or .csv for released histograms, got {str(path)!r}")
    return suffix


def _guarantee(released: ReleasedHistograms) -> dict[str, Any]:
    return {
        "mechanism": "discrete Laplace (OpenDP)",
        "neighboring_relation": released.neighboring_relation,
        "l1_sensitivity": HISTOGRAM_SENSITIVITY,
        "alpha": released.alpha,
        "consistent": released.consistent,
        "unit": "nats",
    }


def _write_parquet(released: ReleasedHistograms, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table(released.columns())
    parquet.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(_guarantee(released))}), str(path))


def _read_parquet(path: Path) -> ReleasedHistograms:
    from pyarrow import parquet

    table = parquet.read_table(str(path))
    said = json.loads((table.schema.metadata or {}).get(METADATA_KEY, b"{}"))
    return _assembled({name: table.column(name).to_pylist() for name in COLUMNS}, said)


def _write_csv(released: ReleasedHistograms, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(zip(*released.columns().values(), strict=True))


def _read_csv(path: Path) -> ReleasedHistograms:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file, strict=True))
    if any(None in row or None in row.values() for row in rows):
        raise InputError(f"expected {len(COLUMNS)} cells in every row ({', '.join(COLUMNS)})")
    return _assembled({name: [row[name] for row in rows] for name in COLUMNS}, {})


def _assembled(columns: dict[str, list[Any]], said: dict[str, Any]) -> ReleasedHistograms:
    """Back from long form, every count to its time and state: people sort such files."""
    times, states = tuple(dict.fromkeys(columns["time"])), tuple(dict.fromkeys(columns["state"]))
    counts: dict[tuple[str, str], int] = {}
    spent: dict[str, float] = {}
    for time, state, count, epsilon in zip(*(columns[name] for name in COLUMNS), strict=True):
        if (time, state) in counts:
            raise InputError(f"time {time!r} and state {state!r} stand in two rows")
        if spent.setdefault(time, float(epsilon)) != float(epsilon):
            raise InputError(f"time {time!r} has two epsilons, {spent[time]:g} and {float(epsilon):g}")
        if isinstance(count, float) and not count.is_integer():
            raise InputError(f"expected whole counts, got {count}")
        counts[time, state] = int(count)
    if len(counts) != len(times) * len(states) or not counts:
        raise InputError(f"{len(counts)} rows do not make {len(times)} times of {len(states)} states")
    return ReleasedHistograms(
        np.array([[counts[time, state] for state in states] for time in times], dtype=np.int64),
        np.array([spent[time] for time in times]),
        states,
        times,
        said.get("alpha"),
        bool(said.get("consistent", False)),
        said.get("neighboring_relation", REPLACE_ONE),
    )
