"""Filtered counts of a continual release: estimated from the releases up to each step, and stored with the step."""

from __future__ import annotations

from typing import Any

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import IntArray
from temporaldp.core.accounting.kept_state import packed, unpacked
from temporaldp.data.counts.histogram import DiscreteLaplaceHistogram, NoisyHistogram
from temporaldp.data.counts.smoothed import step_release
from temporaldp.data.smoothing import (
    CountEstimate,
    FilterState,
    PublicCorrelation,
    StepRelease,
    advance,
    averaged,
    estimates,
)
from temporaldp.data.smoothing.counts_model import Belief, PredictionErrors
from temporaldp.publish.release.chain import LedgerRow
from temporaldp.publish.release.guards import Guard
from temporaldp.publish.release.ledger import Ledger
from temporaldp.publish.release.outputs import filtered_of, from_text


class StepFilter:
    """Filter of a release: its state after the steps of the ledger, and the counts of the next step.

    The state is computed from the ledger's rows, so that processes always agree; it is brought up to date when the next step is
    drawn. A checkpoint of the ledger stores it exactly.

    Parameters
    ----------
    correlation : PublicCorrelation
    guard : Guard
        Source of the scale of each step's noise.
    """

    def __init__(self, correlation: PublicCorrelation, guard: Guard) -> None:
        self._correlation, self._guard = correlation, guard
        self._state: FilterState | None = None
        self._known = 0  # rows of the ledger that the state is after; without a state, none of them was published

    def kept_state(self, ledger: Ledger) -> dict[str, Any]:
        """State after the ledger's rows, as JSON values."""
        self._catch_up(ledger)
        state = self._state
        document = None
        if state is not None:
            belief, errors = state.belief, state.errors
            arrays = belief.mean, belief.covariance, errors.mean, errors.variance, state.widenings, state.fit
            document = {"arrays": [packed(one) for one in arrays], "total": state.total, "n_steps": state.n_steps}
        return {"known": self._known, "state": document}

    def resume(self, kept: dict[str, Any]) -> None:
        """Continue from a saved state."""
        state, document = None, kept["state"]
        if document is not None:
            mean, covariance, error, variance, widenings, fit = (unpacked(one) for one in document["arrays"])
            belief, errors = Belief(mean, covariance), PredictionErrors(error, variance)
            state = FilterState(belief, errors, widenings, fit, float(document["total"]), int(document["n_steps"]))
        self._state, self._known = state, int(kept["known"])

    def next_step(self, ledger: Ledger, counts: IntArray, epsilon: float, total: int) -> dict[str, Any]:
        """Filtered counts to store with the step after the ledger's last one, as JSON values."""
        self._catch_up(ledger)
        step = self._released(len(ledger), counts, epsilon, float(total))
        state = self._after(step)
        mean, variance = averaged(state.belief, state.weights)
        found = estimates(mean[None], variance[None], [step])
        return {part: getattr(found, part)[0].tolist() for part in ("counts", "lower", "upper")} | {"total": int(total)}

    def _catch_up(self, ledger: Ledger) -> None:
        for row in ledger[self._known :]:
            if row.output is not None:
                total = float(stored(row)["total"])
                step = self._released(row.step, from_text(row.output), row.epsilon, total)
                self._state = self._after(step)
            elif self._state is not None:
                self._state = self._after(StepRelease(None, 1.0, 1.0, self._state.total))
            self._known += 1

    def _after(self, step: StepRelease) -> FilterState:
        state = self._state
        if state is None:
            for _ in range(self._known):  # their totals are unknown: that of the first step that has one
                state = advance(state, StepRelease(None, 1.0, 1.0, step.total), self._correlation)
        state = advance(state, step, self._correlation)
        return state.only(state.kept)

    def _released(self, position: int, counts: IntArray, epsilon: float, total: float) -> StepRelease:
        scale = float(self._guard.drawn_scales([position], np.array([epsilon]))[0])
        return step_release(counts, scale, self._guard.noise, total)


def stored(row: LedgerRow) -> dict[str, Any]:
    """Filtered counts stored with a row.

    Raises
    ------
    InputError
        The release was made without a filter.
    """
    found = None if row.output is None else filtered_of(row.output)
    if found is None:
        raise InputError(
            f"the ledger has no filtered counts for time {row.time!r}: give the release a correlation from its first step on"
        )
    return found


def stored_estimate(row: LedgerRow) -> CountEstimate:
    """The filtered counts of a row. Errors as for `stored`."""
    found = stored(row)
    return CountEstimate(*(np.array(found[part], dtype=np.float64) for part in ("counts", "lower", "upper")))


def require_histogram(mechanism: Any) -> None:
    """Raise `InputError` for a mechanism whose outputs are not counts with noise of a known scale."""
    if not isinstance(mechanism, DiscreteLaplaceHistogram | NoisyHistogram):
        raise InputError(
            f"expected a histogram (DiscreteLaplaceHistogram, NoisyHistogram) to filter, got {type(mechanism).__name__}: the "
            "noise of its outputs is not known"
        )
