// Colours and dashes of curves, as pictures of reports have them (report/style.py). Every curve differs in its dashes too.

import { h } from "./dom.js";

/** Custom properties of page.css with which charts are drawn. */
const COLOURS = ["text", "soft", "grid", "card", "low", "temporal", "backward", "forward", "promised", "paper", "alpha"];

const known = new Map();
const system = matchMedia("(prefers-color-scheme: dark)");

/** light or dark: as chosen, else as the system prefers. */
export const theme = () => document.documentElement.dataset.theme || (system.matches ? "dark" : "light");

/** The colours of a theme. */
export function colours(name = theme()) {
  if (!known.has(name)) {
    const probe = h("span", { class: name, hidden: true });
    document.body.append(probe);
    const style = getComputedStyle(probe);
    known.set(name, Object.fromEntries(COLOURS.map((one) => [one, style.getPropertyValue(`--${one}`).trim()])));
    probe.remove();
  }
  return known.get(name);
}

/** Call back when the system turns from light to dark or back. */
export const onSystemTheme = (changed) => system.addEventListener("change", changed);

/** The curves of the chart, in the order in which they are drawn. */
export const CURVES = [
  { name: "promised", label: "ε of the step", dash: [2, 4], width: 2 },
  { name: "paper", label: "temporal, bound of the paper", dash: [8, 3, 2, 3], width: 1.25 },
  { name: "backward", label: "backward", dash: [7, 4], width: 1.75 },
  { name: "forward", label: "forward", dash: [11, 3, 2, 3, 2, 3], width: 1.75 },
  { name: "temporal", label: "temporal", dash: [], width: 2.5 },
];
