// Which counts come out high, step by step, in the observation that gives most away about one step.

import { h } from "./dom.js";

/** Steps shown around the one in question, at most; and how wide each is drawn at least. */
const MOST_STEPS = 41;
const [NARROWEST, WIDEST] = [13, 40];
const MOST_LETTERS = 14;

const short = (name) => (name.length > MOST_LETTERS ? `${name.slice(0, MOST_LETTERS - 1)}…` : name);

/** The steps that are shown: [first, behind the last]. */
export function shownSteps(horizon, step, most = MOST_STEPS) {
  const first = Math.max(0, Math.min(step - (most >> 1), horizon - most));
  return [first, Math.min(horizon, first + most)];
}

/** The picture, about `room` pixels wide. `high[t][k]`: whether the count of value k comes out high at step t. */
export function heatmap(high, names, step, room) {
  const left = Math.min(120, 12 + 7.4 * Math.max(...names.map((name) => short(name).length)));
  const [first, last] = shownSteps(
    high.length,
    step,
    Math.max(9, Math.min(MOST_STEPS, Math.floor((room - left - 5) / NARROWEST))),
  );
  const [cell, row] = [Math.max(NARROWEST, Math.min(WIDEST, (room - left - 5) / (last - first))), 20];
  const [width, height] = [left + cell * (last - first) + 4, row * names.length + 26];
  const parts = [];
  for (let t = first; t < last; t++) {
    names.forEach((name, k) => {
      const at = { x: left + (t - first) * cell + 0.5, y: k * row + 1.5, width: cell - 1, height: row - 1 };
      parts.push(h("rect", { ...at, rx: 2, class: high[t][k] ? "high" : "low" }));
    });
    if ((t + 1) % 5 === 0 || t === step) {
      const x = left + (t - first + 0.5) * cell;
      if (t === step || Math.abs(t - step) > 2)
        parts.push(h("text", { x, y: height - 8, "text-anchor": "middle" }, String(t + 1)));
    }
  }
  names.forEach((name, k) =>
    parts.push(h("text", { x: left - 8, y: k * row + 15, "text-anchor": "end" }, h("title", {}, name), short(name))),
  );
  parts.push(
    h("rect", {
      x: left + (step - first) * cell - 0.5,
      y: 0.5,
      width: cell + 1,
      height: names.length * row + 1,
      class: "frame",
      rx: 3,
    }),
  );
  const counts = names.filter((_, k) => high[step][k]);
  const label = `Heat map of ${names.length} counts by ${last - first} steps around step ${step + 1}: dark counts come out high. At step ${step + 1}: ${counts.join(", ")}.`;
  return h(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label, class: "heatmap" },
    parts,
  );
}
