"""Synthetic traces that follow a smoothed release and a public chain, for programs that need rows."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from temporaldp.correlation import Trajectories
from temporaldp.correlation.trajectories import ABSENT
from temporaldp.counts.smoothed import SmoothedHistograms
from temporaldp.errors import InputError
from temporaldp.files.atomic import replacing, suffix_of
from temporaldp.files.columns import guarded
from temporaldp.smoothing import PublicCorrelation, require_public
from temporaldp.values import FloatArray, IntArray

ROUNDS = 60
"""Of fitting a table of moves to both of its margins: they agree to a thousandth of a person long before."""

NOTE = "synthetic: no person's data"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticTraces:
    """Synthetic traces, and their distance from the smoothed counts and the chain that they follow.

    Parameters
    ----------
    trajectories : Trajectories
        Users are named "synthetic 1", "synthetic 2", ...
    count_gap : float
        Mean absolute difference of their counts from the smoothed counts, in people.
    move_gap : float
        Total variation distance, averaged over people, between their moves from each state and those of the chain: 0, up to
        rounding, where the smoothed counts follow the chain.
    """

    trajectories: Trajectories
    count_gap: float
    move_gap: float

    @property
    def note(self) -> str:
        """Description of the traces and of the quantities that they preserve."""
        return (
            f"Synthetic traces, drawn from released counts and a public chain: no row is a person. Their counts are within "
            f"{self.count_gap:.2g} of the smoothed ones on average, and their moves from one step to the next within "
            f"{100.0 * self.move_gap:.2g} % of the chain's. Nothing else is preserved: no longer memory, no differences "
            "between people, no totals over a person's whole trace"
        )

    def __repr__(self) -> str:
        return f"SyntheticTraces({self.trajectories.n_users} synthetic users, {self.trajectories.n_times} times)"


def synthetic_traces(
    smoothed: SmoothedHistograms, correlation: PublicCorrelation, *, seed: int | None = None
) -> SyntheticTraces:
    """Draw traces with the smoothed counts, within rounding, and moves that are as close as possible to the chain's.

    At each step the chain's moves are scaled, by state left and state reached, until they lead from the counts before to those
    now (iterative proportional fitting: the nearest moves in relative entropy); people are then moved at random by them.
    Only public data are used, so that it costs no privacy; `seed` need not be kept secret.

    Parameters
    ----------
    smoothed : SmoothedHistograms
    correlation : PublicCorrelation
    seed : int, optional

    Examples
    --------
    >>> from temporaldp import Adversary, Trajectories, load_sample, plan_budget, release_histograms, smooth
    >>> sample = load_sample()
    >>> people = Trajectories(sample.codes, states=sample.states, times=sample.times)
    >>> known = PublicCorrelation.from_history(people[:75])
    >>> plan = plan_budget(Adversary(forward=known.forward), alpha=1.0, horizon=47)
    >>> smoothed = smooth(release_histograms(people[75:], plan), known, total=76)
    >>> made = synthetic_traces(smoothed, known, seed=1)
    >>> made.trajectories.users[0], made.trajectories.n_users, made.count_gap < 1.5
    ('synthetic 1', 76, True)
    """
    public = require_public(correlation).reordered(smoothed.states)
    generator = np.random.default_rng(seed)
    n_users, n_steps = int(smoothed.totals.max()), len(smoothed.times)
    if n_users * n_steps > LARGEST:
        raise InputError(
            f"expected at most {LARGEST:g} rows, got {n_users} people at {n_steps} steps; draw for some steps"
        )
    codes = np.full((n_users, n_steps), ABSENT, dtype=np.int32)
    first = _whole(smoothed.counts[0])
    codes[generator.permutation(n_users)[: first.sum()], 0] = np.repeat(np.arange(len(first)), first)
    gaps = []
    for t in range(1, n_steps):
        P = public.matrix(t - 1).dense()
        gaps.append(_move(codes[:, t - 1], codes[:, t], P, smoothed.counts[t], generator))
    users = [f"synthetic {k + 1}" for k in range(n_users)]
    made = Trajectories(codes, states=smoothed.states, users=users, times=smoothed.times)
    count_gap = float(np.abs(made.histogram() - smoothed.counts).mean())
    return SyntheticTraces(made, count_gap, float(np.mean(gaps)) if gaps else 0.0)


LARGEST = 2e8
"""Rows."""


def _move(
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    P: FloatArray,
    target: FloatArray,
    generator: np.random.Generator,
) -> float:
    """Move all people by one step towards these counts, in place; return the distance of the moves from those of the chain."""
    n, total = len(P), round(float(target.sum()))
    present = np.flatnonzero(before >= 0)
    staying = generator.permutation(present)[:total]
    counts = np.bincount(before[staying], minlength=n)
    # No move is impossible, so that counts which the chain cannot reach can still be met.
    fitted = _fitted(counts[:, None] * (P + 1e-9), target * (len(staying) / max(total, 1)))
    for state in range(n):
        movers = staying[before[staying] == state]
        if movers.size:
            ends = np.cumsum(fitted[state]) * (movers.size / fitted[state].sum())
            numbers = np.diff(np.floor(ends + generator.uniform()), prepend=0.0).astype(np.int64)
            numbers[-1] += movers.size - numbers.sum()
            after[movers] = np.repeat(np.arange(n), np.maximum(numbers, 0))[: movers.size]
    if total > len(staying):  # those who come go where people are missing
        reached = np.bincount(after[staying], minlength=n)
        missing = np.maximum(target - reached, 0.0)
        newcomers = generator.permutation(np.flatnonzero(before < 0))[: total - len(staying)]
        chosen = _whole(missing * (len(newcomers) / missing.sum()))
        after[newcomers] = np.repeat(np.arange(n), chosen)
    moves = np.bincount(before[staying] * n + after[staying], minlength=n * n).reshape(n, n)
    return float(0.5 * np.abs(moves - counts[:, None] * P).sum() / max(len(staying), 1))


def _fitted(moves: FloatArray, target: FloatArray) -> FloatArray:
    """The moves, scaled by rows and columns until each row keeps its sum and columns sum to the target."""
    rows = moves.sum(axis=1)
    fitted = moves
    for _ in range(ROUNDS):
        reached = fitted.sum(axis=0)
        fitted = fitted * np.divide(target, reached, out=np.zeros_like(reached), where=reached > 0.0)
        kept = fitted.sum(axis=1)
        fitted = fitted * np.divide(rows, kept, out=np.zeros_like(rows), where=kept > 0.0)[:, None]
    lost = (fitted.sum(axis=1) <= 0.0) & (rows > 0.0)
    return np.where(lost[:, None], moves, fitted)


def _whole(counts: FloatArray) -> IntArray:
    """Whole numbers with the same sum, each next to its own: the largest remainders are rounded up."""
    floors = np.floor(counts)
    left = round(float(counts.sum() - floors.sum()))
    up = np.argsort(-(counts - floors), kind="stable")[:left]
    floors[up] += 1.0
    return floors.astype(np.int64)


def save_synthetic(traces: SyntheticTraces, path: str | Path) -> None:
    """Write synthetic traces as CSV, one row per user and time, each row marked by its user's name and the column `note`.

    Text that a spreadsheet would run as a formula is prefixed by an apostrophe.

    Raises
    ------
    InputError
        The suffix is not .csv.
    OutputError
        The file cannot be written; what stood there is untouched.
    """
    suffix_of(path, (".csv",), "synthetic traces")
    walks = traces.trajectories
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("user", "time", "state", "note"))
        for user, row in zip(walks.users, walks.codes.tolist(), strict=True):
            writer.writerows(
                (user, guarded(time), guarded(walks.states[code]), NOTE)
                for time, code in zip(walks.times, row, strict=True)
                if code >= 0
            )
