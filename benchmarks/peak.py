"""How fast this machine takes minima and sums: the limit of a pass over all pairs, in the same instructions.

An entry is one minimum and one addition. The limit is measured where nothing else can hold it up: every number comes from the
first-level cache and serves eight entries.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from temporaldp.kernels.screening import minimum_sums as lazy_minimum_sums

minimum_sums = lazy_minimum_sums.compiled

LENGTH, REPEATS = 1024, 20_000


@numba.njit(nogil=True, cache=True)
def _minima(a, b, out, repeats):
    b0, b1, b2, b3, b4, b5, b6, b7 = b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]
    for _ in range(repeats):
        for i in range(a.size):
            x = a[i]
            left = ((x if x < b0 else b0) + (x if x < b1 else b1)) + ((x if x < b2 else b2) + (x if x < b3 else b3))
            right = ((x if x < b4 else b4) + (x if x < b5 else b5)) + ((x if x < b6 else b6) + (x if x < b7 else b7))
            out[i] += left + right
        b0 += out[0]  # so that no two rounds are the same


@numba.njit(nogil=True, cache=True)
def _pass(a, b, first, last, zero, out):
    for t in range(first, last, 4):
        minimum_sums(a, 0, a.shape[0], b, t, zero, out)


def limit(kind: type, threads: int) -> float:
    """Entries per nanosecond of all threads together, the best of five."""
    a, b = np.random.default_rng(0).random(LENGTH).astype(kind), np.linspace(0.1, 0.9, 8).astype(kind)
    outs = [np.zeros(LENGTH, kind) for _ in range(threads)]
    _minima(a, b, outs[0], 1)
    entries = LENGTH * REPEATS * 8 * threads
    return entries / min(_together([(_minima, a, b, out, REPEATS) for out in outs]) for _ in range(5)) / 1e9


def one_pass(n: int, kind: type, threads: int) -> float:
    """Seconds of one pass over the n^3 entries of all pairs, the median of five (of one beyond n = 1000): the package's kernel and nothing else."""
    padded = -(-n // 16) * 16
    a = np.random.default_rng(0).random((padded, padded)).astype(kind)
    out = np.zeros((padded, padded), kind)
    bounds = [padded * k // threads // 4 * 4 for k in range(threads)] + [padded]
    calls = [(_pass, a, a, bounds[k], bounds[k + 1], kind(0), out) for k in range(threads)]
    _together(calls)
    return float(np.median([_together(calls) for _ in range(5 if n <= 1000 else 1)])) * (n / padded) ** 3


def _together(calls: list[tuple]) -> float:
    with ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(lambda _: None, calls))  # the threads exist before the clock starts
        started = time.perf_counter()
        list(pool.map(lambda call: call[0](*call[1:]), calls))
        return time.perf_counter() - started
