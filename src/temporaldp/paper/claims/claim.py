"""What the paper says, what we get, and whether the two agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Verdict(StrEnum):
    """Whether what we get is what the paper says."""

    AGREES = "agrees"
    LOOSELY = "agrees, loosely"
    DISAGREES = "disagrees"


class Finding(NamedTuple):
    """What a check found: the numbers, the verdict, and the reason."""

    found: str
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of the paper, checked.

    Parameters
    ----------
    identifier : str
        What `temporaldp reproduce --claim` calls it.
    place : str
        Where in the paper.
    says : str
        The statement, in our words.
    found : str
        What we get, in nats unless it says otherwise.
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
        """What prints it."""
        return f"temporaldp reproduce --claim {self.identifier}"


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


def agrees(holds: bool, *, else_: Verdict = Verdict.DISAGREES) -> Verdict:
    """`AGREES` if so."""
    return Verdict.AGREES if holds else else_


def disagrees(differs: bool) -> Verdict:
    """`DISAGREES` if so: the check shows the statement to be wrong, and would notice if it no longer did."""
    return Verdict.DISAGREES if differs else Verdict.AGREES


def loosely(holds: bool, exactly: bool = False) -> Verdict:
    """`LOOSELY` if it holds but not as said, `AGREES` if exactly as said."""
    if exactly:
        return Verdict.AGREES
    return Verdict.LOOSELY if holds else Verdict.DISAGREES


def same(found: ArrayLike, expected: ArrayLike, *, tolerance: float = 1e-12) -> bool:
    """Equal to a relative tolerance: rounding of some steps, far below what any statement turns on."""
    return bool(np.all(np.abs(np.asarray(found) - expected) <= tolerance * np.abs(expected)))


def listed(values: ArrayLike) -> str:
    """Numbers of four digits, with commas."""
    return ", ".join(f"{value:.4g}" for value in np.asarray(values).ravel().tolist())
