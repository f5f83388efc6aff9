"""Releases: the noise is what it must be, the budget is what OpenDP's map says, and nothing is spent by mistake."""

from __future__ import annotations

import csv
import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from data_sets import sleep_sample
from making import from_sequences
from temporaldp import (
    Adversary,
    BudgetError,
    DiscreteLaplaceHistogram,
    InputError,
    ReleasedHistograms,
    Trajectories,
    TransitionMatrix,
    load_released,
    plan_budget,
    release_histograms,
    save_released,
    smooth,
)
from temporaldp.base.errors import StateError
from temporaldp.core.planning import Guarantee
from temporaldp.core.planning.histogram_noise import mean_absolute_noise, noise_quantile
from temporaldp.data.counts import HISTOGRAM_SENSITIVITY, NoisyHistogram, consistent_counts
from temporaldp.publish.release import release_snapshots

DRAWS = 40_000


def discrete_laplace(scale: float, k: np.ndarray) -> np.ndarray:
    """Probabilities of k under Pr(Z = k) proportional to exp(-|k| / scale)."""
    r = math.exp(-1 / scale)
    return (1 - r) / (1 + r) * r ** np.abs(k)


def chi_square(noise: np.ndarray, scale: float) -> float:
    """Standardised chi-square distance of the noise to the distribution of that scale, over bins expecting 200 or more."""
    k = np.arange(-int(12 * scale), int(12 * scale) + 1)
    expected = discrete_laplace(scale, k) * len(noise)
    inside = expected >= 200
    observed = np.array([(noise == value).sum() for value in k[inside]])
    cells = (
        np.append(observed, len(noise) - observed.sum()),
        np.append(expected[inside], len(noise) - expected[inside].sum()),
    )
    statistic = float(((cells[0] - cells[1]) ** 2 / cells[1]).sum())
    freedom = len(cells[0]) - 1
    return (statistic - freedom) / math.sqrt(2 * freedom)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_noise_is_discrete_laplace_of_sensitivity_2(epsilon):
    # OpenDP's sampler takes no seed. The threshold leaves a false alarm less likely than 1e-6, and the same statistic must
    # reject scales that are wrong by 1.5 either way by a wide margin: so the test can fail, and does not by chance.
    mechanism = DiscreteLaplaceHistogram(n_states=DRAWS)
    noise = mechanism(np.full(DRAWS, 1000), epsilon) - 1000
    right = HISTOGRAM_SENSITIVITY / epsilon
    assert HISTOGRAM_SENSITIVITY == 2
    assert chi_square(noise, right) < 8
    assert chi_square(noise, right * 1.5) > 50
    assert chi_square(noise, right / 1.5) > 50


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1 / 3, 1.0, 7.3, 40.0])
def test_spent_budget_agrees_with_opendp_and_never_exceeds_the_request(epsilon):
    mechanism = DiscreteLaplaceHistogram(n_states=3)
    spent = mechanism.epsilon_spent(epsilon)
    assert Fraction(HISTOGRAM_SENSITIVITY) / Fraction(mechanism.scale(epsilon)) <= Fraction(spent) <= Fraction(epsilon)
    assert spent == pytest.approx(epsilon, rel=1e-12)
    assert mechanism.scale(epsilon) == pytest.approx(2 / epsilon, rel=1e-12)


def test_noise_summaries_agree_with_the_distribution():
    for epsilon in (0.2, 1.0, 5.0):
        scale = 2 / epsilon
        k = np.arange(-4000, 4001)
        p = discrete_laplace(scale, k)
        assert mean_absolute_noise([2.0 / epsilon]) == pytest.approx(float((np.abs(k) * p).sum()), rel=1e-10)
        for probability in (0.5, 0.95, 0.999):
            width = noise_quantile(2.0 / epsilon, probability)
            assert p[np.abs(k) <= width].sum() >= probability
            assert width == 0 or p[np.abs(k) <= width - 1].sum() < probability


@pytest.mark.parametrize(
    ("snapshot", "message"),
    [
        ([1, 2], r"counts of shape \(3,\)"),
        ([1.5, 2.0, 3.0], "whole counts"),
        ([1, -1, 0], "whole counts from 0"),
        ([1, 2**60, 0], "whole counts from 0"),
    ],
)
def test_invalid_snapshots_are_refused(snapshot, message):
    with pytest.raises(InputError, match=message):
        DiscreteLaplaceHistogram(n_states=3)(snapshot, 1.0)


def test_invalid_budgets_are_refused():
    with pytest.raises(BudgetError, match="finite number >= 1e-100"):
        DiscreteLaplaceHistogram(n_states=3)([1, 2, 3], 0.0)


def test_budget_in_place_of_a_plan_is_refused_with_advice():
    with pytest.raises(InputError, match=r"expected a plan or a continual release, got 0\.1: `plan_budget`"):
        release_histograms(sleep_sample(), 0.1)


def test_any_mechanism_is_called_once_a_step_with_its_budget():
    matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    plan = plan_budget(Adversary(matrix, matrix), alpha=1.0, horizon=4)
    calls = []

    def mechanism(snapshot, epsilon):
        calls.append((snapshot, epsilon))
        return snapshot.upper()

    result = release_snapshots(mechanism, (letter for letter in "abc"), plan)
    assert result.outputs == ("A", "B", "C")
    assert calls == list(zip("abc", plan.epsilons, strict=False))
    assert result.epsilons.tolist() == plan.epsilons[:3].tolist()


def test_nothing_is_drawn_if_the_plan_is_too_short_or_the_data_empty():
    plan = plan_budget(Adversary(), alpha=1.0, horizon=2)

    def never(snapshot, epsilon):
        raise AssertionError("noise was drawn")

    with pytest.raises(BudgetError, match="shorter than the data"):
        release_snapshots(never, [1, 2, 3], plan)
    with pytest.raises(BudgetError, match="at least one snapshot"):
        release_snapshots(never, [], plan)


def test_a_mechanism_that_overspends_is_stopped_before_it_draws():
    class Greedy:
        def epsilon_spent(self, epsilon):
            return epsilon * 1.01

        def __call__(self, snapshot, epsilon):
            raise AssertionError("noise was drawn")

    with pytest.raises(BudgetError, match="reports a loss of"):
        release_snapshots(Greedy(), [1], plan_budget(Adversary(), alpha=1.0))


def test_released_histograms_carry_the_budget_computed_by_opendp():
    sample = sleep_sample()
    plan = plan_budget(Adversary(), alpha=1 / 3)
    released = release_histograms(sample, plan)
    assert released.counts.shape == (47, 5)
    assert (released.epsilons <= 1 / 3).all()
    assert released.epsilons == pytest.approx([0.333333] * 47, rel=1e-12)  # six digits
    noise = released.counts - sample.histogram()
    assert np.abs(noise).mean() == pytest.approx(mean_absolute_noise([6.0]), rel=0.5)
    assert noise.any(axis=1).all()


def test_states_of_the_plan_must_be_those_of_the_data():
    matrix = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]], ["a", "c"])
    plan = plan_budget(Adversary(matrix), alpha=1.0)
    with pytest.raises(StateError, match="lacks 'c' and has 'b'"):
        release_histograms(from_sequences([["a", "b"]]), plan)


@given(st.lists(st.integers(-6, 9), min_size=1, max_size=4), st.integers(0, 8))
def test_consistent_counts_are_the_nearest_integers_with_that_total(noisy, total):
    found = consistent_counts(noisy, total=total)
    assert found.sum() == total
    assert (found >= 0).all()
    candidates = (c for c in itertools.product(range(total + 1), repeat=len(noisy)) if sum(c) == total)
    best = min(sum((a - b) ** 2 for a, b in zip(noisy, c, strict=True)) for c in candidates)
    assert int(((np.array(noisy) - found) ** 2).sum()) == best


def test_consistent_counts_refuse_invalid_counts():
    with pytest.raises(InputError, match="noisy counts that are integers"):
        consistent_counts([0.5, 1.0], total=1)
    with pytest.raises(InputError, match="total >= 0"):
        consistent_counts([1, 2], total=-1)


def test_estimates_without_a_correlation_keep_the_public_total():
    released = release_histograms(sleep_sample(), plan_budget(Adversary(), alpha=0.2))
    found = smooth(released, None, total=151)
    np.testing.assert_allclose(found.counts.sum(axis=1), 151)
    assert (found.counts >= 0).all()
    assert ((found.lower <= found.counts) & (found.counts <= found.upper)).all()
    truth = sleep_sample().histogram()
    assert np.mean((found.lower <= truth) & (truth <= found.upper)) > 0.9
    assert np.abs(found.counts - truth).mean() <= np.abs(released.counts - truth).mean()


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_released_files_round_trip(tmp_path, suffix):
    drawn = release_histograms(sleep_sample(), plan_budget(Adversary(), alpha=0.2))
    released = smooth(drawn, None, total=151).of(drawn)
    path = tmp_path / f"r{suffix}"
    save_released(released, path)
    again = load_released(path)
    assert again.counts.tolist() == released.counts.tolist()
    np.testing.assert_allclose(again.epsilons, released.epsilons, rtol=1e-6)
    np.testing.assert_allclose(again.estimates.lower, released.estimates.lower, atol=0.006)
    assert (again.states, again.times) == (released.states, released.times)
    if suffix == ".parquet":
        assert (again.alpha, again.guarantee, again.neighboring_relation) == (0.2, Guarantee(), "replace_one")
        assert b'"l1_sensitivity": 2' in parquet.read_schema(path).metadata[b"temporaldp"]


def test_files_without_a_release_are_refused(tmp_path):
    (tmp_path / "r.csv").write_text("time,state,noisy,scale,epsilon\n0,a,1,20,0.1\n0,b,1,20,0.1\n1,a,2,20,0.1\n")
    with pytest.raises(InputError, match="each of 2 times and 2 states, got 3 rows"):
        load_released(tmp_path / "r.csv")
    for row, message in {
        "0,a,2,20,0.1": "are in two rows",
        "0,b,2,20,0.2": "several values in column epsilon",
        "0,b,2,10,0.1": "several values in column scale",
        "0,b,1.5,20,0.1": "whole numbers in column noisy",
        "0,b,2,20,0.1,9": "as many cells in every row",
        "0,b,2,20,nan": "several values in column epsilon",
        "0,b,1e300,20,0.1": "temporaldp release",
        '0,"b\nc",2,20,0.1': "control characters",
        "0,b,2,20,0.1\n1\x1b,a,1,20,0.1\n1\x1b,b,1,20,0.1": "control characters",
    }.items():
        (tmp_path / "r.csv").write_text(f"time,state,noisy,scale,epsilon\n0,a,1,20,0.1\n{row}\n")
        with pytest.raises(InputError, match=message):
            load_released(tmp_path / "r.csv")
    (tmp_path / "r.csv").write_text("time,state,noisy,scale,epsilon\n0,a,1,20,-0.1\n0,b,1,20,-0.1\n")
    with pytest.raises(InputError, match="epsilons to be finite numbers >= 0"):
        load_released(tmp_path / "r.csv")
    parquet.write_table(pa.table({"x": [1]}), tmp_path / "r.parquet")
    with pytest.raises(InputError, match="temporaldp release"):
        load_released(tmp_path / "r.parquet")
    with pytest.raises(InputError, match=r"\.parquet or \.csv"):
        load_released(tmp_path / "r.json")


def test_a_released_file_that_was_sorted_keeps_its_counts(tmp_path):
    released = release_histograms(sleep_sample(), plan_budget(Adversary(), alpha=0.2))
    save_released(released, tmp_path / "r.csv")
    head, *rows = (tmp_path / "r.csv").read_text().splitlines()
    (tmp_path / "r.csv").write_text("\n".join([head, *sorted(rows, key=lambda row: row.split(",")[1])]))
    again = load_released(tmp_path / "r.csv")
    order = [again.states.index(state) for state in released.states]
    assert again.counts[:, order].tolist() == released.counts.tolist()


def test_consistent_counts_of_enormous_noise_do_not_overflow():
    found = consistent_counts(np.array([2**62, 2**62, -(2**62), 5, 2**62 - 1]), total=151)
    assert found.sum() == 151
    assert (found >= 0).all()


def test_noise_that_does_not_fit_64_bits_is_refused():
    with pytest.raises(BudgetError, match="would not fit 64-bit counts"):
        DiscreteLaplaceHistogram(n_states=2)([1, 2], 1e-18)


@pytest.mark.parametrize(
    "counts", [[37.0, 63.0], [37, -63], [37, 2**60], np.array([37.5, 63.0], dtype=object), [[37], [63, 1]]]
)
def test_a_message_about_counts_does_not_print_them(counts):
    for mechanism in (DiscreteLaplaceHistogram(2), NoisyHistogram(2, "gaussian")):
        with pytest.raises(InputError, match=r"expected (whole counts|counts of shape)") as refused:
            mechanism(counts, 1.0)
        assert "37" not in str(refused.value) and "63" not in str(refused.value)


def test_names_that_look_like_formulas_are_quoted_and_round_trip(tmp_path):
    states = ("=1+1", "+cmd", "-2+3", "@SUM(A1)", "'=x", "-5", "'quoted'", "plain")
    walks = Trajectories(np.array([[0, 1], [2, 3], [4, 5], [6, 7]]), states=states)
    released = release_histograms(walks, plan_budget(Adversary(), alpha=1.0, horizon=2))
    save_released(released, tmp_path / "out.csv")
    assert load_released(tmp_path / "out.csv").states == states
    with (tmp_path / "out.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert {"'=1+1", "'+cmd", "'-2+3", "'@SUM(A1)", "''=x", "-5", "'quoted'"} <= set(cells)
    assert not [cell for cell in cells if re.match("[=+@]|-[^0-9.]", cell)]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_time_and_state_columns_may_have_other_names(suffix, tmp_path):
    released = ReleasedHistograms([[3, 4], [5, 6]], [0.1, 0.2], [20.0, 10.0], ("a", "b"), ("1", "2"), 1.0)
    place = tmp_path / f"r{suffix}"
    save_released(released, place, time="at", state="zone")
    loaded = load_released(place)
    assert (loaded.counts.tolist(), loaded.states, loaded.times) == ([[3, 4], [5, 6]], ("a", "b"), ("1", "2"))
    if suffix == ".csv":
        assert place.read_text().startswith("at,zone,noisy,scale,epsilon\n")
    with pytest.raises(InputError, match="expected names for time and state other than noisy, scale, epsilon"):
        save_released(released, place, state="noisy")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("1,a,16,,0.3", "a scale in every row"),
        ("1,a,16,,0.0", "a scale in every row"),
        ("1,a,,12.0,0.3", "whole numbers"),
    ],
)
def test_a_file_that_contradicts_itself_about_what_was_drawn_is_refused(tmp_path, row, expected):
    place = tmp_path / "counts.csv"
    place.write_text(f"time,state,noisy,scale,epsilon\n0,a,9,12.0,0.3\n{row}\n")
    with pytest.raises(InputError, match=expected):
        load_released(place)
    place.write_text("time,state,noisy,scale,epsilon\n0,a,9,12.0,0.3\n1,a,,,0.0\n")
    assert load_released(place).drawn.tolist() == [True, False]
