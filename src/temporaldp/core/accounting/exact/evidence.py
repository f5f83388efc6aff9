"""Evidence of exact leakage: the pairs of states with the largest leakage, and observations that attain it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from temporaldp.base.display import number
from temporaldp.base.values import ROUNDOFF as U
from temporaldp.base.values import BoolArray, FloatArray, IntArray, compared_by_value
from temporaldp.core.accounting.exact.arrivals import Releases, pair_values, rollouts
from temporaldp.core.accounting.exact.search import SPREAD_ROOM
from temporaldp.core.accounting.protocol import Attained, Direction, Evidence
from temporaldp.core.correlation import Adversary
from temporaldp.core.kernels.chain import Chain
from temporaldp.core.kernels.observations import observation


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Observation:
    """The observation of all releases that distinguishes two states at one step best.

    Parameters
    ----------
    time : int
        The step whose state leaks, from 0.
    state, other_state : str
        The state that the observation makes more likely, and the one that it makes less likely.
    states : tuple of str
    high : bool array, shape (T, n)
        States that the output of each step favours as strongly as possible: in a histogram, those with high counts.
    leakage : float
        Log of the ratio of the observation's likelihoods, in nats: a lower bound by rounding.
    """

    time: int
    state: str
    other_state: str
    states: tuple[str, ...]
    high: BoolArray
    leakage: float

    def __len__(self) -> int:
        return len(self.high)

    def __repr__(self) -> str:
        return (
            f"Observation({self.state!r} rather than {self.other_state!r} at step {self.time}, "
            f"{number(self.leakage, down=True, digits=6)} nats from {len(self)} steps)"
        )

    def counts_high(self, step: int) -> tuple[str, ...]:
        """The states with high counts at a step."""
        return tuple(state for state, high in zip(self.states, self.high[step], strict=True) if high)


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactLeakage(Evidence):
    """Details of the exact leakage of one user: pairs of states and observations, computed on request.

    Parameters
    ----------
    states : tuple of str
    adversary : Adversary
    releases : Releases
    attained : Attained
    spreads : array, shape (2, T)
        BPL and FPL, which bound the likelihoods in which rollouts end.
    codes : int array, shape (3, T)
        The pair ``i n + j`` of states that BPL, FPL and TPL are about.
    """

    states: tuple[str, ...]
    adversary: Adversary = field(compare=False)
    releases: Releases
    attained: Attained = field()  # without it, the property of the base class would be taken for a default
    spreads: FloatArray = field(compare=False)
    codes: IntArray

    compares_pairs = True

    def __len__(self) -> int:
        return len(self.releases)

    @property
    def best_pairs(self) -> dict[str, tuple[IntArray, IntArray]]:
        """For each of "backward", "forward" and "temporal", the positions of the two states, arrays of shape (T,)."""
        return {name: np.divmod(self.codes[k], len(self.states)) for k, name in enumerate(Attained._fields)}

    def worst_pair(self, step: int, direction: Direction = "temporal") -> tuple[str, str]:
        """The pair of states with the largest leakage at a step: state and other state."""
        i, j = self._pair(self.checked_step(step, direction), direction)
        return self.states[i], self.states[j]

    def metric(self, step: int, direction: Direction = "temporal") -> FloatArray:
        """Exact leakage of every ordered pair at a step, shape (n, n): row = the state, column = the one it is compared with.

        Upper bounds, in nats, within rounding; zero on the diagonal. Row and column follow `states`.

        Raises
        ------
        InputError
            There is no such step or direction.
        """
        at, n = self.checked_step(step, direction), len(self.states)
        i, j = np.nonzero(~np.eye(n, dtype=bool))
        wide = not self.releases.is_plain
        found = np.zeros((n, n))
        found[i, j] = self.releases.lift[at, i if wide else 0] - self.releases.drop[at, j if wide else 0]
        for chain, t, _ in self._chains(at, direction):
            found[i, j] += pair_values(chain, np.full(len(i), t), i, j)[1]
        return found * (1.0 + 4.0 * U)

    def witness(self, step: int) -> Observation:
        """The observation with the largest leakage about a step: the states with high counts, step by step."""
        at = self.checked_step(step)
        i, j = self._pair(at, "temporal")
        wide = not self.releases.is_plain
        leakage = float(self.releases.lift[at, i if wide else 0] - self.releases.drop[at, j if wide else 0])
        high = np.zeros((len(self), len(self.states)), bool)
        high[at, i] = True
        for chain, t, turned in self._chains(at, "temporal"):
            if t == 0:
                continue
            attained, _, rho, _ = pair_values(chain, *np.array([[t], [i], [j]]))
            favoured = observation(chain, t, i, j, float(rho[0]))
            if turned:
                high[at + 1 :] = favoured[::-1]
            else:
                high[:at] = favoured
            leakage += float(attained[0])
        high &= np.any(self.releases.lift > self.releases.drop, axis=1, keepdims=True)
        return Observation(at, self.states[i], self.states[j], self.states, high, leakage * (1.0 - 4.0 * U))

    def _chains(self, step: int, name: str) -> list[tuple[Chain, int, bool]]:
        """Rollouts of the directions that a name stands for, the step as each of them counts it, and whether it is turned."""
        found = []
        for side, correlation in enumerate((self.adversary.backward, self.adversary.forward)):
            if correlation and name in (Attained._fields[side], "temporal"):
                chain = rollouts(correlation, self.releases, self.spreads[side] * SPREAD_ROOM, turned=bool(side))
                found.append((chain, len(self) - 1 - step if side else step, bool(side)))
        return found

    def _pair(self, step: int, direction: Direction) -> tuple[int, int]:
        return divmod(int(self.codes[Attained._fields.index(direction), step]), len(self.states))
