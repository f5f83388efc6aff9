"""Mechanisms of a whole sequence of releases, whose outputs may depend on several steps and share their noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import FloatArray
from temporaldp.core.accounting.protocol import Accounting, Leakage
from temporaldp.core.correlation import Adversary
from temporaldp.core.mechanisms.distances import require_no_nearer


class SharedEpsilon(float):
    """One of `SharedEpsilons`."""


class SharedEpsilons(np.ndarray[Any, np.dtype[np.float64]]):
    """Event-level epsilons of outputs that may share noise between steps: an array.

    `ApproximateDP` refuses it, and so do chains with a longer memory.
    """

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return found if isinstance(found, np.ndarray) else SharedEpsilon(found)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> Any:
        """The epsilons as numbers that are recognised too."""
        return list(map(SharedEpsilon, super().tolist()))


def is_shared(releases: Any) -> bool:
    """Whether releases are, or contain, event-level epsilons of outputs that may share noise between steps."""
    some = releases if isinstance(releases, list | tuple) else [releases]
    return any(isinstance(one, SequenceMechanism | SharedEpsilon | SharedEpsilons) for one in some)


def without_shared(releases: Any, accounting: Accounting[Any, Any], users: Sequence[Adversary]) -> Any:
    """Return the releases, an iterator as a list.

    Raises
    ------
    InputError
        Outputs may share noise, and delta > 0 or a user's correlation has a longer memory. Event-level epsilons then do not
        determine the leakage: an output about several steps can distinguish hidden states of one state. Or a metric puts
        states nearer than 1, which such an output may distinguish by its whole epsilon.
    """
    releases = list(releases) if isinstance(releases, Iterator) else releases
    if not is_shared(releases):
        return releases
    if any(user.is_lifted for user in users):
        raise InputError(
            "expected first-order correlations for event-level epsilons of outputs that may share noise between steps, got a "
            "chain with a longer memory: such outputs can distinguish hidden states of one state. Account for the hidden "
            "states: Adversary(*chain.adversary.directions)"
        )
    if accounting.delta:
        raise InputError(
            f"expected Exact() or another method without a delta, got {accounting!r}: these are event-level epsilons of "
            "outputs that share noise between steps, which determine the leakage at delta = 0 only"
        )
    require_no_nearer(accounting.distances, "an output about several steps")
    return releases


class SequenceMechanism(ABC):
    """One mechanism for the outputs of all steps; `temporal_leakage` takes it in place of a sequence of releases.

    Without a delta, its leakage is that of its event-level epsilons, however its noise is shared between steps (Theory, section
    20).
    """

    __slots__ = ()

    @property
    def n_steps(self) -> int | None:
        """Number of steps T; None if the mechanism runs for any number."""
        return None

    @abstractmethod
    def event_epsilons(self, n_steps: int) -> FloatArray:
        """Epsilon of all outputs together when the state at one step alone is replaced, for each step, shape (T,), in nats.

        An upper bound; `inf` where there is none without a delta.
        """

    def event_level(self, n_steps: int, delta: float) -> FloatArray:
        """As `event_epsilons`, at a delta: an upper bound."""
        return self.event_epsilons(n_steps)

    def leakage(self, user: Adversary, n_steps: int, accounting: Accounting[Any, Any]) -> Leakage:
        """Leakage of every step at the delta of an accounting method, from the distribution of the noise.

        Raises
        ------
        InputError
            The leakage at this delta is not computable.
        """
        raise InputError(
            f"expected Exact() or another method without a delta for {type(self).__name__}, got {accounting!r}: where noise is "
            "shared between steps, event-level epsilons determine the leakage at delta = 0 only"
        )

    def require_pure(self, n_steps: int) -> SharedEpsilons:
        """Return the event-level epsilons; `InputError` where they are infinite."""
        epsilons = self.event_epsilons(n_steps)
        if not np.isfinite(epsilons).all():
            raise InputError(
                f"expected a mechanism with finite event-level epsilons, got {self!r}, whose noise has none without a delta: "
                "use accounting=ApproximateDP(delta), or Laplace noise"
            )
        return epsilons.view(SharedEpsilons)
