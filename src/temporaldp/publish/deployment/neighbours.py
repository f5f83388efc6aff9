"""What a record states about neighbouring data: that they differ by adding or removing, or by replacing."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Neighbours: TypeAlias = Literal["adding or removing", "replacing"]

ADDING = re.compile(
    r"""
    \b(?:
        un-?bounded | add(?:s|ed|ing)? | (?<!in\ )additions? | remov(?:e|es|ed|ing|al|als) | insert(?:s|ed|ing|ion|ions)?
        | delet(?:e|es|ed|ing|ion|ions) | omit(?:s|ted|ting)? | omissions? | drop(?:s|ped|ping)? | subtract(?:s|ed|ing|ion)?
        | inclusion | exclusion | presence | absen(?:ce|t) | (?:with\ or|with\ and|or)\ without | joins? | joining
        | leav(?:e|es|ing) | opts?\ (?:in|out) | symmetric\ (?:distance|difference)
        | (?:one|an)\ (?:more|less|fewer|extra|additional)
        | empty | null | nothing | zero(?:s|ed|ing)? | dummy | default | blank | eras(?:e|es|ed|ing)
        | constant | neutral | placeholder | sentinel | ghost
    )\b
    """,
    re.VERBOSE,
)
"""Also replacing by nothing, which is removing."""

BY_SOMETHING = re.compile(
    r"\b(?:replac|modif|substitut|swap)[^.!?;]*?\b(?:by|with|into)"
    r" (?!(?:(?:an?|the|any|some) )?(?:other|another|different|arbitrary|new|any)\b|(?:that|those) of\b)"
)
"""Replacing by something else than other data: a fixed value, a symbol, a ghost. That is removing in other words."""

REPLACING = re.compile(
    r"""
    (?<![\w-])(?:
        change-one | change\ one\ (?:distance|metric) | hamming
        | (?:replace|replacement|substitution|swap)[\s-](?:neighbo|adjacen|distance|relation|metric|dp\b)
        | (?:one|single)\ (?:replaced|modified|substituted|swapped)\b
        | (?:is|be|being)\ (?:replaced|substituted|swapped)\ (?:by|with|for)\ (?:an?|any)\ ?(?:other|different|arbitrary)\b
        | (?<!with\ )(?:replac(?:e|es|ing|ements?)|modif(?:y|ies|ying|ications?)|substitut(?:e|es|ing|ions?)|swap(?:s|ping)?)
          (?:\ (?:of|in|at|most|up|to|the|all|data|values?|records?|rows?|contents?|contributions?))*
          [\s-](?:one|an?|any|single)\b
    )
    | (?:^|[^\w\s-]\ ?|\b(?:an?|the|of|uses?|using|under|with|as|are|is|in|for|by)\ )
      bounded[\s-](?:neighbo|adjacen|dp\b|differential|relation|definition|notion)
    """,
    re.VERBOSE,
)

REPLACING_MENTIONED = re.compile(r"\b(?:replac|modif|substitut|swap|bounded (?:or|and)\b|(?:or|and) bounded\b)")

NEIGHBOURING = re.compile(r"neighbo|adjacen|differ|distance|relation|data ?set|database")
"""Of a sentence about neighbouring data; records of several sentences replace other things too, such as missing values."""

DENIED = re.compile(
    r"\b(?:not|no|nor|neither|never|none|non|un|cannot|(?<!or )(?<!and )without|except|unlike)\b|n't\b"
    r"|\b(?:rather than|instead of|opposed to|in place of|in contrast)\b"
    r"|\b(?:costs?|convert(?:s|ed|ing)?|multipl(?:y|ies|ied|ying)|doubl(?:e|es|ed|ing)|twice|half)\b|\b2 ?(?:x|eps)"
)
"""Also of a relation for which the parameters are not stated, but are to be converted."""


def stated_neighbours(text: str) -> Neighbours | None:
    """The relation that a text states; None if it states both or neither, or denies something."""
    lowered = re.sub(r"\b(?:no|not) more than\b", "at most", " ".join(text.lower().replace("\u2019", "'").split()))
    sentences = re.split(r"(?<=[.!?;]) ", lowered)
    about = [one for one in sentences if NEIGHBOURING.search(one)] if len(sentences) > 1 else sentences
    replaces = any(REPLACING.search(one) for one in about)
    if DENIED.search(lowered) or any(BY_SOMETHING.search(f"{one} ") for one in about):
        return None
    if ADDING.search(lowered):
        return None if replaces or REPLACING_MENTIONED.search(lowered) else "adding or removing"
    return "replacing" if replaces else None
