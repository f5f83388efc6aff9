// Python code and shell commands that compute the same numbers.

import { atDelta } from "./setting.js";

const MATRICES = ["backward", "forward"];

/** A text as Python and JSON write it. */
const quoted = (text) => JSON.stringify(text);

function matrixLines(known) {
  const written = (rows) => rows.map((row) => `    [${row.join(", ")}],`).join("\n");
  const lines = [`names = [${known.names.map(quoted).join(", ")}]`];
  const alike = JSON.stringify(known.backward) === JSON.stringify(known.forward);
  for (const name of MATRICES) {
    if (!known[name]) lines.push(`${name} = None`);
    else if (alike && name === "forward") lines.push("forward = backward");
    else lines.push(`${name} = tdp.TransitionMatrix([\n${written(known[name])}\n], names)`);
  }
  return [...lines, "adversary = tdp.Adversary(backward=backward, forward=forward)"];
}

const SIDES = { past: "backward", future: "forward" };

/** Lines of Python whose `series`, `paper` and `plan` are what the page shows. `tight`: which bound it shows at a delta. */
export function python(setting, known, tight) {
  const { source, epsilon, horizon, alpha, noise, scale, delta, knows } = setting;
  const sample = ["adversary = tdp.estimate_adversary(tdp.load_sample())"];
  if (knows !== "both") sample.push(`adversary = tdp.Adversary(${SIDES[knows]}=adversary.${SIDES[knows]})`);
  const kind = noise === "gaussian" ? "DiscreteGaussianNoise" : "DiscreteLaplaceNoise";
  const width = noise === "gaussian" ? `${scale}.0`.replace(/(\.\d+)\.0$/, "$1") : `2.0 / ${epsilon}`;
  const computed = atDelta(setting)
    ? [
        `noisy = tdp.${kind}(scale=${width})`,
        `accounting = tdp.ApproximateDP(delta=${delta}${tight ? "" : ", pairwise=False"})`,
        `series = tdp.temporal_leakage(adversary, [noisy] * ${horizon}, accounting=accounting)`,
        `one_curve = tdp.ApproximateDP(delta=${delta}, pairwise=False)`,
        `plan = tdp.plan_noise(adversary, ${alpha}, ${horizon}, noise=${quoted(noise)}, accounting=one_curve)`,
      ]
    : [
        `series = tdp.temporal_leakage(adversary, [${epsilon}] * ${horizon})`,
        `paper = tdp.temporal_leakage(adversary, [${epsilon}] * ${horizon}, accounting=tdp.PaperBound())`,
        `plan = tdp.plan_budget(adversary, ${alpha}, ${horizon})`,
      ];
  const shown = "print(series.worst, series.worst_time + 1)  # nats, and the step (from 1) where it is reached";
  const lines = ["import temporaldp as tdp", "", ...(source === "sample" ? sample : matrixLines(known)), "", ...computed, shown];
  return `${lines.join("\n")}\n`;
}

/** Text that a spreadsheet would run as a formula gets an apostrophe before it, as in the files of the command line. */
const guarded = (text) => (/^'*[=+\-@]/.test(text) && !/^[+-]?[0-9]+([.][0-9]+)?$/.test(text) ? `'${text}` : text);

const cell = (text) => (/[",\n\r]/.test(text) || text.trim() !== text ? `"${text.replaceAll('"', '""')}"` : text);

/** A matrix as a file that the command line reads. */
export function matrixFile(rows, names) {
  const lines = [["", ...names], ...names.map((name, k) => [name, ...rows[k]])];
  return `${lines.map((line) => line.map((one) => cell(guarded(String(one)))).join(",")).join("\n")}\n`;
}

/**
 * Shell commands that print what the page shows: the leakage, and the least noise that satisfies alpha. They read the matrices
 * from files that the page saves: the name of a state, which can come from a link, must not become part of a command.
 */
export function shell(setting, known) {
  const { epsilon, horizon, alpha, noise, scale, delta } = setting;
  const given = MATRICES.filter((name) => known[name]);
  const save = `# Save ${given.map((name) => `${name}.csv`).join(" and ")} here first, with the buttons of the page.`;
  const same = `${given.map((name) => `--set correlation.${name}=${name}.csv`).join(" ")} --horizon ${horizon}`;
  const release = `--noise ${noise} --scale ${noise === "gaussian" ? scale : 2 / epsilon} --delta ${delta}`;
  const [audit, plan] = atDelta(setting) ? [release, ` --delta ${delta} --noise ${noise}`] : [`--epsilon ${epsilon}`, ""];
  return `${save}\ntemporaldp audit ${same} ${audit} --json\ntemporaldp plan ${same} --alpha ${alpha}${plan}\n`;
}
