"""Screens: all pairs of rows at every slope, to find those that can matter between which slopes.

Notation
--------
h         slope g - 1; theta(1 + h) is convex in h, and so is the divergence E_(1 + h) of each pair
line      v(h) = x - h d of one set of one pair, a lower bound of theta; a tangent is the best known line at a slope
i, j      rows q and d; in the dense screen all rows q, a panel that fits in the cache at a time, against a band of rows d
low, reach    smallest entry of each column, and the largest entry minus that
scale     a power of two that brings the largest reach into [1/2, 1)
a         (P - low) scale, float32, padded with zeros to whole tiles and registers: in [0, reach]
at        a by columns, in panels that lie together in memory: at[p, k, r] = a[p W + r, k], W rows a panel
total     for each row the sum of a, raised by the rounding of that row's screened divergence: one `U` per addition in
          whatever order, one for each rounding of an entry of a and of b, and `TINY` for each entry
b         min(d_k - low_k + h d_k, reach_k), so that E_(1 + h)(q || d) = sum a - sum min(a, b)
open      the columns with b < reach_k: at steep slopes few are, and only they count in sum max(a - b, 0)
heavy     columns of a sparse matrix with many entries, kept as dense vectors; the others are light

Between two slopes a pair's divergence lies below its chord. If that lies below both tangents at the slopes, and below the
point where the tangents cross, then it lies below them in between, and the pair adds nothing to the profile there.

The dense screen works in single precision, and every value is raised by a bound of its rounding, so that no pair is dropped
wrongly: rounding of a and b, one U per addition in whatever order, and what single precision cannot hold near 0. Two operations
an entry (minimum and sum) instead of three, and differences between rows, not their size, set the scale: nearly equal rows are
no special case. The sparse screen takes one row q and all rows d at once, through the columns that q is not zero in:
E_g(q || d) = q(light) + sum over heavy k of max((q_k - d_k) - h d_k, 0) + sum over light k that both have of
[max((q_k - d_k) - h d_k, 0) - q_k]. It works in double precision, so that pairs which tie with a tangent are told from pairs
above it; the light part is raised by two ulps for every entry, as its parts are taken away again, and what is left may be as
small as their rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporaldp.kernels.compilation import kernel, summing_kernel
from temporaldp.kernels.pairs import longer
from temporaldp.values import ULP

FloatArray = NDArray[np.float64]

U = 2.0**-24
"""Half an ulp of single precision: the largest relative error of one rounding."""

TINY = 1.5e-38
"""Above the smallest normal number of single precision: what an entry below it can lose altogether."""

LANES = 16
"""Columns are padded to a multiple of this: the width of the widest registers, in single precision."""

TILE = 4
"""Rows q times rows d of a tile: 16 sums fit in the registers."""

PANEL = 1 << 17
"""Entries that fit beside others in a second-level cache: 512 KiB of one of 1 MiB."""

CHUNK = 1024
"""Columns of a panel worked on at a time where there are more."""

STRIP = 16
"""Rows transposed at a time: one cache line of the transpose."""

SPARSER = 0.7
"""Share of open columns below which their list is walked instead of all columns: that costs 1.4 times as much an entry."""


WIDE = 512
"""Columns from which rows d are taken in bands of several tiles, so that a panel of rows q is loaded once for all of them."""

BAND = 32

CANCELLED = 16.0 * ULP
"""Times x, what the level of a crossing is lowered by: it is a difference of rounded terms of that size."""


@dataclass(frozen=True, slots=True, eq=False)
class Tangents:
    """Thresholds for a screen at slopes in rising order, each of shape (s,).

    ``ends[k]`` is a level of theta at slope k. Where the tangents of slopes k and k + 1 cross, the chord weighs the value at
    slope k by ``shares[k]``, and both tangents are at ``levels[k]`` or above; -1 where there is nothing to test.
    """

    slopes: FloatArray
    ends: FloatArray
    shares: FloatArray
    levels: FloatArray

    @classmethod
    def at(cls, slope: float, level: float) -> Tangents:
        """One slope, no chord."""
        return cls(np.array([slope]), np.array([level]), np.zeros(1), np.full(1, -1.0))

    @classmethod
    def of_lines(cls, slopes: FloatArray, d: FloatArray, x: FloatArray, ends: FloatArray) -> Tangents:
        """The tangent (d, x) at each slope, with its level there, summed without cancellation.

        A chord is tested where neighbouring tangents cross, or at the end next to that, against no more than either of them.
        """
        shares, levels = np.zeros(slopes.size), np.full(slopes.size, -1.0)
        run, rise, left, right = d[:-1] - d[1:], x[:-1] - x[1:], slopes[:-1], slopes[1:]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            meet = np.where(run > 0.0, rise / run, right)
        meet = np.clip(meet, left, right)
        shares[:-1] = (right - meet) / (right - left)
        lower = np.minimum(x[:-1] - meet * d[:-1], x[1:] - meet * d[1:]) - CANCELLED * np.maximum(x[:-1], x[1:])
        apart = (run != 0.0) | (rise != 0.0)  # one line at both ends: the ends are enough
        levels[:-1][apart] = np.maximum(lower[apart], 0.0)
        return cls(slopes, np.maximum(ends, 0.0), shares, levels)

    def scaled(self, factor: float) -> Tangents:
        """The same with every level multiplied by `factor`."""
        return Tangents(
            self.slopes, self.ends * factor, self.shares, np.where(self.levels < 0.0, -1.0, self.levels * factor)
        )


@kernel
def tabulate(dense):
    """The table ``(a, at, dense, low, reach, total, scale)`` of a square matrix."""
    n = dense.shape[0]
    low, high = dense[0].copy(), dense[0].copy()
    for i in range(1, n):
        row = dense[i]
        for k in range(n):
            low[k], high[k] = min(low[k], row[k]), max(high[k], row[k])
    reach = high - low
    widest = reach.max()
    scale = 2.0 ** -np.floor(np.log2(widest) + 1.0) if widest > 0.0 else 1.0
    reach *= scale
    width, height = -(-n // LANES) * LANES, -(-n // TILE) * TILE
    rows = min(-(-n // LANES) * LANES, PANEL // min(width, CHUNK) // LANES * LANES)
    a, at = np.zeros((height, width), np.float32), np.zeros((-(-n // rows), width, rows), np.float32)
    total = np.zeros(height, np.float32)
    raised = (1.0 + (width + 12) * U) * (1.0 + 4.0 * U)
    for first in range(0, n, STRIP):
        last = min(n, first + STRIP)
        for i in range(first, last):
            row, out = dense[i], a[i]
            for k in range(n):
                out[k] = np.float32((row[k] - low[k]) * scale)
            total[i] = np.float32(out.astype(np.float64).sum() * raised + width * TINY)
        for k in range(n):
            for i in range(first, last):
                at[i // rows, k, i % rows] = a[i, k]
    return a, at, dense, low, reach, total, scale


@summing_kernel
def minimum_sums(a, first, last, b, t, zero, out):
    """``out[u, i] = sum_k min(a[i, k], b[u, k])`` for the TILE rows u from t on, and the whole tiles first .. last - 1 of a."""
    b0, b1, b2, b3 = b[t], b[t + 1], b[t + 2], b[t + 3]
    o0, o1, o2, o3 = out[t], out[t + 1], out[t + 2], out[t + 3]
    for i in range(first, last, 4):
        a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
        s00, s01, s02, s03 = zero, zero, zero, zero
        s10, s11, s12, s13 = zero, zero, zero, zero
        s20, s21, s22, s23 = zero, zero, zero, zero
        s30, s31, s32, s33 = zero, zero, zero, zero
        for k in range(a.shape[1]):
            p0, p1, p2, p3 = a0[k], a1[k], a2[k], a3[k]
            r = b0[k]
            s00 += p0 if p0 < r else r
            s01 += p1 if p1 < r else r
            s02 += p2 if p2 < r else r
            s03 += p3 if p3 < r else r
            r = b1[k]
            s10 += p0 if p0 < r else r
            s11 += p1 if p1 < r else r
            s12 += p2 if p2 < r else r
            s13 += p3 if p3 < r else r
            r = b2[k]
            s20 += p0 if p0 < r else r
            s21 += p1 if p1 < r else r
            s22 += p2 if p2 < r else r
            s23 += p3 if p3 < r else r
            r = b3[k]
            s30 += p0 if p0 < r else r
            s31 += p1 if p1 < r else r
            s32 += p2 if p2 < r else r
            s33 += p3 if p3 < r else r
        o0[i], o0[i + 1], o0[i + 2], o0[i + 3] = s00, s01, s02, s03
        o1[i], o1[i + 1], o1[i + 2], o1[i + 3] = s10, s11, s12, s13
        o2[i], o2[i + 1], o2[i + 2], o2[i + 3] = s20, s21, s22, s23
        o3[i], o3[i + 1], o3[i + 2], o3[i + 3] = s30, s31, s32, s33


@kernel
def open_sums(panel, columns, b, zero, out):
    """``out[i] += sum over the listed columns of max(panel[k, i] - b[k], 0)`` for the rows of a panel."""
    m, n = columns.size, out.size
    t = 0
    while t + 4 <= m:
        k0, k1, k2, k3 = columns[t], columns[t + 1], columns[t + 2], columns[t + 3]
        a0, a1, a2, a3 = panel[k0], panel[k1], panel[k2], panel[k3]
        b0, b1, b2, b3 = b[k0], b[k1], b[k2], b[k3]
        for i in range(n):
            r0, r1, r2, r3 = a0[i] - b0, a1[i] - b1, a2[i] - b2, a3[i] - b3
            out[i] += ((r0 if r0 > zero else zero) + (r1 if r1 > zero else zero)) + (
                (r2 if r2 > zero else zero) + (r3 if r3 > zero else zero)
            )
        t += 4
    while t < m:
        a0, b0 = panel[columns[t]], b[columns[t]]
        for i in range(n):
            r0 = a0[i] - b0
            out[i] += r0 if r0 > zero else zero
        t += 1


@kernel
def open_all(table, j, work):
    """Open every column of the rows j .. j + band - 1."""
    _, columns, n_open = work
    n = table[2].shape[0]
    for t in range(min(n_open.size, n - j)):
        n_open[t] = n
        for k in range(n):
            columns[t, k] = k


@kernel
def _close(table, j, h, work):
    """Move b to slope h, which must not fall, and drop the columns that it closes."""
    _, _, dense, low, reach, _, scale = table
    b, columns, n_open = work
    for t in range(min(n_open.size, dense.shape[0] - j)):
        d, mine, still = dense[j + t], columns[t], 0
        for s in range(n_open[t]):
            k = mine[s]
            value = ((d[k] - low[k]) + h * d[k]) * scale
            closed = value >= reach[k]
            b[t, k] = np.float32(reach[k] if closed else value)
            mine[still] = k
            still += 0 if closed else 1
        n_open[t] = still


@kernel
def raised_divergences(table, j, h, work, out):
    """Upper bounds of the scaled E_(1 + h)(i || j + t) for all i and a band of rows j + t, into out[t, i]."""
    a, at, dense, _, reach, total, _ = table
    b, columns, n_open = work
    _close(table, j, h, work)
    height, n_rows = total.size, min(n_open.size, dense.shape[0] - j)
    for p in range(at.shape[0]):
        first = p * at.shape[2]
        last = min(first + at.shape[2], height)
        for t in range(0, n_rows, TILE):
            if _is_full(n_open, t, n_rows, reach.size):
                minimum_sums(a, first, last, b, t, np.float32(0.0), out)
        _sum_open_columns(at[p], first, last, n_rows, reach.size, work, out)
    for t in range(n_rows):
        sums = out[t]
        if _is_full(n_open, t // TILE * TILE, n_rows, reach.size):
            for i in range(height):
                sums[i] = total[i] - sums[i]
            continue
        m, bound = n_open[t], 0.0
        for s in range(m):
            bound += reach[columns[t, s]]
        grown, shift = np.float32(1.0 + (m + 8) * U), np.float32(bound * 5.0 * U + m * TINY)
        for i in range(height):
            sums[i] = sums[i] * grown + shift


@kernel
def _sum_open_columns(panel, first, last, n_rows, width, work, out):
    """The sums of the tiles that are not full over one panel, a chunk of columns after the other."""
    b, columns, n_open = work
    for u in range(n_rows):
        if not _is_full(n_open, u // TILE * TILE, n_rows, width):
            out[u, first:last] = np.float32(0.0)
    for start in range(0, width, CHUNK):
        for u in range(n_rows):
            if _is_full(n_open, u // TILE * TILE, n_rows, width):
                continue
            mine = columns[u, : n_open[u]]
            if width > CHUNK:
                mine = mine[np.searchsorted(mine, start) : np.searchsorted(mine, start + CHUNK)]
            open_sums(panel, mine, b[u], np.float32(0.0), out[u][first:last])


@kernel
def _is_full(n_open, t, n_rows, width):
    """Whether the rows t .. of a tile have so many open columns that all are summed."""
    last = min(t + TILE, n_rows)
    return n_open[t:last].sum() >= SPARSER * width * (last - t)


@kernel
def _raise(over, left, share, right, rest, threshold):
    for i in range(over.size):
        gap = share * left[i] + rest * right[i] - threshold
        over[i] = max(over[i], gap)


@kernel
def workspace(table):
    """A band of rows b, the columns that they leave open, and how many those are."""
    width = table[0].shape[1]
    band = BAND if width >= WIDE else TILE
    return np.zeros((band, width), np.float32), np.empty((band, width), np.int64), np.zeros(band, np.int64)


@kernel
def screen(table, first, last, slopes, ends, shares, levels):
    """Pairs (i, j), j in [first, last), that can lie above the tangents at a slope (`ends`) or between two (`levels`).

    ``shares[s]`` of the divergence at slope s and the rest of that at slope s + 1 is the chord where the tangents cross; a
    level of -1 says that they do not. Returns int32 arrays i, j.
    """
    n, height = table[2].shape[0], table[0].shape[0]
    work = workspace(table)
    band = work[2].size
    raised = np.empty((slopes.size, band, height), np.float32)
    over = np.empty(height, np.float32)
    rows, others = np.empty((last - first) * n, np.int32), np.empty((last - first) * n, np.int32)
    size = 0
    for j in range(first, last, band):
        open_all(table, j, work)
        for s in range(slopes.size):
            raised_divergences(table, j, slopes[s], work, raised[s])
        for t in range(min(band, last - j)):
            over[:] = np.float32(-1.0)
            for s in range(slopes.size):
                _raise(over, raised[s, t], np.float32(1.0), raised[s, t], np.float32(0.0), ends[s])
                if levels[s] >= 0.0:
                    _raise(over, raised[s, t], shares[s], raised[s + 1, t], np.float32(1.0) - shares[s], levels[s])
            for i in range(n):
                if over[i] > 0.0 and i != j + t:
                    rows[size], others[size] = i, j + t
                    size += 1
    return rows[:size].copy(), others[:size].copy()


@kernel
def _add_heavy(out, q, column, h):
    for j in range(out.size):
        part = (q - column[j]) - h * column[j]
        out[j] += part if part > 0.0 else 0.0


@kernel
def screen_sparse(store, columns, heavy, vectors, first, last, slopes, ends, shares, levels):
    """Pairs (i, j), i in [first, last), above the tangents at a slope (`ends`) or between two (`levels`; -1: none).

    ``columns = (starts, rows, values)`` is the matrix by columns; ``heavy[k]`` numbers the row of `vectors` that holds column
    k densely, or is -1. Returns int32 arrays i, j.
    """
    _, indptr, indices, data = store
    starts, rows, values = columns
    n = indptr.size - 1
    found = np.empty((slopes.size, n))
    over = np.empty(n)
    pairs = np.empty((1024, 2), np.int32)
    size = 0
    for i in range(first, last):
        light, n_light = 0.0, 0
        for t in range(indptr[i], indptr[i + 1]):
            if heavy[indices[t]] < 0:
                light += data[t]
                n_light += 1
        light *= 1.0 + (2 * n_light + 4) * ULP
        over[:] = -1.0
        for s in range(slopes.size):
            out, h = found[s], slopes[s]
            out[:] = light
            for t in range(indptr[i], indptr[i + 1]):
                k, q = indices[t], data[t]
                if heavy[k] >= 0:
                    _add_heavy(out, q, vectors[heavy[k]], h)
                    continue
                for u in range(starts[k], starts[k + 1]):
                    part = (q - values[u]) - h * values[u]
                    out[rows[u]] += (part if part > 0.0 else 0.0) - q
            _raise(over, out, 1.0, out, 0.0, ends[s])
            if s > 0 and levels[s - 1] >= 0.0:
                _raise(over, found[s - 1], shares[s - 1], out, 1.0 - shares[s - 1], levels[s - 1])
        for j in range(n):
            if over[j] > 0.0 and i != j:
                pairs = longer(pairs, size + 1)
                pairs[size, 0], pairs[size, 1] = i, j
                size += 1
    return pairs[:size, 0].copy(), pairs[:size, 1].copy()
