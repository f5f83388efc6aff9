// The results of one setting: numbers, sentences, curves, the observation, the plan, other chains, and files.

import { LeakageChart, SweepChart, curvesOf } from "./chart.js";
import { python, shell } from "./commands.js";
import { copy, fill, h, say } from "./dom.js";
import { save } from "./exports.js";
import { heatmap } from "./heatmap.js";
import { CURVES, colours, theme } from "./look.js";
import { atDelta } from "./setting.js";
import { story } from "./story.js";
import { down, level, listed, steps, up, withUnit } from "./words.js";

/** Relative excess of a constant budget's noise over the plan's that is reported. */
const LEAST_GAIN = 0.005;

const note = (words) => h("p", { class: "note" }, words);
const strong = (words) => h("strong", {}, words);

const head = (name) => (name ? h("th", { scope: "col" }, name) : h("td"));
const headed = (names) => h("thead", {}, h("tr", {}, names.map(head)));
const row = (name, numbers) =>
  h("tr", {}, h("th", { scope: "row" }, name), numbers.map((number) => h("td", {}, up(number))));

/** A setting in a few words. */
function titled({ setting, names }) {
  const { source, stays, epsilon, scale, noise, delta, horizon, knows } = setting;
  const chain = { sample: "the sample", sticky: `${names.length} states, probability of staying ${stays}` };
  const known = { both: "", past: ", backward only", future: ", forward only" };
  const release = noise === "gaussian" ? `Gaussian noise of scale ${scale}` : `ε = ${epsilon} at each step`;
  const at = delta ? `, δ = ${delta.toExponential()}` : "";
  return `${chain[source] ?? `a matrix of ${names.length} states`}${known[knows]}; ${release}${at}; ${steps(horizon)}`;
}

/** Whether the largest leakage of a slot satisfies alpha, in words. */
export function verdict({ setting: { alpha }, found }) {
  const { worst } = found.curves;
  return `${worst === null || worst > alpha ? "exceeds" : "satisfies"} α = ${withUnit(alpha)}`;
}

/** One setting's results. `moves` has `step(t)`, `use(fields)` and `saved()`, which returns what a saved page shows. */
export class Panel {
  constructor(place, alone, moves) {
    const drawn = document.querySelector("#panel").content.cloneNode(true);
    const parts = [...drawn.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]);
    Object.assign(this, { moves, alone, parts: Object.fromEntries(parts), element: drawn.firstElementChild });
    place.append(this.element);
    const { curves, readout, sweep, slider, table } = this.parts;
    this.chart = new LeakageChart(curves, readout, moves.step);
    this.sweep = new SweepChart(sweep);
    slider.addEventListener("input", () => moves.step(Number(slider.value) - 1));
    table.addEventListener("toggle", () => this.showTable());
    this.buttons = {};
    for (const button of this.element.querySelectorAll("[data-file]")) {
      this.buttons[button.dataset.file] = button;
      button.addEventListener("click", () => this.save(button.dataset.file));
    }
    for (const button of this.element.querySelectorAll(".copy"))
      button.addEventListener("click", async () => {
        await copy(button.parentElement.querySelector("code").textContent);
        say("Copied.");
      });
  }

  /** Show a slot; `stale`: it belongs to an earlier setting. `top`: the largest number of the axis. */
  show(slot, stale, letter, step, top) {
    this.element.classList.toggle("stale", stale && Boolean(slot?.found));
    const drawn = [slot, letter, step, top, theme()];
    if (drawn.every((one, k) => Object.is(one, this.drawn?.[k])) && slot) return;
    Object.assign(this, { slot, step, drawn });
    const { name, headline, slider, chosen } = this.parts;
    const words = slot ? h("span", {}, slot.failed ? "a file" : titled(slot)) : "One person, and all tables";
    fill(name, letter ? h("span", { class: "letter" }, letter) : "", words);
    for (const part of this.element.querySelectorAll(":scope > .card:not(.story), :scope > .pair"))
      part.hidden = !slot?.found;
    if (!slot?.found) {
      const problem = slot?.problem ?? "";
      headline.hidden = !problem;
      fill(headline, h("p", { class: "problem", role: "alert" }, problem));
      return;
    }
    headline.hidden = false;
    fill(this.parts.story, story(slot, step, this.alone ? null : this.moves.use));
    this.showHeadline();
    this.showLegend();
    this.chart.show(slot, step, top);
    const { temporal, worst } = slot.found.curves;
    Object.assign(slider, { max: temporal.length, value: step + 1 });
    slider.setAttribute("aria-valuetext", `step ${step + 1}: ${level(temporal[step])}`);
    chosen.textContent = `${step + 1} of ${temporal.length}`;
    this.showWhere();
    this.showWitness();
    fill(this.parts.plan, this.plan());
    this.parts.sweep.closest(".card").hidden = !slot.sweep?.found;
    const known = { ...slot.found.matrices, names: slot.names };
    const stays = (known.forward ?? known.backward).reduce((sum, row, k) => sum + row[k], 0) / known.names.length;
    if (slot.sweep?.found) this.sweep.show(slot.sweep.found, stays, worst);
    this.parts.python.textContent = python(slot.setting, known, slot.found.tight);
    this.parts.shell.textContent = shell(slot.setting, known);
    for (const kind of ["backward", "forward"]) this.buttons[kind].hidden = !known[kind];
    this.buttons.html.hidden = this.alone;
    this.showTable();
  }

  showHeadline() {
    const { setting, found, tight } = this.slot;
    const { worst, worst_time: at, temporal, epsilons } = found.curves;
    const fact = ([words, number, more]) =>
      h("div", { class: "fact" }, h("dt", {}, words), h("dd", {}, number), h("dd", { class: "note" }, more));
    const bound = found.tight
      ? ["bound", "one curve for each pair", "an upper bound"]
      : ["bound", "one curve for all pairs", `an upper bound${tight ? "" : "; a tighter one is being computed"}`];
    const facts = [["ε of each step", level(epsilons[0]), "leakage of a step on its own"]];
    if (setting.delta) facts.push(bound);
    else
      facts.push(
        ["bound of the paper", level(found.paper.worst), "Cao et al.; an upper bound, rounded up"],
        ["infinite horizon", ...this.supremum(found.supremum)],
        ["user level", level(epsilons[0] * temporal.length), "all steps together, for any correlation"],
      );
    const words = verdict(this.slot);
    const over = words.startsWith("exceeds");
    const where = `largest at step ${at + 1} of ${temporal.length}; each step on its own leaks ${up(epsilons[0])}.`;
    const delta = setting.delta ? ` at δ = ${setting.delta.toExponential()}` : "";
    const mark = h("span", { "aria-hidden": "true" }, over ? "▲ " : "✓ ");
    fill(
      this.parts.headline,
      h("p", { class: "figure" }, strong(up(worst)), up(worst) === "1" ? " nat" : " nats"),
      h("p", { class: "lead" }, `temporal privacy leakage about one step${delta}, ${where}`),
      h("p", { class: `verdict ${over ? "over" : "kept"}` }, mark, words),
      h("p", { class: "meaning" }, found.meaning && `In words: ${found.meaning}`),
      h("dl", { class: "facts" }, facts.map(fact)),
    );
  }

  supremum({ temporal, certified }) {
    if (temporal !== null) return [level(temporal), certified ? "supremum over all horizons, exact" : "an upper bound"];
    return certified ? ["no bound", "leakage grows without bound"] : ["not known", "no finite bound was found"];
  }

  showLegend() {
    const curves = curvesOf(this.slot);
    const item = ({ name, label, dash, width }) => {
      const drawn = { d: "M1 5H33", class: `curve-${name}`, "stroke-width": width, "stroke-dasharray": dash.join(" ") };
      return h("li", {}, h("svg", { width: 34, height: 10, "aria-hidden": "true" }, h("path", drawn)), label);
    };
    fill(this.parts.legend, CURVES.filter(({ name }) => curves[name]).reverse().map(item));
  }

  /** The pair of states at the chosen step; undefined at a delta. */
  get pair() {
    return this.slot.found.pairs?.[this.step].map((at) => this.slot.names[at]);
  }

  showWhere() {
    const { found } = this.slot;
    const { step, pair } = this;
    const shown = [found.curves, ...(found.paper ? [found.paper] : [])];
    const rows = ["backward", "forward", "temporal"].map((name) => row(name, shown.map((one) => one[name][step])));
    const table = h(
      "table",
      { class: "numbers" },
      h("caption", {}, `Leakage at step ${step + 1}, in nats`),
      headed(["", found.paper ? "exact" : "bound", ...(found.paper ? ["paper"] : [])]),
      h("tbody", {}, rows),
    );
    const by = `, by ${level(found.curves.temporal[step])}.`;
    const words = pair
      ? h("p", {}, "Most distinguishable: ", strong(pair[0]), " from ", strong(pair[1]), by)
      : note("At δ > 0 no single pair of states and no single observation attains the largest leakage.");
    fill(this.parts.where, table, words);
  }

  showWitness() {
    const { found, names } = this.slot;
    const { step, pair } = this;
    const { witness } = this.parts;
    witness.parentElement.hidden = !found.high;
    if (!found.high) return;
    if (found.step !== step) {
      const only = `This file has the observation about step ${found.step + 1} only.`;
      fill(witness, note(this.alone ? only : "The server computes …"));
      return;
    }
    const listing = [step - 1, step, step + 1]
      .filter((t) => t >= 0 && t < found.high.length)
      .map((t) => `at step ${t + 1} ${listed(names.filter((_, k) => found.high[t][k])) || "none"}`);
    const look = colours();
    const { shapes, width, height } = heatmap(found.high, names, step, witness.clientWidth, look);
    const label = `Heat map of the counts of ${names.length} states: dark counts are high, ${listing.join("; ")}.`;
    const map = h("svg", { width, height, role: "img", "aria-label": label, class: "heatmap" }, shapes);
    const key = (fill, words, more) => {
      const box = h("rect", { x: 1, y: 1, width: 12, height: 12, rx: 2, fill, ...more });
      return h("span", { class: "key" }, h("svg", { width: 14, height: 14, "aria-hidden": "true" }, box), words);
    };
    const frame = key("none", "the chosen step", { stroke: look.forward, "stroke-width": 2 });
    const about = `The evidence about step ${step + 1} that favours ${pair[0]} over ${pair[1]} most`;
    fill(
      witness,
      h("p", {}, `${about}: high counts are ${listing.join("; ")}.`),
      h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Heat map of the observation" }, map),
      h("p", { class: "keys" }, key(look.backward, "high count"), key(look.low, "low count"), frame),
    );
  }

  /** The constant budget, and the plan of least noise. */
  plan() {
    const { setting, constant, plan } = this.slot;
    const waits = (reply, words) =>
      note(`${words}: ${reply?.problem || (this.alone ? "not in this file." : "being computed …")}`);
    const parts = [];
    if (!atDelta(setting) && !constant?.found) parts.push(waits(constant, "Constant budget"));
    if (!atDelta(setting) && constant?.found) {
      const { epsilon, scale, noise } = constant.found;
      const each = ` at each of ${steps(setting.horizon)} is the largest constant budget.`;
      const error = `Laplace noise of scale ${up(scale)}: mean absolute error of a count ${up(noise)}.`;
      const use = () => this.moves.use({ epsilon: Number(down(epsilon)) });
      const button = h("button", { type: "button", onclick: use }, "Use this ε");
      parts.push(h("p", {}, strong(`ε = ${down(epsilon)}`), each));
      if (setting.noise === "laplace") parts.push(h("p", {}, error));
      if (!this.alone) parts.push(h("p", {}, button));
    }
    return [...parts, plan?.found ? this.best(plan.found, constant?.found) : waits(plan, "Plan with the least noise")];
  }

  best({ scales, epsilons, noise }, constant) {
    const error = "mean absolute error of a count ";
    if (scales) {
      const [least, most] = [Math.min(...scales), Math.max(...scales)].map(up);
      const scale = least === most ? most : `${least} to ${most}`;
      return h("p", {}, strong(`Noise of scale ${scale}`), ` satisfies α at this δ: ${error}${up(noise)}.`);
    }
    const gain = constant ? 1 - noise / constant.noise : 0;
    if (gain < LEAST_GAIN) return note("Budgets that vary over time have no less noise here.");
    const [first, middle, last] = [0, epsilons.length >> 1, epsilons.length - 1].map((t) => down(epsilons[t]));
    const shape = `Budgets of ${first} at the first step, ${middle} in the middle, ${last} at the last: ${error}`;
    return h("p", {}, shape, strong(up(noise)), `, ${Math.floor(100 * gain)} % less.`);
  }

  showTable() {
    if (!this.parts.table.open || !this.slot?.found) return;
    const curves = curvesOf(this.slot);
    const names = CURVES.map(({ name }) => name).filter((name) => curves[name]).reverse();
    const rows = curves.temporal.map((_, t) => row(t + 1, names.map((name) => curves[name][t])));
    const caption = h("caption", {}, "Leakage in nats, rounded up");
    fill(this.parts.steps, h("table", { class: "numbers" }, caption, headed(["step", ...names]), h("tbody", {}, rows)));
  }

  async save(kind) {
    try {
      await save(kind, this.slot, this.step, titled(this.slot), this.moves.saved());
      fill(this.parts.problem);
    } catch (error) {
      fill(this.parts.problem, `The file could not be saved: ${error.message}`);
    }
  }
}
