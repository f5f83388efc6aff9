// Charts as SVG: leakage at every step, and leakage over a range of chains.

import { h } from "./dom.js";
import { CURVES, colours } from "./look.js";
import { up, withUnit } from "./words.js";

const MARGIN = { left: 54, right: 12, top: 12, bottom: 42 };

/** Steps up to which each one has a point of its own. */
const MOST_POINTS = 60;

const tidy = (number) => Number(number.toFixed(2));

/** A line of text. */
export const text = (x, y, words, fill, more = {}) =>
  h("text", { x: tidy(x), y: tidy(y), fill, "font-size": 12, ...more }, words);

/** A polyline through points [[x, y], ...]; it has a gap where y is null. */
export function line(points, stroke, width = 1, dash = [], more = {}) {
  const d = points.map(([x, y], k) =>
    y === null ? "" : `${k && points[k - 1][1] !== null ? "L" : "M"}${tidy(x)} ${tidy(y)}`,
  );
  const dashed = dash.length ? { "stroke-dasharray": dash.join(" ") } : {};
  return h("path", { d: d.join(""), fill: "none", stroke, "stroke-width": width, ...dashed, ...more });
}

const dots = (points, stroke, size) =>
  h("path", {
    d: points.map(([x, y]) => (y === null ? "" : `M${tidy(x)} ${tidy(y)}h0.01`)).join(""),
    stroke,
    "stroke-width": size,
    "stroke-linecap": "round",
  });

/** Distance of lines on an axis: 1, 2 or 5 times a power of ten. */
function spacing(range, most) {
  const least = range / most;
  const unit = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((k) => k * unit).find((one) => one >= least * (1 - 1e-9));
}

/** Axes from [left, right] and from 0 to `top`: their shapes, and where a number is drawn. */
function axes({ width, height }, [left, right], top, [below, beside], look) {
  const [wide, high] = [width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom];
  const x = (value) => MARGIN.left + wide * (right > left ? (value - left) / (right - left) : 0.5);
  const y = (value) => (value === null ? null : MARGIN.top + high * (1 - value / top));
  const shapes = [];
  const marks = (most, range) => {
    const every = spacing(range, most);
    return Array.from({ length: Math.floor(range / every + 1e-9) + 1 }, (_, k) => Number((k * every).toPrecision(6)));
  };
  for (const mark of marks(6, top)) {
    shapes.push(line([[x(left), y(mark)], [x(left) + (right > left ? wide : 0), y(mark)]], look.grid));
    shapes.push(text(MARGIN.left - 8, y(mark) + 4, String(mark), look.soft, { "text-anchor": "end" }));
  }
  const [least, most] = [Number.isInteger(right) && right > 1 ? 1 : 0, Math.max(2, Math.floor(wide / 60))];
  const along = marks(most, right).filter((mark) => mark >= left && (!least || Number.isInteger(mark)));
  for (const mark of along)
    shapes.push(text(x(mark), height - MARGIN.bottom + 17, String(mark), look.soft, { "text-anchor": "middle" }));
  shapes.push(text(MARGIN.left + wide / 2, height - 6, below, look.soft, { "text-anchor": "middle" }));
  const [bx, by] = [13, MARGIN.top + high / 2];
  shapes.push(text(bx, by, beside, look.soft, { "text-anchor": "middle", transform: `rotate(-90 ${bx} ${by})` }));
  return { shapes, x, y, bottom: MARGIN.top + high, right: MARGIN.left + wide };
}

/** The curves of a slot by their names. */
export function curvesOf({ found: { curves, paper } }) {
  const { epsilons, backward, forward, temporal } = curves;
  return { promised: epsilons, ...(paper ? { paper: paper.temporal } : {}), backward, forward, temporal };
}

/** The largest finite number among curves. */
export const highest = (curves) => Math.max(...Object.values(curves).flat(), 1e-9);

/** Shapes of the leakage at every step, with the level and the chosen step. */
export function leakageChart(slot, step, size, top, look) {
  const curves = curvesOf(slot);
  const horizon = curves.temporal.length;
  const { shapes, x, y, bottom, right } = axes(size, [1, horizon], top, ["step", "privacy leakage (nats)"], look);
  const { alpha } = slot.setting;
  if (alpha <= top) {
    shapes.push(line([[x(1), y(alpha)], [right, y(alpha)]], look.alpha, 1.5));
    shapes.push(text(right - 4, y(alpha) - 6, `α = ${alpha}`, look.alpha, { "text-anchor": "end" }));
  }
  for (const { name, dash, width } of CURVES.filter(({ name }) => curves[name])) {
    const points = curves[name].map((leak, t) => [x(t + 1), y(leak)]);
    shapes.push(line(points, look[name], width, dash, { class: `curve ${name}` }));
    if (name === "temporal" && horizon <= MOST_POINTS) shapes.push(dots(points, look[name], 5));
  }
  shapes.push(line([[x(step + 1), MARGIN.top], [x(step + 1), bottom]], look.forward, 1.5, [2, 2]));
  return { shapes, x };
}

/** A drawing that keeps the width of its place. */
class Drawing {
  constructor(place, height) {
    Object.assign(this, { place, height, draw: null });
    place.setAttribute("role", "img");
    new ResizeObserver(() => this.redraw()).observe(place);
  }

  redraw() {
    if (!this.draw) return;
    const size = { width: Math.max(200, this.place.clientWidth), height: this.height };
    this.place.replaceChildren(h("svg", { ...size, "aria-hidden": "true" }, this.draw(size)));
  }
}

/** Leakage at every step. `chosen` is called with the step, from 0, that is clicked. */
export class LeakageChart extends Drawing {
  constructor(place, readout, chosen) {
    super(place, 280);
    this.readout = readout;
    const stepAt = (event) => {
      const along = event.clientX - place.getBoundingClientRect().left;
      const share = (along - this.x(1)) / Math.max(1, this.x(this.horizon) - this.x(1));
      return Math.round(Math.min(1, Math.max(0, share)) * (this.horizon - 1));
    };
    place.addEventListener("click", (event) => chosen(stepAt(event)));
    place.addEventListener("pointermove", (event) => this.read(stepAt(event)));
    place.addEventListener("pointerleave", () => this.read(null));
  }

  read(at) {
    const shown = CURVES.filter(({ name }) => this.curves[name]).reverse();
    this.readout.textContent =
      at === null
        ? "Click on a step to select it."
        : `Step ${at + 1}: ${shown.map(({ name }) => `${name} ${up(this.curves[name][at])}`).join(" · ")} nats`;
  }

  /** `top`: the largest number on the axis, which two charts side by side share. */
  show(slot, step, top) {
    this.curves = curvesOf(slot);
    this.horizon = this.curves.temporal.length;
    this.draw = (size) => {
      const { shapes, x } = leakageChart(slot, step, size, top, colours());
      this.x = x;
      return shapes;
    };
    this.redraw();
    this.read(null);
    const { temporal } = this.curves;
    const { worst, worst_time: at } = slot.found.curves;
    this.place.setAttribute(
      "aria-label",
      `Line chart of leakage in nats over ${temporal.length} steps: temporal leakage is ${up(temporal[0])} at step 1, ` +
        `${up(worst)} at step ${at + 1}, where it is largest, and ${up(temporal.at(-1))} at the last step. The ` +
        "table of all steps has the numbers.",
    );
  }
}

/** The largest leakage of the same release under chains that stay with different probabilities. */
export class SweepChart extends Drawing {
  constructor(place) {
    super(place, 200);
  }

  /** `own` and `worst`: the mean probability of staying of a setting, and its largest leakage. */
  show({ stays, exact, paper }, own, worst) {
    this.draw = (size) => {
      const look = colours();
      const top = highest({ exact, paper, worst: [worst] }) * 1.1;
      const { shapes, x, y } = axes(size, [0, 1], top, ["probability of staying", "largest leakage (nats)"], look);
      const curve = (name, values) => {
        const { dash, width } = CURVES.find((one) => one.name === name);
        const points = values.map((leak, k) => [x(stays[k]), y(leak)]);
        return line(points, look[name], width, dash);
      };
      return [...shapes, curve("paper", paper), curve("temporal", exact), dots([[x(own), y(worst)]], look.forward, 9)];
    };
    this.redraw();
    const ends = [0, exact.length - 1].map((k) => `${withUnit(up(exact[k]))} for probability ${stays[k]}`);
    const label = `Line chart of the largest leakage by the probability of staying: ${ends.join(", ")}.`;
    this.place.setAttribute("aria-label", label);
  }
}
