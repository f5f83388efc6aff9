"""One matrix for each phase of a period, estimated from traces and tied to the matrix of all phases together."""

from __future__ import annotations

import numpy as np

from temporaldp.base.errors import EstimationError, InputError
from temporaldp.base.values import real_number
from temporaldp.core.correlation.adversary import Adversary
from temporaldp.core.correlation.protocol import Periodic
from temporaldp.core.correlation.transition import TransitionMatrix
from temporaldp.data.tables.estimation import BOTH, estimated
from temporaldp.data.tables.traces import Traces, codes_of


def estimate_periodic(
    trajectories: Traces, *, period: int, phase: int | None = None, prior: float = 0.0, tie: float = 10.0
) -> Adversary:
    """One matrix for each phase of a period, tied to the matrix of all phases together.

    ``P_f[i, j] = (N_f[i, j] + tie P[i, j]) / (N_f[i] + tie)``, N_f the transitions that begin at phase f and P the matrix of
    all: a phase with few transitions is assumed to be like the others.

    Parameters
    ----------
    trajectories : Traces
        The first time is phase 0.
    period : int, >= 2
        In steps.
    phase : int, optional
        Phase of the first step of the release. Default: that of the first time of the traces (or of the time after their last
        one, which is the same), for which the period must divide their number of steps.
    prior : float, >= 0
        Dirichlet concentration of every cell of P.
    tie : float, > 0
        Weight of P in every row of every phase, in transitions.

    Raises
    ------
    InputError
        The period does not divide the steps and no phase is given; period or tie out of range.
    EstimationError
        Times are missing, so that phases are unknown; or a state has no transition and there is no prior.

    Examples
    --------
    >>> from temporaldp import Trajectories
    >>> walks = Trajectories.from_sequences([["a", "b", "b", "a"], ["b", "a", "a", "b"]])
    >>> adversary = estimate_periodic(walks, period=2, tie=1.0)
    >>> adversary.forward.matrices[1].dense()            # no user moves between times 1 and 2
    array([[0.66666667, 0.33333333],
           [0.33333333, 0.66666667]])
    """
    if not 2 <= period < trajectories.n_times:
        raise InputError(
            f"expected a period from 2 steps to fewer than the {trajectories.n_times} of the traces, got {period}"
        )
    real_number(tie, "tie", gt=0.0)
    real_number(prior, "prior", ge=0.0)
    if phase is None and trajectories.n_times % period:
        raise InputError(
            f"a period of {period} steps does not divide the {trajectories.n_times} steps of the traces, so that a release "
            "after them begins at another phase than they do; set it (phase=, or --set correlation.phase=N), "
            "0 being that of their first time"
        )
    if not trajectories.consecutive.all():
        raise EstimationError(
            "some times of the traces are more than one step apart, so that their phases are unknown; give one row a step"
        )
    n = trajectories.n_states
    codes, counts = codes_of(trajectories), np.zeros((period, n, n))
    for t in range(
        codes.shape[1] - 1
    ):  # step by step: the transitions of all steps would take several times the memory
        both = (codes[:, t] >= 0) & (codes[:, t + 1] >= 0)
        np.add.at(counts[t % period], (codes[both, t], codes[both, t + 1]), 1.0)
    sides = []
    for direction, tables in zip(BOTH, (counts.transpose(0, 2, 1), counts), strict=True):
        whole = estimated(trajectories, counts.sum(axis=0), direction, prior)
        weights = tables + tie * whole.dense()
        rows = weights / weights.sum(axis=2, keepdims=True)
        sides.append([TransitionMatrix(one, trajectories.states) for one in rows])
    return Adversary(*(Periodic(one, phase=phase or 0) for one in sides))
