"""Records of published systems: their fields, the assumptions, and the leakage over a range of chains.

Writes docs/measured/published-systems.md from a folder of records of the deployments registry.  Run with:  make bench NAME=deployments
"""

from __future__ import annotations

import datetime
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import temporaldp as tdp
from temporaldp.publish.deployment import Assumptions
from temporaldp.publish.deployment.card import overview_of
from temporaldp.publish.report.sentences import INFERENCE_ONLY, INFINITE_HORIZON, UNKNOWN_FIT, at_delta, factor, upper

HEAD = f"""# Published systems: leakage over time under their promises

**Limits first.**

- {INFERENCE_ONLY}
- The privacy unit is that of the record. The leakage about a person with several units in a step (devices, accounts) is larger.
- {UNKNOWN_FIT}
- The only input (`make bench NAME=deployments`) is the OpenDP Differential Privacy Deployments Registry (`opendp/deployments-registry-data`, commit 3e9c812a of
  2026-07-15, MIT licence). All records are pending or draft: their authors' readings of the named sources.

Leakage is the largest change of the odds between two states of one person at a step by all releases, in nats: 4.5 nats are a factor of 90. For independent
steps (the state stays the same with probability 0.5) it is the step's promise.
"""

OVERVIEW = f"""
## All records

Leakage about one step ({INFINITE_HORIZON}) for two states, one of which contributes, that persist with the probability in the head
(`temporaldp deployment FOLDER`).

| record | unit | promise of a step | 0.7 | 0.9 | 0.99 | |
|---|---|---|---:|---:|---:|---|
"""


NUMBERS = f"""
## Seven cases

The state stays the same with probability 0.9. *leakage*: {INFINITE_HORIZON}. *odds*: the same as a factor. *both contribute*: the supremum if a change is a
removal and an addition. *user level*: all steps of the horizon (a year where the record states no days), for every correlation. *promise for one step's
leakage*: the promise under which the supremum would be the leakage of one step by itself today.

| case | promise | leakage, nats | odds | both contribute, nats | user level, nats | promise for one step's leakage |
|---|---|---:|---:|---:|---:|---|
"""

ASSUMPTIONS = """Assumptions of all cases, unless a case states another (a step is a month in the last one; the secret is whether a person is present or absent,
except in the first):

"""

OF_ALL = ("At one of the two states", "States form", "One step is")
"""How the assumptions begin that cases share but for the word for a step; under approximate DP, the noise is independent."""

STATED = re.compile(r"The horizon is|The secret is .*: present, absent\.")
"""Assumptions that the table of all cases and the sentence below it state."""

MESSAGE = """
### Suggested message to a publisher

Each command ends with one. It does not question the promise, and asks to state the leakage next to it.

"""

FIELD = Path(__file__).resolve().parent / "pages" / "registry-field.md"
"""The section about a field for correlation, as it stands on the page."""


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

CASES = (
    Case(
        "google_mobility.yaml",
        "Google, Community Mobility: the count of people at work",
        "--states work,elsewhere --unit binary-count --tables country=0.11,state=0.11,county=0.22 " + MOBILITY_OPTIONS,
        "accounting.composition: of the workplaces metrics, epsilon is 0.11 for country or region and for state, 0.22 for county, and "
        '"A user contributes at most once per geographic level". So the secret "more than one hour at work, or not" enters three '
        "counts. The days are those of data_source_type_details.",
        {
            "states": ("work", "elsewhere"),
            "unit": "binary-count",
            "tables": {"country": 0.11, "state": 0.11, "county": 0.22},
            **MOBILITY_DAYS,
        },
    ),
    Case(
        "google_mobility.yaml",
        "Google, Community Mobility: whether the data of a person and day are present",
        MOBILITY_OPTIONS,
        "privacy_unit_details speaks of adding or removing a single user's data in a single day.",
        MOBILITY_DAYS,
    ),
    Case(
        "movement_ranges_maps.yaml",
        "Meta, Movement Range Maps",
        "",
        "The record states neither days nor parts of epsilon: a year, and the whole epsilon.",
    ),
    Case(
        "covid19_search_trends_symptoms.yaml",
        "Google, COVID-19 Search Trends Symptoms",
        "",
        'data_source_type_details states that epsilon = 1.68 "is applied every day, and since the underlying data is new (disjoint), the '
        'overall privacy budget is" the same. release_type_details states daily or weekly: this is about regions published daily; a '
        "weekly count, about seven days, is not modelled.",
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
        "data_domain gives two batches; this is the second. The unit is a bounded number of pageviews of a day (30 in this batch), not a "
        "person.",
        {"since": datetime.date(2017, 2, 9), "until": datetime.date(2023, 2, 5)},
    ),
    Case(
        "audience_engagement.yaml",
        "LinkedIn, Audience Engagement API",
        "",
        'release_type_details: "The data are refreshed on a monthly basis. The budget also resets on a monthly basis."',
    ),
)


def document(folder: Path) -> str:
    """The whole page."""
    cards = [tdp.deployment.Deployment.load(folder / case.file).card(**case.asked) for case in CASES]
    common = [sentence for sentence in cards[0].explained("assumptions") if sentence.startswith(OF_ALL)]
    parts = [HEAD, *_overview(folder), NUMBERS, *map(_numbers, CASES, cards)]
    parts += ["\n", ASSUMPTIONS, *(f"- {sentence}\n" for sentence in common)]
    parts += [_case(case, card, common) for case, card in zip(CASES, cards, strict=True)]
    parts += [MESSAGE, FIELD.read_text(encoding="utf-8")]
    return "".join(parts)


def _overview(folder: Path) -> list[str]:
    lines: list[str] = []
    reasons: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.yaml")):
        if path.name == "schema.yaml":  # of a record; not one
            continue
        line = overview_of(tdp.deployment.Deployment.load(path), Assumptions())
        stem = path.stem
        unit, promise = line.deployment.record.unit, line.promise.sentence
        if line.misfit is not None:
            reasons.setdefault(line.remark, []).append(f"`{stem}`")
            continue
        cells = " | ".join(map(upper, line.over_time))
        lines.append(f"| {stem} | {unit} | {promise} | {cells} | {line.remark} |\n")
    without = [f"- {reason}: {', '.join(stems)}\n" for reason, stems in reasons.items()]
    return [OVERVIEW, *lines, "\nRecords without a number:\n\n", *without]


def _numbers(case: Case, card: tdp.deployment.DeploymentCard) -> str:
    """The row of a case."""
    found = card.leakage
    assert found is not None, card.reason
    step = card.period
    held = "none found" if found.held is None else found.held.sentence
    doubled = "-" if found.doubled is None else upper(found.doubled)
    cells = [
        case.title,
        f"{card.promise.sentence} per {step}",
        f"{upper(found.limit.temporal)}{at_delta(found.delta)}, {'exact' if found.is_exact else 'upper bound'}",
        factor(found.limit.temporal),
        doubled,
        f"{upper(found.together)} ({card.horizon} {step}s)",
        held,
    ]
    return "| " + " | ".join(cells) + " |\n"


def _case(case: Case, card: tdp.deployment.DeploymentCard, common: list[str]) -> str:
    own = " ".join(
        s for s in card.explained("assumptions") if s.replace(card.period, "day") not in common and not STATED.match(s)
    )
    command = f"temporaldp deployment {case.file} {case.options}".rstrip()
    assumptions = f"\nAssumptions: {own}\n" if own else ""
    return f"\n### {case.title}\n\n`{command}`\n\nOrigin of the options: {case.why}\n{assumptions}"


def main() -> None:
    shared = Path(os.environ.get("TEMPORALDP_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    folder = shared / "deployments"
    if not folder.is_dir():
        raise SystemExit(f"expected records of the deployments registry in {folder}; set TEMPORALDP_SHARED")
    Path(sys.argv[1]).write_text(document(folder))


if __name__ == "__main__":
    main()
