"""Distances of states, for mechanisms with metric privacy, and the equivalent box of likelihoods, if any."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import InputError, StateError
from temporaldp.base.names import labels_of, positions
from temporaldp.base.values import LARGEST, ULP, FloatArray
from temporaldp.core.kernels.lifting import closed
from temporaldp.core.mechanisms.likelihood_box import LikelihoodBox


def box_of(metric: FloatArray) -> LikelihoodBox | None:
    """The box whose log ratios are these distances, if there is one; leakage under the metric is then exact.

    ``metric[i, j] = high[i] - low[j]`` for all i and j that differ. A metric of two states always is one.
    """
    n = len(metric)
    low, high = np.zeros(n), np.zeros(n)
    high[1:] = metric[1:, 0]
    low[1:] = [high[1 if j != 1 else n - 1] - metric[1 if j != 1 else n - 1, j] for j in range(1, n)] if n > 2 else 0.0
    high[0] = (metric[0, 1:] + low[1:]).max()
    reach = high[:, None] - low[None, :]
    np.fill_diagonal(reach, 0.0)
    off = metric - reach
    if not (np.abs(off) <= 4.0 * ULP * metric.max()).all():
        return None
    if (off > 0.0).any():  # by rounding: the box must hold all that the metric allows
        high = high + float(off.max()) + ULP * max(np.abs(high).max(), np.abs(low).max())
    return LikelihoodBox(low, high) if low.max() <= high.min() else None


def checked_distances(
    metric: ArrayLike | Any, states: tuple[str, ...] | None, names: tuple[str, ...] | None = None
) -> FloatArray:
    """The distances that a step's epsilon multiplies, closed under the triangle inequality.

    A table with named rows and columns (pandas), or one whose rows have these `names`, is brought into the order of the
    states; without states, a table's columns into the order of its rows.
    """
    try:
        distances = np.array(metric)
        numbers = not np.iscomplexobj(distances)  # whose imaginary parts NumPy would drop
        distances = distances.astype(np.float64) if numbers else distances
    except (TypeError, ValueError):
        numbers = False
    if not numbers:
        raise InputError("expected the metric to be a square array of real numbers, one row and column per state")
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1] or len(distances) < 2:
        raise InputError(
            f"expected a metric of shape (n, n), one row and column per state, got shape {distances.shape}"
        )
    if states is not None and len(distances) != len(states):
        raise StateError(f"the metric has {len(distances)} rows, but the correlation has {len(states)} states")
    labels = labels_of(metric) or (None if names is None else (names, names))
    if labels is not None:
        order = labels[0] if states is None else states
        distances = distances[np.ix_(*(positions(names, order, what="the metric") for names in labels))]
    bad = ~((distances >= 0.0) & (distances <= LARGEST)) | (np.eye(len(distances), dtype=bool) & (distances != 0.0))
    if bad.any():
        i, j = (int(k[0]) for k in np.nonzero(bad))
        want = "0 on the diagonal" if i == j else f"from 0 to {LARGEST:g}"
        raise InputError(f"expected distances {want}, got {distances[i, j]} in row {i}, column {j} of the metric")
    if not distances.any():
        raise InputError("expected a metric that sets at least two states apart, got zeros only")
    return closed(distances)


def require_same_distances(one: FloatArray | None, other: FloatArray | None) -> None:
    """Raise an error where one budget is counted by two metrics; None is plain differential privacy."""
    plain, apart = (metric is None or bool((metric + np.eye(len(metric)) == 1.0).all()) for metric in (one, other))
    if plain != apart or not (plain or np.array_equal(np.asarray(one), np.asarray(other))):
        raise InputError(
            "the plan's epsilons multiply other distances than the accountant's: make both with one metric"
        )


def require_no_nearer(metric: FloatArray | None, what: str) -> None:
    """Raise an error for a mechanism with the same epsilon for any two states if a metric has distances below 1."""
    nearest = 1.0 if metric is None else float(metric[~np.eye(len(metric), dtype=bool)].min())
    if nearest < 1.0:
        raise InputError(
            f"{what} may distinguish any two states by the whole epsilon that it spends, but the metric puts two of them "
            f"{nearest:g} apart, so less would be counted: "
            + (f"multiply the metric by {math.ceil(1e6 / nearest) / 1e6:g} or more, " if nearest > 0.0 else "")
            + "leave it out, or give a mechanism whose guarantee is the metric's own"
        )
