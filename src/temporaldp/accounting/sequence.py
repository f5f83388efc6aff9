"""Mechanisms of a whole sequence of releases, whose noise may be shared between steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from temporaldp.accounting.protocol import Accounting, Leakage
from temporaldp.correlation import Adversary
from temporaldp.errors import InputError
from temporaldp.values import FloatArray


class SequenceMechanism(ABC):
    """One mechanism for the outputs of all steps; `temporal_leakage` takes it in place of a sequence of releases."""

    __slots__ = ()

    @property
    def n_steps(self) -> int | None:
        """Number of steps T; None if the mechanism runs for any number."""
        return None

    @abstractmethod
    def event_level(self, n_steps: int, delta: float) -> FloatArray:
        """Epsilon of the whole output when one state at one step is replaced, for each step, shape (T,), in nats.

        An upper bound; `inf` where there is none at this delta.
        """

    @abstractmethod
    def own_leakage(self, user: Adversary, n_steps: int, delta: float) -> Leakage:
        """Leakage of every step at a delta, from the distribution of the noise.

        Raises
        ------
        InputError
            The leakage at this delta is infinite or not computable.
        """

    def leakage(self, user: Adversary, n_steps: int, accounting: Accounting[Any, Any]) -> Leakage:
        """Leakage of every step by an accounting method.

        Parameters
        ----------
        user : Adversary
        n_steps : int
        accounting : Accounting
            `ApproximateDP(delta)` and, if the leakage is finite without a delta, `Exact()`; `MarkovQuilt()` uses the
            event-level guarantee alone.

        Raises
        ------
        InputError
            Another method, or one that cannot account for this mechanism.
        """
        if not accounting.assumes_fresh_noise:
            epsilons = self.event_level(n_steps, 0.0)
            if not np.isfinite(epsilons).all():
                raise InputError(
                    f"expected a mechanism with pure event-level epsilon for the accounting method {accounting.name!r}, got "
                    f"{type(self).__name__}, which has none; use ApproximateDP(delta)"
                )
            return accounting.series([user], accounting.of_epsilons(epsilons))[0]
        if not accounting.delta and (not accounting.is_exact or accounting.distances is not None):
            raise InputError(
                f"expected ApproximateDP(delta), Exact() or MarkovQuilt() for noise that is shared between steps, got "
                f"{accounting!r}"
            )
        if user.is_uncertain:
            raise InputError(
                "expected matrices that are known exactly for noise that is shared between steps, got an IntervalMatrix; "
                "MarkovQuilt() accounts for the event-level epsilon of such a mechanism"
            )
        return self.own_leakage(user, n_steps, accounting.delta)
