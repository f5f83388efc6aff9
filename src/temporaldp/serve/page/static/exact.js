// Exact leakage at every step of a release that promises the same epsilon each time, and where it comes from.
//
// What arrives from t earlier releases grows with t, and each pair of values has a bound by its nearest releases. So few pairs
// at few depths are ever rolled: the one with the largest bound, until none is left that could be larger.

import { exchangeable, flat } from "./chain.js";
import { paperArrivals, profile } from "./profile.js";
import { Rollouts } from "./rollouts.js";

/** Releases looked at for a first bound of each pair. */
const NEAREST = 2;

/** Nats within which a bound counts as the number itself: far below what anybody prints, and always upwards. */
const SAME = 2e-12;

/** What arrives from one direction, for every pair of values and every number of earlier releases. */
class Arrivals {
  constructor(rows, pairs, epsilon, horizon) {
    const n = rows.length;
    const matrix = flat(rows);
    this.ceiling = paperArrivals(profile(matrix, n), epsilon, horizon);
    this.rollouts = new Rollouts(matrix, n, epsilon, this.ceiling);
    this.pairs = pairs;
    this.horizon = horizon;
    this.rho = new Map();
    this.above = pairs.map(([i, j]) => {
      const most =
        horizon > NEAREST + 1
          ? this.rollouts.arrival(i, j, horizon - 1, this.guess(horizon - 1), NEAREST).leakage
          : Infinity;
      return Float64Array.from(this.ceiling, (a) => Math.min(a, most));
    });
    this.below = pairs.map(() => new Float64Array(horizon));
  }

  /** A ratio, less 1, to begin with. */
  guess(t, level = this.ceiling[t]) {
    return Math.expm1(Math.min(level, 500));
  }

  known(pair, t) {
    return this.above[pair][t] - this.below[pair][t] <= SAME;
  }

  /** Rolls one pair, and lets every other number of releases know. */
  look(pair, t) {
    const [i, j] = this.pairs[pair];
    const [above, below] = [this.above[pair], this.below[pair]];
    const { leakage, rho } = this.rollouts.arrival(i, j, t, this.guess(t, below[t] || above[t]));
    this.rho.set(pair * this.horizon + t, rho);
    for (let s = t; s >= 0 && above[s] > leakage; s--) above[s] = leakage;
    below[t] = above[t];
    for (let s = t + 1; s < this.horizon && below[s] < above[t]; s++) below[s] = Math.min(above[t], above[s]);
  }

  /** Whether a pair is proved never to reach a level: then that is its bound. */
  never(pair, t, level) {
    const [i, j] = this.pairs[pair];
    if (level >= this.above[pair][t] || !this.rollouts.never(i, j, t, level)) return false;
    const above = this.above[pair];
    for (let s = t; s >= 0 && above[s] > level; s--) above[s] = level;
    return true;
  }

  /** The ratio, less 1, that an observation of t earlier releases reaches. */
  reached(pair, t) {
    const at = pair * this.horizon + t;
    if (!this.rho.has(at)) this.look(pair, t);
    return this.rho.get(at);
  }
}

/** Nothing arrives through a correlation that nobody knows. */
class Nothing {
  constructor(pairs, horizon) {
    this.none = new Float64Array(horizon);
    this.ceiling = this.none;
    this.above = pairs.map(() => this.none);
  }

  known() {
    return true;
  }
}

/** The leakage of a release; see `leakage` and `worstLeakage`. */
class Leakage {
  constructor({ backward, forward, n, epsilon, horizon, pairs = everyPair(n, [backward, forward]) }) {
    this.n = n;
    this.epsilon = epsilon;
    this.horizon = horizon;
    this.pairs = pairs;
    const arriving = (rows) =>
      rows === null ? new Nothing(this.pairs, horizon) : new Arrivals(rows, this.pairs, epsilon, horizon);
    this.past = arriving(backward);
    this.future = backward === forward ? this.past : arriving(forward);
    this.silent = new Nothing(this.pairs, horizon);
  }

  /** Fills in `backward`, `forward`, `temporal`, `paper` and the pairs told apart best. */
  everyStep() {
    const { horizon, past, future, silent } = this;
    const promised = new Float64Array(horizon).fill(this.epsilon);
    this.paper = this.summed(past.ceiling, future.ceiling, promised);
    this.backward = new Float64Array(horizon);
    this.forward = new Float64Array(horizon);
    this.temporal = new Float64Array(horizon);
    this.worstPairs = new Array(horizon);
    for (const t of inward(horizon)) {
      const later = horizon - 1 - t;
      this.backward[t] = this.largest(past, t, silent, 0)[0];
      this.forward[t] = this.largest(future, later, silent, 0)[0];
      [this.temporal[t], this.worstPairs[t]] = this.largest(past, t, future, later);
    }
    this.worst = Math.max(...this.temporal);
    this.worstTime = this.temporal.findIndex((leak) => leak >= this.worst * (1 - 1e-12));
    return this;
  }

  /** The largest leakage at any step, where and about which pair: only steps that could be the worst are looked at. */
  worstCase() {
    const { horizon, past, future } = this;
    let found = { leakage: 0, step: 0, pair: this.pairs[0] };
    for (const step of new Set([horizon - 1, 0, horizon >> 1, ...inward(horizon)])) {
      const [leakage, at] = this.largest(past, step, future, horizon - 1 - step, found.leakage - this.epsilon);
      if (leakage > found.leakage) found = { leakage, step, pair: this.pairs[at] };
    }
    return found;
  }

  /** The leakage of one step. */
  at(step) {
    return this.largest(this.past, step, this.future, this.horizon - 1 - step)[0];
  }

  summed(past, future, promised) {
    const backward = promised.map((epsilon, t) => epsilon + past[t]);
    const forward = promised.map((epsilon, t) => epsilon + future[this.horizon - 1 - t]);
    const temporal = promised.map((epsilon, t) => (past[t] + epsilon + future[this.horizon - 1 - t]) * (1 + 4e-16));
    return { backward, forward, temporal, worst: Math.max(...temporal) };
  }

  /**
   * The largest over pairs of what arrives from s releases on one side, t on the other, and the step's own part; and the pair.
   * Less than `uninteresting` arriving is not looked at, and told as 0.
   */
  largest(one, s, other, t, uninteresting = -1) {
    const sum = (pair) => one.above[pair][s] + other.above[pair][t];
    const known = (pair) => one.known(pair, s) && other.known(pair, t);
    let [found, holder] = [-1, -1];
    for (;;) {
      let at = 0;
      for (let pair = 0; pair < this.pairs.length; pair++) {
        if (sum(pair) > sum(at)) at = pair;
        if (known(pair) && sum(pair) > found) [found, holder] = [sum(pair), pair];
      }
      if (sum(at) <= uninteresting) return [0, at];
      if (holder >= 0 && sum(at) <= found + SAME) return [(sum(at) + this.epsilon) * (1 + 4e-16), holder];
      const [side, depth, rest] = one.known(at, s) ? [other, t, one.above[at][s]] : [one, s, other.above[at][t]];
      if (found < 0 || !side.never(at, depth, found - rest + SAME / 4)) side.look(at, depth);
    }
  }

  /** The pair told apart best at a step: [value, other], as positions. */
  worstPair(step) {
    return this.pairs[this.worstPairs[step]];
  }

  /** Which counts come out high, step by step, in the observation that gives most away about a step. */
  witness(step) {
    const pair = this.worstPairs[step];
    const [i, j] = this.pairs[pair];
    const own = Array.from({ length: this.n }, (_, k) => k === i);
    const seen = (one, depth) =>
      one instanceof Nothing
        ? Array.from({ length: depth }, () => new Array(this.n).fill(false))
        : one.rollouts.observation(i, j, depth, depth ? one.reached(pair, depth) : 0);
    const before = seen(this.past, step).reverse();
    const after = seen(this.future, this.horizon - 1 - step);
    return [...before, own, ...after];
  }
}

/** All ordered pairs of values; one, where no matrix tells values apart. */
function everyPair(n, matrices) {
  if (matrices.every((rows) => rows === null || exchangeable(rows))) return [[0, 1]];
  const values = Array.from({ length: n }, (_, k) => k);
  return values.flatMap((i) => values.filter((j) => j !== i).map((j) => [i, j]));
}

/** Steps in an order in which what few and what many releases tell soon bounds what lies between. */
function* inward(horizon) {
  const asked = new Set([horizon - 1]);
  for (let t = 1; t < horizon; t *= 2) asked.add(t - 1);
  for (let t = horizon - 1; t >= 0; t--) asked.add(t);
  yield* asked;
}

/**
 * Backward, forward and temporal leakage at every step, in nats: exact, proved from above.
 *
 * {backward, forward}: rows of the matrices, or null for a direction that the adversary does not know; n values; `epsilon`
 * nats at each of `horizon` steps. `paper` has the paper's bounds.
 */
export function leakage(release) {
  return new Leakage(release).everyStep();
}

/** The largest temporal leakage of any step, in nats: exact, proved from above; at which step, and about which pair of values. */
export function worstCase(release) {
  return new Leakage(release).worstCase();
}

/** The temporal leakage of one step, counted from 0, about one pair of values, in nats: exact, proved from above. */
export function leakageAbout(release, step, pair) {
  return new Leakage({ ...release, pairs: [pair] }).at(step);
}
