"""The leakage of every pair of values at every step, and why the worst pair leaks what it does.

Notation
--------
D       the guarantee of one step: its log ratios are at most ``e_t D(i, j)``; 1 off the diagonal for plain differential privacy
K       the lifting of a matrix (`temporaldp.leakage.lifting`)
b_t     ``K_B(b_{t-1}) + e_t D``: what the releases up to t say about each pair of values at t; forward with time reversed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.likelihood_box import LikelihoodBox
from temporaldp.correlation import TransitionMatrix
from temporaldp.correlation.adversary import Correlation
from temporaldp.correlation.states import labels_of, positions
from temporaldp.errors import BudgetError, InputError, StateError
from temporaldp.leakage.lifting import Trees, closed, flow_of, lifted, no_trees, off_diagonal
from temporaldp.values import LARGEST, compared_by_value, whole_number

FloatArray = NDArray[np.float64]
Direction: TypeAlias = Literal["backward", "forward", "temporal"]
DIRECTIONS: tuple[Direction, ...] = ("backward", "forward", "temporal")
Bound: TypeAlias = Literal["exact", "paper"]
Accounting: TypeAlias = Literal["exact", "paper", "metric", "curve"]

BOUNDS: tuple[Bound, ...] = ("exact", "paper")
ACCOUNTINGS: tuple[Accounting, ...] = ("exact", "paper", "metric", "curve")

SETTLED, ROUNDINGS = 2e-14, 2.0**-52
"""Share of the largest entry, and so much for every state: a metric that changes by less is tried as one that stays."""

HEADROOM = 4.0
"""What is tried is the metric plus so many times that: enough where a step passes on less than three quarters."""


@dataclass(frozen=True, slots=True)
class PairLink:
    """One link of the chain of pairs that makes a leakage: two values at one step, and how much is known of which it was.

    Parameters
    ----------
    step : int
        Index of the step, from 0.
    value, other_value : str
        The two values told apart.
    leakage : float
        Log ratio by which they are told apart, in nats: by the releases up to this step for links before the pair in question,
        by those from it on for links after it, by all for the pair itself. An upper bound.
    share : float
        How much of a small change here reaches the next link towards the pair in question; 1 for the pair itself.
    """

    step: int
    value: str
    other_value: str
    leakage: float
    share: float


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairwiseLeakage:
    """The leakage of every ordered pair of values, one metric a step; in nats, upper bounds.

    Parameters
    ----------
    states : tuple of str
        The values that rows and columns of a metric stand for.
    epsilons : array, shape (T,)
        What multiplies D at each step.
    guarantee : array, shape (n, n)
        D, closed under the triangle inequality.
    past, future : tuple of T arrays, shape (n, n)
        What arrives at each step from the releases before and after it. Steps at which nothing changes any more share one.
    backward_matrices, forward_matrices : Correlation
        What the adversary knows.
    """

    states: tuple[str, ...]
    epsilons: FloatArray
    guarantee: FloatArray
    past: tuple[FloatArray, ...]
    future: tuple[FloatArray, ...]
    backward_matrices: Correlation = None
    forward_matrices: Correlation = None

    def __post_init__(self) -> None:
        for array in (self.epsilons, self.guarantee, *self.past, *self.future):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.past)

    def __repr__(self) -> str:
        return f"PairwiseLeakage({len(self)} steps, {len(self.states)} states)"

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """Leakage of every ordered pair at a step, shape (n, n): row = the value, column = the one it is told from.

        A quasi-metric: zero on the diagonal, and the triangle inequality holds. Row and column follow `states`.

        Raises
        ------
        InputError
            There is no such step or direction.
        """
        at = self._step(step)
        own: FloatArray = self.epsilons[at] * self.guarantee
        if direction == "backward":
            return self.past[at] + own
        if direction == "forward":
            return self.future[at] + own
        if direction != "temporal":
            raise InputError(f"expected direction to be backward, forward or temporal, got {direction!r}")
        return self.past[at] + own + self.future[at]

    def worst_pair(self, step: int, direction: Direction = "temporal") -> tuple[str, str]:
        """The value that is leaked about most at a step, and the one it is told from."""
        i, j = _largest(self.metric(step, direction))
        return self.states[i], self.states[j]

    def path(self, step: int, *, reach: int = 10) -> tuple[PairLink, ...]:
        """How the worst pair at a step comes about: pairs at earlier and later steps, in order of time.

        Each pair rests on several pairs one step further away; the one that matters most to it is followed, for at most `reach`
        steps in each direction and while anything arrives. A derivative at the present values, not a decomposition.
        """
        at = self._step(step)
        whole_number(reach, "the reach", least=0)
        here = self.metric(at)
        i, j = _largest(here)
        before = self._follow(self.backward_matrices, at, i, j, -1, reach)
        after = self._follow(self.forward_matrices, at, i, j, 1, reach)
        middle = PairLink(at, self.states[i], self.states[j], float(here[i, j]), 1.0)
        return (*reversed(before), middle, *after)

    def _follow(self, known: Correlation, at: int, i: int, j: int, way: int, reach: int) -> list[PairLink]:
        links: list[PairLink] = []
        for _ in range(reach):
            there = at + way
            if known is None or not 0 <= there < len(self):
                break
            matrix = known[min(at, there)] if isinstance(known, tuple) else known
            metric = self.metric(there, "backward" if way < 0 else "forward")
            flow = flow_of(matrix.dense(), metric, i, j)
            if not flow.shares.size or flow.shares[0] <= 0.0:
                break
            at, (i, j) = there, (int(k) for k in flow.pairs[0])
            leakage = float(metric[i, j])
            links.append(PairLink(there, self.states[i], self.states[j], leakage, min(1.0, float(flow.shares[0]))))
        return links

    def _step(self, step: int) -> int:
        at = whole_number(step, "a step")
        if not -len(self) <= at < len(self):
            raise InputError(f"expected a step from 0 to {len(self) - 1}, got {step}")
        return range(len(self))[at]


def checked_bound(bound: str) -> Bound:
    """The name of a bound."""
    if bound not in BOUNDS:
        raise InputError(f"expected bound to be 'exact' or 'paper', got {bound!r}")
    return "exact" if bound == "exact" else "paper"


def checked_accounting(bound: str) -> Accounting:
    """The name of a way of accounting, as a file says it."""
    for known in ACCOUNTINGS:
        if bound == known:
            return known
    raise InputError(f"expected bound to be one of {', '.join(map(repr, ACCOUNTINGS))}, got {bound!r}")


def box_of(metric: FloatArray) -> LikelihoodBox | None:
    """The box whose log ratios are these distances, if there is one: then leakage under the metric has an exact value.

    ``metric[i, j] = high[i] - low[j]`` for all i and j that differ. A metric of two values always is one.
    """
    n = len(metric)
    low, high = np.zeros(n), np.zeros(n)
    high[1:] = metric[1:, 0]
    low[1:] = [high[1 if j != 1 else n - 1] - metric[1 if j != 1 else n - 1, j] for j in range(1, n)] if n > 2 else 0.0
    high[0] = (metric[0, 1:] + low[1:]).max()
    reach = high[:, None] - low[None, :]
    np.fill_diagonal(reach, 0.0)
    off = metric - reach
    if not (np.abs(off) <= 4.0 * np.finfo(np.float64).eps * metric.max()).all():
        return None
    if (off > 0.0).any():  # by rounding: the box must hold all that the metric allows
        high = high + float(off.max()) + np.finfo(np.float64).eps * max(np.abs(high).max(), np.abs(low).max())
    return LikelihoodBox(low, high) if low.max() <= high.min() else None


def checked_guarantee(metric: ArrayLike | Any | None, states: tuple[str, ...] | None) -> FloatArray | None:
    """The distances that a step's epsilon multiplies, closed under the triangle inequality; None for plain privacy.

    A table with named rows and columns (pandas) is brought into the order of the states.
    """
    if metric is None:
        return None
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
    labels = None if states is None else labels_of(metric)
    if states is not None and labels is not None:
        distances = distances[np.ix_(*(positions(names, states, what="the metric") for names in labels))]
    bad = ~((distances >= 0.0) & (distances <= LARGEST)) | (np.eye(len(distances), dtype=bool) & (distances != 0.0))
    if bad.any():
        i, j = (int(k[0]) for k in np.nonzero(bad))
        want = "0 on the diagonal" if i == j else f"from 0 to {LARGEST:g}"
        raise InputError(f"expected distances {want}, got {distances[i, j]} in row {i}, column {j} of the metric")
    if not distances.any():
        raise InputError("expected a metric that sets at least two states apart, got zeros only")
    return closed(distances)


def arrivals(correlation: Correlation, spent: FloatArray, guarantee: FloatArray) -> tuple[FloatArray, ...]:
    """What arrives at each of T steps through the correlation of one direction: zeros, then ``K(arrived + e D)``.

    Upper bounds. Where budgets and matrix stay the same and the metric settles, one that no further step raises is shown to be
    one, and kept: later steps cost nothing.
    """
    n = len(guarantee)
    arrived = np.zeros((n, n))
    every = [arrived]
    trees = no_trees(n)
    before = arrived
    last: tuple[TransitionMatrix | None, float] = (None, -1.0)
    held = False
    for t in range(1, len(spent)):
        matrix = correlation[t - 1] if isinstance(correlation, tuple) else correlation
        now = (matrix, float(spent[t - 1]))
        held = held and now == last
        if matrix is not None and not held:
            own = now[1] * guarantee
            metric = arrived + own
            change = float(np.abs(metric - before).max())
            least = SETTLED * float(metric.max()) + ROUNDINGS * (n + 8)
            settled = now == last and change <= least
            if settled and (metric <= before).all():
                held = True
            else:
                ceiling = _ceiling(matrix, metric, HEADROOM * least, own, trees) if settled else None
                held = ceiling is not None
                arrived = (
                    lifted(matrix.dense(), metric, matrix.leakage_profile(), trees) if ceiling is None else ceiling
                )
                before = metric
        last = now
        every.append(arrived)
    return tuple(every)


def _ceiling(
    matrix: TransitionMatrix, metric: FloatArray, headroom: float, own: FloatArray, trees: Trees
) -> FloatArray | None:
    """What arrives from a metric slightly above that a step does not raise, so that no later step exceeds it; else None."""
    above = metric + headroom * off_diagonal(len(own))
    lift = lifted(matrix.dense(), above, matrix.leakage_profile(), trees)
    return lift if (lift + own <= above).all() else None


def guarantee_for(metric: FloatArray | None, states: Sequence[str]) -> FloatArray:
    """The given distances, or 1 between any two states."""
    return off_diagonal(len(states)) if metric is None else metric


def largest_distance(metric: FloatArray | None) -> float:
    """What epsilon is multiplied with for the pair furthest apart."""
    return 1.0 if metric is None else float(metric.max())


def spend_scaled(spent: FloatArray, metric: FloatArray | None) -> FloatArray:
    """What each release promises for the pair furthest apart."""
    scaled = spent * largest_distance(metric)
    if not (scaled <= LARGEST).all():
        raise BudgetError(f"expected epsilons times distances up to {LARGEST:g}, got {scaled.max():g}")
    return scaled


def _largest(metric: FloatArray) -> tuple[int, int]:
    i, j = np.unravel_index(int(np.argmax(metric - np.eye(len(metric)))), metric.shape)  # two values, even if all is 0
    return int(i), int(j)
