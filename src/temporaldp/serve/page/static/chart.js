// Curves by uPlot: leakage at every step, and leakage over a range of stickiness.

import { h } from "./dom.js";
import { colours, CURVES } from "./look.js";
import { up } from "./words.js";

const FONT = "12px Inter, system-ui, sans-serif";
const PADDING = [12, 12, 0, 0];

function axis(label, look) {
  return {
    label,
    labelFont: FONT,
    font: FONT,
    labelSize: 18,
    gap: 4,
    stroke: look.soft,
    grid: { stroke: look.grid, width: 1 },
    ticks: { show: false },
  };
}

/** A drawing area that keeps the width of its place, and is drawn anew where its data, its curves or the colours change. */
class Plot {
  constructor(place, height, options) {
    Object.assign(this, { place, height, options, drawn: null, key: "" });
    new ResizeObserver(() => this.drawn?.setSize(this.size())).observe(place);
  }

  size() {
    return { width: Math.max(200, this.place.clientWidth), height: this.height };
  }

  show(data, key, ...more) {
    const drawn = this.key === key && this.drawn;
    if (drawn) drawn.setData(data);
    else {
      this.drawn?.destroy();
      const base = { ...this.size(), padding: PADDING, legend: { show: false }, scales: { x: { time: false } } };
      this.drawn = new uPlot({ ...base, ...this.options(...more) }, data, this.place);
      this.key = key;
    }
  }
}

/** Leakage at every step. `chosen` is called with the step, from 0, that somebody clicks on. */
export class LeakageChart {
  constructor(place, chosen) {
    this.view = null;
    this.readout = h("p", { class: "readout", "aria-hidden": "true" });
    this.place = h("div", { class: "plot", role: "img" });
    place.append(this.place, this.readout);
    this.plot = new Plot(this.place, 280, (curves) => this.options(curves));
    this.place.addEventListener("click", () => {
      const at = this.plot.drawn?.cursor.idx;
      if (at !== null && at !== undefined) chosen(at);
    });
  }

  options(curves) {
    const look = colours();
    return {
      scales: { x: { time: false }, y: { range: () => [0, this.top] } },
      axes: [
        { ...axis("step", look), size: 26, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500] },
        { ...axis("privacy leakage (nats)", look), size: 54 },
      ],
      cursor: { points: { size: 7 }, drag: { x: false, y: false }, y: false },
      series: [
        {},
        ...curves.map(({ name, label, dash, width }) => ({
          label,
          dash,
          width,
          stroke: look[name],
          points: { show: (u) => name === "temporal" && u.data[0].length <= 60, size: 5, fill: look[name] },
        })),
      ],
      hooks: { draw: [(u) => this.marks(u)], setCursor: [(u) => this.tell(u)] },
    };
  }

  /** The level and the chosen step. */
  marks(u) {
    const { ctx, bbox } = u;
    const look = colours();
    const ratio = devicePixelRatio;
    ctx.save();
    const line = (x0, y0, x1, y1, colour, dash) => {
      ctx.beginPath();
      ctx.setLineDash(dash.map((one) => one * ratio));
      ctx.strokeStyle = colour;
      ctx.lineWidth = 1.5 * ratio;
      ctx.moveTo(x0, y0);
      ctx.lineTo(x1, y1);
      ctx.stroke();
    };
    const { alpha } = this.view.setting;
    if (alpha <= this.top) {
      const y = u.valToPos(alpha, "y", true);
      line(bbox.left, y, bbox.left + bbox.width, y, look.alpha, []);
      ctx.fillStyle = look.alpha;
      ctx.font = `${12 * ratio}px Inter, system-ui, sans-serif`;
      ctx.textAlign = "right";
      ctx.fillText(`α = ${alpha}`, bbox.left + bbox.width - 4 * ratio, y - 7 * ratio);
    }
    const x = u.valToPos(this.view.step + 1, "x", true);
    line(x, bbox.top, x, bbox.top + bbox.height, look.forward, [2, 2]);
    ctx.restore();
  }

  tell(u) {
    const at = u.cursor.idx;
    if (at === null || at === undefined) {
      this.readout.textContent = "Click on a step to look into it.";
      return;
    }
    const told = this.curves.map(({ name }, k) => `${name} ${up(u.data[k + 1][at])}`).reverse();
    this.readout.textContent = `Step ${at + 1}: ${told.join(" · ")} nats`;
  }

  /** `top`: the largest number on the axis, which two charts side by side share. */
  show(view, top) {
    this.view = view;
    this.top = top;
    this.curves = CURVES.filter(({ name }) => view.curves[name]);
    const steps = Array.from(view.curves.temporal, (_, t) => t + 1);
    const data = [steps, ...this.curves.map(({ name }) => Array.from(view.curves[name]))];
    this.plot.show(
      data,
      `${document.documentElement.dataset.shown} ${this.curves.map(({ name }) => name)}`,
      this.curves,
    );
    this.tell(this.plot.drawn);
    const { temporal } = view.curves;
    this.place.setAttribute(
      "aria-label",
      `Line chart of leakage in nats over ${temporal.length} steps: temporal leakage is ${up(temporal[0])} at the first step, ` +
        `${up(view.worst)} at step ${view.worstTime + 1}, where it is largest, and ${up(temporal[temporal.length - 1])} at the ` +
        "last. The numbers are in the table of all steps.",
    );
  }
}

/** What the same release leaks under chains that stay with different probabilities. */
export class SweepChart {
  constructor(place) {
    this.place = h("div", { class: "plot", role: "img" });
    place.append(this.place);
    this.plot = new Plot(this.place, 200, () => this.options());
  }

  options() {
    const look = colours();
    const curve = (name) => CURVES.find((one) => one.name === name);
    const series = (name) => ({
      stroke: look[name],
      width: curve(name).width,
      dash: curve(name).dash,
      points: { show: false },
    });
    return {
      scales: { x: { time: false, range: () => [0, 1] }, y: { range: (_, low, high) => [0, high * 1.1 || 1] } },
      axes: [
        { ...axis("probability of staying", look), size: 26 },
        { ...axis("worst step (nats)", look), size: 54 },
      ],
      cursor: { show: false },
      series: [
        {},
        series("temporal"),
        series("paper"),
        { stroke: look.forward, width: 0, points: { show: true, size: 9, fill: look.forward } },
      ],
    };
  }

  show(stays, { exact, paper, own }, worst) {
    const points = [
      ...stays.map((p, k) => [p, exact[k], paper[k], null]),
      ...(own === null ? [] : [[own, null, null, worst]]),
    ];
    points.sort((a, b) => a[0] - b[0]);
    // gaps of single points between curves are joined
    const columns = [0, 1, 2, 3].map((k) => points.map((point) => (point[k] === null && k < 3 ? undefined : point[k])));
    this.plot.show(columns, document.documentElement.dataset.shown);
    const ends = [0, exact.length - 1].map(
      (k) => `${up(exact[k])} nats where values stay with probability ${stays[k]}`,
    );
    this.place.setAttribute(
      "aria-label",
      `Line chart of the largest leakage over a range of stickiness: ${ends.join(", ")}.`,
    );
  }
}
