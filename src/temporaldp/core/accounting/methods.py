"""The accounting methods of this package, and how files name them."""

from __future__ import annotations

from typing import Any

from temporaldp.base.errors import InputError
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.accounting.exact.method import Exact
from temporaldp.core.accounting.exact.outputs import FiniteOutputs
from temporaldp.core.accounting.interval.method import IntervalBound
from temporaldp.core.accounting.memory.method import LongerMemory
from temporaldp.core.accounting.metric.method import BoxMetric, IntervalMetric, MetricPrivacy
from temporaldp.core.accounting.paper.method import PaperBound
from temporaldp.core.accounting.protocol import Accounting

METHODS: dict[str, type[Accounting[Any, Any]]] = {
    method.name: method
    for method in (
        Exact,
        FiniteOutputs,
        PaperBound,
        MetricPrivacy,
        BoxMetric,
        IntervalBound,
        IntervalMetric,
        LongerMemory,
        ApproximateDP,
    )
}


def accounting_from(document: dict[str, Any]) -> Accounting[Any, Any]:
    """Return the method that `Accounting.document` described.

    Raises
    ------
    InputError
        The document names no method of this package, or has other parameters than it takes.
    """
    parameters = dict(document)
    name = parameters.pop("method", None)
    if name not in METHODS:
        raise InputError(f"expected the accounting method to be one of {', '.join(METHODS)}, got {name!r}")
    try:
        return METHODS[name](**parameters)
    except TypeError as error:
        raise InputError(
            f"expected the parameters of the accounting method {name!r}, got {sorted(parameters)}"
        ) from error
