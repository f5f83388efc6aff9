"""OpenDP: measurements and contexts whose answers are charged to a temporal accountant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from temporaldp.base.errors import BudgetError, InputError
from temporaldp.base.extras import needing
from temporaldp.core.accounting import TemporalAccountant
from temporaldp.core.mechanisms.protocol import ROUNDED_UP
from temporaldp.lab.adapters.charging import Promise, charge, promise


def opendp(guarded: Any, accountant: TemporalAccountant, *, d_in: Any = None) -> Any:
    """Return an OpenDP measurement or Context whose answers are charged to a temporal accountant before they are released.

    Every call of a measurement is a step, and spends the output of its privacy map for data that differ in one person's state.
    A Context is a single step: its whole budget is charged here, once. Its queries are then answered as usual; a query whose
    privacy map exceeds the charge for one replaced state is refused before it is answered.

    Parameters
    ----------
    guarded : opendp.mod.Measurement or opendp.context.Context
    accountant : TemporalAccountant
        A pure epsilon is accepted by any accountant; (epsilon, delta) and rho by one under approximate DP.
    d_in : optional
        Distance of data that differ in the state of one person at one step, in the metric of the measurement or Context.
        Default for datasets with one row per person: 2 under the symmetric and the insert-delete distance, as one row is
        removed and another added; 1 under the change-one and the Hamming distance; times the number of rows of a Context's
        unit. Required for all other metrics: 2 for a histogram under the L1 distance.

    Returns
    -------
    GuardedMeasurement, or an opendp.context.Context

    Raises
    ------
    InputError
        The argument is neither, its metric requires d_in, or its measure cannot be counted.
    LeakageBudgetError
        The level would be exceeded: at a call of a measurement, or here for a Context. Nothing was drawn or spent.
    BudgetError
        The accountant counts pure epsilons and there is a delta, or a Context has no bound, or has answered already.
    MissingExtraError
        OpenDP is not installed.

    Notes
    -----
    Group privacy, twice the budget, would be wrong: under the symmetric distance, data of a known size with one row more or
    less do not exist, so that a privacy map may permit any noise, or none, at distance 1. The map at d_in is used.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> import temporaldp as tdp
    >>> dp.enable_features("contrib")
    >>> walk = tdp.TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> accountant = tdp.TemporalAccountant(tdp.Adversary(walk, walk), alpha=1.0)
    >>> laplace = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=10.0)
    >>> noisy = tdp.adapters.opendp(laplace, accountant, d_in=2)
    >>> len(noisy([70, 30])), round(accountant.total(), 3), len(accountant)
    (2, 0.2, 1)
    >>> context = dp.Context.compositor(
    ...     data=[1, 0, 1], privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=0.2), split_evenly_over=1,
    ...     domain=dp.vector_domain(dp.atom_domain(bounds=(0, 1))),
    ... )
    >>> context = tdp.adapters.opendp(context, accountant)
    >>> isinstance(context.query().sum().laplace().release(), int), accountant.spent.round(6)    # a row goes and another comes
    (True, array([0.2, 0.4]))
    """
    with needing("release"):
        import opendp.prelude as dp
    if isinstance(guarded, dp.Measurement):
        return GuardedMeasurement(guarded, accountant, _distance(guarded.input_metric, 1, d_in))
    if isinstance(guarded, dp.Context):
        return _guarded_context(guarded, accountant, d_in)
    raise InputError(f"expected a measurement or a Context of OpenDP, got {type(guarded).__name__}")


@dataclass(frozen=True, slots=True)
class GuardedMeasurement:
    """An OpenDP measurement, every call of which is a step that is charged to the accountant first.

    Parameters
    ----------
    measurement : opendp.mod.Measurement
    accountant : TemporalAccountant
    d_in
        Distance of data with one replaced state.
    """

    measurement: Any
    accountant: TemporalAccountant
    d_in: Any

    @property
    def spends(self) -> Promise:
        """Privacy loss of every call: an epsilon in nats, or a guarantee at a delta."""
        return _promise(self.measurement.output_measure, self.measurement.map(self.d_in))

    def __call__(self, data: Any) -> Any:
        """The measurement's answer, paid for; errors as for `opendp`."""
        charge(self.accountant, self.spends)
        return self.measurement(data)


def _distance(metric: Any, unit: Any, d_in: Any) -> Any:
    """Return the distance, in a metric, of data with one replaced state."""
    if isinstance(d_in, int | float) and not d_in > 0:
        raise InputError(f"expected d_in > 0, the distance of data with one person's state replaced, got {d_in!r}")
    if d_in is not None:
        return d_in
    # Of data with one row replaced: removed, and another one added, or changed
    of_rows = {"SymmetricDistance": 2, "InsertDeleteDistance": 2, "ChangeOneDistance": 1, "HammingDistance": 1}
    rows = of_rows.get(str(metric).partition("(")[0])
    if rows is None:
        raise InputError(
            f"expected d_in, how far data with one person's state replaced are apart under {metric}: 2 for a histogram under "
            "the L1 distance, the width of the bounds for a number under the absolute distance"
        )
    return rows * unit


def _promise(measure: Any, loss: Any) -> Promise:
    """Convert a privacy loss in a measure of OpenDP to a promise; `InputError` for an unsupported measure."""
    with needing("release"):
        import opendp.prelude as dp
    if measure == dp.max_divergence():
        return promise(loss)
    if measure == dp.zero_concentrated_divergence():
        return promise(rho=loss)
    if measure == dp.approximate(dp.max_divergence()):
        return promise(loss[0], delta=loss[1])
    raise InputError(
        f"expected a measurement by epsilon, by epsilon and delta, or by rho, got one by {measure}; OpenDP's combinators "
        "convert others (make_zCDP_to_approxDP, make_fix_delta)"
    )


def _guarded_context(context: Any, accountant: TemporalAccountant, d_in: Any) -> Any:
    """The Context, paid for; its answers cost one replaced state no more than that."""
    unit, measure = context.d_in, context.accountant.output_measure
    away = _distance(context.accountant.input_metric, unit, d_in)
    if getattr(context, "d_mids_consumed", None):
        raise BudgetError(
            "this Context has answered already, and its answers were not charged: guard it before its first query"
        )
    try:
        allowed = context.accountant.map(unit)
    except AttributeError:
        raise BudgetError(
            "expected a Context with a privacy_loss, got one without a bound: the step cannot be paid for"
        ) from None
    try:
        moves = 1 if away == unit else max(1, math.ceil(away / unit))
    except TypeError:  # bounds on groups
        raise InputError(
            f"expected d_in to be the Context's own unit, {unit!r}, got {away!r}; they cannot be compared"
        ) from None
    # A multiple of the budget; of rho, its square. Every query is held against it at distance d_in
    multiple = (moves**2 if "ZeroConcentrated" in str(measure) else moves) * ROUNDED_UP
    most = tuple(part * multiple for part in allowed) if isinstance(allowed, tuple) else allowed * multiple
    charge(accountant, _promise(measure, most))
    made: Any = object.__new__(_context_class())
    made.__dict__.update(context.__dict__)  # the same queryable and the same list of what is left
    made.replaced, made.most, made.lost = away, most, []
    return made


def _parts(loss: Any) -> tuple[float, ...]:
    """Privacy loss in a measure of OpenDP as a tuple: epsilon, epsilon and delta, or rho."""
    return loss if isinstance(loss, tuple) else (loss,)


@cache
def _context_class() -> type:
    """A Context that looks at the privacy map of every query; made when OpenDP is there."""
    with needing("release"):
        import opendp.prelude as dp

    class GuardedContext(dp.Context):
        """A Context whose step is paid for."""

        replaced: Any  # how far apart data with one replaced state are
        most: Any  # what was charged
        lost: list[tuple[float, ...]]  # what every query lost of it

        def __call__(self, query: Any) -> Any:
            """The answer, if the query costs one replaced state no more than is left of what was paid."""
            try:
                found = query.map(self.replaced)
            except dp.OpenDPException as error:
                raise InputError(
                    f"this query has no privacy map for data {self.replaced} apart ({error.message}): make the Context with "
                    "that as its unit, unit_of(contributions=2) or unit_of(changes=1), and give it as d_in"
                ) from None
            for limit, *losses in zip(_parts(self.most), _parts(found), *self.lost, strict=True):
                if math.fsum(losses) > limit:
                    raise BudgetError(
                        f"this query loses {found} for one replaced state, more than what is left of the {self.most} that the "
                        f"step was charged for: OpenDP found its noise at distance {self.d_in}, which is not that "
                        "of a replaced state where the size of the data is known. Make the Context with "
                        "unit_of(contributions=2) or unit_of(changes=1), and give that as d_in"
                    )
            answer = super().__call__(query)
            self.lost.append(_parts(found))
            return answer

    return GuardedContext
