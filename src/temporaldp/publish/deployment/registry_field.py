"""A proposed field of the registry about correlation, written from a card."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from temporaldp.base.display import number
from temporaldp.base.errors import InputError
from temporaldp.base.extras import needing
from temporaldp.publish.report.sentences import INFERENCE_ONLY

if TYPE_CHECKING:
    from temporaldp.publish.deployment.card import DeploymentCard


def registry_field(card: DeploymentCard) -> dict[str, Any]:
    """The field as a mapping: steps, secret, unit of change, range of chains, resulting leakage.

    Raises
    ------
    InputError
        The card has no number.
    """
    found, asked = card.leakage, card.question
    if found is None:
        raise InputError(f"expected a record with a number, but there is none: {card.reason}")
    chains = {
        "order": 1,
        "form": "stays, otherwise moves to every other state with equal probability",
        "stays": list(asked.stays),
    }
    if asked.correlation is not None:
        chains |= {"form": f"given as a matrix ({asked.correlation_name})", "stays": list(card.stays)}
    stated = {
        "step": card.period,
        "steps": card.horizon,
        "secret": {
            "states": list(asked.states),
            "unit_of_change": card.unit.name,
            "units_between_states": card.unit.most(asked.states),
            **({"tables": dict(card.unit.parts)} if card.unit.parts else {}),
        },
        "chains": chains,
        "leakage": {
            "delta": found.delta,
            "one_step_alone": _rounded(found.alone),
            "infinite_horizon": [
                {"stays": p, "at_most": _rounded(leak)} for p, leak in zip(card.stays, card.over_time, strict=True)
            ],
            "kind": found.kind,
            "all_steps_together": _rounded(found.together),
        },
    }
    return {"temporal_correlation": stated}


def registry_yaml(card: DeploymentCard) -> str:
    """The proposed field of a card as YAML, with a comment about its place and its limits."""
    with needing("deployment"):
        import yaml

    field = registry_field(card)
    about = "Proposed field of the deployments registry, for `deployment:` beside `privacy_loss:`. Leakage is in nats."
    assumed = "The chains are an assumption about the people in the data."
    comment = "".join(f"# {line}\n" for line in textwrap.wrap(f"{about} {INFERENCE_ONLY} {assumed}", 110))
    return comment + yaml.safe_dump(field, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)


def _rounded(leakage: float) -> float | str:
    """Four digits, rounded up; parsers of YAML differ about infinity."""
    return float(number(leakage, up=True)) if math.isfinite(leakage) else "without bound"
