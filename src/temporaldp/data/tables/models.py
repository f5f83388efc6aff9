"""Models of the correlation, estimated from the same traces: an adversary may know any of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from temporaldp.base.errors import EstimationError, InputError, MatrixError
from temporaldp.base.names import listed
from temporaldp.base.values import real_number
from temporaldp.core.accounting.series import temporal_leakage
from temporaldp.core.correlation.adversary import Adversary
from temporaldp.core.correlation.transition import TransitionMatrix
from temporaldp.data.tables.estimation import BOTH, estimate_adversary, estimate_periodic, estimated
from temporaldp.data.tables.longer_memory import estimate_dwell_times, estimate_words
from temporaldp.data.tables.traces import Traces, as_traces, codes_of
from temporaldp.data.tables.trajectories import Trajectories

MODELS = ("first order", "second order", "dwell times", "time of day", "per person", "confidence")
"""Names of models. "confidence" may be followed by its probability."""

MOST_HIDDEN_STATES = 400
"""Hidden states up to which a longer memory is accounted for within minutes."""

MOST_PEOPLE = 200
"""People whose own matrices are compared; of more, as many at equal distances."""


def estimate_models(
    traces: Traces | Any,
    models: Sequence[str] = ("first order",),
    *,
    prior: float = 0.0,
    period: int | None = None,
    phase: int | None = None,
    longest: int = 6,
    share: float = 0.95,
    stationary: bool = True,
) -> dict[str, Adversary]:
    """Estimate several models of the correlation from the same traces; functions that take adversaries take all of them.

    Leakage, plans and accountants are then for an adversary who knows any of them: the largest upper bound counts.

    Parameters
    ----------
    traces : Traces, or a table
        A table has the columns user, time and state.
    models : sequence of str
        "first order": one matrix per direction. "second order": the next state depends on the last two. "dwell times": it
        depends on the state and its age. "time of day": a matrix for each phase of a period. "per person": the matrices of
        the person whom a share of people does not exceed in leakage, each person's tied to that of all. "confidence 0.95":
        all first-order matrices within intervals at this confidence.
    prior : float, >= 0
        Dirichlet prior of first-order matrices; not of "confidence".
    period, phase : int, optional
        Of "time of day", in steps, as for `estimate_periodic`.
    longest : int, >= 1
        Steps from which on a state counts as old, for "dwell times".
    share : float
        Of "per person", above 0 and at most 1.
    stationary : bool
        Of "confidence": whether intervals are for a release at other steps than those of the traces.

    Returns
    -------
    dict of str to Adversary

    Raises
    ------
    InputError
        No such model, or no period.
    EstimationError
        The traces do not determine a model; the message begins with its name.

    Examples
    --------
    >>> from temporaldp import load_sample, temporal_leakage
    >>> models = estimate_models(load_sample(), ["first order", "second order"])
    >>> series = temporal_leakage(models, [0.1] * 12)
    >>> series.worst_user, [member.name for member in series.members]
    ('second order', ['first order', 'second order'])
    """
    table, found = as_traces(traces), {}
    for name in models:
        kind, _, given = name.partition(" ") if name.startswith("confidence") else (name, "", "")
        try:
            if kind == "first order":
                one = estimate_adversary(table, prior=prior)
            elif kind == "second order":
                one = estimate_words(_affordable(table, table.n_states**2), order=2).adversary
            elif kind == "dwell times":
                one = estimate_dwell_times(_affordable(table, table.n_states * longest), longest=longest).adversary
            elif kind == "time of day":
                if period is None:
                    raise InputError('"time of day" needs a period, in steps (period=, or --set correlation.period=N)')
                one = estimate_periodic(table, period=period, phase=phase, prior=prior)
            elif kind == "per person":
                one = predictable_person(table, share=share)
            elif kind == "confidence" and given.replace(".", "", 1).isdecimal() | (given == ""):
                one = estimate_adversary(table, confidence=float(given or 0.95), stationary=stationary)
            else:
                raise InputError(f"expected models to be some of {listed(MODELS)}, got {name!r}")
        except (EstimationError, MatrixError) as error:
            raise EstimationError(f"the model {name!r} cannot be estimated: {error}") from None
        found[name] = one
    if not found:
        raise InputError(f"expected at least one model of {listed(MODELS)}")
    return found


def predictable_person(traces: Traces, *, share: float = 0.95) -> Adversary:
    """The matrices of the person whose leakage this share of people does not exceed, at a budget of 0.1 nats for each step.

    A person's rows are tied to those of all people with a weight of one transition.
    """
    real_number(share, "share", gt=0.0, le=1.0)
    people = own_correlations(traces)
    series = temporal_leakage(people, np.full(min(traces.n_times, 50), 0.1))
    order = np.argsort([one.worst for one in series.members or (series,)], kind="stable")
    return people[int(order[math.ceil(share * len(people)) - 1])]


def own_correlations(traces: Traces) -> list[Adversary]:
    """The matrices of each person, or of some of many, each row tied to that of all people with a weight of one transition."""
    codes = codes_of(traces)
    every = np.unique(np.linspace(0, traces.n_users - 1, min(traces.n_users, MOST_PEOPLE)).astype(np.int64))
    some = Trajectories(codes[every], states=traces.states, consecutive=traces.consecutive)
    everyone = {side: estimated(traces, traces.transition_counts(None), side, 0.0).dense() for side in BOTH}
    found = []
    for user, counts in some.user_transitions():
        sides = {}
        for side, of_rows in zip(BOTH, (counts.T, counts), strict=True):
            rows = of_rows + everyone[side]
            sides[side] = TransitionMatrix(rows / rows.sum(axis=1, keepdims=True), traces.states)
        found.append(Adversary(**sides, name=user))
    return found


def _affordable(traces: Traces, n_hidden: int) -> Traces:
    if n_hidden > MOST_HIDDEN_STATES:
        raise EstimationError(f"{n_hidden} hidden states are more than {MOST_HIDDEN_STATES}: group states into fewer")
    return traces
