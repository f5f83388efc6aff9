"""What temporaldp, the paper's authors' program and other libraries of differential privacy say about one and the same release.

Writes benchmarks/recorded/comparison.md.  Run with:  make bench NAME=compare  (TPL=folder of the authors' program, run by GNU Octave, if both are there)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import numpy as np
from measure import record, table
from quilt import quilt_leakage, ratio_leakage

import temporaldp as tdp
from temporaldp.base.display import number

EPSILON, STEPS, DELTA, GAUSSIAN_SCALE = 0.1, 47, 1e-6, 10.0
SCALE = tdp.counts.HISTOGRAM_SENSITIVITY / EPSILON
"""Of the Laplace noise: replacing one person's state moves two counts by one each."""

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Answer:
    """What one tool says."""

    tool: str
    asked: str
    says: str
    about: str
    unseen: str
    brief: str | None = None
    """For the short table; None for what is left out there."""


def ours(adversary: tdp.Adversary) -> list[Answer]:
    exact = tdp.temporal_leakage(adversary, [EPSILON] * STEPS)
    paper = tdp.temporal_leakage(adversary, [EPSILON] * STEPS, accounting=tdp.PaperBound())
    supremum = tdp.leakage_supremum(adversary, EPSILON).temporal
    delta = tdp.temporal_leakage(
        adversary, [tdp.DiscreteLaplaceNoise(SCALE)] * STEPS, accounting=tdp.ApproximateDP(DELTA)
    )
    assumed = "an adversary who knows more than this correlation"
    return [
        Answer(
            "temporaldp", "`temporal_leakage(adversary, [0.1] * 47)`", number(exact.worst, up=True),
            f"temporal leakage at its worst step, exact for noise of any kind; {number(supremum, up=True)} over an infinite horizon", assumed,
            brief="one state, all steps, against an adversary who knows the correlation: exact, for noise of any kind",
        ),
        Answer(
            "temporaldp",
            "`temporal_leakage(adversary, [DiscreteLaplaceNoise(20)] * 47, accounting=ApproximateDP(1e-6))`", number(delta.worst, up=True),
            "temporal leakage at delta = 1e-6, an upper bound", assumed,
        ),
        Answer(
            "the paper's bound", "`temporal_leakage(adversary, [0.1] * 47, accounting=PaperBound())`", number(paper.worst, up=True),
            "an upper bound of temporal leakage",
            f"{assumed}; that the worst that each step passes on cannot come together here",
            brief=BOUND,
        ),
        authors(adversary),
        *bounds(adversary),
    ]  # fmt: skip


BOUND = "the same question: an upper bound"

OCTAVE = """
addpath("{program}", "{program}/tools");
function pairs = VChooseK(values, k) pairs = nchoosek(values, k); end
function leaked = along(file, steps, epsilon)
  matrix = dlmread(file); leaked = zeros(1, steps); passed = 0;
  for t = 1:steps
    leaked(t) = passed + epsilon; passed = calcPLbyThm(matrix, leaked(t));
  end
end
backward = along("{folder}/backward.csv", {steps}, {epsilon});
forward = fliplr(along("{folder}/forward.csv", {steps}, {epsilon}));
printf("%.15g\\n", max(backward + forward - {epsilon}));
"""


def authors(adversary: tdp.Adversary) -> Answer:
    """The MATLAB program of the paper's authors, if somebody says where it is and GNU Octave can run it."""
    program = os.environ.get("TPL")
    tool, asked = "the paper's authors' program", "`calcPLbyThm` at every step (github.com/yangcao888/TPL)"
    about, unseen = "the paper's bound, by the program of those who proposed it", "the same"
    octave = which("octave-cli")
    if not (program and octave):
        return Answer(tool, asked, "not run", f"{about}: needs the program and GNU Octave", unseen)
    with tempfile.TemporaryDirectory() as folder:
        for side in ("backward", "forward"):
            np.savetxt(Path(folder) / f"{side}.csv", getattr(adversary, side).dense(), fmt="%.17g", delimiter=",")
        code = OCTAVE.format(program=Path(program).resolve(), folder=folder, steps=STEPS, epsilon=EPSILON)
        call = [octave, "--quiet", "--no-init-file", "--eval", code]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise SystemExit(f"the authors' program gave no number: {done.stderr}")
    return Answer(tool, asked, number(float(done.stdout), up=True), about, unseen, brief=BOUND)


def bounds(adversary: tdp.Adversary) -> list[Answer]:
    """Bounds of correlated data that this repository computes, by their papers."""
    quilts, ratio = quilt_leakage(adversary, STEPS, EPSILON), ratio_leakage(adversary, EPSILON)
    assumed = "an adversary who knows more than this correlation; the shape of what leaks"
    return [
        Answer(
            "Markov quilts", "MQMExact (Song, Wang and Chaudhuri, SIGMOD 2017)", number(quilts, up=True),
            "an upper bound of temporal leakage, by the releases nearby and the influence of the rest", assumed, brief=BOUND,
        ),
        Answer(
            "Bayesian differential privacy", "epsilon + 4 log(max P / min P)", "none" if np.isinf(ratio) else number(ratio, up=True),
            "an upper bound of temporal leakage, by the largest ratio of two entries of the matrix", assumed, brief=BOUND,
        ),
    ]  # fmt: skip


STEP, WHOLE = "one step by itself: event level", "all states of a person together: user level"
NO_TIME = "that a person's state at one step tells about those at others"
NO_SHARE = "how little of it any single state can give away; it is at most this"


def opendp() -> list[Answer]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    counts = tdp.load_sample().histogram()[0].tolist()
    step = dp.Context.compositor(
        data=counts, privacy_unit=dp.unit_of(l1=tdp.counts.HISTOGRAM_SENSITIVITY), privacy_loss=dp.loss_of(epsilon=EPSILON),
        split_evenly_over=1,
    )  # fmt: skip
    query = step.query().laplace()
    assert abs(query.param() - SCALE) < 1e-9, "the same noise"
    query.release()
    spent = float(step.current_privacy_loss()[0])
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    together = dp.c.make_composition([dp.m.make_laplace(*space, scale=SCALE)] * STEPS)
    return [
        Answer(
            "OpenDP", "`Context.compositor(privacy_unit=unit_of(l1=2), ...)`, one histogram", f"{spent:.4g}",
            "event level", NO_TIME, brief=STEP,
        ),
        Answer(
            "OpenDP", "`make_composition([laplace] * 47).map(2)`", f"{together.map(2):.4g}",
            "user level", NO_SHARE, brief=WHOLE,
        ),
    ]  # fmt: skip


def dp_accounting() -> list[Answer]:
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.privacy_accountant import NeighboringRelation

    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(dp_event.LaplaceDpEvent(SCALE), 2 * STEPS)
    found = accountant.get_epsilon(DELTA)
    return [
        Answer(
            "dp-accounting", "`PLDAccountant.compose(LaplaceDpEvent(20), 94)`: two counts change per step", f"{found:.4g}",
            f"user level at delta = {DELTA:g}, by privacy loss distributions", NO_SHARE,
            brief=f"all states together, at delta = {DELTA:g}",
        )
    ]  # fmt: skip


def diffprivlib() -> list[Answer]:
    import diffprivlib as dpl

    accountant = dpl.BudgetAccountant()
    stages = np.arange(5)
    for _ in range(STEPS):
        dpl.tools.histogram(stages, epsilon=EPSILON / 2, bins=5, range=(0, 4), accountant=accountant)
    total = float(accountant.total()[0])
    return [
        Answer(
            "diffprivlib", "`BudgetAccountant`, 47 times `tools.histogram(..., epsilon=0.05)`", f"{total:.4g}",
            "user level where a person's rows are added or removed; twice that, 4.7, where they are replaced", NO_SHARE,
            brief="all states together, of a person who is added or removed rather than replaced",
        )
    ]  # fmt: skip


def tumult() -> list[Answer]:
    """From an environment of its own: it needs older releases of Spark, pandas and NumPy than we do."""
    python = os.environ.get("TUMULT_PYTHON", "")
    if not which(python):
        answers = ("not run", "not run")
    else:
        with tempfile.TemporaryDirectory() as folder:
            command = [str(Path(python).absolute()), str(HERE / "compare_tumult.py"), str(EPSILON), str(STEPS)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode:
            raise SystemExit(f"Tumult Analytics failed: {done.stderr[-2000:]}")
        answers = tuple(f"{spent:.4g}" for spent in json.loads(done.stdout.splitlines()[-1]))
    tool, brief = "Tumult Analytics", "not run" not in answers
    return [
        Answer(
            tool, "a session with `AddMaxRows(2)` and `PureDPBudget(0.1)`, one histogram", answers[0],
            "event level", NO_TIME, brief=STEP if brief else None,
        ),
        Answer(
            tool, "a session with `AddMaxRows(94)` and `PureDPBudget(4.7)`, all histograms", answers[1],
            "user level", NO_SHARE, brief=WHOLE if brief else None,
        ),
    ]  # fmt: skip


def at_a_delta(adversary: tdp.Adversary) -> str:
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.privacy_accountant import NeighboringRelation

    noise = tdp.DiscreteGaussianNoise(GAUSSIAN_SCALE)
    found = tdp.temporal_leakage(adversary, [noise] * STEPS, accounting=tdp.ApproximateDP(DELTA))
    event = dp_event.GaussianDpEvent(GAUSSIAN_SCALE / np.sqrt(2.0))

    def composed(steps: int) -> float:
        accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
        accountant.compose(event, steps)
        return float(accountant.get_epsilon(DELTA))

    rows = [
        [
            "temporaldp, temporal leakage",
            f"{found.worst:.4g}",
            "one state, against an adversary who knows the correlation; an upper bound",
        ],
        ["dp-accounting, one step", f"{composed(1):.4g}", "event level"],
        ["dp-accounting, all steps", f"{composed(STEPS):.4g}", "user level"],
    ]
    return "\n## Gaussian noise\n\n" + table(["", "says", "about"], rows, numbers=1) + "\n"


def document() -> str:
    """The page."""
    traces = tdp.load_sample()
    adversary = next(tdp.estimate_adversaries(traces))
    tools: list[Callable[[], list[Answer]]] = [opendp, dp_accounting, diffprivlib, tumult]
    answers = ours(adversary) + [answer for tool in tools for answer in tool()]
    brief: dict[tuple[str, str], list[str]] = {}
    for answer in answers:
        if answer.brief:
            brief.setdefault((answer.brief, answer.says), []).append(answer.tool)
    short = [[", ".join(tools), says, about] for (about, says), tools in brief.items()]
    full = [[answer.tool, answer.asked, answer.says, answer.about, answer.unseen] for answer in answers]
    return (
        "## In short\n\n"
        + table(["tool", "says", "about"], short, numbers=1)
        + "\n\n## Every answer\n\n"
        + table(["tool", "what was run", "says", "what it means", "what it does not see"], full, numbers=0)
        + "\n"
        + at_a_delta(adversary)
    )


if __name__ == "__main__":
    made = document()
    record(Path(sys.argv[1]), made, "make bench NAME=compare") if len(sys.argv) > 1 else print(made)
