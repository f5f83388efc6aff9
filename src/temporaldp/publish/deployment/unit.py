"""Privacy units of a change of one step's state.

A registry states a promise for a unit: the data whose presence or content may change. Leakage is about two *states* of a step.
The number of units that separate the states is a distance, which the accounting takes as a `LikelihoodBox` or a metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from temporaldp.base.errors import InputError
from temporaldp.base.values import FloatArray, positive, refuse, whole_number

UnitName: TypeAlias = Literal["replace-one", "add-or-remove", "binary-count", "category-histogram"]


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """Promised units of a change of one step's state; made by `of`, `at_most` and `tables`.

    Parameters
    ----------
    name : str
        As given to `of`.
    reasoning : tuple of str
        Reasons for the sensitivity, one sentence each, as cards print them.
    between : int
        Units between two states that both contribute: 1 or 2.
    absent : str or None
        The state that contributes nothing: one unit from every other state. None if there is none.
    contributions : int
        Largest number of promised units in one step.
    parts : tuple of (str, float)
        Epsilons of the tables that the state enters; empty for the whole promise of the record.

    Examples
    --------
    >>> PrivacyUnit.of("replace-one").distances(("a", "b", "c"))
    array([[0., 1., 1.],
           [1., 0., 1.],
           [1., 1., 0.]])
    >>> PrivacyUnit.of("add-or-remove", absent="away").distances(("away", "home", "work"))
    array([[0., 1., 1.],
           [1., 0., 2.],
           [1., 2., 0.]])
    >>> PrivacyUnit.tables({"country": 0.11, "state": 0.11, "county": 0.22}, of=PrivacyUnit.of("binary-count")).epsilon
    0.44
    """

    name: str
    reasoning: tuple[str, ...]
    between: int = 1
    absent: str | None = None
    contributions: int = 1
    parts: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, name: UnitName, *, absent: str = "absent") -> PrivacyUnit:
        """The unit of a name.

        Parameters
        ----------
        name : {"replace-one", "add-or-remove", "binary-count", "category-histogram"}
            "replace-one": the promise is about replacing the state of one step. Neighbouring databases have the same number of
            rows, and differ in the content of one ("change-one distance", "bounded").
            "add-or-remove": it is about adding or removing the data of a step, and at the state `absent` there are none. The
            likelihood of an output is within a factor ``e^epsilon`` of what it is without the data, whatever they are: a box
            ``[e^-epsilon, e^epsilon]`` for each state, and ``[1, 1]`` for `absent`.
            "binary-count": two states, at one of which the person is counted. A change of state changes the count by 1, an L1
            sensitivity of 1, as adding or removing does. This is too low if both states are counted; take
            "category-histogram" then.
            "category-histogram": every state is a category that is counted, and the promise is about adding or removing. A
            change of state lowers one count by 1 and raises another by 1, an L1 sensitivity of 2; adding a person has 1.
        absent : str
            The state that contributes nothing, of "add-or-remove".

        Raises
        ------
        InputError
            The name is none of these.
        """
        known: dict[str, tuple[str, int]] = {
            "replace-one": (
                "The promise is about replacing the state of one step: any two states are one unit apart.",
                1,
            ),
            "add-or-remove": (
                f"The promise is about adding or removing the data of a step; at {absent!r} there are none. {absent!r} is one "
                "unit apart from every other state; two other states are two units apart (a removal and an addition).",
                2,
            ),
            "binary-count": (
                "At one of the two states the person's data of the step are in the release, at the other they are not: the "
                "states are one unit apart, for a promise about adding and removing and for one about replacing. (They are two "
                "units apart if both are contributed and the promise is about adding and removing: --unit category-histogram.)",
                1,
            ),
            "category-histogram": (
                "Every state is counted in a category of its own, and the promise is about adding or removing: a change of "
                "state is a removal and an addition, so any two states are two units apart.",
                2,
            ),
        }
        refuse((name not in known, InputError(f"expected a unit among {', '.join(known)}, got {name!r}")))
        reason, between = known[name]
        return cls(name, (reason,), between=between, absent=absent if name == "add-or-remove" else None)

    @classmethod
    def at_most(cls, contributions: int, *, of: PrivacyUnit) -> PrivacyUnit:
        """The promise is about one contribution (an event, a trip), of at most so many in a step; units add up."""
        most = whole_number(contributions, "contributions", least=1)
        reason = (
            f"A step has at most {most} contributions, and the promise is about each of them: {most} times the units."
        )
        return replace(of, contributions=of.contributions * most, reasoning=(*of.reasoning, reason))

    @classmethod
    def tables(cls, epsilons: Mapping[str, float], *, of: PrivacyUnit) -> PrivacyUnit:
        """A state enters several tables of a step, each with its own epsilon; epsilons add up by sequential composition."""
        if not epsilons:
            raise InputError("expected at least one table with its epsilon, got none")
        parts = tuple((str(name), positive(value, f"the epsilon of {name}")) for name, value in epsilons.items())
        listing = " + ".join(f"{value:g} ({name})" for name, value in parts)
        total = f"{math.fsum(value for _, value in parts):.10g}"
        reason = (
            f"The state enters these tables at a step and no others, and their epsilons add up: {listing} = {total}."
        )
        return replace(of, parts=parts, reasoning=(*of.reasoning, reason))

    @property
    def epsilon(self) -> float | None:
        """Sum of the epsilons of the tables, in nats; None for the whole promise of the record."""
        return math.fsum(value for _, value in self.parts) if self.parts else None

    def distances(self, states: tuple[str, ...]) -> FloatArray:
        """Privacy units between any two states, shape (n, n).

        Raises
        ------
        InputError
            The states do not fit the unit: `absent` is not among them, or a binary count has other than two.
        """
        n = len(states)
        if self.name == "binary-count" and n != 2:
            raise InputError(
                f"expected two states for --unit binary-count, got {n} ({', '.join(states[:6])}); use --unit "
                "category-histogram, or --unit add-or-remove if one state contributes nothing"
            )
        found = np.full((n, n), float(self.between))
        if self.absent is not None:
            if self.absent not in states:
                raise InputError(
                    f"expected deployment.absent to be one of the states {', '.join(states[:6])}, got "
                    f"{self.absent!r}; add it to --states"
                )
            k = states.index(self.absent)
            found[k, :] = found[:, k] = 1.0
        np.fill_diagonal(found, 0.0)
        return found * self.contributions
