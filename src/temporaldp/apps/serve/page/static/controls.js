// The form: the correlation, the release and the level.

import { fill, h, say } from "./dom.js";
import { MatrixEditor } from "./matrix.js";
import { upload } from "./server.js";
import { DEFAULT, DELTAS, LIMITS } from "./setting.js";

/** Positions of a slider; it is logarithmic where a quantity spans powers of ten. */
const POSITIONS = 1000;

const three = (value) => Number(value.toPrecision(3));

class Slider {
  constructor(place, { name, label, unit, digits = three, log = true, most }, changed) {
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
    const type = () => {
      const typed = this.number.valueAsNumber;
      const fits = typed >= min && typed <= max && (!whole || Number.isInteger(typed));
      this.number.setAttribute("aria-invalid", String(!fits));
      this.problem.textContent = fits ? "" : `Expected a${whole ? " whole" : ""} number from ${min} to ${max}.`;
      if (!fits) return;
      this.range.value = this.at(typed);
      changed(typed);
    };
    const slide = () => {
      const moved = value(Number(this.range.value));
      this.show(moved, false);
      changed(moved);
    };
    // arrow keys move a whole quantity by one, not by one position of the slider
    const press = (event) => {
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!whole || !by) return;
      event.preventDefault();
      const next = Math.min(max, Math.max(min, Math.round(this.number.valueAsNumber) + by));
      this.show(next);
      changed(next);
    };
    this.number = h("input", { id, type: "number", min, max, step: whole ? 1 : "any", oninput: type });
    const range = { type: "range", min: 0, max: POSITIONS, "aria-label": label };
    this.range = h("input", { ...range, oninput: slide, onkeydown: press });
    this.problem = h("span", { class: "problem", role: "alert" });
    const named = h("label", { for: id }, label, unit ? h("span", { class: "unit" }, ` (${unit})`) : "");
    place.append(named, this.number, this.range, this.problem);
    place.classList.add("slider");
  }

  show(value, moveRange = true) {
    if (document.activeElement !== this.number || this.number.valueAsNumber !== value) this.number.value = value;
    if (moveRange) this.range.value = this.at(value);
    this.range.setAttribute("aria-valuetext", String(value));
    this.problem.textContent = "";
    this.number.removeAttribute("aria-invalid");
  }
}

const SLIDERS = {
  stays: { label: "Probability of staying", log: false, digits: (p) => Number(p.toFixed(3)) },
  values: { label: "States", log: false },
  epsilon: { label: "ε of each step", unit: "nats" },
  scale: { label: "Scale of the noise", unit: "counts", most: 200 },
  horizon: { label: "Horizon", unit: "steps" },
  alpha: { label: "α, bound on the leakage about any step", unit: "nats", most: 10 },
};

/** The form. `changed` is called with the fields that were moved. */
export class Controls {
  constructor(place, sample, alone, changed) {
    Object.assign(this, { place, sample, changed });
    this.setting = DEFAULT;
    const at = (id) => place.querySelector(`#${id}`);
    this.sliders = Object.entries(SLIDERS).map(([name, options]) => [
      name,
      new Slider(at(`slider-${name}`), { name, ...options }, (value) => changed({ [name]: value })),
    ]);
    for (const radio of place.querySelectorAll("[name=source]"))
      radio.addEventListener("change", () => this.choose(radio.value));
    for (const name of ["knows", "noise", "delta"]) {
      this[name] = at(name);
      const chosen = () => (name === "delta" ? Number(this.delta.value) : this[name].value);
      this[name].addEventListener("change", () => changed({ [name]: chosen() }));
    }
    DELTAS.filter(Boolean).forEach((delta) => this.delta.append(h("option", { value: delta }, delta.toExponential())));
    this.matrix = new MatrixEditor(at("matrix"), (edited) => changed({ ...edited, backward: null }));
    for (const name of ["kind", "file", "note", "problem", "columns"]) this[name] = at(`upload-${name}`);
    this.file.addEventListener("change", () => this.upload(this.file.files[0], {}));
    for (const group of alone ? place.querySelectorAll("fieldset") : []) group.disabled = true;
  }

  /** Read a file; `roles` are the columns that were chosen. */
  async upload(file, roles) {
    if (!file) return;
    fill(this.note, "Reading …");
    fill(this.problem);
    this.columns.hidden = true;
    const { found, problem } = await upload(file, this.kind.value, roles);
    this.file.value = "";
    const wrong = problem ?? found.problem ?? "";
    fill(this.problem, wrong);
    if (found?.columns) this.offer(file, found.columns);
    if (wrong) {
      fill(this.note);
      this.changed({}, "failed");
      return;
    }
    const { names, forward, backward, horizon, note } = found;
    fill(this.note, `Read: ${names.length} states${note ? `, ${note}` : ""}. “Matrix” shows them.`);
    this.changed({ source: "matrix", names, forward, backward, ...(horizon ? { horizon } : {}) }, "upload");
  }

  /** Let the columns of a file be chosen. */
  offer(file, columns) {
    const choices = ["user", "time", "state"].map((role) => {
      const options = columns.map((name) => h("option", { value: name, selected: name === role }, name));
      const select = h("select", { id: `column-${role}` }, h("option", { value: "" }, "choose a column"), options);
      return h("div", { class: "choice" }, h("label", { for: select.id }, `Column with the ${role}`), select);
    });
    const read = () => {
      const chosen = [...this.columns.querySelectorAll("select")].filter(({ value }) => value);
      this.upload(file, Object.fromEntries(chosen.map(({ id, value }) => [id.replace("column-", ""), value])));
    };
    fill(this.columns, choices, h("button", { type: "button", onclick: read }, "Read with these columns"));
    this.columns.hidden = false;
  }

  choose(kind) {
    if (kind === "upload") this.changed({}, "upload");
    else this.changed({ source: kind, ...(kind === "matrix" && !this.setting.names ? this.sample : {}) });
  }

  /** Show a setting, and what is wrong with its matrix; `uploading` keeps the upload in view. */
  show(setting, uploading, problem) {
    this.setting = setting;
    const kind = uploading ? "upload" : setting.source;
    for (const part of this.place.querySelectorAll("[data-source]")) part.hidden = part.dataset.source !== kind;
    this.place.querySelector(`#source-${kind}`).checked = true;
    if (setting.source === "matrix") this.matrix.show(setting, problem);
    for (const [name, slider] of this.sliders) slider.show(setting[name]);
    const options = [...this.delta.options];
    if (!options.some(({ value }) => Number(value) === setting.delta))
      this.delta.append(h("option", { value: setting.delta }, setting.delta.toExponential()));
    for (const name of ["knows", "noise", "delta"]) this[name].value = setting[name];
    const gaussian = setting.noise === "gaussian";
    options[0].disabled = gaussian;
    this.delta.disabled = setting.noise === "any";
    this.place.querySelector("#slider-epsilon").hidden = gaussian;
    this.place.querySelector("#slider-scale").hidden = !gaussian;
  }
}

/** A setting with `moved` fields: Gaussian noise needs a delta, and an epsilon on its own has none. */
export function consistent(setting, moved) {
  const next = { ...setting, ...moved };
  if (next.noise === "gaussian" && next.delta === 0) {
    next.delta = 1e-6;
    say("Gaussian noise needs a δ: it is now 1e-6.");
  }
  if (next.noise === "any") next.delta = 0;
  return next;
}
