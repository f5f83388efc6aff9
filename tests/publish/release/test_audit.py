"""Released noise audited by somebody else's code: `privacy-estimates` sees outputs, and bounds epsilon from below.

The attack is a direction in which outputs for two neighbouring inputs differ, found in one half of them and counted in the
other; the auditor's bound holds but once in a million for each release. Noise that is 1.5 times too small must be found out.
"""

from __future__ import annotations

import numpy as np
import pytest

from temporaldp import (
    Adversary,
    ApproximateDP,
    ContinualRelease,
    DiscreteGaussianNoise,
    DiscreteLaplaceHistogram,
    PublicCorrelation,
    TemporalAccountant,
    Trajectories,
    TransitionMatrix,
    plan_budget,
    release_histograms,
    smooth,
    temporal_leakage,
)
from temporaldp.data.counts import ClampedMean, ClampedSum, NoisyHistogram, consistent_counts
from temporaldp.data.counts.transitions import TransitionHistogram

privacy_estimates = pytest.importorskip("privacy_estimates", reason="the extra 'audit' is not installed")

EPSILON, DELTA, GAUSSIAN_SCALE = 2.0, 0.1, 1.4
FAILURE = 1e-6
"""Of one release: the probability that the auditor's bound is above the truth."""

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Of false alarms, about: thresholds that are tried, each with its share of the failure probability."""

TOO_SMALL = 1.5
STAY = np.array([[0.9, 0.1], [0.1, 0.9]])
WALK = TransitionMatrix(STAY, ["home", "work"])
BOTH = Adversary(WALK, WALK)


def audited(outputs, delta):
    """The auditor's lower bound of epsilon, in nats; outputs for one input and for the other have shape (draws, numbers)."""
    halves = [np.array_split(np.asarray(one, dtype=float).reshape(len(one), -1), 2) for one in outputs]
    learnt, counted = (np.concatenate([half[k] for half in halves]) for k in (0, 1))
    label, truth = (np.repeat([0.0, 1.0], [len(half[k]) for half in halves]) for k in (0, 1))
    ends = np.sort([np.median(learnt[label == k], axis=0) for k in (0, 1)], axis=0)

    def features(
        numbers,
    ):  # what Laplace noise tells lies between both inputs, what Gaussian noise tells in the number itself
        return np.hstack((np.clip(numbers, *ends), numbers, np.ones((len(numbers), 1))))

    direction = np.linalg.lstsq(features(learnt), label, rcond=None)[0]
    rehearsed, scores = features(learnt) @ direction, features(counted) @ direction
    levels = [np.quantile(rehearsed[label == 0], 1.0 - share) for share in SHARES]
    levels += [np.quantile(rehearsed[label == 1], share) for share in SHARES]
    return max(bounded(scores >= level - 1e-9, truth == 1.0, delta, FAILURE / len(levels)) for level in levels)


def bounded(said, true, delta, failure):
    counts = privacy_estimates.AttackResults(
        FN=int((~said & true).sum()),
        FP=int((said & ~true).sum()),
        TN=int((~said & ~true).sum()),
        TP=int((said & true).sum()),
    )
    return float(privacy_estimates.compute_eps_lo(counts, delta=delta, alpha=failure, method="beta"))


# One step. Each of these releases one of two inputs that differ in one person, with an epsilon to spend, so many times.

PEOPLE = [np.repeat([0, 1], pair) for pair in ((6, 4), (5, 5))]
COUNTS = [np.bincount(codes, minlength=2) for codes in PEOPLE]
HOURS = [[3.0, 9.5, 0.0], [3.0, 9.5, 30.0]]
GROUPS = [[[3, 0], [1, 1]], [[2, 0], [1, 2]]]
TRACES = [Trajectories(np.array([[0, 0, 1], [1, 1, 0], [k, k, k]]), states=range(2)) for k in (0, 1)]
MECHANISMS = {
    "histogram": (DiscreteLaplaceHistogram(2), COUNTS),
    "by group": (DiscreteLaplaceHistogram(2, 2), GROUPS),
    "sum": (ClampedSum(0.0, 24.0, 3), HOURS),
    "mean": (ClampedMean(0.0, 24.0, 3), HOURS),
    "learnt": (TransitionHistogram(2, contributed=2, rng=0), TRACES),
}


def drawn(name, which, epsilon, draws):
    mechanism, inputs = MECHANISMS[name]
    return [mechanism(inputs[which], epsilon) for _ in range(draws)]


def consistent(which, epsilon, draws):
    return [consistent_counts(counts, total=10) for counts in drawn("histogram", which, epsilon, draws)]


def gaussian(which, epsilon, draws):
    mechanism, scale = NoisyHistogram(2, "gaussian"), GAUSSIAN_SCALE * EPSILON / epsilon
    return [mechanism(COUNTS[which], scale) for _ in range(draws)]


def from_a_ledger(which, epsilon, draws, place):
    """Without a correlation every step may spend alpha."""
    accountant = TemporalAccountant(Adversary(), alpha=epsilon)
    with ContinualRelease(DiscreteLaplaceHistogram(2), ledger=place, accountant=accountant) as stream:
        return [stream.release(COUNTS[which], time=step) for step in range(draws)]


def smoothed(which, epsilon, draws):
    """The first of two steps differs; all that is published: counts and smoothed counts."""
    people = Trajectories(np.stack((PEOPLE[which], PEOPLE[0]), axis=1), states=WALK.states)
    plan, known = plan_budget(Adversary(), alpha=epsilon, horizon=2), PublicCorrelation(WALK, provenance="a test")
    for _ in range(draws):
        yield smooth(release_histograms(people, plan), known, total=10).counts.ravel()


def outputs_of(release, factor):
    """For both inputs, with the budget times a factor."""
    return [list(release(which, factor * EPSILON)) for which in (0, 1)]


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["histogram", "sum", "learnt", *(pytest.param(one, marks=pytest.mark.slow) for one in ("by group", "mean"))]
)
def test_audit_confirms_the_claim_and_detects_insufficient_noise(name):
    def release(which, epsilon):
        return drawn(name, which, epsilon, 6_000)

    assert audited(outputs_of(release, 1.0), 0.0) <= EPSILON
    assert audited(outputs_of(release, TOO_SMALL), 0.0) > EPSILON


@pytest.mark.long
def test_gaussian_noise_leaks_no_more_than_its_accounting_reports():
    def release(which, epsilon):
        return gaussian(which, epsilon, 16_000)

    noise = DiscreteGaussianNoise(GAUSSIAN_SCALE)
    claimed = temporal_leakage(Adversary(), [noise], accounting=ApproximateDP(DELTA)).epsilons[0]
    assert audited(outputs_of(release, 1.0), DELTA) <= claimed
    assert audited(outputs_of(release, TOO_SMALL), DELTA) > claimed


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("consistent", marks=pytest.mark.long),
        pytest.param("from a ledger", marks=pytest.mark.slow),
        pytest.param("smoothed", marks=pytest.mark.slow),
    ],
)
def test_post_processing_of_noisy_counts_leaks_no_more(name, tmp_path):
    """Post-processing hides part of the leakage; noise of half the scale is still detected."""

    def release(which, epsilon):
        if name == "consistent":
            return consistent(which, epsilon, 6_000)
        if name == "from a ledger":
            return from_a_ledger(which, epsilon, 1_500, tmp_path / f"{which} {epsilon}.db")
        return smoothed(which, epsilon, 2_000)

    assert audited(outputs_of(release, 1.0), 0.0) <= EPSILON
    assert audited(outputs_of(release, 2.0), 0.0) > EPSILON


@pytest.mark.long
def test_a_whole_release_leaks_no_more_than_alpha():
    """Two steps of a person under the known correlation, about the state at one; twice the budgets are detected."""
    alpha, draws, rng = 2.0, 5_000, np.random.default_rng(7)
    plan = plan_budget(BOTH, alpha=alpha, horizon=2)
    mechanism = DiscreteLaplaceHistogram(2)

    def outputs(which, factor):
        for moves in rng.random(draws) < STAY[0, 1]:
            values = (which, which ^ int(moves))
            pairs = zip(values, plan.epsilons * factor, strict=True)
            yield np.concatenate([mechanism(np.eye(2, dtype=int)[value], epsilon) for value, epsilon in pairs])

    assert audited([list(outputs(which, 1.0)) for which in (0, 1)], 0.0) <= alpha
    assert audited([list(outputs(which, 2.0)) for which in (0, 1)], 0.0) > alpha
