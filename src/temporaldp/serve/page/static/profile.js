// The leakage profile of a matrix, and the paper's recursion over it (docs/theory.md, section 1; Equations 13, 15 and 23).
//
// d, q  what two rows give a set of values;  x = q - d;  one step leaks  log[(q + (1-q) e^-a) / (d + (1-d) e^-a)]  of a nats.

/** Relative amount by which sums of n probabilities can be too small. */
const RAISED = 1 + 64 * Number.EPSILON;

/** Vertices {d, x} of the upper hull over all sets and all pairs of rows of a flat matrix. */
export function profile(matrix, n) {
  const points = [];
  const order = Array.from({ length: n }, (_, k) => k);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      if (i === j) continue;
      const q = (k) => matrix[i * n + k];
      const d = (k) => matrix[j * n + k];
      // by falling q / d, without dividing: 0 / 0 never gets in
      const set = order.filter((k) => q(k) > d(k)).sort((a, b) => q(b) * d(a) - q(a) * d(b));
      let [inside, excess] = [0, 0];
      for (const k of set) {
        inside += d(k);
        excess += q(k) - d(k);
        points.push([inside, excess]);
      }
    }
  }
  return hull(points);
}

function hull(points) {
  points.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const kept = [];
  for (const [d, x] of points) {
    if (kept.length && x <= kept[kept.length - 1][1]) continue;
    while (kept.length > 1) {
      const [[d0, x0], [d1, x1]] = kept.slice(-2);
      if ((x1 - x0) * (d - d0) > (x - x0) * (d1 - d0)) break;
      kept.pop();
    }
    kept.push([d, x]);
  }
  return { d: Float64Array.from(kept, (p) => p[0]), x: Float64Array.from(kept, (p) => p[1]) };
}

/** What passes through one step of a nats, by the paper's bound, in nats and never above a. */
function loss({ d, x }, a) {
  const kept = Math.exp(-a);
  const gone = -Math.expm1(-a);
  let largest = 0;
  for (let k = 0; k < d.length; k++) {
    const ratio = (x[k] * gone) / (d[k] + (1 - d[k]) * kept);
    if (ratio > largest) largest = ratio;
  }
  return Math.min(a, Math.log1p(largest) * RAISED);
}

/** The paper's bound of what arrives from 0, 1, 2, ... earlier releases of `epsilon` nats each: an array of `horizon` numbers. */
export function paperArrivals(vertices, epsilon, horizon) {
  const arrived = new Float64Array(horizon);
  for (let t = 1; t < horizon; t++) arrived[t] = vertices === null ? 0 : loss(vertices, arrived[t - 1] + epsilon);
  return arrived;
}
