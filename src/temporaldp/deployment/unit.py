"""What a promise about a privacy unit is worth for a change of one step's value: units as values.

A registry states a promise for a unit: the data whose presence, or whose content, may change. The question here is another one:
how well can two *values* of one step be told apart? Between the two stands how many promised units separate one value from
another: a distance between values, which a `LikelihoodBox` or a metric of the accounting is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from temporaldp.errors import InputError
from temporaldp.values import positive, whole_number

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """How many promised units a change of one step's value is; made by its named constructors.

    Parameters
    ----------
    name : str
        Of the constructor.
    reasoning : tuple of str
        Why the sensitivity is what it is, one sentence each, as cards say it.
    between : int
        Promises that stand between two values at both of which something is contributed: 1 or 2.
    absent : str or None
        The value at which a person contributes nothing: one promise from every other value. None if there is none.
    contributions : int
        Promised units that one step may hold.
    parts : tuple of (str, float)
        Epsilons of the tables that the value enters; empty if the record's promise is taken whole.

    Examples
    --------
    >>> PrivacyUnit.replace_one().distances(("a", "b", "c"))
    array([[0., 1., 1.],
           [1., 0., 1.],
           [1., 1., 0.]])
    >>> PrivacyUnit.add_or_remove(absent="away").distances(("away", "home", "work"))
    array([[0., 1., 1.],
           [1., 0., 2.],
           [1., 2., 0.]])
    >>> PrivacyUnit.tables({"country": 0.11, "state": 0.11, "county": 0.22}, of=PrivacyUnit.binary_count()).epsilon
    0.44
    """

    name: str
    reasoning: tuple[str, ...]
    between: int = 1
    absent: str | None = None
    contributions: int = 1
    parts: tuple[tuple[str, float], ...] = ()

    @classmethod
    def replace_one(cls) -> PrivacyUnit:
        """The promise is about replacing one step's value by another: one promise between any two values.

        Neighbouring databases have as many rows, and differ in the content of one ("change-one distance", "bounded"). Whatever
        the values, changing one into another is one such change.
        """
        return cls(
            "replace-one",
            ("The promise is about replacing one step's value: between any two values stands one promise.",),
        )

    @classmethod
    def add_or_remove(cls, *, absent: str = "absent") -> PrivacyUnit:
        """The promise is about adding or removing the data of a step, and at the value `absent` there are none.

        From `absent` to another value is one addition; from one other value to another is a removal and an addition. The
        likelihood of an output is within a factor ``e^epsilon`` of what it is without the data, whatever they are: a box
        ``[e^-epsilon, e^epsilon]`` for each value, and ``[1, 1]`` for `absent`.
        """
        return cls(
            "add-or-remove",
            (
                f"The promise is about adding or removing the data of a step; at {absent!r} there are none. Between {absent!r} "
                "and another value stands one promise; between two other values, a removal and an addition: two.",
            ),
            between=2,
            absent=absent,
        )

    @classmethod
    def binary_count(cls) -> PrivacyUnit:
        """Two values; at one of them the person is counted, at the other not: one promise between them.

        A count of those who did something: whoever changes from the one value to the other is one more or one less, an L1
        sensitivity of 1, which is what adding or removing is about. Too low where both values are contributed: that is
        `category_histogram`.
        """
        return cls(
            "binary-count",
            (
                "At one of the two values the person's data of the step are in the release, at the other they are not: "
                "between the two stands one promise, whether it is about adding and removing or about replacing. (Where both "
                "values are contributed, and the promise is about adding and removing, there are two: --unit "
                "category-histogram.)",
            ),
        )

    @classmethod
    def category_histogram(cls) -> PrivacyUnit:
        """Every value is a category that is counted, and the promise is about adding or removing: two promises between any two.

        Changing a value takes one count down by 1 and another up by 1, an L1 sensitivity of 2 where adding a person has 1:
        a removal and an addition.
        """
        return cls(
            "category-histogram",
            (
                "Every value is counted in a category of its own, and the promise is about adding or removing: a change of "
                "value is a removal and an addition, so between any two values stand two promises.",
            ),
            between=2,
        )

    @classmethod
    def at_most(cls, contributions: int, *, of: PrivacyUnit) -> PrivacyUnit:
        """The promise is for one contribution (an event, a trip), and a step holds at most so many: promises add up.

        By group privacy: `contributions` changes one after the other, epsilon each.
        """
        most = whole_number(contributions, "contributions", least=1)
        reason = (
            f"A step holds at most {most} contributions, and the promise is about each by itself: {most} times as much."
        )
        return replace(of, contributions=of.contributions * most, reasoning=(*of.reasoning, reason))

    @classmethod
    def tables(cls, epsilons: Mapping[str, float], *, of: PrivacyUnit) -> PrivacyUnit:
        """A value enters several tables, or levels of places, at a step, each with an epsilon of its own: they add up.

        By sequential composition, or as boxes that are multiplied.
        """
        if not epsilons:
            raise InputError("expected at least one table with its epsilon, got none")
        parts = tuple((str(name), positive(value, f"the epsilon of {name}")) for name, value in epsilons.items())
        listing = " + ".join(f"{value:g} ({name})" for name, value in parts)
        total = f"{math.fsum(value for _, value in parts):.10g}"
        reason = (
            f"The value enters these tables at a step and no others, and their epsilons add up: {listing} = {total}."
        )
        return replace(of, parts=parts, reasoning=(*of.reasoning, reason))

    @property
    def epsilon(self) -> float | None:
        """What the tables promise together, in nats; None where the record's promise is taken whole."""
        return math.fsum(value for _, value in self.parts) if self.parts else None

    def distances(self, states: tuple[str, ...]) -> FloatArray:
        """Promises between any two values, shape (n, n).

        Raises
        ------
        InputError
            The unit has no such values: `absent` is none of them, or they are not two.
        """
        n = len(states)
        if self.name == "binary-count" and n != 2:
            raise InputError(
                f"expected two values for --unit binary-count, got {n} ({', '.join(states[:6])}); several that are counted are "
                "--unit category-histogram, or --unit add-or-remove if at one of them there is nothing to count"
            )
        found = np.full((n, n), float(self.between))
        if self.absent is not None:
            if self.absent not in states:
                raise InputError(
                    f"expected deployment.absent to be one of the values {', '.join(states[:6])}, got "
                    f"{self.absent!r}; name it among "
                    "--states"
                )
            k = states.index(self.absent)
            found[k, :] = found[:, k] = 1.0
        np.fill_diagonal(found, 0.0)
        return found * self.contributions

    def most(self, states: tuple[str, ...]) -> int:
        """Promises between the two values that are furthest apart."""
        return int(self.distances(states).max())
