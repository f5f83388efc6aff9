"""How often plans exceed their level for the population that the history is a sample of: first order alone, and the default.

Populations of second order, semi-Markov, and with a clock, of 2 to 5 states; a history of 500 people; a plan at level 1. The
leakage of the plan is computed for the true population: what observations attain, so that no bound counts as an excess.

    python benchmarks/model_choice.py [POPULATIONS [FIRST]]
"""

import sys
import time

import numpy as np

from temporaldp import Adversary, Trajectories, estimate_models, plan_budget, temporal_leakage
from temporaldp.core.correlation import Periodic, TransitionMatrix
from temporaldp.core.correlation.lifted_chain import HiddenStates, hidden_words, stationary_chain
from temporaldp.lab.studies.refinements import chosen_models

PEOPLE, TIMES, STEPS, PERIOD, LEVEL = 500, 48, 12, 8, 1.0
KINDS = "second order", "semi-Markov", "clock"


def rows(rng, *shape):
    """Random rows in which a state is mostly kept."""
    found = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    own = np.eye(shape[-1])
    return (1.0 - (stay := rng.uniform(0.2, 0.8, size=(*shape[:-1], 1)))) * found + stay * own


def second_order(rng, n):
    """A chain of order 2, and people who follow it."""
    table = rows(rng, n, n, n)
    states = tuple(map(str, range(n)))
    chain = stationary_chain(states, hidden_words(states, 2), table.reshape(-1, n))
    start = rng.choice(n * n, size=PEOPLE, p=chain.forward.stationary_distribution())
    codes = np.empty((PEOPLE, TIMES), np.int64)
    codes[:, 0], codes[:, 1] = np.divmod(start, n)
    for t in range(2, TIMES):
        codes[:, t] = drawn(rng, table[codes[:, t - 2], codes[:, t - 1]])
    return chain.adversary, codes


def semi_markov(rng, n, oldest=8):
    """A state is left with a probability that depends on its age, up to 8 steps; the next one depends on it alone."""
    kept = rng.uniform(0.1, 0.9, size=(n, oldest))
    following = rng.dirichlet(np.ones(n), size=n) * (1.0 - np.eye(n))
    following /= following.sum(axis=1, keepdims=True)
    labels, ages = np.divmod(np.arange(n * oldest), oldest)
    table = (1.0 - kept.reshape(-1, 1)) * following[labels]
    table[np.arange(n * oldest), labels] = kept.reshape(-1)
    stays = labels * oldest + np.minimum(ages + 1, oldest - 1)
    after = np.where(labels[:, None] == np.arange(n), stays[:, None], np.arange(n) * oldest)
    names = [f"{k}, {a + 1}" for k, a in zip(labels, ages, strict=True)]
    chain = stationary_chain(tuple(map(str, range(n))), HiddenStates(labels, after, names, "age"), table)
    hidden = chain.labels, chain.forward.dense()
    at = rng.choice(len(hidden[0]), size=PEOPLE, p=chain.forward.stationary_distribution())
    codes = np.empty((PEOPLE, TIMES), np.int64)
    for t in range(TIMES):
        codes[:, t] = hidden[0][at]
        at = drawn(rng, hidden[1][at])
    return chain.adversary, codes


def clock(rng, n):
    """A matrix for each of eight phases."""
    each = [TransitionMatrix(rows(rng, n, n)) for _ in range(PERIOD)]
    adversary = Adversary.from_forward(Periodic(each))
    cycle = np.linalg.multi_dot([one.dense() for one in each])
    start = np.linalg.matrix_power(cycle, 200)[0]
    codes = np.empty((PEOPLE, TIMES), np.int64)
    codes[:, 0] = rng.choice(n, size=PEOPLE, p=start / start.sum())
    for t in range(1, TIMES):
        codes[:, t] = drawn(rng, each[(t - 1) % PERIOD].dense()[codes[:, t - 1]])
    return adversary, codes


def drawn(rng, shares):
    """One state from each row."""
    return (rng.random((len(shares), 1)) > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)


def leaked(adversary, plan):
    """What observations attain of the leakage of a plan."""
    found = temporal_leakage(adversary, plan.epsilons)
    return found.worst if found.attained is None else float(found.attained.temporal.max())


def main(n_populations=200, first=0):
    """Print a line for each population, and the shares that exceed the level."""
    makers = dict(zip(KINDS, (second_order, semi_markov, clock), strict=True))
    exceeded = {"first order": [], "default": []}
    for number in range(first, first + n_populations):
        rng = np.random.default_rng([2018, number])
        kind, n = KINDS[number % 3], int(rng.integers(2, 6))
        adversary, codes = makers[kind](rng, n)
        history = Trajectories(codes, states=range(n))
        began = time.process_time()
        choice = chosen_models(history, period=PERIOD)
        plans = {
            "first order": plan_budget(estimate_models(history), LEVEL, horizon=STEPS),
            "default": plan_budget(estimate_models(history, choice.models, period=PERIOD), LEVEL, horizon=STEPS),
        }
        each = {name: leaked(adversary, plan) for name, plan in plans.items()}
        for name, leakage in each.items():
            exceeded[name].append(leakage > LEVEL * (1.0 + 1e-9))
        noise = " / ".join(f"{plan.mean_absolute_noise:.2f}" for plan in plans.values())
        found = ", ".join(f"{name} {leakage:.4f}" for name, leakage in each.items())
        print(
            f"{number} {kind}, {n} states, {'+'.join(choice.models)}: {found}; noise {noise}; {time.process_time() - began:.1f} s",
            flush=True,
        )
    for name, above in exceeded.items():
        print(f"{name}: {np.mean(above):.1%} of {len(above)} populations above the level")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
