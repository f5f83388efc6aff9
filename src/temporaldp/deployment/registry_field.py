"""What a record would have to say about correlation: a proposed field of the registry, written from a card."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from temporaldp.errors import InputError
from temporaldp.extras import needing

if TYPE_CHECKING:
    from temporaldp.deployment.card import DeploymentCard

FIELD = "temporal_correlation"

COMMENT = """\
# Proposed field of the deployments registry: goes under `deployment:`, beside `privacy_loss:`. Leakage is in nats.
# Bounds on inference under the correlation that is stated here; no statement that the people in the data follow it.
"""


def registry_field(card: DeploymentCard) -> dict[str, Any]:
    """The field as a mapping: steps, secret, unit of change, range of chains, resulting leakage.

    Raises
    ------
    InputError
        There is no number, and so nothing to state.
    """
    found, asked = card.leakage, card.question
    if found is None:
        raise InputError(f"expected a record with a number to state, but there is none: {card.reason}")
    chains: dict[str, Any] = {"order": 1}
    if asked.correlation is None:
        chains |= {"form": "stays, else goes to every other value alike", "stays": list(asked.stays)}
    else:
        chains |= {"form": f"given as a matrix ({asked.correlation_name})", "stays": list(found.stays)}
    stated = {
        "step": card.period,
        "steps": card.horizon,
        "secret": {
            "values": list(asked.states),
            "unit_of_change": card.unit.name,
            "units_between_values": card.unit.most(asked.states),
            **({"tables": dict(card.unit.parts)} if card.unit.parts else {}),
        },
        "chains": chains,
        "leakage": {
            "delta": found.delta,
            "one_step_alone": _rounded(found.alone),
            "for_ever": [
                {"stays": p, "at_most": _rounded(leak)} for p, leak in zip(found.stays, found.lasting, strict=True)
            ],
            "kind": "exact" if found.limit.exact else "upper bound",
            "all_steps_together": _rounded(found.together),
        },
    }
    return {FIELD: stated}


def registry_yaml(card: DeploymentCard) -> str:
    """The proposed field of a card as YAML, with a comment that says what it is."""
    with needing("deployment"):
        import yaml

    field = registry_field(card)
    return COMMENT + yaml.safe_dump(field, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)


def _rounded(leakage: float) -> float | str:
    """Four decimals, upwards; YAML 1.2's word for infinity would be read differently by different parsers."""
    return math.ceil(leakage * 1e4 - 1e-6) / 1e4 if math.isfinite(leakage) else "without bound"
