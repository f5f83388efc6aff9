// What the page shows, as one picture for papers and slides: the curves, the observation, and what they are about.

import { box, curve, text } from "./drawing.js";
import { shownSteps } from "./heatmap.js";
import { CURVES, colours } from "./look.js";
import { level, up } from "./words.js";

const WIDTH = 760;
const PLOT = { left: 64, top: 118, width: WIDTH - 84, height: 260 };
const ROW = 18;

/** Distance of lines on an axis: 1, 2 or 5 times a power of ten. */
function tick(range, most) {
  const raw = range / most;
  const unit = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((k) => k * unit).find((one) => one >= raw * (1 - 1e-9));
}

/** Shapes and size of the picture of one view. */
export function picture(view, titled) {
  const look = colours("light");
  const shapes = [];
  const n = view.known.names.length;
  const height = PLOT.top + PLOT.height + 64 + (view.witness ? 60 + ROW * n : 0);
  shapes.push(box(0, 0, WIDTH, height, look.page));
  shapes.push(text(24, 32, `At most ${level(view.worst)} leak about one step`, look.text, { size: 18, bold: true }));
  shapes.push(text(24, 52, titled, look.soft));
  legend(shapes, view, look);
  plot(shapes, view, look);
  if (view.witness) witness(shapes, view, look, PLOT.top + PLOT.height + 84);
  return { shapes, width: WIDTH, height };
}

function legend(shapes, view, look) {
  CURVES.filter(({ name }) => view.curves[name])
    .reverse()
    .forEach(({ name, label, dash, width }, k) => {
      const [x, y] = [24 + (k % 3) * 240, 74 + Math.floor(k / 3) * 20];
      shapes.push(
        curve(
          [
            [x, y],
            [x + 30, y],
          ],
          look[name],
          width,
          dash,
        ),
      );
      shapes.push(text(x + 38, y + 4, label, look.text, { size: 11 }));
    });
}

function plot(shapes, view, look) {
  const { left, top, width, height } = PLOT;
  const steps = view.curves.temporal.length;
  const highest = Math.max(...CURVES.flatMap(({ name }) => (view.curves[name] ? [...view.curves[name]] : []))) * 1.08;
  const x = (t) => left + (steps === 1 ? width / 2 : (t / (steps - 1)) * width);
  const y = (leak) => top + height * (1 - leak / highest);
  const every = tick(highest, 6);
  for (let k = 0; k * every <= highest; k++) {
    const at = y(k * every);
    shapes.push(
      curve(
        [
          [left, at],
          [left + width, at],
        ],
        look.grid,
      ),
    );
    shapes.push(
      text(left - 8, at + 4, String(Number((k * every).toPrecision(6))), look.soft, { anchor: "end", size: 11 }),
    );
  }
  const each = Math.max(1, tick(steps, 10));
  for (let step = each; step <= steps; step += each) {
    shapes.push(text(x(step - 1), top + height + 18, String(step), look.soft, { anchor: "middle", size: 11 }));
  }
  shapes.push(text(left + width / 2, top + height + 38, "step", look.soft, { anchor: "middle" }));
  shapes.push(text(18, top + height / 2, "privacy leakage (nats)", look.soft, { anchor: "middle", turned: true }));
  const { alpha } = view.setting;
  if (alpha <= highest) {
    shapes.push(
      curve(
        [
          [left, y(alpha)],
          [left + width, y(alpha)],
        ],
        look.alpha,
        1.25,
      ),
    );
    shapes.push(text(left + width, y(alpha) - 5, `α = ${alpha}`, look.alpha, { anchor: "end", size: 11 }));
  }
  for (const { name, dash, width: thick } of CURVES) {
    const numbers = view.curves[name];
    if (numbers)
      shapes.push(
        curve(
          Array.from(numbers, (leak, t) => [x(t), y(leak)]),
          look[name],
          thick,
          dash,
        ),
      );
  }
}

function witness(shapes, view, look, top) {
  const { names } = view.known;
  const [first, last] = shownSteps(view.witness.length, view.step);
  const [value, other] = view.pair;
  const told = `Counts that come out high (dark) where most is learnt about step ${view.step + 1}: ${value} rather than ${other}, ${up(view.leakage.temporal[view.step])} nats`;
  shapes.push(text(24, top - 10, told, look.text));
  const left = 110;
  const cell = Math.min(40, (WIDTH - left - 24) / (last - first));
  names.forEach((name, k) => {
    const short = name.length > 14 ? `${name.slice(0, 13)}…` : name;
    shapes.push(text(left - 8, top + k * ROW + 13, short, look.soft, { anchor: "end", size: 11 }));
    for (let t = first; t < last; t++) {
      const colour = view.witness[t][k] ? look.backward : look.low;
      shapes.push(box(left + (t - first) * cell, top + k * ROW, cell - 1, ROW - 1, colour));
    }
  });
  const x = left + (view.step - first) * cell - 1;
  const end = top + names.length * ROW;
  shapes.push(
    curve(
      [
        [x, top - 1],
        [x + cell, top - 1],
        [x + cell, end],
        [x, end],
        [x, top - 1],
      ],
      look.forward,
      2,
    ),
  );
  shapes.push(text(left, end + 16, `steps ${first + 1} to ${last}`, look.soft, { size: 11 }));
}
