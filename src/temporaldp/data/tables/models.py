"""Models of the correlation, estimated from the same traces: an adversary may know any of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from temporaldp.base.errors import EstimationError, InputError, MatrixError
from temporaldp.base.names import listed
from temporaldp.base.values import real_number
from temporaldp.core.accounting.series import temporal_leakage
from temporaldp.core.correlation.adversary import Adversary
from temporaldp.data.tables.estimation import BOTH, estimate_adversary, estimate_periodic, estimated
from temporaldp.data.tables.longer_memory import estimate_dwell_times, estimate_words
from temporaldp.data.tables.traces import Traces, as_traces, codes_of
from temporaldp.data.tables.trajectories import Trajectories

MODELS = ("first order", "second order", "dwell times", "time of day", "per person", "confidence")
"""Names of models. All but "per person" may be followed by a confidence, such as 0.95."""

SHORT = 16
"""Steps by which samples are compared; where there is a period, at least one."""

ANOTHER_SAMPLE = ", sample "
"""Between the name of a model and the number of another estimate of it."""

LONGER_MEMORY = ("second order", "dwell times")
"""Models of which leakage is about states that hidden states show."""

MOST_HIDDEN_STATES = 400
"""Hidden states up to which a longer memory is accounted for within minutes."""

MOST_PEOPLE = 200
"""People whose own matrices are compared; of more, as many at equal distances. Fewer where there are many states."""


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
        all first-order matrices within intervals at this confidence. "second order 0.95", and so each of the first four:
        of the estimate and those from 19 samples of the people, with replacement, as many as in the data, the one that leaks
        most at each step. What is leaked about a step under the true model exceeds that with a probability of about 5 %
        (bootstrap; not a bound).
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
        By the names of the models; of a model at a confidence, also others such as "second order 0.95, sample 7".

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
    if isinstance(models, str):
        raise InputError(f"expected a list of models, such as [{models!r}], got {models!r}")
    table, found = as_traces(traces), dict[str, Adversary]()
    for name in models:
        kind, _, given = name.rpartition(" ")
        is_share = given.replace(".", "", 1).isdecimal()
        kind, confidence = (kind, _share(given)) if is_share else (name, None)

        def estimate(people: Traces, kind: str = kind) -> Adversary:
            if kind == "first order":
                return estimate_adversary(people, prior=prior)
            if kind == "second order":
                return estimate_words(affordable(people, people.n_states**2), order=2).adversary
            if kind == "dwell times":
                return estimate_dwell_times(affordable(people, people.n_states * longest), longest=longest).adversary
            if period is None:
                raise InputError('"time of day" needs a period, in steps (period=, or --set correlation.period=N)')
            return estimate_periodic(people, period=period, phase=phase, prior=prior)

        try:
            if kind == "confidence":
                one = estimate_adversary(table, confidence=confidence or 0.95, stationary=stationary)
            elif kind == "per person" and confidence is None:
                one = predictable_person(table, share=share)
            elif kind in MODELS[:4]:
                one = estimate(table)
                if confidence is not None:
                    n_steps = min(table.n_times, max(SHORT, period or 0))
                    one, *others = _most_revealing(table, estimate, confidence, n_steps)
                    found |= {name: one} | {
                        f"{name}{ANOTHER_SAMPLE}{k}": other for k, other in enumerate(others, start=1)
                    }
            else:
                raise InputError(f"expected models to be some of {listed(MODELS)}, got {name!r}")
        except (EstimationError, MatrixError) as error:
            raise EstimationError(f"the model {name!r} cannot be estimated: {error}") from None
        found[name] = one
    if not found:
        raise InputError(f"expected at least one model of {listed(MODELS)}")
    return found


def _share(given: str) -> float:
    return real_number(float(given), "confidence of a model", gt=0.0, le=0.99)


def _most_revealing(
    traces: Traces, estimate: Callable[[Traces], Adversary], confidence: float, n_steps: int
) -> list[Adversary]:
    """Of estimates from the traces and from samples, 1 / (1 - confidence) in all, those that leak most about some step.

    At 0.1 nats for each of the first steps.
    """
    codes, rng = codes_of(traces), np.random.default_rng(0)  # a fixed seed: every run draws these samples
    found = [estimate(traces)]
    n_estimates = math.ceil(1.0 / (1.0 - confidence) - 1e-9)
    for _ in range(5 * n_estimates):
        if len(found) == n_estimates:
            break
        chosen = codes[rng.integers(len(codes), size=len(codes))]
        sample = Trajectories(chosen, states=traces.states, times=traces.times, consecutive=traces.consecutive)
        with suppress(EstimationError, MatrixError):  # a rare state is not in every sample
            found.append(estimate(sample))
    if len(found) < n_estimates:
        raise EstimationError(
            f"only {len(found) - 1} of {5 * n_estimates} samples of the people can be estimated: the others lack states that "
            "few people show. Merge rare states, or give a longer history"
        )
    leaked = [temporal_leakage(one, np.full(n_steps, 0.1)).temporal for one in found]
    return [found[k] for k in sorted(set(np.argmax(leaked, axis=0).tolist()))]


def predictable_person(traces: Traces, *, share: float = 0.95) -> Adversary:
    """The matrices of the person whose leakage this share of people does not exceed, at a budget of 0.1 nats for each step.

    A person's rows are tied to those of all people with a weight of one transition.
    """
    real_number(share, "share", gt=0.0, le=1.0)
    people = own_correlations(traces)
    series = temporal_leakage(people, np.full(min(traces.n_times, 50), 0.1))
    order = np.argsort([one.worst for one in series.members or (series,)], kind="stable")
    return people[int(order[math.ceil(share * len(people)) - 1])]


def own_correlations(traces: Traces, *, prior: float = 0.0) -> list[Adversary]:
    """The matrices of each person, or of some of many, each row tied to that of all people with a weight of one transition."""
    everyone = {side: estimated(traces, traces.transition_counts(None), side, prior).dense() for side in BOTH}
    return [
        Adversary(**{side: estimated(traces, counts, side, everyone[side], user) for side in BOTH}, name=user)
        for user, counts in sampled_people(traces).user_transitions()
    ]


def affordable(traces: Traces, n_hidden: int, most: int = MOST_HIDDEN_STATES) -> Traces:
    """The traces; `EstimationError` for more hidden states."""
    if n_hidden > most:
        raise EstimationError(f"{n_hidden} hidden states are more than {most}: group states into fewer")
    return traces


def sampled_people(traces: Traces) -> Trajectories:
    """The people whose own matrices are compared: all, or some at equal distances."""
    most = min(traces.n_users, MOST_PEOPLE, max(1, (1 << 21) // traces.n_states**3))  # entries of all of them
    chosen = np.unique(np.linspace(0, traces.n_users - 1, most).astype(np.int64))
    users = [traces.users[k] for k in chosen]
    return Trajectories(codes_of(traces)[chosen], states=traces.states, users=users, consecutive=traces.consecutive)
