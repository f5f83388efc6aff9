"""Compilation of kernels to machine code by Numba; the first calls of a process are interpreted.

Compiling the exact leakage takes longer than an audit of a few states does in Python. A process therefore interprets its
kernels, for `INTERPRETED_SECONDS` in all, and needs no Numba as long as that is enough. The results are the same: a kernel has
one text, and its operations have one order.

The machine code is stored on disk (beside the package, or in the user's cache), so that only the first process compiles. Numba
checks a kernel's own file for changes, not those of the kernels that it calls: after an edit there, delete `__pycache__` (the
tests do). Every kernel releases the interpreter lock and runs on the thread that calls it; `temporaldp.kernels.threads` spreads
calls over the cores. That needs none of Numba's own threading layers, which abort a process that forks or calls them from two
threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

Function: TypeAlias = Callable[..., Any]

INTERPRETED_SECONDS = 1.0
"""Processor time for which a process interprets kernels. If doubled: larger audits start without compiling, and a process that
compiles in the end starts a second later."""

LARGEST_INTERPRETED = 4_000
"""Entries of an array above which a kernel is compiled at once. If doubled: more calls are interrupted late."""


class _OutOfTime(Exception):  # noqa: N818  a signal between kernels, which no caller sees
    """The process has interpreted kernels for long enough."""


class _Interpretation(threading.local):
    """Whether this thread interprets a kernel, and the processor time at which it ends; whether it shares its arrays."""

    end: float | None = None
    shares_arrays: bool = False


_running = _Interpretation()
_spent = 0.0


class Kernel:
    """A function that is interpreted or compiled; importing it does not load Numba, which takes half a second."""

    def __init__(self, function: Any, **options: Any) -> None:
        self.function, self.options = function, options
        self._is_compiled = False

    @cached_property
    def compiled(self) -> Any:
        """The compiled function. It calls the compiled forms of the kernels that its module names."""
        import numba

        source, names = self.function, self.function.__globals__
        used = {name: names[name].compiled for name in source.__code__.co_names if isinstance(names.get(name), Kernel)}
        function = FunctionType(source.__code__, names | used, source.__name__, source.__defaults__)
        function.__module__, function.__qualname__ = source.__module__, source.__qualname__
        # Only Python and other kernels call kernels; without wrappers for C they compile faster.
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True} | self.options
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no folder that this process may write to: compile in every process
            return numba.njit(**options)(function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function, which takes positional arguments only."""
        if _running.end is not None:
            if time.thread_time() > _running.end:
                raise _OutOfTime
            return self.function(*arguments)
        compiles = "compiled" in self.__dict__ or _running.shares_arrays or _spent >= INTERPRETED_SECONDS
        if compiles or any(one.size > LARGEST_INTERPRETED for one in _arrays(arguments)):
            return self.called(*arguments)
        before = [(one, one.copy()) for one in _arrays(arguments) if one.flags.writeable]
        try:
            return self.interpreted(*arguments)
        # Python raises where machine code continues with inf and nan.
        except (_OutOfTime, ArithmeticError, ValueError):
            for one, content in before:  # digits must not depend on when the interpretation ended
                one[...] = content
            return self.called(*arguments)

    def called(self, *arguments: Any) -> Any:
        """Call the compiled function. In another thread the first time: LLVM would lose an interrupt while it compiles."""
        if self._is_compiled or threading.current_thread() is not threading.main_thread():
            return self.compiled(*arguments)
        pool = ThreadPoolExecutor(1)
        try:
            found = pool.submit(lambda: self.compiled(*arguments)).result()
        finally:
            pool.shutdown(wait=False)
        self._is_compiled = True
        return found

    def interpreted(self, *arguments: Any) -> Any:
        """Call the function in Python, within what is left of the time for it."""
        global _spent  # noqa: PLW0603
        started = time.thread_time()
        _running.end = started + INTERPRETED_SECONDS - _spent
        try:
            with np.errstate(all="ignore"):
                return self.function(*arguments)
        finally:
            _running.end = None
            _spent += time.thread_time() - started


def share_arrays() -> None:
    """Compile all kernels that this thread calls: an interrupted one would undo what other threads wrote to its arrays."""
    _running.shares_arrays = True


def _arrays(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """The arrays among arguments, those in tuples included."""
    for one in arguments:
        if isinstance(one, tuple):
            yield from _arrays(one)
        elif isinstance(one, np.ndarray):
            yield one


def kernel(function: Function) -> Function:
    """Compile arithmetic as written."""
    return Kernel(function)


def inner_kernel(function: Function) -> Function:
    """Compile a function that only kernels call, and that makes no arrays.

    It has no conversion of arguments from Python, which takes longer to compile, and counts no references, which takes as long
    as a step of five states.
    """
    return Kernel(function, no_cpython_wrapper=True, _nrt=False)
