"""The page of all claims, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.claim import Claim, Verdict
from reproduction.exhibit import Exhibit

HEAD = """# The paper, claim by claim

What Y. Cao, M. Yoshikawa, Y. Xiao, L. Xiong, *Quantifying Differential Privacy under Temporal Correlations*, ICDE 2017,
states, and what public functions of temporaldp compute. This folder is not part of the wheel. `make bench NAME=paper`
generates this page, the figures and their numbers (a minute); a test compares the page with the code.

- `python -m reproduction --claim ID` prints the statement, the numbers, the verdict and the reason.
- `python -m reproduction --figure KEY -o FOLDER` writes a figure as CSV (one row a point, with the source of every number),
  PNG and SVG.

*Measured* claims depend on the machine and on the
installed solvers. `tests/reproduction` checks disagreements by other means: enumeration, exact arithmetic, recursions written
by hand.

"""

MEANING = """- **agrees**: what we compute is what the paper says.
- **agrees, loosely**: right as a bound, under a condition that the paper omits, or in another size.
- **disagrees**: the check shows a counterexample or other numbers.

"""


def render_document(claims: Sequence[Claim], exhibits: Sequence[Exhibit]) -> str:
    """Render the page.

    Parameters
    ----------
    claims : sequence of Claim
    exhibits : sequence of Exhibit
        Figures and tables that are listed.
    """
    wrong = [f"- **{claim.identifier}:** {claim.why}\n" for claim in claims if claim.verdict is Verdict.DISAGREES]
    parts = [HEAD, counts(claims), MEANING, _overview(claims), "## Disagreements\n\n", *wrong, "\n", _figures(exhibits)]
    return "".join(parts)


def counts(claims: Sequence[Claim]) -> str:
    """Return the number of claims of each verdict, without those that depend on the machine."""
    lasting = [claim for claim in claims if not claim.measured]
    words = [f"{sum(claim.verdict is verdict for claim in lasting)} {_number_of(verdict)}" for verdict in Verdict]
    measured = len(claims) - len(lasting)
    return f"Of {len(lasting)} claims, {', '.join(words[:-1])}, and {words[-1]}; {measured} more are measured.\n\n"


def row(claim: Claim) -> str:
    """Render one claim as a row of the overview; verdicts other than "agrees" are bold."""
    verdict = str(claim.verdict) if claim.verdict is Verdict.AGREES else f"**{claim.verdict}**"
    measured = ", measured" if claim.measured else ""
    return f"| {claim.identifier} | {claim.place} | {verdict}{measured} |\n"


def _overview(claims: Sequence[Claim]) -> str:
    return "| claim | where | verdict |\n| --- | --- | --- |\n" + "".join(map(row, claims)) + "\n"


def _figures(exhibits: Sequence[Exhibit]) -> str:
    rows = [f"| {found.key} | {found.title} | {found.section} |\n" for found in exhibits]
    return "".join(["## Figures and Table II\n\n| key | content | in the paper |\n| --- | --- | --- |\n", *rows])


def _number_of(verdict: Verdict) -> str:
    return {Verdict.AGREES: "agree", Verdict.LOOSELY: "agree loosely", Verdict.DISAGREES: "disagree"}[verdict]
