"""The exact leakage of every step so far, kept up to date while budgets are spent (docs/theory.md, section 11)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.exact.incoming import LEAST_KEPT, Incoming, OnlineProblem
from temporaldp.kernels import signs
from temporaldp.kernels.signs import LARGEST_LEVEL
from temporaldp.values import ROUNDOFF as U

FloatArray = NDArray[np.float64]

FINAL = (1e-12, 1e-10, 1e-8)
"""Shares of a step's leakage, or of a nat where that is larger, by which what follows may still raise it once it is final: the
first, but for steps older than twice, and four times, the memory of the correlation, where rounding hides more."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactSeries:
    """BPL, FPL and TPL of every step so far, of which few change when one more follows.

    A step is final once no later steps whose forward leakage is at most a ceiling can raise it.

    Parameters
    ----------
    problem : OnlineProblem
    past : Incoming
        What arrives at the next step.
    found : array, shape (3, T)
        BPL, FPL and TPL, in nats, from above.
    arrived, rho : arrays, shape (steps that are not final, pairs)
        Backward leakage of each pair, and ratios less 1 where the search for forward leakage begins, oldest step first.
    ceiling : float
        Forward leakage that final steps rest on, in nats.
    memory : float
        Steps that the correlation remembers.
    """

    problem: OnlineProblem
    past: Incoming
    found: FloatArray
    arrived: FloatArray
    rho: FloatArray
    ceiling: float
    memory: float

    @classmethod
    def at_start(cls, problem: OnlineProblem, ceiling: float = 0.0) -> Self:
        """Before the first step."""
        past, nothing = Incoming.at_start(problem, problem.backward), np.zeros((0, len(problem.pairs[0])))
        memory = 0.0 if problem.forward is None else problem.forward.memory
        return cls(problem, past, np.zeros((3, 0)), nothing, nothing, ceiling, memory)

    def after(self, spent: Sequence[float]) -> Self:
        """After all these budgets, of which the first ones are known already."""
        problem, past, n_steps = self.problem, self.past, len(spent)
        known = self.found.shape[1]
        first = known - len(self.arrived)
        epsilons = np.array(spent[first:], dtype=np.float64)
        if problem.n < 2:
            return replace(self, found=np.array([spent[:]] * 3))
        arrived = []
        for step in range(known, n_steps):
            arrived.append(past.leakage)
            past = past.after(problem, problem.backward, float(epsilons[step - first]), step + 1, close=True)
        new = np.zeros((n_steps - known, len(problem.pairs[0])))
        new[:] = arrived or new
        everything, rho = np.concatenate((self.arrived, new)), np.concatenate((self.rho, 0.0 * new))
        backward = (epsilons[known - first :] + new.max(axis=1)) * (1.0 + 4.0 * U)
        window = np.array([epsilons, epsilons, epsilons])
        window[0] = np.concatenate((self.found[0, first:], backward))
        now = replace(self, past=past, arrived=everything, rho=rho)
        return now._with(window, self.found[:, :first], epsilons, spent)

    def _with(self, window: FloatArray, final: FloatArray, epsilons: FloatArray, spent: Sequence[float]) -> Self:
        """With FPL and TPL of the steps of a window, which is not final yet."""
        side, first = self.problem.forward, final.shape[1]
        if side is None:
            window[2] = window[0]
            found = np.concatenate((final, window), axis=1)
            return replace(self, found=found, arrived=self.arrived[:0], rho=self.rho[:0])
        i, j = self.problem.pairs
        backwards = np.array(epsilons[::-1]), np.array(self.arrived[::-1]), np.array(self.rho[::-1])
        into = np.array([side.number(step) for step in range(len(spent) - 1, first - 1, -1)])
        up = np.expm1(backwards[0])
        forward, temporal = np.zeros(len(into)), np.zeros(len(into))
        signs.forward_leakage(side.chain(into, up, 0.0 * up), i, j, *backwards, forward, temporal)
        largest = float(forward.max())
        if final.size and largest > self.ceiling:
            return type(self).at_start(self.problem, min(4.0 * largest, LARGEST_LEVEL)).after(spent)
        ceiling = min(max(self.ceiling, 2.0 * largest), LARGEST_LEVEL)
        # Final steps may still be raised, by less than that.
        spread = np.full(len(into) + 1, ceiling + 10.0 * FINAL[-1])
        chain = side.chain(np.append(0, into), np.append(math.expm1(spread[0]), up), spread)
        done = 0
        for times, share in enumerate(FINAL):
            done = signs.count_final(chain, i, j, *backwards[:2], forward, temporal, share)
            if len(into) - done <= 2.0 * (times + 1) * self.memory + LEAST_KEPT:
                window[1:] = forward[::-1], temporal[::-1]
                window[1:, :done] += share * np.maximum(window[1:, :done], 1.0)
                break
        found = np.concatenate((final, window), axis=1)
        left = self.arrived[done:], backwards[2][::-1][done:]
        return replace(self, found=found, arrived=left[0], rho=left[1], ceiling=ceiling)
