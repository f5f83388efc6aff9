// The page: a form, one or two panels, and the address, which carries the settings.

import { curvesOf, highest } from "./chart.js";
import { Controls, consistent } from "./controls.js";
import { copy, fill, h, say } from "./dom.js";
import { onSystemTheme, theme } from "./look.js";
import { Panel, verdict } from "./panel.js";
import { ask, drop } from "./server.js";
import { atDelta, fragment, incomplete, namesOf, question, settingsOf } from "./setting.js";
import { up, withUnit } from "./words.js";

/** Milliseconds without a movement after which plans are asked for. */
const PAUSE = 150;

const setup = JSON.parse(document.querySelector("#setup").textContent);
const alone = Boolean(setup.saved);
const place = (id) => document.querySelector(`#${id}`);
const { dataset } = document.documentElement;

/** One or two settings, the one that the form changes, the chosen step of each, and why an upload failed. */
const state = { settings: [], active: 0, steps: [null, null], failed: ["", ""], uploading: false };

// What is shown of each setting: {key, setting, names} with `found`, the server's answer, or `problem`; then `constant`,
// `plan` and `sweep`. The answer about an earlier setting stays until the next one is there.
const slots = [];
const panels = [];
let [written, timer] = ["", 0];

/** The question about a setting's leakage. */
function asked(setting) {
  const { noise, delta, epsilon, scale } = setting;
  const basis = question(setting, setup.sample);
  if (!atDelta(setting)) return { kind: "leakage", body: { ...basis, epsilon } };
  return { kind: "delta", body: { ...basis, noise, delta, scale: noise === "gaussian" ? scale : 2 / epsilon } };
}

/** The questions that are asked once nothing moves: [what it is of a slot, kind, question, lane]. */
function further(setting) {
  const { noise, delta, epsilon, alpha } = setting;
  const basis = question(setting, setup.sample);
  if (atDelta(setting))
    return [
      ["tight", "delta", { ...asked(setting).body, pairwise: true }, "slow"],
      ["plan", "noise", { ...basis, noise, delta, alpha }, "slow"],
    ];
  return [
    ["constant", "constant", { ...basis, alpha }, "quick"],
    ["plan", "plan", { ...basis, alpha }, "slow"],
    ["sweep", "sweep", { ...basis, epsilon }, "slow"],
  ];
}

const keyOf = (value) => JSON.stringify(value);
const isStale = (k) => !alone && slots[k]?.key !== keyOf([asked(state.settings[k]), state.failed[k]]);
const chosen = (k) => {
  const { temporal, worst_time: worst } = slots[k].found.curves;
  return Math.min(state.steps[k] ?? slots[k].step ?? worst, temporal.length - 1);
};

/** Keep what belongs to a slot after its setting changed. */
function carried(old, setting) {
  if (!old) return {};
  const before = new Map(further(old.setting).map(([name, ...more]) => [name, keyOf(more)]));
  const same = further(setting).filter(([name, ...more]) => before.get(name) === keyOf(more));
  return Object.fromEntries(same.map(([name]) => [name, old[name]]));
}

/** Ask for what a setting lacks. */
function refresh(k) {
  const setting = state.settings[k];
  const { kind, body } = asked(setting);
  const key = keyOf([{ kind, body }, state.failed[k]]);
  const old = slots[k];
  const base = { key, setting, names: namesOf(setting, setup.sample), ...carried(old, setting) };
  const wrong = state.failed[k] || incomplete(setting);
  if (wrong) {
    drop(`view ${k}`);
    slots[k] = { ...base, problem: wrong, failed: Boolean(state.failed[k]) };
    return;
  }
  if (old?.key === key) {
    slots[k] = { ...base, found: old.found, problem: old.problem };
    if (!old.found || kind === "delta" || state.steps[k] === null || old.found.step === chosen(k)) return;
  }
  const step = kind === "leakage" ? { step: state.steps[k] } : {};
  ask(`view ${k}`, kind, { ...body, ...step }, (reply) => {
    slots[k] = { ...base, ...carried(slots[k], setting), ...reply };
    show();
  });
}

/** Ask for plans and other chains, one after the other. */
function refreshMore(k) {
  const { setting, found } = slots[k];
  if (!found) return;
  const lanes = { quick: [], slow: [] };
  for (const one of further(setting)) lanes[one[3]].push(one);
  const next = (lane) => {
    const one = lanes[lane].shift();
    if (!one) return;
    const [name, kind, body] = one;
    ask(`${lane} ${k}`, kind, body, (reply) => {
      const current = slots[k] && further(slots[k].setting).find(([other]) => other === name);
      if (!current || keyOf(current[2]) !== keyOf(body)) return;
      slots[k] = { ...slots[k], [name]: reply, ...(name === "tight" && reply.found ? { found: reply.found } : {}) };
      draw();
      next(lane);
    });
  };
  next("quick");
  next("slow");
}

/** Show the form, ask for what is not known, and draw what is. */
function show() {
  const { settings, active } = state;
  while (panels.length < settings.length) panels.push(panelOf(panels.length));
  while (panels.length > settings.length) panels.pop().element.remove();
  slots.length = Math.min(slots.length, settings.length);
  if (!alone) settings.forEach((_, k) => refresh(k));
  controls.show(settings[active], state.uploading, (!isStale(active) && slots[active].problem) || "");
  draw();
}

/** Draw everything anew. */
function draw() {
  const { settings, active } = state;
  place("panels").classList.toggle("two", settings.length > 1);
  const tops = slots.filter((slot) => slot?.found).map((slot) => highest(curvesOf(slot)));
  panels.forEach((panel, k) => {
    const letter = settings.length > 1 ? "AB"[k] : "";
    panel.show(slots[k], isStale(k), letter, slots[k]?.found ? chosen(k) : 0, Math.max(...tops) * 1.08);
  });
  showTabs();
  const slot = slots[active];
  place("glance").textContent = slot?.found ? `${withUnit(up(slot.found.curves.worst))} · ${verdict(slot)}` : "";
  if (settings.some((_, k) => isStale(k))) return;
  dataset.drawn = dataset.moves;
  if (dataset.settled === dataset.moves) return;
  clearTimeout(timer);
  timer = setTimeout(settle, PAUSE);
}

/** What waits until nothing moves: the address and the plans. */
function settle() {
  address();
  dataset.settled = dataset.moves;
  if (!alone) state.settings.forEach((_, k) => refreshMore(k));
}

function panelOf(k) {
  return new Panel(place("panels"), alone, {
    step(t) {
      state.steps[k] = t;
      show();
    },
    use(fields) {
      state.active = k;
      moved(fields);
      say(`ε is now ${fields.epsilon}.`);
    },
    saved: () => ({ settings: state.settings, slots: slots.map((slot, at) => ({ ...slot, step: chosen(at) })) }),
  });
}

function showTabs() {
  const two = state.settings.length > 1;
  place("compare").textContent = two ? "Show one setting" : "Compare two settings";
  place("tabs").hidden = !two;
  const tab = (letter, k) => {
    const id = `active-${letter}`;
    const own = { type: "radio", name: "active", id, checked: k === state.active, onchange: () => activate(k) };
    return [h("input", own), h("label", { for: id }, `Setting ${letter}`)];
  };
  if (two) fill(place("tabs"), ["A", "B"].map(tab));
}

function activate(k) {
  Object.assign(state, { active: k, uploading: false });
  show();
  place(`active-${"AB"[k]}`).focus();
}

/** Write the settings into the address, after the #. */
function address() {
  if (alone) return;
  const { text, complete } = fragment(state.settings);
  const note = "The matrix is too large for a link, which has the other settings; the HTML file has everything.";
  fill(place("link-note"), complete ? "" : note);
  if (text === written) return;
  written = text;
  history.replaceState(null, "", `#${text}`);
}

/** Change the active setting; `from` is "upload" or "failed" where a file was read. */
function moved(fields, from) {
  const k = state.active;
  const before = state.settings[k];
  state.settings = state.settings.with(k, consistent(before, fields));
  if (state.settings[k].horizon !== before.horizon || "source" in fields || "values" in fields) state.steps[k] = null;
  if (from === "failed") state.failed[k] = "The file could not be read; the reason is in the form.";
  else if ("source" in fields) state.failed[k] = "";
  state.uploading = from === "upload" || from === "failed" || (state.uploading && !("source" in fields));
  drop(`slow ${k}`);
  begin();
}

/** Show settings that have changed. */
function begin() {
  dataset.moves = String(Number(dataset.moves ?? 0) + 1);
  clearTimeout(timer);
  show();
}

/** Take the settings of the address, or those of a saved file. */
function read() {
  const { settings, problems } = settingsOf(alone ? "" : location.hash);
  state.settings = alone ? setup.saved.settings : settings;
  if (alone) slots.push(...setup.saved.slots);
  const active = Math.min(state.active, state.settings.length - 1);
  Object.assign(state, { active, uploading: false, steps: [null, null], failed: ["", ""] });
  fill(place("problems"), problems.map((problem) => h("p", {}, problem)));
  place("problems").hidden = !problems.length;
}

read();
const controls = new Controls(place("controls"), setup.sample, alone, moved);
place("saved-note").hidden = !alone;
for (const id of ["compare", "link"]) place(id).hidden = alone;

place("compare").addEventListener("click", () => {
  const { settings, active } = state;
  state.settings = settings.length > 1 ? [settings[active]] : [settings[0], { ...settings[0] }];
  Object.assign(state, { active: state.settings.length - 1, steps: [null, null], failed: ["", ""] });
  begin();
});
place("link").addEventListener("click", async () => {
  address();
  await copy(location.href);
  say("The link was copied.");
  place("link").textContent = "Link copied";
  setTimeout(() => {
    place("link").textContent = "Copy link";
  }, 2000);
});
place("theme").addEventListener("click", () => {
  dataset.theme = theme() === "dark" ? "light" : "dark";
  draw();
});
onSystemTheme(draw);
addEventListener("hashchange", () => {
  if (location.hash.slice(1) === written) return;
  read();
  begin();
});
begin();
