r"""Rollouts of a chain with a longer memory: outputs show the label of a hidden state, so that its states share one choice.

Notation
--------
x        likelihoods of the outputs further away than a step, given the hidden state there: ``x <- P (m x)``
m        the likelihood of one output, 1 or e^epsilon for each label
N, D     weights of hidden states at a step; the leakage is ``log max N x / D x``
a        N - r D, for a ratio r
f        ``x / sum of s x``, with s the shares of the hidden states of a label: between `low` and `high`

An output raises the label k by e^epsilon where ``g = sum of a x`` over its hidden states is above 0, which depends on x if a
has both signs. The ratio of its positive and its negative part lies in a range that `low` and `high` determine, and over it
max(g, 0) is convex and at most its chord: a linear function of x, so that the rollout goes on with one vector. If nothing
positive is left at ratio r, then no observation exceeds r (Theory, section 13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from temporaldp.base.values import ROUNDOFF, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy import sparse

ITEM_ENTRIES = 1 << 16
"""Weights of the pairs that are followed together: half a megabyte an array, of which a few fit the cache."""

TOLERANCE = 1e-9
"""Relative distance between a ratio and the one that its own choices attain below which it is an upper bound to report."""

UNBOUNDED = 1e200
"""In place of infinity: its product with a weight of 0 is 0."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Bounds of the likelihoods of hidden states.

    Parameters
    ----------
    low, high : array, shape (T, m) or (1, m)
        Of each hidden state, relative to the mean of its label, at each of T positions, or at all.
    rise : float
        Nats by which any two differ at most, whatever follows; 0 where nothing follows.
    """

    low: FloatArray
    high: FloatArray
    rise: float = 0.0

    @property
    def apart(self) -> FloatArray:
        """Log ratios of each hidden state and the mean of its label, from both sides, shape (2 m,): `around_mean` undone."""
        with np.errstate(divide="ignore"):
            return np.concatenate([np.log(self.high[0]), -np.log(self.low[0])])

    def at(self, positions: IntArray) -> tuple[FloatArray, FloatArray]:
        """The bounds at some positions, shape (B, m), or (1, m) for all."""
        if len(self.low) == 1:
            return self.low, self.high
        return self.low[positions], self.high[positions]

    def sums(
        self, weights: tuple[FloatArray, FloatArray], positions: IntArray, shown: FloatArray
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Least and largest sums of weights, shape (B, m), over the hidden states of each label, shape (B, n)."""
        bounds = self.at(positions[:1] if (positions == positions[0]).all() else positions)
        if len(bounds[0]) == 1:
            low, high = (one[0, :, None] * shown for one in bounds)
            return [(one @ low, one @ high) for one in weights]
        return [((one * bounds[0]) @ shown, (one * bounds[1]) @ shown) for one in weights]


@dataclass(frozen=True, slots=True)
class Hidden:
    """The chain in one direction.

    Parameters
    ----------
    rows : array or sparse array, shape (m, m)
        ``Pr(hidden state one step further | hidden state)``.
    labels : int array, shape (m,)
    shares : array, shape (n, m)
        ``Pr(hidden state | label)``.
    overall : array, shape (m,)
        A distribution of hidden states that all of them are compared with.
    """

    rows: FloatArray | sparse.csr_array
    labels: IntArray
    shares: FloatArray
    overall: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, labels: IntArray, shares: FloatArray, overall: FloatArray) -> Hidden:
        """With sparse rows where most entries are 0."""
        from scipy import sparse  # takes longer to load than NumPy

        few = np.count_nonzero(rows) < rows.size / 8  # a sparse product costs about eight times as much an entry
        return cls(sparse.csr_array(rows) if few else rows, labels, shares, overall)

    @property
    def shown(self) -> FloatArray:
        """The label of each hidden state, shape (m, n)."""
        return np.eye(len(self.shares))[self.labels]

    @property
    def from_mean(self) -> tuple[FloatArray, FloatArray]:
        """Weights that compare each hidden state with the mean of its label, and the mean with it, shape (2 m, m)."""
        each, mean = np.eye(len(self.labels)), self.shares[self.labels]
        return np.concatenate([each, mean]), np.concatenate([mean, each])

    def at_each(self, windows: FloatArray) -> Spread:
        """Bounds at each of T positions, from the budgets that follow it, nearest first, shape (T, L); zeros follow the last.

        From the last position back: those that follow one have bounds of their own by then.
        """
        low, high = np.ones((2, len(windows), len(self.labels)))
        found = None
        for position in range(len(windows) - 2, -1, -1):
            budgets = np.broadcast_to(windows[position], (2 * len(self.labels), windows.shape[1]))
            start = np.full(len(budgets), position)
            found, _raised = self.largest(*self.from_mean, budgets, Spread(low, high), start=start, near=found)
            # Whatever follows; also where no ratio was proved
            found = np.minimum(found, budgets[0].sum() * (1.0 + 1e-12))
            one = around_mean(found)
            low[position], high[position] = one.low[0], one.high[0]
        return Spread(low, high)

    def in_parts(self, windows: FloatArray, follow: BoolArray, known: Spread) -> Spread:
        """Bounds at each of T positions, which neighbours share, from the budgets that follow, nearest first, shape (T, L).

        Parameters
        ----------
        windows : array, shape (T, L)
        follow : bool array, shape (T,)
            Whether further steps follow the last one.
        known : Spread
            Bounds for any budgets up to the largest one.
        """
        m = len(self.labels)
        parts = np.array_split(np.arange(len(windows)), min(len(windows), 6))  # if doubled, it takes twice as long
        budgets = np.repeat([windows[part].max(axis=0) for part in parts], 2 * m, axis=0)
        further = np.repeat([bool(follow[part].any()) for part in parts], 2 * m)
        top, bottom = (np.tile(one, (len(parts), 1)) for one in self.from_mean)
        found = self.largest(top, bottom, budgets, known, further, near=np.tile(known.apart, len(parts)))[0]
        each, sizes = [around_mean(one) for one in np.split(found, len(parts))], [len(part) for part in parts]
        low, high = np.concatenate([one.low for one in each]), np.concatenate([one.high for one in each])
        return Spread(np.repeat(low, sizes, axis=0), np.repeat(high, sizes, axis=0))

    def constant(self, epsilon: float, n_steps: int) -> Spread:
        """Bounds that hold at all steps of a budget that so many follow at most."""
        m = len(self.labels)
        spread = Spread(np.zeros((1, m)), np.full((1, m), UNBOUNDED))  # as if hidden states shared no choice
        found = None
        for _ in range(2):
            found, _raised = self.largest(*self.from_mean, np.full((2 * m, n_steps), epsilon), spread, near=found)
            spread = around_mean(found)
        return spread

    def settled(self, epsilon: float, n_steps: int) -> Spread | None:
        """Bounds that hold for any number of further steps, by induction over blocks of `n_steps`; None where none do."""
        m = len(self.labels)
        guess, mean = self.constant(epsilon, n_steps), np.broadcast_to(self.overall, (m, m))
        compared = np.concatenate([np.eye(m), mean]), np.concatenate([mean, np.eye(m)])
        budgets, follow = np.full((2 * m, n_steps), epsilon), np.ones(2 * m, dtype=np.bool_)
        near = guess.apart
        apart, _ = self.largest(*compared, budgets, guess, follow)
        widest = _rise(apart)
        if widest > 100.0:  # nats; what is so far apart does not settle within a block
            return None
        share = 1e-6
        for _ in range(6):
            # Bounds are raised by a share, until a block of steps stays within them
            tried = Spread(guess.low ** (1.0 + share), guess.high ** (1.0 + share), rise=widest * (1.0 + share) + share)
            near, _ = self.largest(*self.from_mean, budgets, tried, follow, near=near)
            apart, _ = self.largest(*compared, budgets, tried, follow, near=apart)
            kept, rise = around_mean(near), _rise(apart)
            if (kept.low >= tried.low).all() and (kept.high <= tried.high).all() and rise <= tried.rise:
                return tried
            with np.errstate(divide="ignore", invalid="ignore"):
                raised = np.log([kept.low, kept.high]) / np.log([guess.low, guess.high])
            needed = max(float(np.nanmax(raised, initial=1.0)), (rise + 1.0) / (widest + 1.0)) - 1.0
            share = max(4.0 * share, 1.2 * needed)
            if share > 0.5:
                return None
        return None

    def largest(
        self,
        top: FloatArray,
        bottom: FloatArray,
        budgets: FloatArray,
        spread: Spread,
        follow: BoolArray | None = None,
        start: IntArray | None = None,
        near: FloatArray | None = None,
    ) -> tuple[FloatArray, BoolArray]:
        """Upper bounds of ``log max N x / D x``, shape (B,), and the labels that were raised, shape (B, L, n).

        Parameters
        ----------
        top, bottom : array, shape (B, m)
            N and D.
        budgets : array, shape (B, L)
            Of the outputs, nearest first, in nats; items with fewer steps end with zeros.
        spread : Spread
            Bounds that hold at every one of these steps.
        follow : bool array, shape (B,), optional
            Whether further steps follow the last one, for which `spread` holds too. Default: for none.
        start : int array, shape (B,), optional
            Position of the step itself; the outputs are at the following ones. Default: 0.
        near : array, shape (B,), optional
            Where the search begins: bounds of a similar case. Default: 0.
        """
        begin = np.zeros(len(top)) if near is None else np.clip(near, 0.0, 100.0)
        first_position = np.zeros(len(top), dtype=np.int64) if start is None else start
        further = np.zeros(len(top), dtype=np.bool_) if follow is None else follow
        last = np.where(budgets > 0.0, np.arange(1, budgets.shape[1] + 1), 0).max(axis=1, initial=0)
        last = np.where(further, budgets.shape[1], last)
        order = np.argsort(-last, kind="stable")  # longest first, so that those that go on are the first ones
        found, raised = np.empty(len(top)), np.empty((*budgets.shape, len(self.shares)), dtype=np.bool_)
        size = max(1, ITEM_ENTRIES // len(self.labels))
        for first in range(0, len(top), size):
            some = order[first : first + size]
            pairs = _Pairs(
                self, top[some], bottom[some], budgets[some], last[some], further[some], first_position[some], spread
            )
            found[some], raised[some] = pairs.run(np.exp(begin[some]))
        return found, raised

    def likelihoods(self, raised: BoolArray, budgets: FloatArray) -> FloatArray:
        """X at the step itself, shape (B, m), where outputs raise these labels; shape (B, L, n)."""
        x = np.ones((len(raised), len(self.labels)))
        for step in range(budgets.shape[1] - 1, -1, -1):
            factors = np.where(raised[:, step, self.labels], np.exp(budgets[:, step, None]), 1.0)
            x = (self.rows @ (factors * x).T).T
        return np.asarray(x)


def around_mean(found: FloatArray) -> Spread:
    """Bounds from the log ratios of `Hidden.from_mean`."""
    above, below = np.split(found, 2)
    return Spread(np.exp(-below)[None], np.exp(above)[None])


def _rise(apart: FloatArray) -> float:
    """Nats by which any two hidden states differ at most, from the log ratios of each and the overall mean."""
    above, below = np.split(apart, 2)
    return float(above.max() + below.max())


@dataclass(slots=True)
class _Pairs:
    """Pairs of weights whose largest ratios are looked for together, in the order of their last step, longest first."""

    chain: Hidden
    top: FloatArray
    bottom: FloatArray
    budgets: FloatArray
    last: IntArray
    follow: BoolArray
    start: IntArray
    spread: Spread

    def run(self, ratio: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Upper bounds of the logarithms of the largest ratios, and the choices that led to them, from ratios on."""
        n_pairs = len(self.top)
        low, high = np.ones(n_pairs), np.full(n_pairs, np.inf)
        raised = np.zeros((*self.budgets.shape, len(self.chain.shares)), dtype=np.bool_)
        left, off = np.arange(n_pairs), np.zeros(n_pairs)
        # Rounds, of which six to eight are usual; a ratio without an upper bound after them is reported as infinite
        for _ in range(200):
            asked = ratio[left]
            found, raised[left] = self.attained(left, asked)
            proved = found <= asked
            high[left] = np.where(proved, np.minimum(high[left], asked), high[left])
            low[left] = np.where(proved, low[left], np.maximum(low[left], asked))
            close = proved & (found >= asked * (1.0 - 4.0 * TOLERANCE))
            following = np.maximum(found * (1.0 + TOLERANCE), 1.0)
            # Also where ratios swing from side to side, and hardly come closer
            before, off[left] = off[left], found / asked - 1.0
            is_slow = (np.sign(off[left]) == -np.sign(before)) & (np.abs(off[left]) > 0.5 * np.abs(before))
            outside = is_slow | (following <= low[left]) | (following >= high[left])
            middle = np.where(np.isfinite(high[left]), np.sqrt(low[left] * high[left]), 2.0 * following)
            ratio[left] = np.where(outside, middle, following)
            left = left[~close & (high[left] > low[left] * (1.0 + TOLERANCE))]
            if not left.size:
                break
        return np.log(high), raised

    @np.errstate(divide="ignore", over="ignore", invalid="ignore")
    def attained(self, chosen: IntArray, ratio: FloatArray) -> tuple[FloatArray, BoolArray]:
        """N x / D x by the choices for some ratios, with a margin for rounding: if it is at most the ratio, that is a bound."""
        chain, shown, labels = self.chain, self.chain.shown, self.chain.labels
        top, bottom, budgets = (one[chosen] for one in (self.top, self.bottom, self.budgets))
        last, start = self.last[chosen], self.start[chosen]
        whole_top, whole_bottom = top.sum(axis=1), bottom.sum(axis=1)
        raised = np.zeros((*budgets.shape, shown.shape[1]), dtype=np.bool_)
        n_steps, lifts, ratios = int(last.max(initial=0)), np.expm1(budgets), ratio[:, None]
        # Items that take each step, the first ones
        ends = np.searchsorted(-last, -np.arange(n_steps + 1), side="left").tolist()
        for step in range(n_steps):
            some = slice(0, ends[step])
            top, bottom = top[some] @ chain.rows, bottom[some] @ chain.rows
            if not budgets[some, step].any() and step + 1 < budgets.shape[1]:
                continue  # nothing is chosen, and no item ends
            signed = top - ratios[some] * bottom
            is_positive, positive = signed > 0.0, np.maximum(signed, 0.0)
            (positive_low, positive_high), (negative_low, negative_high) = self.spread.sums(
                (positive, positive - signed), start[some] + step + 1, shown
            )
            # The range of A / B, a little wider than these sums have it, for their rounding; any, where they exceed all numbers
            least = np.fmin((1.0 - 1e-12) * positive_low / negative_high, 1.0)
            most = (1.0 + 1e-12) * positive_high / negative_low
            is_unknown = ~(np.isfinite(positive_high) & np.isfinite(negative_high))
            least[is_unknown], most[is_unknown] = 0.0, np.inf
            share = np.where((least == 1.0) | (most == np.inf), 1.0, (most - 1.0) / (most - least))
            share[(most <= 1.0) | np.isnan(share)] = 0.0
            lift = lifts[some, step, None]
            of_positive, of_negative = 1.0 + lift * share, 1.0 + lift * share * least
            if step + 1 == budgets.shape[1]:
                of_positive *= np.where(self.follow[chosen][some], np.exp(self.spread.rise), 1.0)[:, None]
            factors = np.where(
                is_positive, (of_positive / (1.0 + lift))[:, labels], (of_negative / (1.0 + lift))[:, labels]
            )
            top *= factors
            bottom *= factors
            raised[some, step] = share > 0.5
            ended = slice(ends[step + 1], ends[step])
            whole_top[ended], whole_bottom[ended] = top[ended].sum(axis=1), bottom[ended].sum(axis=1)
        margin = 1.0 + 8.0 * (budgets.shape[1] + 1) * (len(labels) + 8) * ROUNDOFF
        return margin * whole_top / whole_bottom, raised
