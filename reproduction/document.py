"""The page of all claims, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from reproduction.budget_figures import EXACT_PLAN
from reproduction.claim import Claim, Verdict
from reproduction.exhibit import Comparison, Exhibit
from reproduction.settings import BY_DEFINITION

HEAD = """# The paper, claim by claim

Y. Cao, M. Yoshikawa, Y. Xiao, L. Xiong: *Quantifying Differential Privacy under Temporal Correlations*, ICDE 2017. What it
says, in our words; what we get; whether the two agree, and why not where they do not. Numbers are nats unless they say
otherwise. Theorems, equations and figures are numbered as in the paper's source, which has no pictures: where a parameter
stands only in a picture, the row says so.

Made by `make paper` (`python -m reproduction -o paper`); each row runs by the command under it in a checkout, and a test
compares this page with the results of the code. *Measured* rows depend on the machine and on the installed
solvers: they are of one run.

"""

MEANING = """- **agrees**: what we compute is what the paper says.
- **agrees, loosely**: right in substance, but as a bound, under a condition that the paper leaves out, or in another size.
- **disagrees**: the check shows a counterexample, or other numbers.

"""

MOST_DIGITS, EXACT_DIGITS = 12, 10
"""Most digits that are reported: of other programs and closed forms, and of the exact leakage."""


def render_document(claims: Sequence[Claim], exhibits: Sequence[Exhibit]) -> str:
    """Render the page.

    Parameters
    ----------
    claims : sequence of Claim
    exhibits : sequence of Exhibit
        Figures and tables whose comparisons are listed.
    """
    return "".join(
        [HEAD, counts(claims), MEANING, _overview(claims), _figures(exhibits), "## The claims\n\n", *map(block, claims)]
    )


def counts(claims: Sequence[Claim]) -> str:
    """Return the number of claims of each verdict, without those that depend on the machine."""
    lasting = [claim for claim in claims if not claim.measured]
    words = [f"{sum(claim.verdict is verdict for claim in lasting)} {_number_of(verdict)}" for verdict in Verdict]
    measured = len(claims) - len(lasting)
    return f"Of {len(lasting)} claims, {', '.join(words[:-1])}, and {words[-1]}; {measured} more are measured.\n\n"


def block(claim: Claim) -> str:
    """Render one claim under a heading of its own."""
    measured = " *Measured.*" if claim.measured else ""
    return (
        f"### {claim.identifier}\n\n{claim.place}: **{claim.verdict}**.{measured}\n\n"
        f"- *The paper:* {claim.says}\n- *We get:* {claim.found}\n- *Why:* {claim.why}\n- *Run:* `{claim.command}`\n\n"
    )


def row(claim: Claim) -> str:
    """Render one claim as a row of the overview; verdicts other than "agrees" are bold."""
    verdict = str(claim.verdict) if claim.verdict is Verdict.AGREES else f"**{claim.verdict}**"
    return f"| [{claim.identifier}](#{claim.identifier}) | {claim.place} | {verdict} |\n"


def digits(comparison: Comparison, most: int = MOST_DIGITS) -> str:
    """Return the number of digits to which two series agree, in words."""
    if comparison.difference < 10.0**-most:
        return f"{most} digits or more"
    return f"{math.floor(-math.log10(comparison.difference))} digits"


def _overview(claims: Sequence[Claim]) -> str:
    return "| claim | where | verdict |\n| --- | --- | --- |\n" + "".join(map(row, claims)) + "\n"


def _figures(exhibits: Sequence[Exhibit]) -> str:
    lines = [
        "## Figures and Table II\n\n",
        "Each command writes the numbers (CSV, one row a point, with the source of every number) and the picture (PNG, "
        "SVG). Where "
        "somebody else's program, a closed form or another solver gives the same numbers, the comparison stands beside "
        "it.\n\n",
        "| figure | what it shows | command | checked against |\n| --- | --- | --- | --- |\n",
    ]
    for found in exhibits:
        compared = [check for check in found.comparisons() if check.deviations is None]
        exact = [check for check in compared if check.against in (BY_DEFINITION, EXACT_PLAN)]
        checks = [
            f"{check.name}{f' ({check.panel})' if check.panel else ''}: {check.against}, {digits(check)}"
            for check in compared
            if check not in exact
        ]
        if exact:
            least = max(exact, key=lambda check: check.difference)
            checks.append(f"the exact leakage ({len(exact)} curves): {digits(least, EXACT_DIGITS)}")
        command = f"`python -m reproduction --figure {found.key} -o paper`"
        lines.append(f"| {found.stem} | {found.title}; {found.section} | {command} | {'; '.join(checks)} |\n")
    lines.append("\n")
    lines += [f"- {found.stem}: {note}\n" for found in exhibits for note in found.notes if "not installed" not in note]
    return "".join([*lines, "\n"])


def _number_of(verdict: Verdict) -> str:
    return {Verdict.AGREES: "agree", Verdict.LOOSELY: "agree loosely", Verdict.DISAGREES: "disagree"}[verdict]
