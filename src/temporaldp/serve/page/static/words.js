// Numbers and sentences of reports (report/sentences.py): upper bounds are rounded up, what may be spent is rounded down.

const CERTAIN = 1e-9;
const LARGE = 13;
const THOUSANDS = new Intl.NumberFormat("en-US");

/** So many digits, as Python's %.4g writes them. */
function general(value, digits = 4) {
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const exponent = Number(power);
  const bare = (shown) => (shown.includes(".") ? shown.replace(/\.?0+$/, "") : shown);
  if (exponent < -4 || exponent >= digits) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${bare(mantissa)}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  return bare(value.toFixed(digits - 1 - exponent));
}

function rounded(value, round) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const digits = 3 - Math.floor(Math.log10(Math.abs(value)));
  const unit = 10 ** digits;
  return general(round(value * unit) / unit);
}

/** Four digits, upwards: what leaks is never understated. */
export const up = (value) => rounded(value, (scaled) => Math.ceil(scaled - 1e-9));

/** Four digits, downwards: what may be spent is never overstated. */
export const down = (value) => rounded(value, (scaled) => Math.floor(scaled + 1e-9));

/** A leakage, rounded up, with its unit. */
export const level = (leakage) => (leakage === Infinity ? "no bound" : `${up(leakage)} nats`);

/** By which odds change, rounded up. */
export function factor(leakage) {
  if (leakage === Infinity) return "without bound";
  if (leakage >= LARGE) return `10^${general(Math.ceil((10 * leakage) / Math.log(10)) / 10, 6)}`;
  const times = Math.exp(leakage);
  return times < 1e4 ? up(times) : THOUSANDS.format(10 * Math.ceil(times / 10 - 1e-9));
}

/** Largest posterior probability of one of two values. */
const posterior = (prior, leakage) => 1 / (1 + ((1 - prior) / prior) * Math.exp(-leakage));

/** A probability, rounded up, with as many digits as its distance from certainty asks for. */
export function percent(probability) {
  const left = 1 - probability;
  if (left < CERTAIN) return "100 %";
  const digits = Math.max(0, Math.ceil(-Math.log10(left)) - 1);
  const scale = 10 ** digits;
  const shown = (Math.ceil(100 * probability * scale - 1e-9) / scale).toFixed(digits);
  return `${digits ? shown.replace(/0+$/, "").replace(/\.$/, "") : shown} %`;
}

const filled = (template, values) => template.replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** A delta as people write it: 1e-6. */
export const small = (delta) =>
  delta >= 1e-4
    ? String(delta)
    : delta
        .toExponential()
        .replace("e-", "e-0")
        .replace(/e-0(\d\d)/, "e-$1");

/** What a level means: a clause about odds, and a sentence about posterior probabilities or guesses. */
export function meaning(leakage, delta, { sentences, priors }) {
  const odds = delta
    ? filled(sentences.odds_at_delta, { factor: factor(leakage), delta: small(delta) })
    : filled(sentences.odds, { factor: factor(leakage) });
  if (leakage === Infinity) return { odds, surest: "" };
  if (delta) {
    const right = (Math.exp(-leakage) * delta + 1) / (1 + Math.exp(-leakage));
    const told = 1 - right < CERTAIN ? sentences.no_guess : filled(sentences.guess, { right: percent(right) });
    return { odds, surest: told };
  }
  const clauses = priors.map((prior) =>
    filled(sentences.posterior, { prior: String(100 * prior), posterior: percent(posterior(prior, leakage)) }),
  );
  return { odds, surest: filled(sentences.posteriors, { clauses: clauses.join(" and ") }) };
}

/** Names in a list: a, b and c. */
export const listed = (names) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;

/** 1 step, 2 steps. */
export const steps = (count) => `${count} step${count === 1 ? "" : "s"}`;
