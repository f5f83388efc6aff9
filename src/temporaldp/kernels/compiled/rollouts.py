"""Rollouts in machine code, one item after the other; notation and meaning in `temporaldp.kernels.rollouts`."""

import math

import numpy as np

from temporaldp.kernels.compiled.options import kernel

UNIT = 2.0**-53
HUGE = 1e150


@kernel
def through(g, matrix, result):
    """``result = g @ matrix``, eight rows at once, then four: sums have few roundings, and `result` is loaded less often.

    An entry has n // 8 + n % 8 // 4 + n % 4 + 3 roundings at most, as the first sum is added to 0.
    """
    n = g.size
    for k in range(n):
        result[k] = 0.0
    whole = n - n % 8
    for k in range(0, whole, 8):
        a, b, c, d, e, f, h, i = g[k], g[k + 1], g[k + 2], g[k + 3], g[k + 4], g[k + 5], g[k + 6], g[k + 7]
        for m in range(n):
            left = (a * matrix[k, m] + b * matrix[k + 1, m]) + (c * matrix[k + 2, m] + d * matrix[k + 3, m])
            right = (e * matrix[k + 4, m] + f * matrix[k + 5, m]) + (h * matrix[k + 6, m] + i * matrix[k + 7, m])
            result[m] += left + right
    if n - whole >= 4:
        a, b, c, d = g[whole], g[whole + 1], g[whole + 2], g[whole + 3]
        for m in range(n):
            left = a * matrix[whole, m] + b * matrix[whole + 1, m]
            result[m] += left + (c * matrix[whole + 2, m] + d * matrix[whole + 3, m])
        whole += 4
    for k in range(whole, n):
        a = g[k]
        for m in range(n):
            result[m] += a * matrix[k, m]


@kernel
def roll(  # noqa: PLR0912, PLR0915  one loop, whose many numbers would only be handed around
    matrices, into, up, down, plain, endless, t, i, j, rho, growth, excess, first, last, most, with_slope, gamma, share,
    negligible, blurred, rough, numbers, depths, below,
):  # fmt: skip
    """Items first .. last - 1; `numbers` (m, 6) is filled with low, high, slope, summed, summed_high and error."""
    n = matrices.shape[1]
    sums = (n + 4) * UNIT
    wide = up.shape[1] > 1
    c, v, g, spare = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for item in range(first, last):
        start = into[t[item]]
        r = rho[item]
        scale = 1.0 / (1.0 + r)
        apart = balance = 0.0
        for k in range(n):
            q, d = matrices[start, i[item], k], matrices[start, j[item], k]
            c[k] = (q - d) * scale - (r * scale) * d
            v[k] = d * scale
            apart += abs(q - d)
            balance += q - d
        total, error = -r * scale, UNIT * r * scale
        drift = (4.0 * gamma * (apart + r) + abs(balance)) * scale
        level = math.log1p(r)
        limit = most if endless else min(most, t[item])
        for depth in range(limit):
            s = t[item] if endless else t[item] - 1 - depth
            end = not endless and s == 0
            p = w = raised = lowered = slope = slope_high = apart = 0.0
            widest = 0.0
            for k in range(n):
                a, b = up[s, k if wide else 0], down[s, k if wide else 0]
                widest = max(widest, abs(a), abs(b))
                if c[k] > 0.0:
                    p += c[k]
                    raised += c[k] * a
                    g[k] = c[k] * (1.0 + a)
                    apart += v[k] * (a - excess[s])
                    slope_high += v[k] * growth[s]
                    v[k] *= 1.0 + a
                else:
                    w -= c[k]
                    lowered -= c[k] * b
                    g[k] = c[k] * (1.0 + b)
                    apart += v[k] * b
                    slope_high += v[k]
                    v[k] *= 1.0 + b
                slope += v[k]
            larger, smaller, add = p + raised, w + lowered, raised - lowered
            error += widest * (drift + 2.0 * sums * (p + w))
            if end:
                high, summed_high, bound = larger - smaller, total + add, error
            else:
                high = (growth[s] * p if p > 0.0 else 0.0) - w
                summed_high = total + (excess[s] * p if p > 0.0 else 0.0)
                bound = error + excess[s] * (drift + 2.0 * sums * p)
            bound += 4.0 * UNIT * abs(total)
            is_below = False
            if with_slope:
                low = larger - smaller
                unknown = (excess[s] * p if p > 0.0 else 0.0) - add
                if not plain:  # outputs multiply D too: the two sides to compare are high / slope_high and low / slope
                    near = unknown + high * (apart / slope_high)
                    unknown = abs(near if excess[s] < 1.0 else high * (slope / slope_high) - low)
                blur = min(bound, 2.0 * gamma * (depth + 2) * (1.0 + r) * slope)
                done = end or unknown <= max(negligible * r * slope, blurred * blur)
                done = done or (low > 0.0 and total + add > 0.0 and w <= rough * p)
                done = done or (high < 0.0 and summed_high < 0.0 and unknown <= -rough * max(low, total + add))
            else:
                trusted = 2.0 * (gamma * (depth + 1) + 2.0 * sums) <= share * level
                is_below = summed_high + bound <= 0.0 or (high <= 0.0 and trusted)
                if plain:
                    above = total + add > bound or (larger - smaller > 0.0 and trusted)
                else:
                    above = p > (growth[s] * w if w > 0.0 else 0.0) and trusted
                done = end or is_below or above
            if done or depth == limit - 1:
                numbers[item, 0], numbers[item, 1] = larger - smaller, high
                numbers[item, 2], numbers[item, 3] = slope, total + add
                numbers[item, 4], numbers[item, 5] = summed_high, bound
                numbers[item, 6] = slope if end else slope_high
                depths[item], below[item] = depth + 1, is_below
                break
            matrix = matrices[into[s]]
            through(g, matrix, spare)
            c, spare = spare, c
            if with_slope:
                through(v, matrix, spare)
                v, spare = spare, v
            drift = (1.0 + widest) * drift + 2.0 * gamma * (larger + smaller)
            error += UNIT * abs(total)
            total += add
            if larger + smaller > HUGE:
                shrink = 1.0 / (larger + smaller)
                for k in range(n):
                    c[k] *= shrink
                    v[k] *= shrink
                total, drift, error = total * shrink, drift * shrink, error * shrink
