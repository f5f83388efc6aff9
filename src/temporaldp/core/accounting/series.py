"""Backward, forward and temporal privacy leakage of a sequence of releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.arrow import Table
from temporaldp.base.display import draw, interval, spread, summary
from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import LARGEST, SAME_SIDES, FloatArray, assign, compared_by_value, read_only, sum_up
from temporaldp.core.accounting.exact.evidence import Observation
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.protocol import (
    DIRECTIONS,
    Accounting,
    Attained,
    Direction,
    Evidence,
    Leakage,
    grouped,
    listed,
    require_method,
    weakest,
)
from temporaldp.core.accounting.sequence import SequenceMechanism, without_shared
from temporaldp.core.correlation import Adversaries, Population

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from temporaldp.core.accounting.curve.evidence import Guesses


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageSeries(Table):
    """Leakage at every step of a sequence of T releases, in nats; from `temporal_leakage`.

    The paper's Definitions 5 to 7: the supremum over every mechanism with these epsilons. Exact by default, within rounding:
    numbers are upper bounds, and `attained` has lower bounds. Otherwise an upper bound by `accounting`, or where its effort
    ended (`is_exact`). Neighbouring databases differ in one person's *state* (replace one).

    Parameters
    ----------
    epsilons : array, shape (T,)
        Privacy loss of each release by itself; under a metric, for the two states furthest apart.
    backward, forward, temporal : array, shape (T,)
        BPL, FPL and TPL: leakage of a step from its own and earlier releases, its own and later ones, and all. With several
        users, each is the largest over the users at that step (so that in general
        ``temporal < backward + forward - epsilons``).
    name : str or None
        The user, if one is named.
    members : tuple of LeakageSeries
        One per user where there are several; empty for a single user.
    accounting : Accounting
        The accounting method of the numbers.
    details : optional
        `evidence`; of a series from a file, `attained` alone.
    """

    epsilons: FloatArray
    backward: FloatArray
    forward: FloatArray
    temporal: FloatArray
    name: str | None = None
    members: tuple[LeakageSeries, ...] = ()
    accounting: Accounting[Any, Any] = EXACT
    details: Any = field(default=None, compare=False)

    def __post_init__(self) -> None:
        assign(self, **{name: _frozen(getattr(self, name)) for name in ("epsilons", *DIRECTIONS)})

    def __len__(self) -> int:
        return len(self.epsilons)

    def __repr__(self) -> str:
        who = f", worst user {self.worst_user!r}" if self.worst_user else ""
        at = f" at delta {self.delta:g}" if self.delta else ""
        worst = self.written(digits=6, unit=" nats")
        return f"LeakageSeries({len(self)} steps, worst {worst}{at} at step {self.worst_time}{who})"

    @property
    def evidence(self) -> Evidence | None:
        """Pairs of states, observations or privacy curves behind these numbers, for a single user.

        None by the paper's bound, for a user whose correlations are unknown, and for a series that was read from a file.
        """
        known: Evidence | None = None if isinstance(self.details, Attained) else self.details
        return known

    @property
    def delta(self) -> float:
        """The delta at which all leakage is counted; 0 for pure differential privacy."""
        return self.accounting.delta

    @property
    def worst_time(self) -> int:
        """Index (from 0) of the first step with the largest temporal privacy leakage."""
        return int(np.argmax(self.temporal))

    @property
    def worst(self) -> float:
        """Largest temporal privacy leakage of any step: the alpha for which the release is alpha-DP_T (Definition 8)."""
        return float(self.temporal[self.worst_time])

    @property
    def worst_user(self) -> str | None:
        """Name of the user with the largest leakage, at `worst_time`; None for a single nameless user."""
        return self.worst_member.name

    @property
    def worst_member(self) -> LeakageSeries:
        """The series of the user with the largest leakage, at `worst_time`; itself for a single user."""
        time = self.worst_time
        return max(self.members or (self,), key=lambda member: member.temporal[time])

    @property
    def attained(self) -> Attained | None:
        """Lower bounds of the leakage of every step, which observations attain; None where there are only upper bounds."""
        if self.members:
            each = [member.attained for member in self.members]
            known = [one for one in each if one is not None]
            return Attained(*(np.max([one[k] for one in known], axis=0) for k in range(3))) if known == each else None
        if isinstance(self.details, Attained):
            return self.details
        if self.evidence is not None:
            return self.evidence.attained
        return Attained(self.backward, self.forward, self.temporal) if self.accounting.is_exact else None

    @property
    def gap(self) -> float | None:
        """Largest distance between upper and attained leakage of any step, in nats; None where there are only upper bounds."""
        if (attained := self.attained) is None:
            return None
        return max(float((getattr(self, name) - getattr(attained, name)).max()) for name in DIRECTIONS)

    @property
    def is_exact(self) -> bool:
        """Whether observations attain these numbers, but for rounding; otherwise they are upper bounds."""
        if self.members:
            return all(member.is_exact for member in self.members)
        return self.accounting.is_exact and (self.gap or 0.0) <= SAME_SIDES * self.worst

    @property
    def label(self) -> str:
        """Kind of the numbers: exact, or an upper bound."""
        return "exact" if self.is_exact else "upper bound"

    def written(self, direction: Direction = "temporal", *, digits: int = 4, unit: str = "") -> str:
        """Return the largest leakage of any step, rounded up; 1.79 to 1.83 after 10 s where the effort ended in between."""
        attained = self.attained if self.accounting.is_exact and not self.is_exact else None
        low, high = (float(getattr(one, direction).max()) for one in (attained or self, self))
        return interval(low, high, self.accounting.effort, digits, unit=unit)

    def worst_pair(self, time: int | None = None) -> tuple[str, str] | None:
        """The two states with the largest leakage at a step (default: the worst); None if unknown."""
        known = self.worst_member.evidence
        return None if known is None else known.worst_pair(self.worst_time if time is None else time)

    def witness(self, time: int | None = None) -> Observation:
        """The observation with the largest leakage about a step (default: the worst) that was found, release by release.

        Raises
        ------
        InputError
            The accounting method is not exact, the user has no correlation, or there is no such step.
        """
        known = self.worst_member.evidence
        found: Observation | None = None if known is None else known.witness(self.worst_time if time is None else time)
        if found is None:
            raise InputError(
                "expected the exact leakage of an adversary with a correlation, which an observation attains; this series is "
                f"by the accounting method {self.accounting.name!r}"
                + (", without a correlation, or was read from a file" if self.accounting.is_exact else "")
            )
        return found

    @property
    def user_level(self) -> float:
        """Leakage about all of a user's states together: the sum of all epsilons (Corollary 1), for every correlation.

        Under approximate DP, the epsilon of the composition of all releases.
        """
        if not self.delta:
            return math.fsum(self.epsilons)
        known = (self.members or (self,))[0].evidence
        return self._composed(None if known is None else known.user_level)

    @property
    def guesses(self) -> Guesses | None:
        """Largest probabilities of right guesses, which a delta and its epsilon do not tell; None without privacy curves."""
        each = [None if one.evidence is None else one.evidence.guesses for one in self.members or (self,)]
        known = [one for one in each if one is not None]
        return known[0]._make(map(max, zip(*known, strict=True))) if known and len(known) == len(each) else None

    def window(self, start: int | None, stop: int | None) -> float:
        """Leakage about all states in steps ``start:stop`` together, by Theorem 2, in nats; exact where the series is.

        Under approximate DP, the same releases are composed where pure epsilons are added. For several steps of a chain with a
        longer memory, an upper bound: the leakage about all states of a person.

        Python's slice convention: 0-based, `stop` excluded, negative numbers count from the end, None is the end. One step:
        its TPL. Two: ``BPL[start] + FPL[start + 1]``. More: ``BPL[start] + FPL[stop - 1]`` and the epsilons between them.

        Raises
        ------
        InputError
            The window is empty.
        """
        first, end, _ = slice(start, stop).indices(len(self))
        if first >= end:
            raise InputError(f"expected a window of at least one of the {len(self)} steps, got {start}:{stop}")
        if self.members:
            return max(member.window(first, end) for member in self.members)
        if end - first == 1:
            return float(self.temporal[first])
        if not self.accounting.is_first_order:  # releases outside of the window concern its inner states, too
            return self.user_level
        if not self.delta:
            return math.fsum([self.backward[first], self.forward[end - 1], *self.epsilons[first + 1 : end - 1]])
        return self._composed(None if self.evidence is None else self.evidence.window(first, end))

    @staticmethod
    def _composed(epsilon: float | None) -> float:
        """Epsilons at one delta do not add up: the leakage of several steps together needs their privacy curves."""
        if epsilon is None:
            raise InputError(
                "the leakage of several steps together at a delta follows from privacy curves, which a plan read from a file "
                "does not have; call temporal_leakage with its mechanisms"
            )
        return epsilon

    def plot(
        self,
        *,
        times: Sequence[object] | None = None,
        alpha: float | None = None,
        paper: LeakageSeries | None = None,
        ax: Axes | None = None,
    ) -> Any:
        """Draw BPL, FPL and TPL over time beside the epsilon of each release (needs Matplotlib).

        Parameters
        ----------
        times : sequence of T labels, optional
            Default: the numbers of the steps, from 0.
        alpha : float, optional
            A level to compare with, in nats, as a line.
        paper : LeakageSeries, optional
            The same releases by the paper's bound, as a thin line.
        ax : matplotlib.axes.Axes, optional
            Where to draw, in the style of its figure. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure or matplotlib.axes.Axes
            `ax`, if it is given. A new figure belongs to no global state, and a notebook shows it; ``.savefig("leakage.png")``
            writes it.
        """
        return draw(self, ax=ax, times=times, alpha=alpha, paper=paper)

    def columns(self) -> dict[str, Any]:
        """One row per step: step, epsilon, backward, forward, temporal."""
        return {
            "step": np.arange(len(self)),
            "epsilon": self.epsilons,
            **{name: getattr(self, name) for name in DIRECTIONS},
        }

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        shown: dict[str, object] = {
            "each release by itself": spread(self.epsilons, up=True),
            "all of them, about one step (TPL)": f"{self.written(digits=6)} at worst, about step {self.worst_time}",
            "from the past (BPL)": f"{self.written('backward', digits=6)} at worst",
            "from the future (FPL)": f"{self.written('forward', digits=6)} at worst",
        }
        if self.delta:
            shown["at delta"] = f"{self.delta:g}"
        if self.worst_user:
            shown["worst user"] = self.worst_user
        return summary(f"Leakage of {len(self)} steps, in nats", shown, f"accounted: {self.label}")


def _series_of_user(
    epsilons: FloatArray,
    most: float,
    leakage: Leakage,
    name: str | None,
    accounting: Accounting[Any, Any],
) -> LeakageSeries:
    """The series of one user. No step leaks more than all epsilons together (Corollary 1), `most`."""
    past, future, both = (np.minimum(getattr(leakage, direction), most) for direction in DIRECTIONS)
    method = leakage.method or accounting
    return LeakageSeries(epsilons, past, future, both, name, accounting=method, details=leakage.evidence)


def _frozen(values: FloatArray) -> FloatArray:
    """Return a read-only copy; an array that is read-only already is kept, so that users share theirs."""
    is_frozen = isinstance(values, np.ndarray) and values.base is None and not values.flags.writeable
    return values if is_frozen and values.dtype == np.float64 else read_only(values)


def temporal_leakage(
    adversary: Adversaries,
    releases: ArrayLike | Sequence[Any] | SequenceMechanism,
    *,
    accounting: Accounting[Any, Any] = EXACT,
    horizon: int | None = None,
) -> LeakageSeries:
    """Backward, forward and temporal privacy leakage of a sequence of releases, in nats.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        Several: every user is accounted for, and results are those of the worst. Iterables may be generators.
    releases : array_like, shape (T,), or sequence of T mechanisms
        Release of each step: a number >= 0 is the epsilon, in nats, of all outputs when the state of that step alone is
        replaced: of its own release or, where outputs share noise, by `event_epsilons`. 0 or None stands for a step that is
        not published. Accepted mechanisms depend on `accounting`. One number or mechanism stands for all steps, if the
        adversary's matrices or `horizon` determine how many there are. A mechanism whose outputs concern several steps,
        `MatrixMechanism` or `Windows`, stands for all of them.
    accounting : Accounting
        The method: `Exact()`, `PaperBound()`, `MetricPrivacy(distances)`, `ApproximateDP(delta)`, or one of your own
        (docs/architecture.md). Interval matrices are accounted for by an upper bound over their set (`IntervalBound`).
    horizon : int, optional
        Number of steps T, for a single release.

    Returns
    -------
    LeakageSeries
        Its `accounting` is the method that was applied.

    Raises
    ------
    BudgetError
        The releases are not admissible, or their number does not fit the adversary's matrices.
    InputError
        A mechanism or a matrix that the method cannot account for; `StateError` if it is for other states.

    Examples
    --------
    >>> from temporaldp import Adversary, Exact, PaperBound, TransitionMatrix
    >>> adversary = Adversary(backward=TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]))
    >>> temporal_leakage(adversary, [0.1] * 5).backward.round(4)
    array([0.1   , 0.1808, 0.2471, 0.3024, 0.3488])

    >>> from scipy.linalg import circulant
    >>> ring = TransitionMatrix(circulant([0.6, 0.2, 0, 0, 0, 0.2]))
    >>> for accounting in (PaperBound(), Exact()):
    ...     series = temporal_leakage(Adversary(ring, ring), 0.1, accounting=accounting, horizon=20)
    ...     print(series.accounting.name, round(series.worst, 3))
    paper 2.0
    exact 1.013
    >>> series.gap < 1e-12
    True
    >>> len(series.witness().counts_high(series.worst_time - 1))   # sides of the ring that are evidence for one of the pair
    3

    >>> from temporaldp import ApproximateDP, GaussianNoise
    >>> walk = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    >>> noise = GaussianNoise(10.0, sensitivity=1.0)
    >>> temporal_leakage(walk, [noise] * 20, accounting=ApproximateDP(delta=1e-6)).backward.round(3)[[0, 1, 2, 19]]
    array([0.397, 0.467, 0.49 , 0.503])
    """
    population = Population.of(adversary)
    if isinstance(releases, SequenceMechanism):
        n_steps = _steps_of_sequence(population, releases, horizon)
        require_method(accounting)
        if accounting.delta:
            found = [(name, releases.leakage(user, n_steps, accounting)) for name, user in population.over(n_steps)]
            alone = _frozen(releases.event_level(n_steps, accounting.delta))
            return _largest([_series_of_user(alone, math.inf, one, name, accounting) for name, one in found])
        releases = releases.require_pure(n_steps)
    releases = without_shared(releases, accounting, population.users)
    each = listed(releases, population.n_steps if horizon is None else horizon)
    if horizon is not None and len(each) != horizon:
        raise BudgetError(f"expected as many releases as the horizon has steps, {horizon}, got {len(each)}")
    population = population.over(len(each))
    members: dict[int, LeakageSeries] = {}
    for method, numbers, users in grouped(accounting, population.users, each):
        kept = method.convert(each, users)
        promised = _frozen(method.release_epsilons(kept))
        if not method.delta and not promised.max() <= LARGEST:
            raise BudgetError(f"expected epsilons times distances up to {LARGEST:g}, got {promised.max():g}")
        most = math.inf if method.delta else sum_up(promised)
        for k, leakage in zip(numbers, method.series(users, kept), strict=True):
            members[k] = _series_of_user(promised, most, leakage, population.names[k], method)
    return _largest([members[k] for k in range(len(population))])


def _steps_of_sequence(population: Population, mechanism: SequenceMechanism, horizon: int | None) -> int:
    """The number of steps of a mechanism for all steps."""
    lengths = {number for number in (mechanism.n_steps, horizon, population.n_steps) if number is not None}
    if len(lengths) != 1:
        got = " and ".join(map(str, sorted(lengths))) or "none of them"
        raise BudgetError(
            f"expected the mechanism, the adversary's matrices and horizon to have one number of steps, got {got}; "
            "give horizon=T if neither of the others determines it"
        )
    return lengths.pop()


def _largest(members: list[LeakageSeries]) -> LeakageSeries:
    """The largest over users at every step."""
    first = members[0]
    if len(members) == 1:
        return first
    past, future, both = (np.max([getattr(m, field) for m in members], axis=0) for field in DIRECTIONS)
    return LeakageSeries(
        first.epsilons,
        past,
        future,
        both,
        members=tuple(members),
        accounting=weakest([member.accounting for member in members]),
    )
