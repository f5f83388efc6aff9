"""Records of published systems, one by one: what they state, what was assumed, what leaks over a range of chains.

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
from temporaldp.report.words import factor, number

HEAD = """# What published promises are worth over time

**Limits first.**

- These are bounds on what can be inferred about a person's values under a correlation that we assume. They are not a break of anybody's
  differential privacy: what a deployment promises for its unit, it promises.
- A unit is what its record says it is. Whoever is several such units in a step (several devices, accounts, more contributions than the
  unit holds) is promised less, and leaks more.
- Whether a chain of values fits the people in these data, we cannot know. The secret and the range of chains are assumptions, and stand
  beside every number.
- Nothing is said of a deployment beyond its record and the arithmetic. The records are those of the OpenDP Differential Privacy
  Deployments Registry (`opendp/deployments-registry-data`, commit 3e9c812a of 2026-07-15, MIT licence), which marks all of them as
  pending or draft: their statements are its authors' readings of the sources that they name.

Leakage about a step is how far everything that is ever released changes the odds between two values of one person at that step, in nats:
1 nat is a factor of 2.72, 4.5 nats are 90. If one step has nothing to do with the next (a value stays with probability 0.5), it is what
the step promises by itself. Made by `make deployments`; a test keeps it current. Every part names the command that prints the same and more.
"""

OVERVIEW = """
## All records, at one look

Two values of which one contributes and the other does not, and which stay with the probability at the head of a column from one step to
the next: what leaks about one step for ever. `temporaldp deployment FOLDER` prints this table.

| record | unit | promised a step | 0.7 | 0.9 | 0.99 | |
| --- | --- | --- | ---: | ---: | ---: | --- |
"""


@dataclass(frozen=True)
class Case:
    """A record and what is asked of it; `why` says where in the record the options come from."""

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
        "Google, Community Mobility: whether somebody's data of a day are there at all",
        MOBILITY_OPTIONS,
        f"privacy_unit_details speaks of adding or removing a single user's data in a single day. {MOBILITY_WHY}",
        MOBILITY_DAYS,
    ),
    Case(
        "movement_ranges_maps.yaml",
        "Meta, Movement Range Maps",
        "",
        "The record names no days and no parts of the total epsilon: a year, and the whole of it.",
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
        line = overview_of(tdp.Deployment.load(path), Question())
        stem = path.stem
        unit, promise = line.unit_text, line.promise.sentence
        if line.misfit is not None:
            lines.append(f"| {stem} | {unit} | {promise} | - | - | - | {line.misfit.brief} |\n")
            reasons.append(f"- **{stem}**: {line.misfit.sentence}\n")
            continue
        cells = " | ".join(number(leak, up=True) for leak in line.lasting)
        kind = f"at most, at delta {line.delta:g}" if line.delta else "exact" if line.exact else "at most"
        lines.append(f"| {stem} | {unit} | {promise} | {cells} | {kind} |\n")
    return [OVERVIEW, *lines, "\nWithout a number, and why:\n\n", *reasons]


def _case(folder: Path, case: Case) -> str:
    card = tdp.Deployment.load(folder / case.file).card(**case.asked)
    found = card.leakage
    assert found is not None, card.reason
    stated = [
        f"| `{name}` | {_cell(text)} |\n"
        for name, text in stated_fields(card.deployment, longest=4000)
        if name in FIELDS
    ]
    curve = [
        f"| {p:g} | {number(leak, up=True)} | {factor(leak)} |\n"
        for p, leak in zip(found.stays, found.lasting, strict=True)
    ]
    at = f", at delta {found.delta:g}" if found.delta else ""
    kind = "exact" if found.limit.exact else "upper bound"
    return "".join(
        (
            f"\n## {case.title}\n\n",
            f"`temporaldp deployment {case.file} {case.options}".rstrip() + "`\n\n",
            "Limits: " + " ".join(sentence for sentence in card.limits if _of_this_record(sentence)) + "\n\n",
            "What the record states:\n\n| field | |\n| --- | --- |\n",
            *stated,
            f"\nWhere the options come from: {case.why}\n",
            "\nWhat we assumed:\n\n",
            *(f"- {sentence}\n" for sentence in card.assumptions),
            "\nWhat follows:\n\n",
            *(f"- {sentence}\n" for sentence in card.sentences),
            f"\n| stays with probability | leaks for ever (nats{at}; {kind}) | odds change by at most |\n| ---: | ---: | ---: |\n",
            *curve,
            f"\nWhat we would write to its publisher:\n\n> {card.to_publisher}\n",
        )
    )


def _of_this_record(limit: str) -> bool:
    """Whether a limit is about this record, and not about all, which the head of the page says."""
    return limit.startswith(("Its privacy unit", "The record lists"))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _end() -> str:
    return (
        "\n## What a record would have to say\n\nThe registry has no field for correlation between steps. "
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
