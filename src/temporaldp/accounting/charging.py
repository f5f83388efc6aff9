"""Which accountant is charged by releases made in a block: one a thread or task, never a global default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from temporaldp.accounting.accountant import TemporalAccountant

Blocks: TypeAlias = "tuple[TemporalAccountant | None, ...]"

_blocks: ContextVar[Blocks] = ContextVar("temporaldp_blocks", default=())


def charged() -> tuple[TemporalAccountant, ...]:
    """The accountants of the blocks around the caller, the outermost first, up to a block in which all is paid."""
    found: list[TemporalAccountant] = []
    for accountant in reversed(_blocks.get()):
        if accountant is None:
            break
        found.append(accountant)
    return tuple(reversed(found))


def charge(epsilons: Sequence[float], *, last: bool = False) -> None:
    """Spend these budgets, one a step, with everybody around: all of them with all of them, or nothing with anybody."""
    around = charged()
    for accountant in around:
        accountant.check_all(epsilons, last=last)
    for accountant in around:
        accountant.spend_all(epsilons, last=last)


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
