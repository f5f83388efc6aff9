// Heat map of an observation: the counts that are high at each step. All boxes of a colour are one path.

import { line, text } from "./chart.js";
import { h } from "./dom.js";
import { short } from "./words.js";

/** Steps that are shown at most, and widths of a step. */
const MOST_STEPS = 41;
const [NARROWEST, WIDEST] = [13, 40];
const ROW = 20;

const box = (x, y, width, height) => `M${x.toFixed(2)} ${y}h${width.toFixed(2)}v${height}h${(-width).toFixed(2)}z`;

/** Shapes, size and steps of the heat map, about `room` wide. `high[t][k]`: whether the count of state k is high at step t. */
export function heatmap(high, names, step, room, look) {
  const left = Math.min(120, 12 + 7.4 * Math.max(...names.map((name) => short(name).length)));
  const most = Math.max(9, Math.min(MOST_STEPS, Math.floor((room - left - 5) / NARROWEST)));
  const first = Math.max(0, Math.min(step - (most >> 1), high.length - most));
  const last = Math.min(high.length, first + most);
  const cell = Math.max(NARROWEST, Math.min(WIDEST, (room - left - 5) / (last - first)));
  const bottom = ROW * names.length;
  const [shapes, boxes] = [[], [[], []]];
  for (let t = first; t < last; t++) {
    const x = left + (t - first) * cell;
    names.forEach((_, k) => boxes[Number(high[t][k])].push(box(x + 0.5, k * ROW + 1.5, cell - 1, ROW - 1)));
    if (t === step || ((t + 1) % 5 === 0 && Math.abs(t - step) > 2))
      shapes.push(text(x + cell / 2, bottom + 17, String(t + 1), look.soft, { "text-anchor": "middle" }));
  }
  boxes.forEach((some, at) => shapes.push(h("path", { d: some.join(""), fill: [look.low, look.backward][at] })));
  names.forEach((name, k) =>
    shapes.push(text(left - 8, k * ROW + 15, [h("title", {}, name), short(name)], look.soft, { "text-anchor": "end" })),
  );
  const [x0, x1] = [left + (step - first) * cell, left + (step - first + 1) * cell];
  shapes.push(line([[x0, 1], [x1, 1], [x1, bottom + 1], [x0, bottom + 1], [x0, 1]], look.forward, 2));
  return { shapes, width: left + cell * (last - first) + 4, height: bottom + 26, first, last };
}
