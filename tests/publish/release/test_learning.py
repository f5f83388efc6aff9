"""A correlation learnt with differential privacy: sensitivity by enumeration, noise by its law, intervals, one spend."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from data_sets import sleep_sample
from making import contains, from_sequences
from temporaldp import (
    Adversary,
    InputError,
    PublicCorrelation,
    Trajectories,
    TransitionMatrix,
    estimate_adversaries,
    learn_correlation,
    load_correlation,
    plan_budget,
    save_correlation,
)
from temporaldp.base.errors import LedgerMismatchError
from temporaldp.core.correlation import Provenance
from temporaldp.core.correlation.provenance import together
from temporaldp.data.counts.transitions import TransitionHistogram, limited_transitions, noisy_intervals, sum_of_noise
from temporaldp.data.tables.traces import transitions_of


def walks(rng, P, n_people, n_times, start=None):
    codes = np.zeros((n_people, n_times), dtype=np.int64)
    codes[:, 0] = rng.choice(len(P), n_people, p=start)
    for t in range(1, n_times):
        codes[:, t] = (P[codes[:, t - 1]].cumsum(axis=1) < rng.random((n_people, 1))).sum(axis=1)
    return Trajectories(codes, states=range(len(P)))


def tables_of(person, n, contributed):
    """Every table that one person may contribute, whichever transitions are drawn: by counting."""
    steps = list(itertools.pairwise(person))
    for chosen in itertools.combinations(steps, min(contributed, len(steps))):
        table = np.zeros((n, n), dtype=int)
        for i, j in chosen:
            table[i, j] += 1
        yield table


@pytest.mark.parametrize("contributed", [1, 2, 3])
def test_user_level_neighbours_differ_by_at_most_two_l(contributed):
    people = list(itertools.product(range(2), repeat=4))
    furthest = max(
        int(np.abs(one - other).sum())
        for first, second in itertools.product(people, repeat=2)
        for one in tables_of(first, 2, contributed)
        for other in tables_of(second, 2, contributed)
    )
    assert furthest == 2 * contributed
    mechanism = TransitionHistogram(2, contributed)
    # The likelihood ratio of discrete Laplace noise is at most e^(distance / scale).
    assert furthest / mechanism.scale(0.7) <= 0.7
    data = Trajectories(np.array(people), states=range(2))
    seen = {limited_transitions(data, contributed, seed).tobytes() for seed in range(20)}
    assert (len(seen) > 1) == (contributed < 3)  # of three transitions a person
    assert limited_transitions(data, contributed, 0).sum() == contributed * len(people)


def test_contribution_of_a_person_is_one_of_the_enumerated_tables():
    person = [0, 1, 1, 0, 1]
    data = Trajectories(np.array([person]), states=range(2))
    allowed = {table.tobytes() for table in tables_of(person, 2, 2)}
    seen = {limited_transitions(data, 2, seed).tobytes() for seed in range(100)}
    assert seen == allowed


def test_replacing_a_person_changes_no_other_choice():
    rng = np.random.default_rng(3)
    n, names = 3, [f"person {k}" for k in range(41)]
    # Gaps: everybody has another number of transitions.
    codes = np.where(rng.random((41, 9)) < rng.random((41, 1)), -1, rng.integers(n, size=(41, 9)))
    others = [np.full(9, -1), np.zeros(9), np.arange(9) % n, np.where(np.arange(9) % 3 < 2, 1, -1)]
    for seed in range(25):
        contributed, who = 1 + seed % 4, seed % 41
        before = limited_transitions(Trajectories(codes, states=range(n), users=names), contributed, seed)
        for person, name in itertools.product(others, (names[who], "somebody else")):
            changed, called = codes.copy(), [*names]
            changed[who], called[who] = person, name
            order = rng.permutation(41)
            neighbor = Trajectories(changed[order], states=range(n), users=[called[k] for k in order])
            after = limited_transitions(neighbor, contributed, seed)
            assert np.abs(after - before).sum() <= 2 * contributed


def test_each_of_a_persons_transitions_is_chosen_as_often():
    """Two of the four transitions of each person: of all pairs equally many, for any key."""
    people = Trajectories(np.tile([0, 1, 2, 3, 4], (6000, 1)), states=range(5))
    table = limited_transitions(people, 2, 7)
    assert table.sum() == 12_000
    assert stats.chisquare([table[k, k + 1] for k in range(4)]).pvalue > 1e-6
    pairs = Trajectories([[0, 1, 2, 3, 4]], states=range(5))
    chosen = [tuple(np.flatnonzero(limited_transitions(pairs, 2, seed).sum(axis=1))) for seed in range(600)]
    counts = [chosen.count(pair) for pair in itertools.combinations(range(4), 2)]
    assert sum(counts) == 600
    assert stats.chisquare(counts).pvalue > 1e-6


def statistic(noise, scale):
    """Sum of |Z| / its mean; and the p-value of a chi-square test of the cells 0, 1, 2, ..."""
    ratio = math.exp(-1.0 / scale)
    edges = np.arange(int(4 * scale))
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(edges) * np.where(edges == 0, 1, 2)
    counts = np.bincount(np.minimum(np.abs(noise), len(edges)), minlength=len(edges) + 1)
    return stats.chisquare(counts, len(noise) * np.append(law, 1.0 - law.sum())).pvalue


def test_noise_has_the_scale_two_l_over_epsilon_and_a_wrong_scale_is_rejected():
    mechanism = TransitionHistogram(10, contributed=3)
    motionless = Trajectories(np.zeros((5, 1), dtype=np.int64), states=range(10))  # a single time has no transitions
    noise = np.concatenate([mechanism(motionless, 1.0).ravel() for _ in range(60)])
    assert statistic(noise, 6.0) > 1e-6
    for factor in (1.5, 1.0 / 1.5):
        assert statistic(noise, 6.0 * factor) < 1e-6


@pytest.mark.parametrize(("scale", "count"), [(0.5, 1), (4.0, 1), (4.0, 6), (30.0, 24)])
def test_sum_of_noise_is_within_its_bound(scale, count):
    ratio = math.exp(-1.0 / scale)
    reach = np.arange(-int(40 * scale) - 10, int(40 * scale) + 11)
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(reach)
    whole = np.array([1.0])
    for _ in range(count):
        whole = np.convolve(whole, law)
    away = np.abs(np.arange(len(whole)) - (len(whole) - 1) // 2)
    for risk in (0.2, 1e-3, 1e-6):
        bound = sum_of_noise(scale, count, risk)
        beyond = whole[away > bound].sum()
        assert beyond <= risk
        if count == 1 and bound > 0:
            assert whole[away > bound - 1].sum() > risk


@pytest.mark.parametrize("n_people", [20, 150])
def test_intervals_contain_a_stationary_chain_without_a_warning(n_people):
    rng = np.random.default_rng(n_people)
    P = np.array([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.05, 0.4, 0.55]])
    shares = np.linalg.matrix_power(P, 200)[0]
    backward, forward = TransitionMatrix(P.T * shares / shares[:, None]), TransitionMatrix(P)
    held = warned = 0
    for _ in range(40):
        data = walks(rng, P, n_people, 12, shares)
        adversary = learn_correlation(data, epsilon=2.0, confidence=0.8, rng=rng)
        held += contains(adversary.forward, forward) and contains(adversary.backward, backward)
        warned += adversary.contradiction is not None
        assert "for a stationary Markov chain" in adversary.backward.provenance.sentence
    assert held >= 32
    assert warned == 0


@pytest.mark.parametrize("contributed", [1, 10])
def test_counts_that_contradict_a_stationary_chain_give_a_warning(contributed, tmp_path):
    """3,000 people, nearly all of whom begin in the last state; the same chain from its stationary shares has no warning."""
    rng = np.random.default_rng(48)
    P = np.array([[0.01, 0.954, 0.036], [0.168, 0.803, 0.029], [0.934, 0.011, 0.055]])
    moving, still = (
        learn_correlation(walks(rng, P, 3000, 11, shares), epsilon=1.0, contributed=contributed, rng=rng)
        for shares in ((0.001, 0.001, 0.998), np.linalg.matrix_power(P, 200)[0])
    )
    assert still.contradiction is None
    assert moving.n_steps is None  # serves any horizon
    assert "state '2' has a share of" in moving.contradiction
    assert "may not contain the truth" in moving.contradiction
    assert "correlation.confidence" in moving.contradiction
    assert moving.forward.provenance.warning is None
    save_correlation(moving, tmp_path / "correlation.json")
    assert load_correlation(tmp_path / "correlation.json").contradiction == moving.contradiction
    known = plan_budget(moving, alpha=1.0, horizon=2).provenance
    assert known.warning == moving.contradiction
    assert (
        PublicCorrelation(moving.forward, provenance=known).provenance == known
    )  # published with privacy all the same


def test_more_privacy_and_fewer_people_give_wider_intervals():
    rng = np.random.default_rng(0)
    P = np.array([[0.8, 0.2], [0.3, 0.7]])
    data = walks(rng, P, 300, 20)
    widths = [
        float((found.forward.upper - found.forward.lower).max())
        for found in (learn_correlation(data, epsilon=epsilon, rng=0) for epsilon in (0.05, 0.5, 5.0))
    ]
    assert widths == sorted(widths, reverse=True)


def test_noise_beyond_its_bound_leaves_a_row_unknown():
    low, high = noisy_intervals(np.array([[-500.0, -400.0], [900.0, 100.0]]), 1.0, 1000, 0.1)
    assert (low[0] == 0.0).all()
    assert (high[0] == 1.0).all()
    assert low[1, 0] > 0.5


def test_ledger_returns_the_stored_draw_and_refuses_other_settings(tmp_path):
    data = sleep_sample()
    place = tmp_path / "learnt.db"
    first = learn_correlation(data, epsilon=1.0, ledger=place)
    again = learn_correlation(data, epsilon=1.0, ledger=place)
    assert first.backward == again.backward
    assert first.forward == again.forward
    with pytest.raises(LedgerMismatchError):
        learn_correlation(data, epsilon=2.0, ledger=place)
    with pytest.raises(LedgerMismatchError):
        learn_correlation(data, epsilon=1.0, contributed=3, ledger=place)
    assert learn_correlation(data, epsilon=1.0).backward != first.backward


@pytest.mark.long
def test_a_draw_that_fails_leaves_nothing_spent(tmp_path, monkeypatch):
    place = tmp_path / "learnt.db"

    def fails(self, counts, epsilon):
        raise RuntimeError("no entropy")

    with monkeypatch.context() as patch:
        patch.setattr(TransitionHistogram, "__call__", fails)
        with pytest.raises(RuntimeError):
            learn_correlation(sleep_sample(), epsilon=1.0, ledger=place)
    learn_correlation(sleep_sample(), epsilon=1.0, ledger=place)


@pytest.mark.long
def test_costs_of_two_spends_add_up_and_directions_count_once():
    data = walks(np.random.default_rng(0), np.array([[0.8, 0.2], [0.3, 0.7]]), 50, 6)
    one, other = (learn_correlation(data, epsilon=0.5) for _ in range(2))
    assert plan_budget(one, alpha=1.0, horizon=2).alpha_in_all == 1.5
    mixed = Adversary(one.backward, other.forward)
    assert plan_budget(mixed, alpha=1.0, horizon=2).alpha_in_all == 2.0
    people = {"one": one, "other": other, "again": one}
    assert plan_budget(people, alpha=1.0, horizon=2).alpha_in_all == 2.0


def test_noise_so_small_that_no_count_changes_leaves_the_intervals_of_the_counts():
    data = walks(np.random.default_rng(0), np.array([[0.8, 0.2], [0.3, 0.7]]), 50, 6)
    exact = next(estimate_adversaries(data, confidence=0.9))
    learnt = learn_correlation(data, epsilon=1e6, confidence=0.95, contributed=5)  # half of the risk is that of noise
    np.testing.assert_allclose(learnt.forward.lower, exact.forward.lower, rtol=0.1)
    assert (learnt.forward.upper - learnt.forward.lower > exact.forward.upper - exact.forward.lower).all()


def test_learned_correlation_round_trips_with_its_origin(tmp_path):
    learnt = learn_correlation(sleep_sample(), epsilon=1.0)
    save_correlation(learnt, tmp_path / "correlation.json")
    read = load_correlation(tmp_path / "correlation.json")
    assert read.backward == learnt.backward
    assert read.forward.provenance == learnt.forward.provenance
    assert read.forward.provenance.epsilon == 1.0
    with pytest.raises(InputError, match="json"):
        save_correlation(learnt, tmp_path / "correlation.csv")


@pytest.mark.parametrize(
    "wrong", [{"contributed": 0}, {"contributed": 2.5}, {"confidence": 1.0}, {"epsilon": -1.0}, {"confidence": 0.0}]
)
def test_invalid_arguments_are_refused(wrong):
    with pytest.raises(InputError):
        learn_correlation(sleep_sample(), **{"epsilon": 1.0, **wrong})


def test_transitions_are_grouped_by_person():
    data = from_sequences([["a", "b", None, "a"], ["b", "b"]])
    assert [part.tolist() for part in transitions_of(data)] == [[0, 1], [0, 0], [0, 1], [1, 1]]


def test_cost_of_other_correlations_is_added_once_and_rounded_up():
    public = Provenance("history", "a history", step="an hour")
    one, other = (Provenance("learnt", name, ((name, spent),)) for name, spent in (("one", 0.1), ("other", 0.2)))
    assert together([one, one]) == together([one, public]) == one
    assert together([public, other]).epsilon == 0.2 and together([public, other]).step == "an hour"
    both = together([one, other])
    assert together([both, one, other]).spends == both.spends
    assert Fraction(0.1) + Fraction(0.2) <= Fraction(both.epsilon) <= Fraction(0.3) * (1 + Fraction(1, 10**15))
    for alpha in np.random.default_rng(1).random(200):
        assert Fraction(one.in_all(float(alpha), 0.0)[0]) >= Fraction(float(alpha)) + Fraction(0.1)
