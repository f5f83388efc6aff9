"""Ascent on the exact leakage over a set of matrices: a lower bound of its worst case.

Notation
--------
P        a matrix of the set, the same at every step unless there is a set for each transition
K(i, j)  log N / D, incoming leakage at a step about a pair of states
x_s      likelihoods of the outputs up to step s for the worst observation, ``x_s = m_s (P x_{s-1})``
w_s      row vector with ``N = w_s P x_s``: e_i at the step itself, then ``(w P) m``;  v_s the same for D and j

K is a maximum over observations, so that (envelope) its derivative by the entry P[k, l] is that of the best observation,
``(w_s[k] / N - v_s[k] / D) x_s[l]``, summed over the steps s with this matrix. The row of the set that is best for these
derivatives is an extreme one; the exact leakage at several points in between determines the step length. Every number found
is attained by a matrix of the set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.display import bound
from temporaldp.base.errors import InputError
from temporaldp.base.progress import progressed
from temporaldp.base.values import FloatArray, compared_by_value, whole_number
from temporaldp.core.accounting.exact.evidence import Observation
from temporaldp.core.accounting.protocol import budgets
from temporaldp.core.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.core.correlation import Adversary, IntervalMatrix, TransitionMatrix
from temporaldp.core.correlation.adversary import Matrix, exactly_known
from temporaldp.core.correlation.protocol import Correlation, PerStep


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class WorstMember:
    """Matrices of a set with the largest leakage found: exact for these matrices, a lower bound for the set.

    Parameters
    ----------
    adversary : Adversary
        Adversary with these matrices.
    leakage : LeakageSeries
        Their exact leakage.
    """

    adversary: Adversary
    leakage: LeakageSeries

    def __repr__(self) -> str:
        return f"WorstMember({bound(self.leakage.worst)} nats at step {self.leakage.worst_time})"


def worst_member(
    adversary: Adversary, *, epsilons: ArrayLike, n_starts: int = 3, rng: np.random.Generator | int = 0
) -> WorstMember:
    """Search the matrices between an adversary's bounds for the largest exact leakage; a lower bound, in nats.

    `temporal_leakage` of the same adversary is an upper bound for every matrix of the set; this is what some matrix attains.
    One matrix per direction, the same at every step, unless the adversary has a set for each transition (or phase of a clock,
    each transition of which is searched by itself).

    Parameters
    ----------
    adversary : Adversary
        With at least one `IntervalMatrix`.
    epsilons : array_like, shape (T,)
        Privacy loss of each release on its own, in nats, >= 0.
    n_starts : int, >= 1
        Number of starts: the centre of the set, then random extreme matrices.
    rng : numpy Generator or seed

    Raises
    ------
    InputError
        No matrix is uncertain.

    Examples
    --------
    >>> from temporaldp import IntervalMatrix
    >>> walk = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> adversary = Adversary(IntervalMatrix(walk.dense() - 0.05, walk.dense() + 0.05))
    >>> found = worst_member(adversary, epsilons=[0.1] * 5)
    >>> found.adversary.backward.dense().round(6)
    array([[0.85, 0.15],
           [0.15, 0.85]])
    >>> guaranteed = temporal_leakage(adversary, [0.1] * 5)
    >>> round(found.leakage.worst, 12) == round(guaranteed.worst, 12)            # two states: some matrix attains it
    True
    """
    spent = budgets(epsilons)
    if not adversary.is_uncertain:
        raise InputError("expected an adversary with an IntervalMatrix: otherwise there is no set to search")
    whole_number(n_starts, "n_starts", least=1)
    adversary, generator = adversary.over(len(spent)), np.random.default_rng(rng)

    def ascended(start: int) -> WorstMember:
        progressed("the worst matrix of the set", start / n_starts)
        return _ascend(adversary, _start(adversary, generator if start else None), spent)

    return max(map(ascended, range(n_starts)), key=lambda found: found.leakage.worst)


def _start(adversary: Adversary, rng: np.random.Generator | None) -> Adversary:
    def chosen(matrix: Matrix) -> TransitionMatrix:
        if rng is None or not isinstance(matrix, IntervalMatrix):
            return matrix.central()
        return matrix.corner(rng.permuted(np.tile(np.arange(matrix.n_states), (matrix.n_states, 1)), axis=1))

    return Adversary(*(one.mapped(chosen) for one in adversary.directions), name=adversary.name)


def _ascend(adversary: Adversary, start: Adversary, spent: FloatArray) -> WorstMember:
    """Ascend from one start."""
    best = WorstMember(start, temporal_leakage(start, spent))
    # Rounds of ascent from one start, five to ten being usual; one that gains less than this share is the last
    for _ in range(25):
        ends = _best_ends(adversary, best.adversary, best.leakage.witness(), spent)
        sides = list(zip(adversary.directions, best.adversary.directions, ends, strict=True))
        # Shares of the way to the extreme matrix that are tried
        tried = [
            Adversary(*(_between(*side, stride) for side in sides), name=f"{stride:g}")
            for stride in (1.0, 0.5, 0.25, 0.1, 0.03)
        ]
        series = temporal_leakage(tried, spent).members
        found, leakage = max(zip(tried, series, strict=True), key=lambda one: one[1].worst)
        if leakage.worst <= best.leakage.worst * (1.0 + 1e-5):
            break
        named = Adversary(*found.directions, name=adversary.name)
        best = WorstMember(named, temporal_leakage(named, spent))
    return best


def _best_ends(adversary: Adversary, at: Adversary, seen: Observation, spent: FloatArray) -> list[Correlation]:
    """Return the extreme matrices of each direction that the derivatives point to; the present ones where nothing is gained."""
    factors = np.where(seen.high, np.exp(spent)[:, None], 1.0)
    pair = [seen.states.index(value) for value in (seen.state, seen.other_state)]
    ends: list[Correlation] = []
    for allowed, known, before, transitions in (
        (adversary.backward, at.backward, factors[: seen.time], range(seen.time)),
        (adversary.forward, at.forward, factors[: seen.time : -1], range(len(spent) - 2, seen.time - 1, -1)),
    ):
        if not any(matrix.is_set for matrix in allowed.matrices) or not len(before):
            ends.append(known)
            continue
        slopes = entry_derivatives([exactly_known(known.at(t)).dense() for t in transitions], before, *pair)
        of_each = (
            dict(zip(transitions, slopes, strict=True)) if isinstance(allowed, PerStep) else {0: slopes.sum(axis=0)}
        )
        ends.append(_extreme(allowed, known, of_each))
    return ends


def _extreme(allowed: Correlation, known: Correlation, slopes: dict[int, FloatArray]) -> Correlation:
    """Return the extreme matrices of a direction in the order of the derivatives; known ones where there are none."""

    def corner(t: int) -> Matrix | None:
        matrix = allowed.at(t)
        if t in slopes and isinstance(matrix, IntervalMatrix):
            return matrix.corner(np.argsort(-slopes[t], axis=1, kind="stable"))
        return known.at(t)

    return _of_transitions(allowed, corner)


def _between(allowed: Correlation, known: Correlation, end: Correlation, stride: float) -> Correlation:
    """Return the matrices of a direction, moved by a share of the way to extreme ones of the set."""

    def moved(t: int) -> Matrix | None:
        matrix, one, other = allowed.at(t), known.at(t), end.at(t)
        if not isinstance(matrix, IntervalMatrix) or one is other:
            return one
        rows = (1.0 - stride) * exactly_known(one).dense() + stride * exactly_known(other).dense()
        rows = np.clip(rows, matrix.lower, matrix.upper)
        return TransitionMatrix(rows / rows.sum(axis=1, keepdims=True), matrix.states)

    return _of_transitions(allowed, moved)


def _of_transitions(allowed: Correlation, member: Callable[[int], Matrix | None]) -> Correlation:
    """Return a direction with a member of each transition's set; of a constant set that of the first transition."""
    if isinstance(allowed, PerStep):
        return PerStep(tuple(map(member, range(len(allowed.matrices)))))  # type: ignore[arg-type]
    return member(0) or allowed


def entry_derivatives(rows: Sequence[FloatArray], factors: FloatArray, i: int, j: int) -> FloatArray:
    """Return the derivatives of ``log N / D`` by the entries of each step's matrix, for the observation with these factors.

    Parameters
    ----------
    rows : sequence of s arrays, shape (n, n)
        The matrix by which likelihoods are taken from each step to the next.
    factors : array, shape (s, n)
        Likelihood of the output of each step for each state, in the order of steps, up to the one before that of the pair.
    i, j : int
        States of N and of D.
    """
    likelihoods = [factors[0]]
    for P, factor in zip(rows, factors[1:], strict=False):
        x = factor * (P @ likelihoods[-1])
        likelihoods.append(x / x.max())
    slopes = np.zeros((len(factors), *rows[0].shape))
    w, v = np.eye(len(rows[0]))[i], np.eye(len(rows[0]))[j]
    for s in range(len(factors) - 1, -1, -1):
        P, x = rows[s], likelihoods[s]
        slopes[s] = np.outer(w / (w @ P @ x) - v / (v @ P @ x), x)
        w, v = (w @ P) * factors[s], (v @ P) * factors[s]
        w, v = w / w.sum(), v / v.sum()
    return slopes
