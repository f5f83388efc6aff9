"""The largest exact leakage about any step of one user so far, kept up to date while budgets are spent.

Notation
--------
t        the last step so far
W        the largest TPL so far
K_B      what arrives about a pair of values at a step from the past: known once the step is there
K_F      what arrives from the future: every new release may raise it
c        coefficients of a rollout (`temporaldp.kernels.signs`)

For each earlier step s and each pair a rollout into the future asks whether ``K_B + e_s + K_F <= W``, and takes one more step
at each spend. Where the sign is not proved the value is computed, W is raised if need be, and the rollout begins again at the
new W. Once no likelihoods within W of one another could raise a sum above W, whatever else follows, no others can raise it
above the leakage of the later step that has them (docs/theory.md, section 11), and the pair is never looked at again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.sides import KEPT, LEAST_KEPT, Problem, Side
from temporaldp.correlation import Adversary
from temporaldp.kernels.chain import Chain, Items
from temporaldp.kernels.kernels import repeated
from temporaldp.kernels.rollouts import solve
from temporaldp.kernels.signs import LARGEST_LEVEL, Coefficients
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ABOVE, BLURRED = 1e-12, 1e-11
"""Share of W by which rollouts ask for more than W, and to which they are believed; and the share of W up to which what
rounding hides is added to the answer, where a rollout has gone on for longer than the correlation remembers."""

SETTLED, MOST_FOLLOWING = 1e-9, 200
"""Share of W by which one more step of a reserve no longer raises it; and steps of it that are looked at, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """Pairs of values at earlier steps that what follows may still bring above W; their rollouts have come to the next step."""

    step: IntArray
    pair: IntArray
    rollouts: Coefficients

    def __getitem__(self, which: IntArray | NDArray[np.bool_]) -> Open:
        return Open(self.step[which], self.pair[which], self.rollouts[which])

    def joined(self, other: Open) -> Open:
        """The items of both."""
        steps, pairs = np.concatenate((self.step, other.step)), np.concatenate((self.pair, other.pair))
        return Open(steps, pairs, Coefficients.joined((self.rollouts, other.rollouts)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactOdometer:
    """The largest exact leakage about any step so far; a spend gives another one.

    Parameters
    ----------
    problem : Problem
        Its level is not used.
    n_steps : int
    largest : float
        W, in nats: an upper bound, attained to rounding.
    time, timed : int, float
        The first step that has it, but for rounding, and what was found there.
    past : Side
        What arrives at the next step from those so far.
    spent : array, shape (k,)
        The last budgets, the last first: as many as open rollouts and the memory of the correlation reach back.
    depth : int
        How far rollouts into the future went at most.
    """

    problem: Problem
    n_steps: int
    largest: float
    time: int
    timed: float
    past: Side
    spent: FloatArray
    depth: int
    open: Open

    @classmethod
    def at_start(cls, adversary: Adversary, *, horizon: int | None = None) -> Self:
        """Before the first step."""
        problem = Problem.of(adversary, math.inf, adversary.n_steps or horizon)
        nothing = np.zeros(0, np.int64)
        rollouts = Coefficients.start(np.zeros((0, problem.n)), np.zeros((0, problem.n)), np.zeros(0))
        side = Side.at_start(problem.n)
        return cls(problem, 0, 0.0, 0, 0.0, side, np.zeros(0), 0, Open(nothing, nothing, rollouts))

    def worst(self) -> tuple[float, int]:
        """The largest TPL so far, in nats, from above and attained to rounding, and the first step (from 0) that has it.

        (0, 0) before the first step. Within 3e-12 of `temporal_leakage`.
        """
        return self.largest * (1.0 + 2.0 * ABOVE), self.time

    def worst_with(self, epsilon: float, reserve: float = 0.0) -> tuple[float, int]:
        """The same if `epsilon` were spent next, and `reserve` at every later step: these until they add next to nothing."""
        now = self.after(epsilon)
        for _ in range(MOST_FOLLOWING if reserve > 0.0 else 0):
            if now.n_steps == self.problem.n_steps:
                break
            before, now = now.largest, now.after(reserve)
            if now.largest <= before * (1.0 + SETTLED):
                break
        return now.worst()

    def after(self, epsilon: float) -> Self:
        """After one more budget."""
        problem, t = self.problem, self.n_steps
        if (
            self.largest + epsilon > LARGEST_LEVEL
        ):  # too loud for rollouts; no release adds more than its budget to any step
            return replace(self, n_steps=t + 1, largest=self.largest + epsilon, time=self.time)
        if problem.n < 2:
            largest, time = (epsilon, t) if epsilon > self.largest else (self.largest, self.time)
            return replace(self, n_steps=t + 1, largest=largest, time=time)
        with repeated(t):
            spent = np.concatenate(([epsilon], self.spent))
            way = problem.backward
            past = self.past if way is None else self.past.after(way, problem.values, t, epsilon, t + 1)
            now = replace(self, n_steps=t + 1, past=past, spent=spent, open=self._moved(epsilon))
            return now._raised(epsilon, self.past.arriving)._without_sealed()

    def adopted(self, adversary: Adversary) -> Self:
        """With another correlation from the next step on; the steps so far keep their matrices."""
        later = Problem.of(adversary, math.inf, None)
        problem = self.problem.changed(self.n_steps, later)
        if problem.backward is None or problem.n < 2:
            return replace(self, problem=problem)
        with repeated(self.n_steps):
            return replace(
                self, problem=problem, past=self.past.changed(problem.backward, problem.values, self.n_steps)
            )

    @property
    def _level(self) -> float:
        return self.largest * (1.0 + ABOVE)

    def _moved(self, epsilon: float) -> Open:
        """The open items one step further."""
        way = self.problem.forward
        if way is None:
            return self.open
        matrix = way.matrices[way.leads_on(self.n_steps)]
        return replace(self.open, rollouts=self.open.rollouts.advanced(math.expm1(epsilon), matrix))

    def _raised(self, epsilon: float, arriving: FloatArray) -> Self:
        """W with the items, new ones too, that may exceed it now; and all of them asking about it."""
        t, every = self.n_steps - 1, np.arange(len(self.problem.values[0]))
        failing = ~(self.open.rollouts.excess(0.0) <= ABOVE * self.largest)
        above = epsilon + arriving > self._level
        steps = np.concatenate((self.open.step[failing], np.full(int(above.sum()), t)))
        pairs = np.concatenate((self.open.pair[failing], every[above]))
        now, known = self, np.zeros(0)
        if len(steps):
            known, total, depth = self._solved(steps, pairs)
            best = int(np.argmax(total))
            first = int(steps[total >= total[best] * (1.0 - ABOVE)].min())
            now = replace(now, depth=max(self.depth, depth))
            if total[best] > self.timed * (1.0 + ABOVE):
                now = replace(now, time=first, timed=float(total[best]))
            now = replace(now, largest=max(self.largest, float(total[best])))
        if self.problem.forward is None:
            return now
        again = now._from_the_start(steps, pairs, known)
        fresh = now._from_the_start(np.full(int((~above).sum()), t), every[~above], arriving[~above])
        return replace(now, open=now.open[~failing].joined(again).joined(fresh))

    def _solved(self, steps: IntArray, pairs: IntArray) -> tuple[FloatArray, FloatArray, int]:
        """What arrives from the past, and TPL, of each item, from above; and how far rollouts into the future went."""
        i, j = (one[pairs] for one in self.problem.values)
        t, depth = self.n_steps - 1, 0
        arrived, following = np.zeros(len(steps)), np.zeros(len(steps))
        if self.problem.backward is not None:
            first = max(int(steps.min()) - KEPT * self.past.depth - LEAST_KEPT, t + 1 - len(self.spent))
            chain, spread = self._past_chain(first)
            arrived = solve(chain, Items(steps - first, i, j), spread).proved
        if self.problem.forward is not None:
            chain, spread = self._future_chain(int((t - steps).max()))
            found = solve(chain, Items(t - steps, i, j), spread)
            following, depth = found.proved, int(found.depth.max())
        return arrived, (arrived + following + self.spent[t - steps]) * (1.0 + 4.0 * U), depth

    def _past_chain(self, first: int) -> tuple[Chain, FloatArray]:
        """The steps from `first` on in order of time, as `temporaldp.kernels.rollouts` takes them.

        What lies before `first` is one more release together with that step: no step's backward leakage was above W before this
        release.
        """
        way, t = self.problem.backward, self.n_steps - 1
        assert way is not None
        budgets = self.spent[t - first :: -1].copy()
        if first:
            budgets[0] = self.largest * (1.0 + 1e-9)
        into = np.array([way.leads_on(s) for s in range(first, t + 1)], dtype=np.int64)
        spread = np.minimum(np.cumsum(budgets), self.largest + budgets[-1]) * (1.0 + 1e-9)
        up = np.expm1(budgets)[:, None]
        return Chain(tuple(way.matrices), into, up, 0.0 * up), spread

    def _future_chain(self, length: int) -> tuple[Chain, FloatArray]:
        """The last steps, furthest into the future first, as `temporaldp.kernels.rollouts` takes them."""
        way, t = self.problem.forward, self.n_steps - 1
        assert way is not None
        budgets = self.spent[: length + 1]
        into = np.array([way.leads_on(t - k) for k in range(length + 1)], dtype=np.int64)
        # No step's forward leakage is above W before this release, and what this one adds.
        spread = np.minimum(np.cumsum(budgets), self.largest + budgets[0]) * (1.0 + 1e-9)
        up = np.expm1(budgets)[:, None]
        return Chain(tuple(way.matrices), into, up, 0.0 * up), spread

    def _from_the_start(self, steps: IntArray, pairs: IntArray, arrived: FloatArray) -> Open:
        """Rollouts that ask about W, from their own steps to the next one."""
        way, t = self.problem.forward, self.n_steps - 1
        assert way is not None
        i, j = self.problem.values
        begun = self.open[np.zeros(0, np.int64)]
        for s in range(int(steps.min(initial=t + 1)), t + 1):
            matrix, here = way.matrices[way.leads_on(s)], np.flatnonzero(steps == s)
            budget = float(self.spent[t - s])
            level = np.maximum(self._level - budget - arrived[here], 0.0)
            new = Coefficients.start(matrix[i[pairs[here]]], matrix[j[pairs[here]]], np.expm1(level))
            moved = replace(begun, rollouts=begun.rollouts.advanced(math.expm1(budget), matrix))
            begun = moved.joined(Open(steps[here], pairs[here], new))
        return begun

    def _without_sealed(self) -> Self:
        """Without the items that can no longer matter."""
        above = self.open.rollouts.excess(self._level)
        sealed = above <= ABOVE * self.largest
        old = self.open.rollouts.depth > 2 * max(self.depth, self.past.depth) + LEAST_KEPT
        blurred = ~sealed & old & (above <= BLURRED * self.largest)
        largest = max(self.largest, self._level + float(above[blurred].max())) if blurred.any() else self.largest
        left = self.open[~sealed & ~blurred]
        reach = self.n_steps - int(left.step.min(initial=self.n_steps)) + KEPT * self.past.depth + LEAST_KEPT
        return replace(self, largest=largest, open=left, spent=self.spent[:reach])


class CountedExactly:
    """What has leaked so far about one user, of budgets that are taken note of as they come.

    What is asked about is often what is spent next: the answer is kept until then.
    """

    def __init__(self, now: ExactOdometer, asked: tuple[float, ExactOdometer] | None = None) -> None:
        self._now, self._asked = now, asked

    def __copy__(self) -> CountedExactly:
        return CountedExactly(self._now, self._asked)

    @property
    def now(self) -> ExactOdometer:
        """After what was taken note of."""
        return self._now

    def extend(self, releases: Sequence[float]) -> None:
        """Take note of the budgets of the next steps."""
        for epsilon in releases:
            self._now, self._asked = self._after(epsilon), None

    def adopted(self, adversary: Adversary) -> CountedExactly:
        """With another correlation from the next step on."""
        return CountedExactly(self._now.adopted(adversary))

    def worst(self) -> tuple[float, int]:
        """The largest TPL so far and the first step that has it."""
        return self._now.worst()

    def worst_with(self, release: float) -> tuple[float, int]:
        """The same if `release` were spent next; changes nothing."""
        self._asked = release, self._after(release)
        return self._asked[1].worst()

    def _after(self, epsilon: float) -> ExactOdometer:
        if self._asked is not None and self._asked[0] == epsilon:
            return self._asked[1]
        return self._now.after(epsilon)
