"""Accounting methods by name, for parametrized tests; and two that a user would write."""

import math

import numpy as np

from temporaldp import Exact, PaperBound
from temporaldp.core.accounting import Accounting, StepwiseAccounting

METHODS = {"exact": Exact(), "paper": PaperBound()}


def method_of(name):
    """The method of a name; a method is returned as it is."""
    return name if isinstance(name, Accounting) else METHODS[name]


# An accounting method: nothing is ever forgotten where somebody knows a correlation


class EverythingAddsUp:
    """One user, step by step: all that was known arrives."""

    nothing = 0.0

    def __init__(self, user):
        self.user = user

    def arriving(self, side, transition, release, before):
        return before + release if getattr(self.user, side) else 0.0

    def leakage(self, past, release, future):
        return past + release + future

    def never_more(self, one, other):
        return one <= other

    def raised(self, arrived):
        return arrived * (1.0 + 1e-14)


class SumAccounting(StepwiseAccounting):
    name = "sum"

    def steps(self, user):
        return EverythingAddsUp(user)


# Another one: total variation. ``E_g`` of two rows is at most their total variation theta, so that what arrives is at most
# ``log(1 + theta (e^a - 1))``, above the paper's loss and below a.


class TotalVariation(EverythingAddsUp):
    def __init__(self, user):
        super().__init__(user)
        self._thetas: dict[int, float] = {}

    def arriving(self, side, transition, release, before):
        matrix = getattr(self.user, side).at(transition)
        if matrix is None:
            return 0.0
        if id(matrix) not in self._thetas:
            rows = matrix.dense()
            self._thetas[id(matrix)] = max(float(np.maximum(a - b, 0.0).sum()) for a in rows for b in rows)
        known_so_far = before + release
        return max(known_so_far + math.log1p((1.0 - self._thetas[id(matrix)]) * math.expm1(-known_so_far)), 0.0)


class TotalVariationAccounting(StepwiseAccounting):
    name = "total variation"

    def steps(self, user):
        return TotalVariation(user)
