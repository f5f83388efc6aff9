"""A statement of the paper, the check of it, and the result of the check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Verdict(StrEnum):
    """Agreement of a statement with the result of its check."""

    AGREES = "agrees"
    LOOSELY = "agrees, loosely"
    DISAGREES = "disagrees"


class Finding(NamedTuple):
    """Result of a check: the numbers, the verdict, and the reason."""

    found: str
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of the paper, checked.

    Parameters
    ----------
    identifier : str
        Argument of ``python -m reproduction --claim``.
    place : str
        Its place in the paper.
    says : str
        The statement, paraphrased.
    found : str
        The result, in nats unless it says otherwise.
    verdict : Verdict
    why : str
    measured : bool
        Whether `found` depends on the machine and its solvers.
    """

    identifier: str
    place: str
    says: str
    found: str
    verdict: Verdict
    why: str
    measured: bool = False

    @property
    def command(self) -> str:
        """Command that prints the claim."""
        return f"python -m reproduction --claim {self.identifier}"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the paper with its check, not yet run."""

    identifier: str
    place: str
    says: str
    check: Callable[[], Finding]
    measured: bool = False

    def examine(self) -> Claim:
        """Run the check."""
        finding = self.check()
        return Claim(self.identifier, self.place, self.says, *finding, measured=self.measured)


def stated(place: str, says: str, *, measured: bool = False) -> Callable[[Callable[[], Finding]], Statement]:
    """Make a check a statement of the paper; its identifier is the function's name."""

    def made(check: Callable[[], Finding]) -> Statement:
        return Statement(check.__name__.replace("_", "-"), place, says, check, measured)

    return made


def agrees(holds: bool) -> Verdict:
    """Return `AGREES` if the statement holds."""
    return Verdict.AGREES if holds else Verdict.DISAGREES


def disagrees(differs: bool) -> Verdict:
    """Return `DISAGREES` if the check shows the statement to be wrong."""
    return Verdict.DISAGREES if differs else Verdict.AGREES


def loosely(holds: bool) -> Verdict:
    """Return `LOOSELY` if the statement holds, but not as printed."""
    return Verdict.LOOSELY if holds else Verdict.DISAGREES


def same(found: ArrayLike, expected: ArrayLike, *, tolerance: float = 1e-12) -> bool:
    """Return whether all values are equal to a relative tolerance, which covers the rounding of some steps."""
    return bool(np.all(np.abs(np.asarray(found) - expected) <= tolerance * np.abs(expected)))


def listed(values: ArrayLike) -> str:
    """Format numbers with four digits, separated by commas."""
    return ", ".join(f"{value:.4g}" for value in np.asarray(values).ravel().tolist())
