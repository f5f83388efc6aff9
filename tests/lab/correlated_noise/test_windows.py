"""Event-level epsilons of windows, several tables and memoised answers against all outputs of small mechanisms, enumerated."""

import itertools
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import temporaldp as tdp
from path_enumeration import path_probabilities, report_likelihoods
from temporaldp.lab.correlated_noise import Windows, event_epsilons

STICKY = np.array([[0.9, 0.1], [0.2, 0.8]])


def adversary():
    return tdp.Adversary.from_forward(tdp.TransitionMatrix(STICKY))


def windows_with(step, length, every, n_steps, partial=True):
    """Number of windows that contain a step, by listing them."""
    found = 0
    for end in range(every, n_steps + 1, every):
        window = range(end - length, end)
        found += step in window and (partial or window[0] >= 0)
    return found


@pytest.mark.parametrize("length", [1, 2, 3, 7])
@pytest.mark.parametrize("every", [1, 2, 7])
@pytest.mark.parametrize("partial", [True, False])
def test_epsilon_of_a_step_is_the_number_of_windows_that_contain_it(length, every, partial):
    for n_steps in (1, 5, 16):
        expected = [windows_with(step, length, every, n_steps, partial) * 0.1 for step in range(n_steps)]
        found = Windows(length, 0.1, every=every, partial=partial).event_epsilons(n_steps)
        assert found == pytest.approx(expected, rel=1e-14)
        assert (found >= np.array(expected)).all()


def window_likelihoods(length, every, epsilon, n_steps):
    """{outputs: {path: probability}}: each window reports whether any state of it is 1, truthfully but for a coin."""
    truthful = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    ends = range(every, n_steps + 1, every)
    return {
        outputs: {
            path: math.prod(
                truthful if any(path[max(end - length, 0) : end]) == said else 1.0 - truthful
                for end, said in zip(ends, outputs, strict=True)
            )
            for path in itertools.product((0, 1), repeat=n_steps)
        }
        for outputs in itertools.product((False, True), repeat=len(ends))
    }


@pytest.mark.parametrize(("length", "every"), [(2, 1), (3, 1), (2, 2), (3, 2)])
def test_windows_leak_no_more_than_their_event_epsilons(length, every):
    epsilon, n_steps = 0.7, 4
    known, claimed = adversary(), Windows(length, epsilon, every=every)
    backward, forward = (side.at(0).dense() for side in (known.backward, known.forward))
    series = tdp.temporal_leakage(known, claimed, horizon=n_steps)
    outputs = window_likelihoods(length, every, epsilon, n_steps)
    for given in outputs.values():
        for path, step in itertools.product(given, range(n_steps)):
            replaced = (*path[:step], 1 - path[step], *path[step + 1 :])
            assert math.log(given[path] / given[replaced]) <= series.epsilons[step] + 1e-12
    for step in range(n_steps):
        paths = [path_probabilities(backward, forward, 2, n_steps, step, state) for state in (0, 1)]
        ratios = [
            math.log(np.divide(*(sum(chance * given[path] for path, chance in one.items()) for one in paths)))
            for given in outputs.values()
        ]
        assert max(map(abs, ratios)) <= series.temporal[step] + 1e-12
        assert max(map(abs, ratios)) > 0.2 * series.temporal[step]


def test_memoised_answers_leak_no_more_than_the_second_randomisation():
    known, n_steps = adversary(), 5
    backward, forward = (side.at(0).dense() for side in (known.backward, known.forward))
    permanent, instantaneous = (tdp.RandomizedResponse(epsilon).probabilities for epsilon in (1.0, 0.6))
    series = tdp.temporal_leakage(known, event_epsilons(n_steps, tdp.OutputTable(instantaneous)))
    for step in range(n_steps):
        found = report_likelihoods(permanent, instantaneous, backward, forward, n_steps, step)
        worst = max(abs(math.log(one[0] / one[1])) for one in found.values())
        assert 0.1 * series.temporal[step] < worst <= series.temporal[step] + 1e-12


def test_epsilons_of_several_outputs_add_up_and_are_rounded_up():
    tree = tdp.MatrixMechanism.tree(4, tdp.LaplaceNoise(10.0, sensitivity=1.0, coordinates=2))
    found = event_epsilons(4, 0.1, [0.0, 0.1, 0.2, 0.3], tree, tdp.LaplaceNoise(4.0, sensitivity=1.0))
    exact = 0.1 + np.array([0.0, 0.1, 0.2, 0.3]) + 2.0 * 3.0 / 10.0 + 0.25
    assert found == pytest.approx(exact, rel=1e-13)
    assert (found >= exact).all()
    assert event_epsilons(3, 0.1).tolist() == [0.1] * 3
    with pytest.raises(tdp.InputError, match="expected what is published"):
        event_epsilons(3)


@dataclass(frozen=True)
class Understated:
    """Laplace noise of epsilon 1 that states 0.01."""

    pure_epsilon = 0.01
    coordinates = 1
    limit = 0.0

    def bounds(self, losses):
        return tdp.LaplaceNoise(1.0, sensitivity=1.0).bounds(losses)


def test_what_has_no_event_epsilon_is_refused():
    gaussian = tdp.GaussianNoise(1.0, sensitivity=math.sqrt(2.0))
    for output in (gaussian, tdp.MatrixMechanism.tree(4, gaussian)):
        with pytest.raises(tdp.InputError, match="without a delta"):
            event_epsilons(4, output)
    with pytest.raises(tdp.BudgetError, match="expected outputs of 5 steps"):
        event_epsilons(5, tdp.MatrixMechanism.tree(4, tdp.LaplaceNoise(1.0, 1.0, 2)))
    for output, message in (
        ([0.1, 0.2], "one for each of the 3 steps"),
        *((wrong, "epsilons") for wrong in (-0.1, "much", "0.05", False, np.ma.masked_array([0.1] * 3, [0, 1, 0]))),
    ):
        with pytest.raises(tdp.BudgetError, match=message):
            event_epsilons(3, output)
    with pytest.raises(tdp.InputError, match="delta of 0 at the pure_epsilon of Understated"):
        event_epsilons(4, Understated())
    for given in (
        {"length": 0, "epsilon": 1.0},
        {"length": 1, "epsilon": 0.0},
        {"length": 1, "epsilon": 1.0, "every": 0},
    ):
        with pytest.raises(tdp.InputError, match="expected"):
            Windows(**given)
    with pytest.raises(tdp.BudgetError, match="give horizon=T"):
        tdp.temporal_leakage(adversary(), Windows(2, 0.1))
    with pytest.raises(tdp.InputError, match="delta = 0 only"):
        tdp.temporal_leakage(adversary(), Windows(2, 0.1), accounting=tdp.ApproximateDP(1e-6), horizon=3)


def test_epsilons_of_shared_noise_are_refused_for_a_delta():
    """A sum of 100 states with noise of 0.1 leaks 9.7 nats at a small delta where the state hardly ever changes."""
    chain = tdp.TransitionMatrix([[0.9999, 0.0001], [0.0001, 0.9999]])
    epsilons = event_epsilons(100, Windows(100, epsilon=0.1, every=100))
    assert tdp.temporal_leakage(tdp.Adversary(chain, chain), epsilons).worst > 9.7
    with pytest.raises(tdp.InputError, match="share noise between steps"):
        tdp.temporal_leakage(tdp.Adversary(chain, chain), epsilons, accounting=tdp.ApproximateDP(1e-6))
    assert repr(epsilons[:2]) == "array([0.1, 0.1])" and pickle.loads(pickle.dumps(epsilons)).tolist() == [0.1] * 100
    assert type(event_epsilons(3, 0.1)) is np.ndarray  # its outputs have noise of their own


def test_epsilons_of_shared_noise_stay_marked():
    """Added to others, and for an accountant."""
    shared = event_epsilons(7, Windows(7, epsilon=0.01))
    summed = event_epsilons(7, 0.05, shared)
    accountant = tdp.TemporalAccountant(adversary(), accounting=tdp.ApproximateDP(1e-6))
    for epsilons in (shared, summed):
        for asked in (accountant.spend, accountant.check, accountant.admits, accountant.leakage):
            with pytest.raises(tdp.InputError, match="share noise between steps"):
                asked(epsilons)
            with pytest.raises(tdp.InputError, match="share noise between steps"):
                asked(list(epsilons))
        with pytest.raises(tdp.InputError, match="share noise between steps"):
            accountant.spend(epsilons[0])
    memoised = event_epsilons(7, tdp.RandomizedResponse(0.5))
    for epsilons in (memoised, event_epsilons(7, list(shared)), Windows(7, epsilon=0.01).event_epsilons(7)):
        with pytest.raises(tdp.InputError, match="share noise between steps"):
            accountant.spend(epsilons)
    assert not len(accountant) and len(tdp.TemporalAccountant(adversary()).spend(summed)) == 7


def test_a_metric_that_puts_states_nearer_than_one_takes_no_outputs_of_several_steps():
    """Such an output may distinguish any two states by its whole epsilon."""
    noise, metric = tdp.LaplaceNoise(10.0, sensitivity=1.0, coordinates=2), [[0.0, 0.1], [0.1, 0.0]]
    epsilons = event_epsilons(3, tdp.MatrixMechanism.independent(3, noise))
    for releases in (tdp.MatrixMechanism.independent(3, noise), epsilons, epsilons.tolist(), list(epsilons)):
        with pytest.raises(tdp.InputError, match="an output about several steps may distinguish any two states"):
            tdp.temporal_leakage(tdp.Adversary(), releases, accounting=tdp.MetricPrivacy(metric))
    accountant = tdp.TemporalAccountant(tdp.Adversary(), accounting=tdp.MetricPrivacy(metric))
    with pytest.raises(tdp.InputError, match="an output about several steps"):
        accountant.spend(epsilons)
