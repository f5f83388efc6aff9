"""Pictures of README.md, docs/topics and docs/measured/. Usage: python benchmarks/topic_pictures.py docs/pictures"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import temporaldp as tdp
from temporaldp.publish.report.figures import leakage_figure, release_figure
from temporaldp.publish.report.style import BLUE, DARK, GREY, ORANGE, name_step, new_figure, save_figure, styled

PHONE = 5.2
"""Width in inches: labels of 11 points are at least 11 pixels high on a screen of 390."""

STAYS = (0.5, 0.8, 0.9, 0.95, 0.99)
COLOURS = ("#8c8c8c", "#4d9221", BLUE, "#762a83", ORANGE)


@styled
def steps():
    """Hidden states of a person and their releases, with the leakage about one of the states."""
    figure, axes = new_figure(2.9)
    axes.axis("off")
    axes.set_xlim(-1.2, 5.2)
    axes.set_ylim(-1.0, 3.35)
    arrow = {"arrowstyle": "-|>", "color": GREY, "linewidth": 1.2, "mutation_scale": 11}
    for t in range(5):
        asked = t == 2
        axes.text(t, 2.0, f"state\nat {t}", ha="center", va="center", fontsize=9, bbox={
            "boxstyle": "circle,pad=0.35", "facecolor": "#fff3e0" if asked else "white",
            "edgecolor": ORANGE if asked else DARK, "linewidth": 2 if asked else 1})  # fmt: skip
        box = {"boxstyle": "round,pad=0.4", "facecolor": "0.95", "edgecolor": GREY}
        axes.text(t, 0.0, f"release {t}", ha="center", va="center", bbox=box)
        axes.annotate("", (t, 0.38), (t, 1.42), arrowprops=arrow)
        axes.text(t + 0.06, 0.9, "ε", fontsize=11, color=GREY)
        if t < 4:
            axes.annotate("", (t + 0.66, 2.0), (t + 0.34, 2.0), arrowprops=arrow)
    for x, colour, words in ((0.5, BLUE, "past releases\nadd BPL − ε"), (3.5, BLUE, "later releases\nadd FPL − ε")):
        axes.text(x, 3.05, words, ha="center", va="center", color=colour, fontsize=9)
        bend = -0.45 if x < 2 else 0.45
        axes.annotate("", (2, 2.6), (x + (0.55 if x < 2 else -0.55), 3.05), arrowprops={
            "arrowstyle": "-|>", "color": colour, "connectionstyle": f"arc3,rad={bend / 2}"})  # fmt: skip
    axes.text(
        2, -0.75, "all releases together, about the state at 2: TPL is at most BPL + FPL − ε", ha="center", fontsize=9
    )
    axes.text(-1.15, 2.0, "hidden", va="center", color=GREY, fontsize=9)
    axes.text(-1.15, 0.0, "published", va="center", color=GREY, fontsize=9)
    return figure


@styled
def stickiness():
    """Leakage about each of 60 steps with epsilon = 0.1, for two states that persist with a probability."""
    figure, axes = new_figure(3.4)
    for stays, colour in zip(STAYS, COLOURS, strict=True):
        walk = tdp.TransitionMatrix([[stays, 1 - stays], [1 - stays, stays]])
        series = tdp.temporal_leakage(tdp.Adversary(walk, walk), [0.1] * 60)
        axes.plot(np.arange(1, 61), series.temporal, color=colour, linewidth=2)
        axes.text(31, series.temporal[30] + 0.06, f"stays with {stays:g}", color=colour, fontsize=9, ha="center")
    axes.set_xlabel("step")
    axes.set_ylabel("temporal leakage (nats)")
    axes.set_ylim(0, 4.4)
    return figure


def square_root(n_steps, noise):
    """The Toeplitz matrix whose square is the matrix of running counts (Fichtenberger, Henzinger and Upadhyay, 2023)."""
    k = np.arange(1, n_steps)
    return tdp.MatrixMechanism.banded(n_steps, np.cumprod([1.0, *((2 * k - 1) / (2 * k))]), noise)


@styled
def correlated_noise():
    """Leakage of three mechanisms with one event-level guarantee: upper bounds."""
    figure, axes = new_figure(3.6)
    delta, T = 1e-2, 10
    mechanisms = {
        "square root": (square_root, ORANGE),
        "binary tree": (tdp.MatrixMechanism.tree, DARK),
        "independent noise": (tdp.MatrixMechanism.independent, BLUE),
    }
    noise = tdp.GaussianNoise(1.0, sensitivity=2.0**0.5)
    for k, (name, (kind, colour)) in enumerate(mechanisms.items()):
        mechanism = kind(T, noise).calibrated(1.0, delta=delta)
        bounds = []
        for stays in STAYS:
            walk = tdp.TransitionMatrix([[stays, 1 - stays], [1 - stays, stays]])
            adversary, accounting = tdp.Adversary(walk, walk), tdp.ApproximateDP(delta)
            series = tdp.temporal_leakage(adversary, mechanism, accounting=accounting)
            bounds.append(series.worst)
        axes.plot(STAYS, bounds, color=colour, linewidth=2, marker="o", markersize=4)
        axes.annotate(
            name,
            (STAYS[-1], bounds[-1]),
            (10, (8, -8, 0)[k]),
            textcoords="offset points",
            va="center",
            color=colour,
        )
    axes.axhline(1.0, color=GREY, linestyle=":", linewidth=2)
    axes.annotate("event level", (STAYS[-1], 1.0), (10, 6), textcoords="offset points", color=GREY)
    axes.text(STAYS[0], 8.5, "upper bounds for delta = 0.01", color=GREY)
    axes.set_xlim(STAYS[0] - 0.02, 1.15)
    axes.set_xticks([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    axes.set_ylim(0)
    axes.set_xlabel("probability of staying in the state")
    axes.set_ylabel("temporal leakage (nats)")
    return figure


@styled
def belief(adversary: tdp.Adversary, spent: list[float], worst: int) -> Any:
    """What a suspicion of 50 % about one person's stage at one step may become, while the tables of a night come out."""
    figure, axes = new_figure(3.1, width=PHONE)
    n_steps, known = len(spent), []
    for published in range(n_steps + 1):
        epsilons = spent[:published] + [0.0] * (n_steps - published)
        known.append(float(tdp.temporal_leakage(adversary, epsilons).temporal[worst]) if published else 0.0)
    share = 100.0 / (1.0 + np.exp(-np.array(known)))
    axes.step(np.arange(n_steps + 1), share, where="post", color=BLUE, linewidth=2.5)
    axes.axvline(worst + 1, color=GREY, linestyle=":", linewidth=1.5)
    axes.axhline(share[0], color=GREY, linewidth=1)
    alone = 100.0 / (1.0 + np.exp(-spent[0]))
    axes.axhline(alone, color=ORANGE, linestyle="--", linewidth=1.5)
    axes.text(n_steps, alone + 0.3, f"one table alone: {alone:.1f} %", color=ORANGE, fontsize=11, ha="right")
    axes.text(n_steps, share[-1] + 0.3, f"all {n_steps}: {share[-1]:.1f} %", color=BLUE, fontsize=11, ha="right")
    axes.text(worst - 0.8, 67.0, f"asked about: step {worst + 1}", color="0.35", fontsize=11, ha="right")
    axes.set(xlim=(0, n_steps), ylim=(50.0, 68.0))
    axes.set_xlabel("tables published so far, one every five minutes", fontsize=11)
    axes.set_ylabel("suspicion becomes at most (%)", fontsize=11)
    axes.tick_params(labelsize=11)
    return figure


@styled
def comparison(adversary: tdp.Adversary, horizon: int) -> Any:
    """Mean noise on a count by four plans for the same level, as bars."""
    figure, axes = new_figure(2.2, width=PHONE)
    plans = tdp.compare_plans(adversary, alpha=1.0, horizon=horizon).plans
    paper = tdp.plan_budget(adversary, 1.0, horizon, method="quantified", accounting=tdp.PaperBound())
    named = {
        "even split": plans["uniform"],
        "the paper's planner": paper,
        "constant, exact": plans["upper_bound"],
        "optimal, exact": plans["optimal"],
    }
    noise = [plan.mean_absolute_noise for plan in named.values()]
    bars = axes.barh(list(named), noise, 0.65, color=[GREY, GREY, BLUE, BLUE])
    axes.bar_label(bars, [f"{value:.1f} people" for value in noise], padding=4, fontsize=11)
    axes.invert_yaxis()
    axes.margins(x=0.28)
    axes.tick_params(labelsize=11)
    axes.set_xlabel("mean noise on a count", fontsize=11)
    return figure


def sample_figures() -> dict[str, Any]:
    """Audit and plans of the whole sample, whose numbers README.md and the documents give."""
    sample = tdp.load_sample()
    times = [str(step + 1) for step in range(sample.n_times)]
    adversary = tdp.estimate_adversary(sample)
    spent = [0.1] * sample.n_times
    paper = tdp.temporal_leakage(adversary, spent, accounting=tdp.PaperBound())
    series = tdp.temporal_leakage(adversary, spent)
    figures = {"audit.svg": leakage_figure(series, times, paper=paper)}
    return figures | {"smoothed.svg": smoothed_figure(sample, times)}


def smoothed_figure(sample: tdp.Traces, times: list[str]) -> Any:
    """Counts of 76 people of the sample as released and smoothed; the other 75 are public history."""
    stages = ("wake", "REM", "N1 light", "N2", "N3 deep")
    people = tdp.Trajectories(sample.codes, states=stages, times=times)
    history, protected = people[:75], people[75:]
    adversary = tdp.estimate_adversary(history, prior=0.2)
    plan = tdp.plan_budget(adversary, alpha=1.0, horizon=people.n_times)
    released = tdp.release_histograms(protected, plan)
    known = tdp.PublicCorrelation.from_history(history, same_start=True)
    smoothed = tdp.smooth(released, known, total=protected.n_users)
    truth = protected.histogram()
    for name, found in (("as released", released), ("smoothed", smoothed)):
        print(f"mean error of a count, {name}: {np.abs(found.counts - truth).mean():.3g} people")
    return release_figure(smoothed.of(released), truth)


def main(folder: Path) -> None:
    of_sample = sample_figures()
    for figure in of_sample.values():
        name_step(figure, "5 min")
    sample = tdp.load_sample()
    adversary, spent = tdp.estimate_adversary(sample), [0.1] * sample.n_times
    worst = tdp.temporal_leakage(adversary, spent).worst_time
    others = {
        "belief.svg": belief(adversary, spent, worst),
        "comparison.svg": comparison(adversary, sample.n_times),
    }
    others |= {"steps.svg": steps(), "stickiness.svg": stickiness(), "correlated-noise.svg": correlated_noise()}
    for name, figure in (others | of_sample).items():
        save_figure(figure, folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
