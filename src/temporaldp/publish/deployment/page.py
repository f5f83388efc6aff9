"""A card as one self-contained HTML page, and the fields of its record."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from temporaldp.publish.report.page import template

if TYPE_CHECKING:
    from temporaldp.publish.deployment.card import DeploymentCard

LETTERS = {r"\epsilon": "ε", r"\delta": "δ", r"\rho": "ρ", r"\tau": "τ", r"\times": "×", r"\max": "max"}
"""TeX commands in records, which the pages of the registry typeset."""

LONGEST_FIELD = 400
"""Letters of a field that a card quotes."""


def render_card(card: DeploymentCard) -> str:
    """Return the card as an HTML document that loads nothing from outside."""
    from temporaldp.publish.deployment.figure import curve_figure

    return template("deployment/card.html.j2").render(card=card, quoted=_quoted, curve_figure=curve_figure)


def _quoted(text: str) -> str:
    """A field on one line, with TeX letters as letters."""
    line = re.sub(r"\\\\[()]|\$", "", " ".join(text.split()))
    for name, letter in LETTERS.items():
        line = line.replace(name, letter)
    return textwrap.shorten(line, LONGEST_FIELD, placeholder=" [...]")
