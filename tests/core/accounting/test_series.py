"""Backward, forward and temporal leakage: reference numbers, the definition itself, and what must always hold."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from making import laplace_counts, random_correlation, smoothed_correlation, strongest_correlation
from matrices import budgets, matrices
from methods import method_of
from oracles import defined_leakage, exact_loss
from temporaldp import (
    Adversary,
    BudgetError,
    InputError,
    PaperBound,
    TransitionMatrix,
    leakage_supremum,
    temporal_leakage,
)
from temporaldp.base.errors import StateError


@pytest.fixture(params=["exact", "paper"])
def bound(request):
    """For what must hold whichever way leakage is bounded."""
    return request.param


def test_reference_series_of_other_implementations(reference):
    cases = {case["name"]: case for case in reference["cases"]}
    example = cases["bpl_example"]
    series = temporal_leakage(Adversary(TransitionMatrix(example["backward"])), [0.1] * 10, accounting=PaperBound())
    assert series.backward == pytest.approx(example["bpl"], rel=1e-12)
    figure = cases["allocation_figure"]
    adversary = Adversary(TransitionMatrix(figure["backward"]), TransitionMatrix(figure["forward"]))
    series = temporal_leakage(adversary, [0.1] * 10, accounting=PaperBound())
    assert series.temporal == pytest.approx(figure["tpl_epsilon_0.1_horizon_10"], rel=1e-12)
    smooth = cases["smoothed_strongest"]
    matrix = smoothed_correlation(strongest_correlation(smooth["n"]), s=smooth["s"])
    for epsilon, expected in smooth["bpl_at_10"].items():
        series = temporal_leakage(Adversary(matrix), [float(epsilon)] * 10, accounting=PaperBound())
        assert series.backward[-1] == pytest.approx(expected, rel=1e-12)


def test_paper_recursion_is_never_below_and_accurate_to_some_ulps_per_step():
    """Against the recursion in 60 digits: each step rounds up, by 32 ulps and a few, and the next one passes on less."""
    rng = np.random.default_rng(21)
    for n in (2, 3, 5):
        past, future = (rng.dirichlet(np.full(n, 0.6), n) for _ in range(2))
        epsilons = rng.choice([1e-6, 0.1, 2.0, 20.0], 25) * rng.uniform(0.5, 1.0, 25)
        series = temporal_leakage(
            Adversary(TransitionMatrix(past), TransitionMatrix(future)), epsilons, accounting=PaperBound()
        )
        backward = recursion(past, epsilons)
        forward = recursion(future, epsilons[::-1])[::-1]
        both = [b + f - Decimal(float(e)) for b, f, e in zip(backward, forward, epsilons, strict=True)]
        for found, true in ((series.backward, backward), (series.forward, forward), (series.temporal, both)):
            for t, (value, exact) in enumerate(zip(found, true, strict=True)):
                assert 0 <= Decimal(float(value)) / exact - 1 <= 40 * 25 * Decimal(2) ** -52, (n, t)


def recursion(rows, epsilons):
    """``a_t = L(a_{t-1}) + e_t`` in 60 digits: every subset of columns of every pair of rows."""
    n = len(rows)
    rows = [[Fraction(float(p)) for p in row] for row in rows]
    rows = [[p / sum(row) for p in row] for row in rows]
    points = {
        (sum(q[k] for k in chosen), sum(d[k] for k in chosen))
        for q, d in itertools.permutations(rows, 2)
        for size in range(n)
        for chosen in itertools.combinations(range(n), size)
    }
    with localcontext() as context:
        context.prec = 60
        points = [tuple(Decimal(x.numerator) / Decimal(x.denominator) for x in point) for point in points]
        found = [Decimal(float(epsilons[0]))]
        for epsilon in epsilons[1:]:
            k = found[-1].exp() - 1
            found.append(max((1 + q * k) / (1 + d * k) for q, d in points).ln() + Decimal(float(epsilon)))
        return found


@st.composite
def short_releases(draw, sizes=(2, 3, 4)):
    """A chain of matrices with a horizon small enough to enumerate every output."""
    n = draw(st.sampled_from(sizes))
    horizon = draw(st.integers(1, {2: 5, 3: 5, 4: 4}[n]))
    kinds = ("integers", "zeros", "near")
    backward = [draw(matrices(n, n, kinds=kinds)) for _ in range(horizon - 1)]
    forward = [draw(matrices(n, n, kinds=kinds)) for _ in range(horizon - 1)]
    epsilons = [draw(st.floats(0.05, 2.0)) for _ in range(horizon)]
    return backward, forward, epsilons


@given(short_releases(), st.sampled_from(["both", "backward", "forward"]))
def test_reported_leakage_covers_the_definition(case, known):
    backward, forward, epsilons = case
    if len(epsilons) == 1:
        assert temporal_leakage(Adversary(), epsilons, accounting=PaperBound()).temporal.tolist() == epsilons
        return
    adversary = Adversary(backward if known != "forward" else None, forward if known != "backward" else None)
    series = temporal_leakage(adversary, epsilons, accounting=PaperBound())
    past = [m.dense() for m in backward] if known != "forward" else None
    future = [m.dense() for m in forward] if known != "backward" else None
    for reported, defined in zip(
        (series.backward, series.forward, series.temporal), defined_leakage(past, future, epsilons), strict=True
    ):
        assert (defined <= reported * (1 + 1e-12)).all()


@pytest.mark.parametrize("stay", [0.55, 0.8, 0.97])
@pytest.mark.parametrize("epsilon", [0.1, 0.7])
def test_definition_equals_reported_leakage_for_symmetric_two_state_matrices(stay, epsilon):
    matrix = TransitionMatrix([[stay, 1 - stay], [1 - stay, stay]])
    series = temporal_leakage(Adversary(matrix, matrix), [epsilon] * 5, accounting=PaperBound())
    chain = [matrix.dense()] * 4
    bpl, fpl, tpl = defined_leakage(chain, chain, [epsilon] * 5)
    assert series.backward == pytest.approx(bpl, rel=1e-12)
    assert series.forward == pytest.approx(fpl, rel=1e-12)
    assert series.temporal == pytest.approx(tpl, rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0 / 3.0, 0.7])
def test_papers_bound_is_not_even_an_ulp_below_the_definition(epsilon):
    """Symmetric chains of two states attain it: the formula of their loss in 60 digits."""
    rng = np.random.default_rng(31)
    for moves in [0.25, 0.1, *rng.uniform(0.001, 0.499, 10)]:
        matrix = TransitionMatrix([[1.0 - moves, moves], [moves, 1.0 - moves]])
        series = temporal_leakage(Adversary(matrix, matrix), [epsilon] * 8, accounting=PaperBound())
        with localcontext() as context:
            context.prec = 60
            move, stay = (Decimal(float(one)) for one in matrix.dense()[0, ::-1])
            (move, stay), own = ((one / (move + stay)) for one in (move, stay)), Decimal(epsilon)
            level, levels = own, [own]
            for _ in range(7):
                odds = level.exp()
                level = ((stay * odds + move) / (move * odds + stay)).ln() + own
                levels.append(level)
            both = [past + future - own for past, future in zip(levels, levels[::-1], strict=True)]
        for found, true in ((series.backward, levels), (series.forward[::-1], levels), (series.temporal, both)):
            for value, exact in zip(found, true, strict=True):
                assert 0 <= Decimal(float(value)) / exact - 1 <= Decimal("1e-12")


def test_reported_leakage_covers_outputs_of_five_steps_of_four_states():
    matrix = random_correlation(4, rng=4)
    series = temporal_leakage(Adversary(matrix, matrix), [0.4] * 5, accounting=PaperBound())
    chain = [matrix.dense()] * 4
    for reported, defined in zip(
        (series.backward, series.forward, series.temporal), defined_leakage(chain, chain, [0.4] * 5), strict=True
    ):
        assert (defined <= reported * (1 + 1e-12)).all()
        assert (defined >= 0.7 * reported).all()  # a bound, and not an idle one


@given(matrices(), matrices(2, 2), st.lists(budgets, min_size=1, max_size=12))
def test_leakage_lies_between_the_budget_and_the_sum(one, _, epsilons):
    series = temporal_leakage(Adversary(one, one), epsilons, accounting=PaperBound())
    total = math.fsum(epsilons) * (1 + 1e-12)
    for values in (series.backward, series.forward, series.temporal):
        assert (values >= series.epsilons * (1 - 1e-15)).all()
        assert (values <= total).all()
    assert series.temporal == pytest.approx(series.backward + series.forward - series.epsilons, rel=1e-12)
    assert series.backward[0] == epsilons[0]
    assert series.forward[-1] == epsilons[-1]


@given(matrices(), st.lists(budgets, min_size=1, max_size=8), st.data())
def test_leakage_is_monotone_in_every_budget(matrix, epsilons, data):
    where = data.draw(st.integers(0, len(epsilons) - 1))
    more = list(epsilons)
    more[where] *= 1.5
    less, greater = (temporal_leakage(Adversary(matrix, matrix), e, accounting=PaperBound()) for e in (epsilons, more))
    assert (greater.temporal >= less.temporal * (1 - 1e-13)).all()


@given(matrices(), st.lists(budgets, min_size=1, max_size=8))
def test_time_reversal_swaps_backward_and_forward(matrix, epsilons):
    one = temporal_leakage(Adversary(matrix, None), epsilons, accounting=PaperBound())
    other = temporal_leakage(Adversary(None, matrix), epsilons[::-1], accounting=PaperBound())
    assert one.backward.tolist() == other.forward[::-1].tolist()
    assert one.forward.tolist() == list(epsilons)


def test_no_correlation_leaks_the_budget_and_the_strongest_leaks_the_sum(bound):
    epsilons = [0.5, 0.1, 0.7]
    assert temporal_leakage(Adversary(), epsilons, accounting=method_of(bound)).temporal.tolist() == epsilons
    strongest = strongest_correlation(3, rng=1)
    series = temporal_leakage(Adversary(strongest, strongest), epsilons, accounting=method_of(bound))
    assert series.backward == pytest.approx([0.5, 0.6, 1.3])
    assert series.temporal == pytest.approx([1.3] * 3)


def test_unpublished_step_leaks_through_its_neighbours(bound):
    matrix = TransitionMatrix([[0.9, 0.1], [0.1, 0.9]])
    series = temporal_leakage(Adversary(matrix, matrix), [1.0, 0.0, 1.0], accounting=method_of(bound))
    loss = matrix.leakage_profile().loss(1.0)
    assert series.temporal[1] == pytest.approx(2 * loss)


def test_windows_by_theorem_2(bound):
    matrix = TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
    epsilons = [0.1, 0.2, 0.3, 0.4, 0.5]
    series = temporal_leakage(Adversary(matrix, matrix), epsilons, accounting=method_of(bound))
    assert series.window(2, 3) == series.temporal[2]
    assert series.window(1, 3) == pytest.approx(series.backward[1] + series.forward[2])
    assert series.window(1, 4) == pytest.approx(series.backward[1] + 0.3 + series.forward[3])
    assert series.window(0, 5) == pytest.approx(series.backward[0] + 0.2 + 0.3 + 0.4 + series.forward[4])
    assert series.window(None, None) == pytest.approx(series.user_level) == pytest.approx(1.5)
    assert series.window(-2, None) == series.window(3, 5)
    for start, stop in ((3, 3), (4, 2), (7, 9)):
        with pytest.raises(InputError, match="window of at least one"):
            series.window(start, stop)


def test_the_worst_of_several_users_is_named(bound):
    mild = Adversary(TransitionMatrix([[0.6, 0.4], [0.4, 0.6]]), name="ann")
    strong = Adversary(TransitionMatrix([[0.95, 0.05], [0.05, 0.95]]), name="bob")
    series = temporal_leakage([mild, strong], [0.2] * 6, accounting=method_of(bound))
    alone = temporal_leakage(strong, [0.2] * 6, accounting=method_of(bound))
    assert series.worst_user == "bob"
    assert series.worst == pytest.approx(alone.worst, rel=1e-12)
    np.testing.assert_allclose(series.temporal, alone.temporal, rtol=1e-12)
    assert series.window(1, 4) == pytest.approx(alone.window(1, 4), rel=1e-12)
    assert [member.name for member in series.members] == ["ann", "bob"]
    assert temporal_leakage({"x": mild, "y": strong}, [0.2] * 6, accounting=method_of(bound)).worst_user == "y"
    assert temporal_leakage((a for a in (mild, strong)), [0.2] * 6, accounting=method_of(bound)).worst_user == "bob"


def test_users_whose_worst_directions_differ(bound):
    matrix = TransitionMatrix([[0.9, 0.1], [0.1, 0.9]])
    series = temporal_leakage(
        [Adversary(matrix, None), Adversary(None, matrix)], [0.3] * 5, accounting=method_of(bound)
    )
    # Nobody is exposed to both: the largest TPL is that of one user, not the sum of two users' worst directions.
    assert series.worst < (series.backward + series.forward - series.epsilons).max() - 0.1
    assert {member.name for member in series.members} == {"user 0", "user 1"}


def test_time_varying_matrices(bound):
    first, second = TransitionMatrix([[1.0, 0.0], [0.0, 1.0]]), TransitionMatrix([[0.5, 0.5], [0.5, 0.5]])
    series = temporal_leakage(Adversary(backward=[first, second]), [0.1, 0.2, 0.4], accounting=method_of(bound))
    assert series.backward == pytest.approx([0.1, 0.3, 0.4])
    series = temporal_leakage(Adversary(forward=[first, second]), [0.1, 0.2, 0.4], accounting=method_of(bound))
    assert series.forward == pytest.approx([0.3, 0.2, 0.4])
    with pytest.raises(BudgetError, match="matrices for 3 steps, but there are 4"):
        temporal_leakage(Adversary(forward=[first, second]), [0.1] * 4, accounting=method_of(bound))


@pytest.mark.long
def test_a_long_series_reaches_its_supremum_and_stays_below(bound):
    matrix = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
    adversary = Adversary(matrix, matrix)
    series = temporal_leakage(adversary, np.full(200_000, 0.3), accounting=method_of(bound))
    limit = leakage_supremum(adversary, 0.3, accounting=method_of(bound))
    # Where the exact value is the paper's, that is what is proved, with four roundings a step of its recursion.
    close = 1e-12 if bound == "paper" else 1e-9
    assert series.backward[-1] == pytest.approx(limit.backward, rel=close)
    assert series.worst == pytest.approx(limit.temporal, rel=close)
    reached = series.attained or series  # what is proved of both rounds to the safe side, each by itself
    assert reached.backward.max() <= limit.backward
    assert reached.temporal.max() <= limit.temporal


def test_the_supremum_over_users_and_directions(bound):
    disjoint, mild = strongest_correlation(2), TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    limit = leakage_supremum(
        [Adversary(mild, name="ann"), Adversary(disjoint, mild, name="bob")], 0.1, accounting=method_of(bound)
    )
    assert limit.backward == limit.temporal == math.inf
    assert limit.worst_user == "bob"
    assert leakage_supremum(Adversary(), 0.1, accounting=method_of(bound)).temporal == 0.1
    with pytest.raises(InputError, match="needs constant matrices"):
        leakage_supremum(Adversary([mild, mild]), 0.1, accounting=method_of(bound))


def test_arrays_of_a_series_are_read_only(bound):
    series = temporal_leakage(Adversary(), [0.1, 0.2], accounting=method_of(bound))
    with pytest.raises(ValueError, match="read-only"):
        series.temporal[0] = 0.0


@pytest.mark.parametrize(
    ("epsilons", "message"),
    [
        ([], "at least one"),
        (0.1, r"write \[0.1\] \* 10 or horizon=10 .* leakage_supremum"),
        ([[0.1]], "one per step"),
        ([0.1, -0.1], "got -0.1 at step 1"),
        ([0.1, math.nan], "got nan at step 1"),
        ([math.inf], "got inf at step 0"),
        (["a lot"], "expected numbers"),
        ("0.1", "expected numbers or mechanisms"),
        (np.ma.masked_array([0.1, 0.0, 0.1], mask=[0, 1, 0]), "expected numbers or mechanisms"),
        ([np.False_, np.False_], "expected numbers"),
        ([0.1, False], "expected numbers"),
        ([b"0", b"0.1"], "expected numbers"),
        ([laplace_counts([2.0, 4.0]), False], "got False at step 1"),
    ],
)
def test_invalid_budgets_are_refused(epsilons, message):
    with pytest.raises(BudgetError, match=message):
        temporal_leakage(Adversary(), epsilons)


def test_invalid_adversaries_are_refused():
    with pytest.raises(InputError, match="expected an Adversary"):
        temporal_leakage([TransitionMatrix([[0.5, 0.5], [0.5, 0.5]])], [0.1])
    with pytest.raises(InputError, match="two adversaries are named 'x'"):
        temporal_leakage([Adversary(name="x"), Adversary(name="x")], [0.1])
    with pytest.raises(InputError, match="at least one Adversary"):
        temporal_leakage([], [0.1])
    one, other = (Adversary(TransitionMatrix(np.eye(3), list(names))) for names in ("abc", "cba"))
    with pytest.raises(StateError, match="are in another order"):  # a box has one row per state
        temporal_leakage([one, other], [laplace_counts([1.0, math.inf, math.inf])])


def test_many_users_are_accounted_for_as_each_alone(rng):
    matrices = [TransitionMatrix(rng.dirichlet(np.full(4, 0.5), 4)) for _ in range(6)]
    users = [Adversary(*pair) for pair in zip(matrices[:4], matrices[2:], strict=True)] + [Adversary()]
    spent = rng.uniform(0.0, 1.0, 6)
    together = temporal_leakage(users, spent)
    assert together.accounting.name == "exact"
    assert {member.accounting.name for member in together.members} == {"exact"}
    alone = [temporal_leakage(user, spent) for user in users]
    for field in ("backward", "forward", "temporal"):
        each = [getattr(one, field) for one in alone]
        np.testing.assert_allclose([getattr(member, field) for member in together.members], each, rtol=1e-12)
        np.testing.assert_allclose(getattr(together, field), np.max(each, axis=0), rtol=1e-12)
        attained = [getattr(one.attained, field) for one in alone]
        np.testing.assert_allclose(getattr(together.attained, field), np.max(attained, axis=0), rtol=1e-12)
    assert 0.0 < together.gap < 1e-12
    assert together.worst_pair() == together.worst_member.worst_pair(together.worst_time)
    assert together.witness().state == together.worst_pair()[0]
    assert together.window(1, 4) == pytest.approx(max(one.window(1, 4) for one in alone), rel=1e-12)


@pytest.mark.long
@settings(max_examples=20)
@given(matrices(max_n=4), st.lists(budgets, min_size=1, max_size=6), st.data())
def test_exact_leakage_lies_between_the_budget_and_the_sum_and_grows_with_both(matrix, epsilons, data):
    adversary = Adversary(matrix, matrix)
    less, paper = (temporal_leakage(adversary, epsilons, accounting=method_of(one)) for one in ("exact", "paper"))
    where = data.draw(st.integers(0, len(epsilons) - 1))
    more = temporal_leakage(adversary, [1.5 * e if t == where else e for t, e in enumerate(epsilons)])
    total = math.fsum(epsilons) * (1 + 1e-12)
    for field in ("backward", "forward", "temporal"):
        values = getattr(less, field)
        assert (values >= less.epsilons * (1 - 1e-15)).all()
        assert (values <= np.minimum(total, getattr(paper, field) * (1 + 1e-12))).all()
        assert (getattr(more, field) >= getattr(less.attained, field)).all()
    apart = (
        less.backward + less.forward - less.epsilons
    )  # the pair that past and future tell apart need not be the same
    assert (less.temporal <= apart * (1 + 1e-12)).all()


def plain_recursion(correlation, spent):
    """BPL by the recursion's own words, each loss in rational arithmetic."""
    level, series = spent[0], [spent[0]]
    for t in range(1, len(spent)):
        matrix = correlation.at(t - 1)
        level = (exact_loss(matrix.dense(), level) if matrix is not None else 0.0) + spent[t]
        series.append(level)
    return np.array(series)


@pytest.mark.long
@settings(max_examples=25)
@given(
    st.lists(st.one_of(st.none(), matrices(3, 3), st.tuples(*[matrices(3, 3)] * 3)), min_size=1, max_size=4),
    st.lists(st.one_of(st.just(0.0), st.sampled_from([1e-9, 700.0]), budgets), min_size=4, max_size=4),
)
def test_many_users_at_once_are_each_user_alone(correlations, spent):
    users = [Adversary(backward=c, forward=correlations[0] if not isinstance(c, tuple) else None) for c in correlations]
    together = temporal_leakage(users, spent, accounting=PaperBound())
    members = together.members or (together,)
    for user, member in zip(users, members, strict=True):
        assert member.backward == pytest.approx(plain_recursion(user.backward, spent), rel=1e-12, abs=1e-300)
        reverse = user.forward.in_reverse()
        assert member.forward[::-1] == pytest.approx(plain_recursion(reverse, spent[::-1]), rel=1e-12, abs=1e-300)
    for field in ("backward", "forward", "temporal"):
        assert getattr(together, field).tolist() == np.max([getattr(m, field) for m in members], axis=0).tolist()


def test_long_series_of_many_users(rng):
    stack = rng.random((300, 5, 5))
    stack /= stack.sum(axis=2, keepdims=True)
    users = [Adversary(TransitionMatrix(matrix)) for matrix in stack]
    spent = rng.uniform(0.01, 0.3, 400)
    series = temporal_leakage(users, spent, accounting=PaperBound())
    for k in (0, 123, 299):
        alone = temporal_leakage(Adversary(TransitionMatrix(stack[k])), spent, accounting=PaperBound())
        assert series.members[k].backward == pytest.approx(alone.backward, rel=1e-14)
        assert series.members[k].epsilons is series.epsilons  # shared, and read-only
    with pytest.raises(ValueError, match="read-only"):
        series.epsilons[0] = 1.0


def test_series_of_a_hundred_thousand_steps_converges_to_its_supremum(bound):
    matrix = random_correlation(12, rng=0)
    series = temporal_leakage(Adversary(matrix), np.full(100_000, 0.4), accounting=method_of(bound))
    assert series.backward[-1] == pytest.approx(
        leakage_supremum(Adversary(matrix), 0.4, accounting=method_of(bound)).backward, rel=2e-10
    )


SIGNALLED = """
import signal, time
import numpy as np
import temporaldp as tdp

rng = np.random.default_rng(0)
matrix = tdp.TransitionMatrix(rng.dirichlet(np.full(60, 0.2), 60) * 0.9 + 0.1 / 60)
tdp.temporal_leakage(tdp.Adversary(matrix), [0.1, 0.2])
handled = [time.monotonic()]
signal.signal(signal.SIGALRM, lambda *_: handled.append(time.monotonic()))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
tdp.temporal_leakage(tdp.Adversary(matrix), np.linspace(0.01, 0.3, 60))
signal.setitimer(signal.ITIMER_REAL, 0.0)
handled.append(time.monotonic())
print(max(np.diff(handled)) / (handled[-1] - handled[0]))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="there are no interval timers")
def test_signals_are_handled_while_a_long_series_is_computed():
    found = subprocess.run([sys.executable, "-c", SIGNALLED], capture_output=True, text=True, check=True)
    assert float(found.stdout) < 0.5
