"""The limits, the numbers and the assumptions of a card, and a message to the publisher, in sentences by a template."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from temporaldp.publish.report.page import template

if TYPE_CHECKING:
    from temporaldp.publish.deployment.card import DeploymentCard


Section: TypeAlias = Literal["limits", "answers", "assumptions", "assumed", "to_publisher"]


def explained(card: DeploymentCard, section: Section) -> tuple[str, ...]:
    """The sentences of a section."""
    text = getattr(template("deployment/card.txt.j2").module, section)(card)
    items = f"\n{text}".split("\n- ")[1:]
    return tuple(re.sub(r"\s*\n\s*", " ", item).strip() for item in items)
