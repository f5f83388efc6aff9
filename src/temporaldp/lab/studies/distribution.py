"""Distribution of the leakage in a population of people or groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.base.arrow import Table
from temporaldp.base.display import draw, interval, summary
from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.progress import effort, estimated, progressed
from temporaldp.base.values import (
    SAME_SIDES,
    FloatArray,
    IntArray,
    assign,
    compared_by_value,
    positive,
    read_only,
    real_number,
    whole_number,
)
from temporaldp.core.accounting.exact.estimate import seconds_of_supremum
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.accounting.series import temporal_leakage
from temporaldp.core.accounting.supremum import leakage_supremum
from temporaldp.core.correlation import Adversary, Population
from temporaldp.core.correlation.adversary import exactly_known

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageDistribution(Table):
    """Leakage about each person or group in nats, largest first.

    Parameters
    ----------
    names : sequence of str
        People, or groups.
    leakage : array, shape (m,), in nats
        Largest temporal leakage of each: exact (the upper of both bounds), or an upper bound. Descending; inf where it grows
        without bound.
    people : int array, shape (m,)
        Number of people in each group.
    epsilon : float
        Budget of every step, in nats.
    horizon : int or None
        Number of steps; None for an infinite horizon.
    accounting : Accounting
    attained : array, shape (m,), or None
        Largest temporal leakage of each that an observation attains; None where there are only upper bounds. By default that of
        `leakage` if the accounting method is exact.

    Raises
    ------
    InputError
        Arrays of different lengths, or no people.
    """

    names: tuple[str, ...]
    leakage: FloatArray
    people: IntArray
    epsilon: float
    horizon: int | None
    accounting: Accounting[Any, Any]
    attained: FloatArray | None

    def __init__(
        self,
        names: Sequence[str],
        leakage: Any,
        people: Any = None,
        *,
        epsilon: float,
        horizon: int | None = None,
        accounting: Accounting[Any, Any] = EXACT,
        attained: Any = None,
    ) -> None:
        values = np.array(leakage, dtype=np.float64)
        counts = np.ones(len(values), np.int64) if people is None else np.array(people, dtype=np.int64)
        if not len(values) or not len(names) == len(values) == len(counts) or np.isnan(values).any():
            raise InputError(f"expected one leakage for each name, got {len(names)} names and {len(values)} numbers")
        order = np.argsort(-values, kind="stable")
        lower = values if attained is None and accounting.is_exact else attained
        assign(
            self,
            names=tuple(names[k] for k in order),
            leakage=read_only(values[order]),
            people=read_only(counts[order], np.int64),
            epsilon=epsilon,
            horizon=horizon,
            accounting=accounting,
            attained=None if lower is None else read_only(np.asarray(lower)[order]),
        )

    @property
    def is_exact(self) -> bool:
        """Whether observations attain all of these numbers, but for rounding; otherwise they are upper bounds."""
        return self.attained is not None and bool((self.attained >= self.leakage * (1.0 - SAME_SIDES)).all())

    @property
    def label(self) -> str:
        """Kind of the numbers: exact, or an upper bound."""
        return "exact" if self.is_exact else "upper bound"

    @property
    def worst(self) -> float:
        """The largest leakage of any person or group."""
        return float(self.leakage[0])

    @property
    def n_people(self) -> int:
        """Number of people."""
        return int(self.people.sum())

    def quantile(self, share: float) -> float:
        """Return the smallest level that the leakage about at least this share of people does not exceed.

        Raises
        ------
        InputError
            Not a share between 0 and 1.
        """
        real_number(share, "share of people", gt=0.0, le=1.0)
        return self._quantile(self.leakage, share)

    def _quantile(self, values: FloatArray, share: float) -> float:
        order = np.argsort(values, kind="stable")
        up_to = np.cumsum(self.people[order])  # people about whom no more is leaked
        return float(values[order[np.searchsorted(up_to, math.ceil(share * self.n_people - 1e-9))]])

    def sides(self, share: float) -> tuple[float, float]:
        """Return the quantile of what is attained (where that is unknown, of the upper bounds) and that of the upper bounds."""
        high = self.quantile(share)
        return high if self.attained is None else self._quantile(self.attained, share), high

    def _written(self, share: float, digits: int) -> str:
        return interval(*self.sides(share), self.accounting.effort, digits)

    def share_above(self, level: float) -> float:
        """Return the share of people whose leakage exceeds a level, given in nats."""
        return float(self.people[self.leakage > level].sum() / self.n_people)

    def plot(self, *, level: float | None = None, groups: bool = False, ax: Axes | None = None) -> Any:
        """Draw the cumulative distribution over people, or one bar for each of a few groups (requires Matplotlib).

        Parameters
        ----------
        level : float, optional
            A level to compare with, in nats, as a line.
        groups : bool
            Whether the names are those of groups.
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure or matplotlib.axes.Axes
            A new figure, or `ax`.
        """
        return draw(self, ax=ax, level=level, groups=groups)

    def columns(self) -> dict[str, Any]:
        """Return a row for each person or group, largest leakage first: name, leakage, people."""
        return {"name": list(self.names), "leakage": self.leakage, "people": self.people}

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        shown = {
            "half of the people": f"up to {self._written(0.5, 6)}",
            "95 % of the people": f"up to {self._written(0.95, 6)}",
            "worst": f"{self._written(1.0, 6)} ({self.names[0]})",
        }
        return summary(f"Leakage about each of {self.n_people} people, in nats", shown, f"accounted: {self.label}")

    def __repr__(self) -> str:
        half, most, worst = (self._written(share, 4) for share in (0.5, 0.95, 1.0))
        shown = f"half up to {half}, 95 % up to {most}, worst {worst}"
        return f"LeakageDistribution({self.n_people} people: {shown})"


def leakage_distribution(
    adversaries: Iterator[Adversary] | Sequence[Adversary],
    *,
    epsilon: float,
    horizon: int | None = None,
    accounting: Accounting[Any, Any] = EXACT,
    people: dict[str, int] | None = None,
) -> LeakageDistribution:
    """Compute the largest temporal leakage about each of many people or groups under one release, in nats.

    Adversaries are processed in batches of some thousands. Exact leakage over a finite horizon is computed for a whole batch
    at once if all have constant dense matrices of one size; otherwise one by one.

    Parameters
    ----------
    adversaries : iterable of Adversary
        One per person or group, named, as from `estimate_adversaries` with `per_user` or `per_group`.
    epsilon : float, > 0
        Budget of every step, in nats.
    horizon : int, optional
        Number of steps. Default: an infinite horizon.
    accounting : Accounting
        The effort of `Exact(effort=...)` is for all people together.
    people : dict from names to int, optional
        Number of people in each group; 1 by default.

    Raises
    ------
    BudgetError, InputError

    Examples
    --------
    >>> from temporaldp import Trajectories, estimate_adversaries
    >>> codes = [[0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 1, 0, 0, 1, 0, 1, -1, -1]]
    >>> walks = Trajectories(codes, states=["a", "b"], users=["Ann", "Ben"])
    >>> found = leakage_distribution(estimate_adversaries(walks, prior=1.0, per_user=True), epsilon=0.1, horizon=10)
    >>> found.names, found.leakage.round(3), found.share_above(0.25)
    (('Ann', 'Ben'), array([0.257, 0.221]), 0.5)
    """
    budget = positive(epsilon, "epsilon")
    steps = None if horizon is None else whole_number(horizon, "the horizon", least=1, error=BudgetError)
    names: list[str] = []
    waiting, found = iter(adversaries), []
    with effort(accounting.effort):
        # Whose matrices are in memory together
        while some := list(islice(waiting, 1 << 13)):
            names += [str(len(names) + k) if one.name is None else one.name for k, one in enumerate(some)]
            found += _leakage(Population(tuple(some), tuple(names[-len(some) :])), budget, steps, accounting)
            progressed("leakage of every person", 0.0)
    if not names:
        raise InputError("expected at least one adversary, got none")
    missing = [] if people is None else [name for name in names if name not in people]
    if missing:
        raise InputError(f"expected the number of people of every group, got none for {missing[0]!r}")
    counts = None if people is None else [people[name] for name in names]
    leakage, attained = np.transpose(found)
    known = attained if accounting.is_exact else None
    return LeakageDistribution(
        names, leakage, counts, epsilon=budget, horizon=steps, accounting=accounting, attained=known
    )


def _leakage(
    people: Population, epsilon: float, horizon: int | None, accounting: Accounting[Any, Any]
) -> list[tuple[float, float]]:
    """Return the largest leakage about each, and what is attained: at least the budget itself."""
    if accounting == EXACT:
        for matrix in (one for person in people.users for one in person.matrices):
            exactly_known(matrix)
    if horizon is not None:
        series = temporal_leakage(people, np.full(horizon, epsilon), accounting=accounting)
        attained = [(one.worst, one.attained) for one in series.members or (series,)]
        return [(worst, epsilon if known is None else float(known.temporal.max())) for worst, known in attained]
    found, users = [], people.users
    with estimated("leakage of every person", lambda: seconds_of_supremum(users) if accounting.is_exact else 0.0):
        for k, person in enumerate(users):
            with effort(share=1.0 / (len(users) - k)):
                limits = leakage_supremum(person, epsilon, accounting=accounting)
            found.append((limits.temporal, limits.attained() or epsilon))
    return found
