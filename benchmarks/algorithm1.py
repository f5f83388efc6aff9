"""The paper's Algorithm 1 in Numba, for timing: as printed, and as fast as it goes with one bound a pair.

Each function returns the loss L(alpha) in nats, the largest of ``log[(1 + q k) / (1 + d k)]`` over all ordered pairs of
different rows, without the budget of the current step that the paper adds at the end. The matrix is C-contiguous, of doubles,
with rows summing to 1; alpha is at most 700. A call takes a range of first rows and releases Python's lock: a caller can hand
ranges to threads and take the maximum.

========  ==============================================================================
P         the transition matrix
Q, D      two rows of it, in this order
q, d      sums of Q and D over the candidates that are left
g, h      the ratio (1 + q k) / (1 + d k) before and after a round of deletions
k         e^alpha - 1
L         the largest log ratio so far
========  ==============================================================================

What was tried for ``compacted``, in seconds on one core of an AVX-512 server, alpha = 10, rows uniform on [0, 1):

======================================================================  =========  =========
variant                                                                   n = 150    n = 500
======================================================================  =========  =========
as printed (``literal``)                                                    0.084       3.2
candidates compacted in place, sums reduced by what drops out               0.042       1.6
candidates compacted in place without a branch, survivors summed            0.012       0.36
two / four rounds over whole rows, then compaction                      .010/.008    .27/.24
whole rows in every round                                                  0.0059      0.141
**whole rows, padded with zeros to a multiple of 32**                      0.0050      0.140
the same, two rows D at a time                                             0.0050      0.135
the same, first round shared by (Q, D) and (D, Q)                          0.0050      0.135
the same, positive parts of Q - g D summed in place of Q                   0.0065      0.186
the same, g squared as threshold until that deletes too much               0.0045      0.098
======================================================================  =========  =========

A round over a whole row takes a vector of entries at a time, and candidates halve from round to round: compaction, which
goes entry by entry, never earns back what it costs. The bold line is kept. The last line is faster at alpha = 10, slower
at alpha = 1 (0.0032 against 0.0023 s, 0.081 against 0.068 s), and no longer a deletion.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

LANES = 32  # entries that the compiled loop takes at a time: four vectors of eight

# Sums may be reordered, which a vector loop needs; no entry is infinite or NaN.
REORDERED = {"reassoc", "contract", "nsz", "nnan", "ninf"}


@numba.njit(nogil=True, error_model="numpy")
def literal_rows(P, alpha, first, last):
    """Lines 1 to 12 of the pseudocode, with q+ and d+ kept as marks on the columns.

    From alpha of about 37 on, or earlier where rows are nearly equal, both sides of the inequality can round to the same
    number for the last candidates, and they are deleted with the rest: the loss of that pair comes out as 0. That is the
    printed algorithm in doubles, and left as it is.
    """
    n = P.shape[1]
    k = math.exp(alpha) - 1.0
    marked = np.empty(n, np.bool_)
    L = 0.0
    for a in range(first, last):
        for b in range(P.shape[0]):
            if a == b:
                continue
            for j in range(n):
                marked[j] = P[a, j] > P[b, j]
            update = True
            while update:
                update = False
                q = 0.0
                d = 0.0
                for j in range(n):
                    if marked[j]:
                        q += P[a, j]
                        d += P[b, j]
                for j in range(n):
                    if marked[j] and P[a, j] / P[b, j] <= (q * k + 1.0) / (d * k + 1.0):
                        marked[j] = False
                        update = True
            if math.log((q * k + 1.0) / (d * k + 1.0)) > L:  # noqa: PLR1730 (as printed; max() takes 6 % longer here)
                L = math.log((q * k + 1.0) / (d * k + 1.0))
    return L


def compacted_rows(P: Matrix, alpha: float, first: int, last: int) -> float:
    """Copies the matrix once a call, for the padding: n^2 beside the n^3 of all pairs, so ranges should not be tiny."""
    return float(_largest(_padded(P), alpha, first, last))


def _padded(P: Matrix) -> Matrix:
    wide = np.zeros((len(P), -(-P.shape[1] // LANES) * LANES))
    wide[:, : P.shape[1]] = P
    return wide


@numba.njit(nogil=True, error_model="numpy")
def _largest(P, alpha, first, last):
    """A deleted candidate fails every later, higher threshold too, so one threshold says which candidates are left."""
    k = math.expm1(alpha)
    largest = 1.0
    for a in range(first, last):
        for b in range(P.shape[0]):
            g = 1.0
            h = _after_deletion(P[a], P[b], g, k)
            while h > g:  # rises as long as something is deleted; for a = b nothing is a candidate, and h = 1
                g = h
                h = _after_deletion(P[a], P[b], g, k)
            largest = max(largest, g)
    return math.log(largest)


@numba.njit(nogil=True, error_model="numpy", fastmath=REORDERED)
def _after_deletion(Q, D, g, k):
    q = 0.0
    d = 0.0
    for j in range(Q.shape[0]):
        left = Q[j] > g * D[j]
        q += Q[j] if left else 0.0
        d += D[j] if left else 0.0
    return (1.0 + q * k) / (1.0 + d * k)
