"""A card as one self-contained HTML page, and what a record states, field by field."""

from __future__ import annotations

import base64
import math
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from temporaldp.extras import needing
from temporaldp.files.atomic import replacing
from temporaldp.report.words import factor, level, number

if TYPE_CHECKING:
    from temporaldp.deployment.card import DeploymentCard
    from temporaldp.deployment.record import Deployment

LETTERS = {r"\epsilon": "ε", r"\delta": "δ", r"\rho": "ρ", r"\tau": "τ", r"\times": "×", r"\max": "max"}

LONGEST_FIELD = 400
"""Letters of a field that a card quotes; the record has the rest."""


def stated_fields(record: Deployment, *, longest: int = LONGEST_FIELD) -> list[tuple[str, str]]:
    """What the record states that bears on leakage over time: names of fields and their text, empty ones left out."""
    fields = [
        ("privacy_parameters", record.promise.sentence),
        ("privacy_parameters_details", record.parameter_details),
        ("variant_name", record.variant),
        ("privacy_unit", record.unit_text),
        ("privacy_unit_details", record.unit_details),
        ("release_type", record.release_type),
        ("release_type_details", record.release_details),
        ("data_source_type_details", record.source_details),
        ("model_name", record.model),
        ("composition", record.composition),
    ]
    return [(name, _quoted(text, longest)) for name, text in fields if text]


def render_card(card: DeploymentCard) -> str:
    """The card as an HTML document that refers to nothing outside itself."""
    with needing("report"):
        from jinja2 import Environment, StrictUndefined

    from temporaldp import __version__
    from temporaldp.deployment.figure import curve_figure
    from temporaldp.report.style import figure_svg

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((files("temporaldp.deployment") / "card.html.j2").read_text(encoding="utf-8"))
    picture = alternative = ""
    if card.leakage is not None:
        picture = f"data:image/svg+xml;base64,{base64.b64encode(figure_svg(curve_figure(card))).decode('ascii')}"
        ends = [level(card.lasting[k]) for k in (0, -1)]
        alternative = (
            f"Line chart of leakage for ever against the probability of staying: {ends[0]} at {card.stays[0]:g}, {ends[1]} at "
            f"{card.stays[-1]:g}."
        )
    return template.render(
        card=card,
        record=card.deployment,
        stated=stated_fields(card.deployment),
        points=list(zip(card.stays, card.lasting, strict=True)),
        picture=picture,
        alternative=alternative,
        number=number,
        factor=factor,
        infinity=math.inf,
        version=__version__,
    )


def write_card(card: DeploymentCard, path: str | Path) -> None:
    """Write the card as HTML, whole or not at all.

    Raises
    ------
    OutputError
        The file cannot be written; what stood there is untouched.
    """
    page = render_card(card)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _quoted(text: str, longest: int) -> str:
    """On one line; letters that the registry's pages typeset are shown as letters."""
    line = re.sub(r"\\\\[()]|\$", "", " ".join(text.split()))
    for name, letter in LETTERS.items():
        line = line.replace(name, letter)
    return line if len(line) <= longest else f"{line[:longest]} [...]"
