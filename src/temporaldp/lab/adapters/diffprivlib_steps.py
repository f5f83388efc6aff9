"""diffprivlib: a BudgetAccountant that spends with a temporal accountant, a step at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from temporaldp.base.errors import BudgetError
from temporaldp.base.extras import needing
from temporaldp.core.accounting import TemporalAccountant
from temporaldp.core.mechanisms.protocol import ROUNDED_UP
from temporaldp.lab.adapters.charging import charge, checked, over_moves, promise


def diffprivlib(accountant: TemporalAccountant, *, moves: int = 2) -> Any:
    """Return a BudgetAccountant of diffprivlib whose steps are charged to a temporal accountant.

    ``with guarded.step(epsilon=0.1):`` begins a step: the temporal accountant is charged for the whole step or refuses it.
    Inside the block, all functions of diffprivlib that take an accountant spend from the budget of the step by default;
    outside, they are refused. Several answers about the data of one step belong in one block: as separate steps, their leakage
    would be reported too low.

    Parameters
    ----------
    accountant : TemporalAccountant
    moves : int
        How many of diffprivlib's own moves between neighbours replace one person's state. Its documentation does not settle
        it for all of its functions: `tools.histogram` is about a row more or less, `tools.mean` about a replaced one. 2,
        the default, is enough for both; 1 is for those who only use the second kind.

    Returns
    -------
    diffprivlib.BudgetAccountant
        With a method ``step(epsilon, delta=0.0)``.

    Raises
    ------
    LeakageBudgetError
        At the beginning of a step: the level would break. Nothing was drawn or spent.
    BudgetError
        Outside of a step; or a delta, where the temporal accountant counts pure epsilons. What is too much for a step's own
        budget is diffprivlib's own ``BudgetError``.
    MissingExtraError
        diffprivlib is not installed.

    Notes
    -----
    Mechanisms (``diffprivlib.mechanisms``) take no accountant: `release_snapshots` runs those.
    """
    over_moves(1.0, moves)  # refuses an invalid number of moves
    return _accountant_class()(checked(accountant), moves)


@cache
def _accountant_class() -> type:
    """The class; made when diffprivlib is there."""
    with needing("diffprivlib"):
        from diffprivlib import BudgetAccountant

    class DiffprivlibAccountant(BudgetAccountant):  # type: ignore[misc]
        """A BudgetAccountant whose budget is that of the step that is open."""

        def __init__(self, temporal: TemporalAccountant, moves: int) -> None:
            super().__init__()
            self.temporal, self.moves = temporal, moves
            self.open: Any = None  # the budget of the step that is open

        def __repr__(self, n_budget_max: int = 5) -> str:
            return f"DiffprivlibAccountant({self.temporal!r}, moves={self.moves}, {'a' if self.open else 'no'} step is open)"

        @contextmanager
        def step(self, epsilon: float, delta: float = 0.0) -> Iterator[BudgetAccountant]:
            """One step, paid for; inside it, this is the default accountant."""
            if self.open is not None:
                raise BudgetError("a step is open already: put all queries of a step into one block")
            most = epsilon * ROUNDED_UP  # 0.1 + 0.05 is more than 0.15 by an ulp
            within = BudgetAccountant(epsilon=most, delta=delta)
            charge(self.temporal, over_moves(promise(most, delta=delta), self.moves))
            self.open = within
            try:
                with self:
                    yield self
            finally:
                self.open = None

        def check(self, epsilon: float, delta: float) -> bool:
            """True if the open step's budget allows it."""
            if self.open is None:
                raise BudgetError(
                    "no step is open, so nothing was charged for this: answer inside of  with guarded.step(epsilon):"
                )
            return bool(self.open.check(epsilon, delta))

        def spend(self, epsilon: float, delta: float) -> Any:
            """Spend from the open step's budget."""
            super().spend(epsilon, delta)  # checks first
            self.open.spend(epsilon, delta)
            return self

    return DiffprivlibAccountant
