"""Laplace noise on one statistic of a Markov chain: the exact leakage against the Markov Quilt Mechanism and other bounds.

The statistic changes by at most 1 when one of T states is replaced, and no state may leak more than alpha. Writes
benchmarks/recorded/one-statistic.md.  Run with:  make bench NAME=quilt
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measure import record, table

import temporaldp as tdp

ALPHA = 1.0
STEPS = 100
CHAINS = ((0.4, 0.6), (0.2, 0.8), (0.1, 0.9), (0.05, 0.95))


def two_states(enters: float, stays: float) -> tdp.Adversary:
    """A stationary chain of two states with the probabilities of 1 after 0 and after 1."""
    return tdp.Adversary.from_forward(tdp.TransitionMatrix([[1.0 - enters, enters], [1.0 - stays, stays]]))


def exact_scale(adversary: tdp.Adversary, n_steps: int) -> float:
    """The least scale b for which the event-level epsilons 1 / b leak at most alpha about any step, by bisection."""
    low, high = ALPHA / n_steps, ALPHA
    while high - low > 1e-6 * high:
        epsilon = 0.5 * (low + high)
        fits = tdp.temporal_leakage(adversary, [epsilon] * n_steps).worst <= ALPHA
        low, high = (epsilon, high) if fits else (low, epsilon)
    return 1.0 / low


def quilt_scale(adversary: tdp.Adversary, n_steps: int) -> float:
    """The scale of the Markov Quilt Mechanism over all quilts (MQMExact: Song, Wang and Chaudhuri, SIGMOD 2017, Algorithm 3).

    For each node the quilts are pairs of one node before and one after it, one node on one side, and none. The score of a quilt
    is the number of nodes that it leaves nearby over alpha less its max-influence; the scale is the largest over nodes of the
    smallest score over quilts.
    """
    sides = [influences(getattr(adversary, name).at(0).dense(), n_steps) for name in ("backward", "forward")]
    return max(_score(sides, before, n_steps - 1 - before) for before in range(n_steps))


def influences(matrix: np.ndarray, n_steps: int) -> list[np.ndarray]:
    """Largest log ratio of the distributions of the node k steps away, given two states: shape (n, n) for k = 1, 2, ..."""
    found, power = [], np.eye(len(matrix))
    for _ in range(n_steps - 1):
        power = power @ matrix
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.nanmax(np.log(power[:, None, :] / power[None, :, :]), axis=2))
    return found


def _quilts(sides: list[list[np.ndarray]], before: int, after: int) -> Iterator[tuple[int, float]]:
    """Nodes nearby, and max-influence, of each quilt of a node with so many nodes before and after it."""
    past = [(a, sides[0][a - 1]) for a in range(1, before + 1)] + [(before + 1, np.zeros_like(sides[0][0]))]
    future = [(b, sides[1][b - 1]) for b in range(1, after + 1)] + [(after + 1, np.zeros_like(sides[0][0]))]
    for a, one in past:
        for b, other in future:
            yield a + b - 1, float((one + other).max())


def _score(sides: list[list[np.ndarray]], before: int, after: int) -> float:
    """The smallest score of a node."""
    return min(near / (ALPHA - influence) for near, influence in _quilts(sides, before, after) if influence < ALPHA)


def quilt_leakage(adversary: tdp.Adversary, n_steps: int, epsilon: float) -> float:
    """Leakage of T releases of an epsilon each by quilts: what those nearby promise, and the max-influence of the rest."""
    sides = [influences(getattr(adversary, name).at(0).dense(), n_steps) for name in ("backward", "forward")]
    each = (_quilts(sides, before, n_steps - 1 - before) for before in range(n_steps))
    return max(min(near * epsilon + influence for near, influence in quilts) for quilts in each)


def ratio_leakage(adversary: tdp.Adversary, epsilon: float) -> float:
    """The bound epsilon + 4 log(max P / min P) of Bayesian differential privacy; inf for impossible transitions."""
    rows = adversary.forward.at(0).dense()
    return epsilon + 4.0 * math.log(rows.max() / rows.min()) if rows.min() > 0.0 else math.inf


def ratio_scale(adversary: tdp.Adversary) -> float:
    """The scale by that bound; inf where its second term exceeds alpha."""
    left = ALPHA - ratio_leakage(adversary, 0.0)
    return 1.0 / left if left > 0.0 else math.inf


def number(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:.4g}"


def main() -> None:
    cases = [
        (f"two states, P(1 after 0) = {enters:g}, P(1 after 1) = {stays:g}", two_states(enters, stays), STEPS)
        for enters, stays in CHAINS
    ]
    sample = tdp.load_sample()
    cases.append(("sleep stages (bundled), prior 0.5", tdp.estimate_adversary(sample, prior=0.5), sample.n_times))
    rows = []
    for name, adversary, n_steps in cases:
        exact, quilt = exact_scale(adversary, n_steps), quilt_scale(adversary, n_steps)
        others = number(n_steps / ALPHA), number(ratio_scale(adversary))
        rows.append([name, str(n_steps), number(exact), number(quilt), *others, f"{quilt / exact:.1f}"])
        print(rows[-1], flush=True)
    heads = ["chain", "T", "exact", "Markov quilts", "group privacy", "largest ratio of entries", "quilts / exact"]
    target = Path(sys.argv[1])
    record(target, f"## Laplace scale\n\n{table(heads, rows)}", "make bench NAME=quilt")
    print(f"written to {target}")


if __name__ == "__main__":
    main()
