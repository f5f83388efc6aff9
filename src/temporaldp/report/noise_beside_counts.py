"""Noise compared with the counts that it is for, in words: nobody should find out from the picture."""

from __future__ import annotations

from dataclasses import dataclass

from temporaldp.release import ReleasedHistograms

MUCH = 0.5
"""Of an average count. With more noise than this, a count says little by itself."""


@dataclass(frozen=True, slots=True)
class NoiseBesideCounts:
    """The mean absolute noise of a count, and the count that people make on average; both are public.

    Parameters
    ----------
    noise : float
        In people.
    n_people, n_states : int
    """

    noise: float
    n_people: int
    n_states: int

    @property
    def average_count(self) -> float:
        """People a state."""
        return self.n_people / self.n_states

    @property
    def share(self) -> float:
        """The noise as a share of the average count."""
        return self.noise / self.average_count

    @property
    def sentence(self) -> str:
        """Both numbers."""
        return (
            f"{self.noise:.4g} on a count, beside {self.average_count:.4g} people a state on average "
            f"({self.n_people} people, {self.n_states} states): {100.0 * self.share:.3g} %"
        )

    @property
    def warning(self) -> str | None:
        """What to know where the noise is large; None where it is not."""
        if self.share <= MUCH:
            return None
        what = "more than an average count" if self.share > 1.0 else "more than half of an average count"
        return (
            f"the noise is {what}: {self.sentence}. A count by itself says little. Smooth it with a public correlation "
            "(release.smoothed, tdp.smooth), see what other levels cost (`temporaldp tradeoff`), or count fewer states"
        )


def impossible_counts(released: ReleasedHistograms, n_people: int) -> str | None:
    """How many of the released counts no people can make; None if all could be."""
    outside = int(((released.counts < 0) | (released.counts > n_people)).sum())
    if not outside:
        return None
    low, high = int(released.counts.min()), int(released.counts.max())
    return (
        f"{outside} of {released.counts.size} released counts are below 0 or above the {n_people} people there are (from "
        f"{low} to "
        f"{high}): that is the noise. Smooth them (release.smoothed), or make them consistent (release.consistent)"
    )
