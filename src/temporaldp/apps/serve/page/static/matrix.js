// A transition matrix to edit: a table of numbers. The server checks it.

import { fill, h } from "./dom.js";
import { MOST_VALUES } from "./setting.js";

/** `changed` is called with {names, forward} after every edit. */
export class MatrixEditor {
  constructor(place, changed) {
    this.changed = changed;
    this.table = h("div", { class: "matrix-scroll", tabindex: "0", role: "group", "aria-label": "Transition matrix" });
    this.problem = h("p", { class: "problem", role: "alert" });
    this.more = h("p", { class: "hint" }, "The table scrolls to the right.");
    const button = (words, onclick) => h("button", { type: "button", onclick }, words);
    this.add = button("Add a state", () => this.grow(1));
    this.remove = button("Remove the last", () => this.grow(-1));
    const rescale = button("Rescale rows to sum 1", () => this.edited(this.names, this.forward.map(rescaled)));
    place.append(
      this.table,
      this.more,
      this.problem,
      h("div", { class: "buttons" }, this.add, this.remove, rescale),
    );
  }

  /** Show a matrix, unless it is the one that is being edited, and what is wrong with it. */
  show({ names, forward }, problem) {
    this.problem.textContent = problem;
    if (this.forward === forward && this.names === names) return;
    Object.assign(this, { names, forward });
    const head = names.map((_, k) => h("th", { scope: "col" }, this.nameField(k)));
    const rows = names.map((name, i) =>
      h("tr", {}, h("th", { scope: "row" }, name), names.map((_, j) => h("td", {}, this.entryField(i, j)))),
    );
    const table = h("table", { class: "matrix" }, h("thead", {}, h("tr", {}, h("td"), head)), h("tbody", {}, rows));
    fill(this.table, table);
    this.more.hidden = names.length <= 6;
    this.add.disabled = names.length >= MOST_VALUES;
    this.remove.disabled = names.length <= 2;
  }

  nameField(k) {
    const rename = (event) => {
      const name = event.target.value.trim();
      if (!name || this.names.some((other, at) => at !== k && other === name)) event.target.value = this.names[k];
      else this.edited(this.names.with(k, name), this.forward);
    };
    return h("input", { value: this.names[k], size: 4, "aria-label": `name of state ${k + 1}`, onchange: rename });
  }

  entryField(i, j) {
    const enter = (event) => {
      const typed = event.target.value.trim();
      const entry = typed === "" ? NaN : Number(typed.replace(",", "."));
      this.forward = this.forward.with(i, this.forward[i].with(j, entry));
      this.changed({ names: this.names, forward: this.forward });
    };
    const label = `probability of ${this.names[j]} one step after ${this.names[i]}`;
    return h("input", { value: this.forward[i][j], size: 5, inputmode: "decimal", "aria-label": label, oninput: enter });
  }

  grow(by) {
    const n = this.names.length + by;
    let number = n;
    while (this.names.includes(`v${number}`)) number++;
    const names = by > 0 ? [...this.names, `v${number}`] : this.names.slice(0, n);
    const grown = names.map((_, i) => names.map((_, j) => this.forward[i]?.[j] ?? (i === j ? 1 : 0)));
    this.edited(names, grown.map(rescaled));
  }

  edited(names, forward) {
    this.forward = null;
    this.changed({ names, forward });
  }
}

/** A row divided by its sum; equal probabilities where that is 0. */
function rescaled(row) {
  const clean = row.map((entry) => (entry > 0 && Number.isFinite(entry) ? entry : 0));
  const sum = clean.reduce((a, b) => a + b, 0);
  return clean.map((entry) => (sum > 0 ? entry / sum : 1 / row.length));
}
