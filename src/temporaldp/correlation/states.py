"""State names: what every matrix, trajectory and released table agrees on."""

from collections.abc import Iterable, Sequence

from temporaldp.errors import StateError


def state_names(states: Iterable[object]) -> tuple[str, ...]:
    """Names as a tuple of distinct, non-empty strings; `StateError` says which one is not."""
    if isinstance(states, str | bytes):
        raise StateError(
            f"expected a sequence of state names, got the single string {states!r}; write [{states!r}, ...]"
        )
    names = []
    for position, state in enumerate(states):
        # NaN is the one value that differs from itself: tables use it for a missing name.
        missing = state is None or state != state or not str(state).strip()  # noqa: PLR0124
        if missing:
            raise StateError(f"the name of state {position} is missing (got {state!r}); give every state a name")
        names.append(printable(state, "state name"))
    seen: set[str] = set()
    for position, name in enumerate(names):
        if name in seen:
            raise StateError(
                f"state name {name!r} is given twice (again at position {position}); names must be distinct"
            )
        seen.add(name)
    return tuple(names)


def printable(name: object, what: str) -> str:
    """`name` as text; refused if it holds line breaks or control characters, which no name has but a broken file."""
    text = str(name)
    if not text.isprintable() and any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise StateError(
            f"{what} {text[:40]!r} holds line breaks or control characters; is a quote left open in the file?"
        )
    return text


def require_same_states(expected: Sequence[str], got: Sequence[str], *, what: str) -> None:
    """Raise `StateError` unless the two name the same states in the same order; `what` says whose states came."""
    if tuple(expected) == tuple(got):
        return
    lacking = [name for name in expected if name not in set(got)]
    extra = [name for name in got if name not in set(expected)]
    if lacking or extra:
        parts = [f"lacks {listed(lacking)}"] if lacking else []
        parts += [f"has {listed(extra)}, which is not expected"] if extra else []
        raise StateError(f"states of {what} do not match: expected {listed(expected)}; it {' and '.join(parts)}")
    raise StateError(f"states of {what} stand in another order: expected {listed(expected)}, got {listed(got)}")


def listed(names: Sequence[object], limit: int = 8) -> str:
    """Names for a message: at most `limit` of them, then how many more."""
    shown = ", ".join(repr(str(name)[:60]) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
