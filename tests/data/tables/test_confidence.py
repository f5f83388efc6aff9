"""Intervals of counts, draws from a posterior and of people: coverage by simulation, tails by counting."""

import math

import numpy as np
import pytest
from scipy import stats

from data_sets import sleep_sample
from exact_oracles import backward_matrices, temporal_by_sign_rule
from making import contains, from_sequences
from temporaldp import (
    Adversary,
    InputError,
    IntervalMatrix,
    Trajectories,
    TransitionMatrix,
    estimate_adversaries,
    estimate_adversary,
    temporal_leakage,
)
from temporaldp.base.errors import EstimationError
from temporaldp.data.tables.estimation import clopper_pearson, intervals_of_counts
from temporaldp.lab.studies import leakage_bootstrap, leakage_posterior
from temporaldp.lab.studies.uncertainty import bootstrap_adversaries, posterior_adversaries


def at_least(k, n, p):
    return math.fsum(math.comb(n, m) * p**m * (1 - p) ** (n - m) for m in range(k, n + 1))


@pytest.mark.parametrize(("hits", "misses"), [(0, 7), (3, 9), (5, 0), (1, 1)])
def test_each_tail_has_half_the_risk(hits, misses):
    k, f = np.array([float(hits)]), np.array([float(misses)])
    low, high = (float(bound[0]) for bound in clopper_pearson((k, k), (f, f), 0.1))
    n = hits + misses
    if hits:
        assert at_least(hits, n, low) == pytest.approx(0.05, rel=1e-9)
    else:
        assert low == 0.0
    if misses:
        assert 1.0 - at_least(hits + 1, n, high) == pytest.approx(0.05, rel=1e-9)
    else:
        assert high == 1.0


def test_uncertain_counts_give_the_union_of_their_intervals():
    low, high = clopper_pearson((np.array([2.0]), np.array([5.0])), (np.array([4.0]), np.array([9.0])), 0.05)
    for hits in range(2, 6):
        for misses in range(4, 10):
            k, f = np.array([float(hits)]), np.array([float(misses)])
            one_low, one_high = clopper_pearson((k, k), (f, f), 0.05)
            assert low <= one_low
            assert one_high <= high


def test_state_without_transitions_is_unrestricted_and_reported():
    traces = from_sequences([["a", "b"], ["a", "a"]], states=["a", "b", "c"])
    adversary = next(estimate_adversaries(traces, confidence=0.95))
    assert isinstance(adversary.forward, IntervalMatrix)
    assert (adversary.forward.lower[2] == 0.0).all()
    assert (adversary.forward.upper[2] == 1.0).all()
    assert "No transition of 'b', 'c' was seen" in adversary.forward.provenance.sentence


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, float("nan"), 2.0])
def test_a_confidence_outside_of_0_to_1_is_refused(confidence):
    with pytest.raises(InputError, match="confidence to be a finite number > 0 and < 1"):
        next(estimate_adversaries(sleep_sample(), confidence=confidence))


def test_a_prior_and_a_confidence_together_are_refused():
    with pytest.raises(InputError, match="either a prior or a confidence"):
        next(estimate_adversaries(sleep_sample(), confidence=0.9, prior=1.0))


def walk(rng, P, pi, n_people, n_times):
    codes = np.zeros((n_people, n_times), dtype=np.int64)
    codes[:, 0] = rng.choice(len(P), n_people, p=pi)
    for t in range(1, n_times):
        codes[:, t] = (P[codes[:, t - 1]].cumsum(axis=1) < rng.random((n_people, 1))).sum(axis=1)
    return codes


def covered(n_people, repetitions, seed):
    """Share of simulated data sets whose guaranteed number is at least the leakage of the chain that made them."""
    rng = np.random.default_rng(seed)
    P = np.array([[0.85, 0.15], [0.3, 0.7]])
    pi = np.array([2 / 3, 1 / 3])
    chain = TransitionMatrix(P)
    truth = temporal_leakage(Adversary.from_forward(chain, initial=chain.stationary_distribution()), [0.3] * 5)
    hits = 0
    for _ in range(repetitions):
        traces = Trajectories(walk(rng, P, pi, n_people, 6), states=["0", "1"])
        adversary = next(estimate_adversaries(traces, confidence=0.95))
        hits += temporal_leakage(adversary, [0.3] * 5).worst >= truth.worst
    return hits / repetitions


@pytest.mark.parametrize("n_people", [20, 150, 2000])
def test_guaranteed_leakage_covers_the_truth_at_the_stated_rate(n_people):
    assert covered(n_people, 40, n_people) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("n_people", [20, 150, 2000])
def test_guaranteed_leakage_covers_the_truth_in_a_thousand_repetitions(n_people):
    assert covered(n_people, 1000, n_people) >= 0.95


LOPSIDED = np.array([[0.01, 0.954, 0.036], [0.168, 0.803, 0.029], [0.934, 0.011, 0.055]])
"""A chain which, started in its last state, has other backward matrices at its first steps than later."""


@pytest.mark.parametrize(
    ("start", "is_seen"),
    [
        ((0.001, 0.001, 0.998), True),
        pytest.param((0.3, 0.3, 0.4), True, marks=pytest.mark.long),
        ((0.16, 0.79, 0.05), False),
    ],
)
def test_guaranteed_leakage_covers_a_chain_that_is_not_stationary(start, is_seen):
    """20 data sets of 3,000 people: the bound is above the leakage by the sign rule; matrices of each step are in their sets.

    The last start is so close to the stationary distribution that few data sets contradict it.
    """
    n_times, rng, start = 11, np.random.default_rng(48), np.array(start)
    backward = list(backward_matrices(LOPSIDED, start, n_times))
    truth = float(temporal_by_sign_rule(backward, LOPSIDED, [0.5] * n_times).max())
    if start[2] > 0.9:
        assert truth == pytest.approx(1.4486, abs=5e-5)  # stationary backward matrices bound it by 1.35
    held = covered = 0
    for _ in range(20):
        traces = Trajectories(walk(rng, LOPSIDED, start, 3000, n_times), states=range(3))
        adversary = next(estimate_adversaries(traces, confidence=0.95))
        assert adversary.n_steps == n_times or not is_seen
        sets = [adversary.backward.at(t) for t in range(n_times - 1)]
        held += contains(adversary.forward, TransitionMatrix(LOPSIDED, range(3))) and all(
            contains(one, TransitionMatrix(B, range(3))) for one, B in zip(sets, backward, strict=True)
        )
        covered += temporal_leakage(adversary, [0.5] * n_times).worst >= truth
    assert covered >= 19
    assert held >= 19 or not is_seen


def test_backward_intervals_are_constant_unless_the_shares_of_states_change():
    rng = np.random.default_rng(3)
    P = np.array([[0.85, 0.15], [0.3, 0.7]])
    still = Trajectories(walk(rng, P, np.array([2 / 3, 1 / 3]), 500, 6), states=["a", "b"])
    adversary = next(estimate_adversaries(still, confidence=0.95))
    assert adversary.n_steps is None
    assert "for a stationary Markov chain" in adversary.backward.provenance.sentence
    assert "stationary" not in adversary.forward.provenance.sentence
    moving = Trajectories(walk(rng, P, np.array([0.0, 1.0]), 500, 6), states=["a", "b"])
    adversary = next(estimate_adversaries(moving, confidence=0.95))
    assert adversary.n_steps == 6
    assert "of each step, because the shares of states change" in adversary.backward.at(0).provenance.sentence
    assert (
        "for a release that begins with the shares of the first of these steps"
        in adversary.backward.at(0).provenance.sentence
    )
    assert adversary.contradiction is None
    assert next(estimate_adversaries(moving, confidence=0.95, directions=("forward",))).n_steps is None
    two = Trajectories(moving.codes[:, :2], states=["a", "b"])
    assert next(estimate_adversaries(two, confidence=0.95)).n_steps == 2


def test_a_release_at_other_steps_has_the_intervals_of_a_stationary_chain_and_a_warning():
    rng = np.random.default_rng(3)
    P = np.array([[0.85, 0.15], [0.3, 0.7]])
    starts = {"still": np.array([2 / 3, 1 / 3]), "moving": np.array([0.0, 1.0])}
    for name, start in starts.items():
        traces = Trajectories(walk(rng, P, start, 500, 6), states=["a", "b"])
        adversary = estimate_adversary(traces, confidence=0.95, stationary=True)
        assert adversary.n_steps is None
        assert "for a stationary Markov chain" in adversary.backward.provenance.sentence
        assert (adversary.contradiction is not None) == (name == "moving")


def test_sets_of_users_whose_shares_of_states_change_carry_a_warning():
    rng = np.random.default_rng(3)
    moving = Trajectories(walk(rng, LOPSIDED, np.array([0.0, 0.0, 1.0]), 60, 11), states=range(3))
    for one in estimate_adversaries(moving, confidence=0.95, per_user=True):
        assert one.n_steps is None
        assert "for a stationary Markov chain" in one.backward.provenance.sentence
        assert "shares of states change" in one.contradiction


def test_intervals_cover_entries_and_half_as_wide_ones_do_not():
    rng = np.random.default_rng(1)
    P = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    held = narrow = 0
    for _ in range(300):
        counts = np.stack([rng.multinomial(60, row) for row in P])
        low, high = intervals_of_counts(counts, risk=0.1)
        held += ((low <= P) & (high >= P)).all()
        middle, half = 0.5 * (low + high), 0.25 * (high - low)
        narrow += ((middle - half <= P) & (middle + half >= P)).all()
    assert held >= 270
    assert narrow < 200


def test_the_posterior_has_the_marginals_of_dirichlet_rows():
    traces = from_sequences([["a", "b", "b", "a", "a", "b"], ["b", "b", "a"]])
    counts = np.array([[1, 2], [2, 2]])
    draws = posterior_adversaries(traces, n_draws=3000, prior=0.5, rng=0)
    for matrices, table in (([d.forward for d in draws], counts), ([d.backward for d in draws], counts.T)):
        for k in range(2):
            first = [matrix.dense()[k, 0] for matrix in matrices]
            law = stats.beta(table[k, 0] + 0.5, table[k, 1] + 0.5)
            assert stats.kstest(first, law.cdf).pvalue > 1e-4
            assert stats.kstest(first, stats.beta(1.5 * table[k, 0] + 2, table[k, 1] + 0.5).cdf).pvalue < 1e-4


def test_bootstrap_draws_whole_people():
    traces = from_sequences([["a", "a", "a", "b", "b", "b", "a"]] * 3 + [["a", "b", "a", "b", "a", "b", "a"]] * 3)
    shares = {round(d.forward.dense()[0, 1], 9) for d in bootstrap_adversaries(traces, n_draws=200, rng=0)}
    steady, alternating = np.array([2, 1]), np.array([0, 3])
    allowed = {round(((6 - k) * steady + k * alternating)[1] / 18, 9) for k in range(7)}
    assert shares <= allowed
    assert len(shares) > 3


def test_draws_that_leave_a_state_without_transitions_require_a_prior():
    traces = from_sequences([["a", "b", "a"]] * 20, states=["a", "b", "c"])
    with pytest.raises(EstimationError, match="prior"):
        bootstrap_adversaries(traces, n_draws=4, rng=0)
    assert len(bootstrap_adversaries(traces, n_draws=3, prior=1.0, rng=0)) == 3


@pytest.mark.long
def test_quantiles_of_the_sample_lie_between_the_estimate_and_the_bound():
    data, epsilons = sleep_sample(), [0.1] * 6
    estimate = temporal_leakage(next(estimate_adversaries(data)), epsilons).worst
    guarantee = temporal_leakage(next(estimate_adversaries(data, confidence=0.95)).between(0, 6), epsilons).worst
    for draws in (
        leakage_posterior(data, epsilons=epsilons, n_draws=60, rng=0),
        leakage_bootstrap(data, epsilons=epsilons, n_draws=60, rng=0),
    ):
        assert draws.shape == (60,)
        assert np.quantile(draws, 0.05) < estimate < np.quantile(draws, 0.95) < guarantee


@pytest.mark.long
def test_single_epsilon_applies_to_every_step():
    data = sleep_sample()
    for draw in (leakage_posterior, leakage_bootstrap):
        one, each = (draw(data, epsilons=epsilons, n_draws=2, rng=0) for epsilons in (0.1, [0.1] * 47))
        assert one.tolist() == each.tolist()


@pytest.mark.parametrize("wrong", [{"n_draws": 0}, {"prior": -1.0}, {"prior": float("nan")}])
def test_invalid_draws_are_refused(wrong):
    for draw in (leakage_posterior, leakage_bootstrap):
        with pytest.raises(InputError):
            draw(sleep_sample(), epsilons=[0.1], **wrong)


def test_draws_require_traces():
    for draw in (leakage_posterior, leakage_bootstrap):
        with pytest.raises(InputError, match="expected traces"):
            draw(Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])), epsilons=0.1)
