// Colours of curves, as pictures of reports have them (report/style.py), for light and for dark. Every curve differs in its dashes too.

const THEMES = {
  light: {
    text: "#1a1a1a",
    soft: "#595959",
    grid: "#e2e5ea",
    page: "#ffffff",
    low: "#e9ecf1",
    temporal: "#1a1a1a",
    backward: "#2166ac",
    forward: "#c2452f",
    promised: "#6f6f6f",
    paper: "#7a4a9c",
    alpha: "#3d7a18",
  },
  dark: {
    text: "#eef1f5",
    soft: "#a9b2bf",
    grid: "#303845",
    page: "#171c24",
    low: "#2a313d",
    temporal: "#f2f4f7",
    backward: "#74b3f0",
    forward: "#f59a83",
    promised: "#9aa4b2",
    paper: "#c9a3e6",
    alpha: "#8fce5f",
  },
};

const wanted = () => document.documentElement.dataset.theme;
const system = matchMedia("(prefers-color-scheme: dark)");

/** light or dark: as chosen, else as the system has it. */
export const theme = () => wanted() || (system.matches ? "dark" : "light");

/** The colours to draw with. */
export const colours = (name = theme()) => THEMES[name];

/** Call back when light turns to dark or back. */
export function onThemeChange(changed) {
  system.addEventListener("change", changed);
  new MutationObserver(changed).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme"],
  });
}

/** The curves of the chart, in the order in which they are drawn. */
export const CURVES = [
  { name: "promised", label: "promised at the step (ε)", dash: [2, 4], width: 2 },
  { name: "paper", label: "temporal, the paper's bound", dash: [8, 3, 2, 3], width: 1.25 },
  { name: "backward", label: "backward, from the past", dash: [7, 4], width: 1.75 },
  { name: "forward", label: "forward, from the future", dash: [11, 3, 2, 3, 2, 3], width: 1.75 },
  { name: "temporal", label: "temporal, from all releases", dash: [], width: 2.5 },
];
