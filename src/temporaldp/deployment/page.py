"""A card as one self-contained HTML page, and the fields of its record."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from temporaldp.report.page import template

if TYPE_CHECKING:
    from temporaldp.deployment.card import DeploymentCard
    from temporaldp.deployment.record import Deployment

LETTERS = {r"\epsilon": "ε", r"\delta": "δ", r"\rho": "ρ", r"\tau": "τ", r"\times": "×", r"\max": "max"}
"""TeX commands in records, which the pages of the registry typeset."""

LONGEST_FIELD = 400
"""Letters of a field that a card quotes."""


def stated_fields(deployment: Deployment, *, longest: int = LONGEST_FIELD) -> list[tuple[str, str]]:
    """Names and text of the fields of the record that determine leakage over time, without empty ones."""
    record = deployment.record
    fields = [
        ("privacy_parameters", deployment.promise.sentence),
        ("privacy_parameters_details", record.parameter_details),
        ("variant_name", record.variant),
        ("privacy_unit", record.unit),
        ("privacy_unit_details", record.unit_details),
        ("release_type", record.release_type),
        ("release_type_details", record.release_details),
        ("data_source_type_details", record.source_details),
        ("model_name", record.model),
        ("composition", record.composition),
    ]
    return [(name, _quoted(text, longest)) for name, text in fields if text]


def render_card(card: DeploymentCard) -> str:
    """Return the card as an HTML document that loads nothing from outside."""
    from temporaldp.deployment.figure import curve_figure

    page = template("deployment/card.html.j2")
    return page.render(card=card, stated=stated_fields(card.deployment), curve_figure=curve_figure)


def _quoted(text: str, longest: int) -> str:
    """A field on one line, with TeX letters as letters."""
    line = re.sub(r"\\\\[()]|\$", "", " ".join(text.split()))
    for name, letter in LETTERS.items():
        line = line.replace(name, letter)
    return textwrap.shorten(line, longest, placeholder=" [...]")
