"""The simplex itself: from a tree to the best one, and the proof. Notation in `temporaldp.kernels.trees`.

Cut an edge of the tree, and the side that would rather grow (its w sum to more than 0) while it is held down, or rather
shrink while it is held up, moves until another constraint becomes tight: ``q x / d x`` rises. If no side would move, flow along
the tree ships all that is positive to what is negative, which proves that no x has a larger ratio.
"""

import math

from temporaldp.kernels.trees.forest import hang, potentials, root_of, violations, walk
from temporaldp.kernels.trees.weights import accumulate, larger, proves, ratio, weigh

UNIT = 2.0**-53
"""Rounding of one operation."""

LARGEST_RISE = 1e3
"""Nats above the best ratio found up to which a proof is looked for; beyond, the caller's own bound serves."""


def start(q, d, m, u, level):
    """A first guess for u: `level` on the values that the uniform bound would choose, 0 on the others."""
    low = math.exp(-level)
    g = 1.0
    for _ in range(20):
        sum_q = sum_d = 0.0
        for k in range(m):
            x = 1.0 if q[k] > g * d[k] else low
            sum_q += q[k] * x
            sum_d += d[k] * x
        if sum_d <= 0.0 or not sum_q > g * sum_d * (1.0 + 1e-12):
            break
        g = sum_q / sum_d
    for k in range(m):
        u[k] = level if q[k] > g * d[k] else 0.0


def settle(wide, m, parent, upper, u, guess, nearest, slack):
    """Make a guess feasible, ``u_a = min over c of wide(a, c) + guess_c``, and keep or add the edges that are tight."""
    for a in range(m):
        u[a], nearest[a] = guess[a], a
        for c in range(m):
            if wide[a, c] + guess[c] < u[a]:
                u[a], nearest[a] = wide[a, c] + guess[c], c
    for v in range(m):
        p = parent[v]
        if p >= 0 and abs(u[v] - u[p] - wide[v, p] if upper[v] else u[p] - u[v] - wide[p, v]) > slack:
            parent[v] = -1
    for a in range(m):
        c = nearest[a]
        root = root_of(parent, a)
        if c != a and root != root_of(parent, c):
            hang(parent, upper, root, a, c, True)


def center(parent, upper, m, E, G, heaviest):
    """Turn every tree so that its root is the heaviest value: no sum is then lost beside a much larger one."""
    count = only = 0
    for v in range(m):
        heaviest[v] = -1
        if parent[v] < 0:
            count, only = count + 1, v
    for v in range(m):
        root = only if count == 1 else root_of(parent, v)
        best = heaviest[root]
        if best < 0 or larger(G[v], E[v], G[best], E[best]):
            heaviest[root] = v
    for root in range(m):
        if heaviest[root] >= 0 and heaviest[root] != root:
            hang(parent, upper, root, heaviest[root], -1, False)


def gather(q, d, u, m, parent, upper, floats, ints):
    """Ratio, trees turned and walked, w of every value in S, E, G."""
    S, E, G = floats[1], floats[2], floats[3]
    lq, ld = ratio(q, d, u, m)
    weigh(q, d, u, lq, ld, m, S, E, G)
    center(parent, upper, m, E, G, ints[2])
    walk(parent, m, ints[0], ints[1], ints[2], ints[3])
    return lq, ld


def wanting(parent, upper, m, S, E, G, tolerance):
    """The node whose subtree gains most by moving, -1 if none does. While there are several trees, whole trees only."""
    main = -1
    several = False
    for v in range(m):
        if parent[v] < 0:
            several = several or main >= 0
            if main < 0 or larger(G[v], E[v], G[main], E[main]):
                main = v
    best = -1
    for v in range(m):
        if several:
            if v == main or parent[v] >= 0:
                continue
        elif v == main or (S[v] >= -tolerance * G[v] if upper[v] else S[v] <= tolerance * G[v]):
            continue
        if best < 0 or larger(S[v], E[v], S[best], E[best]):
            best = v
    return best


def move(wide, m, parent, upper, u, v, rises, order, place, inside, members):
    """Move v's subtree up or down until a constraint becomes tight, and hang it there."""
    for k in range(m):
        inside[k] = 0
    inside[v], members[0], count = 1, v, 1
    for k in range(place[v] + 1, m):
        node = order[k]
        if parent[node] < 0 or inside[parent[node]] == 0:
            break
        inside[node], members[count] = 1, node
        count += 1
    room, near, far = math.inf, v, -1
    for c in range(m):
        if inside[c]:
            continue
        for k in range(count):
            a = members[k]
            left = wide[a, c] + u[c] - u[a] if rises else wide[c, a] + u[a] - u[c]
            if left < room:
                room, near, far = left, a, c
    step = max(room, 0.0) if rises else -max(room, 0.0)
    for k in range(count):
        u[members[k]] += step
    hang(parent, upper, v, near, far, rises)


def solve(q, d, b, wide, level, m, parent, upper, known, most_moves, floats, ints):
    """Bounds from below and above on ``max log(q x / d x)``; the tree is left in parent and upper, w's sums in S, E, G.

    The upper bound is proved by flow along the tree with b's own gains: it holds whether or not the search has ended. `level`
    is at least the largest entry; `known`: parent and upper hold a tree to start from.
    """
    u, S, E, G, guess = floats[0], floats[1], floats[2], floats[3], floats[4]
    order, place, spare, other = ints[0], ints[1], ints[2], ints[3]
    slack = 8.0 * UNIT * level
    if known:
        walk(parent, m, order, place, spare, other)
        for v in range(m):
            u[v] = 0.0
        potentials(wide, parent, upper, m, order, u)
    if not known or violations(wide, u, m, slack) > 0:
        if known:
            for v in range(m):
                guess[v] = u[v]
        else:
            for v in range(m):
                parent[v], upper[v] = -1, False
            start(q, d, m, guess, level)
        settle(wide, m, parent, upper, u, guess, spare, 2.0 * slack)
    tolerance = (m + 8.0 + 4.0 * level) * UNIT
    for _ in range(most_moves):
        gather(q, d, u, m, parent, upper, floats, ints)
        accumulate(parent, m, order, S, E, G)
        v = wanting(parent, upper, m, S, E, G, tolerance)
        if v < 0:
            break
        move(wide, m, parent, upper, u, v, S[v] > 0.0, order, place, spare, other)
    walk(parent, m, order, place, spare, other)
    potentials(b, parent, upper, m, order, u)
    lq, ld = gather(q, d, u, m, parent, upper, floats, ints)
    # A sum of m terms rounds m times, and a path of m edges multiplies m gains, each as exact as u with entries up to `level`.
    gamma = (m + 8.0) * (1.0 + 2.0 * level) * UNIT
    rise = 3.0 * gamma
    while rise < LARGEST_RISE:
        weigh(q, d, u, lq + rise, ld, m, S, E, G)
        if proves(parent, upper, m, order, S, E, G, gamma):
            return lq - ld, lq - ld + rise
        rise *= 4.0
    return lq - ld, math.inf


def support(q, d, n, values):
    """The values that either row can come from, in `values`; how many."""
    m = 0
    for k in range(n):
        if q[k] > 0.0 or d[k] > 0.0:
            values[m] = k
            m += 1
    return m


def cut(rows, i, j, metric, wide, values, m, cut_rows, b, b_wide):
    """Both rows and both metrics on the first m of `values`."""
    for a in range(m):
        cut_rows[0, a], cut_rows[1, a] = rows[i, values[a]], rows[j, values[a]]
        for c in range(m):
            b[a, c], b_wide[a, c] = metric[values[a], values[c]], wide[values[a], values[c]]
