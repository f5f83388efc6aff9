"""OpenDP's measurements and contexts under a temporal accountant."""

from __future__ import annotations

import math

import opendp.prelude as dp
import pytest

from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    InputError,
    LeakageBudgetError,
    TemporalAccountant,
    TransitionMatrix,
    adapters,
    temporal_leakage,
)

dp.enable_features("contrib", "honest-but-curious")
WALK = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
BITS = dp.vector_domain(dp.atom_domain(bounds=(0, 1)))
COUNTS = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")


def accountant(**settings):
    return TemporalAccountant(Adversary(WALK, WALK), **settings)


def bits_context(contributions=1, epsilon=1.0, queries=1, domain=BITS, loss=None):
    return dp.Context.compositor(
        data=[1, 0, 1], privacy_unit=dp.unit_of(contributions=contributions), split_evenly_over=queries, domain=domain,
        privacy_loss=loss or dp.loss_of(epsilon=epsilon),
    )  # fmt: skip


def sum_of_bits(context):
    return context.query().clamp((0, 1)).sum().laplace()


def test_every_call_of_a_measurement_is_a_step_charged_in_advance():
    temporal = accountant(alpha=0.6)
    noisy = adapters.opendp(dp.m.make_laplace(*COUNTS, scale=10.0), temporal, d_in=2)
    assert [len(noisy([5, 6])), len(noisy([5, 6]))] == [2, 2]
    assert temporal.spent == pytest.approx([0.2, 0.2], rel=1e-12)
    assert temporal.total() == pytest.approx(temporal_leakage(Adversary(WALK, WALK), [0.2, 0.2]).worst, rel=1e-9)
    with pytest.raises(InputError, match="expected d_in > 0"):
        adapters.opendp(dp.m.make_laplace(*COUNTS, scale=10.0), temporal, d_in=0)
    spy = []
    watched = type(noisy)(Watched(noisy.measurement, spy), temporal, 2)
    with pytest.raises(LeakageBudgetError):
        watched([5, 6])
    assert spy == [], "nothing is drawn that was not paid for"
    assert len(temporal) == 2


class Watched:
    """A measurement that remembers what it was asked."""

    def __init__(self, measurement, asked):
        self.measurement, self.asked = measurement, asked
        self.map, self.output_measure = measurement.map, measurement.output_measure

    def __call__(self, data):
        self.asked.append(data)
        return self.measurement(data)


@pytest.mark.parametrize(
    ("metric", "away"),
    [(dp.symmetric_distance(), 2), (dp.insert_delete_distance(), 2), (dp.change_one_distance(), 1), (dp.hamming_distance(), 1)],
    ids=str,
)  # fmt: skip
def test_distance_of_a_replaced_row_follows_the_metric(metric, away):
    rows = dp.vector_domain(dp.atom_domain(T="i32"))
    made = dp.m.make_user_measurement(
        rows, metric, dp.max_divergence(), len, lambda apart: 0.1 * apart, TO="ExtrinsicObject"
    )
    temporal = accountant()
    assert adapters.opendp(made, temporal)([1, 2, 3]) == 3
    adapters.opendp(made, temporal, d_in=7)([1, 2, 3])
    assert temporal.spent == pytest.approx([0.1 * away, 0.7])


def test_other_metrics_require_the_distance_of_a_replaced_state():
    laplace = dp.m.make_laplace(*COUNTS, scale=10.0)
    with pytest.raises(InputError, match="expected d_in"):
        adapters.opendp(laplace, accountant())
    with pytest.raises(InputError, match="a measurement or a Context"):
        adapters.opendp("laplace", accountant())


def test_context_is_one_step_charged_in_full():
    temporal = accountant(alpha=3.0)
    context = adapters.opendp(bits_context(epsilon=0.5, queries=2), temporal)
    assert temporal.spent == pytest.approx([1.0], rel=1e-12), "a row goes, and another comes"
    assert isinstance(sum_of_bits(context).release(), int)
    assert isinstance(sum_of_bits(context).release(), int)
    assert len(temporal) == 1
    with pytest.raises(ValueError, match="exhausted"):
        sum_of_bits(context)


def test_charge_of_a_context_covers_the_leakage_of_its_answers():
    """Sums of bits with the noise that OpenDP chose: every output, for every pair of data in which one bit is replaced."""
    temporal = accountant()
    context = adapters.opendp(bits_context(epsilon=0.5), temporal)
    ratio = math.exp(-1.0 / sum_of_bits(context).param())
    worst = max(
        abs(math.log(ratio ** abs(seen - one) / ratio ** abs(seen - two)))
        for one in range(4) for two in range(4) if abs(one - two) <= 1 for seen in range(-20, 24)
    )  # fmt: skip
    assert worst <= temporal.spent[0]


def test_query_of_a_domain_of_known_size_is_refused_under_add_or_remove():
    """OpenDP finds hardly any noise at distance 1, since no such data exist; twice the budget would be no bound."""
    sized = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=3)
    made = dp.Context.compositor(
        data=[0.3, 0.4, 0.5], privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1, domain=sized,
    )  # fmt: skip
    query = made.query().clamp((0.0, 1.0)).sum().laplace()
    assert query.resolve().map(2) > 1e6, "the trap is there"
    context = adapters.opendp(made, accountant())
    with pytest.raises(BudgetError, match="not that of a replaced state where the size of the data is known"):
        context.query().clamp((0.0, 1.0)).sum().laplace().release()
    assert len(context.d_mids) == 1, "nothing was answered"


def test_context_for_a_replaced_row_is_charged_its_stated_loss():
    temporal = accountant()
    sized = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=3)
    made = dp.Context.compositor(
        data=[0.3, 0.4, 0.5], privacy_unit=dp.unit_of(contributions=2), privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1, domain=sized,
    )  # fmt: skip
    context = adapters.opendp(made, temporal, d_in=2)
    assert isinstance(context.query().clamp((0.0, 1.0)).sum().laplace().release(), float)
    assert temporal.spent == pytest.approx([1.0], rel=1e-12)


def test_refused_step_leaves_the_context_unchanged():
    made, temporal = bits_context(epsilon=0.5), accountant(alpha=0.9)
    with pytest.raises(LeakageBudgetError):
        adapters.opendp(made, temporal)
    assert (len(temporal), len(made.d_mids)) == (0, 1)


def test_context_that_has_answered_queries_is_refused():
    made = bits_context(epsilon=0.1, queries=2)
    sum_of_bits(made).release()
    with pytest.raises(BudgetError, match="has answered already"):
        adapters.opendp(made, accountant())


def test_context_that_divides_its_budget_adaptively():
    temporal = accountant()
    made = dp.Context.compositor(
        data=[1, 0, 1], privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=0.5), domain=BITS
    )
    context = adapters.opendp(made, temporal)
    assert temporal.spent == pytest.approx([1.0], rel=1e-12)
    assert isinstance(context.query(epsilon=0.2).clamp((0, 1)).sum().laplace().release(), int)


def test_context_without_a_bound_is_refused():
    made = dp.Context.compositor(
        data=[1, 0, 1], privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=math.inf), domain=BITS
    )
    with pytest.raises(BudgetError, match="without a bound"):
        adapters.opendp(made, accountant())


def test_rho_and_delta_are_counted_under_approximate_dp():
    temporal = accountant(accounting=ApproximateDP(1e-6))
    gaussian = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"), scale=10.0)
    adapters.opendp(gaussian, temporal, d_in=2.0**0.5)([5, 6])
    adapters.opendp(dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-7), temporal, d_in=2.0**0.5)([5, 6])
    assert len(temporal) == 2
    context = adapters.opendp(bits_context(loss=dp.loss_of(rho=0.1)), temporal)
    assert isinstance(context.query().clamp((0, 1)).sum().gaussian().release(), int)
    assert temporal.spent[2] > temporal.spent[0], "0.4 against 0.01"
    with pytest.raises(BudgetError, match="counts epsilons with delta = 0"):
        adapters.opendp(gaussian, accountant(), d_in=1.0)([5, 6])
