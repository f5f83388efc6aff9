// A transition matrix to edit by hand: a table of numbers, with what is wrong said beside it.

import { complaint } from "./chain.js";
import { fill, h } from "./dom.js";
import { MOST_VALUES } from "./setting.js";

/** `changed` is called with {names, forward} after every edit. */
export class MatrixEditor {
  constructor(place, changed) {
    this.changed = changed;
    this.table = h("div", { class: "matrix-scroll", tabindex: "0", role: "group", "aria-label": "Transition matrix" });
    this.problem = h("p", { class: "problem", role: "alert" });
    this.add = h("button", { type: "button", onclick: () => this.grow(1) }, "Add a value");
    this.remove = h("button", { type: "button", onclick: () => this.grow(-1) }, "Remove the last");
    this.rescale = h("button", { type: "button", onclick: () => this.normalise() }, "Rescale rows to sum 1");
    place.append(
      h(
        "p",
        { class: "hint" },
        "Row: the value now. Column: the value one step later. What is known of the past follows by Bayes' rule.",
      ),
      this.table,
      this.problem,
      h("div", { class: "buttons" }, this.add, this.remove, this.rescale),
    );
  }

  /** Show a matrix, unless it is the one that is being edited. */
  show({ names, forward }) {
    if (this.forward === forward && this.names === names) return;
    Object.assign(this, { names, forward });
    const head = h(
      "tr",
      {},
      h("td"),
      names.map((_, k) => h("th", { scope: "col" }, this.nameField(k))),
    );
    const rows = names.map((_, i) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, names[i]),
        names.map((_, j) => h("td", {}, this.entryField(i, j))),
      ),
    );
    fill(this.table, h("table", { class: "matrix" }, h("thead", {}, head), h("tbody", {}, rows)));
    this.add.disabled = names.length >= MOST_VALUES;
    this.remove.disabled = names.length <= 2;
    this.check();
  }

  nameField(k) {
    return h("input", {
      value: this.names[k],
      size: 4,
      "aria-label": `name of value ${k + 1}`,
      onchange: (event) => {
        const name = event.target.value.trim();
        if (!name || this.names.some((other, at) => at !== k && other === name)) {
          event.target.value = this.names[k];
          return;
        }
        this.told(
          this.names.map((old, at) => (at === k ? name : old)),
          this.forward,
          true,
        );
      },
    });
  }

  entryField(i, j) {
    return h("input", {
      value: this.forward[i][j],
      size: 5,
      inputmode: "decimal",
      "aria-label": `probability of ${this.names[j]} one step after ${this.names[i]}`,
      oninput: (event) => {
        const entry = event.target.value.trim() === "" ? NaN : Number(event.target.value.replace(",", "."));
        const rows = this.forward.map((row, at) => (at === i ? row.map((old, k) => (k === j ? entry : old)) : row));
        this.told(this.names, rows, false);
      },
    });
  }

  grow(by) {
    const n = this.names.length + by;
    let number = n;
    while (this.names.includes(`v${number}`)) number++;
    const names = by > 0 ? [...this.names, `v${number}`] : this.names.slice(0, n);
    const kept = names.map((_, i) => names.map((_, j) => this.forward[i]?.[j] ?? (i === j ? 1 : 0)));
    this.told(names, kept.map(rescaled), true);
  }

  normalise() {
    this.told(this.names, this.forward.map(rescaled), true);
  }

  told(names, forward, anew) {
    if (anew) this.forward = null;
    else Object.assign(this, { names, forward });
    this.changed({ names, forward });
    this.check();
  }

  check() {
    this.problem.textContent = complaint(this.forward, this.names);
  }
}

/** A row divided by its sum; where that is nothing, all values alike. */
function rescaled(row) {
  const clean = row.map((entry) => (entry > 0 && Number.isFinite(entry) ? entry : 0));
  const sum = clean.reduce((a, b) => a + b, 0);
  return clean.map((entry) => (sum > 0 ? entry / sum : 1 / row.length));
}
