"""One adversary or many: the same list with names, checked once."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from temporaldp.correlation import Adversary
from temporaldp.errors import InputError

Adversaries: TypeAlias = Adversary | Iterable[Adversary] | Mapping[str, Adversary]


def named(adversaries: Adversaries) -> Iterator[tuple[str | None, Adversary]]:
    """Each adversary with a name: its own, its key, or its position; a single one may stay nameless."""
    if isinstance(adversaries, Adversary):
        yield adversaries.name, adversaries
        return
    if not isinstance(adversaries, Iterable):
        raise InputError(
            f"expected an Adversary or several of them, got {type(adversaries).__name__}; a TransitionMatrix m becomes one by "
            "Adversary(backward=m) or Adversary(forward=m)"
        )
    pairs = adversaries.items() if isinstance(adversaries, Mapping) else ((None, item) for item in adversaries)
    seen: set[str] = set()
    count = 0
    for key, adversary in pairs:
        if not isinstance(adversary, Adversary):
            raise InputError(
                f"expected an Adversary or several of them, got {type(adversary).__name__} at position {count}"
            )
        name = key or adversary.name or f"user {count}"
        if name in seen:
            raise InputError(f"two adversaries are named {name!r}; give each its own name, so that none is left out")
        seen.add(name)
        yield name, adversary
        count += 1
    if count == 0:
        raise InputError("expected at least one Adversary, got none")
