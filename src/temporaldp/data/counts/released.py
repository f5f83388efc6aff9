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
from temporaldp.base.values import REPLACE_ONE, BoolArray, FloatArray, IntArray, compared_by_value, copy_in, real_array
from temporaldp.core.accounting.methods import accounting_from
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.planning import Guarantee
from temporaldp.core.planning.guarantee import TEMPORAL
from temporaldp.core.planning.histogram_noise import HISTOGRAM_SENSITIVITY, Noise, checked_noise
from temporaldp.data.files.atomic import brief, require_file, suffix_of
from temporaldp.data.files.columns import METADATA_KEY, save_columns, unguarded, with_names
from temporaldp.data.files.matrices import UNREADABLE
from temporaldp.data.smoothing import CountEstimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from temporaldp.data.counts.smoothed import SmoothedHistograms


ESTIMATES = {"estimate": "counts", "low": "lower", "high": "upper"}
"""Columns of estimates in a file, and the parts of a `CountEstimate`."""

COLUMNS = ("time", "state", *ESTIMATES, "noisy", "scale", "epsilon", "delta", "noise", "guarantee")
"""All columns that a file may have."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReleasedHistograms(Table):
    """Noisy histograms of T steps, with the epsilon of each step.

    Parameters
    ----------
    counts : int array, shape (T, n)
        0 at steps that were not drawn, whose epsilon is 0 and whose scale is inf: they are there for their estimates.
    epsilons : array, shape (T,)
        Epsilon of each step, in nats, by OpenDP's privacy map; under approximate DP, that of the step by itself at delta.
    scales : array, shape (T,)
        Scale of the noise of each step, in counts.
    states : tuple of n names
    times : tuple of T labels
    alpha : float or None
        Level of the plan; None where a file does not contain it.
    estimates : CountEstimate or None
        Estimates of the true counts with 95 % intervals, from released counts and public knowledge alone: to be read, where
        `counts` are what the guarantee was paid for.
    neighboring_relation : str
        Neighbouring relation of the guarantee.
    accounting : Accounting or None
        The method by which alpha is satisfied; None where a file does not contain it.
    delta : float
        Delta of the epsilons; 0 for pure differential privacy.
    noise : {"laplace", "gaussian"}
        Discrete Laplace or discrete Gaussian noise.
    guarantee : Guarantee
        What alpha is about.
    """

    counts: IntArray
    epsilons: FloatArray
    scales: FloatArray
    states: tuple[str, ...]
    times: tuple[str, ...]
    alpha: float | None = None
    estimates: CountEstimate | None = None
    neighboring_relation: str = REPLACE_ONE
    accounting: Accounting[Any, Any] | None = None
    delta: float = 0.0
    noise: Noise = "laplace"
    guarantee: Guarantee = TEMPORAL

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
        real_array(np.where(self.drawn, self.scales, 1.0), "scales", shape=steps, gt=0.0)
        if self.counts[~self.drawn].any() or self.epsilons[~self.drawn].any():
            raise InputError("expected counts and epsilons of 0 at steps that were not drawn, which have no scale")
        if self.estimates is not None:
            for name in ESTIMATES.values():
                real_array(getattr(self.estimates, name), f"{name} of the estimates", shape=self.counts.shape)

    def __repr__(self) -> str:
        return f"ReleasedHistograms({len(self.times)} steps, {len(self.states)} states, {self.neighboring_relation})"

    @property
    def drawn(self) -> BoolArray:
        """Mask of the steps whose counts were drawn, shape (T,)."""
        return np.asarray(self.scales != np.inf)

    @property
    def drawn_scales(self) -> list[float | None]:
        """Scale of the noise of each step; None at those that were not drawn."""
        return [None if scale == np.inf else scale for scale in self.scales.tolist()]

    def columns(self) -> dict[str, list[Any]]:
        """Columns in long form: time, state, estimate, low and high (where there are estimates), noisy, scale, epsilon.

        Noisy and scale are None at steps that were not drawn.

        Under approximate DP, also delta and the noise; of another guarantee than the temporal level, its name.
        """
        n, estimates = len(self.states), self.estimates
        long: dict[str, list[Any]] = {
            "time": [time for time in self.times for _ in range(n)],
            "state": list(self.states) * len(self.times),
        }
        if estimates is not None:
            long |= {
                column: np.round(getattr(estimates, name), 2).ravel().tolist() for column, name in ESTIMATES.items()
            }
        long |= {
            "noisy": [
                count if self.drawn[t] else None for t in range(len(self.times)) for count in self.counts[t].tolist()
            ],
            "scale": [scale and float(f"{scale:.6g}") for scale in self.drawn_scales for _ in range(n)],
            "epsilon": [float(bound(epsilon)) for epsilon in self.epsilons.tolist() for _ in range(n)],
        }
        if self.delta > 0.0:
            long |= {"delta": [self.delta] * self.counts.size, "noise": [self.noise] * self.counts.size}
        if not self.guarantee.is_temporal:
            long["guarantee"] = [str(self.guarantee)] * self.counts.size
        return long

    def reordered(self, states: tuple[str, ...]) -> ReleasedHistograms:
        """The histograms with their states in another order."""
        order = positions(self.states, states, what="the released histograms")
        moved = self.estimates and self.estimates.mapped(lambda one: one[:, order])
        return replace(self, counts=self.counts[:, order], states=states, estimates=moved)

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
        return figure_of(self if smoothed is None else smoothed.of(self), true_counts=true_counts)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        shown = {
            "states": ", ".join(self.states[:8]) + (", ..." if len(self.states) > 8 else ""),
            "spent at each step, in nats": spread(self.epsilons, up=True),
            "scale of the noise, in counts": spread(self.scales[self.drawn]) if self.drawn.any() else "",
            "holds": "not said" if self.alpha is None else f"alpha = {bound(self.alpha)}",
        }
        return summary(f"ReleasedHistograms, {len(self.times)} steps", shown, self.neighboring_relation)


def save_released(released: ReleasedHistograms, path: str | Path, *, time: str = "time", state: str = "state") -> None:
    """Write released histograms with their estimates: Parquet (with the guarantee in its metadata) or CSV.

    One row per time and state: time, state, estimate, low and high (a 95 % interval; where there are estimates), noisy (as
    drawn), scale of its noise, epsilon of the step.

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
        "scales": released.drawn_scales,
        "accounting": None if released.accounting is None else released.accounting.document(),
        "guarantee": str(released.guarantee),
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
        header, *rows = [row for row in csv.reader(file, strict=True) if row] or [["time", "state", "noisy"]]
    if any(len(row) != len(header) for row in rows):
        raise InputError("expected as many cells in every row as in the first one")
    columns: Columns = {name: [unguarded(row[k]) for row in rows] for k, name in enumerate(header)}
    terms = {name: set(columns[name]) for name in ("delta", "noise", "guarantee") if rows and name in columns}
    for name, found in terms.items():
        if len(found) != 1:
            raise InputError(f"expected one {name} in all rows, got {len(found)}")
    return columns, {name: found.pop() for name, found in terms.items()}


def _time_and_state(columns: Columns) -> list[str]:
    """Names of the columns of times and states: the first two, if they have other names."""
    return ["time", "state"] if {"time", "state"} <= set(columns) else list(columns)[:2]


def _assembled(columns: Columns, said: dict[str, Any]) -> ReleasedHistograms:
    """Back from long form, every cell to its time and state: people sort such files."""
    place = _time_and_state(columns)
    times, states = (tuple(dict.fromkeys(columns[name])) for name in place)
    at = {time: t for t, time in enumerate(times)}, {state: s for s, state in enumerate(states)}
    rows = [(at[0][time], at[1][state]) for time, state in zip(*(columns[name] for name in place), strict=True)]
    if len(set(rows)) < len(rows):
        time, state = next((times[t], states[s]) for t, s in rows if rows.count((t, s)) > 1)
        raise InputError(f"time {time!r} and state {state!r} are in two rows")
    if len(rows) != len(times) * len(states) or not rows:
        raise InputError(
            f"expected a row for each of {len(times)} times and {len(states)} states, got {len(rows)} rows"
        )

    def table(name: str) -> FloatArray:
        found = np.empty((len(times), len(states)))
        for row, cell in zip(rows, columns[name], strict=True):
            is_blank = cell in {None, ""} and name in {"noisy", "scale"}
            found[row] = np.nan if is_blank else float(cell)
        return found

    counts, scales, epsilons = table("noisy"), table("scale"), table("epsilon")
    not_drawn = np.isnan(counts) & np.isnan(scales) & (epsilons == 0.0)
    counts[not_drawn], scales[not_drawn] = 0.0, np.inf
    if (np.isinf(scales) > not_drawn).any() or np.isnan(scales).any():
        raise InputError("expected a scale in every row with a noisy count, and neither where epsilon is 0")
    is_whole = np.isfinite(counts) & (np.abs(counts) < 2.0**62) & (counts == np.floor(counts))
    if not is_whole.all():
        raise InputError(f"expected whole numbers in column noisy, got {counts[~is_whole][0]}")
    for name, each in (("scale", scales), ("epsilon", epsilons)):
        if differs := [time for time, row in zip(times, each, strict=True) if (row != row[0]).any()]:
            raise InputError(f"time {differs[0]!r} has several values in column {name}")
    return ReleasedHistograms(
        counts.astype(np.int64),
        epsilons[:, 0],
        scales[:, 0],
        states,
        times,
        said.get("alpha"),
        CountEstimate(*(table(name) for name in ESTIMATES)) if set(columns) >= set(ESTIMATES) else None,
        said.get("neighboring_relation", REPLACE_ONE),
        None if said.get("accounting") is None else accounting_from(said["accounting"]),
        float(said.get("delta", 0.0)),
        checked_noise(said.get("noise", "laplace")),
        Guarantee.of(said.get("guarantee", "temporal")),
    )
