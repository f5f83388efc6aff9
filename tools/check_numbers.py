"""Recompute the numbers in the prose of README.md and docs, and report those that differ.

Doctests check the numbers in code; the pages of docs/measured are generated. This table covers the sentences between
them: a regular expression with one group for each number, and the function that recomputes them. Every match in any
page has to agree to its last digit.

Run with:  make numbers
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import temporaldp as tdp
from temporaldp.base.display import number

ROOT = Path(__file__).resolve().parents[1]
STEPS, EPSILON = 47, 0.1
"""The horizon and the budget of a step to which all numbers about the bundled sample refer."""

Numbers = tuple[float, ...]


@cache
def sample() -> tdp.Adversary:
    """Return the adversary of the bundled sample."""
    return tdp.estimate_adversary(tdp.load_sample())


@cache
def leakage() -> float:
    """Return the exact leakage of the sample."""
    return tdp.temporal_leakage(sample(), [EPSILON] * STEPS).worst


@cache
def paper_bound() -> float:
    """Return the paper's bound for the sample, rounded up as upper bounds are."""
    return float(number(tdp.temporal_leakage(sample(), [EPSILON] * STEPS, accounting=tdp.PaperBound()).worst, up=True))


def belief(nats: float) -> float:
    """Return the percentage to which a belief of 50 % can increase."""
    return 100.0 / (1.0 + math.exp(-nats))


@cache
def noise(method: str, accounting: tdp.Exact | tdp.PaperBound = tdp.Exact()) -> float:  # noqa: B008  a constant
    """Return the mean absolute noise of a plan for the sample, alpha = 1."""
    return tdp.plan_budget(sample(), 1.0, STEPS, method=method, accounting=accounting).mean_absolute_noise


@cache
def models() -> dict[str, tdp.Adversary]:
    """Return the first-order chain of the sample, and that of dwell times."""
    return tdp.estimate_models(tdp.load_sample(), ["first order", "dwell times"])


def user_noise(delta: float = 0.0) -> float:
    """Return the mean absolute noise of the user level for the horizon of the sample, alpha = 1."""
    return tdp.plan_guarantee("user", 1.0, STEPS, delta=delta).mean_absolute_noise


@cache
def sticky_supremum(stays: float, epsilon: float) -> float:
    """Return the supremum of two states that stay with one probability."""
    chain = tdp.TransitionMatrix([[stays, 1.0 - stays], [1.0 - stays, stays]])
    return tdp.leakage_supremum(tdp.Adversary(chain, chain), epsilon).temporal


def column(name: str, heading: str, head: str) -> dict[str, str]:
    """Return a column of the first table below a heading in benchmarks/recorded, by the cells of the first column."""
    text = (ROOT / "benchmarks" / "recorded" / f"{name}.md").read_text(encoding="utf-8")
    lines = text.split(f"\n## {heading}\n")[1].lstrip().split("\n\n")[0].splitlines()
    heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[heads.index(head)] for row in rows}


def recorded(name: str, heading: str, row: str, head: str) -> float:
    """Return a recorded number."""
    return float(column(name, heading, head)[row])


def largest_ratio() -> float:
    """Return the largest recorded ratio of the paper's bound to the exact leakage, real data over 50 steps."""
    bound, exact = (column("exact", "Real data", head) for head in ("paper", "exact"))
    return max(float(bound[name]) / float(exact[name]) for name in exact)


def typed() -> float:
    """The budget of docs/how-to/epsilon.md for libraries that add or remove a row, rounded down to five decimals."""
    walk = tdp.correlation.lazy_walk(0.95, 3)
    return math.floor(tdp.sustainable_budget(tdp.Adversary(walk, walk), 1.0, 36) / 2.0 * 1e5) / 1e5


def five_years() -> float:
    """What five years of 365 tables leak together, each with at most 1 nat at a delta."""
    return tdp.planning.epochs_together(tdp.plan_guarantee("user:365", 1.0, delta=1e-6), 5)


SLEEP = "sleep stages of 151 people, 5 min (bundled)"
INFINITE = "Noise of a histogram that satisfies alpha = 1 over an infinite horizon"

RULES: tuple[tuple[str, Callable[[], Numbers]], ...] = (
    (r"(?<![\d.])(0\.66\d{2,})(?![\d.]*\d)", lambda: (leakage(),)),
    (r"(?<![\d.])(1\.033\d)(?!\d)", lambda: (paper_bound(),)),
    (r"and (6\d(?:\.\d+)?) % by all 47|into (?:at most )?(6\d(?:\.\d+)?) % \(0", lambda: (belief(leakage()),)),
    (r"(52\.\d) %", lambda: (belief(EPSILON),)),
    (r"follow each other \(first order\) \| (\d+\.\d) \|", lambda: (noise("optimal"),)),
    (r"how long stages last \| (\d+\.\d) \|", lambda: (tdp.plan_budget(models(), 1.0, STEPS).mean_absolute_noise,)),
    (r"all states of a person \| every correlation \| (\d\d) \|", lambda: (user_noise(),)),
    (r"for δ = 1e-6 \| every correlation \| (\d+\.\d) \|", lambda: (user_noise(delta=1e-6),)),
    (r"paper's planner needs (\d+\.\d)", lambda: (noise("quantified", accounting=tdp.PaperBound()),)),
    (r"the whole night\? \| (4\.7) ", lambda: (STEPS * EPSILON,)),
    (r"\| 4\.7 \| (\d+\.\d+) \|", lambda: (recorded("comparison", "In short", "dp-accounting", "says"),)),
    (r"quilts bound the second row by (\d+\.\d+)", lambda: (recorded("comparison", "In short", "Markov quilts", "says"),)),
    (r"\(temporal level\) \| (0\.0\d+) \|", lambda: (typed(),)),
    (r"e\^0\.1 = (\d\.\d+)", lambda: (math.exp(EPSILON),)),
    (r"1 nat (?:is a factor of|multiplies the odds by) (\d\.\d+)", lambda: (math.e,)),
    (r"probability 0\.9, all (?:tables|days) together leak up to (\d\.\d) nats", lambda: (sticky_supremum(0.9, 1.0),)),
    (
        r"up to (\d\.\d) nats \(rounded\) about one day if people stay with probability 0\.99",
        lambda: (sticky_supremum(0.99, 1.0 / 7.0),),
    ),
    (r"and (\d\.\d) nats at delta = 1e-6 for the five \(`temporaldp plan`", lambda: (five_years(),)),
    (r"mean absolute noise (?:of|is) (13\.\d) people", lambda: (recorded("delta", INFINITE, SLEEP, "pure, exact"),)),
    (
        r"(?:a curve for each pair|the exact method, and) (9\.\d)",
        lambda: (recorded("delta", INFINITE, SLEEP, "Gaussian, pair by pair where affordable"),),
    ),
    (r"(\d\.\d) times the exact leakage", lambda: (largest_ratio(),)),
)  # fmt: skip


def pages() -> Iterator[Path]:
    """Yield the pages that are written by hand."""
    yield ROOT / "README.md"
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if not {"_build", "measured", "api"} & set(path.relative_to(ROOT).parts):
            yield path


def differences() -> list[str]:
    """Return what differs, and the rules that match nothing."""
    texts = {path: " ".join(path.read_text(encoding="utf-8").split()) for path in pages()}
    found = []
    for pattern, compute in RULES:
        matches = [(path, match) for path, text in texts.items() for match in re.finditer(pattern, text)]
        if not matches:
            found.append(f"no page matches {pattern}")
        for path, match in matches:
            for printed, value in zip(filter(None, match.groups()), compute(), strict=True):
                digits = len(printed.partition(".")[2])
                if f"{value:.{digits}f}" != printed:
                    found.append(f"{path.relative_to(ROOT)}: {match[0]!r}; recomputed: {value:.{digits + 2}f}")
    return found


if __name__ == "__main__":
    if problems := differences():
        sys.exit("\n".join(problems))
