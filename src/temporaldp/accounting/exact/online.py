"""What a level still allows one user, by the exact leakage: budgets chosen one by one, with a reserve for all later steps.

Notation
--------
t          the next step; steps before it are spent
e          a budget for step t; rho, the reserve, is what every later step may spend
alpha, A   the level that is held, and the level up to which budgets are admitted, a little lower
K_B, K_F   what arrives about a pair of values from the past and from the future
c          coefficients of a rollout (`temporaldp.kernels.signs`)

e is admitted if and only if with the budgets so far, e, and rho at every later step, no TPL exceeds A. Only signs are needed:

- *The step itself:* ``K_B + e + K_F <= A`` for all pairs, K_F that of rho for ever: a closed form.
- *Each earlier step and pair:* K_B is known, so that ``K_F <= A - e_s - K_B`` is the sign of one rollout into the future. Its
  coefficients are kept, and take one more step at each spend. Once it is proved that nothing within alpha can raise the sum
  above alpha any more, whatever follows, the pair is never looked at again.
- *Each later step and pair:* K_F is known, so that ``K_B <= A - rho - K_F`` is the sign of a rollout into the past. Its first
  steps, all with rho, are the same at every spend, and are taken beforehand.

A budget up to rho needs no check: the one before it was admitted with rho after it, and leakage does not fall with a budget.
The proofs are in docs/theory.md, section 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.reserve import LastingTail, NoTail, Tail, lasting_tail
from temporaldp.accounting.exact.sides import Problem, Side, Way
from temporaldp.correlation import Adversary
from temporaldp.errors import BudgetError
from temporaldp.kernels.kernels import repeated
from temporaldp.kernels.signs import Coefficients, Path, proved_below, values
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_ROUNDS, CLOSE = 100, 4e-11
"""Newton's steps to the largest budget, and the share of it that may be left."""

MOST_ANTICIPATED, BEYOND, LEAST_STEP = 0.9, 1.3, 1e-11
"""The ratio of two steps that is believed at most, how much further than to the limit that it tells the next step goes, and the
share of a budget that it goes further still."""

ROOM_FOR_SUMS = 16.0 * U
"""Share of the level by which a step stays below it by itself: a series rounds each of its sums up."""

MOST_AT_ONCE = 64
"""Pairs that are computed to rounding at once, those first that most arrives about."""

FINE = 1e-12
"""Share of the budget to which Newton's steps are computed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactStanding:
    """Where one user's exact leakage stands below a level; a spend gives another one.

    Parameters
    ----------
    problem : Problem
    tail : Tail
        What the reserve leaks, for ever or to the horizon.
    n_steps : int
        Number of steps so far.
    past : Side
        What arrives at the next step from those so far.
    pairs : int array, shape (m,)
        Pairs of values at earlier steps that what follows may still bring above the level.
    open : Coefficients
        Their rollouts into the future, up to the next step.
    keeps_reserve : bool
        Whether the budgets so far, followed by the reserve at every later step, hold the level.
    broken : bool
        Whether the budgets so far may exceed it by themselves.
    """

    problem: Problem
    tail: Tail
    n_steps: int
    past: Side
    pairs: IntArray
    open: Coefficients
    keeps_reserve: bool = True
    broken: bool = False
    _largest: dict[bool, float] = field(default_factory=dict)

    @classmethod
    def at_start(cls, adversary: Adversary, *, alpha: float, reserve: float = 0.0, horizon: int | None = None) -> Self:
        """Before the first step.

        Parameters
        ----------
        adversary : Adversary
        alpha : float, > 0
            The level, in nats. Above 300 nats, 300 are held.
        reserve : float
            Budget that stays admissible at every later step, in nats. Where it lasts, but only just (`sustainable_budget`),
            a few billionths of it are given up, so that there is room for rounding.
        horizon : int, optional
            Number of steps, where it is known.

        Raises
        ------
        BudgetError
            alpha does not allow the reserve for ever, or not until the horizon where matrices vary.
        """
        steps = adversary.n_steps or horizon
        problem = Problem.of(adversary, alpha, steps)
        tail = lasting_tail(problem, reserve)
        if tail is None:
            raise BudgetError(
                f"expected a reserve that alpha = {alpha:g} allows at every step, got {reserve!r}; ask "
                "`sustainable_budget` for the largest, or leave it at 0"
            )
        return replace(cls.at_start_of(problem), tail=tail)

    @classmethod
    def at_start_of(cls, problem: Problem) -> Self:
        """Before the first step, without a reserve."""
        nothing = Coefficients.start(np.zeros((0, problem.n)), np.zeros((0, problem.n)), np.zeros(0))
        return cls(problem, NoTail(), 0, Side.at_start(problem.n), np.zeros(0, np.int64), nothing)

    def adopted(self, adversary: Adversary) -> Self:
        """With another correlation from the next step on; no reserve is kept until it is asked for (`with_reserve`).

        The steps so far keep their matrices; what arrived from them, and their rollouts, are taken over.
        """
        later = Problem.of(adversary, self.problem.alpha, None)
        problem = self.problem.changed(self.n_steps, later)
        past = self.past
        if problem.backward is not None:
            with repeated(self.n_steps):
                past = past.changed(problem.backward, problem.values, self.n_steps)
        return replace(self, problem=problem, past=past, tail=NoTail(), keeps_reserve=not self.broken, _largest={})

    def with_reserve(self, reserve: float) -> Self | None:
        """Keep a budget, or one smaller by some billionths, for every later step; None if the level does not allow it."""
        tail = self.tail_of(reserve)
        if tail is None or self.broken or self.is_over:
            return None
        now = replace(self, tail=tail, keeps_reserve=False, _largest={})
        return replace(now, keeps_reserve=True) if now._fits(tail.epsilon, False) else None

    def tail_of(self, reserve: float) -> Tail | None:
        """What a reserve leaks from now on, or one smaller by some billionths; None if the level does not allow it."""
        ahead = [way and replace(way, matrices=way.matrices[-1:], changes=()) for way in self.problem.ways]
        tail = lasting_tail(replace(self.problem, backward=ahead[0], forward=ahead[1]), reserve)
        if isinstance(tail, LastingTail) and self.problem.forward is not None:
            tail = tail.among(self.problem.forward.matrices)
        return tail

    @property
    def reserve(self) -> float:
        """The budget that every later step may spend, in nats: a lower bound; 0 once no longer, or where nothing is kept."""
        return self.tail.epsilon if self.keeps_reserve else 0.0

    def is_final(self, last: bool = False) -> bool:
        """Whether the next step is the last one."""
        return last or self.problem.n_steps == self.n_steps + 1

    @property
    def is_over(self) -> bool:
        """Whether all steps of the horizon are over."""
        return self.problem.n_steps is not None and self.n_steps >= self.problem.n_steps

    def largest(self, last: bool = False) -> float:
        """The largest budget that is admitted next, in nats: a lower bound. `last`: no step follows.

        Never less than the reserve, as long as only what was admitted was spent.
        """
        final = self.is_final(last)
        if final not in self._largest:
            with repeated(self.n_steps):
                self._largest[final] = 0.0 if self.broken or self.is_over else self._found(final)
        return self._largest[final]

    def admits(self, epsilon: float, last: bool = False) -> bool:
        """Whether a budget may be spent next: proved. A step that publishes nothing always may."""
        if epsilon == 0.0 or (self.keeps_reserve and epsilon <= self.tail.epsilon):
            return not self.is_over
        if self.broken or self.is_over:
            return False
        final = self.is_final(last)
        known = self._largest.get(final, self._largest.get(False, 0.0))
        return epsilon <= known or self._fits(epsilon, final)

    def after(self, epsilon: float) -> Self:
        """After one more budget, whether it was admitted or not: what is spent is spent."""
        t = self.n_steps
        keeps_reserve = (self.keeps_reserve and epsilon <= self.tail.epsilon) or self.admits_with_reserve(epsilon)
        # A budget that leaves no room for the reserve may still hold the level.
        broken = self.broken or not (keeps_reserve or epsilon == 0.0 or self._fits(epsilon, True))
        now = replace(self, n_steps=t + 1, keeps_reserve=keeps_reserve, broken=broken, _largest={})
        if broken or now.is_over:
            return now
        with repeated(self.n_steps):
            pairs, rollouts = self._still_open(epsilon)
            return replace(now, past=self._past_after(epsilon), pairs=pairs, open=rollouts)

    def admits_with_reserve(self, epsilon: float) -> bool:
        """Whether the budgets so far and this one, followed by the reserve at every later step, hold the level."""
        if self.broken or self.is_over:
            return False
        known = 0.0 < epsilon <= self._largest.get(self.is_final(), 0.0)
        return known or self._fits(epsilon, self.is_final())

    def _still_open(self, epsilon: float) -> tuple[IntArray, Coefficients]:
        """Earlier pairs, and those of this step, that may still exceed the level, one step further."""
        problem, way = self.problem, self.problem.forward
        if way is None:
            return self.pairs, self.open
        matrix = way.matrices[way.leads_on(self.n_steps)]
        moved = self.open.advanced(math.expm1(epsilon), matrix)
        new = self._asked(epsilon, self.past, matrix)
        loose = np.flatnonzero(~(new.excess(problem.alpha) <= problem.slack) & ~self.past.close)
        if loose.size and problem.backward is not None:
            past = self.past.closer(problem.backward, problem.values, self.n_steps, loose)
            new = self._asked(epsilon, past, matrix)
        pairs = np.concatenate((self.pairs, np.arange(len(problem.values[0]))))
        rollouts = Coefficients.joined((moved, new))
        kept = np.flatnonzero(~(rollouts.excess(problem.alpha) <= problem.slack))
        return problem.undominated(pairs[kept], rollouts[kept])

    def _asked(self, epsilon: float, past: Side, matrix: FloatArray) -> Coefficients:
        """Rollouts into the future from the next step, which ask what room a budget there leaves."""
        (i, j), level = self.problem.values, np.maximum(self.problem.level - epsilon - past.arriving, 0.0)
        return Coefficients.start(matrix[i], matrix[j], np.expm1(level))

    def _past_after(self, epsilon: float) -> Side:
        """What arrives at the next step, after one more budget; about the pairs that decide there to rounding."""
        way, values, t = self.problem.backward, self.problem.values, self.n_steps
        if way is None:
            return self.past
        past = self.past.after(way, values, t, epsilon, t + 1)
        for later in (np.zeros(1), self.tail.arriving(t + 1)):
            while True:
                total = past.arriving + later
                surely = total[past.close].max(initial=-math.inf)
                loose = np.flatnonzero(~past.close & (total > surely))
                if not loose.size:
                    break
                past = past.closer(way, values, t + 1, loose[np.argsort(-total[loose])][:MOST_AT_ONCE])
        return past

    def _room(self, final: bool) -> float:
        """The largest budget for which the step itself, with what follows, stays within the level."""
        problem = self.problem
        if problem.n < 2 or (problem.backward is None and problem.forward is None):
            return problem.alpha
        top = problem.alpha * (1.0 - 32.0 * ROOM_FOR_SUMS) if final else problem.level
        later = 0.0 if final else self.tail.arriving(self.n_steps)
        most = float((self.past.arriving + later).max())
        return max((top - most) - ROOM_FOR_SUMS * top, 0.0)

    def _checks(self, final: bool) -> list[tuple[Coefficients, _Behind]]:
        """Rollouts that have come to the next step, and what lies behind it."""
        problem, t = self.problem, self.n_steps
        checks = []
        if problem.forward is not None and len(self.open):
            beyond = (None, 0.0) if final else self.tail.beyond(t)
            checks.append((self.open, _Behind(problem.forward, t, *beyond)))
        later = None if final else self.tail.later(t)
        if problem.backward is not None and later is not None and len(later):
            arriving = float(self.past.arriving.max())
            checks.append((later, _Behind(problem.backward, t, self.past.path, arriving)))
        return checks

    def _fits(self, epsilon: float, final: bool) -> bool:
        """Whether the budgets so far and this one, and the reserve unless it is the last, are proved to hold."""
        if epsilon > self._room(final):
            return False
        with repeated(self.n_steps):
            return all(
                proved_below(items, behind.path(epsilon), self.problem.room).all()
                for items, behind in self._checks(final)
            )

    def _found(self, final: bool) -> float:
        """The largest budget: Newton's steps down from what the step itself allows, all signs proved there."""
        least = self.tail.epsilon if self.keeps_reserve and not final else 0.0
        epsilon = self._room(final)
        for items, behind in self._checks(final):
            epsilon = _lowered(items, behind, epsilon, least, self.problem.room)
        # What follows for ever with the reserve holds with it at the last step too.
        return max(epsilon, self.tail.epsilon if self.keeps_reserve else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Behind:
    """What rollouts meet from the next step on: its own output, then what lies `beyond` it (None: nothing)."""

    way: Way
    t: int
    beyond: Path | None
    arriving: float = 0.0
    """Log spread of what lies beyond, as it arrives at the step."""

    def path(self, epsilon: float) -> Path:
        """The steps from the next one on, if it spends a budget."""
        spread = (epsilon + self.arriving) * (1.0 + 4.0 * U)
        lead = self.way.leads_on(self.t) if self.beyond is not None else 0
        if self.beyond is not None:
            return self.beyond.after(math.expm1(epsilon), spread, lead)
        alone = (np.array([lead]), np.array([math.expm1(epsilon)]), np.array([spread]))
        return Path(self.way.matrices, *alone, ends=True)

    def values(self, items: Coefficients, h: float) -> tuple[FloatArray, FloatArray]:
        """F of each item for the factor 1 + h of the next step, and its derivative by h."""
        positive = np.maximum(items.c, 0.0)
        p = positive.sum(axis=1)
        if self.beyond is None:
            return items.total + h * p, p
        matrix = self.way.matrices[self.way.leads_on(self.t)]
        c, z = (items.c + h * positive) @ matrix, positive @ matrix
        found, slope, _ = values(c, z, items.total + h * p, self.beyond, np.full(len(items), FINE * h))
        return found, slope


def _lowered(items: Coefficients, behind: _Behind, epsilon: float, least: float, room: float) -> float:
    """The largest budget up to `epsilon` for which all items are proved to hold; `least` is known to hold.

    F is convex and increases with the factor, so that Newton's steps come down to its root and never pass it. As ever more
    steps count on the way, the steps shrink by a factor only; what they would still come to is anticipated, a little too far.
    """
    low, high, left, last = least, epsilon, items, math.inf
    for _ in range(MOST_ROUNDS):
        if high - low <= CLOSE * high:
            return low
        failing = left[~proved_below(left, behind.path(epsilon), room)]
        if not len(failing):
            if epsilon == high:
                return epsilon
            low = epsilon
            epsilon = 0.5 * (low + high)
            continue
        left, h = failing, math.expm1(epsilon)
        value, slope = behind.values(left, h)
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = math.log1p(max(float(np.nanmin(h - value / slope)), 0.0))
        step = max(epsilon - lower, 0.0)
        shrinking = min(step / last, MOST_ANTICIPATED) if last > 0.0 else MOST_ANTICIPATED
        high, last = min(lower, epsilon), step
        epsilon = max(high - BEYOND * step * shrinking / (1.0 - shrinking) - LEAST_STEP * high, low)
    return low
