// Files of what the page shows.

import { curvesOf } from "./chart.js";
import { matrixFile } from "./commands.js";
import { download } from "./dom.js";
import { picture, png, svgText } from "./picture.js";
import { pageAlone } from "./server.js";

const COLUMNS = ["promised", "backward", "forward", "temporal", "paper"];

/** A table of all steps, each number with all its digits. */
function csv(slot) {
  const curves = curvesOf(slot);
  const columns = COLUMNS.filter((name) => curves[name]);
  const head = ["step", ...columns.map((name) => `${name}_nats`)].join(",");
  const rows = curves.temporal.map((_, t) => [t + 1, ...columns.map((name) => curves[name][t] ?? "inf")].join(","));
  return `${[head, ...rows].join("\n")}\n`;
}

/** Where the page holds its data, up to the end of that: in two parts, as this file stands inside of a script there. */
const [BEGIN, END] = ['id="setup">', ["<", "script>"].join("/")];

/** The page as one file that shows `saved`. */
async function alone(saved) {
  const page = await pageAlone();
  const from = page.indexOf(BEGIN) + BEGIN.length;
  const to = page.indexOf(END, from);
  const setup = { ...JSON.parse(page.slice(from, to)), saved };
  return page.slice(0, from) + JSON.stringify(setup).replaceAll("<", "\\u003c") + page.slice(to);
}

/** Save a slot as a file of one kind; `saved` is what the page as one file shows. */
export async function save(kind, slot, step, titled, saved) {
  const name = "temporal-leakage";
  const matrix = slot.found.matrices[kind];
  if (kind === "png") download(`${name}.png`, await png(picture(slot, step, titled)));
  if (kind === "svg") download(`${name}.svg`, svgText(picture(slot, step, titled)), "image/svg+xml");
  if (kind === "csv") download(`${name}.csv`, csv(slot), "text/csv");
  if (matrix) download(`${kind}.csv`, matrixFile(matrix, slot.names), "text/csv");
  if (kind === "html") download(`${name}.html`, await alone(saved), "text/html");
}
