"""Transition matrices estimated from the sequences of many people: one for all times, or one for each phase of a period.

With a confidence, simultaneous intervals of the probabilities, from exact or bounded counts.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.errors import EstimationError, InputError
from temporaldp.base.names import listed
from temporaldp.base.values import FloatArray, IntArray, real_number, refuse
from temporaldp.core.correlation.adversary import Adversary, Known
from temporaldp.core.correlation.interval_matrix import IntervalMatrix
from temporaldp.core.correlation.protocol import Periodic
from temporaldp.core.correlation.provenance import Provenance
from temporaldp.core.correlation.transition import TransitionMatrix
from temporaldp.data.tables.counted import CountedTraces
from temporaldp.data.tables.traces import Traces, as_traces, codes_of, scarcity

Direction: TypeAlias = Literal["backward", "forward"]
BOTH: tuple[Direction, Direction] = ("backward", "forward")


def estimate_transition_matrix(
    traces: Traces | Any, *, direction: Direction, prior: float = 0.0, user: str | None = None
) -> TransitionMatrix:
    """Maximum-likelihood transition matrix, or the posterior mean under a symmetric Dirichlet prior.

    ``P[i, j] = (N[i, j] + prior) / sum_k (N[i, k] + prior)``, N the number of transitions between consecutive times.
    A transition is counted only where both ends were observed one step apart: gaps are not bridged.

    Parameters
    ----------
    traces : Traces, or a table
        A table has the columns user, time and state; `read_traces` takes others.
    direction : {"forward", "backward"}
        "forward": row = state at t, column = state at t + 1. "backward": row = state at t + 1, column = state at t.
    prior : float, >= 0
        Dirichlet concentration added to every cell's count; 0 is maximum likelihood. Short traces leave zeros, and
        zeros can make two states distinguishable with certainty: a prior is a statement about the adversary.
    user : str, optional
        Estimate from the trace of this user alone. Default: from the traces of all users.

    Raises
    ------
    EstimationError
        A state has no observed transition and there is no prior: no row is invented for it.

    Examples
    --------
    >>> from temporaldp import Trajectories
    >>> walks = Trajectories([[0, 1, 1, 0], [1, 0, 0, 1]], states=["a", "b"])
    >>> estimate_transition_matrix(walks, direction="forward").dense().round(3)
    array([[0.333, 0.667],
           [0.667, 0.333]])
    """
    table = as_traces(traces)
    if direction not in BOTH:
        raise InputError(f"expected direction 'backward' or 'forward', got {direction!r}")
    real_number(prior, "prior (Dirichlet concentration per cell)", ge=0.0)
    return estimated(table, all_transitions(table, user), direction, prior, user)


def estimate_adversary(
    traces: Traces | Any,
    *,
    prior: float = 0.0,
    directions: tuple[Direction, ...] = BOTH,
    confidence: float | None = None,
    stationary: bool = False,
) -> Adversary:
    """Estimate one adversary for the whole population of traces.

    Parameters
    ----------
    traces, prior, directions, confidence, stationary
        As for `estimate_adversaries`, which also estimates one adversary per user or group.

    Raises
    ------
    EstimationError
        A state has no transition, and there is no prior.

    Examples
    --------
    >>> from temporaldp import Trajectories
    >>> walks = Trajectories([[0, 1, 1, 0], [1, 0, 0, 1]], states=["a", "b"])
    >>> estimate_adversary(walks).forward.dense()
    array([[0.33333333, 0.66666667],
           [0.66666667, 0.33333333]])
    """
    return next(
        estimate_adversaries(traces, prior=prior, directions=directions, confidence=confidence, stationary=stationary)
    )


def estimate_adversaries(
    traces: Traces | Any,
    *,
    prior: float = 0.0,
    per_user: bool = False,
    per_group: bool = False,
    directions: tuple[Direction, ...] = BOTH,
    confidence: float | None = None,
    stationary: bool = False,
) -> Iterator[Adversary]:
    """Estimate adversaries from traces: one for the whole population, or one for each user or group, with their names.

    Parameters
    ----------
    traces : Traces, or a table
        A table has the columns user, time and state; `read_traces` takes others.
    prior : float, >= 0
        As in `estimate_transition_matrix`.
    per_user : bool
        One adversary for each user, estimated from that user's trace alone; usually requires a prior.
    per_group : bool
        One adversary per group of traces that were read by a column with groups, named after it.
    directions : tuple of {"backward", "forward"}
        Correlations that the adversary knows.
    confidence : float, optional
        Between 0 and 1. Matrices are then `IntervalMatrix`: Clopper-Pearson intervals that hold jointly for all entries of all
        directions with this confidence (Bonferroni), if the states form a Markov chain with one forward matrix, conditional
        on the number of visits to each state (Theory, section 12). Constant backward intervals hold for a stationary chain.
        Where the shares of states change over the times of the traces, each transition between them has backward intervals
        of its own, so the adversary serves that number of steps (`Adversary.between` takes fewer), of a release that
        begins with the shares of states that the traces have at the first of them. Adversaries per user or group, for each of
        which the intervals hold separately, are assumed to be stationary, and so is one from counts of transitions alone;
        `Adversary.contradiction` reports shares that change. Takes no prior.
    stationary : bool
        With a confidence: constant backward intervals, for a release at other steps than those of the traces. They hold for a
        stationary chain; `Adversary.contradiction` reports shares that change.

    Yields
    ------
    Adversary

    Raises
    ------
    EstimationError
        The traces do not determine a correlation. The message names the state, and the user if there is one.

    Examples
    --------
    >>> from temporaldp import Trajectories
    >>> walks = Trajectories([[0, 1, 1, 0], [1, 0, 0, 1]], states=["a", "b"])
    >>> adversary = next(estimate_adversaries(walks, confidence=0.9))
    >>> adversary.forward.lower.round(3)
    array([[0.001, 0.038],
           [0.038, 0.001]])
    """
    table = as_traces(traces)
    people: Iterable[tuple[str | None, IntArray]]
    real_number(prior, "prior (Dirichlet concentration per cell)", ge=0.0)
    level = None if confidence is None else real_number(confidence, "confidence", gt=0.0, lt=1.0)
    refuse(
        (
            isinstance(directions, str) or not directions or not set(directions) <= set(BOTH),
            InputError(
                f"expected directions to be a tuple with 'backward', 'forward' or both, got {directions!r}; one is written "
                "directions=('forward',)"
            ),
        ),
        (
            level is not None and prior > 0.0,
            InputError("expected either a prior or a confidence: intervals do not depend on a prior"),
        ),
        (per_user and per_group, InputError("expected one adversary per person or per group, not both")),
    )
    require_countable(table)
    if per_group:
        people = table.group_transitions()
    else:
        people = table.user_transitions() if per_user else [(None, all_transitions(table))]
    shares = table.histogram() if level is not None and table.has_histogram else None
    for name, counts in people:
        if level is None:
            known: dict[Direction, Known] = {d: estimated(table, counts, d, prior, name) for d in directions}
        else:
            known = intervals(counts, shares, table.states, directions, level, stationary or per_user or per_group)
        yield Adversary(backward=known.get("backward"), forward=known.get("forward"), name=name)


def require_countable(traces: Traces) -> None:
    """Raise `EstimationError` for too many states, or a single time."""
    n, most = traces.n_states, 10_000  # dense tables of counts take 3 GiB then
    refuse(
        (
            n > most,
            EstimationError(
                f"{traces.holder} has {n} different states ({listed(traces.states, 3)}), and matrices over them would take "
                f"{8e-9 * n * n:.0f} GB each (at most {most} states); is that the column of states? Group states into fewer"
            ),
        ),
        (
            not isinstance(traces, CountedTraces) and traces.n_times < 2,
            EstimationError(
                "the traces have a single time step, and a correlation needs at least two; give longer traces"
            ),
        ),
    )


def intervals(
    counts: IntArray,
    histogram: IntArray | None,
    states: tuple[str, ...],
    directions: tuple[Direction, ...],
    confidence: float,
    stationary: bool,
) -> dict[Direction, Known]:
    """Interval matrices that hold jointly for all entries of all directions.

    Backward ones of each step where the shares of states change (`histogram`), unless a `stationary` chain is assumed.
    """
    tested = histogram if "backward" in directions else None
    # Backward intervals of each step are those of the forward matrix and of the shares.
    risk = (1.0 - confidence) / (3 if tested is not None and not stationary else len(directions))
    shares = None if tested is None else intervals_of_counts(tested, risk=risk)
    changes = tested is not None and shares is not None and contradicted(shares, tested.sum(axis=0))
    found: dict[Direction, Known] = {}
    for direction in directions:
        of_rows = counts if direction == "forward" else counts.T
        bounds = [intervals_of_counts(of_rows, risk=risk)]
        assumed, warning, of_each_step = "a stationary Markov chain", None, False
        if direction == "forward":
            assumed = ONE_MATRIX
        elif changes and stationary:
            warning = (
                "the shares of states change over the times of the traces, as they do not in a stationary chain, which the "
                "backward intervals assume: they may not contain the truth at every step. If a release begins as the traces "
                "do, one correlation for all users has backward intervals of each step (stationary=False; release.same_start)"
            )
        elif changes and shares is not None:
            assumed = (
                f"{ONE_MATRIX}; backward intervals of each step, because the shares of states change; {BEGINS_ALIKE}"
            )
            bounds, of_each_step = backward_intervals(intervals_of_counts(counts, risk=risk), shares), True
        unseen = [states[k] for k in np.flatnonzero(of_rows.sum(axis=1) == 0)]
        none = f" No transition of {listed(unseen)} was seen: its {direction} row may be anything." if unseen else ""
        seen = f"{int(of_rows.sum())} transitions, all entries together at {confidence:.4g} confidence for {assumed}."
        provenance = Provenance("estimated", f"Estimated from {seen}{none}", warning=warning)
        sets = [IntervalMatrix(low, high, states, provenance=provenance) for low, high in bounds]
        found[direction] = sets if of_each_step else sets[0]
    return found


ONE_MATRIX = "a Markov chain whose forward matrix does not change"
BEGINS_ALIKE = "they hold for a release that begins with the shares of the first of these steps"


def all_transitions(traces: Traces, user: str | None = None) -> IntArray:
    """Return the transitions of a user, or of all users, shape (n_states, n_states); `EstimationError` if no user has any."""
    require_countable(traces)
    counts = traces.transition_counts(user)
    if user is None and not counts.any():
        raise EstimationError(
            "no user is observed at two consecutive times, so the traces contain no transition; "
            + (scarcity(traces) or "check the times")
        )
    return counts


def estimated(
    traces: Traces, counts: NDArray[Any], direction: Direction, prior: float | FloatArray, user: str | None = None
) -> TransitionMatrix:
    """The matrix in a direction by counts of transitions, and a prior of all cells or of each one.

    `EstimationError` where a state has no transition, and there is no prior.
    """
    who = "" if user is None else f" of user {user!r}"
    weights = (counts if direction == "forward" else counts.T) + prior
    totals = weights.sum(axis=1)
    if not (totals > 0).all():
        # A prior would only hide that events were taken for states.
        advice = (
            scarcity(traces) or "give a prior (prior=1, or --set correlation.prior=1), longer traces, or fewer states"
        )
        empty = [traces.states[k] for k in np.flatnonzero(~(totals > 0))]
        other = "next" if direction == "forward" else "previous"
        raise EstimationError(
            f"the traces{who} show no {other} state for {listed(empty)}, so there is no {direction} row for it; {advice}"
        )
    return TransitionMatrix(weights / totals[:, None], traces.states)


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
        Times are missing, so phases are unknown; or a state has no transition and there is no prior.

    Examples
    --------
    >>> from temporaldp import Trajectories
    >>> walks = Trajectories([[0, 1, 1, 0], [1, 0, 0, 1]], states=["a", "b"])
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
    refuse(
        (
            phase is None and trajectories.n_times % period != 0,
            InputError(
                f"a period of {period} steps does not divide the {trajectories.n_times} steps of the traces, so a release "
                "after them begins at another phase than they do; set it (phase=, or --set correlation.phase=N), "
                "0 being that of their first time"
            ),
        ),
        (
            not trajectories.consecutive.all(),
            EstimationError(
                "some times of the traces are more than one step apart, so their phases are unknown; give one row a step"
            ),
        ),
    )
    n = trajectories.n_states
    codes, counts = codes_of(trajectories), np.zeros((period, n, n))
    # Step by step: the transitions of all steps would take several times the memory.
    for t in range(codes.shape[1] - 1):
        both = (codes[:, t] >= 0) & (codes[:, t + 1] >= 0)
        np.add.at(counts[t % period], (codes[both, t], codes[both, t + 1]), 1.0)
    sides = []
    for direction in BOTH:
        whole = tie * estimated(trajectories, counts.sum(axis=0), direction, prior).dense()
        sides.append([estimated(trajectories, one, direction, whole) for one in counts])
    return Adversary(*(Periodic(one, phase=phase or 0) for one in sides))


def clopper_pearson(
    hits: tuple[FloatArray, FloatArray], misses: tuple[FloatArray, FloatArray], risk: float
) -> tuple[FloatArray, FloatArray]:
    """Clopper-Pearson bounds of a probability, where the numbers of hits and misses are known up to intervals.

    Clopper and Pearson (Biometrika 26, 1934): below the lower bound, this number of hits or more has a probability of less
    than ``risk / 2``; above the upper one, this number or fewer. The lower bound increases with hits and decreases with misses,
    so that the fewest hits and the most misses give a bound for all numbers between.

    Parameters
    ----------
    hits, misses : pairs of arrays
        The smallest and the largest number; equal where it is known.
    risk : float
        Probability that either bound fails, for each entry.
    """
    from scipy.special import betaincinv  # takes longer to load than the package

    (few, many), (few_misses, many_misses) = hits, misses
    with np.errstate(invalid="ignore"):
        low = np.where(few > 0.0, betaincinv(np.maximum(few, 1e-9), many_misses + 1.0, risk / 2.0), 0.0)
        high = np.where(few_misses > 0.0, betaincinv(many + 1.0, np.maximum(few_misses, 1e-9), 1.0 - risk / 2.0), 1.0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def intervals_of_counts(counts: IntArray, *, risk: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of every entry of the distribution of each row, from counts, shape (m, n) each.

    Of transitions, or of people by time and state. All bounds hold jointly, except with a probability of at most `risk`
    (Bonferroni over the entries), if what a row counts is independent: the transitions from a state given that state, as in a
    Markov chain, or people. A row without counts has the bounds 0 and 1.
    """
    known = counts.astype(np.float64)
    others = known.sum(axis=1, keepdims=True) - known
    return clopper_pearson((known, known), (others, others), risk / counts.size)


def contradicted(shares: tuple[FloatArray, FloatArray], counts: IntArray) -> bool:
    """Whether the distribution of these counts, shape (n,), is outside of bounds of the shares of states at some time."""
    pooled = np.maximum(counts, 0) / max(float(np.maximum(counts, 0).sum()), 1.0)
    return bool(((pooled < shares[0]) | (pooled > shares[1])).any())


def drifts(traces: Traces) -> bool:
    """Whether the shares of states change over the times of the traces (95 % confidence for all of them together)."""
    if not traces.has_histogram:
        return False
    histogram = traces.histogram()
    return contradicted(intervals_of_counts(histogram, risk=0.05), histogram.sum(axis=0))


def backward_intervals(
    forward: tuple[FloatArray, FloatArray], shares: tuple[FloatArray, FloatArray]
) -> list[tuple[FloatArray, FloatArray]]:
    """Bounds of the backward matrix of every transition, by Bayes' rule, shape (n, n) each.

    State i before state j has the weight w_i = p(i) P(i, j) and the probability ``w_i / (w_1 + ... + w_n)``, which increases
    with its own weight and decreases with the others.

    Parameters
    ----------
    forward : pair of arrays, shape (n, n)
        Bounds of P, which is the same at every step.
    shares : pair of arrays, shape (T, n)
        Bounds of p at every time.

    Raises
    ------
    EstimationError
        The intervals of all steps would not fit in memory.
    """
    (n_times, n), most = shares[0].shape, 50_000_000  # entries: 0.8 GB of bounds
    if (n_times - 1) * n**2 > most:
        raise EstimationError(
            f"expected at most {most:.2g} entries of backward intervals, one matrix for each step, got "
            f"{n_times - 1} steps of {n} states; take fewer times or states"
        )
    rounding = 8 * n * np.finfo(np.float64).eps
    found = []
    for least, most in zip(shares[0][:-1], shares[1][:-1], strict=True):
        few, many = (forward[0] * least[:, None]).T, (forward[1] * most[:, None]).T
        few_others, many_others = (np.maximum(w.sum(axis=1, keepdims=True) - w, 0.0) for w in (few, many))
        low = np.divide(few, few + many_others, out=np.zeros_like(few), where=few > 0.0)
        high = np.divide(many, many + few_others, out=np.ones_like(many), where=many > 0.0)
        # A weight that cannot be positive has no share, unless no weight can: then the row may be anything.
        high[(many == 0.0) & (few_others > 0.0)] = 0.0
        found.append((low * (1.0 - rounding), np.minimum(high * (1.0 + rounding), 1.0)))
    return found
