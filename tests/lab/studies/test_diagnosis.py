"""Diagnoses of simulated traces whose answer is known, and the G-test by counting."""

import itertools
import math

import numpy as np
import pytest

from data_sets import sleep_sample
from making import from_sequences
from temporaldp import Trajectories
from temporaldp.lab.studies import diagnose
from temporaldp.lab.studies.refinements import refinements, weaknesses


def first_order(rng, n_people=300, n_times=20):
    P = np.array([[0.8, 0.2], [0.3, 0.7]])
    codes = np.zeros((n_people, n_times), dtype=np.int64)
    for t in range(1, n_times):
        codes[:, t] = rng.random(n_people) > P[codes[:, t - 1], 0]
    return codes


def test_g_test_of_order_two_agrees_with_direct_counting():
    data = Trajectories(first_order(np.random.default_rng(0), 20, 9), states=["a", "b"])
    triples = [tuple(row[t : t + 3]) for row in data.codes.tolist() for t in range(7)]
    log_ratio = 0.0
    for a, b, c in triples:
        fine = triples.count((a, b, c)) / sum(triples.count((a, b, k)) for k in (0, 1))
        coarse = sum(triples.count((k, b, c)) for k in (0, 1)) / sum(
            triples.count((k, b, m)) for k, m in itertools.product((0, 1), repeat=2)
        )
        log_ratio += 2.0 * math.log(fine / coarse)
    order = refinements(data)[0]
    assert order.statistic == pytest.approx(log_ratio)
    assert order.degrees == 2


def test_p_values_are_uniform_under_first_order_and_small_otherwise():
    rng = np.random.default_rng(1)
    values = [refinements(Trajectories(first_order(rng, 60), states=["a", "b"]))[0].p_value for _ in range(150)]
    assert 0.35 < np.mean(values) < 0.65
    codes = first_order(rng)
    for t in range(2, 20):
        keep = rng.random(300) < 0.5
        codes[:, t] = np.where(keep, codes[:, t - 2], codes[:, t])
    assert refinements(Trajectories(codes, states=["a", "b"]))[0].p_value < 1e-6


def test_differences_between_times_and_people_are_detected():
    rng = np.random.default_rng(2)
    codes = first_order(rng, 100, 40)
    plain = refinements(Trajectories(codes, states=["a", "b"]))
    assert not any(one.preferred for one in plain)
    late = codes.copy()
    late[:, 20:] = rng.integers(2, size=(100, 20))
    assert refinements(Trajectories(late, states=["a", "b"]))[1].preferred
    half = codes.copy()
    half[:50] = np.arange(40) % 2
    assert refinements(Trajectories(half, states=["a", "b"]))[2].preferred


def test_values_that_do_not_communicate_are_named():
    data = from_sequences([list("ababab")] * 5 + [list("cdcdcd")] * 5 + [list("ee")], states=list("abcdef"))
    weak = weaknesses(data)
    assert {frozenset(group) for group in weak.groups} == {
        frozenset(group) for group in (("a", "b"), ("c", "d"), ("e",), ("f",))
    }
    assert weak.never_left == ("e",)
    assert weak.unseen == ("f",)
    assert weak.thin == ("e",)
    told = " ".join(diagnose(data, epsilon=0.1).verdict)
    assert "4 groups" in told
    assert "never left" in told
    assert "traces determine no matrix" in told


def test_expensive_models_are_skipped_and_weak_tests_are_inconclusive():
    codes = np.random.default_rng(0).integers(17, size=(10, 60))
    found = diagnose(Trajectories(codes, states=range(17)), epsilon=0.1, horizon=2)
    by_name = {one.model: one for one in found.models}
    assert np.isnan(by_name["order 2"].proved)
    assert "289 hidden states" in by_name["order 2"].note
    assert "too short to decide whether first order is enough" in found.verdict[0]


@pytest.mark.slow
def test_sample_is_not_first_order_and_a_simulated_chain_is():
    found = diagnose(sleep_sample(), epsilon=0.1, horizon=8)
    assert found.verdict[0].startswith("First order is rejected")
    by_name = {one.model: one for one in found.models}
    assert by_name["order 2"].attained > 1.05 * by_name["first order"].proved
    rng = np.random.default_rng(3)
    plain = diagnose(Trajectories(first_order(rng), states=["a", "b"]), epsilon=0.1, horizon=8)
    assert (
        plain.verdict[0] == "First order is not rejected: the data show no words of two states (G-test at 0.1 %, BIC)."
    )
