// What a setting comes to: numbers, words, curves, the observation, the plan, the same under other chains, and files of it.

import { laplaceScale, meanAbsoluteNoise } from "./budget.js";
import { LeakageChart, SweepChart } from "./chart.js";
import { copy, fill, h, say } from "./dom.js";
import { save, texts } from "./exports.js";
import { heatmap } from "./heatmap.js";
import { CURVES } from "./look.js";
import { SWEEP } from "./results.js";
import { atDelta } from "./setting.js";
import { down, factor, level, listed, meaning, steps, up } from "./words.js";

/** Relative rise of a constant budget's noise over the plan's that is worth telling. */
const WORTH_TELLING = 0.005;

function card(title, ...children) {
  return h("section", { class: "card" }, h("h3", {}, title), children);
}

/** In a few words, what a setting is. */
export function titled({ setting, known }) {
  const { source, stays, epsilon, scale, noise, delta, horizon, knows } = setting;
  const chain = {
    sample: "the sample",
    sticky: `${known.names.length} values that stay with probability ${stays}`,
    matrix: `a matrix of ${known.names.length} values`,
  };
  const noisy =
    noise === "gaussian" ? `Gaussian noise of scale ${scale}, δ = ${delta.toExponential()}` : `ε = ${epsilon} a step`;
  const seen = { both: "", past: ", past only", future: ", future only" };
  return `${chain[source]}${seen[knows]}; ${noisy}${delta && noise !== "gaussian" ? `, δ = ${delta.toExponential()}` : ""}; ${steps(horizon)}`;
}

/** One setting's results. `moves` has `step(t)` and `use(fields)`, and `exported()` with the settings and answers to save. */
export class Panel {
  constructor(place, setup, moves) {
    Object.assign(this, { setup, moves });
    this.element = h("article", { class: "panel" });
    place.append(this.element);
    const part = (name, tag = "div") => {
      this[name] = h(tag, { class: name });
      return this[name];
    };
    const slider = h("input", { type: "range", min: 1, value: 1, oninput: () => moves.step(Number(slider.value) - 1) });
    this.slider = slider;
    this.stepLabel = h("label", { class: "steplabel" }, "Step ", h("output", {}), slider);
    const curves = h("div", { class: "curves" });
    const sweep = h("div");
    this.element.append(
      part("name", "h2"),
      part("headline", "section"),
      card("Leakage at every step", part("legend", "ul"), curves, this.stepLabel),
      h(
        "div",
        { class: "pair" },
        card("Where, and for which pair of values", part("where")),
        card("The plan that keeps α", part("plan")),
      ),
      card("The observation that gives most away", part("witness")),
      card(
        "The same release under other chains",
        h(
          "p",
          { class: "hint" },
          "Values stay with this probability, else they go to any other alike. The dot is the correlation of this setting.",
        ),
        sweep,
      ),
      part("files", "section"),
    );
    this.files.classList.add("card");
    this.chart = new LeakageChart(curves, moves.step);
    this.sweep = new SweepChart(sweep);
    this.drawFiles();
  }

  /** Everything that is there at once. */
  show(view, name, top) {
    this.view = view;
    this.element.classList.toggle("stale", Boolean(view.busy));
    fill(this.name, name ? h("span", { class: "letter" }, name) : "", h("span", { class: "what" }, titled(view)));
    const usable = Boolean(view.curves);
    for (const part of this.element.querySelectorAll(":scope > .card, :scope > .pair")) part.hidden = !usable;
    if (!usable) {
      fill(
        this.headline,
        h(
          "p",
          { class: view.busy ? "note" : "problem", role: "alert" },
          view.known.problem
            ? `This matrix cannot be used: ${view.problem}`
            : view.problem || "The server computes this …",
        ),
      );
      return;
    }
    this.showHeadline(view);
    this.showLegend(view);
    this.chart.show(view, top);
    this.slider.max = view.curves.temporal.length;
    this.slider.value = view.step + 1;
    this.slider.setAttribute("aria-valuetext", `step ${view.step + 1}: ${level(view.curves.temporal[view.step])}`);
    this.stepLabel.querySelector("output").textContent = `${view.step + 1} of ${view.curves.temporal.length}`;
    this.showWhere(view);
    this.showWitness(view);
    this.showTexts(view);
  }

  showHeadline(view) {
    const { setting, worst } = view;
    const { odds, surest } = meaning(worst, setting.delta, this.setup);
    const over = worst > setting.alpha;
    const fact = (words, number, note) =>
      h(
        "div",
        { class: "fact" },
        h("dt", {}, words),
        h("dd", {}, number),
        note ? h("dd", { class: "note" }, note) : "",
      );
    const alone = view.curves.promised[0];
    const many = view.curves.temporal.length;
    fill(
      this.headline,
      h("p", { class: "figure" }, h("strong", {}, up(worst)), " nats"),
      h(
        "p",
        { class: "lead" },
        setting.delta
          ? `leak at most about one step at δ = ${setting.delta.toExponential()}, worst at step ${view.worstTime + 1} of ${many}.`
          : `leak about one step, where each step promises ${up(alone)}: worst at step ${view.worstTime + 1} of ${many}.`,
      ),
      h(
        "p",
        { class: `verdict ${over ? "over" : "kept"}` },
        h("span", { "aria-hidden": "true" }, over ? "▲" : "✓"),
        over ? ` Above α = ${setting.alpha} nats` : ` α = ${setting.alpha} nats is kept`,
      ),
      h("p", { class: "meaning" }, `In words: ${odds}. ${surest}`),
      h(
        "dl",
        { class: "facts" },
        fact("promised at each step", level(alone), `odds change by at most ${factor(alone)}`),
        view.curves.paper
          ? fact("the paper's bound", level(view.paperWorst), "Cao et al., an upper bound")
          : fact(
              "this bound",
              view.tight ? "one curve a pair" : "one curve for all pairs",
              view.tight ? "an upper bound" : "an upper bound; a tighter one is on its way",
            ),
        fact("however long it goes on", ...this.forEver(view)),
        fact("all steps together", level(alone * many), "user level, whatever the correlation"),
      ),
    );
    if (setting.delta) for (const one of [...this.headline.querySelectorAll(".fact")].slice(2)) one.hidden = true;
  }

  forEver({ supremum }) {
    if (!supremum) return ["–", "computed by the server"];
    if (supremum.busy) return ["…", "being computed"];
    if (supremum.problem !== undefined) return ["–", supremum.problem];
    const { temporal, certified } = supremum.found;
    if (temporal === null)
      return [certified ? "no bound" : "not known", certified ? "it grows without end" : "no bound was found"];
    return [level(temporal), certified ? "exact" : "or less"];
  }

  showLegend(view) {
    const item = ({ name, label, dash, width }) =>
      h(
        "li",
        {},
        h(
          "svg",
          { width: 34, height: 10, "aria-hidden": "true" },
          h("line", {
            x1: 1,
            y1: 5,
            x2: 33,
            y2: 5,
            class: `curve-${name}`,
            "stroke-width": width,
            "stroke-dasharray": dash.join(" "),
          }),
        ),
        label,
      );
    fill(
      this.legend,
      CURVES.filter(({ name }) => view.curves[name])
        .reverse()
        .map(item),
    );
  }

  showWhere(view) {
    const { curves, step, pair } = view;
    const { paper } = view.leakage && curves.paper ? view.leakage : {};
    const row = (words, name) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, words),
        h("td", {}, up(curves[name][step])),
        paper ? h("td", {}, up(paper[name][step])) : "",
      );
    const table = h(
      "table",
      { class: "numbers" },
      h("caption", {}, `Step ${step + 1}, in nats`),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("td"),
          h("th", { scope: "col" }, view.setting.delta ? "bound" : "exact"),
          paper ? h("th", { scope: "col" }, "paper") : "",
        ),
      ),
      h("tbody", {}, row("backward", "backward"), row("forward", "forward"), row("temporal", "temporal")),
    );
    const told = pair
      ? h(
          "p",
          {},
          "Told apart best: ",
          h("strong", {}, pair[0]),
          " rather than ",
          h("strong", {}, pair[1]),
          `, by ${level(curves.temporal[step])}: odds change by at most a factor ${factor(curves.temporal[step])}.`,
        )
      : h("p", { class: "note" }, "At a δ no one pair of values and no one observation is the worst.");
    fill(this.where, table, told);
  }

  showWitness(view) {
    this.witness.parentElement.hidden = !view.witness;
    if (!view.witness) return;
    const { witness, step, pair } = view;
    const { names } = view.known;
    const told = [step - 1, step, step + 1]
      .filter((t) => t >= 0 && t < witness.length)
      .map((t) => `at step ${t + 1} ${listed(names.filter((_, k) => witness[t][k])) || "none"}`);
    const key = (kind, words) =>
      h(
        "span",
        { class: "key" },
        h(
          "svg",
          { width: 14, height: 14, "aria-hidden": "true" },
          h("rect", { width: 14, height: 14, rx: 2, class: kind }),
        ),
        words,
      );
    fill(
      this.witness,
      h(
        "p",
        {},
        `About step ${step + 1}, that somebody was in ${pair[0]} rather than ${pair[1]}: these counts come out high ${told.join("; ")}.`,
      ),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "group", "aria-label": "Heat map of the observation" },
        heatmap(witness, names, step, this.witness.clientWidth),
      ),
      h(
        "p",
        { class: "keys" },
        key("high", "count comes out high"),
        key("low", "low"),
        key("frame", "the step in question"),
      ),
    );
  }

  /** The plan: {constant} at once, {optimal} when the server has said. `compute` finds the constant where that takes long. */
  showPlan(view, compute) {
    const { setting, constant, optimal } = view;
    const parts = [];
    if (!atDelta(setting) && constant === undefined) {
      parts.push(
        h("p", {}, h("button", { type: "button", onclick: compute }, "Compute the constant ε"), " (some seconds)"),
      );
    }
    if (!atDelta(setting) && constant !== undefined) {
      const scale = laplaceScale(constant);
      parts.push(
        h(
          "p",
          {},
          h("strong", {}, `ε = ${down(constant)} nats`),
          ` at each of ${steps(setting.horizon)} leaks no more than ${setting.alpha} nats about any.`,
        ),
        setting.noise === "laplace"
          ? h(
              "p",
              {},
              `Laplace noise of scale ${up(scale)}: a count is off by ${up(meanAbsoluteNoise(scale))} in the mean.`,
            )
          : "",
        h("p", {}, h("button", { type: "button", onclick: () => this.use(constant) }, "Use this ε")),
      );
    }
    fill(this.plan, parts, this.best(view, optimal));
  }

  use(constant) {
    const epsilon = Number(down(constant));
    this.moves.use({ epsilon });
    say(`ε is ${epsilon} now.`);
  }

  best({ setting, constant }, optimal) {
    if (!optimal)
      return h(
        "p",
        { class: "note" },
        "Budgets that differ from step to step can have less noise: the server computes them.",
      );
    if (optimal.busy)
      return h("p", { class: "note", role: "status" }, "The plan with the least noise is being computed …");
    if (optimal.problem !== undefined)
      return h("p", { class: "note" }, optimal.problem ? `No plan with less noise: ${optimal.problem}` : "");
    const { found } = optimal;
    if (atDelta(setting)) {
      const [least, most] = [Math.min(...found.scales), Math.max(...found.scales)];
      const scale = up(least) === up(most) ? up(most) : `${up(least)} to ${up(most)}`;
      return h(
        "p",
        {},
        h("strong", {}, `Noise of scale ${scale}`),
        ` keeps α at this δ: a count is off by ${up(found.noise)} in the mean.`,
      );
    }
    const gain = constant === undefined ? NaN : 1 - found.noise / meanAbsoluteNoise(laplaceScale(constant));
    const [first, middle, last] = [0, found.epsilons.length >> 1, found.epsilons.length - 1].map((t) =>
      down(found.epsilons[t]),
    );
    const shape =
      found.epsilons.length > 2
        ? `${first} at the first step, ${middle} in the middle, ${last} at the last`
        : `${first} and ${last}`;
    if (gain < WORTH_TELLING)
      return h("p", { class: "note" }, "Budgets that differ from step to step have no less noise here.");
    return h(
      "p",
      {},
      `With budgets of ${shape}, a count is off by `,
      h("strong", {}, up(found.noise)),
      ` in the mean${gain >= 0 ? `, ${Math.floor(100 * gain)} % less` : ""}.`,
    );
  }

  showSweep(view, sweep) {
    this.sweep.place.closest(".card").hidden = sweep === null;
    if (sweep) this.sweep.show(SWEEP, sweep, view.worst);
  }

  drawFiles() {
    const button = (kind, words) =>
      h("button", { type: "button", "data-file": kind, onclick: () => this.save(kind) }, words);
    this.matrices = Object.fromEntries(["backward", "forward"].map((name) => [name, button(name, `${name}.csv`)]));
    this.codes = Object.fromEntries(["python", "shell"].map((name) => [name, h("code")]));
    const block = (name, words) => {
      const button = h("button", { type: "button", class: "copy", onclick: () => this.copy(name) }, "Copy");
      return h("details", {}, h("summary", {}, words), button, h("pre", { tabindex: "0" }, this.codes[name]));
    };
    this.all = h("div");
    const table = h("details", { ontoggle: () => this.showAll() }, h("summary", {}, "All steps as a table"), this.all);
    this.allSteps = table;
    this.problem = h("p", { class: "problem", role: "alert" });
    const html = this.setup.alone ? "" : button("html", "HTML that still moves");
    fill(
      this.files,
      h("h3", {}, "Take it with you"),
      h(
        "div",
        { class: "buttons" },
        button("png", "PNG"),
        button("svg", "SVG"),
        button("csv", "CSV"),
        html,
        Object.values(this.matrices),
      ),
      this.problem,
      block("python", "The same in Python"),
      block("shell", "The same on the command line"),
      table,
    );
  }

  async save(kind) {
    const { settings, answers } = this.moves.exported();
    try {
      await save(kind, this.view, titled(this.view), settings, answers);
      fill(this.problem);
    } catch (error) {
      fill(this.problem, `It could not be saved: ${error.message}`);
    }
  }

  async copy(name) {
    await copy(this.codes[name].textContent);
    say("Copied.");
  }

  showTexts(view) {
    const made = texts(view);
    for (const [name, code] of Object.entries(this.codes)) code.textContent = made[name];
    for (const [name, button] of Object.entries(this.matrices)) button.hidden = !view.known[name];
    this.showAll();
  }

  showAll() {
    if (!this.allSteps.open) return;
    const { curves } = this.view;
    const names = CURVES.map(({ name }) => name)
      .filter((name) => curves[name])
      .reverse();
    const head = h(
      "tr",
      {},
      h("th", { scope: "col" }, "step"),
      names.map((name) => h("th", { scope: "col" }, name)),
    );
    const rows = Array.from(curves.temporal, (_, t) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, t + 1),
        names.map((name) => h("td", {}, up(curves[name][t]))),
      ),
    );
    const region = { class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Leakage at all steps" };
    fill(
      this.all,
      h(
        "div",
        region,
        h(
          "table",
          { class: "numbers" },
          h("caption", {}, "Leakage in nats, rounded up"),
          h("thead", {}, head),
          h("tbody", {}, rows),
        ),
      ),
    );
  }
}
