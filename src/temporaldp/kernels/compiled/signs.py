"""Signs and values of rollouts along a path, in machine code; notation and meaning in `temporaldp.kernels.signs`."""

import numpy as np

from temporaldp.kernels.compiled.options import kernel
from temporaldp.kernels.compiled.rollouts import through

UNIT = 2.0**-53


@kernel
def below(coefficients, totals, errors, drifts, depths, matrices, leads, up, growth, excess, ends, length, room, found):
    """Fills `found` with whether F <= 0 is proved of each item."""
    m, n = coefficients.shape
    gamma, sums = (n + 5) * UNIT, (n + 4) * UNIT
    c, g, spare = np.empty(n), np.empty(n), np.empty(n)
    for item in range(m):
        c[:] = coefficients[item]
        total, error, drift, depth = totals[item], errors[item], drifts[item], depths[item]
        for k in range(length):
            s = min(k, up.size - 1)
            h, last = up[s], ends and k == length - 1
            p = w = 0.0
            for v in range(n):
                if c[v] > 0.0:
                    p += c[v]
                    g[v] = c[v] + h * c[v]
                else:
                    w -= c[v]
                    g[v] = c[v]
            error += h * (drift + 2.0 * sums * (p + w))
            bound = error + 4.0 * UNIT * abs(total)
            if last:
                high, summed = (1.0 + h) * p - w, total + h * p
            else:
                high, summed = growth[s] * p - w, total + excess[s] * p
                bound += excess[s] * (drift + 2.0 * sums * p)
            trusted = 2.0 * (gamma * (depth + 1.0) + 2.0 * sums) <= room
            if summed + bound <= 0.0 or (high <= 0.0 and trusted):
                found[item] = True
                break
            if last or (((1.0 + h) * p > w or not trusted) and total + h * p + error > 0.0):
                break
            error += UNIT * abs(total)
            drift = (1.0 + h) * drift + 2.0 * gamma * ((1.0 + h) * p + w)
            total += h * p
            depth += 1.0
            through(g, matrices[leads[s]], spare)
            c, spare = spare, c


@kernel
def roll(
    coefficients, derivatives, totals, matrices, leads, up, growth, excess, ends, length, rough, fine, value, slope, depths
):  # fmt: skip
    """Fills `value`, `slope` and `depths` of each item."""
    m, n = coefficients.shape
    c, z, g, spare = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for item in range(m):
        c[:], z[:] = coefficients[item], derivatives[item]
        total = totals[item]
        for k in range(length):
            s = min(k, up.size - 1)
            h = up[s]
            p = w = tilt = 0.0
            for v in range(n):
                if c[v] > 0.0:
                    p += c[v]
                    g[v] = c[v] + h * c[v]
                    z[v] *= 1.0 + h
                else:
                    w -= c[v]
                    g[v] = c[v]
                tilt += z[v]
            now, unknown = total + h * p, (excess[s] - h) * p
            done = unknown <= fine[item] * abs(tilt) or (now > 0.0 and w <= rough * p) or unknown <= -rough * now
            if done or k == length - 1:
                value[item], slope[item], depths[item] = now, tilt, k + 1
                break
            total = now
            matrix = matrices[leads[s]]
            through(g, matrix, spare)
            c, spare = spare, c
            through(z, matrix, spare)
            z, spare = spare, z
