"""Longer memory: every observation of tiny chains, first order and the exact leakage, words and ages by counting."""

import copy
import itertools
import pickle

import numpy as np
import pytest

from data_sets import sleep_sample
from making import from_sequences, of_words
from temporaldp import (
    Adversary,
    ApproximateDP,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    Exact,
    InputError,
    PaperBound,
    RandomizedResponse,
    TemporalAccountant,
    Trajectories,
    TransitionMatrix,
    Windows,
    event_epsilons,
    leakage_supremum,
    plan_budget,
    sustainable_budget,
    temporal_leakage,
)
from temporaldp.base.errors import EstimationError, MatrixError, StateError
from temporaldp.core.accounting.memory import LongerMemory
from temporaldp.data.tables import estimate_dwell_times, estimate_words
from temporaldp.publish.release.resuming import correlations_of


def second_order_traces(rng, n_people=200, n_times=15):
    """Two values, of which the next tends to be the one before last."""
    codes = rng.integers(2, size=(n_people, n_times))
    for t in range(2, n_times):
        keep = rng.random(n_people) < 0.75
        codes[:, t] = np.where(keep, codes[:, t - 2], rng.integers(2, size=n_people))
    return Trajectories(codes, states=["a", "b"])


def enumerated(chain, epsilons, t):
    """The largest leakage about the value at step t over all observations, by sums over all paths of hidden states."""
    m, n = len(chain.labels), len(chain.states)
    B, F = chain.backward.dense(), chain.forward.dense()
    n_steps, best = len(epsilons), 0.0
    signs = list(itertools.product((0, 1), repeat=n))
    for choice in itertools.product(signs, repeat=n_steps):
        factors = np.exp(np.array(epsilons)[:, None] * np.array(choice))[:, chain.labels]
        past, future = np.ones(m), np.ones(m)
        for s in range(t):
            past = B @ (factors[s] * past)
        for s in range(n_steps - 1, t, -1):
            future = F @ (factors[s] * future)
        said = (chain.shares * past * future).sum(axis=1) * np.exp(epsilons[t] * np.array(choice[t]))
        best = max(best, float(np.log(said.max() / said.min())))
    return best


@pytest.mark.parametrize("make", [lambda d: estimate_words(d, order=2), lambda d: estimate_dwell_times(d, longest=3)])
@pytest.mark.parametrize("seed", range(3))
def test_both_bounds_enclose_every_observation(make, seed):
    chain = make(second_order_traces(np.random.default_rng(seed)))
    epsilons = [0.5, 0.2, 0.7, 0.4]
    found = temporal_leakage(chain, epsilons)
    truth = np.array([enumerated(chain, epsilons, t) for t in range(4)])
    assert (found.temporal >= truth).all() and (found.attained.temporal <= truth + 1e-9).all()
    assert found.worst <= 1.05 * truth.max() and found.attained.temporal.max() >= 0.98 * truth.max()
    assert (found.temporal <= 1.3 * truth).all() and (found.attained.temporal >= 0.9 * truth).all()


RETURNING = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]])
"""Order 2: [before, now, next]."""


def test_a_chain_of_known_probabilities_moves_between_words():
    chain = of_words(RETURNING, ["home", "work"])
    words = list(itertools.product((0, 1), repeat=2))
    assert chain.forward.states == tuple(f"{chain.states[a]} > {chain.states[b]}" for a, b in words)
    for (a, b), row in zip(words, chain.forward.dense(), strict=True):
        expected = [RETURNING[a, b, d] if c == b else 0.0 for c, d in words]
        assert row.tolist() == pytest.approx(expected)
    assert chain.labels.tolist() == [b for _, b in words]
    first = TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
    known = Adversary.from_forward(TransitionMatrix(first, ["0", "1"]))
    assert of_words(first.dense()).memory == "the last state"
    assert of_words(first.dense()).adversary.directions == known.directions


def test_third_order_chain_moves_between_overlapping_words():
    given = np.random.default_rng(1).dirichlet([1.0, 1.0, 1.0], size=(3, 3, 3))
    chain = of_words(given)
    words = list(itertools.product(range(3), repeat=3))
    dense = chain.forward.dense()
    for k, (a, b, c) in enumerate(words):
        for m, (d, e, f) in enumerate(words):
            assert dense[k, m] == pytest.approx(given[a, b, c, f] if (d, e) == (b, c) else 0.0)


@pytest.mark.long
@pytest.mark.parametrize("accounting", [Exact(), PaperBound()], ids=lambda one: one.name)
def test_leakage_about_words_covers_leakage_about_states(accounting):
    chain = of_words(RETURNING)
    epsilons = [0.5, 0.2, 0.7, 0.4]
    truth = [enumerated(chain, epsilons, t) for t in range(4)]
    assert (temporal_leakage(chain, epsilons, accounting=accounting).temporal >= np.array(truth) - 1e-9).all()
    accountant = TemporalAccountant(chain, alpha=1.0, accounting=accounting)
    for _ in range(4):
        accountant = accountant.spend(accountant.remaining())
    assert max(enumerated(chain, accountant.spent.tolist(), t) for t in range(4)) <= 1.0 + 1e-9
    plan = plan_budget(chain, alpha=1.0, horizon=4, accounting=accounting)
    assert max(enumerated(chain, plan.epsilons.tolist(), t) for t in range(4)) <= 1.0 + 1e-9
    assert (
        leakage_supremum(chain, 0.1, accounting=accounting).temporal >= temporal_leakage(chain, [0.1] * 20).worst - 1e-9
    )


@pytest.mark.long
def test_release_continues_under_a_higher_order(tmp_path):
    accountant = TemporalAccountant(of_words(RETURNING), alpha=1.0)
    mechanism, place = DiscreteLaplaceHistogram(2), tmp_path / "r.db"
    with ContinualRelease(mechanism, ledger=place, accountant=accountant, states=("home", "work")) as stream:
        for hour in range(3):
            stream.release([70, 30], time=hour)
        assert 0.0 < stream.accountant.total() <= 1.0


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (RETURNING * 0.5, MatrixError, "row '0 > 0' .* sums to 0.5"),
        (np.full((11,) * 4, 1 / 11), EstimationError, "1331 words"),
    ],
)
def test_invalid_probabilities_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        of_words(given)


def test_words_that_never_occur_are_omitted():
    alternating = [[[0.5, 0.5], [1.0, 0.0]], [[0.3, 0.7], [0.5, 0.5]]]  # after work, home: never twice work
    chain = of_words(alternating)
    assert chain.forward.states == ("0 > 0", "0 > 1", "1 > 0")
    with pytest.raises(StateError, match="expected 2 state names"):
        of_words(alternating, ["a"])


@pytest.mark.long
def test_first_order_is_the_exact_leakage():
    chain = estimate_words(sleep_sample(), order=1)
    epsilons = np.full(6, 0.2)
    exact = temporal_leakage(Adversary(chain.backward, chain.forward), epsilons)
    found = temporal_leakage(chain, epsilons)
    assert (found.temporal >= exact.temporal * (1 - 1e-12)).all()
    assert found.temporal == pytest.approx(exact.temporal, rel=1e-7)
    assert found.attained.temporal == pytest.approx(exact.temporal, rel=1e-7)


def test_redundant_second_order_equals_first_order():
    rng = np.random.default_rng(0)
    P = np.array([[0.8, 0.2], [0.3, 0.7]])
    codes = np.zeros((3000, 20), dtype=np.int64)
    for t in range(1, 20):
        codes[:, t] = rng.random(3000) > P[codes[:, t - 1], 0]
    data = Trajectories(codes, states=["a", "b"])
    one, two = (temporal_leakage(estimate_words(data, order=k), [0.3] * 6) for k in (1, 2))
    assert two.worst == pytest.approx(one.worst, rel=0.03)


def test_word_counts_are_shrunk_towards_first_order():
    data = from_sequences([list("aababbaab"), list("babba"), list("abbab")])
    chain = estimate_words(data, order=2, prior=2.0)
    counts, first = {}, {}
    for row in data.codes:
        known = [int(k) for k in row if k >= 0]
        for a, b in itertools.pairwise(known):
            first[a, b] = first.get((a, b), 0) + 1
        for triple in zip(known, known[1:], known[2:], strict=False):
            counts[triple] = counts.get(triple, 0) + 1
    names = chain.forward.states
    for (a, b), c in itertools.product(itertools.product((0, 1), repeat=2), (0, 1)):
        plain = first[b, c] / (first[b, 0] + first[b, 1])
        seen = sum(counts.get((a, b, k), 0) for k in (0, 1))
        wanted = (counts.get((a, b, c), 0) + 2.0 * plain) / (seen + 2.0)
        got = chain.forward.dense()[names.index(f"{'ab'[a]} > {'ab'[b]}"), names.index(f"{'ab'[b]} > {'ab'[c]}")]
        assert got == pytest.approx(wanted)
    np.testing.assert_allclose(chain.shares.sum(axis=1), 1.0)


@pytest.mark.long
def test_orders_that_are_too_large_are_refused_early():
    data = Trajectories(np.zeros((2, 5), dtype=np.int64), states=range(1000))
    with pytest.raises(EstimationError, match="1000000 words"):
        estimate_words(data, order=2)
    with pytest.raises(EstimationError, match="hidden states"):
        estimate_dwell_times(data, longest=20)
    for wrong in ({"order": 0}, {"order": 2, "prior": 0.0}):
        with pytest.raises(InputError):
            estimate_words(sleep_sample(), **wrong)


@pytest.mark.parametrize("seed", [0, 1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.long
def test_one_number_about_the_states_of_a_chain_lies_below_that_about_its_words(seed):
    """By every method that is told only of hidden states, leakage is no less."""
    rng = np.random.default_rng(seed)
    n, order = (2, 3) if seed % 2 else (3, 2)
    chain = of_words(rng.dirichlet(np.ones(n), size=(n,) * order))
    series, hidden = temporal_leakage(chain, [0.2] * 8), Adversary(chain.backward, chain.forward)
    assert series.accounting.name == "longer memory" and not series.is_exact
    assert (series.temporal <= temporal_leakage(hidden, [0.2] * 8).temporal * (1.0 + 1e-9)).all()
    assert series.evidence.metric(3).max() == pytest.approx(series.temporal[3], rel=1e-12)
    assert set(series.worst_pair()) <= set(chain.states)
    limit = leakage_supremum(chain, 0.2)
    assert limit.temporal >= temporal_leakage(chain, [0.2] * 60).worst
    budget = sustainable_budget(chain, 1.0)
    assert budget >= sustainable_budget(hidden, 1.0)
    accountant = TemporalAccountant(chain, alpha=1.0)
    assert accountant.reserve == pytest.approx(budget, rel=1e-3)
    for _ in range(4):
        accountant.spend(accountant.remaining())
    assert accountant.total() <= 1.0
    assert leakage_supremum(chain, budget).temporal <= 1.0
    plan = plan_budget(chain, 1.0, horizon=6)
    assert temporal_leakage(chain, plan.epsilons).worst <= 1.0
    assert TemporalAccountant(chain, alpha=1.0, horizon=6).admits(plan.epsilons)
    odometer = TemporalAccountant(chain).spend(plan.epsilons)
    assert odometer.total() >= plan.leakage.worst * (1.0 - 1e-12)


def test_a_chain_and_matrices_over_its_hidden_states_are_two_adversaries():
    chain = of_words(RETURNING)
    hidden = Adversary(chain.backward, chain.forward)
    both = temporal_leakage({"chain": chain, "hidden": hidden}, [0.2] * 6)
    alone = [temporal_leakage(one, [0.2] * 6) for one in (chain, hidden)]
    assert [member.worst for member in both.members] == [one.worst for one in alone]
    assert correlations_of([chain.adversary], salt="0")["users"] != correlations_of([hidden], salt="0")["users"]
    by_name = temporal_leakage({"chain": chain, "hidden": hidden}, [0.2] * 6, accounting=LongerMemory())
    assert [member.worst for member in by_name.members] == [one.worst for one in alone]
    assert pickle.loads(pickle.dumps(chain.adversary)) == chain.adversary == copy.deepcopy(chain).adversary


@pytest.mark.parametrize("seed", range(12))
def test_no_observation_of_a_random_chain_exceeds_the_bound(seed):
    rng = np.random.default_rng(seed)
    order = 2 if seed % 3 else 3
    chain = of_words(rng.dirichlet(np.full(2, rng.choice([0.3, 1.0, 3.0])), size=(2,) * order))
    epsilons = rng.choice([0.0, 0.1, 0.5, 1.5, 3.0], size=4) * rng.random(4)
    found, truth = temporal_leakage(chain, epsilons), [enumerated(chain, epsilons, t) for t in range(4)]
    assert (found.temporal >= np.array(truth) - 1e-12).all()
    assert (found.attained.temporal <= np.array(truth) + 1e-9).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_steps", [5, pytest.param(90, marks=pytest.mark.long)])
def test_steps_that_share_bounds_enclose_those_of_each_step(seed, n_steps, monkeypatch):
    """Of five steps, enumerated; of ninety, against the leakage that the bounds of each step attain, and that they prove."""
    rng = np.random.default_rng([7, seed])
    chain = of_words(rng.dirichlet([2.0, 2.0], size=(2, 2)))
    epsilons = rng.choice([0.0, 0.2, 1.0], size=n_steps) * rng.random(n_steps)
    each = temporal_leakage(chain, epsilons)
    truth = [enumerated(chain, epsilons, t) for t in range(5)] if n_steps == 5 else None
    least, most = (each.attained.temporal, each.temporal) if truth is None else (truth, truth)
    monkeypatch.setattr("temporaldp.core.accounting.memory.method.MOST_WEIGHTS", 1)
    shared = temporal_leakage(chain, epsilons)
    assert (shared.temporal >= np.array(least) - 1e-9).all()
    assert (shared.attained.temporal <= np.array(most) + 1e-9).all()
    assert n_steps == 5 or shared.worst > each.worst  # or no steps shared anything


@pytest.mark.long
def test_both_sides_are_close_for_real_dwell_times_and_words():
    data = sleep_sample()
    for chain, expected in ((estimate_words(data, order=2), 0.860), (estimate_dwell_times(data), 0.986)):
        found, limit = temporal_leakage(chain, [0.0957] * 47), leakage_supremum(chain, 0.0957)
        assert found.worst == pytest.approx(expected, abs=5e-4)
        assert found.worst <= 1.05 * found.attained.temporal.max()
        assert found.worst <= limit.temporal <= 1.06 * limit.lower.temporal
        assert temporal_leakage(chain, [0.0957] * 150).worst <= limit.temporal * (1.0 + 1e-6)


@pytest.mark.parametrize("every", [3, 6])
def test_both_sides_are_close_where_few_steps_are_released(every):
    """Budgets of the steps around one are then no budgets of that step; bounds that they shared would be those of alpha / T."""
    chain = estimate_words(sleep_sample(), order=2)
    epsilons = 0.5 * (np.arange(30) % every == every - 1)
    found = temporal_leakage(chain, epsilons)
    assert found.attained.temporal.max() <= found.worst <= 1.01 * found.attained.temporal.max()
    assert found.worst < 0.8 * epsilons.sum()


def test_a_bound_is_a_number_where_none_is_proved_for_hidden_states():
    """Ratios of two hidden states of this chain are not settled within the rounds of a search."""
    rng = np.random.default_rng([31, 100096])
    rng.random(), rng.choice([2, 3]), rng.integers(1, 11)
    chain = of_words(rng.dirichlet(np.full(2, rng.choice([0.1, 0.3, 1, 3])), size=(2, 2, 2)))
    epsilons = [0.0, 1.2461, 5.3928, 0.0, 5.5979, 0.0072, 0.0360]
    found = temporal_leakage(chain, epsilons)
    truth = np.array([enumerated(chain, epsilons, t) for t in range(7)])
    assert (found.temporal >= truth - 1e-12).all() and (found.temporal <= sum(epsilons) * (1.0 + 1e-12)).all()


def test_a_filter_that_was_exceeded_admits_nothing_more():
    """Also after a larger last step, or one that was not admitted: the reserve's supremum is then no bound."""
    chain = of_words(RETURNING)
    (known,), reserve = LongerMemory().filters([chain.adversary], 1.0, 0.05, None)
    assert known.largest() == reserve == 0.05
    assert known.after(0.05).admits(0.05)
    assert not known.after(0.9).admits(0.05)
    assert known.after(0.9).largest() == 0.0


@pytest.mark.long
@pytest.mark.filterwarnings("error")
def test_a_large_budget_leaves_no_bound_too_low():
    """Odd steps are a chain of their own, whose exact leakage is known; bounds rise with a budget, beyond all numbers, too."""
    back = 0.97
    rows = np.array([[[back if c == a else 1.0 - back for c in (0, 1)] for _ in (0, 1)] for a in (0, 1)])
    chain, one = of_words(rows), TransitionMatrix([[back, 1.0 - back], [1.0 - back, back]])
    before = np.zeros(36)
    for large in (5.0, 20.0, 30.0, 100.0):
        found = temporal_leakage(chain, [large, *[0.1, 0.0] * 17, large]).temporal
        known = temporal_leakage(Adversary(one, one), [*[0.1] * 17, large]).attained.temporal
        assert (found[1::2] >= known).all()
        assert (found >= before * (1.0 - 1e-9)).all()
        before = found


def test_noise_that_steps_share_is_counted_about_hidden_states():
    """Randomised response on the parity of two states tells apart words of the last two states that end alike."""
    p, e = 0.9, np.e
    chain = of_words([[[p, 1 - p], [1 - p, p]], [[1 - p, p], [p, 1 - p]]])  # next = before XOR now
    epsilons = event_epsilons(3, [0.0, 0.0, 1.0], Windows(2, epsilon=1.0, every=2))
    truth = 1.0 + np.log(
        (p * e + 1 - p) / ((1 - p) * e + p)
    )  # the state at step 2 has the parity of the two before, mostly
    counted = temporal_leakage(Adversary(*chain.adversary.directions), epsilons)
    assert counted.temporal[2] >= truth - 1e-12
    accountant = TemporalAccountant(chain.adversary, alpha=1.4, horizon=3)
    for asked in (
        lambda: temporal_leakage(chain.adversary, epsilons),
        lambda: temporal_leakage({"a": chain.adversary.shown, "b": chain.adversary}, list(epsilons)),
        lambda: temporal_leakage(chain.adversary, Windows(2, epsilon=1.0, every=2), horizon=3),
        lambda: temporal_leakage(chain.adversary, Windows(2, epsilon=1.0, every=2).event_epsilons(3)),
        lambda: temporal_leakage(chain.adversary, iter(epsilons)),
        lambda: leakage_supremum(chain.adversary, epsilons[0]),
        lambda: accountant.spend(list(epsilons)),
        lambda: accountant.spend(iter(epsilons)),
    ):
        with pytest.raises(InputError, match="distinguish hidden states of one state"):
            asked()


@pytest.mark.parametrize("accounting", [Exact(), ApproximateDP(1e-9)])
def test_several_states_of_a_longer_memory_leak_more_than_theorem_two_says(accounting):
    """Two interleaved chains: the releases before and after a window of two steps are each about the state at its other end."""
    p, e = 0.9, np.e
    chain = of_words([[[p, 1 - p], [p, 1 - p]], [[1 - p, p], [1 - p, p]]])  # next = the one before the last
    releases = [RandomizedResponse(1.0) if accounting.delta else 1.0] * 4
    series = temporal_leakage(chain.adversary, releases, accounting=accounting)
    truth = 2.0 + 2.0 * np.log((p * e + 1 - p) / ((1 - p) * e + p))  # all four outputs favour one of two paths
    assert truth - 1e-6 <= series.window(1, 3) <= series.user_level
    assert series.window(2, 3) == series.temporal[2]
    models = {"first order": Adversary(TransitionMatrix(np.full((2, 2), 0.5)), None), "second order": chain.adversary}
    for known in (models, dict(reversed(models.items()))) if not accounting.delta else ():
        accountant = TemporalAccountant(known)
        accountant.spend(releases)
        assert accountant.leakage().window(1, 3) >= truth - 1e-6
