"""Records of published systems: their fields, the assumptions, and the leakage over a range of chains.

Writes docs/measured/deployments.md from a folder of records of the deployments registry.  Run with:  make deployments
"""

from __future__ import annotations

import datetime
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import temporaldp as tdp
from temporaldp.deployment import Question
from temporaldp.deployment.card import overview_of
from temporaldp.deployment.page import stated_fields
from temporaldp.report.sentences import INFERENCE_ONLY, INFINITE_HORIZON, UNKNOWN_FIT, at_delta, factor, upper

HEAD = f"""# Leakage over time under published promises

**Limits first.**

- {INFERENCE_ONLY}
- The privacy unit is that of the record. A person who has several units in a step (devices, accounts, more contributions than the unit
  bounds) is covered by several units, and the leakage about this person is larger.
- {UNKNOWN_FIT}
- The page uses only the records and the arithmetic. The records are those of the OpenDP Differential Privacy Deployments Registry
  (`opendp/deployments-registry-data`, commit 3e9c812a of 2026-07-15, MIT licence), which marks all of them as pending or draft: their
  statements are its authors' readings of the sources that they name.

Leakage about a step is the largest change of the odds between two values of one person at that step by all releases, in nats: 1 nat is a
factor of 2.72, 4.5 nats are a factor of 90. For independent steps (a value stays with probability 0.5) it is the promise of the step by
itself. `make deployments` writes this page, and a test compares it. Every section names the command that prints the same numbers and more.
"""

OVERVIEW = f"""
## All records

Leakage about one step ({INFINITE_HORIZON}) for two values, of which one contributes, that stay with the probability at the head of a
column from one step to the next. `temporaldp deployment FOLDER` prints this table.

| record | unit | promise of a step | 0.7 | 0.9 | 0.99 | |
| --- | --- | --- | ---: | ---: | ---: | --- |
"""


@dataclass(frozen=True)
class Case:
    """A record and the assumptions about it; `why` names the fields that the options come from."""

    file: str
    title: str
    options: str
    why: str
    asked: dict[str, Any] = field(default_factory=dict)


MOBILITY_DAYS = {"since": datetime.date(2020, 1, 1), "until": datetime.date(2022, 10, 15)}
MOBILITY_OPTIONS = "--set deployment.since=2020-01-01 --set deployment.until=2022-10-15"
MOBILITY_WHY = 'data_source_type_details gives the days: "Metrics are generated for each day, starting on 2020-01-01 and ending on 2022-10-15".'

CASES = (
    Case(
        "google_mobility.yaml",
        "Google, Community Mobility: the count of people at work",
        "--states work,elsewhere --tables country=0.11,state=0.11,county=0.22 " + MOBILITY_OPTIONS,
        "accounting.composition: of the workplaces metrics, epsilon is 0.11 for country or region and for state, 0.22 for county, and "
        '"A user contributes at most once per geographic level". So the secret "more than one hour at work, or not" enters three '
        f"counts. {MOBILITY_WHY}",
        {
            "states": ("work", "elsewhere"),
            "tables": {"country": 0.11, "state": 0.11, "county": 0.22},
            **MOBILITY_DAYS,
        },
    ),
    Case(
        "google_mobility.yaml",
        "Google, Community Mobility: whether the data of a person and day are present",
        MOBILITY_OPTIONS,
        f"privacy_unit_details speaks of adding or removing a single user's data in a single day. {MOBILITY_WHY}",
        MOBILITY_DAYS,
    ),
    Case(
        "movement_ranges_maps.yaml",
        "Meta, Movement Range Maps",
        "",
        "The record states no days and no parts of the total epsilon: the options are a year, and the whole epsilon.",
    ),
    Case(
        "covid19_search_trends_symptoms.yaml",
        "Google, COVID-19 Search Trends Symptoms",
        "",
        'data_source_type_details says that epsilon = 1.68 "is applied every day, and since the underlying data is new (disjoint), the '
        'overall privacy budget is" the same. release_type_details says daily or weekly: this is about regions that are published daily. A '
        "weekly count is one release about seven days at once, which is not modelled.",
    ),
    Case(
        "wikimedia_current_usage_data.yaml",
        "Wikimedia, current pageviews",
        "",
        'release_type_details: "There is no overlap between days: the privacy parameters for each user-day are fixed and do not increase '
        'over time." The unit is a device-day.',
    ),
    Case(
        "wikimedia_historical_usage_data.yaml",
        "Wikimedia, historical pageviews",
        "--set deployment.since=2017-02-09 --set deployment.until=2023-02-05",
        "data_domain gives two batches; this is the second, February 9, 2017, to February 5, 2023. The unit is a bounded number of "
        "pageviews of a day (30 in this batch), not a person.",
        {"since": datetime.date(2017, 2, 9), "until": datetime.date(2023, 2, 5)},
    ),
    Case(
        "audience_engagement.yaml",
        "LinkedIn, Audience Engagement API",
        "",
        'release_type_details: "The data are refreshed on a monthly basis. The budget also resets on a monthly basis."',
    ),
)

FIELDS = {
    "privacy_parameters",
    "privacy_unit",
    "privacy_unit_details",
    "release_type",
    "release_type_details",
    "data_source_type_details",
    "composition",
}


def document(folder: Path) -> str:
    """The whole page."""
    return "".join((HEAD, *_overview(folder), *(_case(folder, case) for case in CASES), _end()))


def _overview(folder: Path) -> list[str]:
    lines, reasons = [], []
    for path in sorted(folder.glob("*.yaml")):
        if path.name == "schema.yaml":  # of a record; not one
            continue
        line = overview_of(tdp.deployment.Deployment.load(path), Question())
        stem = path.stem
        unit, promise = line.deployment.record.unit, line.promise.sentence
        if line.misfit is not None:
            lines.append(f"| {stem} | {unit} | {promise} | - | - | - | {line.remark} |\n")
            reasons.append(f"- **{stem}**: {line.misfit.sentence}\n")
            continue
        cells = " | ".join(map(upper, line.lasting))
        lines.append(f"| {stem} | {unit} | {promise} | {cells} | {line.remark} |\n")
    return [OVERVIEW, *lines, "\nRecords without a number, and the reasons:\n\n", *reasons]


def _case(folder: Path, case: Case) -> str:
    card = tdp.deployment.Deployment.load(folder / case.file).card(**case.asked)
    found = card.leakage
    assert found is not None, card.reason
    stated = [
        f"| `{name}` | {_cell(text)} |\n"
        for name, text in stated_fields(card.deployment, longest=4000)
        if name in FIELDS
    ]
    curve = [
        f"| {p:g} | {upper(leakage)} | {factor(leakage)} |\n"
        for p, leakage in zip(card.stays, card.lasting, strict=True)
    ]
    unit = f"nats{at_delta(found.delta)}; {found.limit.kind}"
    return "".join(
        (
            f"\n## {case.title}\n\n",
            f"`temporaldp deployment {case.file} {case.options}".rstrip() + "`\n\n",
            "Limits: " + " ".join(sentence for sentence in card.limits if _of_this_record(sentence)) + "\n\n",
            "Fields of the record:\n\n| field | |\n| --- | --- |\n",
            *stated,
            f"\nOrigin of the options: {case.why}\n",
            "\nAssumptions:\n\n",
            *(f"- {sentence}\n" for sentence in card.assumptions),
            "\nLeakage over time:\n\n",
            *(f"- {sentence}\n" for sentence in card.sentences),
            f"\n| stays with probability | {INFINITE_HORIZON} ({unit}) | odds change by at most |\n| ---: | ---: | ---: |\n",
            *curve,
            f"\nSuggested message to the publisher:\n\n> {card.to_publisher}\n",
        )
    )


def _of_this_record(limit: str) -> bool:
    """Whether a limit is about this record, and not about all, which the head of the page says."""
    return limit.startswith(("The privacy unit", "The record lists"))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _end() -> str:
    return (
        "\n## A field for correlation\n\nThe registry has no field for correlation between steps. "
        "[A field for the registry](registry-field.md) proposes one, and `temporaldp deployment RECORD --emit` writes it.\n"
    )


def main() -> None:
    shared = Path(os.environ.get("TEMPORALDP_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    folder = shared / "deployments"
    if not folder.is_dir():
        raise SystemExit(f"expected records of the deployments registry in {folder}; set TEMPORALDP_SHARED")
    Path(sys.argv[1]).write_text(document(folder))


if __name__ == "__main__":
    main()
