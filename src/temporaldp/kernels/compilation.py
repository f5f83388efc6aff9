"""Compilation of kernels to machine code by Numba, on their first call.

The machine code is stored on disk (beside the package, or in the user's cache), so that only the first process compiles. Numba
checks a kernel's own file for changes, not those of the kernels that it calls: after an edit there, delete `__pycache__` (the
tests do). Every kernel releases the interpreter lock and runs on the thread that calls it; `temporaldp.kernels.threads` spreads
calls over the cores. That needs none of Numba's own threading layers, which abort a process that forks or calls them from two
threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]


class Kernel:
    """A function that is compiled on its first call; importing it does not load Numba, which takes half a second."""

    def __init__(self, function: Any, **options: Any) -> None:
        self.function, self.options = function, options

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
        """Call the compiled function, which takes positional arguments only."""
        return self.compiled(*arguments)


def kernel(function: Function) -> Function:
    """Compile arithmetic as written."""
    return Kernel(function)


def inner_kernel(function: Function) -> Function:
    """Compile a function that only kernels call: without conversion of Python's arguments, which takes longer."""
    return Kernel(function, no_cpython_wrapper=True)


def summing_kernel(function: Function) -> Function:
    """Compile with sums in any order, which lets them use whole registers.

    Only for functions whose own additions are sums of non-negative terms: reordering a difference could lose its digits. Terms
    with a difference come from a function of their own, which keeps its order.
    """
    return Kernel(function, fastmath={"reassoc"})


def inlined_kernel(function: Function) -> Function:
    """Compile into the caller: for dispatch so small that passing a matrix would cost more."""
    return Kernel(function, inline="always")
