"""What guarantees cost, in noise and in the error of smoothed estimates, and which one is advised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp.base.arrow import Table
from temporaldp.base.display import draw, number, summary
from temporaldp.base.values import plural
from temporaldp.core.planning import Guarantee, Plan
from temporaldp.core.planning.every_correlation import epochs_together

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BETTER = 0.75
"""The temporal level is advised where its error is at most this share of that of the user level, which holds for more."""

HALF = 0.5
"""A delta is advised where it reduces the noise or the error to this share."""


@dataclass(frozen=True, slots=True)
class GuaranteeRow:
    """One guarantee at one level.

    Parameters
    ----------
    guarantee : Guarantee
    alpha, delta : float
        The level, in nats; 0 for pure differential privacy.
    plan : Plan or None
        A plan that satisfies it; None where there is none.
    refusal : str
        Why there is no plan; empty where there is one.
    error : float or None
        Mean absolute error of a smoothed count, in people, simulated for people like those of the past, or who move by the
        public correlation; None without one.
    """

    guarantee: Guarantee
    alpha: float
    delta: float
    plan: Plan | None
    refusal: str = ""
    error: float | None = None

    @property
    def drawn(self) -> str:
        """How many steps are drawn, in words; empty where all are."""
        made = self.plan
        is_all = made is None or made.n_drawn == made.horizon
        return "" if is_all else f"drawn at {made.n_drawn} of {made.horizon} steps"  # type: ignore[union-attr]

    @property
    def draw_every(self) -> int:
        """Number of steps from the first draw to the second."""
        drawn = [] if self.plan is None else np.flatnonzero(self.plan.epsilons).tolist()
        return drawn[1] - drawn[0] if len(drawn) > 1 else 1

    @property
    def noise(self) -> float:
        """Mean absolute noise of a count that is drawn, in people, averaged over the steps; inf without a plan."""
        return math.inf if self.plan is None else self.plan.mean_absolute_noise

    @property
    def published(self) -> float:
        """Mean absolute error of what is read, in people: of estimates where there are some, else the noise."""
        return self.noise if self.error is None else self.error

    def is_clearly_better(self, other: GuaranteeRow) -> bool:
        """Whether what is read has an error that is a tenth less: what fewer draws must achieve."""
        return self.published <= 0.9 * other.published

    @property
    def five_epochs(self) -> float | None:
        """Leakage of five times as many steps, by their releases, about all states in them; None without `epochs`."""
        return epochs_together(self.plan, 5) if self.guarantee.is_of_epochs and self.plan is not None else None

    @property
    def name(self) -> str:
        """The guarantee and its delta, in words."""
        kind = f"delta = {self.delta:g}" if self.delta else "pure"
        return ", ".join(filter(None, [self.guarantee.wording.label, kind, self.drawn]))


@dataclass(frozen=True, slots=True)
class GuaranteeComparison(Table):
    """Guarantees at one or several levels, from `compare_guarantees`.

    Parameters
    ----------
    rows : tuple of GuaranteeRow
        Level by level.
    n_people, n_states : int or None
    horizon : int or None
    observers : str
        For whom the temporal level holds, in words.
    """

    rows: tuple[GuaranteeRow, ...]
    n_people: int | None
    n_states: int | None
    horizon: int | None
    observers: str = Guarantee().wording.condition

    def columns(self) -> dict[str, list[Any]]:
        """One row per guarantee and level: noise and errors in people and as shares, and what five epochs leak together."""
        columns: dict[str, list[Any]] = {
            "guarantee": [str(row.guarantee) for row in self.rows],
            "alpha": [row.alpha for row in self.rows],
            "delta": [row.delta for row in self.rows],
            "drawn": [None if row.plan is None else row.plan.n_drawn for row in self.rows],
            "noise": [None if row.plan is None else row.noise for row in self.rows],
            "share": [self.share(row.noise) for row in self.rows],
            "error": [row.error for row in self.rows],
            "error_share": [None if row.error is None else self.share(row.error) for row in self.rows],
            "five_epochs": [row.five_epochs for row in self.rows],
            "condition": [self.condition(row) for row in self.rows],
            "refusal": [row.refusal or None for row in self.rows],
        }
        return columns

    def plot(self, *, ax: Axes | None = None) -> Any:
        """Draw the noise under each guarantee as bars (needs Matplotlib); `ax` and the result as of `LeakageSeries.plot`."""
        return draw(self, ax=ax)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        shown = {row.name: "no plan" if row.plan is None else _error_of(row) for row in self.rows}
        return summary(
            f"Guarantees for at most {plural(number(self.rows[0].alpha, up=True), 'nat')}", shown, self.advice
        )

    def condition(self, row: GuaranteeRow) -> str:
        """For which observers the guarantee of a row holds, in words."""
        return self.observers if row.guarantee.is_temporal else row.guarantee.wording.condition

    def share(self, error: float) -> float | None:
        """An error in people as a share of an average count; None where that is unknown."""
        if self.n_people is None or self.n_states is None or math.isinf(error):
            return None
        return error * self.n_states / self.n_people

    @property
    def advised(self) -> GuaranteeRow | None:
        """The row that `advice` is for, at the first level; None where nothing can be planned.

        A delta if it halves the noise or the error, with counts drawn at every step, unless fewer draws with delta = 0 reduce
        the error by a tenth more. Then the temporal level if its error is at most 75 % of that of the user level, which holds
        for every correlation, each drawn at the steps that suit it; a window where there is no user level.
        """
        alpha = self.rows[0].alpha
        found = [
            row for row in self.rows if row.alpha == alpha and row.plan is not None and row.guarantee.kind != "event"
        ]
        pure, approximate = (
            [row for row in found if (row.delta > 0.0) == is_approximate] for is_approximate in (False, True)
        )
        best, other = (_chosen([row for row in rows if not row.drawn]) for rows in (pure, approximate))
        with_gaps = _chosen([*{row.guarantee: row for row in pure}.values()])
        if best is None or other is None:
            return with_gaps or other
        halves = other.published <= HALF * best.published or other.noise <= HALF * best.noise
        is_delta = halves and not (with_gaps is not None and with_gaps.is_clearly_better(other))
        return other if is_delta else with_gaps

    @property
    def advice(self) -> str:
        """What to take, for whom it holds, and why."""
        best = self.advised
        if best is None:
            return "No guarantee can be planned at this level: see the reasons."
        others = [row for row in self.rows if row.alpha == best.alpha and row.plan is not None]
        said = f"Take the {best.name}, for {self.condition(best)}: {_error_of(best)}"
        rival = "user" if best.guarantee.is_temporal else "temporal"
        of_rival = [one for one in others if (one.delta, one.guarantee.kind) == (best.delta, rival)]
        if of_rival:
            other = of_rival[-1]  # the one with fewer draws, if there is one
            name = ", ".join(filter(None, [other.guarantee.wording.label, other.drawn]))
            said += f". The {name}, for {self.condition(other)}, has {_error_of(other)}"
            said += "" if best.guarantee.is_temporal else ", less than 25 % better"
        if best.drawn and (each := next((one for one in others if _terms(one) == _terms(best)), None)):
            said += f". Drawn at every step, the {each.guarantee.wording.label} has {_error_of(each)}"
        if best.delta:
            pure = next((one for one in others if one.guarantee == best.guarantee and not one.delta), None)
            said += "" if pure is None else f". The {best.guarantee.wording.label} with delta = 0 has {_error_of(pure)}"
        return said + "."


def _error_of(row: GuaranteeRow) -> str:
    return f"{'noise' if row.error is None else 'a simulated error'} of {number(row.published)} people on a count"


def _terms(row: GuaranteeRow) -> tuple[Guarantee, float, float]:
    return row.guarantee, row.alpha, row.delta


def _chosen(rows: Sequence[GuaranteeRow]) -> GuaranteeRow | None:
    """The temporal level where it is clearly better than a guarantee for every correlation; else that, if there is one."""
    temporal = next((row for row in rows if row.guarantee.is_temporal), None)
    user = next((row for row in rows if row.guarantee == Guarantee("user")), None)
    if temporal is None or user is None:
        return temporal or user or next(iter(rows), None)
    return temporal if temporal.published <= BETTER * user.published else user
