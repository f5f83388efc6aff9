// The exact leakage that arrives about a pair of values, by the sign rule (docs/theory.md, section 10; leakage/rollouts.py).
//
// q, d   rows of the two values          rho   the ratio that is asked about, less 1
// c      coefficients of N - (1 + rho) D, rolled from the nearest earlier release to the furthest
// v      coefficients of D, for the slope   up  e^epsilon - 1, what a release can add where c is positive

const U = Number.EPSILON / 2;

/** Nats beyond which ratios leave the range of doubles: what is reported is then the paper's bound. */
const LARGEST = 600;

/** Coefficients beyond are scaled down: only ratios count. */
const HUGE = 1e150;

/** How far above what is attained a proof is looked for, relative to the ratio; each next one is eight times as far. */
const MARGIN = 1e-13;

/** How close to what is attained a proof has to be, relative to the ratio. */
const CLOSE = 1e-12;

/** The same where the nearest releases are to give a bound. */
const CLOSE_BOUND = 1e-3;

const MOST_ROUNDS = 200;

/** Rolls pairs of one direction whose releases all promise `epsilon` and whose matrix stays the same. */
export class Rollouts {
  /** `ceiling[t]`: the paper's bound of what arrives from t earlier releases, in nats. */
  constructor(matrix, n, epsilon, ceiling) {
    Object.assign(this, { matrix, n, epsilon, ceiling, up: Math.expm1(epsilon), steps: 0 });
    // what m earlier releases say themselves is within e^(epsilon + ceiling[m - 1]) for all values
    this.excess = Float64Array.from(ceiling, (_, m) => {
      const said = m ? epsilon + ceiling[m - 1] : 0;
      return said > LARGEST ? Infinity : Math.expm1(said);
    });
    this.c = new Float64Array(n);
    this.v = new Float64Array(n);
    this.c2 = new Float64Array(n);
    this.v2 = new Float64Array(n);
  }

  /** F(rho) from above and its slope, over `depth` earlier releases; those beyond the first `most` are only bounded. */
  roll(i, j, rho, depth, most = depth) {
    const { matrix, n, up } = this;
    let { c, v, c2, v2 } = this;
    const scale = 1 / (1 + rho);
    for (let k = 0; k < n; k++) {
      const d = matrix[j * n + k];
      c[k] = (matrix[i * n + k] - d - rho * d) * scale;
      v[k] = d * scale;
    }
    for (let s = 0; ; s++) {
      let p = 0;
      let w = 0;
      let slope = 0;
      let raisedSlope = 0;
      for (let k = 0; k < n; k++) {
        slope += v[k];
        if (c[k] > 0) {
          p += c[k];
          raisedSlope += v[k];
        } else w -= c[k];
      }
      this.steps = s;
      // Where all signs agree, what lies before treats all values alike. s === depth: nothing lies before.
      if (s === depth || p === 0 || w === 0) return { value: p - w, slope };
      const before = this.excess[depth - s];
      // What lies before can no longer change the ratio, or is not looked at: it is at its largest where c is positive.
      if (s === most || (p + w) * before <= U * rho * slope) {
        return { value: p - w + p * before, slope: slope + raisedSlope * before };
      }
      for (let k = 0; k < n; k++) {
        if (c[k] > 0) {
          c[k] *= 1 + up;
          v[k] *= 1 + up;
        }
      }
      if (s + 1 < depth) {
        this.bothSteps(c, c2, v, v2);
        const emptied = c;
        const spare = v;
        c = c2;
        v = v2;
        c2 = emptied;
        v2 = spare;
        if (slope > HUGE || p > HUGE) {
          for (let k = 0; k < n; k++) {
            c[k] /= HUGE;
            v[k] /= HUGE;
          }
        }
      }
    }
  }

  /** One step further away: c P. */
  step(from, to) {
    const { matrix, n } = this;
    to.fill(0);
    for (let k = 0; k < n; k++) {
      const weight = from[k];
      if (weight === 0) continue;
      for (let j = 0, at = k * n; j < n; j++, at++) to[j] += weight * matrix[at];
    }
  }

  /** One step further away of two vectors. */
  bothSteps(c, c2, v, v2) {
    const { matrix, n } = this;
    c2.fill(0);
    v2.fill(0);
    for (let k = 0; k < n; k++) {
      const one = c[k];
      const other = v[k];
      for (let j = 0, at = k * n; j < n; j++, at++) {
        const entry = matrix[at];
        c2[j] += one * entry;
        v2[j] += other * entry;
      }
    }
  }

  /**
   * What `depth` earlier releases tell about i rather than j, in nats: {leakage, rho}, proved from above to 1e-12 and so.
   * With `most` below `depth`, an upper bound that looks at the nearest releases only. `guess` is a rho to begin with.
   */
  arrival(i, j, depth, guess = 0, most = depth) {
    const limit = this.ceiling[depth];
    if (depth === 0 || limit === 0) return { leakage: 0, rho: 0 };
    const close = most < depth ? CLOSE_BOUND : CLOSE;
    let [at, low, high, margin] = [guess, 0, Infinity, MARGIN];
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const { value, slope } = this.roll(i, j, at, depth, most);
      const reached = at + value / slope;
      if (!(reached < Math.exp(LARGEST))) break;
      if (value <= 0) high = Math.min(high, at);
      // Newton's method comes from below: what it no longer raises is rounding, and a proof is looked for further above.
      else if (reached <= at * (1 + margin)) margin *= 8;
      low = Math.max(low, reached, value > 0 ? at : 0);
      if (high < Infinity && high - low <= close * high + 8 * U) {
        return { leakage: Math.min(limit, Math.log1p(high) + this.rounding), rho: low };
      }
      const next = low * (1 + margin) + 4 * U;
      at = next < high ? next : (low + high) / 2;
    }
    return { leakage: Math.min(limit, Math.log1p(high) + this.rounding), rho: low };
  }

  /** Nats by which rounding can have moved the last root: n + 8 roundings an entry and step. */
  get rounding() {
    return 2 * (this.n + 8) * U * (this.steps + 2);
  }

  /** Whether `depth` earlier releases are proved never to tell i from j by more than `level` nats. */
  never(i, j, depth, level) {
    const rho = Math.expm1(level - 2 * (this.n + 8) * U * (depth + 2));
    return rho > 0 && this.sign(i, j, rho, depth) <= 0;
  }

  /** A number with the sign of F(rho), at least: what `roll` computes, without the slope. */
  sign(i, j, rho, depth) {
    const { matrix, n, up } = this;
    let { c, c2 } = this;
    const scale = 1 / (1 + rho);
    for (let k = 0; k < n; k++) {
      const d = matrix[j * n + k];
      c[k] = (matrix[i * n + k] - d - rho * d) * scale;
    }
    for (let s = 0; ; s++) {
      let p = 0;
      let w = 0;
      for (let k = 0; k < n; k++) {
        if (c[k] > 0) p += c[k];
        else w -= c[k];
      }
      if (s === depth || p === 0 || w === 0) return p - w;
      const before = this.excess[depth - s];
      if (p * (1 + before) <= w) return -1;
      if (p >= w * (1 + before)) return 1;
      for (let k = 0; k < n; k++) if (c[k] > 0) c[k] *= 1 + up;
      if (s + 1 < depth) {
        this.step(c, c2);
        const emptied = c;
        c = c2;
        c2 = emptied;
        if (p > HUGE) for (let k = 0; k < n; k++) c[k] /= HUGE;
      }
    }
  }

  /** Which values' counts come out high in the observation that reaches rho: rows from the nearest release to the furthest. */
  observation(i, j, depth, rho) {
    const { matrix, n, up } = this;
    let [c, next] = [new Float64Array(n), new Float64Array(n)];
    for (let k = 0; k < n; k++) c[k] = (matrix[i * n + k] - (1 + rho) * matrix[j * n + k]) / (1 + rho);
    const high = [];
    for (let s = 0; s < depth; s++) {
      high.push(Array.from(c, (one) => one > 0));
      let largest = 0;
      for (let k = 0; k < n; k++) {
        if (c[k] > 0) c[k] *= 1 + up;
        largest = Math.max(largest, Math.abs(c[k]));
      }
      for (let k = 0; k < n && largest > 0; k++) c[k] /= largest;
      this.step(c, next);
      [c, next] = [next, c];
    }
    return high;
  }
}
