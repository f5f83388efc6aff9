"""Which accountant is charged by releases made in a block: one a context, never a global default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from temporaldp.accounting.accountant import TemporalAccountant

Charge: TypeAlias = "TemporalAccountant | None"
Entry: TypeAlias = "Token[Charge]"

_charged: ContextVar[Charge] = ContextVar("temporaldp_charged", default=None)


def charged() -> Charge:
    """The accountant whose block this is, if any."""
    return _charged.get()


def begin(accountant: TemporalAccountant) -> Entry:
    """Enter a block; what is returned ends it."""
    return _charged.set(accountant)


def end(entry: Entry) -> None:
    """Leave the block that `begin` entered: the one around it, if any, is charged again."""
    _charged.reset(entry)


@contextmanager
def settled() -> Iterator[None]:
    """Inside, nobody is charged: whoever opens it has paid already."""
    entry = _charged.set(None)
    try:
        yield
    finally:
        _charged.reset(entry)
