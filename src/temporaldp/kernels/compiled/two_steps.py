"""A proof for pairs of rows that little arrives, without a product for each of them; see `temporaldp.kernels.two_steps`."""

import math

from temporaldp.kernels.compiled.options import kernel, summing_kernel

SURE = 1e-10
"""Share by which sums of squares are widened: more than their rounding."""


@summing_kernel
def positive_part(q, d, ratio):
    """Sum of the positive entries of ``q - ratio d``, and of their squares."""
    p = squares = 0.0
    for k in range(q.size):
        positive = max(q[k] - ratio * d[k], 0.0)
        p += positive
        squares += positive * positive
    return p, squares


@summing_kernel
def positive_part_above(q, d, ratio, base, share):
    """Sum of the positive entries of ``q - ratio d + share base``."""
    p = 0.0
    for k in range(q.size):
        p += max((q[k] - ratio * d[k]) + share * base[k], 0.0)
    return p


@kernel
def stay_below(P, PP, base, norm, h, excess, rho, slack, first, last, below):
    """Rows first .. last - 1 of `below`: for which pairs ``F(rho) <= 0`` is proved by the two nearest steps."""
    n = P.shape[0]
    for i in range(first, last):
        for j in range(n):
            p, squares = positive_part(P[i], P[j], 1.0 + rho)
            known = slack + h * p - rho
            if known > 0.0:
                below[i, j] = False
                continue
            apart = math.sqrt(max(squares * (1.0 + SURE) - p * p / n * (1.0 - SURE), 0.0))
            second = positive_part_above(PP[i], PP[j], 1.0 + rho, base, h * p)
            below[i, j] = known + excess * (second + 0.5 * h * norm * apart) <= 0.0
