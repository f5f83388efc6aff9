"""The functions of `temporaldp.kernels.interval_pairs` in machine code: the same text, compiled."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from temporaldp.kernels import interval_pairs
from temporaldp.kernels.compiled.options import kernel, summing_kernel

_done: dict[str, Any] = {}

for _name, _function in list(vars(interval_pairs).items()):
    if isinstance(_function, FunctionType):
        _copy = FunctionType(_function.__code__, vars(interval_pairs) | _done, _name, _function.__defaults__)
        _copy.__module__, _copy.__qualname__, _copy.__doc__ = __name__, _name, _function.__doc__
        # Sums of parts that are not negative may be taken in any order; their rounding is accounted for whatever the order.
        _done[_name] = summing_kernel(_copy) if _name in {"divergence", "reached", "easy_divergence"} else kernel(_copy)

largest_divergence = _done["largest_divergence"]
