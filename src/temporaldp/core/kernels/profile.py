"""The leakage profile: the vertices that determine what one step through a transition matrix leaks at every level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.values import ULP, FloatArray, assign, compared_by_value, copy_in, positive
from temporaldp.core.kernels.hull import upper_hull, vertex_gap, vertex_loss, vertex_supremum


@dataclass(frozen=True, slots=True)
class Witness:
    """The pair of states and the event at the other time that make a vertex of a leakage profile.

    Parameters
    ----------
    state, other_state : str
        The states of the two rows.
    evidence : tuple of str
        The set S of states at the other time that is more likely given `state`.
    probability, other_probability : float
        ``Pr(S | state)`` and ``Pr(S | other_state)``, the q and d of the vertex.
    """

    state: str
    other_state: str
    evidence: tuple[str, ...]
    probability: float
    other_probability: float


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageProfile:
    """Leakage of one step through a transition matrix, as a function of the incoming leakage.

    The vertices (d, q) with slope >= 1 of the upper concave hull over all sets S of states at the other time and all
    ordered pairs of rows, ``q = Pr(S | state)``, ``d = Pr(S | other state)``. Theorem 4 and Equation 23 of the paper's
    Section IV are the maximum over these vertices. Get one from `TransitionMatrix.leakage_profile`.

    Parameters
    ----------
    vertices : array, shape (m, 2)
        Columns d and q, by increasing d. m = 0: all rows are equal, and nothing leaks.
    excess, complement : array, shape (m,)
        ``q - d`` and ``1 - q``, without cancellation.
    witnesses : sequence of m Witness
        The pair of states and the set of each vertex.
    tolerance : float
        0 for an exact profile. Otherwise vertices are corners outside the hull, as for an `IntervalMatrix` of many states:
        every quantity is on the safe side, the loss at most ``min((1 + tolerance) L, L + log(1 + tolerance))``, and a witness
        belongs to the vertex at the right of its corner.

    Notes
    -----
    All quantities are in nats and exact to rounding (relative error below 1e-13) unless their docstring states otherwise, and
    upper bounds where the profile has a tolerance.

    Examples
    --------
    >>> from temporaldp import TransitionMatrix
    >>> profile = TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]).leakage_profile()
    >>> profile.vertices
    array([[0. , 0.8]])
    >>> round(profile.loss(0.1), 6), round(profile.supremum(epsilon=0.1), 6), profile.supremum(epsilon=0.5)
    (0.080784, 0.645907, inf)
    """

    vertices: FloatArray
    excess: FloatArray
    complement: FloatArray = field(compare=False)
    witnesses: Sequence[Witness] = field(compare=False)
    tolerance: float = field(default=0.0, compare=False)

    def __post_init__(self) -> None:
        copy_in(self, "vertices", "excess", "complement")
        assign(self, witnesses=tuple(self.witnesses))
        m = len(self.witnesses)
        if self.vertices.shape != (m, 2) or self.excess.shape != (m,) or self.complement.shape != (m,):
            raise InputError(
                f"expected m vertices (m, 2), m excesses, m complements and m witnesses, got {self.vertices.shape}, "
                f"{self.excess.shape}, {self.complement.shape} and {m}"
            )

    @classmethod
    def from_points(
        cls,
        *,
        d: ArrayLike,
        x: ArrayLike,
        q: ArrayLike,
        c: ArrayLike,
        witnesses: Sequence[Witness],
        tolerance: float = 0.0,
    ) -> LeakageProfile:
        """The hull of the given points (d, x = q - d, q, c = 1 - q), each with its witness."""
        points = np.array([d, x, q, c], dtype=np.float64)
        kept = upper_hull(points[0], points[1])
        points = points[:, kept]
        return cls(points[[0, 2]].T, points[1], points[3], [witnesses[k] for k in kept], tolerance)

    def loss(self, alpha: ArrayLike) -> Any:
        """Temporal privacy loss L(alpha) of the paper's Equations 23 and 24: what leaks through one step, in nats.

        ``L(alpha) = max over vertices of log[(1 + q (e^alpha - 1)) / (1 + d (e^alpha - 1))]``. Exact to rounding, and never
        above alpha. Valid at every alpha from 1e-300 to 1e300, and at inf.

        Parameters
        ----------
        alpha : float or array_like, >= 0
            Leakage at the step before (backward) or after (forward), in nats.

        Returns
        -------
        float or array of alpha's shape

        Raises
        ------
        BudgetError
            alpha is negative or not a number.
        """
        levels = _levels(alpha, "alpha", minimum=0.0)
        flat, (d, x) = levels.ravel(), self.curve
        # Losses of vertices that are computed together. If doubled, their arrays no longer fit a second-level cache of
        # 1 MB.
        result, step = np.zeros(flat.size), 1 + (1 << 15) // (len(self) + 1)
        for first in range(0, flat.size if len(self) else 0, step):
            block = slice(first, first + step)
            result[block] = vertex_loss(d, x, flat[block, None]).max(axis=1)
        return float(result[0]) if levels.ndim == 0 else result.reshape(levels.shape)

    def contraction(self, gamma: ArrayLike) -> Any:
        """Contraction curve theta(gamma): the largest hockey-stick divergence between two rows; exact to rounding.

        ``theta(gamma) = max over pairs of sum_k max(q_k - gamma d_k, 0)``, for gamma >= 1; theta(1) is the Dobrushin
        coefficient. Convex, non-increasing, piecewise linear (Theory, section 1). Absolute rounding error
        below 1e-15, as it is formed from a vertex's sums rather than from the rows.

        Parameters
        ----------
        gamma : float or array_like, >= 1

        Returns
        -------
        float or array of gamma's shape

        Raises
        ------
        BudgetError
            gamma is below 1 or not a number.
        """
        levels = _levels(gamma, "gamma", minimum=1.0)
        slopes, (d, x) = levels.ravel() - 1.0, self.curve
        result = np.zeros(slopes.size)
        for v in range(len(self)):  # a vertex with d = 0 has no slope to be multiplied by
            np.maximum(result, x[v] - slopes * d[v] if d[v] > 0.0 else x[v], out=result)
        return float(result[0]) if levels.ndim == 0 else result.reshape(levels.shape)

    def supremum(self, *, epsilon: float) -> float:
        """Supremum over all horizons of the leakage when every step spends epsilon; ``inf`` where there is none.

        The fixed point of ``a = L(a) + epsilon``: the paper's Theorem 5, as a maximum over vertices. Where two rows leave a
        set S with ``d = 0``, it exists only for ``epsilon < -log q``; at equality, which the paper includes, the series
        grows without bound. An upper bound, by rounding only.

        Parameters
        ----------
        epsilon : float, > 0
            Budget of every step, in nats.

        Raises
        ------
        BudgetError
            epsilon is not positive and finite.
        """
        budget = positive(epsilon, "epsilon")
        d, q = self.vertices.T
        return float(vertex_supremum(d, q, self.excess, self.complement, np.array(budget)).max(initial=budget))

    def sustainable_budget(self, *, alpha: float) -> float:
        """Return the largest constant epsilon whose leakage in this direction never exceeds alpha: ``alpha - L(alpha)``.

        A lower bound, by rounding only: ``loss(alpha) + result <= alpha`` in floating point. 0 where rows are disjoint: no
        positive budget is then sustainable.

        Parameters
        ----------
        alpha : float, > 0
            Largest admitted leakage, in nats.

        Raises
        ------
        BudgetError
            alpha is not positive and finite.
        """
        level = positive(alpha, "alpha")
        if not len(self):
            return level
        d, q = self.vertices.T
        gap = float(vertex_gap(d, q, self.excess, self.complement, np.array(level)).min())
        budget, lost = gap * (1.0 - 4.0 * ULP), self.loss(level)
        if lost + budget > level:
            budget = math.nextafter(level - lost, 0.0)
        return max(budget, 0.0)

    def witness(self, alpha: float) -> Witness | None:
        """The pair of states that leaks most at alpha, with its set of states at the other time; None if nothing leaks."""
        if not len(self):
            return None
        level, (d, x) = _levels(alpha, "alpha", minimum=0.0), self.curve
        # L(a) = a (q - d) + O(a^2): where all losses are 0 the excess decides.
        return self.witnesses[int(np.argmax(vertex_loss(d, x, level) if level > 0.0 else x))]

    def merge(self, other: LeakageProfile) -> LeakageProfile:
        """The pointwise maximum of two profiles: the hull of both vertex lists. Associative and commutative."""
        return LeakageProfile.from_points(
            d=np.concatenate((self.vertices[:, 0], other.vertices[:, 0])),
            x=np.concatenate((self.excess, other.excess)),
            q=np.concatenate((self.vertices[:, 1], other.vertices[:, 1])),
            c=np.concatenate((self.complement, other.complement)),
            witnesses=(*self.witnesses, *other.witnesses),
            tolerance=max(self.tolerance, other.tolerance),
        )

    def dominates(self, other: LeakageProfile) -> bool:
        """Whether ``self.loss(alpha) >= other.loss(alpha)`` at every alpha: no vertex of other lies above this hull.

        Strict, to the safe side: False also where this hull falls short by rounding only, as a merge of ties may.
        """
        (d, x), (hull_d, hull_x) = other.curve, self.curve
        if not len(hull_d) or hull_d[0] > 0.0:  # the hull starts at (0, 0)
            hull_d, hull_x = np.append(0.0, hull_d), np.append(0.0, hull_x)
        return bool((x <= np.interp(d, hull_d, hull_x)).all())

    @property
    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Columns d and ``q - d`` of the vertices."""
        return self.vertices[:, 0], self.excess

    def __len__(self) -> int:
        return len(self.witnesses)

    def __repr__(self) -> str:
        dobrushin = float(self.excess.max(initial=0.0))
        bound = f", at most {self.tolerance:g} too high" if self.tolerance else ""
        return f"LeakageProfile({len(self)} vertices, contraction(1) = {dobrushin:.6g}{bound})"


def _levels(values: ArrayLike, name: str, *, minimum: float) -> FloatArray:
    try:
        levels = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BudgetError(f"expected {name} to be a number or an array of numbers, got {values!r}") from None
    if not (levels >= minimum).all():
        bad = levels.ravel()[~(levels.ravel() >= minimum)][0]
        raise BudgetError(f"expected {name} >= {minimum:g}, got {bad}")
    return levels
