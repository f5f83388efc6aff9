"""Privacy profiles on a grid of privacy losses: every operation adds numbers >= 0, so that nothing cancels.

Notation
--------
h        distance of the grid, in nats
D        D[k] = delta at epsilon = k h, k = 0..K; D[K] is also the delta of every larger epsilon (mass of an infinite loss).
         Between grid points D is a straight line in e^epsilon. Below 0 it is given by symmetry, because neighbours are ordered
         both ways: ``D(-x) = 1 - e^{-x} + e^{-x} D(x)``
m        probabilities of the losses -J h..J h of a mechanism, and `infinite` of the infinite one
theta    contraction curve of a transition matrix at gamma = e^{k h}
up, down  an upper bound of the true profile at every epsilon, or a lower one

A profile is convex in e^epsilon, so the straight lines lie above it: what is exact at grid points is `up` everywhere ("connect
the dots", Doroshenko et al., PoPETs 2022), and `lowered` moves it below. Through a correlation: Theory, section 9.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from temporaldp.base.errors import InputError
from temporaldp.base.values import ULP, FloatArray, IntArray, locked
from temporaldp.core.kernels.profile import LeakageProfile
from temporaldp.core.mechanisms.protocol import ROUNDED

MOST_DIRECT = 1 << 26
"""Products beyond which even a small delta gets the error of an FFT: on the safe side, but seconds a step are too long."""


MOST_POINTS = 1 << 21
"""A grid of more points (16 MiB an array, seconds a step) is refused."""

LARGEST_LOSS = 600.0
"""Above, e^epsilon leaves the range of doubles where `lowered` needs it."""


def powers(h: float, most: int) -> tuple[FloatArray, FloatArray]:
    """``e^{-k h}`` and ``1 - e^{-k h}`` for k = 0, 1, ..., `most` and beyond."""
    return _powers(h, max(most.bit_length(), 15))  # of one length for nearly all curves: 32,768


@lru_cache(maxsize=4)
def _powers(h: float, bits: int) -> tuple[FloatArray, FloatArray]:
    exponents = -h * np.arange(1 << bits, dtype=np.float64)
    return locked(np.exp(exponents)), locked(-np.expm1(exponents))


def cells(h: float, losses: FloatArray) -> tuple[IntArray, FloatArray]:
    """Where `interpolated` reads a profile for losses >= 0: grid points, and the share of the next one."""
    k = np.minimum(losses / h, MOST_POINTS).astype(np.int64)
    k -= k * h > losses  # a quotient that was rounded up
    return k, np.clip(np.expm1(losses - k * h) / math.expm1(h), 0.0, 1.0)


def interpolated(D: FloatArray, k: IntArray, right: FloatArray) -> FloatArray:
    """D at the losses of `cells`."""
    return np.asarray((1.0 - right) * D[np.minimum(k, D.size - 1)] + right * D[np.minimum(k + 1, D.size - 1)])


def contraction_bounds(profile: LeakageProfile, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The contraction curve theta at e^losses, from below and from above."""
    lower, upper = np.zeros_like(losses), np.zeros_like(losses)
    with np.errstate(over="ignore"):
        over = np.expm1(losses)
    for d, x in zip(profile.vertices[:, 0], profile.excess, strict=True):
        taken = over * d if d > 0.0 else 0.0  # not inf * 0
        np.maximum(upper, x * (1.0 + ROUNDED) - taken * (1.0 - ROUNDED), out=upper)
        np.maximum(lower, x * (1.0 - ROUNDED) - taken * (1.0 + ROUNDED), out=lower)
    return lower, np.minimum(upper, 1.0)


def passage(h: float, theta: FloatArray, *, up: bool) -> tuple[FloatArray, IntArray, FloatArray]:
    """Theta at the grid points, and the `cells` of ``1 + (gamma - 1) / theta(gamma)``, as losses, on the safe side."""
    at = h * np.arange(theta.size, dtype=np.float64)
    share = np.where(theta > 0.0, theta, 1.0)
    # log(1 + (e^x - 1) / theta), without e^x, as a sum of numbers >= 0
    arriving = at + np.log1p(-np.expm1(-at) * ((1.0 - share) / share))
    return theta, *cells(h, np.maximum(arriving + (1.0 + arriving) * (-ROUNDED if up else ROUNDED), at))


def arriving_profile(D: FloatArray, passed: tuple[FloatArray, IntArray, FloatArray], *, up: bool) -> FloatArray:
    """One step through a correlation: ``theta(gamma) D(1 + (gamma - 1) / theta(gamma))`` at the grid points (Theorem 5)."""
    theta, k, right = passed
    return rounded(theta[: D.size] * interpolated(D, k[: D.size], right[: D.size]), up=up)


def composed(D: FloatArray, h: float, m: FloatArray, infinite: float, *, up: bool, finest: float = 0.0) -> FloatArray:
    """The profile of two independent outputs: ``sum_j m[j] D(k - j) + infinite``; an error above `finest` is not made."""
    extended = _extended(D, h, m.size // 2)
    # By sums: a product of BLAS wakes all its threads, each time
    norms = math.sqrt(float(np.square(extended).sum()) * float(np.square(m).sum()))
    by_fft = fft_error(extended.size + m.size, norms)
    products = extended.size * m.size
    # Times the error that is accepted: beyond, eight times as many products are worth their time
    affordable = MOST_DIRECT if by_fft <= 1000.0 * finest else 8 * MOST_DIRECT
    some = np.flatnonzero(m)
    # Losses of a mechanism up to which they are added up one by one
    if some.size <= 64:  # discrete Laplace noise, randomised response, a guarantee
        sums = np.zeros(extended.size - m.size + 1)
        for j in some.tolist():
            sums += m[j] * extended[m.size - 1 - j : extended.size - j]
        error = some.size * ULP * sums
    # Products up to which a convolution is summed term by term: a relative error only. Beyond, by FFT, whose error is absolute
    elif products <= (1 << 22) or (by_fft > finest and products <= affordable):
        sums = np.convolve(extended, m, mode="valid")
        error = m.size * ULP * sums
    else:
        sums, error = convolved(extended, m)
    sums = sums + infinite + (error if up else -error)
    # Rounding may leave a tail that does not fall: the largest value to the right (up), the smallest to the left (down).
    sums = np.maximum.accumulate(sums[::-1])[::-1] if up else np.minimum.accumulate(np.maximum(sums, 0.0))
    return rounded(sums, up=up)


def convolved(extended: FloatArray, m: FloatArray) -> tuple[FloatArray, ...]:
    """Sums of products along the last axis, where m lies within the other array, and what each of them may be wrong by.

    By Fourier transforms of blocks: an error is absolute in its block, so that the end of a curve keeps its digits.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    n, size = m.shape[-1], extended.shape[-1] - m.shape[-1] + 1
    width = next_fast_len(2 * n, real=True)
    missing = np.zeros((*extended.shape[:-1], -size % (width - n + 1)))
    blocks = sliding_window_view(np.concatenate((extended, missing), axis=-1), width, axis=-1)[..., :: width - n + 1, :]
    sums = irfft(rfft(blocks) * rfft(m, width)[..., None, :], width)[..., n - 1 :]
    norms = np.linalg.norm(blocks, axis=-1) * np.linalg.norm(m, axis=-1)[..., None]
    error = np.broadcast_to(fft_error(width + n, norms)[..., None], sums.shape)
    return tuple(one.reshape(*one.shape[:-2], -1)[..., :size] for one in (sums, error))


def _extended(D: FloatArray, h: float, J: int) -> FloatArray:
    """D at the losses from -J to K + 2 J; `InputError` where the grid of the sums has too many points."""
    K = D.size - 1
    if K + J > MOST_POINTS:
        raise InputError(f"expected a grid of at most {MOST_POINTS} points, got {K + J}; give a larger grid than {h:g}")
    fallen, lost = (one[J:0:-1] for one in powers(h, J))
    below = lost + fallen * D[np.minimum(np.arange(J, 0, -1), K)]
    return np.concatenate((below, D, np.full(2 * J, D[K])))


def composed_epsilon(
    D: FloatArray, h: float, m: FloatArray, infinite: float, delta: float, *, up: bool, near: float = 0.0
) -> float:
    """The epsilon of `composed` for a given delta: only a few points of that profile are computed, without an FFT.

    The search begins `near` an epsilon, such as that of the step before.
    """
    extended = _extended(D, h, m.size // 2)

    @cache
    def at(k: int) -> float:
        return _composed_at(k, extended, m, infinite, up=up)

    last = D.size - 1 + m.size // 2
    if at(last) > delta:
        return math.inf
    # Both ends bound the epsilon even where rounding lets the profile rise.
    low, high, middle, stride = -1, last, int(min(near / h, last)), 1
    while high - low > 1:
        middle = middle if low < middle < high else (low + high) // 2
        low, high, middle = (low, middle, middle - stride) if at(middle) <= delta else (middle, high, middle + stride)
        stride *= 2
    return _within_cell(at(low), at(high), low, h, delta, up=up) if high else 0.0


def composed_variation(D: FloatArray, h: float, m: FloatArray, infinite: float, *, up: bool) -> float:
    """The value of `composed` at a loss of 0."""
    return _composed_at(0, _extended(D, h, m.size // 2), m, infinite, up=up)


def _composed_at(k: int, extended: FloatArray, m: FloatArray, infinite: float, *, up: bool) -> float:
    value = float(extended[k : k + m.size] @ m[::-1]) * (1.0 + (m.size if up else -m.size) * ULP) + infinite
    return float(rounded(np.asarray(value), up=up))


def pair_masses(D: FloatArray, reverse: FloatArray, h: float) -> tuple[FloatArray, float]:
    """(m, infinite) of one ordered pair whose other order has the profile `reverse`, of the same length; an upper bound.

    Under the first of both the masses sum to 1, under the second too, but for rounding: a loss of 0 gets what the larger one
    leaves, and what the first has too much of could be an infinite loss.
    """
    right, infinite = masses(D, h, up=True)
    left, lost = masses(reverse, h, up=True)
    K = D.size - 1
    falling = powers(h, K)[0][1 : K + 1]
    gain, loss = right[K + 1 :], left[K + 1 :]
    first = 1.0 - infinite - float(gain.sum()) - float((loss * falling).sum())
    second = 1.0 - lost - float((gain * falling).sum()) - float(loss.sum())
    both = np.concatenate(((loss * falling)[::-1], [max(first, second, 0.0)], gain))
    return both, min(infinite + max(first - second, 0.0), 1.0)


def masses(D: FloatArray, h: float, *, up: bool) -> tuple[FloatArray, float]:
    """(m, infinite): the probabilities of the losses that have this profile; where rounding leaves a doubt, on the safe side.

    ``B[k] = (D[k-1] - D[k]) / (1 - e^{-h})`` is the sum of ``m[j] e^{(k-j) h}`` over ``j >= k``; differences of it are m.
    """
    D = np.maximum.accumulate(D[::-1])[::-1] if up else np.minimum.accumulate(D)
    K = D.size - 1
    infinite = float(D[K])
    right = np.zeros(0)
    if K:
        B = monotone((D[:-1] - D[1:]) / -math.expm1(-h), h, up=up)
        # rounding of e^{-h} adds up over the 1 / h losses in which B falls to a third
        slack = ROUNDED + 4.0 * ULP / h
        right = np.maximum(B - math.exp(-h) * np.append(B[1:], 0.0), 0.0) * (1.0 + slack if up else 1.0 - slack)
    left = right * powers(h, K)[0][1 : K + 1]
    total = float(right.sum()) + float(left.sum())
    if not up and total > 1.0 - infinite:
        share = (1.0 - infinite) / total * (1.0 - ROUNDED)
        right, left, total = right * share, left * share, total * share
    return np.concatenate((left[::-1], [max(1.0 - infinite - total, 0.0)], right)), infinite


def monotone(B: FloatArray, h: float, *, up: bool) -> FloatArray:
    """The least sequence above B (up), or the largest below (down), that falls by at most a factor e^{-h} from right to left.

    So that its differences are probabilities, which those of rounded numbers need not be.
    """
    with np.errstate(divide="ignore"):
        level = np.log(B) - h * np.arange(B.size)  # must not increase
    if up:
        source = (B.size - 1 - _least_so_far(-level[::-1]))[::-1]
        return np.asarray(np.maximum(B, B[source] * powers(h, B.size)[0][source - np.arange(B.size)]))
    source = _least_so_far(level)
    with np.errstate(over="ignore", invalid="ignore"):
        grown = np.exp(h * (np.arange(B.size) - source))
        return np.asarray(np.where(B[source] > 0.0, np.minimum(B, B[source] * grown), 0.0))


def _least_so_far(level: FloatArray) -> IntArray:
    """The last place up to each one that has the least level up to there."""
    is_least = level <= np.minimum.accumulate(level)
    return np.maximum.accumulate(np.where(is_least, np.arange(level.size), 0))


def trimmed(D: FloatArray, tail: float, *, up: bool) -> FloatArray:
    """D without the end that differs from its last value by at most `tail`."""
    end = int(np.argmax(D - D[-1] <= tail))
    return np.asarray(D[: end + 1] if up else np.maximum(D[: end + 1] - (D[end] - D[-1]), 0.0))


def lowered(D: FloatArray, h: float) -> FloatArray:
    """A convex polygon below every convex function that has the values D: for lower bounds.

    In a cell such a function lies above its neighbours' chords, drawn further; how far these come below the cell's own chord,
    at most, is what the cell's ends are lowered by. The greatest convex minorant of what is left has slopes that are the
    isotonic regression of its chords' slopes; it is taken on both sides of 0, so that it is convex there too.
    """
    from scipy.optimize import isotonic_regression

    if D.size == 1:
        return D
    if (D.size - 1) * h > LARGEST_LOSS:
        end = int(LARGEST_LOSS / h)
        D = np.maximum(D[: end + 1] - (D[end] - D[-1]), 0.0)
    drop = D[:-1] - D[1:]
    before = np.concatenate(([-math.expm1(-h) * (1.0 - D[1]) + D[1] - D[0]], drop[:-1]))
    after = np.append(drop[1:], 0.0)
    left = np.maximum(before * math.exp(h) - drop, 0.0)
    right = np.maximum(drop - after * math.exp(-h), 0.0)
    both = left + right
    depth = np.divide(left * right, both, out=np.zeros_like(both), where=both > 0.0)
    low = D - np.maximum(np.append(depth, depth[-1]), np.insert(depth, 0, depth[0]))
    spent = np.flatnonzero(low <= 0.0)
    if spent.size:  # from the first that is, and the one before it: a line that ends at 0 would lie above
        low[max(int(spent[0]) - 1, 0) :] = 0.0
    low = np.minimum.accumulate(low)
    falling = np.exp(-h * np.arange(D.size - 1, 0, -1, dtype=np.float64))
    both_sides = np.concatenate(((1.0 - falling) + falling * low[:0:-1], low))
    width = np.exp(h * np.arange(1 - D.size, D.size - 1, dtype=np.float64)) * math.expm1(h)
    slopes = isotonic_regression(np.diff(both_sides) / width, weights=width).x
    rise = np.append(np.cumsum((-np.minimum(slopes, 0.0) * width)[::-1])[::-1], 0.0)[D.size - 1 :]
    return rounded(np.maximum(low[-1] + rise, 0.0), up=False)


def epsilon_at(D: FloatArray, h: float, delta: float, *, up: bool) -> float:
    """The smallest epsilon >= 0 with ``D(epsilon) <= delta``; inf if there is none."""
    if D[-1] > delta:
        return math.inf
    k = int(np.argmax(delta >= D))
    if k == 0:
        return 0.0
    return _within_cell(float(D[k - 1]), float(D[k]), k - 1, h, delta, up=up)


def _within_cell(left: float, right: float, k: int, h: float, delta: float, *, up: bool) -> float:
    """Where the straight line from `left`, above delta, at k h to `right`, at most delta, at the next point is delta."""
    return (k * h + math.log1p((left - delta) / (left - right) * math.expm1(h))) * (1.0 + (ROUNDED if up else -ROUNDED))


def raised_by(after: FloatArray, before: FloatArray) -> float:
    """The most that one profile, or the profile of any pair, is above another at any epsilon."""
    return float((padded(after, before.shape[-1]) - padded(before, after.shape[-1])).max())


def padded(D: FloatArray, size: int) -> FloatArray:
    """D, along its last axis, with its last value up to `size` points."""
    if D.shape[-1] >= size:
        return D
    return np.concatenate((D, np.broadcast_to(D[..., -1:], (*D.shape[:-1], size - D.shape[-1]))), axis=-1)


def rounded(D: FloatArray, *, up: bool) -> FloatArray:
    """D moved to its side by what a few operations can lose; a probability."""
    return np.minimum(D * (1.0 + ROUNDED), 1.0) if up else D * (1.0 - ROUNDED)


def fft_error(n_losses: int, norms: Any) -> Any:
    """What a convolution by Fourier transforms may be wrong by, from both lengths together and the product of the norms.

    Times ulp, log2 of the length and both norms, three transforms lose less than 3 each (Higham 2002, Theorem 24.2), 8 in all.
    """
    return 8.0 * ULP * math.log2(n_losses) * norms
