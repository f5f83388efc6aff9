// What is moved: the correlation, the release and the level.

import { fill, h, say } from "./dom.js";
import { MatrixEditor } from "./matrix.js";
import { upload } from "./server.js";
import { DEFAULT, DELTAS, LIMITS } from "./setting.js";

/** Positions of a slider; it is logarithmic where a quantity spans powers of ten. */
const POSITIONS = 1000;

const three = (value) => Number(value.toPrecision(3));

class Slider {
  constructor(place, { name, label, unit, hint, digits = three, log = true, most }, changed) {
    const { min, max } = LIMITS[name];
    this.top = most ?? max;
    const whole = name === "horizon" || name === "values";
    this.at = (value) => {
      const share = log ? Math.log(value / min) / Math.log(this.top / min) : (value - min) / (this.top - min);
      return Math.round(POSITIONS * Math.min(1, Math.max(0, share)));
    };
    const value = (at) => {
      const share = at / POSITIONS;
      const found = log ? min * (this.top / min) ** share : min + (this.top - min) * share;
      return whole ? Math.round(found) : digits(found);
    };
    const id = `control-${name}`;
    this.number = h("input", {
      id,
      type: "number",
      min,
      max,
      step: whole ? 1 : "any",
      "aria-describedby": hint ? `${id}-hint` : null,
      oninput: () => {
        const typed = this.number.valueAsNumber;
        const fits = typed >= min && typed <= max && (!whole || Number.isInteger(typed));
        this.number.setAttribute("aria-invalid", String(!fits));
        this.problem.textContent = fits
          ? ""
          : `Expected ${whole ? "a whole number" : "a number"} from ${min} to ${max}.`;
        if (fits) {
          this.range.value = this.at(typed);
          changed(typed);
        }
      },
    });
    // arrows move a whole quantity by one, whatever a position of the slider means
    const step = (by) => {
      const next = Math.min(max, Math.max(min, Math.round(this.number.valueAsNumber) + by));
      this.show(next);
      changed(next);
    };
    this.range = h("input", {
      type: "range",
      min: 0,
      max: POSITIONS,
      "aria-label": label,
      oninput: () => {
        const moved = value(Number(this.range.value));
        this.show(moved, false);
        changed(moved);
      },
      onkeydown: (event) => {
        const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
        if (whole && by) {
          event.preventDefault();
          step(by);
        }
      },
    });
    this.problem = h("span", { class: "problem", role: "alert" });
    this.row = h(
      "div",
      { class: "slider" },
      h("label", { for: id }, label, unit ? h("span", { class: "unit" }, ` (${unit})`) : ""),
      this.number,
      this.range,
      hint ? h("span", { class: "hint", id: `${id}-hint` }, hint) : "",
      this.problem,
    );
    place.append(this.row);
  }

  show(value, moveRange = true) {
    if (document.activeElement !== this.number || this.number.valueAsNumber !== value) this.number.value = value;
    if (moveRange) this.range.value = this.at(value);
    this.range.setAttribute("aria-valuetext", String(value));
    this.problem.textContent = "";
    this.number.removeAttribute("aria-invalid");
  }
}

const choice = (place, { id, label, options, hint }, changed) => {
  const select = h("select", { id, onchange: () => changed(select.value) });
  select.append(...options.map(([value, words]) => h("option", { value }, words)));
  place.append(
    h(
      "div",
      { class: "choice" },
      h("label", { for: id }, label),
      select,
      hint ? h("span", { class: "hint" }, hint) : "",
    ),
  );
  return select;
};

/** The form. `changed` is called with the fields that somebody moved. */
export class Controls {
  constructor(place, sample, served, shown, changed) {
    Object.assign(this, { sample, changed });
    this.setting = DEFAULT;
    const [correlation, release, level] = ["Correlation", "Release", "Level"].map((title) => {
      const group = h("fieldset", {}, h("legend", {}, title));
      place.append(group);
      return group;
    });
    this.correlation(correlation, served);
    this.release(release, served, shown);
    this.alpha = new Slider(
      level,
      {
        name: "alpha",
        label: "α, most that may leak about any step",
        unit: "nats",
        most: 10,
        hint: "The plan below keeps it.",
      },
      (alpha) => changed({ alpha }),
    );
  }

  correlation(place, served) {
    const kinds = [
      ["sample", "Sample"],
      ["sticky", "Stickiness"],
      ["matrix", "Matrix"],
      ...(served ? [["upload", "Upload"]] : []),
    ];
    this.kinds = h("div", { class: "segments", role: "radiogroup", "aria-label": "Where the correlation comes from" });
    for (const [kind, words] of kinds) {
      const id = `source-${kind}`;
      const radio = h("input", { type: "radio", name: "source", id, value: kind, onchange: () => this.choose(kind) });
      this.kinds.append(radio, h("label", { for: id }, words));
    }
    this.parts = Object.fromEntries(kinds.map(([kind]) => [kind, h("div", { class: "source", hidden: true })]));
    place.append(this.kinds, ...Object.values(this.parts));
    this.parts.sample.append(
      h(
        "p",
        { class: "hint" },
        "Sleep stages of 151 people, every five minutes: awake (W), REM (R), and light to deep sleep (N1 to N3).",
      ),
    );
    const sticky = {
      name: "stays",
      label: "Stays what it was",
      unit: "probability",
      log: false,
      digits: (p) => Number(p.toFixed(3)),
    };
    this.stays = new Slider(this.parts.sticky, sticky, (stays) => this.changed({ stays }));
    const values = { name: "values", label: "Values a person can have", log: false };
    this.values = new Slider(this.parts.sticky, values, (n) => this.changed({ values: n }));
    this.parts.sticky.append(h("p", { class: "hint" }, "Else it goes to every other value alike."));
    this.matrix = new MatrixEditor(this.parts.matrix, (edited) => this.changed({ ...edited, backward: null }));
    if (served) this.uploading(this.parts.upload);
    const options = [
      ["both", "past and future"],
      ["past", "the past only (backward)"],
      ["future", "the future only (forward)"],
    ];
    this.knows = choice(place, { id: "knows", label: "The adversary knows how it follows", options }, (knows) =>
      this.changed({ knows }),
    );
  }

  uploading(place) {
    const kind = choice(
      place,
      {
        id: "upload-kind",
        label: "The file holds",
        options: [
          ["traces", "traces: user, time, state"],
          ["matrix", "a transition matrix"],
        ],
      },
      () => {},
    );
    const note = h("p", { class: "note", role: "status" });
    const problem = h("p", { class: "problem", role: "alert" });
    const file = h("input", {
      type: "file",
      id: "upload-file",
      accept: ".csv,.parquet,.json",
      onchange: async () => {
        if (!file.files.length) return;
        fill(note, "Reading …");
        fill(problem);
        const { found, problem: wrong } = await upload(file.files[0], kind.value);
        file.value = "";
        fill(
          note,
          found
            ? `Read: ${found.names.length} values${found.note ? `, ${found.note}` : ""}. Edit them under “Matrix”.`
            : "",
        );
        fill(problem, wrong ?? "");
        if (found) {
          const { names, forward, backward, horizon } = found;
          this.changed({ source: "matrix", names, forward, backward, ...(horizon ? { horizon } : {}) }, "upload");
        }
      },
    });
    place.append(
      h("div", { class: "choice" }, h("label", { for: "upload-file" }, "CSV, Parquet or JSON"), file),
      h(
        "p",
        { class: "hint" },
        "Traces have columns user, time and state, or user and one column a step. The file stays in memory: nothing of it is stored or logged.",
      ),
      note,
      problem,
    );
  }

  release(place, served, shown) {
    const noises = [
      ["laplace", "histogram, Laplace noise"],
      ...(served || shown.some(({ noise }) => noise === "gaussian") ? [["gaussian", "histogram, Gaussian noise"]] : []),
      ["any", "any ε-DP mechanism"],
    ];
    this.noise = choice(place, { id: "noise", label: "Mechanism", options: noises }, (noise) =>
      this.changed({ noise }),
    );
    const epsilon = { name: "epsilon", label: "ε, promised at each step", unit: "nats" };
    this.epsilon = new Slider(place, epsilon, (epsilon) => this.changed({ epsilon }));
    const scale = { name: "scale", label: "Scale of the noise", unit: "counts", most: 200 };
    this.scale = new Slider(place, scale, (scale) => this.changed({ scale }));
    this.horizon = new Slider(place, { name: "horizon", label: "Horizon", unit: "steps" }, (horizon) =>
      this.changed({ horizon }),
    );
    const deltas = (served ? DELTAS : [0]).map((delta) => [
      String(delta),
      delta ? delta.toExponential() : "0, pure privacy",
    ]);
    this.delta = choice(place, { id: "delta", label: "δ", options: deltas }, (delta) =>
      this.changed({ delta: Number(delta) }),
    );
  }

  choose(kind) {
    if (kind === "upload") {
      this.changed({}, "upload");
      return;
    }
    const { names, forward } = this.setting;
    const begun =
      kind === "matrix" && !names
        ? { names: this.sample.names, forward: this.sample.forward, backward: this.sample.backward }
        : { names, forward };
    this.changed({ source: kind, ...begun });
  }

  /** Show a setting; `uploading` keeps the upload in view. */
  show(setting, uploading) {
    this.setting = setting;
    const kind = uploading ? "upload" : setting.source;
    for (const [name, part] of Object.entries(this.parts)) part.hidden = name !== kind;
    const radio = this.kinds.querySelector(`#source-${kind}`);
    if (radio) radio.checked = true;
    if (setting.source === "matrix") this.matrix.show(setting);
    for (const name of ["stays", "values", "epsilon", "scale", "horizon", "alpha"]) this[name].show(setting[name]);
    for (const name of ["knows", "noise"]) this[name].value = setting[name];
    const option = (delta) => [...this.delta.options].find(({ value }) => Number(value) === delta);
    if (!option(setting.delta)) this.delta.append(h("option", { value: setting.delta }, setting.delta.toExponential()));
    this.delta.value = option(setting.delta).value;
    this.delta.options[0].disabled = setting.noise === "gaussian";
    this.delta.disabled = setting.noise === "any";
    this.epsilon.row.hidden = setting.noise === "gaussian";
    this.scale.row.hidden = setting.noise !== "gaussian";
  }
}

/** What follows from moving one thing: Gaussian noise has no leakage at delta = 0, and a bare epsilon none at a delta. */
export function consistent(setting, moved) {
  const next = { ...setting, ...moved };
  if (next.noise === "gaussian" && next.delta === 0) {
    next.delta = 1e-6;
    say("Gaussian noise has a δ: it is 1e-6 now.");
  }
  if (next.noise === "any") next.delta = 0;
  return next;
}
