"""What each value and each subtree contributes, and what flow along a tree proves. Notation in `temporaldp.kernels.trees`.

Numbers that may be smaller than any double are a mantissa and an exponent, in steps of 60 nats so that nearly all share 0.
"""

import math

SPAN = 30.0
"""Nats around 0 that need no exponent: the smallest probability, 1e-290, times e^-30 keeps all its digits."""


def ratio(q, d, u, m):
    """``log q x``, ``log d x``; each from its own largest term, so that nothing over- or underflows."""
    top_q = top_d = -math.inf
    for k in range(m):
        if q[k] > 0.0 and u[k] > top_q:
            top_q = u[k]
        if d[k] > 0.0 and u[k] > top_d:
            top_d = u[k]
    sum_q = sum_d = 0.0
    for k in range(m):
        x = math.exp(u[k] - top_q) if u[k] <= top_q else 0.0
        sum_q += q[k] * x
        if top_d != top_q:
            x = math.exp(u[k] - top_d) if u[k] <= top_d else 0.0
        sum_d += d[k] * x
    return top_q + math.log(sum_q), top_d + math.log(sum_d)


def weigh(q, d, u, lq, ld, m, S, E, G):
    """W of every single value. Of q x / (q x) and d x / (d x) the larger kind sets the exponent, so neither overflows."""
    share_q, share_d = math.exp(min(ld - lq, 0.0)), math.exp(min(lq - ld, 0.0))
    for k in range(m):
        by_d = d[k] > 0.0 and (lq >= ld or q[k] == 0.0)
        level = u[k] - ld if by_d else u[k] - lq
        E[k] = 0.0 if -SPAN < level < SPAN else 2.0 * SPAN * math.floor(level / (2.0 * SPAN) + 0.5)
        x = math.exp(level - E[k])
        part_q = q[k] * x * (share_q if by_d else 1.0)
        part_d = d[k] * x * (1.0 if by_d else share_d)
        S[k], G[k] = part_q - part_d, part_q + part_d


def add(p, v, s, S, E, G):
    """Subtree v, with s in place of its S, is part of p's sums. For the rare case of two exponents."""
    if E[v] > E[p]:
        x = math.exp(E[p] - E[v])
        S[p], G[p], E[p] = S[p] * x + s, G[p] * x + G[v], E[v]
    else:
        x = math.exp(E[v] - E[p])
        S[p] += s * x
        G[p] += G[v] * x


def accumulate(parent, m, order, S, E, G):
    """From single values to subtrees."""
    for k in range(m - 1, -1, -1):
        v = order[k]
        p = parent[v]
        if p < 0:
            continue
        if E[v] == E[p]:
            S[p] += S[v]
            G[p] += G[v]
        else:
            add(p, v, S[v], S, E, G)


def size(s, e):
    """Logarithm of ``|s| e^e``."""
    return e + math.log(abs(s)) if s != 0.0 else -math.inf


def larger(s, e, other_s, other_e):
    """Whether ``|s| e^e`` is larger than the other number of that form; logarithms only where the exponents differ."""
    return abs(s) > abs(other_s) if e == other_e else size(s, e) > size(other_s, other_e)


def proves(parent, upper, m, order, S, E, G, gamma):
    """Whether flow along the tree covers all that is positive; S, E, G hold single values, and are used up.

    An upper node hands what it has too much to its parent; a lower one must have room for what it is handed. gamma times G
    is added against rounding, so that an answer True is a proof.
    """
    for k in range(m - 1, -1, -1):
        v = order[k]
        p = parent[v]
        beyond = not S[v] + gamma * G[v] <= 0.0  # so that a NaN proves nothing
        lower = p < 0 or not upper[v]
        if lower and beyond:
            return False
        if p < 0 or not (lower or beyond):
            continue
        handed = S[v] if lower else max(S[v], 0.0)
        if E[v] == E[p]:
            S[p] += handed
            G[p] += G[v]
        else:
            add(p, v, handed, S, E, G)
    return True
