"""Several tables in one step, which share its budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import assign, positive
from temporaldp.core.accounting import accounting_blocks
from temporaldp.core.planning.measurement import AccountedMechanism

LEFT_OVER = 1e-12
"""Share of a budget that is left over, so that shares that are rounded up do not add up to more than it."""


@runtime_checkable
class SharingMechanism(AccountedMechanism, Protocol):
    """A mechanism that can share a budget, with an error that is inversely proportional to it."""

    @property
    def error_at_one(self) -> float:
        """Sum of the mean absolute errors of all numbers at epsilon = 1."""

    def __call__(self, snapshot: Any, epsilon: float) -> Any:
        """Return the output."""


@dataclass(frozen=True, slots=True, init=False)
class SharedBudget:
    """Mechanism: several tables of the same people at the same step, which share a budget with the least total error.

    The tables depend on the same state of a person, so that their epsilons add up. With error ``a_k / epsilon_k``
    for table k and an importance ``w_k``, ``sum w_k a_k / epsilon_k`` is least, for a given sum of the epsilons, where
    epsilon_k is proportional to ``sqrt(w_k a_k)`` (Cauchy and Schwarz).

    Parameters
    ----------
    tables : mapping of names to mechanisms
        `DiscreteLaplaceHistogram`, `ClampedSum`, `ClampedMean`, or mechanisms with their methods.
    importance : mapping of names to numbers > 0, optional
        Weight of an error of 1 in a table. Default: 1 each.

    Examples
    --------
    >>> from temporaldp import DiscreteLaplaceHistogram
    >>> from temporaldp.data.counts import ClampedMean
    >>> tables = SharedBudget({"stage": DiscreteLaplaceHistogram(5), "age": ClampedMean(0.0, 100.0, n_people=151)})
    >>> {name: round(share, 3) for name, share in tables.shares.items()}
    {'stage': 0.795, 'age': 0.205}
    >>> published = tables({"stage": [151, 0, 0, 0, 0], "age": [40.0] * 151}, 1.0)
    >>> len(published["stage"]), tables.epsilon_spent(1.0) <= 1.0
    (5, True)
    """

    tables: tuple[tuple[str, SharingMechanism], ...]
    importance: tuple[float, ...]

    def __init__(
        self, tables: Mapping[str, SharingMechanism], *, importance: Mapping[str, float] | None = None
    ) -> None:
        if not tables:
            raise InputError("expected at least one table, got none")
        for name, table in tables.items():
            if not isinstance(table, SharingMechanism):
                raise InputError(
                    f"expected tables with error_at_one and epsilon_spent, such as DiscreteLaplaceHistogram, got "
                    f"{type(table).__name__} for {name!r}"
                )
        given = dict(importance or {})
        if unknown := set(given) - set(tables):
            raise InputError(f"importance names {sorted(unknown)[0]!r}, which is not a table: {', '.join(tables)}")
        worth = tuple(positive(given.get(name, 1.0), f"importance of {name!r}") for name in tables)
        assign(self, tables=tuple(tables.items()), importance=worth)

    @property
    def shares(self) -> dict[str, float]:
        """Share of the budget of each table; the sum is 1."""
        roots = [math.sqrt(w * table.error_at_one) for w, (_, table) in zip(self.importance, self.tables, strict=True)]
        return {name: root / math.fsum(roots) for (name, _), root in zip(self.tables, roots, strict=True)}

    @property
    def error_at_one(self) -> float:
        """Sum of the errors of the tables at epsilon = 1, weighted by importance."""
        return math.fsum(
            weight * table.error_at_one / self.shares[name]
            for weight, (name, table) in zip(self.importance, self.tables, strict=True)
        )

    def __call__(self, snapshot: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
        """Return the output of each table by name; arrays as nested lists, which a ledger can store.

        Raises
        ------
        InputError
            The snapshot does not name the tables.
        LeakageBudgetError
            Inside the block of a `TemporalAccountant` that refuses the budget. Nothing was drawn.
        """
        if set(snapshot) != {name for name, _ in self.tables}:
            raise InputError(
                f"expected a snapshot for {', '.join(n for n, _ in self.tables)}, got {', '.join(snapshot)}"
            )
        accounting_blocks.charge([self.epsilon_spent(epsilon)])
        with accounting_blocks.settled():
            drawn = {name: table(snapshot[name], each) for name, table, each in self._split(epsilon)}
        return {name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in drawn.items()}

    def epsilon_spent(self, epsilon: float) -> float:
        """Sum of the epsilons of the tables, rounded up; at most `epsilon`."""
        return math.nextafter(math.fsum(table.epsilon_spent(each) for _, table, each in self._split(epsilon)), math.inf)

    def _split(self, epsilon: float) -> list[tuple[str, SharingMechanism, float]]:
        budget = positive(epsilon, "epsilon") * (1.0 - LEFT_OVER)
        return [(name, table, budget * self.shares[name]) for name, table in self.tables]
