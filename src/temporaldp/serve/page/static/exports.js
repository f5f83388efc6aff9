// Files of what the page shows.

import { matrixFile, python, shell } from "./commands.js";
import { download } from "./dom.js";
import { png, svg } from "./drawing.js";
import { picture } from "./picture.js";
import { pageAlone } from "./server.js";

const COLUMNS = ["promised", "backward", "forward", "temporal", "paper"];

/** A table of all steps, each number with all its digits. */
export function csv(view) {
  const columns = COLUMNS.filter((name) => view.curves[name]);
  const head = ["step", ...columns.map((name) => `${name}_nats`)].join(",");
  const rows = Array.from(view.curves.temporal, (_, t) =>
    [t + 1, ...columns.map((name) => view.curves[name][t])].join(","),
  );
  return `${[head, ...rows].join("\n")}\n`;
}

/** Where the page holds what it begins with, up to the end of that: in two parts, as this file stands inside of a script there. */
const [BEGIN, END] = ['id="setup">', ["<", "script>"].join("/")];

/** The page as one file with these settings, which still moves without a server; `answers` are what the server said of them. */
export async function alone(settings, answers) {
  const page = await pageAlone();
  const from = page.indexOf(BEGIN) + BEGIN.length;
  const to = page.indexOf(END, from);
  const setup = { ...JSON.parse(page.slice(from, to)), settings, answers };
  return page.slice(0, from) + JSON.stringify(setup).replaceAll("<", "\\u003c") + page.slice(to);
}

/** Save a view as one of the kinds of files. */
export async function save(kind, view, titled, settings, answers) {
  const name = "temporal-leakage";
  const { shapes, width, height } = picture(view, titled);
  if (kind === "png") download(`${name}.png`, await png(shapes, width, height));
  if (kind === "svg") download(`${name}.svg`, svg(shapes, width, height, titled), "image/svg+xml");
  if (kind === "csv") download(`${name}.csv`, csv(view), "text/csv");
  if (view.known[kind]) download(`${kind}.csv`, matrixFile(view.known[kind], view.known.names), "text/csv");
  if (kind === "html") download(`${name}.html`, await alone(settings, answers), "text/html");
}

/** The texts to copy. */
export const texts = (view) => ({
  python: python(view.setting, view.known, view.tight),
  shell: shell(view.setting, view.known),
});
