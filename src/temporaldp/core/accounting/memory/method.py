"""Accounting for chains with a longer memory: leakage about the states that hidden states show.

Notation
--------
u        a hidden state, and s(u) its share among those that show a state
x, y     likelihoods of the releases before and after a step, given the hidden state there, divided by their means over s
f, g     largest distances of x and of y from 1, upwards and downwards

Given the hidden state, past and future are independent. Of a state the likelihood of both is ``sum of s x y``, the product of
the two means times 1 + c, where the covariance c lies between the sums of s times the larger products of f and g of the same
direction, and of opposite directions. So leakage about two states is at most that from the past, from the future and of the
step itself, plus the logarithms of both corrections (Theory, section 13).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from temporaldp.base.progress import progressed
from temporaldp.base.values import FloatArray, compared_by_value, copy_in
from temporaldp.core.accounting.exact.method import EXACT
from temporaldp.core.accounting.margins import CONSTANT_MARGIN
from temporaldp.core.accounting.memory.online import RepeatedFilter, RepeatedOdometer
from temporaldp.core.accounting.monotone_search import largest_in_few_tries
from temporaldp.core.accounting.protocol import (
    Accounting,
    Attained,
    Direction,
    Evidence,
    Filter,
    Leakage,
    Limits,
    Side,
)
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.lifted_chain import LiftedAdversary, LiftedChain
from temporaldp.core.kernels.merged import Hidden

BLOCKS = (64, 256)
"""Steps that are followed one by one, if bounds of what is further away are certified; else, more of them."""

MOST_WEIGHTS = 1 << 23
"""Weights of hidden states at the steps around all steps, for all pairs of states: followed in some seconds."""


@compared_by_value
class MemoryArrivals(NamedTuple):
    """Releases of one direction, at each of T steps.

    Parameters
    ----------
    leakage : array, shape (T, p)
        Upper bounds of incoming leakage about the p ordered pairs of different states, in nats.
    above, below : array, shape (T, m)
        f or g.
    likelihoods : array, shape (T, p, m)
        Of an observation for each pair, given the hidden state.
    """

    leakage: FloatArray
    above: FloatArray
    below: FloatArray
    likelihoods: FloatArray


class LongerMemory(Accounting[FloatArray, MemoryArrivals | None]):
    """Upper and attained bounds of leakage about the states of a `LiftedChain`; `Exact()` stands for it there.

    Releases are epsilons. Sources: the sign rule on the hidden states with choices that they share, and the covariance of
    past and future (Theory, section 13).
    """

    name = "longer memory"
    is_first_order = False
    sentence = (
        "Leakage is an upper bound for an adversary who knows a chain with a longer memory, by the sign rule on its hidden "
        "states, which share the choices of the state that they show."
    )

    def specialised(
        self, users: Sequence[Adversary], releases: Sequence[Any] = (), *, online: bool = False
    ) -> Accounting[Any, Any]:
        """The method itself; `Exact` for matrices of states, beside which several models have such chains."""
        return self if users[0].is_lifted else EXACT.specialised(users, releases, online=online)

    def arrivals(self, user: Adversary, side: Side, releases: FloatArray) -> MemoryArrivals:
        """Incoming leakage of each step.

        Steps with the same budgets around them share it. Where that would be too many weights, steps about as far from the end
        share the bounds of the largest budgets around any of them, and what is attained for the smallest ones.
        """
        chain, n_steps = _hidden(user, side), len(releases)
        i, j = np.nonzero(~np.eye(len(chain.shares), dtype=bool))
        ordered = releases[::-1] if side == "backward" else releases
        largest, positions = float(releases.max()), np.arange(n_steps)
        # Where budgets differ much, what settles at the largest one says little
        is_each = n_steps**2 * len(i) * len(chain.labels) <= MOST_WEIGHTS and _is_uneven(releases)
        settled = chain.settled(largest, BLOCKS[0]) if n_steps - 1 > BLOCKS[0] and not is_each else None
        width = max(n_steps - 1 if settled is None else BLOCKS[0], 1)
        windows = sliding_window_view(np.concatenate([ordered[1:], np.zeros(width)]), width)
        follow, numbers = np.arange(n_steps) + width < n_steps - 1, positions
        if settled is not None:
            # Steps with the same budgets around them share incoming leakage
            _, firsts, numbers = np.unique(
                np.column_stack([windows, follow]), axis=0, return_index=True, return_inverse=True
            )
            windows, follow, positions = windows[firsts], follow[firsts], positions[firsts]
        least, numbers = windows, numbers.reshape(-1)
        is_many = windows.size * len(i) * len(chain.labels) > MOST_WEIGHTS
        spread = around = settled or (chain.at_each(windows) if is_each else chain.constant(largest, width))
        if is_many:
            alike = np.ceil(np.log2(np.minimum(n_steps - positions, BLOCKS[0])))
            groups = [np.flatnonzero(alike == one) for one in np.unique(alike)]
            windows, least = (np.array([of(windows[some], axis=0) for some in groups]) for of in (np.max, np.min))
            follow = np.array([follow[some].any() for some in groups])
            numbers = np.searchsorted(np.unique(alike), alike)[numbers]
        elif not is_each:
            around = chain.in_parts(windows, follow, spread)
            spread = around if settled is None else settled
        positions = np.arange(len(windows))
        on = ((windows > 0.0).any(axis=1) | follow)[:, None]
        low, high = (np.where(on, one, 1.0) for one in around.at(positions))
        each = np.repeat(np.arange(len(windows)), len(i))
        tops, bottoms = (np.tile(chain.shares[k], (len(windows), 1)) for k in (i, j))
        # Other steps leak about as much as the one in the middle: there, searches end sooner
        middle = np.full(len(i), len(windows) // 2)
        near, _ = chain.largest(chain.shares[i], chain.shares[j], windows[middle], spread, follow[middle], middle)
        found, raised = chain.largest(
            tops, bottoms, windows[each], spread, follow[each], positions[each], np.tile(near, len(windows))
        )
        progressed("leakage of every step", 0.5)
        seen = chain.likelihoods(raised, least[each]).reshape(len(windows), len(i), -1)
        numbers = numbers[::-1] if side == "backward" else numbers
        return MemoryArrivals(
            found.reshape(-1, len(i))[numbers], high[numbers] - 1.0, 1.0 - low[numbers], seen[numbers]
        )

    def leakage(
        self, user: Adversary, past: MemoryArrivals | None, releases: FloatArray, future: MemoryArrivals | None
    ) -> Leakage:
        """The largest leakage of each step about two states."""
        assert past is not None and future is not None and isinstance(user, LiftedAdversary)
        evidence = MemoryLeakage(user.chain, releases, past, future)
        backward, forward, temporal = (one.max(axis=1, initial=0.0) for one in evidence.proved)
        return Leakage(backward + releases, forward + releases, temporal + releases, evidence)

    def supremum_arrivals(self, user: Adversary, side: Side, release: FloatArray) -> MemoryArrivals | None:
        """Incoming leakage over an infinite horizon; None where no bounds of it are certified."""
        chain, epsilon = _hidden(user, side), float(release[0])
        for n_steps in BLOCKS:
            spread = chain.settled(epsilon, n_steps)
            if spread is None:
                continue
            i, j = np.nonzero(~np.eye(len(chain.shares), dtype=bool))
            budgets, follow = np.full((len(i), n_steps), epsilon), np.ones(len(i), dtype=np.bool_)
            found, raised = chain.largest(chain.shares[i], chain.shares[j], budgets, spread, follow)
            seen = chain.likelihoods(raised, budgets)
            return MemoryArrivals(found[None], spread.high - 1.0, 1.0 - spread.low, seen[None])
        return None

    def supremum_leakage(
        self, user: Adversary, past: MemoryArrivals | None, release: FloatArray, future: MemoryArrivals | None
    ) -> Limits:
        """Supremum of the leakage of every step; infinite where nothing is certified for a direction."""
        epsilon = float(release[0])
        if past is None or future is None:
            first, last = (np.inf if one is None else epsilon + float(one.leakage.max()) for one in (past, future))
            return Limits(first, last, np.inf)
        assert isinstance(user, LiftedAdversary)
        found = MemoryLeakage(user.chain, release, past, future)
        first, last, both = (epsilon + float(one.max(initial=0.0)) for one in found.proved)
        return Limits(first, last, both, lower=Attained(*np.array(found.attained)[:, 0]))

    def sustainable_epsilon(self, users: Sequence[Adversary], alpha: float) -> float:
        """The largest sustainable epsilon, to a thousandth; 0 where none is found."""

        def worst(epsilon: float) -> float:
            release = self.of_epsilons(np.array([epsilon]))
            few = np.full(33, epsilon)  # most budgets that are too large exceed alpha within so many steps
            attained = max(self.series([user], few)[0].evidence.attained.temporal.max() for user in users)  # type: ignore[union-attr]
            return float(attained) if attained > alpha else self.limits(users, release).temporal

        return largest_in_few_tries(worst, 1e-4 * alpha, alpha, alpha * (1.0 - CONSTANT_MARGIN))

    def plan_margin(self, alpha: float, horizon: int, n_states: int) -> float:
        """A millionth: bounds of the first steps may lie above those of all of them by the tolerance of a search."""
        return 1e-6

    def odometer(self, user: Adversary) -> RepeatedOdometer:
        """Odometer that computes the series again."""
        return RepeatedOdometer(self, user)

    def filters(
        self, users: Sequence[Adversary], alpha: float, reserve: float | None, horizon: int | None
    ) -> tuple[Sequence[Filter], float]:
        """With a horizon, by the series of all steps; without one, every step may spend the reserve and no more."""
        if reserve is None:
            reserve = 0.0 if horizon is not None else self.sustainable_epsilon(users, alpha)
        found = [RepeatedFilter(RepeatedOdometer(self, user), alpha, reserve, horizon) for user in users]
        for one in found:
            one.require_reserve()
        return found, reserve


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MemoryLeakage(Evidence):
    """Leakage about every ordered pair of states of a chain with a longer memory, from both sides, in nats.

    Parameters
    ----------
    chain : LiftedChain
    epsilons : array, shape (T,)
    past, future : MemoryArrivals
    """

    chain: LiftedChain
    epsilons: FloatArray
    past: MemoryArrivals
    future: MemoryArrivals
    compares_pairs = True

    def __post_init__(self) -> None:
        copy_in(self, "epsilons")

    def __len__(self) -> int:
        return len(self.epsilons)

    @property
    def states(self) -> tuple[str, ...]:  # type: ignore[override]
        """The states."""
        return self.chain.states

    @property
    def proved(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Upper bounds of incoming leakage from the past, the future and both, for each step and pair, shape (T, p)."""
        past, future, shares = self.past, self.future, self.chain.shares
        i, j = np.nonzero(~np.eye(len(shares), dtype=bool))
        alike = np.maximum(past.above * future.above, past.below * future.below) @ shares.T
        opposite = np.maximum(past.above * future.below, past.below * future.above) @ shares.T
        with np.errstate(divide="ignore"):
            corrections = np.log1p(alike)[:, i] - np.log1p(-np.minimum(opposite, 1.0))[:, j]
        # Nothing is known where infinite distances meet those of 0
        known = np.where(np.isnan(corrections), np.inf, corrections)
        return past.leakage, future.leakage, past.leakage + future.leakage + known

    @property
    def attained(self) -> Attained:
        """What the observations of each pair attain, the largest at each step."""
        shares = self.chain.shares
        i, j = np.nonzero(~np.eye(len(shares), dtype=bool))
        found = []
        for seen in (self.past.likelihoods, self.future.likelihoods, self.past.likelihoods * self.future.likelihoods):
            ratios = (seen * shares[i]).sum(axis=2) / (seen * shares[j]).sum(axis=2)
            found.append(self.epsilons + np.log(ratios.max(axis=1)) * (1.0 - 1e-12))
        return Attained(*found)

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """Leakage of every ordered pair at a step, shape (n, n): row = the state, column = the one it is compared with."""
        at = self.checked_step(step, direction)
        found = np.zeros((len(self.states),) * 2)
        which = ("backward", "forward", "temporal").index(direction)
        found[~np.eye(len(found), dtype=bool)] = self.epsilons[at] + self.proved[which][at]
        return found


def _is_uneven(releases: FloatArray) -> bool:
    """Whether steps nearby cannot share bounds: the largest budget of eight steps is 2.5 times an average one."""
    few = 8
    if len(releases) <= few:
        return True
    return bool(sliding_window_view(releases, few).max(axis=1).mean() > 2.5 * releases.mean())


def _hidden(user: Adversary, side: Side) -> Hidden:
    """The chain of a user in one direction."""
    assert isinstance(user, LiftedAdversary)
    return user.chain.hidden(side)
