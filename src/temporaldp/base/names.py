"""Names of states, people, tables and times."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from temporaldp.base.errors import StateError

CONTROL = (
    r"[\x00-\x1f\x7f-\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Control characters, line breaks, and marks that are invisible or reorder text, but not the joiners and variation selectors of
words and emoji; a pattern for Python, RE2 and Java alike."""

PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+([.][0-9]+)?")
"""A name that is a number."""


def state_names(states: Iterable[object]) -> tuple[str, ...]:
    """Return names as a tuple of distinct, non-empty strings; a `StateError` names the first that is not."""
    if isinstance(states, str | bytes):
        raise StateError(
            f"expected a sequence of state names, got the single string {states!r}; write [{states!r}, ...]"
        )
    if isinstance(states, tuple) and all(type(state) is str for state in states):
        return _checked(states)
    return _names(states)


def names_of(n_states: int, states: Iterable[object] | None) -> tuple[str, ...]:
    """Return the names of n states: the given ones, or "0", "1", ... by default."""
    names = state_names(range(n_states) if states is None else states)
    if len(names) != n_states:
        raise StateError(f"expected {n_states} state names, one per row, got {len(names)}: {listed(names)}")
    return names


def _names(states: Iterable[object]) -> tuple[str, ...]:
    shown: dict[str, str] = {}
    for position, state in enumerate(states):
        # NaN is the one value that differs from itself: tables use it for a missing name.
        if state is None or state != state or not str(state).strip():  # noqa: PLR0124
            raise StateError(f"the name of state {position} is missing (got {state!r}); give every state a name")
        name = printable(state, "state name")
        if shown.get(appearance(name)) == name:
            raise StateError(
                f"state name {name!r} is given twice (again at position {position}); names must be distinct"
            )
        require_unlike(name, shown)
        shown[appearance(name)] = name
    return tuple(shown.values())


_checked = lru_cache(maxsize=64)(_names)
"""Many people's matrices have the same names, which are looked at once."""


def in_order(names: Iterable[str]) -> list[str]:
    """Names in natural order: numbers by size (1, 2, 10), then all others alphabetically."""
    return sorted(names, key=place_in_order)


def place_in_order(name: str) -> tuple[bool, Decimal, str]:
    """Sort key of a name in natural order."""
    number = PLAIN_NUMBER.fullmatch(name)
    return number is None, Decimal(name) if number else Decimal(0), name


def printable(name: object, what: str) -> str:
    """Return `name` as text: of a state, a person, a table or a time.

    Raises
    ------
    StateError
        The name has line breaks, control characters (also marks that are invisible or reorder text), or half a surrogate pair.
        Such a name comes from a damaged file, imitates another one, or could run as a command where it is pasted.
    """
    text = str(name)
    if not (text.isascii() and text.isprintable()) and re.search(rf"{CONTROL}|[\ud800-\udfff]", text):
        raise StateError(
            f"{what} {text[:40]!r} holds line breaks or control characters, some of which are invisible; is a quote left "
            "open in the file?"
        )
    return text


def appearance(name: str) -> str:
    """What is seen of a name: composed letters, single blanks, and no characters of no width."""
    if name.isascii():
        return " ".join(name.split())
    letters = unicodedata.normalize("NFC", re.sub("[\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]", "", name))
    return " ".join("".join(letter for letter in letters if unicodedata.category(letter) != "Cf").split())


def require_unlike(name: str, shown: Mapping[str, str]) -> None:
    """Raise `StateError` if a name looks like one of other names, which `shown` gives by their appearance."""
    other = shown.get(appearance(name), name)
    if other != name:
        raise StateError(
            f"state names {other!a} and {name!a} look the same, and differ only in blanks, characters of no width, or "
            "composed and decomposed letters; write them in one way"
        )


def require_same_states(expected: Sequence[str], got: Sequence[str], *, what: str) -> None:
    """Raise `StateError` unless both name the same states in the same order; `what` describes the owner of `got`."""
    if tuple(expected) == tuple(got):
        return
    lacking = [name for name in expected if name not in set(got)]
    extra = [name for name in got if name not in set(expected)]
    if lacking or extra:
        parts = [f"lacks {listed(lacking)}"] if lacking else []
        parts += [f"has {listed(extra)}, which is not expected"] if extra else []
        raise StateError(f"states of {what} do not match: expected {listed(expected)}; it {' and '.join(parts)}")
    raise StateError(f"states of {what} are in another order: expected {listed(expected)}, got {listed(got)}")


def labels_of(table: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The names of a pandas table's rows and columns; None where they are 0, 1, 2, ...

    Raises
    ------
    StateError
        The columns have names and the rows have none, so that rows cannot be matched to states.
    """
    columns = getattr(table, "columns", None)
    if columns is None:
        return None
    numbers = tuple(str(k) for k in range(len(columns)))
    across = tuple(str(name) for name in columns)
    rows = getattr(table, "index", None)
    down = numbers if rows is None else tuple(str(name) for name in rows)
    if down == numbers and across == numbers:
        return None
    if down == numbers:
        raise StateError(
            f"expected a table whose rows are named like its columns, got columns {listed(across)} and rows without names; "
            "name the rows (pandas: table.set_index or read_csv(..., index_col=0)), or pass table.to_numpy() and states="
        )
    return state_names(down), state_names(across)


def row_names(table: Any) -> tuple[str, ...] | None:
    """The names of a pandas table's or series' rows; None where they are 0, 1, 2, ..."""
    index = getattr(table, "index", None)
    if index is None or callable(index):  # of a list
        return None
    names = tuple(str(name) for name in index)
    return None if names == tuple(str(k) for k in range(len(names))) else names


def require_unnamed(table: Any, what: str) -> None:
    """Raise `StateError` for a table with names of states where rows are taken by position, in the order of the states."""
    names = row_names(table)
    if names is not None:
        raise StateError(
            f"expected {what} without names, in the order of the states, got rows named {listed(names)}: bring them into that "
            "order and pass table.to_numpy()"
        )


def positions(names: Sequence[str], states: Sequence[str], *, what: str) -> list[int]:
    """Return the position of each state among the names of a table's rows or columns."""
    place = {name: k for k, name in enumerate(names)}
    if set(place) != set(states):
        require_same_states(states, names, what=what)
    return [place[state] for state in states]


def listed(names: Sequence[object], limit: int = 8) -> str:
    """Names for a message: at most `limit` of them, then how many more."""
    shown = ", ".join(repr(str(name)[:60]) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
