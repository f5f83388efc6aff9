"""Oracles that share no code with the package: sums over all paths, and over all tables of answers, one by one."""

import itertools
import math

import numpy as np


def path_probabilities(backward, forward, n, n_steps, step, state):
    """{path: probability given the state at a step}."""
    found = {}
    for path in itertools.product(range(n), repeat=n_steps):
        if path[step] != state:
            continue
        chance = 1.0
        for t in range(step, 0, -1):
            chance *= backward[path[t], path[t - 1]]
        for t in range(step, n_steps - 1):
            chance *= forward[path[t], path[t + 1]]
        if chance > 0.0:
            found[path] = chance
    return found


def drawn_ratios(strategy, sigma, backward, forward, step, i, j, draws, rng):
    """Log likelihood ratios of i and j for outputs of ``C x + noise`` that are drawn given i."""
    n, n_steps = len(backward), strategy.shape[1]
    given = [path_probabilities(backward, forward, n, n_steps, step, state) for state in (i, j)]
    paths = list(given[0])
    chosen = rng.choice(len(paths), size=draws, p=np.array(list(given[0].values())) / sum(given[0].values()))
    means = {path: (strategy @ np.eye(n)[list(path)]).ravel() for one in given for path in one}
    outputs = np.array([means[path] for path in paths])[chosen]
    outputs = outputs + sigma * rng.standard_normal(outputs.shape)
    likelihoods = []
    for one in given:
        total = np.full(draws, -np.inf)
        for path, chance in one.items():
            total = np.logaddexp(total, math.log(chance) - ((outputs - means[path]) ** 2).sum(axis=1) / (2 * sigma**2))
        likelihoods.append(total)
    return likelihoods[0] - likelihoods[1]


def report_likelihoods(permanent, instantaneous, backward, forward, n_steps, step):
    """{reports: likelihood given each state at a step}, summed over all tables and paths."""
    n, g = permanent.shape
    found = {}
    for reports in itertools.product(range(instantaneous.shape[1]), repeat=n_steps):
        likelihoods = np.zeros(n)
        for state in range(n):
            for path, chance in path_probabilities(backward, forward, n, n_steps, step, state).items():
                for table in itertools.product(range(g), repeat=n):
                    both = chance * math.prod(permanent[x, table[x]] for x in range(n))
                    likelihoods[state] += both * math.prod(
                        instantaneous[table[x], y] for x, y in zip(path, reports, strict=True)
                    )
        found[reports] = likelihoods
    return found
