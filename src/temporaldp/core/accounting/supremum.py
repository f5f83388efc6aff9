"""Suprema of leakage over all horizons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from temporaldp.base.display import bound, draw, interval, summary
from temporaldp.base.values import FloatArray, compared_by_value, positive
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.periodic import limits_of
from temporaldp.core.accounting.protocol import (
    DIRECTIONS,
    Accounting,
    Attained,
    Direction,
    Limits,
    grouped,
    largest_limits,
    weakest,
)
from temporaldp.core.accounting.sequence import without_shared
from temporaldp.core.correlation import Adversaries, Population

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageSupremum:
    """Suprema over all horizons of BPL, FPL and TPL under a constant budget, in nats; ``inf`` where there is none.

    Parameters
    ----------
    epsilon : float
        Budget of every step; under a metric, for the two states furthest apart.
    backward, forward, temporal : float
        Upper bounds for every step of every horizon; if `accounting` is exact, they are approached as the horizon grows. With
        several users, each is the largest over the users.
    worst_user : str or None
        User with the largest temporal supremum.
    accounting : Accounting
        As for `LeakageSeries`.
    certified : bool
        False if the search, or its effort, ended before the upper bound came within 1e-9 of what some horizon attains; the
        supremum is then an upper bound only, often inf or that of the paper.
    lower : Attained or None
        Numbers that some horizon comes arbitrarily close to, of several users those of the worst; None for upper bounds alone.
    evidence : tuple or None
        Under a metric, for a single user: what proves the backward and the forward supremum, shape (n, n), None where there is
        none. Metrics that one more step ``b -> K(b) + e D`` does not raise anywhere, so that no horizon does.
    """

    epsilon: float
    backward: float
    forward: float
    temporal: float
    worst_user: str | None = None
    accounting: Accounting[Any, Any] = EXACT
    certified: bool = True
    lower: Attained | None = None
    evidence: tuple[FloatArray | None, ...] | None = None

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={self.written(name, digits=6)}" for name in DIRECTIONS)
        kind = self.label if self.accounting.is_exact else self.accounting.name
        return f"LeakageSupremum(epsilon={bound(self.epsilon)}, {values}, {f'delta={self.delta:g}' if self.delta else kind})"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        at_most = " at most" if self.label == self.accounting.label and not self.accounting.is_exact else ""
        shown: dict[str, object] = {
            "each release by itself": bound(self.epsilon),
            "all of them, about one step (TPL)": self.written(digits=6) + at_most,
            "from the past (BPL)": self.written("backward", digits=6) + at_most,
            "from the future (FPL)": self.written("forward", digits=6) + at_most,
        }
        if self.delta:
            shown["at delta"] = f"{self.delta:g}"
        note = f"accounted: {self.label}; inf: it grows without bound"
        return summary("Leakage over an infinite horizon, in nats", shown, note)

    def plot(self, *, ax: Axes | None = None) -> Any:
        """Draw the suprema as bars (needs Matplotlib); `ax` and the result as of `LeakageSeries.plot`."""
        return draw(self, ax=ax)

    @property
    def label(self) -> str:
        """Kind of the numbers: exact, or an upper bound."""
        return "exact" if self.accounting.is_exact and self.certified else "upper bound"

    def written(self, direction: Direction = "temporal", *, digits: int = 4) -> str:
        """Return a supremum, rounded up; 1.79 to 1.83 after 10 s where the search, or its effort, ended in between."""
        proved, attained = float(getattr(self, direction)), self.attained(direction)
        return interval(proved if attained is None else attained, proved, self.accounting.effort, digits)

    def attained(self, direction: Direction = "temporal") -> float | None:
        """Return leakage that some horizon comes arbitrarily close to; None where there are only upper bounds."""
        known = self if self.label == "exact" else self.lower
        return None if known is None else float(getattr(known, direction))

    @property
    def delta(self) -> float:
        """The delta at which the suprema are counted; 0 for pure differential privacy."""
        return self.accounting.delta

    @property
    def worst(self) -> float:
        """The temporal supremum: the alpha for which the release is alpha-DP_T over an infinite horizon."""
        return self.temporal


def leakage_supremum(
    adversary: Adversaries, release: Any, *, accounting: Accounting[Any, Any] = EXACT
) -> LeakageSupremum:
    """Suprema over all horizons of the leakage of one release that every step repeats, in nats.

    Exact: with one closed class of states that is aperiodic and lambda the spectral radius of the matrix on the other states,
    a supremum exists if and only if ``epsilon < -log lambda`` (Theory, section 21). It is certified from above, and
    within 1e-9 of what some horizon attains. By the paper's bound: Theorem 5, with `<` for its `<=`, in closed form over the
    leakage profile. At a delta there can be a supremum where the pure leakage grows without bound.

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
        With constant matrices, or with `Periodic`; suprema are then over all phases too.
    release : float, > 0, or mechanism
        Release of every step; as one of the releases of `temporal_leakage`.
    accounting : Accounting
        As for `temporal_leakage`.

    Raises
    ------
    BudgetError
        The release is not admissible.
    InputError
        An adversary's matrices vary with time, so that those of later steps are unknown.

    Examples
    --------
    >>> from temporaldp import Adversary, PaperBound, TransitionMatrix
    >>> adversary = Adversary(backward=TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]))
    >>> round(leakage_supremum(adversary, 0.1).backward, 4), leakage_supremum(adversary, 0.3).backward
    (0.6459, inf)

    >>> from scipy.linalg import circulant
    >>> ring = Adversary(TransitionMatrix(circulant([0.6, 0.2, 0, 0, 0, 0.2])))
    >>> leakage_supremum(ring, 0.1, accounting=PaperBound())
    LeakageSupremum(epsilon=0.1, backward=inf, forward=0.1, temporal=inf, paper)
    >>> leakage_supremum(ring, 0.1)
    LeakageSupremum(epsilon=0.1, backward=0.612733, forward=0.1, temporal=0.612733, exact)

    >>> from temporaldp import ApproximateDP, GaussianNoise
    >>> walk = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    >>> found = leakage_supremum(walk, GaussianNoise(10.0, sensitivity=1.0), accounting=ApproximateDP(delta=1e-6))
    >>> round(found.epsilon, 3), round(found.backward, 3)
    (0.397, 0.503)
    """
    population = Population.of(adversary)
    without_shared(release, accounting, population.users)
    found: list[tuple[Accounting[Any, Any], float, Limits, str | None]] = []
    for method, numbers, users in grouped(accounting, population.users, [release]):
        kept = method.convert([release], users)
        promised = float(method.release_epsilons(kept)[0])
        if not method.delta:
            positive(promised, "the epsilon of each release")
        limits = limits_of(method, users, kept)
        found.append((method, promised, limits, population.names[numbers[limits.worst]]))
    largest = largest_limits([limits for _, _, limits, _ in found])
    _, promised, _, name = found[largest.worst if len(found) > 1 else 0]
    return LeakageSupremum(
        promised,
        largest.backward,
        largest.forward,
        largest.temporal,
        name,
        weakest([method for method, *_ in found]),
        largest.certified,
        largest.lower,
        largest.evidence,
    )
