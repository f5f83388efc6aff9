"""The largest value of a linear function over all tests that the curves of pairs allow, in machine code.

Notation
--------
t        a test: ``t[k]`` is the probability with which it accepts if the state is k
D        ``D[a, b, m]`` bounds the hockey-stick divergence of a against b at ``e^(m h)``, m = 0..K; below 0 by symmetry
line     ``t_a <= height + slope t_b``, one for each point of the grid; those of a pair are sorted by falling slope, and only
         those that bound t_a for some t_b from 0 to 1 are kept. ``ends[l]`` is the t_b from which line l + 1 is the lower one
c        ``p - g q``, the coefficients of the linear function; p and q are two rows of a transition matrix
basis    n constraints that are tight at a vertex: a line, or ``t_k >= 0`` (LOW), or ``t_k <= 1`` (HIGH)
X        inverse of the matrix of the basis, a row a constraint
y        multipliers, ``c = sum of y[r] * constraint r``. Where none is below 0, the vertex is the best one (the simplex method)

The polytope of tests is the same for every c, so that the best vertex for one g is where the search for the next one begins.
Whatever the search does, a value that is returned is proved: multipliers that are not below 0, times the right-hand sides, and
the rest of c at ``t_k <= 1``, bound the function from above (weak duality).
"""

import math

import numpy as np

from temporaldp.kernels.compilation import kernel
from temporaldp.values import ULP

LINE, LOW, HIGH = 0, 1, 2

BLOCKS = 1e-11
"""A constraint blocks a move if it comes closer by this much a unit of the move: below, it is parallel up to rounding."""

NONE = 1e-9
"""A value that moves by less than this share of the one that moves most stands still: the rest is rounding."""

PERTURBED = 1e-7
"""Relative. Curves are raised by up to so much, each by its own share, so that constraints do not tie."""


@kernel
def lower_lines(D, h, a, b, slope, height, ends):
    """Fill the lines of the pair (a, b) that matter, by falling slope; return how many there are."""
    n, K = D.shape[0], D.shape[2] - 1
    raised_ab = 1.0 + PERTURBED * ((a * n + b + 1) * 0.6180339887498949 % 1.0)
    raised_ba = 1.0 + PERTURBED * ((b * n + a + 1) * 0.6180339887498949 % 1.0)
    size = 0
    for m in range(K, -K - 1, -1):
        steep = math.exp(m * h)
        if m >= 0:
            rest = min(D[a, b, m] * raised_ab, 1.0)
        else:
            rest = -math.expm1(m * h) * (1.0 + 4.0 * ULP) + steep * min(D[b, a, -m] * raised_ba, 1.0)
        rest *= 1.0 + 4.0 * ULP
        while size:
            crossing = (rest - height[size - 1]) / (slope[size - 1] - steep)
            before = ends[size - 2] if size > 1 else 0.0
            # Relative. A line that is the lowest for less than that is left out: a relaxation, hence sound
            if crossing > before * (1.0 + 1e-10):
                break
            size -= 1  # the line before is nowhere the lowest
        if size:
            if crossing >= 1.0:
                break
            ends[size - 1] = crossing
        slope[size], height[size] = steep, rest
        size += 1
    ends[size - 1] = np.inf
    return size


@kernel
def line_at(ends, first, size, at, start):
    """The line that bounds t_a where t_b is `at`; looked for from `start`."""
    line = start
    while line + 1 < size and ends[first + line] <= at:
        line += 1
    while line > 0 and ends[first + line - 1] > at:
        line -= 1
    return line


@kernel
def start_over(X, basis, t):
    """The vertex t = 0, where nothing is accepted: it is one whatever the curves are."""
    kind, one, other, line, steepness, rhs = basis
    for k in range(t.size):
        kind[k], one[k], other[k], line[k], steepness[k], rhs[k], t[k] = LOW, k, -1, -1, 0.0, 0.0, 0.0
        for m in range(t.size):
            X[k, m] = -1.0 if k == m else 0.0


@kernel
def inverted(X, basis):
    """X from the basis, by elimination; False where that is singular."""
    kind, one, other, _, steepness, _ = basis
    n = X.shape[0]
    A = np.empty((n, 2 * n))
    # The left half is the basis, the right one the unit matrix.
    for r in range(n):
        for m in range(2 * n):
            A[r, m] = 1.0 if m == n + r else 0.0
        A[r, one[r]] = -1.0 if kind[r] == LOW else 1.0
        if kind[r] == LINE:
            A[r, other[r]] = -steepness[r]
    for k in range(n):
        best = k
        for r in range(k + 1, n):
            if abs(A[r, k]) > abs(A[best, k]):
                best = r
        # A pivot below this share of 1: the constraints do not meet in one point, up to rounding
        if abs(A[best, k]) < 1e-13:
            return False
        for m in range(2 * n):
            A[k, m], A[best, m] = A[best, m], A[k, m]
        scale = 1.0 / A[k, k]
        for m in range(2 * n):
            A[k, m] *= scale
        for r in range(n):
            share = A[r, k]
            if r != k and share != 0.0:
                for m in range(k, 2 * n):
                    A[r, m] -= share * A[k, m]
    X[:, :] = A[:, n:]
    return True


@kernel
def proved_value(p, q, g, y, basis, rest, size):
    """An upper bound of ``max (p - g q) t`` from the multipliers y, whatever they are."""
    kind, one, other, _, steepness, rhs = basis
    n = p.size
    total = 0.0
    for k in range(n):
        rest[k] = p[k] - g * q[k]
        size[k] = p[k] + g * q[k]
    for r in range(n):
        weight, k = max(y[r], 0.0), one[r]
        rest[k] += weight if kind[r] == LOW else -weight
        size[k] += weight
        total += weight * rhs[r]
        if kind[r] == LINE:
            rest[other[r]] += weight * steepness[r]
            size[other[r]] += weight * steepness[r]
    for k in range(n):
        total += max(rest[k] + (n + 4) * ULP * size[k], 0.0)
    return total * (1.0 + (n + 8) * ULP)


@kernel
def move_in_box(t, d):
    """Return how far, from 0 to 1, t may move along d, and what blocks it: (distance, kind, state, other state, line)."""
    far, what, which = np.inf, LOW, -1
    for k in range(t.size):
        way = np.inf
        if d[k] < -BLOCKS:
            way = max(t[k], 0.0) / -d[k]
        elif d[k] > BLOCKS:
            way = max(1.0 - t[k], 0.0) / d[k]
        if way < far:
            far, what, which = way, (LOW if d[k] < 0.0 else HIGH), k
    return far, what, which, -1, -1


@kernel
def move_on_lines(t, d, basis, leaving, ends, first, sizes, blocking):
    """Return the distance to the end of a line that stays tight, where the pair's next one begins, and what blocks first."""
    kind, one, other, line, _, _ = basis
    for r in range(t.size):
        if kind[r] != LINE or r == leaving:
            continue
        a, b, here = one[r], other[r], line[r]
        start = first[a, b]
        if d[b] > BLOCKS and here + 1 < sizes[a, b]:
            nearest, after = ends[start + here], here + 1
        elif d[b] < -BLOCKS and here > 0:
            nearest, after = ends[start + here - 1], here - 1
        else:
            continue
        way = max((nearest - t[b]) / d[b], 0.0)
        if way < blocking[0]:
            blocking = (way, LINE, a, b, after)
    return blocking


@kernel
def move_under_curves(t, d, basis, lines, current, blocking):
    """Return the distance to the curve of a pair, and what blocks first; from the right, by Newton's steps."""
    kind, one, other, line, _, _ = basis
    slope, height, ends, first, sizes = lines
    far, what, which, than, at = blocking
    n = t.size
    for number in range(n * n):
        a, b = number // n, number % n
        start, last = first[a, b], sizes[a, b] - 1
        if a == b or (d[b] >= 0.0 and d[a] <= slope[start + last] * d[b]):
            continue
        tight = False
        while not tight:
            here = line_at(ends, start, last + 1, t[b] + far * d[b], current[a, b])
            current[a, b] = here
            closer = d[a] - slope[start + here] * d[b]
            way = max(height[start + here] + slope[start + here] * t[b] - t[a], 0.0) / max(closer, BLOCKS)
            if closer <= BLOCKS or way >= far:
                break
            for r in range(n):
                tight = tight or (kind[r] == LINE and one[r] == a and other[r] == b and line[r] == here)
            if not tight:
                far, what, which, than, at = way, LINE, a, b, here
    return far, what, which, than, at


@kernel
def leaving_constraint(y, threshold, patient, draw):
    """(the constraint that holds the function back most, or, without patience, any that does; the next random number)."""
    leaving, least, candidates = -1, threshold, 0
    for r in range(y.size):
        if patient and y[r] < least:
            leaving, least = r, y[r]
        elif not patient and y[r] < threshold:
            candidates += 1
            draw = (draw * 1103515245 + 12345) % 2147483648
            if draw // 65536 % candidates == 0:
                leaving = r
    return leaving, draw


@kernel
def exchange(X, basis, leaving, blocking, lines, t, v, since):
    """Put the constraint that blocks in the place of the one that leaves; return the exchanges since X was computed anew."""
    kind, one, other, line, steepness, rhs = basis
    slope, height, _, first, _ = lines
    _, what, which, than, at = blocking
    n = t.size
    kind[leaving], one[leaving], other[leaving], line[leaving] = what, which, than, at
    steepness[leaving], rhs[leaving] = 0.0, 1.0 if what == HIGH else 0.0
    if what == LINE:
        steepness[leaving], rhs[leaving] = slope[first[which, than] + at], height[first[which, than] + at]
    widest = 0.0
    for m in range(n):
        v[m] = -X[which, m] if what == LOW else X[which, m]
        if what == LINE:
            v[m] -= steepness[leaving] * X[than, m]
        widest = max(widest, abs(X[m, leaving]))
    # After so many exchanges the inverse is computed anew
    if since + 1 >= 16 or abs(v[leaving]) < NONE * widest:
        if not inverted(X, basis):
            start_over(X, basis, t)
        return 0
    for k in range(n):
        X[k, leaving] /= v[leaving]
    for m in range(n):
        if m != leaving and v[m] != 0.0:
            for k in range(n):
                X[k, m] -= v[m] * X[k, leaving]
    return since + 1


@kernel
def at_vertex(X, rhs, p, q, t, y_p, y_q):
    """Fill the vertex, and the multipliers of p and of q: those of p - g q follow for every g."""
    for k in range(t.size):
        t[k] = y_p[k] = y_q[k] = 0.0
    for k in range(t.size):
        for m in range(t.size):
            t[k] += X[k, m] * rhs[m]
            y_p[m] += p[k] * X[k, m]
            y_q[m] += q[k] * X[k, m]


@kernel
def values_of_pair(p, q, h, lines, current, out):
    """Fill `out[k]` with an upper bound of ``max_t (p - e^(k h) q) t`` for one pair of rows, from the last k to the first."""
    n, n_points = p.size, out.size
    basis = (
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n)
    )  # fmt: skip
    X, t, d, y, y_p = np.empty((n, n)), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    y_q, v, rest, size = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    start_over(X, basis, t)
    at_vertex(X, basis[5], p, q, t, y_p, y_q)
    since, draw = 0, 1
    for point in range(n_points - 1, -1, -1):
        g = math.exp(point * h)
        # Exchanges for each g after which a search stops; its value is an upper bound still
        allowed = 400 * n + (4 * lines[0].size // n if point == n_points - 1 else 0)
        for count in range(allowed + 1):
            for r in range(n):
                y[r] = y_p[r] - g * y_q[r]
            # Exchanges for each g from which on the constraint to leave is drawn among all that may, which ends every cycle
            # A multiplier that is less than this below 0 is taken for 0; what that costs is in the value
            leaving, draw = leaving_constraint(y, -1e-14 * (1.0 + g), count < 12 * n, draw)
            if leaving < 0 or count == allowed:
                break
            widest = np.abs(X[:, leaving]).max()
            for k in range(n):
                d[k] = -X[k, leaving] / widest if abs(X[k, leaving]) > NONE * widest else 0.0
            blocking = move_on_lines(t, d, basis, leaving, lines[2], lines[3], lines[4], move_in_box(t, d))
            blocking = move_under_curves(t, d, basis, lines, current, blocking)
            if blocking[2] < 0:
                break
            since = exchange(X, basis, leaving, blocking, lines, t, v, since)
            at_vertex(X, basis[5], p, q, t, y_p, y_q)
        out[point] = min(proved_value(p, q, g, y, basis, rest, size), 1.0)
    for point in range(1, n_points):
        out[point] = min(out[point], out[point - 1])
    make_convex(out, h)


@kernel
def make_convex(out, h):
    """The values that lie above a chord are lowered to it: what they bound is convex in ``e^(k h)``.

    A search that stopped early would else leave a kink, which a composition takes for outputs that say much.
    """
    hull, size = np.empty(out.size, np.int64), 0
    for k in range(out.size):
        while size > 1:
            i, j = hull[size - 2], hull[size - 1]
            right = math.exp((j - k) * h) * math.expm1((i - j) * h) / math.expm1((i - k) * h)
            if out[j] < (1.0 - right) * out[i] + right * out[k]:
                break
            size -= 1
        hull[size] = k
        size += 1
    for r in range(size - 1):
        i, k = hull[r], hull[r + 1]
        for j in range(i + 1, k):
            right = math.exp((j - k) * h) * math.expm1((i - j) * h) / math.expm1((i - k) * h)
            out[j] = min(out[j], ((1.0 - right) * out[i] + right * out[k]) * (1.0 + 16.0 * ULP))


@kernel
def pair_values(P, h, lines, begin, end, out):
    """Fill ``out[i, j, k] >= max (P_i - e^(k h) P_j) t`` for the ordered pairs number begin .. end - 1."""
    n = P.shape[0]
    for number in range(begin, end):
        i, j = number // (n - 1), number % (n - 1)
        j += j >= i
        values_of_pair(P[i], P[j], h, lines, np.zeros((n, n), np.int64), out[i, j])


@kernel
def all_lines(D, h, first, slope, height, ends, sizes):
    """The lines of every pair, from position ``first[a, b]`` on."""
    n = D.shape[0]
    for a in range(n):
        for b in range(n):
            if a != b:
                start = first[a, b]
                room = slice(start, start + 2 * D.shape[2])
                sizes[a, b] = lower_lines(D, h, a, b, slope[room], height[room], ends[room])
