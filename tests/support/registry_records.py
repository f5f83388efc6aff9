"""Small synthetic records by the registry's schema, so that tests run without the registry."""

from __future__ import annotations

VISITS = """\
url_slug: visits-example-2026
status: Draft
tier: 2
deployment:
  basic:
    name: Counts of visits
    data_curators:
      - Example Office
    intended_use: An example.
    data_product_type: Summary statistics
    data_product_region: Nowhere
    description: How many people visited a place on a day.
    publication_date: '2026-01-01'
  dp_variant:
    variant_name: Pure DP
  privacy_loss:
    privacy_unit: User-day-level
    privacy_unit_details: Adjacent datasets are obtained by adding or removing a user's data of a day.
    privacy_parameters:
      epsilon: 1.0
  deployment_model:
    model_name: Central
    release_type: Many releases
    release_type_details: Daily
"""


def record(**changes: str | None) -> str:
    """The record of visits, of which lines `field: ...` are replaced, or left out."""
    lines = VISITS.splitlines()
    for name, value in changes.items():
        (at,) = [k for k, line in enumerate(lines) if line.strip().startswith(f"{name}:")]
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        lines[at] = None if value is None else f"{indent}{name}: {value}"
        lines = [line for line in lines if line is not None]
    return "\n".join(lines) + "\n"


def with_parameters(*parameters: str, variant: str = "Pure DP") -> str:
    """The record of visits with other parameters, one a line."""
    inside = "\n".join(f"      {line}" for line in parameters)
    return record(variant_name=variant).replace("      epsilon: 1.0", inside)
