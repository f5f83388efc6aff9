// A setting: a correlation, a release and a level. It is a plain value; the address of the page carries it after the #,
// which browsers send to no server.

export const MOST_VALUES = 30;
export const MOST_STEPS = 1000;

/** Letters of an address that mail programs and chats pass on whole. */
const LONGEST_LINK = 8000;

export const LIMITS = {
  values: { min: 2, max: MOST_VALUES },
  stays: { min: 0, max: 1 },
  epsilon: { min: 0.0001, max: 10 },
  scale: { min: 0.5, max: 1000 },
  horizon: { min: 1, max: MOST_STEPS },
  alpha: { min: 0.001, max: 50 },
};

const SOURCES = ["sample", "sticky", "matrix"];
const KNOWS = ["both", "past", "future"];
const NOISES = ["laplace", "gaussian", "any"];
export const DELTAS = [0, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9];

export const DEFAULT = Object.freeze({
  ...{ source: "sample", values: 5, stays: 0.8, names: null, forward: null, backward: null, knows: "both" },
  ...{ noise: "laplace", epsilon: 0.1, scale: 20, delta: 0, horizon: 47, alpha: 1 },
});

/** What the page opens with: a person who mostly stays, and a budget that is renewed for every table. */
const OPENING = Object.freeze({ ...DEFAULT, source: "sticky", values: 2, stays: 0.9, epsilon: 1, horizon: 52 });

/** Whether leakage is an epsilon at a delta. */
export const atDelta = (setting) => setting.delta > 0;

/** Names of the states of a setting. */
export const namesOf = ({ source, names, values }, sample) =>
  ({ sample: sample.names, matrix: names })[source] ?? Array.from({ length: values }, (_, k) => `v${k + 1}`);

/** The correlation and the horizon of a setting, as the server takes them. */
export function question(setting, sample) {
  const { source, stays, knows, horizon } = setting;
  const asked = { names: namesOf(setting, sample), knows, horizon };
  if (source === "sticky") return { ...asked, stays };
  const { forward, backward } = source === "sample" ? sample : setting;
  return { ...asked, forward, backward: backward ?? "bayes" };
}

/** What is wrong with a matrix that is being edited; an empty string if the server can check it. */
export function incomplete({ source, names, forward }) {
  if (source !== "matrix") return "";
  const row = forward.findIndex((entries) => !entries.every(Number.isFinite));
  return row < 0 ? "" : `expected a number in every column of row ${names[row]}`;
}

const written = (rows) => rows.map((row) => row.join(",")).join(";");

function fields(setting) {
  const chosen = { from: setting.source };
  if (setting.source === "sticky") Object.assign(chosen, { values: setting.values, stays: setting.stays });
  if (setting.source === "matrix") {
    chosen.names = setting.names.map(encodeURIComponent).join(",");
    chosen.forward = written(setting.forward);
    if (setting.backward) chosen.backward = written(setting.backward);
  }
  const { knows, noise, epsilon, scale, delta, horizon, alpha } = setting;
  return { ...chosen, knows, noise, ...(noise === "gaussian" ? { scale } : { epsilon }), delta, horizon, alpha };
}

/** The part of an address behind the #, and whether it carries everything: large matrices are left out. */
export function fragment(settings) {
  const parts = (setting, k) => Object.entries(fields(setting)).map(([name, value]) => `${k ? "b." : ""}${name}=${value}`);
  const address = (all) => all.flatMap(parts).join("&");
  const whole = address(settings);
  if (whole.length <= LONGEST_LINK) return { text: whole, complete: true };
  const without = settings.map((setting) => (setting.source === "matrix" ? { ...setting, source: "sample" } : setting));
  return { text: `${address(without)}&left-out=matrix`, complete: false };
}

/** Settings of an address: one or two, and what of it could not be used, in words. */
export function settingsOf(text) {
  if (!text.replace(/^#/, "")) return { settings: [{ ...OPENING }], problems: [] };
  const groups = [{}, {}];
  for (const part of text.replace(/^#/, "").split("&")) {
    const [name, value = ""] = part.split(/=(.*)/s);
    if (name) groups[name.startsWith("b.") ? 1 : 0][name.replace(/^b\./, "")] = value;
  }
  const problems = [];
  if (groups[0]["left-out"]) {
    problems.push("This link was made for a matrix that is too large for a link: the sample is shown in its place.");
  }
  const given = groups.filter((group, k) => k === 0 || Object.keys(group).length);
  return { settings: given.map((group) => setting(group, problems)), problems };
}

function setting(group, problems) {
  const made = { ...DEFAULT };
  const take = (name, parse, allowed) => {
    if (group[name] === undefined) return;
    const value = parse(group[name]);
    if (allowed(value)) made[name === "from" ? "source" : name] = value;
    else problems.push(`The value of ${name} in the link cannot be used: ${group[name].slice(0, 40)}.`);
  };
  const within = (name) => (value) => value >= LIMITS[name].min && value <= LIMITS[name].max;
  const whole = (name) => (value) => Number.isInteger(value) && within(name)(value);
  take("from", String, (value) => SOURCES.includes(value));
  take("knows", String, (value) => KNOWS.includes(value));
  take("noise", String, (value) => NOISES.includes(value));
  for (const name of ["stays", "epsilon", "scale", "alpha"]) take(name, Number, within(name));
  for (const name of ["values", "horizon"]) take(name, Number, whole(name));
  take("delta", Number, (value) => value === 0 || (value >= 1e-30 && value < 1));
  if (made.source === "matrix") {
    const names = (group.names ?? "").split(",").map(decoded);
    const rows = (name) => group[name]?.split(";").map((row) => row.split(",").map(Number));
    const square = (found) => found?.length === names.length && found.every((row) => row.length === names.length);
    if (names.length >= 2 && names.length <= MOST_VALUES && square(rows("forward"))) {
      const backward = square(rows("backward")) ? rows("backward") : null;
      Object.assign(made, { names, forward: rows("forward"), backward });
    } else {
      made.source = "sample";
      problems.push("The link's matrix cannot be used: the sample is shown in its place.");
    }
  }
  if (made.noise === "gaussian" && made.delta === 0) made.delta = 1e-6;
  if (made.noise === "any" && made.delta > 0) made.delta = 0;
  return made;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
