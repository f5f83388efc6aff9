// The largest constant budget that holds a level at every step of a horizon, and the noise that it means.

import { leakageAbout, worstCase } from "./exact.js";

/** Relative distance to the largest such budget at which the search ends: always on the side that holds. */
const CLOSE = 1e-6;
const MOST_ROUNDS = 40;

/** L1 sensitivity of a histogram when one person's value is replaced: one count falls by 1, another rises by 1. */
const SENSITIVITY = 2;

/**
 * The largest epsilon a step, in nats, with which no step of `horizon` leaks more than `alpha` nats: a lower bound within 1e-6.
 *
 * What one pair of values at one step allows is quickly found, and an upper bound. Then all are looked at; where one leaks more,
 * the search goes on with that one. `likely` is where it begins: {step, pair}.
 */
export function constantBudget(release, alpha, likely) {
  // alpha / T holds whatever the correlation, as all epsilons together bound what leaks; more than alpha never does.
  const safe = (alpha / release.horizon) * (1 - 1e-12);
  let most = alpha;
  for (let { step, pair } = likely, round = 0; round < MOST_ROUNDS; round++) {
    const found = largestBelow((epsilon) => leakageAbout({ ...release, epsilon }, step, pair), alpha, safe, most);
    const worst = worstCase({ ...release, epsilon: found });
    if (worst.leakage <= alpha) return found;
    most = found * (1 - CLOSE / 4);
    ({ step, pair } = worst);
  }
  return safe;
}

/** The largest epsilon from `low` to `high` where an increasing `leak` is at most alpha: by secants, kept between both sides. */
function largestBelow(leak, alpha, low, high) {
  let [atLow, atHigh] = [leak(low) - alpha, leak(high) - alpha];
  if (atHigh <= 0) return high;
  for (let round = 0; round < MOST_ROUNDS && high - low > CLOSE * high && atLow < -CLOSE * alpha; round++) {
    const line = low + ((high - low) * -atLow) / (atHigh - atLow);
    const next = round % 4 === 3 ? (low + high) / 2 : Math.max(line - (CLOSE / 4) * high, (3 * low + line) / 4);
    const above = leak(next) - alpha;
    if (above <= 0) [low, atLow] = [next, above];
    else [high, atHigh] = [next, above];
  }
  return low;
}

/** The scale of discrete Laplace noise on every count of a histogram, in counts. */
export function laplaceScale(epsilon) {
  return SENSITIVITY / epsilon;
}

/** The mean absolute noise of one count, in people: discrete Laplace. */
export function meanAbsoluteNoise(scale) {
  return 1 / Math.sinh(1 / scale);
}
