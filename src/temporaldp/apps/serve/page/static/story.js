// The problem in one picture: what an observer believes about one person, and what a count looks like under the noise.

import { h } from "./dom.js";
import { colours } from "./look.js";
import { down, withUnit } from "./words.js";

/** A count by which the noise is shown, and the share of published numbers within the interval. */
const COUNT = 100;
const WITHIN = 0.95;

/** The largest probability that a suspicion of 50 % can have after a leakage, at a delta that of a best guess. */
const believed = (leakage, delta) => {
  const left = leakage === null ? 0 : Math.exp(-leakage);
  return (1 + delta * left) / (1 + left);
};

/** A probability in per cent, rounded up, with digits enough to differ from certainty. */
function percent(value) {
  const left = 1 - value;
  if (left < 1e-9) return "100 %";
  const digits = Math.max(1, Math.ceil(-Math.log10(left)) - 1);
  return `${(Math.ceil(100 * value * 10 ** digits - 1e-9) / 10 ** digits).toFixed(digits).replace(/\.?0+$/, "")} %`;
}

/** Half of the interval around a count under the noise of a setting; null for a mechanism without a known noise. */
function halfWidth({ noise, scale, epsilon }) {
  if (noise === "any") return null;
  return noise === "gaussian" ? 1.96 * scale : (2 / epsilon) * Math.log(1 / (1 - WITHIN));
}

/** What an observer believes after no table, one, the earlier ones, and all. */
function beliefs({ setting, found }, step) {
  const { epsilons, backward, temporal } = found.curves;
  const { delta } = setting;
  const rows = [
    ["before any table", 0.5],
    ["after the table of this step alone", believed(epsilons[step], delta)],
    ["after all tables up to this step", believed(backward[step], delta)],
    [`after all ${temporal.length} tables`, believed(temporal[step], delta)],
  ];
  const bar = (value) => {
    const drawn = h("span");
    drawn.style.inlineSize = `${(200 * (value - 0.5)).toFixed(1)}%`;
    return h("td", { class: "bar", "aria-hidden": "true" }, drawn);
  };
  return h(
    "table",
    { class: "beliefs" },
    h("caption", {}, `An observer suspects with 50 % where one person is at step ${step + 1}. The belief becomes at most:`),
    h(
      "tbody",
      {},
      rows.map(([words, value]) =>
        h("tr", {}, h("th", { scope: "row" }, words), bar(value), h("td", { class: "share" }, percent(value))),
      ),
    ),
  );
}

/** A count, and the interval of what is published. */
function noisy(setting) {
  const half = halfWidth(setting);
  if (half === null) return h("p", { class: "note" }, "The noise of this mechanism is not known.");
  const [low, high] = [COUNT - half, COUNT + half].map(Math.round);
  const [left, right] = [Math.min(0, low), Math.max(2 * COUNT, high)];
  const x = (value) => 8 + (284 * (value - left)) / (right - left);
  const look = colours();
  const mark = (value, words) => [
    h("rect", { x: x(value) - 1, y: 8, width: 2, height: 22, fill: look.text }),
    h("text", { x: x(value), y: 46, "text-anchor": "middle", "font-size": 12, fill: look.soft }, words),
  ];
  const near = Math.abs(x(0) - x(COUNT)) < 24;
  return h(
    "div",
    { class: "noisy" },
    h("svg", { viewBox: "0 0 300 50", "aria-hidden": "true" }, [
      h("rect", { x: x(low), y: 12, width: Math.max(2, x(high) - x(low)), height: 14, rx: 7, fill: look.backward }),
      near ? [] : mark(0, "0"),
      mark(COUNT, String(COUNT)),
    ]),
    h("p", {}, `A count of ${COUNT} is published as a number from ${low} to ${high}, in 19 of 20 cases.`),
  );
}

/** Guarantees to choose from, each with the budget that satisfies alpha; `use` takes the budget. */
function guarantees({ setting, constant }, use) {
  const { alpha, horizon, epsilon } = setting;
  const choice = (words, budget) => {
    const shown = budget ? Number(down(budget)) : null;
    const half = shown && halfWidth({ ...setting, epsilon: shown });
    const about = shown ? `ε = ${down(budget)}${half ? `; a count ± ${Math.round(half)}` : ""}` : "is being computed";
    const own = { type: "button", disabled: !shown, "aria-pressed": String(shown === epsilon), onclick: () => use({ epsilon: shown }) };
    return h("button", own, h("strong", {}, words), h("span", { class: "note" }, about));
  };
  return h(
    "div",
    { class: "choices", role: "group", "aria-label": "Guarantee" },
    choice("a state, against one table", alpha),
    choice("a state, against all tables", constant?.found?.epsilon),
    choice("all states of a person together", alpha / horizon),
  );
}

/** The whole story of a slot at a step; without `use`, as in a saved page, there is nothing to choose. */
export function story(slot, step, use) {
  const { alpha, delta } = slot.setting;
  const chosen = use && !delta;
  return [
    beliefs(slot, step),
    noisy(slot.setting),
    chosen && h("p", {}, `Choose what is protected, for at most ${withUnit(alpha)}:`),
    chosen && guarantees(slot, use),
  ].filter(Boolean);
}
