"""Released histograms, and their Parquet and CSV files."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from temporaldp.base.arrow import Table
from temporaldp.base.display import bound, figure_of, spread, summary
from temporaldp.base.errors import InputError
from temporaldp.base.extras import needing
from temporaldp.base.names import positions, printable, state_names
from temporaldp.base.values import REPLACE_ONE, FloatArray, IntArray, compared_by_value, copy_in, real_array
from temporaldp.core.accounting.methods import accounting_from
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.planning.histogram_noise import HISTOGRAM_SENSITIVITY, Noise, checked_noise, laplace_scales
from temporaldp.data.files.atomic import brief, require_file, suffix_of
from temporaldp.data.files.columns import METADATA_KEY, save_columns, unguarded, with_names
from temporaldp.data.files.matrices import UNREADABLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from temporaldp.data.counts.smoothed import SmoothedHistograms


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReleasedHistograms(Table):
    """Noisy histograms of T steps, with the epsilon of each step.

    Parameters
    ----------
    counts : int array, shape (T, n)
    epsilons : array, shape (T,)
        Epsilon of each step, in nats, by OpenDP's privacy map; under approximate DP, that of the step by itself at delta.
    scales : array, shape (T,)
        Scale of the noise of each step, in counts.
    states : tuple of n names
    times : tuple of T labels
    alpha : float or None
        Level of the plan; None where a file does not contain it.
    consistent : bool
        Whether the counts were post-processed to non-negative integers with the public total.
    neighboring_relation : str
        Neighbouring relation of the guarantee.
    accounting : Accounting or None
        The method by which alpha is satisfied; None where a file does not contain it.
    delta : float
        Delta of the epsilons; 0 for pure differential privacy.
    noise : {"laplace", "gaussian"}
        Discrete Laplace or discrete Gaussian noise.
    """

    counts: IntArray
    epsilons: FloatArray
    scales: FloatArray
    states: tuple[str, ...]
    times: tuple[str, ...]
    alpha: float | None = None
    consistent: bool = False
    neighboring_relation: str = REPLACE_ONE
    accounting: Accounting[Any, Any] | None = None
    delta: float = 0.0
    noise: Noise = "laplace"

    def __post_init__(self) -> None:
        copy_in(self, "counts", kind=np.int64)
        copy_in(self, "epsilons", "scales")
        state_names(self.states)
        for time in self.times:
            printable(time, "time")
        steps = (len(self.times),)
        if self.counts.shape != (*steps, len(self.states)):
            raise InputError(f"expected counts of shape {(*steps, len(self.states))}, got {self.counts.shape}")
        # At a delta, a release with enough noise has an epsilon of 0; with a budget of 0 there is no finite scale.
        real_array(self.epsilons, "epsilons", shape=steps, ge=0.0)
        real_array(self.scales, "scales", shape=steps, gt=0.0)

    def __repr__(self) -> str:
        return f"ReleasedHistograms({len(self.times)} steps, {len(self.states)} states, {self.neighboring_relation})"

    def columns(self) -> dict[str, list[Any]]:
        """Columns in long form: time, state, count, epsilon and, under approximate DP, the noise."""
        n = len(self.states)
        long: dict[str, list[Any]] = {
            "time": [time for time in self.times for _ in range(n)],
            "state": list(self.states) * len(self.times),
            "count": self.counts.ravel().tolist(),
            "epsilon": np.repeat(self.epsilons, n).tolist(),
        }
        if self.delta > 0.0:
            long |= {
                "delta": [self.delta] * self.counts.size,
                "noise": [self.noise] * self.counts.size,
                "scale": np.repeat(self.scales, n).tolist(),
            }
        return long

    def reordered(self, states: tuple[str, ...]) -> ReleasedHistograms:
        """The histograms with their states in another order."""
        order = positions(self.states, states, what="the released histograms")
        return replace(self, counts=self.counts[:, order], states=states)

    def plot(self, *, true_counts: IntArray | None = None, smoothed: SmoothedHistograms | None = None) -> Figure:
        """Draw the counts of each state over time (needs Matplotlib).

        Parameters
        ----------
        true_counts : int array, shape (T, n), optional
            Drawn beside them, with a band of 95 % of the noise. They are protected: do not publish the figure.
        smoothed : SmoothedHistograms, optional
            Smoothed counts, drawn with their intervals.

        Returns
        -------
        matplotlib.figure.Figure
            A new figure, or `ax`.
        """
        return figure_of(self, true_counts=true_counts, smoothed=smoothed)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        shown = {
            "states": ", ".join(self.states[:8]) + (", ..." if len(self.states) > 8 else ""),
            "spent at each step, in nats": spread(self.epsilons, up=True),
            "scale of the noise, in counts": spread(self.scales),
            "holds": "not said" if self.alpha is None else f"alpha = {bound(self.alpha)}",
        }
        return summary(f"ReleasedHistograms, {len(self.times)} steps", shown, self.neighboring_relation)


def save_released(released: ReleasedHistograms, path: str | Path, *, time: str = "time", state: str = "state") -> None:
    """Write released histograms: Parquet (with the guarantee in its metadata) or CSV, one row per time and state.

    Parameters
    ----------
    released : ReleasedHistograms
    path : path
    time, state : str
        Names of the first two columns.

    Raises
    ------
    InputError
        The suffix is neither .parquet nor .csv.
    OutputError
        The file cannot be written; what stood there is untouched.
    """
    release_suffix(path)
    guarantee = {
        "mechanism": f"discrete {released.noise.capitalize()} (OpenDP)",
        "noise": released.noise,
        "neighboring_relation": released.neighboring_relation,
        "l1_sensitivity": HISTOGRAM_SENSITIVITY,
        "alpha": released.alpha,
        "delta": released.delta,
        "scales": released.scales.tolist(),
        "accounting": None if released.accounting is None else released.accounting.document(),
        "consistent": released.consistent,
        "unit": "nats",
    }
    save_columns(with_names(released.columns(), time, state), path, guarantee)


def load_released(path: str | Path) -> ReleasedHistograms:
    """Read histograms written by `save_released`.

    Parameters
    ----------
    path : str or Path
        A Parquet or CSV file.

    Returns
    -------
    ReleasedHistograms

    Raises
    ------
    MissingFileError
        There is no such file.
    InputError
        The file does not contain released histograms.
    """
    read = _read_parquet if release_suffix(path) == ".parquet" else _read_csv
    source = require_file(path, "released histograms")
    try:
        return _assembled(*read(source))
    except (*UNREADABLE, OSError) as error:
        raise InputError(
            f"{source}: expected histograms as `temporaldp release` writes them, got something else: {brief(error)}"
        ) from None


def release_suffix(path: str | Path) -> str:
    """The suffix of a file of released histograms; `InputError` for one that cannot be written."""
    return suffix_of(path, (".parquet", ".csv"), "released histograms")


Columns: TypeAlias = dict[str, list[Any]]


def _read_parquet(path: Path) -> tuple[Columns, dict[str, Any]]:
    """The columns of a file, and its terms."""
    with needing("tables"):
        from pyarrow import parquet

    table = parquet.read_table(str(path))
    said = json.loads((table.schema.metadata or {}).get(METADATA_KEY, b"{}"))
    return {name: table.column(name).to_pylist() for name in table.column_names}, said


def _read_csv(path: Path) -> tuple[Columns, dict[str, Any]]:
    """The columns of a file, and what those of the noise say; without them, its epsilons have delta = 0."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        header, *rows = [row for row in csv.reader(file, strict=True) if row] or [["time", "state", "count", "epsilon"]]
    if any(len(row) != len(header) for row in rows):
        raise InputError("expected 4 cells in every row (time, state, count, epsilon)")
    columns: Columns = {name: [unguarded(row[k]) for row in rows] for k, name in enumerate(header)}
    if "delta" not in columns or not rows:
        return columns, {}
    kinds = set(zip(map(float, columns["delta"]), columns["noise"], strict=True))
    times = columns[_time_and_state(columns)[0]]
    scales = dict.fromkeys(zip(times, map(float, columns["scale"]), strict=True))
    if len(kinds) != 1 or len(scales) != len(set(times)):
        raise InputError("expected one delta, one kind of noise, and one scale a time")
    ((delta, noise),) = kinds
    return columns, {"delta": delta, "noise": noise, "scales": [scale for _, scale in scales]}


def _time_and_state(columns: Columns) -> list[str]:
    """Names of the columns of times and states: the first two, if they have other names."""
    return ["time", "state"] if {"time", "state"} <= set(columns) else list(columns)[:2]


def _assembled(columns: Columns, said: dict[str, Any]) -> ReleasedHistograms:
    """Back from long form, every count to its time and state: people sort such files."""
    cells = [columns[name] for name in (*_time_and_state(columns), "count", "epsilon")]
    times, states = tuple(dict.fromkeys(cells[0])), tuple(dict.fromkeys(cells[1]))
    counts: dict[tuple[str, str], int] = {}
    spent: dict[str, float] = {}
    for time, state, count, epsilon in zip(*cells, strict=True):
        if (time, state) in counts:
            raise InputError(f"time {time!r} and state {state!r} are in two rows")
        if spent.setdefault(time, float(epsilon)) != float(epsilon):
            raise InputError(f"time {time!r} has two epsilons, {spent[time]:g} and {float(epsilon):g}")
        if isinstance(count, float) and not count.is_integer():
            raise InputError(f"expected whole counts, got {count}")
        counts[time, state] = int(count)
    if len(counts) != len(times) * len(states) or not counts:
        raise InputError(
            f"expected a row for each of {len(times)} times and {len(states)} states, got {len(counts)} rows"
        )
    epsilons = np.array([spent[time] for time in times])
    return ReleasedHistograms(
        np.array([[counts[time, state] for state in states] for time in times], dtype=np.int64),
        epsilons,
        said["scales"] if "scales" in said else laplace_scales(epsilons),
        states,
        times,
        said.get("alpha"),
        bool(said.get("consistent", False)),
        said.get("neighboring_relation", REPLACE_ONE),
        None if said.get("accounting") is None else accounting_from(said["accounting"]),
        float(said.get("delta", 0.0)),
        checked_noise(said.get("noise", "laplace")),
    )
