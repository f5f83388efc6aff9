"""The report: what it says is true, nothing is loaded from outside, and nothing in the data can become markup."""

from __future__ import annotations

import dataclasses
import html
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from temporaldp import (
    Adversary,
    InputError,
    Trajectories,
    TransitionMatrix,
    estimate_adversaries,
    leakage_supremum,
    load_sample,
    plan_budget,
    random_correlation,
    release_histograms,
    temporal_leakage,
)
from temporaldp.report import Evidence, Provenance, render_report, words, write_report
from temporaldp.report.figures import budget_figure, leakage_figure, matrix_figure, release_figure
from temporaldp.report.style import save_figure


@pytest.fixture(scope="module")
def audited():
    sample = load_sample()
    (adversary,) = estimate_adversaries(sample)
    series = temporal_leakage(adversary, epsilons=np.full(47, 0.1))
    return Evidence(
        (adversary,), series, Provenance("history", 0.0, False, "past.csv"), sample.times,
        supremum=leakage_supremum(adversary, epsilon=0.1), n_users=151,
    )  # fmt: skip


@pytest.fixture(scope="module")
def released():
    sample = load_sample()
    (adversary,) = estimate_adversaries(sample, prior=1.0)
    plan = plan_budget(adversary, alpha=1.0, horizon=47)
    return Evidence(
        (adversary,), temporal_leakage(adversary, epsilons=plan.epsilons), Provenance("protected", 1.0, False, "t.csv"),
        sample.times, plan=plan, released=release_histograms(sample, plan), true_counts=sample.histogram(), n_users=151,
    )  # fmt: skip


def text_of(page):
    """The page's text as a reader sees it."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.split("<body>")[1])).split())


def test_the_page_of_an_audit_says_what_leaks(audited):
    page = text_of(render_report(audited))
    assert "promises 0.1 at each step can leak up to 1.034 nats about one step, 10.3 times as much" in page
    assert "differ in the value of one person at one step (replace one)" in page
    assert "at most a factor e^1.034" in page
    assert "4.7-differential privacy" in page
    assert "Learnt from other traces (past.csv)" in page
    assert "Warning" not in page
    assert "Internal" not in page


def test_the_page_of_a_release_warns_and_is_marked_internal(released):
    page = text_of(render_report(released))
    assert "The plan holds its level: at most 1 nats" in page
    assert "Internal. Do not publish this page. It shows the true counts" in page
    assert "It shows a correlation that was learnt from the protected traces" in page
    assert "The adversary of this report, though not the plan, was learnt from the protected traces" in page
    assert re.search(r"The largest leakage is at \d+ of 47 steps\.", page)
    assert "L1 sensitivity of 2" in page
    assert "A prior of 1 per cell was added" in page


def test_two_bounds_are_told_apart_and_explained(audited):
    assert words.two_bounds(audited) == []
    adversary = audited.worst_adversary
    tighter = temporal_leakage(adversary, epsilons=audited.leakage.epsilons, bound="pairwise")
    limit = leakage_supremum(adversary, epsilon=0.1, bound="pairwise")
    both = dataclasses.replace(audited, pairwise=tighter, pairwise_supremum=limit)
    first, second = words.two_bounds(both)
    assert "1.034 nats by the paper's recursion, 0.6962 pair by pair. Both are guarantees" in first
    i, j = tighter.pairs.worst_pair(tighter.worst_time)
    assert f"{i} is told apart from {j} best, at step {tighter.worst_time + 1}, by 0.6962 nats" in second
    assert both.tightest is tighter
    page = text_of(render_report(both))
    assert "promises 0.1 at each step can leak up to 0.6962 nats about one step, 7.0 times as much" in page
    assert "If the release went on for ever, pair by pair (nats) 0.6964" in page
    assert "Kantorovich" in page
    figure = leakage_figure(audited.leakage, audited.times, pairwise=tighter)
    assert "TPL, tighter bound pair by pair" in {text.get_text() for text in figure.axes[0].get_legend().get_texts()}
    with pytest.raises(InputError, match="two bounds"):
        dataclasses.replace(audited, pairwise=temporal_leakage(adversary, epsilons=[0.2] * 47, bound="pairwise"))


def test_a_level_is_held_if_the_smaller_bound_holds_it(audited):
    adversary = audited.worst_adversary
    plan = plan_budget(adversary, alpha=1.0, horizon=47, bound="pairwise")
    uniform = temporal_leakage(adversary, epsilons=plan.epsilons)
    assert uniform.worst > 1.0
    alone = dataclasses.replace(audited, leakage=uniform, plan=plan, supremum=None)
    assert not alone.level_held
    both = dataclasses.replace(alone, pairwise=temporal_leakage(adversary, epsilons=plan.epsilons, bound="pairwise"))
    assert both.level_held


def test_true_counts_appear_only_when_they_are_given(released):
    without = Evidence(
        released.adversaries, released.leakage, released.provenance, released.times, plan=released.plan,
        released=released.released,
    )  # fmt: skip
    assert "true counts" not in render_report(without).lower()
    labels = {text.get_text() for text in release_figure(without.released).legends[0].get_texts()}
    assert labels == {"released"}
    labels = {
        text.get_text() for text in release_figure(released.released, released.true_counts).legends[0].get_texts()
    }
    assert labels == {"released", "true", "95 % of the noise"}


def test_the_page_stands_alone(released):
    page = render_report(released)
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", page)
    assert "<script" not in page
    assert "url(" not in page
    assert "@import" not in page
    assert page.count("<img") == page.count('alt="') == 5


def test_nothing_in_the_data_becomes_markup():
    hostile = "<script>alert(1)</script>"
    data = Trajectories.from_sequences([[hostile, "b", "b", hostile, "b"]] * 2, users=[hostile, "x"])
    adversaries = tuple(estimate_adversaries(data, prior=1.0, per_user=True))
    series = temporal_leakage(adversaries, epsilons=[0.1] * 5)
    page = render_report(
        Evidence(
            adversaries,
            series,
            Provenance("history", 1.0, True, hostile),
            (hostile,) * 5,
            pairwise=temporal_leakage(adversaries, epsilons=[0.1] * 5, bound="pairwise"),
        ),
        title=hostile,
    )
    assert hostile not in page
    assert html.escape(hostile) in page


def test_a_browser_shows_the_page_and_all_its_pictures(released, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    page = render_report(released)
    probe = (
        "<script>addEventListener('load', () => { document.title = [...document.images]"
        ".map(i => i.complete && i.naturalWidth > 100 ? 'shown' : 'broken').join(); });</script></body>"
    )
    (tmp_path / "page.html").write_text(page.replace("</body>", probe))
    # fmt: off
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
               "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000", "--dump-dom",
               f"file://{tmp_path / 'page.html'}"]
    # fmt: on
    shown = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=os.environ)
    assert "<title>shown,shown,shown,shown,shown</title>" in shown.stdout


def test_reasons_name_the_values_and_are_true(audited):
    backward, forward = words.reasons(audited)
    matrix = audited.adversaries[0].backward
    names = re.match(r"Backward, (.*) of the 1.034 nats: a person in (\w+) was in (.*) one step before with", backward)
    value, likely = names.group(2), [part.strip() for part in re.split(",| or ", names.group(3))]
    row = matrix.dense()[matrix.states.index(value)]
    share = sum(row[matrix.states.index(state)] for state in likely)
    assert f"with probability {share:.1%}".replace("%", " %") in backward
    assert "will be in" in forward
    worst = audited.leakage.worst_time
    assert float(names.group(1)) == pytest.approx(audited.leakage.backward[worst] - 0.1, rel=1e-3)


def test_reasons_of_an_adversary_who_knows_nothing():
    evidence = Evidence(
        (Adversary(),), temporal_leakage(Adversary(), epsilons=[1.0, 1.0]), Provenance("matrices"), ("a", "b")
    )
    assert words.reasons(evidence) == []
    assert "learns nothing from other steps" in text_of(render_report(evidence))
    same = TransitionMatrix([[0.5, 0.5], [0.5, 0.5]])
    evidence = Evidence(
        (Adversary(same, same),),
        temporal_leakage(Adversary(same, same), epsilons=[1.0, 2.0]),
        Provenance("matrices"),
        ("a", "b"),
    )
    assert words.reasons(evidence) == ["Backward: all rows of the matrix are equal, so nothing leaks this way."]


@pytest.mark.parametrize(
    ("value", "shown", "up"),
    [
        (1.03325, "1.033", "1.034"),
        (0.1, "0.1", "0.1"),
        (0.30000000000000004, "0.3", "0.3"),
        (12345.6, "12350", "12350"),
        (123.41, "123.4", "123.5"),
        (1e-7, "1e-07", "1e-07"),
        (1.00001, "1", "1.001"),
        (0.0, "0", "0"),
        (float("inf"), "inf", "inf"),
    ],
)
def test_numbers_of_guarantees_are_rounded_up(value, shown, up):
    assert float(words.number(value)) == float(shown)
    assert float(words.number(value, up=True)) == float(up)


def test_evidence_that_does_not_fit_is_refused(released):
    with pytest.raises(InputError, match="47 time labels"):
        Evidence(released.adversaries, released.leakage, released.provenance, ("a",))
    with pytest.raises(InputError, match="nothing was released"):
        Evidence(
            released.adversaries,
            released.leakage,
            released.provenance,
            released.times,
            true_counts=released.true_counts,
        )


def test_a_release_that_spent_more_than_is_accounted_for_is_refused(released):
    sample = load_sample()
    lavish = release_histograms(sample, plan_budget(Adversary(), alpha=5.0))
    with pytest.raises(InputError, match="they were not released under this plan"):
        Evidence(released.adversaries, released.leakage, released.provenance, released.times, released=lavish)


def test_names_that_look_like_formulas_or_fit_no_font_are_drawn(tmp_path):
    names = ["$\\foo$", "cost $5^$ #", "\u5bb6", "x" * 5000]
    matrix = TransitionMatrix(random_correlation(4, rng=1).dense(), names)
    save_figure(matrix_figure(matrix, backward=True), tmp_path / "m.png")
    series = temporal_leakage(Adversary(matrix, matrix), epsilons=[0.1] * 4)
    page = render_report(Evidence((Adversary(matrix, matrix),), series, Provenance("matrices"), tuple(names)))
    assert "cost $5^$ #" in page


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_figures_are_written_the_same_twice(tmp_path, released, suffix):
    for name in ("one", "two"):
        save_figure(leakage_figure(released.leakage, released.times, alpha=1.0), tmp_path / (name + suffix))
    assert (tmp_path / ("one" + suffix)).read_bytes() == (tmp_path / ("two" + suffix)).read_bytes()


def test_figures_of_long_and_wide_things_are_drawn(tmp_path):
    series = temporal_leakage(Adversary(random_correlation(60, rng=1)), epsilons=np.full(3000, 0.2))
    times = [f"2024-01-01T{k:05d}" for k in range(3000)]
    for name, figure in {
        "leakage": leakage_figure(series, times),
        "budgets": budget_figure(series, times),
        "matrix": matrix_figure(random_correlation(60, rng=1), backward=False),
    }.items():
        save_figure(figure, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_a_written_page_is_the_rendered_one(tmp_path, audited):
    write_report(audited, tmp_path / "r.html", title="Sleep")
    assert "<h1>Sleep</h1>" in (tmp_path / "r.html").read_text()
