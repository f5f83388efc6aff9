// Markov chains: matrices as flat arrays of n * n numbers, row by row; row = the value known, column = the value asked about.

/** How far the sum of a row may be from 1: ROW_SUM_TOLERANCE of the library. */
const ROW_SUM_TOLERANCE = 1e-12;

/** A chain that stays with probability `stays` and else goes to every other of `n` values alike. */
export function stickyRows(n, stays) {
  const away = (1 - stays) / (n - 1);
  return Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => (i === j ? stays : away)));
}

/** What is wrong with rows as a transition matrix, in words; an empty string if nothing is. */
export function complaint(rows, names) {
  if (names.some((name) => /[\p{Cc}\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u.test(name))) {
    return "A name holds line breaks or control characters.";
  }
  for (let i = 0; i < rows.length; i++) {
    const who = `row ${names[i]}`;
    for (let j = 0; j < rows.length; j++) {
      const entry = rows[i][j];
      if (!Number.isFinite(entry)) return `${who}: expected a number in column ${names[j]}`;
      if (entry < 0 || entry > 1) return `${who}, column ${names[j]}: expected a probability from 0 to 1, got ${entry}`;
      if (entry > 0 && entry < 1e-290) return `${who}, column ${names[j]}: expected 0 or at least 1e-290, got ${entry}`;
    }
    const sum = rows[i].reduce((a, b) => a + b, 0);
    if (Math.abs(sum - 1) > ROW_SUM_TOLERANCE) {
      return `${who}: expected probabilities that sum to 1, got ${Number(sum.toPrecision(12))}`;
    }
  }
  return "";
}

/** Rows divided by their sums, as one flat array. */
export function flat(rows) {
  const n = rows.length;
  const matrix = new Float64Array(n * n);
  rows.forEach((row, i) => {
    const sum = row.reduce((a, b) => a + b, 0);
    row.forEach((entry, j) => {
      matrix[i * n + j] = entry / sum;
    });
  });
  return matrix;
}

/**
 * The one distribution that the chain keeps, by Grassmann, Taksar and Heyman's elimination, which subtracts nothing.
 * null where values cannot all be reached from one another: then there is none, or some value has no probability.
 */
function stationary(rows) {
  const n = rows.length;
  if (!irreducible(rows)) return null;
  const a = rows.map((row) => Float64Array.from(row));
  for (let k = n - 1; k > 0; k--) {
    let out = 0;
    for (let j = 0; j < k; j++) out += a[k][j];
    for (let i = 0; i < k; i++) {
      a[i][k] /= out;
      for (let j = 0; j < k; j++) a[i][j] += a[i][k] * a[k][j];
    }
  }
  const weights = new Float64Array(n);
  weights[0] = 1;
  let total = 1;
  for (let k = 1; k < n; k++) {
    for (let i = 0; i < k; i++) weights[k] += weights[i] * a[i][k];
    total += weights[k];
  }
  return Array.from(weights, (weight) => weight / total);
}

function irreducible(rows) {
  const reaches = (forward) => {
    const seen = new Set([0]);
    const waiting = [0];
    while (waiting.length) {
      const i = waiting.pop();
      for (let j = 0; j < rows.length; j++) {
        if ((forward ? rows[i][j] : rows[j][i]) > 0 && !seen.has(j)) {
          seen.add(j);
          waiting.push(j);
        }
      }
    }
    return seen.size === rows.length;
  };
  return reaches(true) && reaches(false);
}

/** The backward matrix of a stationary chain, by Bayes' rule; null where the chain has no stationary distribution on all values. */
export function reversedRows(rows) {
  const weights = stationary(rows);
  if (weights === null) return null;
  return rows.map((_, y) => {
    const joint = rows.map((row, x) => row[y] * weights[x]);
    const reached = joint.reduce((a, b) => a + b, 0);
    return joint.map((one) => one / reached);
  });
}

/** How likely a value stays what it is, in the mean over values. */
export function meanStays(rows) {
  return rows.reduce((total, row, i) => total + row[i], 0) / rows.length;
}

/** Whether values may be exchanged for one another without changing the matrix, so that all pairs of them leak alike. */
export function exchangeable(rows) {
  return rows.every((row, i) => row.every((entry, j) => entry === (i === j ? rows[0][0] : rows[0][1])));
}
