"""Why a step leaks: the two values that are told apart, and by what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from temporaldp.values import compared_by_value


@dataclass(frozen=True, slots=True)
class Witness:
    """The pair of values and the event at the other time that make a vertex of a leakage profile.

    Parameters
    ----------
    value, other_value : str
        The two values told apart.
    evidence : tuple of str
        The set S of values at the other time that speaks for `value`.
    probability, other_probability : float
        ``Pr(S | value)`` and ``Pr(S | other_value)``: the vertex's q and d.
    """

    value: str
    other_value: str
    evidence: tuple[str, ...]
    probability: float
    other_probability: float


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class WitnessList(Sequence[Witness]):
    """Witnesses by number, put into words when asked for: most are never looked at.

    `pairs` (m, 2) and `members` number the states; the set of witness v is ``members[starts[v] : starts[v + 1]]``;
    `probabilities` (m, 2) are d and q.
    """

    states: tuple[str, ...]
    pairs: NDArray[np.int64]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    probabilities: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.pairs)

    @overload
    def __getitem__(self, index: int) -> Witness: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Witness, ...]: ...
    def __getitem__(self, index: int | slice) -> Witness | tuple[Witness, ...]:
        if isinstance(index, slice):
            return tuple(self[k] for k in range(*index.indices(len(self))))
        v = range(len(self))[index]
        value, other = (self.states[int(k)] for k in self.pairs[v])
        evidence = tuple(self.states[int(k)] for k in self.members[self.starts[v] : self.starts[v + 1]])
        d, q = self.probabilities[v]
        return Witness(value, other, evidence, float(q), float(d))


def chosen(witnesses: Sequence[Witness], numbers: NDArray[np.intp]) -> Sequence[Witness]:
    """The witnesses with these numbers; a `WitnessList` stays one."""
    if not isinstance(witnesses, WitnessList):
        return tuple(witnesses[int(k)] for k in numbers)
    sets = [witnesses.members[witnesses.starts[k] : witnesses.starts[k + 1]] for k in numbers]
    starts = np.concatenate(([0], np.cumsum([len(part) for part in sets], dtype=np.int64)))
    members = np.concatenate(sets) if sets else np.zeros(0, dtype=np.int64)
    return WitnessList(witnesses.states, witnesses.pairs[numbers], members, starts, witnesses.probabilities[numbers])
