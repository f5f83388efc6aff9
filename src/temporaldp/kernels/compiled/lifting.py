"""The functions of `temporaldp.kernels.trees` in machine code: the same text, compiled.

Each is compiled with its helpers compiled before it, so that the plain functions stay plain for installations without Numba.
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

from temporaldp.kernels.compiled.options import kernel
from temporaldp.kernels.trees import forest, lifting, simplex, weights

_done: dict[str, Any] = {}


def _compile(module: ModuleType) -> None:
    """Compile what a module defines, in the order of the file; a helper stands before its callers."""
    for name, function in list(vars(module).items()):
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            scope = vars(module) | _done
            copy = FunctionType(function.__code__, scope, name, function.__defaults__)
            copy.__module__, copy.__qualname__, copy.__doc__ = (
                function.__module__,
                function.__qualname__,
                function.__doc__,
            )
            _done[name] = kernel(copy)


for _module in (forest, weights, simplex, lifting):
    _compile(_module)

lift, lift_constant, solve = _done["lift"], _done["lift_constant"], _done["solve"]
