"""Accountants that releases within a block are charged to, per thread or task."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from temporaldp.core.accounting.protocol import Accounting
from temporaldp.core.mechanisms.distances import require_no_nearer, require_same_distances

if TYPE_CHECKING:
    from temporaldp.core.accounting.accountant import TemporalAccountant

Blocks: TypeAlias = "tuple[TemporalAccountant | weakref.ref[_Paid], ...]"


class _Paid:
    """Alive while a block is open in which all is paid."""


_blocks: ContextVar[Blocks] = ContextVar("temporaldp_blocks", default=())


def _open_blocks() -> Blocks:
    """The blocks around the caller, without those that an interrupt left behind."""
    return tuple(block for block in _blocks.get() if not isinstance(block, weakref.ref) or block() is not None)


def charged() -> tuple[TemporalAccountant, ...]:
    """The accountants of the enclosing blocks, each once, the outermost first, up to a block of `settled`."""
    found: dict[int, TemporalAccountant] = {}
    for block in reversed(_open_blocks()):
        if isinstance(block, weakref.ref):
            break
        found[id(block)] = block
    return tuple(reversed(found.values()))


def charge(epsilons: Sequence[float], *, last: bool = False, counted: Accounting[Any, Any] | None = None) -> None:
    """Spend these budgets, one per step, with the accountants of all enclosing blocks, or with none.

    `counted` is the method by which a plan counts them, None for epsilons of any two states: `InputError` where an accountant
    has other distances.
    """
    around = charged()
    for accountant in around:
        if counted is None:
            require_no_nearer(accountant.accounting.distances, "a mechanism")
        else:
            require_same_distances(counted.distances, accountant.accounting.distances)
    with ExitStack() as locked:  # in one order for all threads, so that none waits for another that waits for it
        for accountant in sorted(around, key=id):
            locked.enter_context(accountant.lock)
        for accountant in around:
            accountant.check(list(epsilons), last=last)
        for accountant in around:
            accountant.spend(list(epsilons), last=last)


def begin(accountant: TemporalAccountant) -> None:
    """Enter a block, in this thread or task."""
    _blocks.set((*_blocks.get(), accountant))


def end(accountant: TemporalAccountant) -> None:
    """Leave the accountant's innermost block, and blocks inside it that an interrupt left open."""
    blocks = _blocks.get()
    places = [place for place, one in enumerate(blocks) if one is accountant]
    _blocks.set(blocks[: places[-1]] if places else blocks)


@contextmanager
def settled() -> Iterator[None]:
    """Context in which no accountant is charged, as the caller has charged them already."""
    before, paid = _open_blocks(), _Paid()
    try:
        # A weak reference: where an interrupt keeps the last line from being run, the block ends with this frame.
        _blocks.set((*before, weakref.ref(paid)))
        yield
    finally:
        _blocks.set(before)
