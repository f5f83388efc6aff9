"""The attack on a release: exact likelihoods, and the whole product never gives away more than it guarantees."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest

from command import temporaldp
from temporaldp import (
    Adversary,
    ApproximateDP,
    InputError,
    Trajectories,
    TransitionMatrix,
    plan_budget,
    plan_noise,
    release_histograms,
    save_released,
)
from temporaldp.lab.studies import attack_release
from temporaldp.lab.studies.release_attack import evidence_against, of_all_releases, of_one_release

WALK = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]], ["home", "work"])
BOTH = Adversary(WALK, WALK)
STEPS = 3


def people(rng, count=60):
    """Who moves as WALK says, for which every value is as likely as the other at every step."""
    codes = rng.integers(2, size=(count, 1))
    for _ in range(STEPS - 1):
        codes = np.hstack((codes, codes[:, -1:] ^ (rng.random((count, 1)) < 0.2)))
    return Trajectories(codes, states=WALK.states)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_likelihoods_equal_sums_over_all_paths(noise):
    rng = np.random.default_rng(1)
    back, on = (rng.dirichlet(np.ones(3), 3) for _ in range(2))
    adversary = Adversary(TransitionMatrix(back), TransitionMatrix(on))
    scales, drawn = np.array([2.0, math.inf, 3.0, 1.5]), rng.integers(-4, 5, (4, 3)).astype(float)
    codes = np.array([[0, 2, 1, -1]])

    def density(t, value):
        if codes[0, t] < 0 or np.isinf(scales[t]):
            return 1.0
        rest = drawn[t] + np.eye(3)[codes[0, t]] - np.eye(3)[value]
        return float(
            np.exp(-(np.abs(rest) / scales[t] if noise == "laplace" else rest**2 / (2 * scales[t] ** 2)).sum())
        )

    found = of_all_releases(adversary, codes, of_one_release(noise, scales, drawn))[:, 0]
    for t in range(4):
        true = np.zeros(3)
        for path in itertools.product(range(3), repeat=4):
            chance = math.prod(back[path[s + 1], path[s]] for s in range(t))
            chance *= math.prod(on[path[s], path[s + 1]] for s in range(t, 3))
            true[path[t]] += chance * math.prod(density(s, path[s]) for s in range(4))
        assert found[t] - found[t, 0] == pytest.approx(np.log(true / true[0]), abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_attack_stays_within_the_guarantee_and_exceeds_a_smaller_one(delta):
    """People, plan, OpenDP's noise and attack, fifty times; the threshold is exceeded by chance once in a thousand."""
    made = {"alpha": 3.0, "horizon": STEPS}
    plan = plan_noise(BOTH, **made, accounting=ApproximateDP(delta)) if delta else plan_budget(BOTH, **made)
    rng = np.random.default_rng(3)
    rates = []
    for _ in range(50):
        walks = people(rng)
        found = attack_release(walks, release_histograms(walks, plan), BOTH, repeats=0)
        assert found.epsilon <= 3.0 and found.delta == delta
        rates.append((found.false_positives, found.true_positives))
    assert evidence_against(3.0, delta, np.array(rates)) < 1000.0
    assert evidence_against(0.15, delta, np.array(rates)) > 100.0  # the noise is new each time


def test_insufficient_noise_is_detected():
    walks = people(np.random.default_rng(4))
    released = release_histograms(walks, plan_budget(BOTH, alpha=3.0, horizon=STEPS))
    found = attack_release(walks, released, BOTH, repeats=40)
    assert not found.exceeds and "not exceeded" in found.sentences[-1]
    assert 0.5 <= found.right <= 1.0 and found.most_right == pytest.approx(1.0 / (1.0 + math.exp(-found.epsilon)))
    assert found.allowed([0.0, 0.05, 1.0]) == pytest.approx([0.0, 1.0 - math.exp(-found.epsilon) * 0.95, 1.0])
    assert (np.diff(found.true_positives) <= 0.0).all() and found.recognised(1.0) == 1.0
    # The budgets that are said to be spent are a tenth of those that the noise is for.
    less = dataclasses.replace(released, epsilons=released.epsilons / 10.0)
    told = attack_release(walks, less, BOTH, repeats=40)
    assert told.exceeds and "is exceeded" in told.sentences[-1]


@pytest.mark.long
def test_command_draws_writes_and_reports(tmp_path):
    walks = people(np.random.default_rng(5))
    released = release_histograms(walks, plan_budget(BOTH, alpha=1.0, horizon=STEPS))
    save_released(released, tmp_path / "r.csv")
    traces = tmp_path / "traces.csv"
    rows = [f"{u},{t},{WALK.states[c]}" for u, row in enumerate(walks.codes) for t, c in enumerate(row)]
    traces.write_text("user,time,state\n" + "\n".join(rows) + "\n")
    asked = (
        "attack",
        traces,
        "--released",
        tmp_path / "r.csv",
        "--set",
        "correlation.prior=1",
        "--set",
        "study.repeats=10",
    )
    done = temporaldp(*asked, "--figure", tmp_path / "a.png")
    assert done.returncode == 0, done.stderr
    assert "Guessing is right in 50 %" in done.stdout and (tmp_path / "a.png").stat().st_size > 10_000
    told = json.loads(temporaldp(*asked, "--json").stdout)
    assert not told["exceeds"] and len(told["allowed"]) == len(told["true_positives"])


def test_invalid_arguments_are_refused():
    walks = people(np.random.default_rng(6))
    released = release_histograms(walks, plan_budget(BOTH, alpha=1.0, horizon=STEPS))
    with pytest.raises(InputError, match="every released time"):
        attack_release(walks, dataclasses.replace(released, times=("0", "1", "9")), BOTH)
    with pytest.raises(InputError, match="no two people can be distinguished"):
        attack_release(Trajectories(np.zeros((4, STEPS), np.int64), states=WALK.states), released, BOTH)
    with pytest.raises(InputError, match="every user"):
        attack_release(walks, released, {"Ann": BOTH, "Bo": BOTH})
    with pytest.raises(InputError, match="every user"):
        attack_release(walks, released, {"Ann": BOTH})
