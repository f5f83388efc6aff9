"""Forests as arrays of parents: walking, hanging elsewhere, potentials. Notation in `temporaldp.kernels.trees`."""


def root_of(parent, v):
    """The root of v's tree."""
    while parent[v] >= 0:
        v = parent[v]
    return v


def hang(parent, upper, root, a, c, a_upper):
    """Turn the tree below `root` so that a is its top, and hang it under c (-1: nowhere)."""
    above, sense, v = c, a_upper, a
    while True:
        next_above, next_sense = parent[v], not upper[v]
        parent[v], upper[v] = above, sense
        if v == root:
            return
        above, sense, v = v, next_sense, next_above


def walk(parent, m, order, place, child, sibling):
    """Every node after its parent and every subtree in one piece: node v stands at ``order[place[v]]``."""
    for v in range(m):
        child[v] = -1
    for v in range(m - 1, -1, -1):
        if parent[v] >= 0:
            sibling[v] = child[parent[v]]
            child[parent[v]] = v
    count = 0
    for root in range(m):
        if parent[root] >= 0:
            continue
        v = root
        while v >= 0:
            order[count], place[v] = v, count
            count += 1
            if child[v] >= 0:
                v = child[v]
                continue
            while v != root and sibling[v] < 0:
                v = parent[v]
            v = -1 if v == root else sibling[v]


def potentials(b, parent, upper, m, order, u):
    """``u`` along the trees, from what it is at their roots."""
    for k in range(m):
        v = order[k]
        p = parent[v]
        if p >= 0:
            u[v] = u[p] + b[v, p] if upper[v] else u[p] - b[p, v]


def violations(b, u, m, slack):
    """How many constraints ``u_a - u_c <= b(a, c)`` fail by more than `slack`."""
    count = 0
    for a in range(m):
        reach = u[a] - slack
        for c in range(m):
            count += reach - u[c] > b[a, c]
    return count
