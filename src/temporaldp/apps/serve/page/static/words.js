// Numbers as reports write them (report/sentences.py): leakage is rounded up, budgets are rounded down.

/** Four significant digits, as Python's %.4g writes them. */
function general(value, digits = 4) {
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const exponent = Number(power);
  const bare = (shown) => (shown.includes(".") ? shown.replace(/\.?0+$/, "") : shown);
  if (exponent >= -4 && exponent < digits) return bare(value.toFixed(digits - 1 - exponent));
  return `${bare(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/** The number `round`ed to so many digits; null stands for infinity, which JSON lacks. */
function rounded(value, round, digits = 4) {
  if (value === 0) return "0";
  if (value === null || !Number.isFinite(value)) return "inf";
  const unit = 10 ** (digits - 1 - Math.floor(Math.log10(Math.abs(value))));
  return general(round(value * unit) / unit, digits);
}

// A decimal that has the wanted length, but for rounding, stays what it is.
const ceil = (scaled) => Math.ceil(scaled - 1e-9);

/** An upper bound: four significant digits, upwards; between 1 and 10 four decimals. */
export const up = (value) => rounded(value, ceil, value >= 1 && value < 10 ? 5 : 4);

/** Four significant digits, downwards. */
export const down = (value) => rounded(value, (scaled) => Math.floor(scaled + 1e-9));

/** A number with its unit: 1 nat, 2 nats. */
export const withUnit = (number) => `${number} ${String(number) === "1" ? "nat" : "nats"}`;

/** A leakage with its unit. */
export const level = (leakage) =>
  leakage === null || leakage === Infinity ? "no bound" : withUnit(up(leakage));

/** Names in a list: a, b and c. */
export const listed = (names) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;

/** 1 step, 2 steps. */
export const steps = (count) => `${count} step${count === 1 ? "" : "s"}`;

/** A name that fits beside a row. */
export const short = (name) => (name.length > 14 ? `${name.slice(0, 13)}…` : name);
