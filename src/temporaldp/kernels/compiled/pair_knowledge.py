"""What rollouts have told about one pair of values at every step; notation as in `temporaldp.kernels.rollouts`. Also:

t         a step, counted from the end at which a direction starts; what arrives there comes from t steps, 0 .. t - 1
S         what is known of one pair: a row of fields for each step (see below)
K         nats that arrive; r = e^K - 1 is the root of F, a rho above it proves K, one below it is attained
eta       nats by which rounding can have moved a root: the backward error of all steps, and of the last sums

F is convex and decreasing in rho. So from any rollout the tangent leads to a ratio that is attained (Newton's step), and the
chord from a rollout at a rho too low to one at a rho too high leads to a ratio that is proved.

Signs. By sums, ``F <= total + error``. By ratio, what is computed is F of a problem in which N and D differ by a factor within
1 +- eta / 2, so that it bounds the true F at ``(1 + rho) e^eta``; a chord's weights move by eta more.
"""

import math

import numpy as np

from temporaldp.kernels.compiled.options import kernel

UNIT = 2.0**-53

# Fields of S: the root from below; rollouts at rhos too low and too high, by sums and by ratio, each a rho and F in units of d;
# the best Newton step, the rollout closest to it, how far above the root a proof is to be had, and how far rounding blurs it.
LOW, LEFT, F_LEFT, RIGHT, F_RIGHT, RATIO_LEFT, F_RATIO_LEFT, RATIO_RIGHT, F_RATIO_RIGHT = range(9)
NEWTON, NEAREST, ROOM, NOISE, ETA, ROUNDS, ATTEMPTS, DONE, ATTAINED, PROVED, FIELDS = range(9, 20)


@kernel
def backward_error(n, gamma, depth):
    """Eta of rollouts of so many steps."""
    return 2.0 * (gamma * (depth + 1) + 2.0 * (n + 4) * UNIT)


@kernel
def forget(S):
    """Nothing is known of a pair."""
    for t in range(S.shape[0]):
        for field in range(FIELDS):
            S[t, field] = 0.0
        S[t, LEFT] = S[t, RATIO_LEFT] = S[t, NEAREST] = -1.0
        S[t, RIGHT] = S[t, RATIO_RIGHT] = np.inf


@kernel
def note(known, rho, low, high, slope, summed, summed_high, error, eta):
    """Take in what a rollout at rho says about one step: ``low <= F <= high`` but for eta, and the sums but for `error`."""
    if known[DONE] > 0.0:
        return
    above = summed - error
    by_sums = rho + above / (slope * (1.0 + eta if above > 0.0 else 1.0 - eta))
    step = low / slope
    by_ratio = rho + step - eta * (1.0 + max(rho, rho + step) + abs(step))
    known[LOW] = max(known[LOW], by_sums, by_ratio)
    blurred_by_sums = error < eta * slope * (1.0 + rho)
    newton = rho + (summed / slope if blurred_by_sums else step)
    known[NEWTON] = max(known[NEWTON], newton)
    if known[NEAREST] < 0.0 or abs(rho - known[NEWTON]) <= abs(known[NEAREST] - known[NEWTON]):
        known[NEAREST] = rho
        if blurred_by_sums:
            known[ROOM] = 2.0 * (max(summed_high, 0.0) + error) / slope + 4.0 * UNIT * rho
            known[NOISE] = error / slope
        else:
            known[ROOM] = max(high, 0.0) / slope + 8.0 * UNIT * (1.0 + rho)
            known[NOISE] = eta * (1.0 + rho)
    known[ETA] = max(known[ETA], eta)
    value = (summed_high + error) * (1.0 + rho)
    if value > 0.0:
        if rho > known[LEFT]:
            known[LEFT], known[F_LEFT] = rho, value
    elif rho < known[RIGHT]:
        known[RIGHT], known[F_RIGHT] = rho, value
    value = high * (1.0 + rho)
    if value > 0.0:
        if rho > known[RATIO_LEFT]:
            known[RATIO_LEFT], known[F_RATIO_LEFT] = rho, value
    elif rho < known[RATIO_RIGHT]:
        known[RATIO_RIGHT], known[F_RATIO_RIGHT] = rho, value


@kernel
def chord(left, f_left, right, f_right):
    """Where F is at most 0, given what it is at most at two points; at `right` it is at most 0."""
    if left < 0.0 or left >= right:
        return right
    length = right - left
    return min(right, left + length * (f_left / (f_left - f_right)) + 16.0 * UNIT * length)


@kernel
def upper(known):
    """K at most, in nats."""
    found = np.inf
    if known[RIGHT] < np.inf:
        found = math.log1p(chord(known[LEFT], known[F_LEFT], known[RIGHT], known[F_RIGHT]))
    if known[RATIO_RIGHT] < np.inf:
        left, right = known[RATIO_LEFT], known[RATIO_RIGHT]
        root = chord(left, known[F_RATIO_LEFT], right, known[F_RATIO_RIGHT])
        length = right - left if 0.0 <= left < right else 0.0
        found = min(found, math.log1p(root) + known[ETA] * (1.0 + length))
    return found * (1.0 + 8.0 * UNIT)
