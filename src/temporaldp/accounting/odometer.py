"""The odometer of any mechanisms: what has leaked so far, as epsilon at a delta."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Self

from temporaldp.accounting.curves import Release, checked_delta
from temporaldp.accounting.events import release_of
from temporaldp.accounting.population import Adversaries, named
from temporaldp.accounting.series import LeakageSeries, temporal_leakage
from temporaldp.correlation import Adversary
from temporaldp.correlation.adversary import Correlation
from temporaldp.errors import BudgetError, InputError
from temporaldp.values import whole_number


class TemporalOdometer:
    """Keeps account of (epsilon, delta) temporal privacy leakage, of any mechanisms, one step after another.

    It admits everything and says what has leaked: an upper bound, if which mechanism comes next does not depend on what was
    published before (`TemporalAccountant`, for pure epsilons, bears that too).

    Parameters
    ----------
    adversary : Adversary, or an iterable or mapping of them
    delta : float
        From 1e-60 to below 1.
    discretization : float, optional
        As for `temporal_leakage`.

    Examples
    --------
    >>> from temporaldp import Adversary, GaussianNoise, TransitionMatrix
    >>> matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> odometer = TemporalOdometer(Adversary(matrix, matrix), delta=1e-6)
    >>> for _ in range(3):
    ...     _ = odometer.compose(GaussianNoise(10.0, sensitivity=1.0))
    ...     print(len(odometer), round(odometer.total(), 3))
    1 0.397
    2 0.467
    3 0.53
    """

    def __init__(self, adversary: Adversaries, *, delta: float, discretization: float | None = None) -> None:
        self._users = list(named(adversary))
        self._delta, self._discretization = checked_delta(delta), discretization
        self._releases: list[Release] = []
        self._known: tuple[int, LeakageSeries | None] = (0, None)
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._releases)

    def __repr__(self) -> str:
        return f"TemporalOdometer({len(self)} steps, delta={self._delta:g})"

    @property
    def delta(self) -> float:
        """The delta at which leakage is an epsilon."""
        return self._delta

    def compose(self, mechanism: Any, count: int = 1) -> Self:
        """Count what is published at the next step, once at each of `count` steps; None: nothing is published.

        Raises
        ------
        InputError
            It is no mechanism, event or privacy loss distribution; nothing is counted then.
        BudgetError
            The adversary's matrices serve fewer steps.
        """
        whole_number(count, "count, the number of steps,", least=1, error=BudgetError)
        release = release_of(mechanism)
        with self._lock:
            for _, one in self._users:
                if one.n_steps is not None and len(self) + count > one.n_steps:
                    raise BudgetError(f"the adversary's matrices serve {one.n_steps} steps; nothing may follow")
            self._releases.extend([release] * count)
        return self

    def supports(self, mechanism: Any) -> bool:
        """Whether `compose` knows it."""
        try:
            release_of(mechanism)
        except InputError:
            return False
        return True

    def leakage(self) -> LeakageSeries:
        """What has leaked at each step so far, as `temporal_leakage` says it.

        Raises
        ------
        BudgetError
            Nothing has been published yet.
        """
        with self._lock:
            steps, series = self._known
            if series is None or steps != len(self):
                if not self._releases:
                    raise BudgetError("nothing has been published yet")
                series = temporal_leakage(
                    self._so_far(len(self)),
                    mechanisms=list(self._releases),
                    delta=self._delta,
                    discretization=self._discretization,
                )
                self._known = (len(self), series)
            return series

    def total(self) -> float:
        """The largest leakage about any step so far, in nats at the delta; 0 before the first."""
        return self.leakage().worst if self._releases else 0.0

    @property
    def worst_time(self) -> int:
        """The first step (from 0) that has it."""
        return self.leakage().worst_time

    def _so_far(self, n_steps: int) -> Adversary | Mapping[str, Adversary]:
        """The adversaries with their matrices up to now."""

        def until_now(correlation: Correlation) -> Correlation:
            return correlation[: n_steps - 1] or None if isinstance(correlation, tuple) else correlation

        users = {
            name: Adversary(until_now(one.backward), until_now(one.forward), name=name) for name, one in self._users
        }
        if len(users) == 1:
            return next(iter(users.values()))
        return {str(name): one for name, one in users.items()}
