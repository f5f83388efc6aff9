"""dp-accounting: privacy loss distributions as mechanisms, with the neighbouring relation that they are made for."""

from __future__ import annotations

from typing import Any

from temporaldp.base.errors import InputError
from temporaldp.base.values import checked_relation
from temporaldp.core.mechanisms.events import LossDistribution


def loss_distribution(distribution: Any, *, neighboring_relation: Any) -> LossDistribution:
    """Return a privacy loss distribution of dp-accounting as the mechanism of one step.

    The distribution itself does not state its neighbouring relation. One that was made for adding or removing a contribution is
    too small here, where a state is replaced: one contribution leaves and another one comes. The Gaussian noise of
    ``GaussianDpEvent(10)`` has the distribution ``from_gaussian_mechanism(10, neighboring_relation=NeighborRel.REPLACE_ONE)``,
    with twice the sensitivity.

    Parameters
    ----------
    distribution : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        With pessimistic estimates.
    neighboring_relation : {"replace_one"}, or dp-accounting's ``NeighboringRelation.REPLACE_ONE``
        That it was made for.

    Raises
    ------
    InputError
        It was made for another relation, with optimistic estimates, or is not a privacy loss distribution.

    Examples
    --------
    >>> from dp_accounting.pld import privacy_loss_distribution as pld
    >>> import temporaldp as tdp
    >>> walk = tdp.TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> known = pld.from_gaussian_mechanism(10.0, neighboring_relation=pld.NeighborRel.REPLACE_ONE)
    >>> released = tdp.adapters.loss_distribution(known, neighboring_relation="replace_one")
    >>> series = tdp.temporal_leakage(tdp.Adversary(walk, walk), [released] * 3, accounting=tdp.ApproximateDP(1e-6))
    >>> series.worst > 0.9
    True
    """
    checked_relation(neighboring_relation)
    if not hasattr(distribution, "get_delta_for_epsilon"):
        raise InputError(f"expected a privacy loss distribution of dp-accounting, got {type(distribution).__name__}")
    # The direction of its rounding is not a public attribute: a distribution without it is refused.
    sides = (getattr(distribution, name, None) for name in ("_pmf_remove", "_pmf_add"))
    if not all(getattr(side, "_pessimistic_estimate", False) for side in sides):
        raise InputError(
            "expected a pessimistic privacy loss distribution, got an optimistic one, which is a lower bound, or one whose "
            "rounding is unknown"
        )
    return LossDistribution(distribution)
