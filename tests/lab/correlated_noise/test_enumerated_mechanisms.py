"""Mechanisms with memory against the bound by event-level epsilons, every path and every output of them enumerated.

A mechanism is the array ``q[path, output]``. Its event-level epsilons are the largest log ratios over neighbouring paths, and
what it reveals of a step is summed over all paths of a chain, by its forward matrices and first distribution. The package
gives the bound, and the epsilons that it claims for the mechanism; all else is computed here.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import temporaldp as tdp

SIZES = [(2, 3), (2, 4), (2, 5), (3, 3), (3, 4), (3, 5)]
"""States and steps."""

SEEDS = [range(18), pytest.param(range(18, 120), marks=pytest.mark.long)]
"""A mechanism of each family for each seed."""


def all_paths(n, n_steps):
    return np.array(list(itertools.product(range(n), repeat=n_steps)))


def random_chain(rng, n, n_steps):
    """Forward matrices and the first distribution: loose or sticky, constant or varying, some with impossible transitions."""
    while True:
        shape = (n_steps - 1 if rng.random() < 0.5 else 1, n)
        forward = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 3.0])), size=shape)
        moving = rng.choice([1.0, 0.2, 0.05])
        forward = moving * forward + (1.0 - moving) * np.eye(n)
        if rng.random() < 0.3:
            forward[:, rng.integers(n), rng.integers(n)] = 0.0
        forward /= forward.sum(axis=2, keepdims=True)
        forward = np.broadcast_to(forward, (n_steps - 1, n, n))
        marginals = [rng.dirichlet(np.ones(n))]
        for matrix in forward:
            marginals.append(marginals[-1] @ matrix)
        if np.min(marginals) > 1e-6:
            return forward, marginals[0]


def adversary(forward, initial):
    known = forward[0] if (forward == forward[0]).all() else list(forward)
    return tdp.Adversary.from_forward(known, initial=initial, horizon=len(forward) + 1)


def event_level(q, n, n_steps):
    """The largest log ratio of two probabilities of one output, for paths that differ at one step alone: shape (T,)."""
    logs = np.log(q).reshape(*(n,) * n_steps, -1)
    return np.array([np.ptp(logs, axis=s).max() for s in range(n_steps)])


def leakage(q, paths, forward, initial):
    """The largest log likelihood ratio of two states at a step over all outputs: shape (T,)."""
    chances = initial[paths[:, 0]]
    for s, matrix in enumerate(forward):
        chances = chances * matrix[paths[:, s], paths[:, s + 1]]
    found = []
    for at in paths.T:
        of_state = (at == np.arange(len(initial))[:, None]) * chances
        logs = np.log(of_state @ q / of_state.sum(axis=1, keepdims=True))
        found.append(np.ptp(logs, axis=0).max())
    return np.array(found)


def together(parts):
    """Probabilities of independent outputs together; those of the first change slowest."""
    whole = np.ones((len(parts[0]), 1))
    for part in parts:
        whole = (whole[:, :, None] * part[:, None, :]).reshape(len(whole), -1)
    return whole


def response(n, epsilon):
    """Randomised response."""
    weights = np.exp(epsilon * np.eye(n))
    return weights / weights.sum(axis=1, keepdims=True)


def geometric(most, epsilon):
    """A count from 0 to `most` with two-sided geometric noise, cut at both ends."""
    ratio, counts = math.exp(-epsilon), np.arange(most + 1)
    table = ratio ** abs(counts[:, None] - counts)
    table[:, 1:-1] *= 1.0 - ratio
    return table / (1.0 + ratio)


def random_table(rng, n, m):
    weights = np.exp(rng.uniform(0.0, rng.choice([0.3, 1.0, 2.0]), size=(n, m)))
    return weights / weights.sum(axis=1, keepdims=True)


def window_outputs(hits, length, every, partial, table):
    ends = [end for end in range(every, hits.shape[1] + 1, every) if partial or end >= length]
    return [table[hits[:, max(end - length, 0) : end].sum(axis=1)] for end in ends]


def rolling_windows(rng, n, paths):
    """How often a person was at one place, in windows: with geometric noise, by a coin, or by any table."""
    n_steps, hits = paths.shape[1], paths == rng.integers(n)
    length, every, partial = int(rng.integers(1, 4)), int(rng.integers(1, 3)), bool(rng.random() < 0.7)
    kind, epsilon = rng.integers(3), float(rng.uniform(0.1, 1.0))
    if kind == 0:
        table = geometric(length, epsilon)
    elif kind == 1:
        table = response(2, epsilon)[(np.arange(length + 1) >= rng.integers(1, length + 1)).astype(int)]
    else:
        table = random_table(rng, length + 1, 3)
        epsilon = float(abs(np.diff(np.log(table), axis=0)).max())
    outputs = window_outputs(hits, length, every, partial, table)
    claimed = [tdp.Windows(length, epsilon, every=every, partial=partial)]
    if n_steps == 3:  # a report of the state itself at every step, too
        own = float(rng.uniform(0.1, 1.0))
        outputs += [response(n, own)[at] for at in paths.T]
        claimed.append(tdp.RandomizedResponse(own, n_states=n))
    return together(outputs), claimed


def binary_trees(rng, n, paths):
    """Counts of 1, 2 and 4 steps, noise drawn once for each: all of them, or the running counts that they add up to."""
    n_steps, hits = paths.shape[1], paths == rng.integers(n)
    widths = [width for width in (1, 2, 4) if width <= n_steps]
    claimed = [tdp.Windows(width, float(rng.uniform(0.05, 0.6)), every=width) for width in widths]
    nodes = [(width, end) for width in widths for end in range(width, n_steps + 1, width)]
    outputs = [
        output
        for one in claimed
        for output in window_outputs(hits, one.length, one.every, True, geometric(one.length, one.epsilon))
    ]
    q = together(outputs)
    if rng.random() < 0.5:
        return q, claimed
    used = np.zeros((len(nodes), n_steps), dtype=int)
    for end in range(1, n_steps + 1):
        at = end
        while at:
            width = max(width for width in widths if at % width == 0)
            used[nodes.index((width, at)), end - 1] = 1
            at -= width
    values = np.array(list(itertools.product(*(range(width + 1) for width, _ in nodes))))
    _, group = np.unique(values @ used, axis=0, return_inverse=True)
    merged = np.zeros((group.max() + 1, len(q)))
    np.add.at(merged, group.ravel(), q.T)
    return merged.T, claimed


def memoised_answers(rng, n, paths):
    """An answer is stored for each state; each report is a second randomisation of the stored answer."""
    answers, epsilon = int(rng.integers(2, 4)), float(rng.uniform(0.2, 1.5))
    permanent = response(n, float(rng.uniform(0.5, 5.0))) if answers == n else random_table(rng, n, answers)
    if rng.random() < 0.5:
        second, claimed = response(answers, epsilon), tdp.RandomizedResponse(epsilon, n_states=answers)
    else:
        second = random_table(rng, answers, int(rng.integers(2, 4)))
        claimed = tdp.OutputTable(second)
    q = 0.0
    for stored in itertools.product(range(answers), repeat=n):
        chance = math.prod(permanent[state, answer] for state, answer in enumerate(stored))
        q = q + chance * together([second[np.array(stored)[at]] for at in paths.T])
    return q, [claimed]


def adaptive_mechanisms(rng, n, paths):
    """Each step's randomisation depends on all earlier outputs, and sometimes on the state before."""
    q, kind, epsilons = np.ones((len(paths), 1)), rng.integers(3), rng.uniform(0.2, 1.2, paths.shape[1])
    for s, at in enumerate(paths.T):
        seen = at + n * paths[:, s - 1] if kind == 2 and s else at
        if kind == 0:
            tables = [response(n, epsilons[s] * share) for share in rng.choice([0.3, 1.0], q.shape[1])]
        else:
            tables = [random_table(rng, n * n if kind == 2 else n, 2) for _ in range(q.shape[1])]
        q = (q[:, :, None] * np.stack([table[seen] for table in tables], axis=1)).reshape(len(paths), -1)
    return q, [epsilons] if kind == 0 else None


def lipschitz_functions(rng, n, paths):
    """Likelihoods that fall with the distance from random paths, as fast as their epsilons allow; one output has the rest."""
    epsilons = rng.uniform(0.1, 1.2, paths.shape[1])
    apart = (paths[:, None] != paths) @ epsilons
    columns = []
    for _ in range(6):
        centres = rng.choice(len(paths), size=rng.integers(1, 4 if rng.random() < 0.5 else len(paths)), replace=False)
        heights = rng.uniform(0.0, rng.choice([0.0, epsilons.sum()]), size=len(centres))
        columns.append(np.exp(-(apart[:, centres] + heights).min(axis=1)))
    q = np.array(columns).T
    q *= 0.2 / q.sum(axis=1).max()
    return np.column_stack((q, 1.0 - q.sum(axis=1))), [epsilons]


def one_statistic(rng, n, paths):
    """One number about the whole path, with geometric noise."""
    n_steps, hits = paths.shape[1], paths == rng.integers(n)
    epsilon, kind = float(rng.uniform(0.1, 1.5)), rng.integers(5)
    steps, changes = np.arange(1, n_steps + 1), (np.diff(paths, axis=1) != 0).sum(axis=1)
    runs = [max(len(list(run)) * hit for hit, run in itertools.groupby(row)) for row in hits.tolist()]
    values = [hits.sum(axis=1), changes, runs, (hits * steps).max(axis=1), rng.integers(n_steps + 1, size=len(paths))]
    claimed = [tdp.Windows(n_steps, epsilon, every=n_steps)] if kind == 0 else None
    return geometric(n_steps, epsilon)[np.array(values[kind])], claimed


def correlated_additions(rng, n, paths):
    """The state plus noise, modulo n: the noise of all steps has one distribution, of a chain or any."""
    n_steps = paths.shape[1]
    if rng.random() < 0.5:
        law = np.exp(rng.uniform(0.0, rng.choice([0.5, 1.5]), size=len(paths)))
    else:
        moves, law = (
            response(n, float(rng.uniform(0.5, 2.0))),
            response(n, float(rng.uniform(0.2, 1.0)))[0][paths[:, 0]],
        )
        for s in range(n_steps - 1):
            law = law * moves[paths[:, s], paths[:, s + 1]]
    noise = (paths[None] - paths[:, None]) % n  # of each output, for each path
    return (law / law.sum())[noise @ n ** np.arange(n_steps)[::-1]], None


FAMILIES = {
    rolling_windows: 0.99,
    binary_trees: 0.99,
    memoised_answers: 0.95,
    adaptive_mechanisms: 0.99,
    lipschitz_functions: 0.99,
    one_statistic: 0.99,
    correlated_additions: 0.5,
}
"""The share of the bound that the tightest mechanism exceeds, where the correlation raises the bound by half or more."""


def ids(seeds):
    return f"seeds {seeds[0]} to {seeds[-1]}" if isinstance(seeds, range) else seeds.__name__


@pytest.mark.long
@pytest.mark.parametrize("seeds", SEEDS, ids=ids)
@pytest.mark.parametrize("family", FAMILIES, ids=ids)
def test_no_mechanism_leaks_more_than_the_bound_by_its_event_level(family, seeds):
    tightest = 0.0
    for seed in seeds:
        rng = np.random.default_rng([list(FAMILIES).index(family), seed])
        n, n_steps = SIZES[seed % len(SIZES)]
        paths, chain = all_paths(n, n_steps), random_chain(rng, n, n_steps)
        q, claimed = family(rng, n, paths)
        np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)
        epsilons, leaked = event_level(q, n, n_steps), leakage(q, paths, *chain)
        bound = tdp.temporal_leakage(adversary(*chain), epsilons, accounting=tdp.Exact()).temporal
        assert (leaked <= bound + 1e-9).all(), (seed, leaked - bound)
        if claimed is not None:
            stated = tdp.event_epsilons(n_steps, *claimed)
            assert (epsilons <= stated + 1e-12).all(), (seed, epsilons - stated)
        raised = bound > 1.5 * epsilons
        tightest = max(tightest, (leaked[raised] / bound[raised]).max(initial=0.0))
    assert tightest > FAMILIES[family]


def matched_noise(n, at, epsilon):
    """A set of states, e^epsilon times as likely if it contains the state: of two states, randomised response."""
    sets = np.array(list(itertools.product((0, 1), repeat=n))[1:-1])
    weights = np.exp(epsilon * sets.T)
    return (weights / weights.sum(axis=1, keepdims=True))[at]


@pytest.mark.parametrize("seeds", SEEDS, ids=ids)
def test_noise_drawn_anew_at_each_step_attains_the_bound(seeds):
    for seed in seeds:
        rng = np.random.default_rng([len(FAMILIES), seed])
        n, n_steps = [*SIZES[:-1], (4, 3)][seed % len(SIZES)]
        paths, chain = all_paths(n, n_steps), random_chain(rng, n, n_steps)
        epsilons = rng.uniform(0.1, 1.5, n_steps) * (rng.random(n_steps) < 0.8)
        q = together([matched_noise(n, *each) for each in zip(paths.T, epsilons, strict=True)])
        np.testing.assert_allclose(event_level(q, n, n_steps), epsilons, rtol=0.0, atol=1e-12)
        bound = tdp.temporal_leakage(adversary(*chain), epsilons, accounting=tdp.Exact()).temporal
        np.testing.assert_allclose(leakage(q, paths, *chain), bound, rtol=0.0, atol=1e-9, err_msg=f"seed {seed}")


def test_an_epsilon_of_each_output_alone_is_not_enough():
    """The oracle finds a violation: one coin hides the states of all steps, so their differences are nearly open."""
    forward, initial, n_steps = np.array([[[0.9, 0.1], [0.2, 0.8]]] * 2), np.array([0.5, 0.5]), 3
    paths, hardly = all_paths(2, n_steps), 6.0
    q = sum(
        chance * together([response(2, hardly)[(at + coin) % 2] for at in paths.T])
        for coin, chance in enumerate(response(2, 0.1)[0])
    )
    alone = response(2, 0.1) @ response(2, hardly)
    own, known = np.full(n_steps, math.log(alone[0, 0] / alone[1, 0])), adversary(forward, initial)
    leaked, epsilons = leakage(q, paths, forward, initial), event_level(q, 2, n_steps)
    assert (leaked > 1.5 * tdp.temporal_leakage(known, own).temporal).all()
    assert (leaked <= tdp.temporal_leakage(known, epsilons).temporal + 1e-9).all()
    assert epsilons.min() > 5.0
