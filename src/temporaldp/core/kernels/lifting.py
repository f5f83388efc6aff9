r"""Leakage of one step pair by pair: a metric on states, lifted through a transition matrix.

The multiplicative Kantorovich lifting of Chatzikokolakis, Gebler, Palamidessi and Xu (Generalized bisimulation metrics, CONCUR
2014): for every ordered pair (i, j) of rows of P,

    K(b)(i, j) = log max { P_i x / P_j x : x > 0, x_a <= e^b(a, c) x_c for all a, c }.

Notation
--------
q, d      two rows of P, restricted to the states that either can come from
u         log x; feasible if u_a - u_c <= b(a, c) for all a, c; a constraint is tight where both sides are equal
w         q_k x_k / q x - e^rise d_k x_k / d x: with rise = 0 it sums to 0
flow      units of w shipped along a pair of the forest
level     largest entry of b for these states

With ``z_k = x'_k / x_k`` for any other feasible x', ``sum of w_k z_k`` is at most 0 if and only if the positive part of w
can be shipped to its negative part, where a unit from a uses ``exp(b(a, c) - u_a + u_c) >= 1`` units at c (a transport
problem with gains; the proof is in Theory, section 8). Such a shipment certifies that no x' has a log ratio above that of x
plus `rise`, whatever led to x. The search keeps a forest of tight pairs for each pair of rows; along them a unit uses a
unit. From the leaves to the roots, a high end ships what it has too much and a low one covers what it can. What is left
over somewhere rises, with all that it is shipped from, relative to all other states until another constraint becomes tight,
which increases the ratio; the forest takes that one. The search ends when everything is shipped.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from temporaldp.base.progress import in_blocks
from temporaldp.base.values import ROUNDOFF, BoolArray, FloatArray, IntArray
from temporaldp.core.kernels.profile import LeakageProfile

Trees = NDArray[np.int16]

TREE_STATES = 400
"""States up to which every pair keeps the tree of its shipment, 2 n^3 bytes (128 MB); with more, each search starts anew."""

LIFTED_ENTRIES = 1 << 16
"""Entries of the arrays in which pairs are looked at together, so that they stay in the processor's cache."""


def no_trees(n_states: int) -> Trees:
    """An array for the trees of all pairs of rows, none of which is stored yet; empty for too many states."""
    return np.full((n_states, n_states, n_states if n_states <= TREE_STATES else 0), -1, dtype=np.int16)


def off_diagonal(n_states: int) -> FloatArray:
    """1 off the diagonal, 0 on it: the metric of plain differential privacy, times epsilon."""
    return 1.0 - np.eye(n_states)


def closed(metric: FloatArray) -> FloatArray:
    """The largest metric below that obeys the triangle inequality (Floyd and Warshall): shortest paths, O(n^3)."""
    shortest = metric.copy()
    for k in range(len(metric)):
        np.minimum(shortest, shortest[:, k, None] + shortest[k], out=shortest)
    return shortest


def lifted(rows: FloatArray, metric: FloatArray, profile: LeakageProfile, trees: Trees) -> FloatArray:
    """K(metric) for all ordered pairs of rows, shape (m, m), zeros on the diagonal; in nats.

    Upper bounds, each certified by a shipment: usually ``10 n + 60 + 72 max(metric)`` ulps / 2 above the exact value;
    above ``profile.loss(metric.max())``, the bound for all pairs, by its rounding at most.

    Parameters
    ----------
    rows : array, shape (m, n)
        A transition matrix, or its different rows.
    metric : array, shape (n, n)
        ``b(a, c) >= 0`` bounds the log ratio of the likelihoods of a and c; zeros on the diagonal. Where going through a third
        state is shorter, that counts.
    profile : LeakageProfile
        Of the same matrix.
    trees : array, shape (m, m, n) or (m, m, 0)
        From `no_trees`. Used to start from, and left with the trees of this step.
    """
    n, upper = rows.shape[1], np.zeros((len(rows), len(rows)))
    level = float(metric.max())
    if level == 0.0 or len(profile) == 0:
        return upper
    metric = closed(metric)
    i, j = np.nonzero((rows[:, None] != rows[None]).any(axis=2))
    kept = trees if trees.shape[2] == n else np.full((1, 1, n), -1, np.int16)
    for first in range(0, len(i), size := 1 + LIFTED_ENTRIES // n):
        pairs = (i[first : first + size], j[first : first + size]) if kept is trees else (0, 0)
        one, other = rows[i[first : first + size]], rows[j[first : first + size]]
        search = _Search(one, other, metric, level, np.broadcast_to(kept[pairs], one.shape))
        upper[i[first : first + size], j[first : first + size]] = search.run()
        if kept is trees:
            trees[pairs] = search.trees
    # Relative: the loss of a profile is exact to rounding, and an upper bound when raised by this
    return np.minimum(upper, float(profile.loss(level)) * (1.0 + 1e-15))


class _Search:
    """The search for many pairs of rows at once; arrays have shape (pairs, n), and `b` shape (n, n).

    Each pair has a forest of tight constraints: ``parent`` of a state, -1 at a root, and whether the state is the `high` end,
    ``u_v = u_p + b(v, p)``, or the low one, ``u_v = u_p - b(p, v)``.
    """

    def __init__(self, q: FloatArray, d: FloatArray, b: FloatArray, level: float, trees: Trees) -> None:
        self.q, self.d, self.b, self.level = q, d, b, level
        n = len(b)
        self.counts = (q > 0.0) | (d > 0.0)
        self.parent, self.high = trees // 2, trees % 2 == 1
        known = self.counts & (trees >= 0) & np.take_along_axis(self.counts, np.maximum(self.parent, 0), axis=1)
        self.parent = np.where(known, self.parent, -1).astype(np.intp)
        guess = np.where(q > d, level, 0.0)
        step = self._step().ravel()
        for nodes, parents in self._levels():
            guess.ravel()[nodes] = guess.ravel()[parents] + step[nodes]
        guess -= guess.min(axis=1, keepdims=True, where=self.counts, initial=np.inf)
        guess = np.where(self.counts, guess, np.inf)
        self.u = np.empty_like(q)
        for some in in_blocks(len(q), LIFTED_ENTRIES // n**2):
            self.u[some] = (b + guess[some, None, :]).min(axis=2)
        base = np.arange(len(q))[:, None]
        off = np.abs(self.u - self.u[base, np.maximum(self.parent, 0)] - self._step())
        self.parent[off > 4.0 * ROUNDOFF * level] = -1
        # A pair counts as tight within a `slack` of some roundings. `loss` bounds what a unit uses at its other end.
        self.slack, self.loss = 16.0 * ROUNDOFF * level, (32.0 * level + 4.0) * ROUNDOFF
        self.rise = np.full(len(q), (10.0 * n + 58.0 + 64.0 * level) * ROUNDOFF)
        self.pad = np.zeros_like(q)

    @property
    def trees(self) -> Trees:
        """The forests as they are kept: ``2 p + 1`` at a high end, ``2 p`` at a low one, -1 at a root."""
        return np.where(self.parent >= 0, 2 * self.parent + self.high, -1).astype(np.int16)

    def _step(self) -> FloatArray:
        """What u is above that of the parent."""
        state, parent = np.arange(len(self.b)), np.maximum(self.parent, 0)
        return np.where(self.high, self.b[state, parent], -self.b[parent, state])

    def _levels(self) -> list[tuple[IntArray, IntArray]]:
        """Flat places of states and of their parents, for each depth from 1 on."""
        n = len(self.b)
        flat = np.where(self.parent >= 0, self.parent + n * np.arange(len(self.parent))[:, None], -1).ravel()
        nodes = np.flatnonzero(flat >= 0)
        depth, above = np.zeros(flat.size, np.intp), flat[nodes]
        deeper = nodes
        while deeper.size:
            depth[deeper] += 1
            deeper, above = deeper[flat[above] >= 0], flat[above][flat[above] >= 0]
        order = nodes[np.argsort(depth[nodes], kind="stable")]
        ends = np.cumsum(np.bincount(depth[nodes], minlength=1)).tolist()
        parts = [order[first:last] for first, last in pairwise(ends)]
        return [(part, flat[part]) for part in parts]

    def run(self) -> FloatArray:
        """Upper bounds of all pairs, inf where none is certified; the forests are left behind."""
        found, n = np.full(len(self.q), np.inf), len(self.b)
        whole, rest = self.parent.copy(), np.arange(len(self.q))
        ends = self.high.copy()
        rng = np.random.default_rng(0)
        # Rounds after which a search is stopped and the bound for all pairs is reported. It takes about two a state without a
        # tree to start from, and hardly any from the tree of the step before
        for _ in range(20 * n + 20):
            ratio, w, error = self._weigh()
            levels = self._levels()
            usual = self.loss * np.maximum(-w, 0.0) + (n + 4.0) * ROUNDOFF * np.abs(w)
            surplus = w + 2.0 * error + np.maximum(1.01 * usual, self.pad)
            flat, high = surplus.ravel(), self.high.ravel()
            for nodes, parents in levels[::-1]:
                # A high end ships what it has too much, a low one covers what it can.
                np.add.at(flat, parents, np.where(high[nodes] == (flat[nodes] > 0.0), flat[nodes], 0.0))
            wrong = np.where(self.counts & ((self.parent < 0) | ~self.high), surplus, -np.inf)
            worst = wrong.argmax(axis=1)
            done = wrong[np.arange(worst.size), worst] <= 0.0
            sure = done & self._certified(w + error, surplus) if done.any() else done
            found[rest[sure]] = (ratio + self.rise + 4.0 * ROUNDOFF * (np.abs(ratio) + self.level))[sure]
            # Nats above the ratio found up to which a certificate is looked for; beyond, the bound for all pairs is reported
            stay = ~sure & (self.rise <= 1e-6)
            if not stay.any():
                break
            again = done & ~sure
            self.rise[again] += self.pad[again].sum(axis=1)
            if not done.all():
                self.pad[~done] = 0.0
                self.rise[~done & ~self._move(~done, worst, surplus, levels, rng.random((n, n)), w)] *= 4.0
            if not stay.all():
                whole[rest], ends[rest] = self.parent, self.high
                rest = rest[stay]
                for name in ("q", "d", "u", "counts", "parent", "high", "pad", "rise"):
                    setattr(self, name, getattr(self, name)[stay])
        whole[rest], ends[rest] = self.parent, self.high
        self.parent, self.high = whole, ends
        return found

    def _weigh(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """``log(q x / d x)``, w and bounds of its rounding; each sum from its own largest term.

        A positive w that underflows stays above 0 by its error, so that it has to be shipped; a negative one vanishes.
        """
        logs, shares, far = [], [], 0.0
        for p, rise in ((self.q, 0.0), (self.d, self.rise[:, None])):
            u = np.where(p > 0.0, self.u, -np.inf)
            top = u.max(axis=1, keepdims=True)
            log = top + np.log((p * np.exp(u - top)).sum(axis=1, keepdims=True))
            logs.append(log[:, 0])
            shares.append(p * np.exp(u - log + rise))
            far = far + np.abs(self.u - log)
        of_q, of_d = shares
        ratio = logs[0] - logs[1]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            odds = self.q / self.d
            negative = (self.q == 0.0) | ((odds > 1e-300) & (np.log(odds) <= ratio[:, None]))
        w = of_q - of_d
        error = (far + 2.0 * len(self.b) + 10.0) * ROUNDOFF * (of_q + of_d) + np.where(negative, 0.0, 1e-300)
        return ratio, np.where(negative & (w > -1e-290), 0.0, w), error

    def _certified(self, w: FloatArray, surplus: FloatArray) -> BoolArray:
        """Whether the flows along the forests ship all that is positive in w; where they do not, they get more room."""
        n, at = len(self.b), np.arange(len(self.q))[:, None]
        parent = np.maximum(self.parent, 0)
        flow = np.where((self.parent >= 0) & (self.high == (surplus > 0.0)), np.abs(surplus), 0.0)
        # At a high end the flow is sent to the parent; else it arrives from there.
        up, down = np.where(self.high, flow, 0.0), np.where(self.high, 0.0, flow)
        places = (parent + n * at).ravel()
        at_parents = (np.bincount(places, one.ravel(), minlength=w.size).reshape(w.shape) for one in (down, up))
        sent, arrived = (own + other for own, other in zip((up, down), at_parents, strict=True))
        tight = np.abs(self.u - self.u[at, parent] - self._step()) <= self.slack
        room = (self.loss * arrived) + (n + 4.0) * ROUNDOFF * (arrived + sent)
        # Directed rounding; a NaN certifies nothing.
        sure = (w + arrived - sent + room <= 0.0).all(axis=1) & (tight | (flow == 0.0)).all(axis=1)
        self.pad[~sure] = 2.0 * room[~sure]
        return np.asarray(sure)

    def _move(
        self,
        some: BoolArray,
        worst: IntArray,
        surplus: FloatArray,
        levels: list[tuple[IntArray, IntArray]],
        draw: FloatArray,
        w: FloatArray,
    ) -> BoolArray:
        """Let what would have to leave one state, in some pairs, rise until another constraint is tight; False where none is.

        Below the state, that are all from which something is shipped to it, and all by which it is covered. Of constraints
        that become tight at once one is taken that ships from where w is positive, for direct shipments; else at random.
        """
        (size, n), at = self.q.shape, np.arange(len(self.q))
        inside, full = np.zeros((size, n), dtype=np.bool_), (self.high <= (surplus > 0.0)).ravel()
        inside[at, worst] = True
        for nodes, parents in levels:
            inside.ravel()[nodes] |= inside.ravel()[parents] & full[nodes]
        high, low = (np.where(side & self.counts, self.u, far) for side, far in ((inside, -np.inf), (~inside, np.inf)))
        room, entering = np.empty(size), np.empty(size, np.intp)
        for block in in_blocks(size, LIFTED_ENTRIES // n**2):
            rooms = (self.b - high[block, :, None] + low[block, None, :]).reshape(-1, n * n)
            room[block] = rooms.min(axis=1)
            tied = rooms <= room[block, None] + self.slack
            rank = (draw + (w[block] <= 0.0)[:, :, None]).reshape(-1, n * n)
            entering[block] = np.where(tied, rank, 2.0).argmin(axis=1)
        moved = some & np.isfinite(room)
        room = np.where(moved, np.maximum(room, 0.0), 0.0)[:, None]
        beyond = high.max(axis=1, keepdims=True) + room > self.level  # then the others fall
        self.u += np.where(beyond, np.where(inside, 0.0, -room), np.where(inside, room, 0.0))
        apart = ~inside & np.take_along_axis(inside, np.maximum(self.parent, 0), axis=1)
        self.parent[apart & moved[:, None]] = -1
        rows = np.flatnonzero(moved)
        state, parent, is_high = entering[rows] // n, entering[rows] % n, np.ones(rows.size, dtype=np.bool_)
        while rows.size:  # the path from the new edge to the state turns round
            before, was_high = self.parent[rows, state], self.high[rows, state]
            self.parent[rows, state], self.high[rows, state] = parent, is_high
            on = state != worst[rows]
            rows, state, parent, is_high = rows[on], before[on], state[on], ~was_high[on]
        return moved
