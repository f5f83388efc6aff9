"""The leakage profile of a matrix: its vertices, their sums and their witnesses.

Notation
--------
i, j      the rows q and d; x = q - d entry by entry
h         slope g - 1 >= 0, so that E_g(q || d) = sum_k max((q_k - d_k) - h d_k, 0) without cancellation at g near 1
S         the set {k : q_k - d_k > limit d_k}
A, B      neighbouring vertices found so far; h the slope of their edge, d_A < d_B

Refinement is a dichotomic search over the hull's edges, all edges of a level at once. The listed pairs of each edge are
evaluated at its slope. The best one above the edge is a new vertex C; whatever lies above AC or CB also lies above AB, so both
inherit the pairs that were above AB and no others.

In larger matrices the list begins with the pairs that rise above the hull of a few pairs. A point above a hull lies above the
line of one of its edges, so that its pair has a divergence above the level x - h d of that line at the edge's slope. The
divergence is convex in h: between two slopes it lies below its chord, and is not summed where the chord exceeds no level.

Slopes are raised by some ulps, more than the rounding of the sums that they come from, so that entries whose ratio is exactly
the edge's slope round to nothing: ties end the search, and do not hide smaller entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy

from temporaldp.base.progress import in_blocks
from temporaldp.base.values import ULP, FloatArray, IntArray
from temporaldp.core.kernels.hull import upper_hull
from temporaldp.core.kernels.profile import LeakageProfile, Witness

TIE = 1.0 + 4e-15
"""Factor by which a pair must exceed an edge: about the rounding of sums of a thousand terms."""

UNSCREENED_STATES = 24
"""Rows up to which all pairs are refined without a screen, which would take longer than it saves."""


BLOCK = 1 << 15
"""Entries of pairs that are processed together. If doubled, their arrays no longer fit a second-level cache of 1 MB."""


class DenseRows:
    """The rows of dense matrices of equal width, one matrix below the other."""

    def __init__(self, rows: FloatArray) -> None:
        self.rows, self.width, self.n = rows, rows.shape[1], rows.shape[1]

    def entries(self, i: IntArray, j: IntArray, *values: FloatArray) -> tuple[FloatArray, ...]:
        """The entries of pairs of rows, and values of the pairs that broadcast against them."""
        return self.rows[i], self.rows[j], *(value[:, None] for value in values)

    def total(self, parts: FloatArray, _: IntArray) -> FloatArray:
        """The sum of each pair's parts."""
        return np.asarray(parts.sum(axis=1))

    def both(self, i: int, j: int) -> tuple[FloatArray, FloatArray]:
        """The entries of one pair, in all columns."""
        return self.rows[i], self.rows[j]

    def pairs_above(self, slopes: FloatArray, levels: FloatArray) -> Iterator[IntArray]:
        """All pairs (i, j) whose divergence exceeds the level at some slope, as arrays of shape (m, 2)."""
        return _pairs_above(self.rows, self.rows, slopes, levels)


class SparseRows:
    """The rows of a ``csr_array``; a pair has entries in the columns in which its first row is not zero."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.sorted_indices()
        self.n, self.width = int(matrix.shape[1]), max(1, matrix.nnz // matrix.shape[0])
        self.lengths = np.diff(self.matrix.indptr)
        self.keys = np.repeat(np.arange(len(self.lengths)), self.lengths) * matrix.shape[1] + self.matrix.indices

    def entries(self, i: IntArray, j: IntArray, *values: FloatArray) -> tuple[FloatArray, ...]:
        """The entries of pairs of rows in one line, and values of the pairs, repeated for each."""
        lengths = self.lengths[i]
        at = np.arange(lengths.sum()) + np.repeat(self.matrix.indptr[i] - self._starts(i), lengths)
        wanted = np.repeat(j * self.matrix.shape[1], lengths) + self.matrix.indices[at]
        place = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
        other = np.where(self.keys[place] == wanted, self.matrix.data[place], 0.0)
        return self.matrix.data[at], other, *(np.repeat(value, lengths) for value in values)

    def total(self, parts: FloatArray, i: IntArray) -> FloatArray:
        """The sum of each pair's parts."""
        return np.add.reduceat(parts, self._starts(i))

    def both(self, i: int, j: int) -> tuple[FloatArray, FloatArray]:
        """The entries of one pair, in all columns."""
        q, d = self.matrix[[i, j]].toarray()
        return q, d

    def pairs_above(self, slopes: FloatArray, levels: FloatArray) -> Iterator[IntArray]:
        """All pairs (i, j) whose divergence exceeds the level at some slope, as arrays of shape (m, 2).

        First by a coarse bound, in which the light columns of a pair are disjoint: E <= q(light) + sum over the heavy ones.
        """
        matrix, columns = self.matrix, self.matrix.tocsc()
        # Share of entries from which a column of a sparse matrix is heavy
        heavy = np.diff(columns.indptr) > 0.125 * self.n
        lower = columns[:, np.flatnonzero(heavy)].toarray()
        light = np.maximum(columns.sum(axis=1) - lower.sum(axis=1), 0.0) + self.n * ULP
        upper = np.column_stack((lower, light))
        for coarse in _pairs_above(upper, np.column_stack((lower, np.zeros(self.n))), slopes, levels):
            for i in np.unique(coarse[:, 0]).tolist():
                others, row = coarse[coarse[:, 0] == i, 1], slice(*matrix.indptr[i : i + 2])
                lower = columns[:, matrix.indices[row]].toarray()[others]
                for found in _pairs_above(matrix.data[None, row], lower, slopes, levels):
                    yield np.column_stack((np.full(len(found), i), others[found[:, 1]]))

    def _starts(self, i: IntArray) -> IntArray:
        lengths: IntArray = self.lengths[i]
        return np.cumsum(lengths) - lengths


MatrixRows: TypeAlias = DenseRows | SparseRows


def compute_profiles(matrices: Sequence[Any], states: Sequence[Sequence[str]]) -> list[LeakageProfile]:
    """Return the exact leakage profiles of dense or sparse matrices; each vertex is attained by a pair of rows and a set.

    Small dense matrices of one size are searched together.
    """
    found: dict[int, LeakageProfile] = {}
    together: dict[int, list[int]] = {}
    for k, matrix in enumerate(matrices):
        n = matrix.shape[0]
        if (pair := disjoint_pair(matrix)) is not None:  # no pair leaks more, at any level
            found[k] = _profile(_rows(matrix), np.array([[*pair, steepest_slope(matrix)]]), states[k])
        elif n <= UNSCREENED_STATES:
            together.setdefault(n, []).append(k)
        else:
            rows, steepest = _rows(matrix), np.array([steepest_slope(matrix)])
            pairs = screened_pairs(rows, steepest)
            vertices = refined(rows, pairs, np.zeros(len(pairs), np.int64), steepest, TIE)
            found[k] = _profile(rows, vertices[:, 1:4], states[k])
    for n, members in together.items():
        stack, number = np.concatenate([_dense(matrices[k]) for k in members]), np.arange(len(members))
        pairs = np.argwhere(~np.eye(n, dtype=bool))
        every = (n * number[:, None, None] + pairs).reshape(-1, 2)
        steepest = np.array([steepest_slope(one) for one in np.split(stack, len(members))])
        vertices = refined(DenseRows(stack), every, np.repeat(number, len(pairs)), steepest, TIE)
        ends = np.searchsorted(vertices[:, 0], number, side="right")
        for first, own in zip(number * n, np.split(vertices, ends[:-1]), strict=True):
            rows = DenseRows(stack[first : first + n])
            found[members[first // n]] = _profile(rows, own[:, 1:4] - [first, first, 0.0], states[members[first // n]])
    return [found[k] for k in range(len(matrices))]


def _dense(matrix: Any) -> FloatArray:
    return np.ascontiguousarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)


def _rows(matrix: Any) -> MatrixRows:
    n = matrix.shape[0]
    # Largest number of rows and share of entries up to which, and from which, a sparse matrix is searched as a dense one
    is_sparse = scipy.sparse.issparse(matrix) and n > 256 and (n > 5_000 or matrix.nnz <= 0.1 * n**2)
    return SparseRows(matrix) if is_sparse else DenseRows(_dense(matrix))


def _profile(rows: MatrixRows, vertices: FloatArray, states: Sequence[str]) -> LeakageProfile:
    """The profile with vertices (i, j, limit), whose sums are rounded once.

    1 - q by the entries inside or outside the set: they differ by what rounding left of the row's sum. The smaller is the safe
    one, and it is 0 where the set holds the whole row.
    """
    sums, witnesses = np.empty((4, len(vertices))), []
    for v, (i, j, limit) in enumerate(vertices.tolist()):
        q, d = rows.both(int(i), int(j))
        x = q - d
        inside = (x > 0.0) & (x > limit * d)
        of_q, out = q[inside].tolist(), q[~inside].tolist()
        d_sum, x_sum, q_sum = (math.fsum(part) for part in (d[inside].tolist(), x[inside].tolist(), of_q))
        d_sum, q_sum = min(d_sum, 1.0), min(q_sum, 1.0)
        c = max(0.0, min(-math.fsum([*of_q, -1.0]), math.fsum(out)))
        if d_sum == 0.0 and c == 0.0:
            x_sum = q_sum = 1.0  # disjoint rows
        sums[:, v] = d_sum, x_sum, q_sum, c
        evidence = tuple(states[k] for k in np.flatnonzero(inside).tolist())
        witnesses.append(Witness(states[int(i)], states[int(j)], evidence, q_sum, d_sum))
    return LeakageProfile.from_points(d=sums[0], x=sums[1], q=sums[2], c=sums[3], witnesses=witnesses)


def steepest_slope(matrix: Any) -> float:
    """A bound of every finite ratio (q_k - d_k) / d_k: from here on theta is constant."""
    if scipy.sparse.issparse(matrix):
        largest, smallest = matrix.max(axis=0).toarray().ravel(), np.full(matrix.shape[1], np.inf)
        np.minimum.at(smallest, matrix.indices, matrix.data)
    else:
        largest, smallest = matrix.max(axis=0), np.where(matrix > 0.0, matrix, np.inf).min(axis=0)
    return float((largest / smallest).max()) * (1.0 + 1e-12)


def disjoint_pair(matrix: Any) -> tuple[int, int] | None:
    """Two rows without a common column, one of them among the rows with the fewest entries; None if there are no such rows."""
    if not scipy.sparse.issparse(matrix) and matrix.min(axis=0).max() > 0.0:
        return None  # a column without a zero
    columns = matrix.tocsc() if scipy.sparse.issparse(matrix) else matrix
    # Rows with the fewest entries that are compared with all others for disjoint supports before anything else is done
    for i in np.argsort((matrix > 0.0).sum(axis=1), kind="stable")[:8].tolist():
        shared = columns[:, matrix[[i]].nonzero()[1]].sum(axis=1)
        if shared.min() == 0.0:
            return i, int(shared.argmin())
    return None


def excess(rows: MatrixRows, pairs: IntArray, h: FloatArray) -> FloatArray:
    """E_(1 + h)(row i || row j) of each pair (i, j), with a slope of its own."""
    found = np.empty(len(pairs))
    for block in in_blocks(len(pairs), BLOCK // rows.width):
        i, j = pairs[block].T
        q, d, slope = rows.entries(i, j, h[block])
        parts = (q - d) - slope * d
        found[block] = rows.total(np.maximum(parts, 0.0, out=parts), i)
    return found


def set_sums(rows: MatrixRows, pairs: IntArray, limit: FloatArray, h: FloatArray) -> FloatArray:
    """(d, x, x - h d) summed over S, shape (3, pairs); for h <= limit no term is negative."""
    found = np.empty((3, len(pairs)))
    for block in in_blocks(len(pairs), BLOCK // rows.width):
        i, j = pairs[block].T
        q, d, bound, slope = rows.entries(i, j, limit[block], h[block])
        x = q - d
        inside = (x > 0.0) & (x > bound * d)
        for k, part in enumerate((d, x, x - slope * d)):
            found[k, block] = rows.total(np.where(inside, part, 0.0), i)
    return found


def refined(rows: MatrixRows, pairs: IntArray, group: IntArray, steepest: FloatArray, gain: float) -> FloatArray:
    """The vertices (group, i, j, limit, d, x) of each group's listed pairs, by group and rising d, shape (m, 6).

    Groups are the matrices 0, 1, ..., each with its pairs in one piece of the list.
    """
    n_groups, level = len(steepest), excess(rows, pairs, steepest[group])
    number, first = np.arange(n_groups), _best(level, group)
    last = _best(excess(rows, pairs, np.zeros(len(pairs))), group)
    flat: FloatArray = np.zeros(n_groups)
    # The vertex with d = 0: the part of a row that another row excludes. The origin, where no row excludes any.
    start = np.column_stack((number, pairs[first], steepest, flat, level[first]))
    end = np.column_stack((number, pairs[last], flat, set_sums(rows, pairs[last], flat, flat)[:2].T))
    table: FloatArray = np.concatenate((start, end))
    left, right, edge = number, n_groups + number, group
    raised = _raised(rows)
    while len(pairs):
        a, b = table[left], table[right]
        run, rise = b[:, 4] - a[:, 4], b[:, 5] - a[:, 5]
        is_open = (run > 0.0) & (rise > 0.0)
        h: FloatArray = np.where(is_open, rise, 0.0) / np.where(is_open, run, 1.0) * raised
        level = np.where(a[:, 5] > 0.0, set_sums(rows, a[:, 1:3].astype(np.int64), a[:, 3], h)[2] * gain, 0.0)
        pairs, edge = pairs[is_open[edge]], edge[is_open[edge]]
        above = excess(rows, pairs, h[edge]) > level[edge]
        pairs, edge = pairs[above], edge[above]
        d, x, value = set_sums(rows, pairs, h[edge], h[edge])
        # Not A or B again, with other last digits
        value[~((a[edge, 4] <= d) & (d < b[edge, 4]) & (a[edge, 5] < x))] = 0.0
        best = _best(value, edge)
        best = best[value[best] > 0.0]
        split, new = edge[best], len(table) + np.arange(len(best))
        table = np.concatenate((table, np.column_stack((a[split, 0], pairs[best], h[split], d[best], x[best]))))
        number = np.full(len(left), -1)
        number[split] = np.arange(len(best))
        inherited = number[edge] >= 0
        pairs, edge = np.tile(pairs[inherited], (2, 1)), number[edge[inherited]]
        edge = np.concatenate((edge, len(best) + edge))
        left, right = np.concatenate((left[split], new)), np.concatenate((new, right[split]))
    table = table[table[:, 5] > 0.0]
    return table[np.lexsort((table[:, 5], table[:, 4], table[:, 0]))]


def _best(values: FloatArray, group: IntArray) -> IntArray:
    """Index of the first largest value of each group."""
    if not len(group):
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    top = np.maximum.reduceat(values, starts)
    hits = np.flatnonzero(values == np.repeat(top, np.diff(starts, append=len(group))))
    return hits[np.unique(group[hits], return_index=True)[1]]


def screened_pairs(rows: MatrixRows, steepest: FloatArray) -> IntArray:
    """Pairs that rise above the hull of a sample, and those of the sample's vertices, shape (m, 2). At least one pair."""
    # Pairs of every row with others at random. Only speed depends on them.
    n = rows.n
    # Pairs of each row that make the hull with which all pairs are compared. If doubled, half as many pairs rise above
    # it.
    i = np.tile(np.arange(n), 4)
    sample = np.column_stack((i, (i + np.random.default_rng(0).integers(1, n, i.size)) % n))
    # Factor by which a pair must exceed an edge of their hull. If its distance from 1 is doubled, fewer edges are compared with
    hull = refined(rows, sample, np.zeros(len(sample), np.int64), steepest, 1.01)
    hull = hull[upper_hull(hull[:, 4], hull[:, 5])]
    slopes, levels = _edges(rows, hull, float(steepest[0]))
    own = [hull[:, 1:3].astype(np.int64), np.array([[0, 1]])]
    return np.concatenate([*own, *rows.pairs_above(slopes, levels)])


def _edges(rows: MatrixRows, hull: FloatArray, steepest: float) -> tuple[FloatArray, FloatArray]:
    """Slopes, falling, and levels of the edges of a hull. The ends count as edges of slope 0 and of the steepest slope."""
    if not len(hull):
        return np.zeros(1), np.zeros(1)
    d, x = hull[:, 4], hull[:, 5]
    run, rise, at_axis = np.diff(d, prepend=0.0), np.diff(x, prepend=0.0), d[0] == 0.0
    run[0], rise[0] = (1.0, steepest) if at_axis else (run[0], rise[0])
    slopes: FloatArray = np.append(rise / run * (1.0 if at_axis else _raised(rows)), 0.0)
    slopes[1:] *= _raised(rows) if at_axis else 1.0
    between = set_sums(rows, hull[:-1, 1:3].astype(np.int64), hull[:-1, 3], slopes[1:-1])[2]
    return slopes, np.concatenate(([x[0] if at_axis else 0.0], between, x[-1:])) * TIE


def _raised(rows: MatrixRows) -> float:
    """A factor by which a slope is raised: n / 8 ulps, at most 200. The loss changes by less than that relative amount."""
    return 1.0 + min(6.0 + int(rows.n) / 8.0, 200.0) * ULP


def _pairs_above(upper: FloatArray, lower: FloatArray, slopes: FloatArray, levels: FloatArray) -> Iterator[IntArray]:
    """Pairs (row of upper, row of lower) whose divergence exceeds the level at some slope, or falls short by rounding only."""
    n, width = lower.shape
    # The difference q - g d and its sum are rounded. At level 0 a single entry decides, and its slope is raised by more
    levels = np.where(levels > 0.0, levels - (width + 8.0) * ULP, 0.0)
    # Pairs that are screened together. If doubled, so is the memory.
    step = max(1, (1 << 20) // n)

    def divergence(pairs: IntArray, h: float) -> FloatArray:
        found, scaled = np.empty(len(pairs)), (1.0 + h) * lower
        inside = upper.max(axis=0) > scaled.min(axis=0)  # columns in which a pair has a part
        above, below = (np.compress(inside, one, axis=1) for one in (upper, scaled))
        width = max(1, above.shape[1])
        buffers = np.empty((2, max(1, BLOCK // width), above.shape[1]))
        for block in in_blocks(len(pairs), BLOCK // width):
            i, j = divmod(pairs[block], n)
            parts, others = buffers[:, : len(i)]
            np.take(above, i, axis=0, out=parts, mode="clip")
            parts -= np.take(below, j, axis=0, out=others, mode="clip")
            found[block] = np.maximum(parts, 0.0, out=parts).sum(axis=1)
        return found

    for first in range(0, len(upper), step):
        pairs = np.arange(first * n, min(first + step, len(upper)) * n)
        at_left, at_right = divergence(pairs, slopes[0]), divergence(pairs, slopes[-1])
        is_above = (at_left > levels[0]) | (at_right > levels[-1])
        waiting = [(0, len(slopes) - 1, np.arange(len(pairs)), at_left, at_right)]
        while waiting:
            left, right, own, at_left, at_right = waiting.pop()
            if right - left < 2:
                continue
            shares = (slopes[left] - slopes[left + 1 : right]) / (slopes[left] - slopes[right])
            is_open = ~is_above[own]
            for block in in_blocks(len(own), BLOCK // len(shares)):
                chord = at_left[block, None] + (at_right - at_left)[block, None] * shares
                is_open[block] &= (chord > levels[left + 1 : right]).any(axis=1)
            own, at_left, at_right = own[is_open], at_left[is_open], at_right[is_open]
            if len(own):
                middle = (left + right) // 2
                value = divergence(pairs[own], slopes[middle])
                is_above[own[value > levels[middle]]] = True
                waiting += [(left, middle, own, at_left, value), (middle, right, own, value, at_right)]
        yield np.column_stack(divmod(pairs[is_above], n))
