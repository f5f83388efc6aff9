"""How the kernels are compiled.

The machine code is kept on disk (beside the package, or in the user's cache), so that only the first process compiles. Numba
looks at a kernel's own file to see whether that is still good, not at the kernels it calls: after an edit here, delete
`__pycache__` (the tests do).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numba

Function: TypeAlias = Callable[..., Any]


def kernel(function: Function) -> Function:
    """Compile on the first call and release Python's lock; arithmetic as written."""
    return compiled(function)


def inner_kernel(function: Function) -> Function:
    """Compile a function that only kernels call, never Python: without conversion of its arguments it compiles faster."""
    return compiled(function, no_cpython_wrapper=True)


def summing_kernel(function: Function) -> Function:
    """The same, and sums may be taken in any order, which lets them use whole registers.

    Only for functions whose own additions are sums of non-negative terms: reordering a difference could lose its digits. Terms
    with a difference come from a function of their own, which keeps its order.
    """
    return compiled(function, fastmath={"reassoc"})


def inlined_kernel(function: Function) -> Function:
    """A kernel that becomes part of its caller: for dispatch so small that a call would cost as much."""
    return compiled(function, inline="always")


def compiled(function: Function, **options: Any) -> Function:
    """Compile with these options of Numba's too."""
    # Only Python and other kernels call kernels; without wrappers for C they compile faster.
    usual: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        made: Function = numba.njit(cache=True, **usual, **options)(function)
    except RuntimeError:  # no folder that this process may write to: compile anew each time
        made = numba.njit(**usual, **options)(function)
    return made
