"""The adversaries of all users, one or many, with names, validated once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.core.correlation.adversary import Adversary
from temporaldp.core.correlation.lifted_chain import LiftedChain


@dataclass(frozen=True, slots=True)
class Population:
    """Adversaries, one per user, with names: their own, their keys, or "user" and the position.

    Parameters
    ----------
    users : tuple of Adversary
    names : tuple of str
        A single user may be nameless: None.
    """

    users: tuple[Adversary, ...]
    names: tuple[str | None, ...]

    @classmethod
    def of(cls, adversaries: Adversaries) -> Population:
        """The population of an adversary, of a chain with a longer memory, or of several adversaries; a population itself.

        Raises
        ------
        InputError
            Not a population, no users, or two users with one name.
        """
        if isinstance(adversaries, Population):
            return adversaries
        names, users = zip(*_named(adversaries), strict=True)
        return cls(users, names)

    def __len__(self) -> int:
        return len(self.users)

    def __iter__(self) -> Iterator[tuple[str | None, Adversary]]:
        return zip(self.names, self.users, strict=True)

    @property
    def states(self) -> tuple[str, ...] | None:
        """The states that the first user's matrices name."""
        return self.users[0].states

    @property
    def n_steps(self) -> int | None:
        """Number of steps that sequences of matrices serve; None if every matrix is constant."""
        return next((user.n_steps for user in self.users if user.n_steps is not None), None)

    @property
    def is_constant(self) -> bool:
        """Whether all transitions of each user have one matrix in each direction, or one set of matrices."""
        return all(one.is_constant for user in self.users for one in user.directions)

    @property
    def varies_without_end(self) -> bool:
        """Whether some user's matrices vary with time over an infinite horizon, as on a clock."""
        return any(one.n_steps is None and not one.is_constant for user in self.users for one in user.directions)

    def over(self, n_steps: int) -> Population:
        """These users in a release of `n_steps` steps, with one matrix per transition for clocks.

        Raises
        ------
        BudgetError
            The sequences of matrices of a user are for another number of steps.
        """
        for name, user in self:
            if user.n_steps not in {None, n_steps}:
                who = "the adversary" if name is None else f"adversary {name!r}"
                raise BudgetError(
                    f"{who} has matrices for {user.n_steps} steps, but there are {n_steps}; give one matrix for each "
                    "transition (one fewer than steps) or a constant matrix"
                )
        if not self.varies_without_end:
            return self
        return Population(tuple(user.over(n_steps) for user in self.users), self.names)

    def counted_over(self, n_steps: int | None) -> Population:
        """These users where steps are counted one by one; `BudgetError` for a clock, whose first phase is unknown."""
        if n_steps is not None:
            return self.over(n_steps)
        if self.varies_without_end:
            raise BudgetError(
                "expected a horizon for matrices that follow a clock: what is kept for later steps depends on their phases. "
                "Give the number of steps, as many as there may ever be, or plan one budget for any number of steps "
                "(plan_budget without a horizon)"
            )
        return self


OneAdversary: TypeAlias = Adversary | LiftedChain
Adversaries: TypeAlias = OneAdversary | Iterable[OneAdversary] | Mapping[str, OneAdversary] | Population


def _named(
    adversaries: Adversaries,
) -> Iterator[tuple[str | None, Adversary]]:
    """Each adversary with its name."""
    is_table = hasattr(adversaries, "columns")  # a data frame, over whose columns an iteration would go
    given = adversaries if isinstance(adversaries, Iterable) and not is_table else [adversaries]
    pairs = list(given.items() if isinstance(given, Mapping) else ((None, item) for item in given))
    if not pairs:
        raise InputError("expected at least one Adversary, got none")
    seen: set[str | None] = set()
    for position, (key, one) in enumerate(pairs):
        adversary = one.adversary if isinstance(one, LiftedChain) else one
        if not isinstance(adversary, Adversary):
            raise InputError(
                f"expected an Adversary or several of them, got {type(adversary).__name__} at position {position}; a matrix "
                "becomes one by Adversary(backward=matrix), Adversary(forward=matrix), or "
                "Adversary.from_forward(matrix) for both"
            )
        name = key or adversary.name or (f"user {position}" if len(pairs) > 1 else None)
        if name in seen:
            raise InputError(f"two adversaries are named {name!r}; give each its own name, so none is left out")
        seen.add(name)
        yield name, adversary
