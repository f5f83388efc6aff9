// The page: a form, one or two panels, and the address that says what they show.

import { atDelta, fragment, settingsOf } from "./setting.js";
import { Controls, consistent } from "./controls.js";
import { copy, fill, h, say } from "./dom.js";
import { onThemeChange, theme } from "./look.js";
import { Panel } from "./panel.js";
import { budgetOf, correlationOf, leakageOf, sweepOf } from "./results.js";
import { ask, drop } from "./server.js";
import { up } from "./words.js";

const setup = JSON.parse(document.querySelector("#setup").textContent);
const place = (id) => document.querySelector(`#${id}`);

/** What is shown: one or two settings, the one that the form moves, and the step of each that is looked into. */
const shown = { settings: [], active: 0, steps: [null, null], uploading: false };

/** What the server said, by the question. */
const answers = new Map(Object.entries(setup.answers ?? {}));
const panels = [];
let written = "";
let timer = 0;
let put = 0;

const keyOf = (kind, question) => `${kind} ${JSON.stringify(question)}`;

/** What the server says to a question, or said; asks it once a setting is used and nobody moves any more. */
function told(kind, k, question, lane = kind) {
  const key = keyOf(kind, question);
  if (answers.has(key)) {
    drop(`${lane} ${k}`);
    return { found: answers.get(key) };
  }
  if (setup.alone) return null;
  const waiting = shown.waiting.get(`${lane} ${k}`);
  if (waiting?.key === key) return waiting.reply;
  const entry = { key, reply: { busy: true } };
  shown.waiting.set(`${lane} ${k}`, entry);
  ask(`${lane} ${k}`, kind, question, (reply) => {
    entry.reply = reply;
    if (reply.found) answers.set(key, reply.found);
    if (!reply.busy) show();
  });
  return entry.reply;
}
shown.waiting = new Map();

/** Everything that is shown of a setting at once. */
function viewOf(setting, k) {
  const known = correlationOf(setting, setup.sample);
  const view = { setting, known, problem: known.problem };
  if (known.problem) return view;
  const { names, backward, forward } = known;
  const asked = { names, backward, forward, horizon: setting.horizon };
  return atDelta(setting) ? viewAtDelta(view, asked, k) : exactView(view, asked, k);
}

function exactView(view, asked, k) {
  const { setting, known } = view;
  const found = leakageOf(setting, setup.sample);
  const { backward, forward, temporal, worst, worstTime, paper } = found;
  const step = chosenStep(k, worstTime, temporal.length);
  return Object.assign(view, {
    leakage: found,
    curves: {
      promised: new Float64Array(temporal.length).fill(setting.epsilon),
      paper: paper.temporal,
      backward,
      forward,
      temporal,
    },
    worst,
    worstTime,
    step,
    paperWorst: paper.worst,
    pair: found.worstPair(step).map((at) => known.names[at]),
    witness: found.witness(step),
    supremum: told("supremum", k, { ...asked, epsilon: setting.epsilon }),
  });
}

/** By the server: a quick bound first, then a tighter one. */
function viewAtDelta(view, asked, k) {
  const { noise, delta, epsilon } = view.setting;
  const scale = noise === "gaussian" ? view.setting.scale : 2 / epsilon;
  const question = { ...asked, noise, scale, delta };
  drop(`supremum ${k}`);
  const quick = told("delta", k, { ...question, pairwise: false }, "quick");
  const tight = quick?.found ? told("delta", k, { ...question, pairwise: true }, "tight") : null;
  const reply = tight?.found ? tight : quick;
  if (!reply?.found) {
    const problem =
      reply === null
        ? "At a δ the server computes, and this file has none: set δ to 0, or open the page."
        : reply.problem;
    return Object.assign(view, { busy: Boolean(reply?.busy), problem });
  }
  const number = (one) => one ?? Infinity;
  const [promised, backward, forward, temporal] = ["epsilons", "backward", "forward", "temporal"].map((name) =>
    reply.found[name].map(number),
  );
  const worst = Math.max(...temporal);
  const worstTime = temporal.indexOf(worst);
  const curves = { promised, backward, forward, temporal };
  return Object.assign(view, {
    curves,
    worst,
    worstTime,
    step: chosenStep(k, worstTime, temporal.length),
    tight: Boolean(tight?.found),
  });
}

const chosenStep = (k, worst, horizon) =>
  shown.steps[k] !== null && shown.steps[k] < horizon ? shown.steps[k] : worst;

/** Milliseconds that a movement may take before what follows from it is put off, or is computed on demand. */
const PATIENCE = 250;
const quick = () => Number(document.documentElement.dataset.milliseconds) < PATIENCE;

/** What can wait until the page has been drawn: the plan and other chains. */
function showLater(views) {
  clearTimeout(timer);
  const more = views.flatMap((view, k) =>
    view.problem || !view.curves
      ? []
      : [
          () => {
            panels[k].showSweep(view, atDelta(view.setting) ? null : sweepOf(view.setting, setup.sample));
          },
          () => {
            const { setting, known } = view;
            const { names, backward, forward } = known;
            const asked = { names, backward, forward, horizon: setting.horizon, alpha: setting.alpha };
            if (!atDelta(setting) && quick()) view.constant = constantOf(view);
            const noise = { noise: setting.noise, delta: setting.delta };
            view.optimal = atDelta(setting)
              ? told("noise", k, { ...asked, ...noise }, "plan")
              : told("plan", k, asked, "plan");
            panels[k].showPlan(view, () => {
              view.constant = constantOf(view);
              panels[k].showPlan(view);
            });
          },
        ],
  );
  const tasks = [address, ...more];
  const next = () => {
    const task = tasks.shift();
    if (!task) {
      document.documentElement.dataset.settled = document.documentElement.dataset.moves;
      return;
    }
    task();
    timer = setTimeout(next, 0);
  };
  timer = setTimeout(next, 0);
}

/** The constant budget of a view; where the search begins is what leaks most now. */
function constantOf({ setting, worstTime, leakage }) {
  return budgetOf(setting, setup.sample, { step: worstTime, pair: leakage.worstPair(worstTime) });
}

/** Draw everything anew. */
function show() {
  const { settings, active } = shown;
  const begun = performance.now();
  document.documentElement.dataset.shown = theme();
  controls.show(settings[active], shown.uploading);
  while (panels.length < settings.length) panels.push(panelOf(panels.length));
  while (panels.length > settings.length) panels.pop().element.remove();
  place("panels").classList.toggle("two", settings.length > 1);
  const views = settings.map(viewOf);
  const tops = views
    .filter((view) => view.curves)
    .flatMap((view) => Object.values(view.curves).map((curve) => Math.max(...curve)));
  const top = Math.max(...tops.filter(Number.isFinite), 1e-9) * 1.08;
  views.forEach((view, k) => panels[k].show(view, settings.length > 1 ? "AB"[k] : "", top));
  showTabs();
  glance(views);
  const { dataset } = document.documentElement;
  dataset.moves = String(Number(dataset.moves ?? 0) + 1);
  dataset.milliseconds = (performance.now() - begun).toFixed(1);
  showLater(views);
}

function panelOf(k) {
  return new Panel(place("panels"), setup, {
    step(t) {
      shown.steps[k] = t;
      show();
    },
    use(fields) {
      shown.active = k;
      moved(fields);
    },
    exported: () => ({ settings: shown.settings, answers: Object.fromEntries(answers) }),
  });
}

function showTabs() {
  const { settings, active } = shown;
  const two = settings.length > 1;
  place("compare").textContent = two ? "Show one setting" : "Compare two settings";
  place("tabs").hidden = !two;
  if (!two) return;
  fill(
    place("tabs"),
    ["A", "B"].map((letter, k) => {
      const radio = h("input", {
        type: "radio",
        name: "active",
        id: `active-${letter}`,
        checked: k === active,
        onchange: () => activate(k),
      });
      return [radio, h("label", { for: `active-${letter}` }, `Setting ${letter}`)];
    }),
  );
}

/** The largest leakage, where the form hides it on a small screen. */
function glance(views) {
  const view = views[shown.active];
  place("glance").textContent = view.curves
    ? `${up(view.worst)} nats leak · α = ${view.setting.alpha} ${view.worst > view.setting.alpha ? "is exceeded" : "is kept"}`
    : "";
}

function activate(k) {
  shown.active = k;
  shown.uploading = false;
  show();
  place(`active-${"AB"[k]}`).focus();
}

/** The state behind the # of the address, so that a link shows the same. */
function address() {
  const { text, complete } = fragment(shown.settings);
  fill(
    place("link-note"),
    complete ? "" : "The matrix is too large for a link: a link shows the rest, the HTML file everything.",
  );
  if (text === written) return;
  written = text;
  history.replaceState(null, "", `#${text}`);
}

function moved(fields, from) {
  const k = shown.active;
  const before = shown.settings[k];
  shown.settings = shown.settings.map((setting, at) => (at === k ? consistent(setting, fields) : setting));
  if (shown.settings[k].horizon !== before.horizon || "source" in fields || "values" in fields) shown.steps[k] = null;
  shown.uploading = from === "upload" || (shown.uploading && !("source" in fields));
  delete document.documentElement.dataset.settled;
  soon();
}

/** Draw at once where that is quick; else once for all movements that have come meanwhile. */
function soon() {
  clearTimeout(put);
  if (quick()) show();
  else put = setTimeout(show, 0);
}

/** Settings of the address, or those that a saved file begins with. */
function read() {
  const { settings, problems } = settingsOf(location.hash);
  shown.settings = location.hash.length > 1 || !setup.settings ? settings : setup.settings;
  shown.active = Math.min(shown.active, shown.settings.length - 1);
  shown.uploading = false;
  fill(
    place("problems"),
    problems.map((problem) => h("p", {}, problem)),
  );
  place("problems").hidden = !problems.length;
}

read();
const controls = new Controls(place("controls"), setup.sample, !setup.alone, shown.settings, moved);

place("compare").addEventListener("click", () => {
  shown.settings =
    shown.settings.length > 1 ? [shown.settings[shown.active]] : [shown.settings[0], { ...shown.settings[0] }];
  shown.active = shown.settings.length - 1;
  shown.steps = [null, null];
  show();
});
place("link").hidden = setup.alone;
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
  document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
});
onThemeChange(show);
addEventListener("hashchange", () => {
  if (location.hash.slice(1) !== written) {
    read();
    shown.steps = [null, null];
    show();
  }
});
show();
