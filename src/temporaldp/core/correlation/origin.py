"""Source of a correlation, and the privacy loss of learning it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from temporaldp.base.errors import InputError

Kind: TypeAlias = Literal["stated", "matrices", "estimated", "history", "protected", "learnt"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of a correlation.

    Parameters
    ----------
    source : {"stated", "matrices", "estimated", "history", "protected", "learnt"}
        A range stated by the user; given matrices; estimated from traces without privacy: from any, from others than the
        protected ones, or from these themselves; learned from protected traces with differential privacy.
    sentence : str
        Description of the source, as printed in reports.
    epsilon : float
        Privacy loss of learning it, for all states of a person together, in nats; 0 unless it was learned.
    spend : str
        Identifier of the spend; both directions learned by one spend share it.
    warning : str or None
        Warning to print before anything that was computed from the correlation is published.
    prior : float
        Dirichlet concentration of an estimate; 0 for maximum likelihood.
    confidence : float
        Confidence of intervals; 0 where one matrix was estimated.
    per_user : bool
        Whether there is one correlation per user.

    Examples
    --------
    >>> Origin("stated", "Stated: every user stays with at least 70 %.").epsilon
    0.0
    """

    source: Kind
    sentence: str
    epsilon: float = 0.0
    spend: str = ""
    warning: str | None = None
    prior: float = 0.0
    confidence: float = 0.0
    per_user: bool = False

    def __post_init__(self) -> None:
        if self.source not in get_args(Kind):
            raise InputError(
                f"expected a correlation whose source is one of {', '.join(get_args(Kind))}, got {self.source!r}"
            )
        if not (math.isfinite(self.epsilon) and (self.epsilon > 0.0) == (self.source == "learnt")):
            raise InputError(
                f"expected an epsilon > 0 for a correlation that was learned, and 0 for others, got {self.epsilon}"
            )
        if (self.source == "learnt") != bool(self.spend):  # else two spends could be taken for one
            raise InputError(f"expected the name of a spend for a learned correlation alone, got {self.spend!r}")


def together(origins: Iterable[Origin]) -> Origin | None:
    """Combine the origins of several matrices; the losses of distinct spends add up. None without origins."""
    each = list(dict.fromkeys(origins))
    learnt = {(one.spend, one.epsilon): one for one in each if one.source == "learnt"}
    if not learnt:
        return each[0] if each else None
    sentence = " ".join(dict.fromkeys(one.sentence for one in learnt.values()))
    warning = " ".join(dict.fromkeys(one.warning for one in each if one.warning)) or None
    spent, spend = math.fsum(epsilon for _, epsilon in learnt), "+".join(spend for spend, _ in learnt)
    return Origin("learnt", sentence, spent, spend, warning)
