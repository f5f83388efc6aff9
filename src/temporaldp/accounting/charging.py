"""Which accountant is charged by releases made in a block: one a thread or task, never a global default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from temporaldp.accounting.accountant import TemporalAccountant

Blocks: TypeAlias = "tuple[TemporalAccountant | None, ...]"

_blocks: ContextVar[Blocks] = ContextVar("temporaldp_blocks", default=())


def charged() -> TemporalAccountant | None:
    """The accountant of the innermost block around the caller, if any."""
    blocks = _blocks.get()
    return blocks[-1] if blocks else None


def begin(accountant: TemporalAccountant | None) -> None:
    """Enter a block, in this thread or task."""
    _blocks.set((*_blocks.get(), accountant))


def end() -> None:
    """Leave the innermost block: the one around it, if any, is charged again."""
    _blocks.set(_blocks.get()[:-1])


@contextmanager
def settled() -> Iterator[None]:
    """Inside, nobody is charged: whoever opens it has paid already."""
    begin(None)
    try:
        yield
    finally:
        end()
