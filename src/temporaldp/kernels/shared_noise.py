"""Sums over couplings and over tables of answers, for mechanisms whose noise is shared between steps."""

from __future__ import annotations

import math

import numpy as np

from temporaldp.kernels.compilation import kernel


@kernel
def add_gaussian_deltas(past, past_shifts, future, future_shifts, mu, epsilons, sigmas, deltas):
    """Add to ``deltas[p]`` the mean over both sides of the delta of two Gaussians at ``epsilons[p]``, with ``sigmas[p]``."""
    for p in range(epsilons.size):
        total = 0.0
        for a in range(past_shifts.shape[1]):
            for b in range(future_shifts.shape[1]):
                epsilon = epsilons[p] - past_shifts[p, a] - future_shifts[p, b]
                for x in range(mu.shape[0]):
                    for y in range(mu.shape[1]):
                        weight = past[p, a, x] * future[p, b, y]
                        if weight == 0.0:
                            continue
                        if epsilon == -math.inf:
                            total += weight
                            continue
                        distance = mu[x, y] / sigmas[p]
                        near = (epsilon / distance - 0.5 * distance) / math.sqrt(2.0)
                        value = 0.5 * math.erfc(near)
                        if epsilon < 700.0:
                            value -= 0.5 * math.exp(epsilon) * math.erfc(near + distance / math.sqrt(2.0))
                        if not value <= 0.0:
                            total += weight * (value if value <= 1.0 else 1.0)
        deltas[p] += total * (1.0 + 1e-12)


@kernel
def add_likelihoods(reports, emitted, chances, backward, forward, step, likelihoods):
    """Add to ``likelihoods[:, r, i]`` the mean over tables of the likelihoods of the reports of draw r given state i."""
    n = emitted.shape[1]
    past, future, following = np.empty(n), np.empty(n), np.empty(n)
    for r in range(reports.shape[0]):
        for table in range(chances.size):
            past[:] = 1.0
            for t in range(step):
                for x in range(n):
                    following[x] = 0.0
                    for z in range(n):
                        following[x] += backward[t, x, z] * past[z] * emitted[table, z, reports[r, t]]
                past[:] = following
            future[:] = 1.0
            for t in range(reports.shape[1] - 1, step, -1):
                for x in range(n):
                    following[x] = 0.0
                    for z in range(n):
                        following[x] += forward[t - 1, x, z] * future[z] * emitted[table, z, reports[r, t]]
                future[:] = following
            for x in range(n):
                own = chances[table] * emitted[table, x, reports[r, step]]
                likelihoods[0, r, x] += own * past[x]
                likelihoods[1, r, x] += own * future[x]
                likelihoods[2, r, x] += own * past[x] * future[x]
