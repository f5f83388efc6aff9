"""Both directions of a correlation in one JSON file, with their origins."""

from __future__ import annotations

import json
from pathlib import Path

from temporaldp.base.errors import InputError, MatrixError
from temporaldp.core.correlation import Adversary
from temporaldp.core.correlation.documents import correlation_from
from temporaldp.data.files.atomic import suffix_of, write_text
from temporaldp.data.files.matrices import parsed
from temporaldp.data.tables.estimation import BOTH


def save_correlation(adversary: Adversary, path: str | Path) -> None:
    """Write the correlations of an adversary, both directions and their origins, for `load_correlation`.

    Parameters
    ----------
    adversary : Adversary
    path : path ending in .json

    Raises
    ------
    InputError
        Another suffix, a correlation of a class of your own, or nothing to write.
    OutputError
        The file cannot be written; an existing file is untouched.
    """
    suffix_of(path, (".json",), "a correlation")
    if not adversary.matrices:
        raise InputError("expected an adversary with a correlation, got one without")
    document = {direction: getattr(adversary, direction).document() for direction in BOTH}
    write_text(path, json.dumps(document, allow_nan=False) + "\n")


def load_correlation(path: str | Path) -> Adversary:
    """Read a correlation that `save_correlation` wrote.

    Raises
    ------
    MissingFileError
        There is no such file.
    MatrixError, StateError
        The content is not a correlation.
    """
    suffix_of(path, (".json",), "a correlation")
    with parsed(path, "a correlation as save_correlation writes it") as text:
        match json.loads(text):
            case {"backward": backward, "forward": forward}:
                return Adversary(correlation_from(backward), correlation_from(forward))
        raise MatrixError("expected an object of 'backward' and 'forward'")
