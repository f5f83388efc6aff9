"""Everybody's odometer, and how far they have counted."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from temporaldp.accounting.adoption import Adoption
from temporaldp.accounting.exact.online import ExactOdometer
from temporaldp.accounting.protocol import Accounting
from temporaldp.correlation import Adversary


@dataclass(frozen=True, slots=True, eq=False)
class CountedOdometers:
    """Odometers after so many steps and adoptions; those of everybody who is accounted for then."""

    n_steps: int
    n_adopted: int
    each: list[Any]

    @classmethod
    def at_start(
        cls, methods: Sequence[tuple[Accounting[Any, Any], list[int]]], users: Sequence[Adversary]
    ) -> CountedOdometers:
        """Before the first step, by the accounting methods and the numbers of the users counted by each."""
        made = {k: method.odometer(users[k]) for method, numbers in methods for k in numbers}
        return cls(0, 0, [made[k] for k in range(len(users))])

    def saved(self) -> list[dict[str, Any]] | None:
        """All odometers as JSON values; None where one of them has no such state."""
        each = [one.saved() for one in self.each]
        found = [one for one in each if one is not None]
        return found if len(found) == len(each) else None

    @classmethod
    def restored(
        cls, document: list[dict[str, Any]], adversaries: Sequence[Adversary], n_steps: int, n_adopted: int
    ) -> CountedOdometers:
        """Undo `saved`, given the matrices of all steps."""
        of = zip(document, adversaries, strict=True)
        return cls(n_steps, n_adopted, [ExactOdometer.restored(one, line) for one, line in of])

    def __copy__(self) -> CountedOdometers:
        return CountedOdometers(self.n_steps, self.n_adopted, [copy(one) for one in self.each])

    def after(self, spent: Sequence[Any], adoptions: Sequence[Adoption]) -> CountedOdometers:
        """After all that was spent and adopted. These must not be used any more: odometers change."""
        counted, each = self.n_steps, self.each
        for adoption in adoptions[self.n_adopted :]:
            for odometer in each:
                odometer.extend(spent[counted : adoption.step])
            counted, each = adoption.step, [each[k].adopted(user) for k, user in adoption.lines]
        for odometer in each:
            odometer.extend(spent[counted:])
        return CountedOdometers(len(spent), len(adoptions), each)
