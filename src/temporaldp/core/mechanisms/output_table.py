"""Mechanisms with few outputs, by the probability of each output for each state."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from temporaldp.base.errors import InputError, StateError
from temporaldp.base.names import require_unnamed
from temporaldp.base.values import FloatArray, assign, compared_by_value, read_only, real_array, whole_number
from temporaldp.core.correlation.transition import ROW_SUM_TOLERANCE
from temporaldp.core.mechanisms.protocol import ROUNDED, Mechanism, both_sides, probabilities_of, require_positive


@dataclass(frozen=True, slots=True)
class RandomizedResponse(Mechanism):
    """Report of the true state or, with equal probability, one of the others.

    Parameters
    ----------
    epsilon : float, > 0
        The true state is e^epsilon times as likely as each other one.
    n_states : int
        Number of states, at least 2.
    """

    epsilon: float
    n_states: int = 2

    def __post_init__(self) -> None:
        require_positive(self, "epsilon")
        whole_number(self.n_states, "n_states", least=2)

    @property
    def pure_epsilon(self) -> float:
        """The epsilon of the response."""
        return self.epsilon

    @property
    def probabilities(self) -> FloatArray:
        """The probability of each response for each state, shape (n, n)."""
        weights = np.exp(self.epsilon * (np.eye(self.n_states) - 1.0))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon."""
        true = 1.0 / (1.0 + (self.n_states - 1) * math.exp(-self.epsilon))
        gap = self.epsilon - losses
        return both_sides(true * -np.expm1(-np.maximum(gap, 0.0)), gap, self.epsilon)


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class OutputTable(Mechanism):
    """Mechanism with finitely many outputs, given by the probability of each output.

    Parameters
    ----------
    probabilities : array_like, shape (n, m)
        Element (x, o) is the probability of output o if the state is x. Rows sum to 1.

    Notes
    -----
    The privacy profile is the maximum over all ordered pairs of rows.
    """

    probabilities: FloatArray

    def __post_init__(self) -> None:
        what = "a table of probabilities, one row per state and one column per output,"
        require_unnamed(self.probabilities, what)
        table = real_array(self.probabilities, what, ge=0.0)
        if table.ndim != 2 or table.shape[0] < 2:
            raise InputError(f"expected a table of shape (n, m) with n >= 2 states, got shape {table.shape}")
        if not np.allclose(table.sum(axis=1), 1.0, rtol=0.0, atol=ROW_SUM_TOLERANCE):
            bad = int(np.argmax(np.abs(table.sum(axis=1) - 1.0)))
            raise InputError(f"expected rows that sum to 1, row {bad} sums to {table[bad].sum():g}")
        assign(self, probabilities=read_only(table))

    @property
    def pure_epsilon(self) -> float:
        """The largest log ratio of two probabilities of one output."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.probabilities[:, self.probabilities.any(axis=0)])
        spread = np.where(np.isneginf(logs.min(axis=0)), np.inf, logs.max(axis=0) - logs.min(axis=0))
        finite = np.abs(logs[np.isfinite(logs)]).max(initial=0.0)
        return float(spread.max() * (1.0 + ROUNDED) + ROUNDED * finite)

    @property
    def limit(self) -> float:
        """The largest probability, for one state, of outputs that are impossible for another."""
        return float(max(row[other == 0.0].sum() for row in self.probabilities for other in self.probabilities))

    def bounds(self, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon."""
        low, up = np.zeros(losses.size), np.zeros(losses.size)
        for value, other in itertools.permutations(range(len(self.probabilities)), 2):
            beneath, above = self.pair_bounds(value, other, losses)
            np.maximum(up, above, out=up)
            np.maximum(low, beneath, out=low)
        return low, up

    def pair_bounds(self, value: int, other: int, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Delta at each epsilon of one ordered pair of states, from below and from above."""
        ratio = np.exp(np.minimum(losses, 700.0))[:, None]
        likely, rare = self.probabilities[value], self.probabilities[other]
        over = likely * (1.0 + ROUNDED) - ratio * (rare * (1.0 - ROUNDED))
        under = likely * (1.0 - ROUNDED) - ratio * (rare * (1.0 + ROUNDED))
        return tuple(probabilities_of(np.maximum(one, 0.0).sum(axis=1)) for one in (under, over))  # type: ignore[return-value]


def require_states(releases: Iterable[Iterable[Mechanism]], n_states: int | None) -> None:
    """Check that a table of outputs has a row for each state of the adversary.

    Raises
    ------
    StateError
        The numbers differ.
    """
    for mechanism in {id(one): one for release in releases for one in release}.values():
        if isinstance(mechanism, OutputTable) and n_states is not None and len(mechanism.probabilities) != n_states:
            raise StateError(
                f"the table of outputs has {len(mechanism.probabilities)} rows, one per state, but the correlation has "
                f"{n_states} states"
            )
