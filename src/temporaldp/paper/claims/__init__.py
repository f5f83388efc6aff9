"""The paper's statements, each with a check that runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from temporaldp.errors import InputError
from temporaldp.paper.claims import analysis, bounding, calculation, composition, experiments, introduction
from temporaldp.paper.claims.claim import Claim, Statement, Verdict

STATEMENTS: tuple[Statement, ...] = (
    *introduction.STATEMENTS,
    *analysis.STATEMENTS,
    *composition.STATEMENTS,
    *calculation.STATEMENTS,
    *bounding.STATEMENTS,
    *experiments.STATEMENTS,
)
"""In the paper's order."""


def check_claims(identifiers: Iterable[str] | None = None) -> Iterator[Claim]:
    """Check statements of the paper one after the other.

    Parameters
    ----------
    identifiers : iterable of str, optional
        Which; by default all, in the paper's order.

    Yields
    ------
    Claim

    Raises
    ------
    InputError
        No such statement; the message lists those that there are.

    Examples
    --------
    >>> (claim,) = check_claims(["theorem-5-boundary"])
    >>> str(claim.verdict), claim.place
    ('disagrees', 'Section V, Theorem 5, second case')
    """
    known = {statement.identifier: statement for statement in STATEMENTS}
    chosen = list(known if identifiers is None else identifiers)
    for identifier in chosen:
        if identifier not in known:
            raise InputError(f"expected a statement of the paper, one of {', '.join(known)}; got {identifier!r}")
    return (known[identifier].examine() for identifier in chosen)


__all__ = ["STATEMENTS", "Claim", "Statement", "Verdict", "check_claims"]
