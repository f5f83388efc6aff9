// From a setting to numbers. What was computed last is kept, so that moving one thing computes only what depends on it.

import { meanStays, stickyRows } from "./chain.js";
import { constantBudget } from "./budget.js";
import { leakage, worstCase } from "./exact.js";
import { paperArrivals, profile } from "./profile.js";
import { correlation } from "./setting.js";

/** Probabilities of staying at which the same release is shown. */
export const SWEEP = Array.from({ length: 26 }, (_, k) => (k < 25 ? k / 25 : 0.99));

/** Remembers the last few answers by their questions. */
function kept(most) {
  const known = new Map();
  return (question, compute) => {
    const key = JSON.stringify(question);
    if (!known.has(key)) {
      if (known.size >= most) known.delete(known.keys().next().value);
      known.set(key, compute());
    }
    return known.get(key);
  };
}

const [correlations, releases, budgets, sweeps] = [kept(4), kept(6), kept(6), kept(6)];

/** The correlation of a setting. */
export function correlationOf(setting, sample) {
  const { source, values, stays, names, forward, backward, knows } = setting;
  const question = source === "sample" ? [source] : source === "sticky" ? [values, stays] : [names, forward, backward];
  return correlations([...question, knows], () => correlation(setting, sample));
}

const asked = (known, setting) => ({
  backward: known.backward,
  forward: known.forward,
  n: known.names.length,
  epsilon: setting.epsilon,
  horizon: setting.horizon,
});

/** Leakage at every step without a delta; null where the correlation cannot be used. */
export function leakageOf(setting, sample) {
  const known = correlationOf(setting, sample);
  if (known.problem) return null;
  const release = asked(known, setting);
  return releases(release, () => leakage(release));
}

/** The constant budget that holds alpha over the horizon, in nats. */
export function budgetOf(setting, sample, likely) {
  const release = { ...asked(correlationOf(setting, sample), setting), epsilon: 0 };
  return budgets([release, setting.alpha], () => constantBudget(release, setting.alpha, likely));
}

/** What the same release leaks under chains that stay with each of SWEEP: {exact, paper}, and `own`, where this correlation is. */
export function sweepOf(setting, sample) {
  const known = correlationOf(setting, sample);
  const { epsilon, horizon, knows } = setting;
  const n = known.names.length;
  const found = sweeps([n, epsilon, horizon, knows], () => {
    const chains = SWEEP.map((stays) => stickyRows(n, stays));
    const knownOf = (rows) => ({ backward: knows === "future" ? null : rows, forward: knows === "past" ? null : rows });
    return {
      exact: chains.map((rows) => worstCase({ ...knownOf(rows), n, epsilon, horizon }).leakage),
      paper: chains.map((rows) => worstByPaper(rows, n, setting)),
    };
  });
  const rows = known.forward ?? known.backward;
  return { ...found, own: rows ? meanStays(rows) : null };
}

function worstByPaper(rows, n, { epsilon, horizon, knows }) {
  const arrived = paperArrivals(profile(Float64Array.from(rows.flat()), n), epsilon, horizon);
  if (knows !== "both") return arrived[horizon - 1] + epsilon;
  return Math.max(...arrived.map((past, t) => past + epsilon + arrived[horizon - 1 - t]));
}
