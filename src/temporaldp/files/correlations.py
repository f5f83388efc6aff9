"""Both directions of a correlation in one file, with where it comes from: NPZ."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from temporaldp.correlation import Adversary, IntervalMatrix, Origin, TransitionMatrix
from temporaldp.errors import InputError, MatrixError
from temporaldp.files.atomic import brief, replacing, require_file, suffix_of
from temporaldp.files.matrices import UNREADABLE, loaded_arrays

FORMAT = "temporaldp correlation 1"
DIRECTIONS = ("backward", "forward")


def save_correlation(adversary: Adversary, path: str | Path) -> None:
    """Write what an adversary knows, both directions and where they come from, so that `load_correlation` gives it back.

    Parameters
    ----------
    adversary : Adversary
        With constant matrices, known exactly or as intervals.
    path : path ending in .npz

    Raises
    ------
    InputError
        Another suffix, matrices that vary with time, or nothing to write.
    OutputError
        The file cannot be written; what stood there is untouched.
    """
    suffix_of(path, (".npz",), "a correlation")
    if not adversary.matrices:
        raise InputError("expected an adversary who knows a correlation, got one who knows none")
    parts: dict[str, Any] = {"format": np.array(FORMAT), "states": np.array(adversary.states)}
    for direction in DIRECTIONS:
        known = getattr(adversary, direction)
        if not known.is_constant:
            raise InputError(
                f"expected constant matrices, got {len(known.matrices)} {direction} ones; save each by save_matrix"
            )
        matrix = known.at(0)
        if isinstance(matrix, IntervalMatrix):
            parts |= {f"{direction}_lower": matrix.lower, f"{direction}_upper": matrix.upper}
            parts[f"{direction}_origin"] = np.array(json.dumps(asdict(matrix.origin)))
        elif matrix is not None:
            parts[direction] = matrix.dense()
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **parts)


def load_correlation(path: str | Path) -> Adversary:
    """Read a correlation that `save_correlation` wrote.

    Raises
    ------
    MissingFileError
        There is no such file.
    MatrixError, StateError
        The content is no correlation.
    """
    suffix_of(path, (".npz",), "a correlation")
    source = require_file(path, "a correlation")
    try:
        with loaded_arrays(source) as parts:
            if str(parts["format"]) != FORMAT:
                raise MatrixError(f"expected format {FORMAT!r}, got {str(parts['format'])[:40]!r}")
            states = [str(name) for name in np.atleast_1d(parts["states"])]
            return Adversary(*(_matrix(parts, direction, states) for direction in DIRECTIONS))
    except InputError as error:
        raise type(error)(f"{source}: {error}") from None
    except UNREADABLE as error:
        raise MatrixError(
            f"{source}: expected a correlation as save_correlation writes it, got something else: {brief(error)}"
        ) from None


def _matrix(parts: Any, direction: str, states: list[str]) -> TransitionMatrix | IntervalMatrix | None:
    if direction in parts:
        return TransitionMatrix(parts[direction], states)
    if f"{direction}_lower" not in parts:
        return None
    origin = Origin(**json.loads(str(parts[f"{direction}_origin"])))
    return IntervalMatrix(parts[f"{direction}_lower"], parts[f"{direction}_upper"], states, origin=origin)
