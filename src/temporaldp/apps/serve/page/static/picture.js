// A picture of a slot for papers and slides: the curves and the observation, always in light colours.

import { curvesOf, highest, leakageChart, line, text } from "./chart.js";
import { h } from "./dom.js";
import { heatmap } from "./heatmap.js";
import { CURVES, colours } from "./look.js";
import { level, up, withUnit } from "./words.js";

const WIDTH = 760;
const FONT = "Inter, 'DejaVu Sans', system-ui, sans-serif";

const moved = (x, y, shapes) => h("g", { transform: `translate(${x} ${y})` }, shapes);

/** The picture as an SVG element. */
export function picture(slot, step, titled) {
  const look = colours("light");
  const curves = curvesOf(slot);
  const { worst, temporal } = slot.found.curves;
  const shown = CURVES.filter(({ name }) => curves[name]).reverse();
  const legend = shown.map(({ name, label, dash, width }, k) =>
    moved(24 + (k % 3) * 240, 74 + Math.floor(k / 3) * 20, [
      line([[0, 0], [30, 0]], look[name], width, dash),
      text(38, 4, label, look.text, { "font-size": 11 }),
    ]),
  );
  const chart = leakageChart(slot, step, { width: WIDTH - 20, height: 310 }, highest(curves) * 1.08, look);
  const parts = [
    text(24, 32, `At most ${level(worst)} leak about one step`, look.text, { "font-size": 18, "font-weight": 600 }),
    text(24, 52, titled, look.soft),
    ...legend,
    moved(0, 104, chart.shapes),
  ];
  let height = 430;
  if (slot.found.high && slot.found.step === step) {
    const [state, other] = slot.found.pairs[step].map((at) => slot.names[at]);
    const map = heatmap(slot.found.high, slot.names, step, WIDTH - 48, look);
    const about = `${state} rather than ${other}, ${withUnit(up(temporal[step]))}`;
    const words = `High counts (dark) with the largest leakage about step ${step + 1}: ${about}`;
    parts.push(text(24, 448, words, look.text), moved(24, 460, map.shapes));
    height = 470 + map.height;
  }
  const size = { width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}` };
  const ground = h("rect", { x: 0, y: 0, width: WIDTH, height, fill: look.card });
  return h("svg", { ...size, "font-family": FONT, role: "img" }, h("title", {}, titled), ground, parts);
}

/** An SVG document. */
export const svgText = (drawn) => `${new XMLSerializer().serializeToString(drawn)}\n`;

/** A PNG of the shapes that pictures have, with `density` pixels a unit. */
export function png(drawn, density = 2) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = ["width", "height"].map((name) => Number(drawn.getAttribute(name)) * density);
  const to = canvas.getContext("2d");
  to.scale(density, density);
  paint(to, drawn);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function paint(to, shape) {
  const own = (name) => shape.getAttribute(name);
  const numbers = (...names) => names.map((name) => Number(own(name)));
  to.save();
  const matrix = shape.transform?.baseVal.consolidate()?.matrix;
  if (matrix) to.transform(matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f);
  to.fillStyle = own("fill");
  if (shape.tagName === "rect") to.fillRect(...numbers("x", "y", "width", "height"));
  if (shape.tagName === "path") {
    Object.assign(to, { strokeStyle: own("stroke"), lineWidth: Number(own("stroke-width")) });
    to.lineCap = own("stroke-linecap") ?? "butt";
    to.setLineDash(own("stroke-dasharray")?.split(" ").map(Number) ?? []);
    if (own("stroke")) to.stroke(new Path2D(own("d")));
    else to.fill(new Path2D(own("d")));
  }
  if (shape.tagName === "text") {
    to.font = `${own("font-weight") ?? ""} ${own("font-size")}px ${FONT}`;
    to.textAlign = { middle: "center", end: "end" }[own("text-anchor")] ?? "start";
    to.fillText(shape.lastChild.textContent, ...numbers("x", "y"));
  } else if (shape.tagName !== "title") for (const child of shape.children) paint(to, child);
  to.restore();
}
