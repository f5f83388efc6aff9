"""What a reserve leaks: the same budget at every step that follows, for ever or until the matrices end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.sides import Problem, Side, Way, arrivals
from temporaldp.kernels.chain import Chain, Items
from temporaldp.kernels.kernels import SEARCHED, repeated
from temporaldp.kernels.rollouts import LONGEST, solve
from temporaldp.kernels.signs import Coefficients, Path
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

GIVEN_UP = (0.0, *(1e-11 * 4.0**k for k in range(9)))
"""Shares of a reserve that are given up, one after the other, until it lasts with room for rounding; the last is 7e-7."""

HOPELESS = 1e-3
"""Share by which the level may be exceeded at most for that to be tried."""

TIDIED = 512
"""Steps of the reserve after which rollouts that others stand for are left out."""


class Tail(Protocol):
    """What follows the next step."""

    @property
    def epsilon(self) -> float:
        """The budget of every step, in nats."""

    def arriving(self, t: int) -> FloatArray | float:
        """What arrives at step t about each pair, in nats, from above."""

    def beyond(self, t: int) -> tuple[Path | None, float]:
        """The path into the future from step t + 1 on, and the log spread of what it says, as it arrives at step t."""

    def later(self, t: int) -> Coefficients | None:
        """Rollouts into the past from all later steps, come to step t, that what lies there may bring above the level."""


@dataclass(frozen=True, slots=True, eq=False)
class NoTail:
    """Nothing follows that leaks about any other step."""

    epsilon: float = 0.0

    def arriving(self, t: int) -> float:
        """Nothing."""
        return 0.0

    def beyond(self, t: int) -> tuple[None, float]:
        """Nothing."""
        return None, 0.0

    def later(self, t: int) -> None:
        """Later steps that publish nothing are leaked about no more than this one."""


@dataclass(frozen=True, slots=True, eq=False)
class LastingTail:
    """The reserve at every later step, for ever; with the certificate that it holds the level by itself."""

    epsilon: float
    arrives: FloatArray
    path: Path | None
    rollouts: Coefficients | None

    def among(self, matrices: FloatArray) -> LastingTail:
        """A copy, where its matrix is the last one of several, shape (k, n, n)."""
        if self.path is None:
            return self
        leads = np.full(len(self.path.leads), len(matrices) - 1)
        return replace(self, path=self.path._replace(matrices=matrices, leads=leads))

    def arriving(self, t: int) -> FloatArray:
        """As at every step."""
        return self.arrives

    def beyond(self, t: int) -> tuple[Path | None, float]:
        """As at every step."""
        return self.path, float(self.arrives.max())

    def later(self, t: int) -> Coefficients | None:
        """As at every step."""
        return self.rollouts


@dataclass(frozen=True, slots=True, eq=False)
class FiniteTail:
    """The reserve at every later step until the matrices end.

    `sides` has what arrives at each step from all later ones; `furthest` the last step with a rollout that comes as far as
    each step.
    """

    epsilon: float
    problem: Problem
    sides: tuple[Side, ...]
    furthest: IntArray

    def arriving(self, t: int) -> FloatArray:
        """At step t."""
        return self.sides[t].arriving

    def beyond(self, t: int) -> tuple[Path | None, float]:
        """From step t + 1 on."""
        return self.sides[t].path, float(self.sides[t].arriving.max())

    def later(self, t: int) -> Coefficients | None:
        """From all steps after t."""
        if self.problem.backward is None:
            return None
        rollouts, _ = _from_later(self.problem, self.epsilon, self.sides, int(self.furthest[t]), t)
        return rollouts


@repeated(SEARCHED)
def lasting_tail(problem: Problem, reserve: float) -> Tail | None:
    """What a reserve leaks, or that of a slightly smaller one; None if the level does not allow it."""
    if reserve > problem.level:
        return None
    if reserve <= 0.0 or problem.n < 2:
        return NoTail(max(reserve, 0.0))
    known = [way for way in (problem.backward, problem.forward) if way is not None]
    make = _lasting if all(way.which is None for way in known) else _finite
    for share in GIVEN_UP:
        found = make(problem, reserve * (1.0 - share))
        if not isinstance(found, float):
            return found
        if found > problem.alpha * (1.0 + HOPELESS):
            return None
    return None


def _lasting(problem: Problem, epsilon: float) -> Tail | float:
    """The reserve for ever; or what it leaks, if that is too much."""
    sides: list[FloatArray] = []
    paths: list[Path | None] = []
    for way in (problem.backward, problem.forward):
        if way is None:
            sides.append(np.zeros(len(problem.values[0])))
            paths.append(None)
            continue
        # Suppose that no horizon's leakage exceeds alpha: what is proved then proves it (docs/theory.md, Proposition 12).
        first, budget = np.zeros(1, np.int64), np.array([math.expm1(epsilon)])
        path = Path(way.matrices, first, budget, np.array([problem.alpha]), endless=True, memory=int(way.memory))
        proved = _for_ever(way, problem, path)
        sides.append(proved)
        spread = min((epsilon + float(proved.max())) * (1.0 + 4.0 * U), problem.alpha)
        paths.append(path._replace(spread=np.array([spread])))
    past, future = sides
    worst = float((past + future).max()) + epsilon
    if not worst <= problem.level - problem.slack:
        return worst
    rollouts = None
    if problem.backward is not None:
        level = problem.level - epsilon - future
        found = _endless_rollouts(problem, problem.backward, epsilon, level)
        if found is None:
            return worst
        rollouts = found
    return LastingTail(epsilon, future, paths[1], rollouts)


def _for_ever(way: Way, problem: Problem, path: Path) -> FloatArray:
    """What arrives from a path without an end about each pair."""
    i, j = problem.values
    matrix = way.matrices[0]

    def solved(which: IntArray) -> tuple[FloatArray, FloatArray]:
        chain = Chain((matrix,), np.zeros(1, np.int64), path.up[:, None], 0.0 * path.up[:, None], endless=True)
        found = solve(chain, Items(np.zeros(len(which), np.int64), i[which], j[which]), path.spread)
        return found.proved, found.rho

    return arrivals(matrix[i], matrix[j], path, np.full(len(i), float(path.up[0])), solved)[0]


def _endless_rollouts(problem: Problem, way: Way, epsilon: float, level: FloatArray) -> Coefficients | None:
    """Rollouts into the past from every later step, through steps with the reserve; None if there is no end of them."""
    matrix, (i, j) = way.matrices[0], problem.values
    items, pairs = Coefficients.start(matrix[i], matrix[j], np.expm1(level)), np.arange(len(i))
    kept: list[tuple[IntArray, Coefficients]] = []
    h = math.expm1(epsilon)
    for step in range(LONGEST):
        left = np.flatnonzero(~(items.excess(problem.alpha) <= problem.slack))
        pairs, items = pairs[left], items[left]
        if not left.size:
            break
        kept.append((pairs, items))
        if step % TIDIED == TIDIED - 1:
            kept = [_tidied(problem, kept)]
        items = items.advanced(h, matrix)
    else:
        return None
    return _tidied(problem, kept)[1] if kept else items


def _tidied(problem: Problem, parts: list[tuple[IntArray, Coefficients]]) -> tuple[IntArray, Coefficients]:
    pairs, items = zip(*parts, strict=True)
    return problem.undominated(np.concatenate(pairs), Coefficients.joined(items))


def _finite(problem: Problem, epsilon: float) -> Tail | float:
    """The reserve until the matrices end; or what it leaks, if that is too much."""
    n_steps = problem.n_steps
    assert n_steps is not None
    ahead, before = [Side.at_start(problem.n)], [Side.at_start(problem.n)]
    for step in range(n_steps - 1, 0, -1):
        way = problem.forward
        ahead.append(_one_more(problem, way, ahead[-1], step, epsilon, step - 1))
    for step in range(n_steps - 1):
        way = problem.backward
        before.append(_one_more(problem, way, before[-1], step, epsilon, step + 1))
    ahead.reverse()
    worst = max(float((one.arriving + two.arriving).max()) for one, two in zip(ahead, before, strict=True)) + epsilon
    if not worst <= problem.level - problem.slack:
        return worst
    sides = tuple(ahead)
    if problem.backward is None:
        return FiniteTail(epsilon, problem, sides, np.zeros(0, np.int64))
    return FiniteTail(epsilon, problem, sides, _from_later(problem, epsilon, sides, n_steps - 1, 0)[1])


def _one_more(problem: Problem, way: Way | None, side: Side, step: int, epsilon: float, following: int) -> Side:
    """One direction with one more step, all pairs to rounding."""
    if way is None:
        return side
    every = np.arange(len(problem.values[0]))
    return side.after(way, problem.values, step, epsilon, following).closer(way, problem.values, following, every)


def _from_later(
    problem: Problem, epsilon: float, sides: tuple[Side, ...], last: int, step: int
) -> tuple[Coefficients, IntArray]:
    """Rollouts from all steps up to `last`, come to `step`; and from where the furthest one comes at each step."""
    way, (i, j) = problem.backward, problem.values
    assert way is not None
    active = Coefficients.start(np.zeros((0, problem.n)), np.zeros((0, problem.n)), np.zeros(0))
    source, furthest = np.zeros(0, np.int64), np.arange(last + 1)
    h = math.expm1(epsilon)
    for s in range(last - 1, step - 1, -1):
        matrix = way.matrices[way.leads_on(s + 1)]
        level = np.maximum(problem.level - epsilon - sides[s + 1].arriving, 0.0)
        new = Coefficients.start(matrix[i], matrix[j], np.expm1(level))
        active = Coefficients.joined((active.advanced(h, matrix), new))
        source = np.concatenate((source, np.full(len(i), s + 1)))
        kept = np.flatnonzero(~(active.excess(problem.alpha) <= problem.slack))
        active, source = active[kept], source[kept]
        furthest[s] = source.max(initial=s)
    return active, furthest
