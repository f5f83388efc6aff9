"""How the kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numba

Function: TypeAlias = Callable[..., Any]


def kernel(function: Function) -> Function:
    """Compile on the first call, keep the machine code on disk, release Python's lock; arithmetic as written."""
    compiled: Function = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    return compiled


def summing_kernel(function: Function) -> Function:
    """The same, and sums may be taken in any order, which lets them use whole registers.

    Only for functions whose own additions are sums of non-negative terms: reordering a difference could lose its digits. Terms
    with a difference come from a function of their own, which keeps its order.
    """
    compiled: Function = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc"})(function)
    return compiled


def inlined_kernel(function: Function) -> Function:
    """A kernel that becomes part of its caller: for dispatch so small that a call would cost as much."""
    compiled: Function = numba.njit(nogil=True, cache=True, error_model="numpy", inline="always")(function)
    return compiled
