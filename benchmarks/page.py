"""How soon the page answers a movement: one slider moved again and again in Chromium, from the event to the drawn answer.

Writes the table of docs/how-to/page.md between its marks. Usage: python benchmarks/page.py docs/how-to/page.md
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

import numpy as np

from browsing import Visit, browsing

BEGIN, END = "<!-- measured by `make bench NAME=page` -->\n", "<!-- end -->\n"
MOVES = 30

MOVE = """async ([id, values]) => {
    const field = document.getElementById(id);
    const { dataset } = document.documentElement;
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    const taken = [];
    for (const value of values) {
        await new Promise((done) => setTimeout(done, 100));
        const begun = performance.now();
        field.value = value;
        field.dispatchEvent(new Event("input", { bubbles: true }));
        do await frame(); while (dataset.drawn !== dataset.moves);
        taken.push(performance.now() - begun);
    }
    return taken;
}"""
"""The next movement comes before the page asks for plans, as in a drag."""


def sticky(n, stays):
    return f"#from=sticky&values={n}&stays={stays}"


def of_matrix(n, concentration, stays=0.0):
    """A link to a random matrix, with four digits in each entry."""
    rng = np.random.default_rng(7)
    drawn = stays * np.eye(n) + (1.0 - stays) * rng.dirichlet([concentration] * n, size=n)
    rows = drawn.round(4)
    rows[np.arange(n), rows.argmax(axis=1)] += 1.0 - rows.sum(axis=1)
    written = ";".join(",".join(f"{entry:.4f}" for entry in row) for row in rows)
    return f"#from=matrix&names={','.join(f's{k}' for k in range(n))}&forward={written}"


CASES = {
    "the sample, 5 states, 47 steps": "#horizon=47",
    "10 states that stay with 0.9, 100 steps": sticky(10, 0.9) + "&horizon=100",
    "10 states, rows of Dirichlet(1), 100 steps": of_matrix(10, 1.0) + "&horizon=100",
    "10 states, rows of Dirichlet(0.3), 100 steps": of_matrix(10, 0.3) + "&horizon=100",
    "10 states, 0.9 on the diagonal and Dirichlet(1), 100 steps": of_matrix(10, 1.0, 0.9) + "&horizon=100",
    "20 states, rows of Dirichlet(1), 100 steps": of_matrix(20, 1.0) + "&horizon=100",
}


def main(target: Path) -> None:
    lines = ["| moved: ε a step | median, ms | 9 of 10 within, ms |", "|---|---|---|"]
    with browsing() as (browser, address):
        for name, fragment in CASES.items():
            visit = Visit(browser, address).open(fragment + "&epsilon=0.1")
            values = [f"{0.05 * 1.05**k:.4f}" for k in range(MOVES)]
            visit.page.evaluate(MOVE, ["control-epsilon", [f"{0.2 + k / 1000:.3f}" for k in range(5)]])
            visit.page.wait_for_timeout(3_000)
            taken = visit.page.evaluate(MOVE, ["control-epsilon", values])
            lines.append(f"| {name} | {statistics.median(taken):.0f} | {statistics.quantiles(taken, n=10)[-1]:.0f} |")
            print(lines[-1])
            visit.context.close()
    busy = f"Load average over the last minute: {os.getloadavg()[0]:.1f}, on {os.cpu_count()} processors."
    text = target.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    target.write_text(before + BEGIN + "\n" + "\n".join([*lines, "", busy]) + "\n\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
