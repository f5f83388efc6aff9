"""The report: what it says is true, nothing is loaded from outside, and nothing in the data can become markup."""

from __future__ import annotations

import dataclasses
import html
import os
import re
import shutil
import subprocess
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest

from data_sets import sleep_sample
from making import from_sequences, random_correlation
from temporaldp import (
    Adversary,
    InputError,
    IntervalMatrix,
    LeakageSeries,
    PaperBound,
    ReleasedHistograms,
    TransitionMatrix,
    estimate_adversaries,
    leakage_supremum,
    plan_budget,
    release_histograms,
    temporal_leakage,
)
from temporaldp.core.accounting import Observation
from temporaldp.core.correlation import Provenance
from temporaldp.data.smoothing import CountEstimate
from temporaldp.publish.report import Publication, Report, explanation, render_report, write_report
from temporaldp.publish.report.content import Recipe
from temporaldp.publish.report.figures import (
    audit_figure,
    budget_figure,
    leakage_figure,
    matrix_figure,
    release_figure,
    witness_figure,
)
from temporaldp.publish.report.style import save_figure


@pytest.fixture(scope="module")
def audited():
    sample = sleep_sample()
    (adversary,) = estimate_adversaries(sample)
    series = temporal_leakage(adversary, np.full(47, 0.1))
    return Report(
        (adversary,), series, Provenance("history", "Estimated from other traces (past.csv)."), sample.times,
        supremum=leakage_supremum(adversary, 0.1), n_users=151,
    )  # fmt: skip


@pytest.fixture(scope="module")
def released():
    sample = sleep_sample()
    (adversary,) = estimate_adversaries(sample, prior=1.0)
    plan = plan_budget(adversary, alpha=1.0, horizon=47)
    return Report(
        (adversary,), temporal_leakage(adversary, plan.epsilons),
        Provenance("protected", "Estimated from the protected traces.", prior=1.0, warning="Depends on the protected data."),
        sample.times, plan=plan, released=release_histograms(sample, plan), true_counts=sample.histogram(), n_users=151,
    )  # fmt: skip


def labels_of(figure):
    """The texts beside the lines of the first plot."""
    return {text.get_text() for text in figure.axes[0].texts}


def text_of(page):
    """The page's text as a reader sees it."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.split("<body>")[1])).split())


def first_page(report, **how):
    """The text of page one."""
    section = re.search(r'<section class="first">(.*?)</section>', render_report(report, **how), re.DOTALL)[1]
    return text_of(f"<body>{section}")


FIELDS = Publication(
    controller="Sleep laboratory of the university",
    purpose="Teaching: how stages of sleep follow each other in a night",
    contact="privacy@example.org",
    period="Nights of March 2024",
    approval=("Data protection officer", "Head of the laboratory"),
)


@pytest.mark.long
def test_page_one_answers_an_officer_in_at_most_500_words(released):
    page = first_page(dataclasses.replace(released, publication=FIELDS), title="Sleep", step="5 min")
    assert len(page.split()) <= 500
    answers = [
        "Controller Sleep laboratory of the university Purpose Teaching",
        "Period Nights of March 2024 (47 steps of 5 min)",
        "151 people at a time; 5 states: W, R, N1, N2, N3",
        "Contact privacy@example.org",
        "The guarantee A suspicion of 50 % about one person's state at one step becomes at most 73.2 %: 1 nat, for observers "
        "who know how these people move from step to step (first order).",
        "A second, separate guarantee: a suspicion of 50 % about all states of one person in 47 steps together becomes at most",
        "for every observer and every correlation",
        "What it does not protect",
        "How good the numbers are The mean absolute noise of a count is ",
        "% of an average count",
        "Approval name or role date signature Data protection officer Head of the laboratory",
    ]
    places = [page.index(answer) for answer in answers]
    assert places == sorted(places)


def test_settings_of_a_recipe_are_a_project_file():
    settings = {
        "traces": {"states": ["a", 'b "c"']},
        "deployment": {"tables": {"by day": 0.6, "by week": 0.4}, "until": "2024"},
    }
    assert tomllib.loads(Recipe("temporaldp", settings, {}, ()).project_file) == settings


@pytest.mark.long
def test_what_the_project_file_does_not_say_is_left_out(audited):
    page = first_page(audited)
    assert "Period s00 to s46 (47 steps)" in page
    assert not re.search("Controller|Purpose|Contact|Approval", page)
    assert "becomes at most 66 %: 0.6632 nats, for observers who know how" in page


def test_the_condition_of_the_guarantee_is_that_of_the_adversary(audited):
    matrix = audited.worst_adversary.backward.at(0)
    between = IntervalMatrix([[0.6, 0.1], [0.1, 0.6]], [[0.9, 0.4], [0.4, 0.9]])
    series = temporal_leakage(Adversary(matrix), [0.1])

    def condition(known, provenance):
        return explanation.condition(Report((known,), series, provenance, ("a",)))

    known = Provenance("history", "Estimated.")
    assert condition(Adversary(), known).startswith("an observer who knows nothing about how people move")
    assert condition(Adversary(matrix), known).endswith("from step to step (first order, backward only)")
    both = Adversary(between, between)
    assert "(any first-order chain of the stated range)" in condition(both, Provenance("stated", "Stated."))
    several = Provenance("history", "Estimated.", models=("first order", "dwell times 0.95"))
    assert condition(Adversary(matrix, matrix), several).endswith("(first order, dwell times at 95 %)")


@pytest.mark.long
def test_a_level_that_is_not_satisfied_is_stated_as_it_is(audited):
    page = first_page(dataclasses.replace(audited, held=0.5))
    assert "The level is not satisfied. A suspicion of 50 %" in page
    assert "66 %: 0.6632 nats" in page and "more than alpha = 0.5" in page


def test_estimates_are_drawn_with_their_intervals(released):
    counts = released.released.counts
    estimates = CountEstimate(counts + 0.0, counts - 5.0, counts + 5.0)
    figure = release_figure(dataclasses.replace(released.released, estimates=estimates), released.true_counts)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["95 % interval", "estimate", "true", "released (clipped at the edge)"]
    (band,) = figure.axes[0].collections
    assert band.get_paths()[0].get_extents().y0 == pytest.approx(counts[:, 0].min() - 5.0)


def test_a_long_series_of_counts_is_drawn_by_some_of_its_steps():
    many = ReleasedHistograms(
        np.ones((9_000, 2)), np.full(9_000, 0.1), np.full(9_000, 20.0), ("a", "b"), tuple(map(str, range(9_000)))
    )
    figure = release_figure(many)
    assert len(figure.axes[0].lines[0].get_xdata()) == 1_800
    assert "released, 1 of 5 steps" in {text.get_text() for text in figure.legends[0].get_texts()}


def test_page_of_an_audit_states_the_leakage(audited):
    page = text_of(render_report(audited))
    assert "spends 0.1 at each step leaks up to 0.6632 nats about one step, 6.6 times as much" in page
    assert "differ in the state of one person at one step (replace one)" in page
    assert "odds between two states by at most a factor of 1.941 (the factor is e^0.6632)" in page
    assert "4.7-differential privacy" in page
    assert "Estimated from other traces (past.csv)" in page
    assert "Warning" not in page
    assert "Internal" not in page


@pytest.mark.long
def test_the_page_of_a_release_warns_and_is_marked_internal(released):
    page = text_of(render_report(released))
    assert "The plan satisfies 1-DP_T: the releases leak at most 1 nat" in page
    assert "Internal. Do not publish this page. It shows the true counts" in page
    assert "It shows a correlation that was estimated from the protected traces" in page
    assert "The adversary of this report, but not the plan, was estimated from the protected traces" in page
    assert re.search(
        r"The (leakage is within 0\.1 % of the largest at \d+ of 47 steps|largest leakage is at step \d+ of 47, time s\d+)\.",
        page,
    )
    assert "the L1 sensitivity is 2" in page
    assert "A prior of 1 per cell was added" in page


@pytest.mark.long
def test_papers_bound_is_shown_once_beside_the_exact_leakage(audited):
    adversary = audited.worst_adversary
    paper = temporal_leakage(adversary, audited.leakage.epsilons, accounting=PaperBound())
    limit = leakage_supremum(adversary, 0.1, accounting=PaperBound())
    assert explanation.paper(audited) is None
    both = dataclasses.replace(audited, paper=paper, paper_supremum=limit)
    page = text_of(render_report(both))
    assert "Largest temporal privacy leakage of a step (nats, exact) 0.6632" in page
    assert page.count("1.0333") == page.count("1.0333; supremum over an infinite horizon 1.0503") == 1
    assert "the paper's upper bound of TPL" in labels_of(leakage_figure(both.leakage, both.times, paper=paper))
    alone = text_of(render_report(dataclasses.replace(audited, leakage=paper, supremum=limit)))
    assert "(nats, upper bound) 1.0333" in alone
    assert "0.6632" not in alone
    assert "At step 32, time s31 (upper bound)" in alone
    with pytest.raises(InputError, match="the paper's bound is of another release"):
        dataclasses.replace(audited, paper=temporal_leakage(adversary, [0.2] * 47, accounting=PaperBound()))


@pytest.mark.long
def test_level_is_compared_with_the_leakage_of_the_report(audited):
    adversary = audited.worst_adversary
    plan = plan_budget(adversary, alpha=1.0, horizon=47, method="quantified")
    paper = temporal_leakage(adversary, plan.epsilons, accounting=PaperBound())
    assert paper.worst > 1.0
    exact = dataclasses.replace(
        audited, leakage=temporal_leakage(adversary, plan.epsilons), paper=paper, plan=plan, supremum=None
    )
    assert exact.is_satisfied
    page = text_of(render_report(exact))
    assert "The plan satisfies 1-DP_T: the releases leak at most 1 nat" in page
    assert not dataclasses.replace(exact, leakage=paper, paper=None).is_satisfied
    for_ever = dataclasses.replace(exact, plan=plan_budget(adversary, alpha=1.0))
    assert not dataclasses.replace(for_ever, supremum=leakage_supremum(adversary, 0.3)).is_satisfied


def test_witness_is_reported_and_agrees_with_the_library(audited):
    seen = audited.observation
    told = explanation.witness(audited)
    assert told.startswith("The most revealing observation about step 26, in favour of a person in W rather than N3: ")
    assert "The whole observation is 1.941 times as likely if the person was in W." in told
    runs = told.split("low: ")[1].split(". The whole")[0].split("; ")
    found = {}
    for run in runs:
        names, first, last = re.match(r"(.*) at steps? (\d+)(?: to (\d+))?$", run).groups()
        for step in range(int(first) - 1, int(last or first)):
            found[step] = set(re.split(", | and ", names))
    assert found == {step: set(seen.counts_high(step)) for step in range(47)}


def test_a_verdict_names_what_is_revealed_for_whom_and_what_is_beyond(audited):
    one, together, condition, beyond = explanation.verdict(audited, None, is_determined=True)
    assert one == "One table alone: a suspicion of 50 % becomes at most 52.5 %."
    assert together == "All 47: at most 66 % (0.6632 nats, exact), about step 26 (s25)."
    assert condition.startswith(
        "This holds for observers who know how these people move from step to step (first order), and the states of all other "
        "people."
    )
    assert beyond == "All states of a person together, for every correlation: at most 4.7 nats (user level)."
    _, together, level, *_ = explanation.verdict(
        audited, explanation.level(audited, 1.0, is_determined=False), is_determined=False
    )
    assert together == "All 47: not determined by so few transitions (under the prior, 0.6632 nats)."
    assert level == "The level 1-DP_T is not known to be satisfied."
    bounds = dataclasses.replace(audited, provenance=Provenance("history", "Estimated.", confidence=0.95))
    assert (
        "(any first-order chain within the estimated bounds, 95 % confidence)"
        in explanation.verdict(bounds, None, is_determined=True)[2]
    )


def test_a_verdict_on_one_release_and_on_leakage_that_grows_without_bound():
    stuck = TransitionMatrix([[1.0, 0.0], [0.2, 0.8]])
    people = {"ann": Adversary(stuck), "bob": Adversary()}
    series, limits = temporal_leakage(people, [0.5]), leakage_supremum(people, 0.5)
    origin = Provenance("matrices", "Given.")
    found = Report(tuple(people.values()), series, origin, ("1",), supremum=limits, name_users=True)
    assert explanation.verdict(found, None, is_determined=True)[1] == (
        "No other is released: at most 62.3 % (0.5 nats, exact), about step 1 of 'ann'; "
        "over an infinite horizon, without bound."
    )


def test_an_observation_of_many_states_is_drawn_and_not_described():
    for n, words in (
        (12, "these counts are high"),
        (13, "The figure shows the most revealing observation about step 2,"),
    ):
        matrix = random_correlation(n, rng=1)
        series = temporal_leakage(Adversary(matrix, matrix), [0.1] * 3)
        told = explanation.witness(
            Report((Adversary(matrix, matrix),), series, Provenance("matrices", "Given."), ("t",) * 3)
        )
        assert words in told and ("high" in told) == (n == 12)


def test_witness_of_a_long_series_shows_the_steps_around_the_worst(audited):
    states = ("a", "b", "c")
    high = np.zeros((400, 3), bool)
    high[np.arange(400), np.arange(400) % 3] = True
    seen = Observation(200, "c", "a", states, high, 1.0)
    evidence = SimpleNamespace(observation=seen, who="one person")
    told = explanation.witness(evidence)
    assert "in favour of one person in c rather than a" in told
    assert "low: b at step 197; c at step 198; a at step 199" in told
    assert "and 391 steps further away, which add less" in told
    assert told.count(" at step ") == 9
    high[:] = True
    high[200] = [False, False, True]
    told = explanation.witness(evidence)
    assert "low: c at step 201. The whole observation" in told


def test_tied_pairs_are_reported_as_tied(audited):
    walk = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]], ["x", "y"])
    cycle = TransitionMatrix([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]], ["a", "b", "c"])

    def first(matrix, steps):
        series = temporal_leakage(Adversary(matrix), [0.1] * steps)
        return explanation.reasons(
            Report((Adversary(matrix),), series, Provenance("matrices", "Given."), ("t",) * steps)
        )[0]

    assert first(walk, 5) == "Any two states are distinguished equally well."
    assert re.fullmatch(r"[ab] is distinguished from c best\. [ab] from c is tied with it\.", first(cycle, 5))
    assert explanation.reasons(audited)[0] == "W is distinguished from N3 best."


def test_states_of_several_tables_are_distinguished_in_a_sentence():
    names = ["W, home", "W, away", "N"]
    matrix = TransitionMatrix([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], names)
    series = temporal_leakage(Adversary(matrix, matrix), [0.1] * 3)
    evidence = Report((Adversary(matrix, matrix),), series, Provenance("matrices", "Given."), ("a", "b", "c"))
    told = " ".join([*explanation.reasons(evidence), explanation.witness(evidence)])
    assert '"W, home"' in told and '"N"' not in told
    assert told.count("W, ") == told.count('"W, ')


@pytest.mark.long
def test_worst_person_is_searched_for_a_few_times_only(monkeypatch):
    people = 3_000
    matrix = random_correlation(3, rng=1)
    alone = temporal_leakage(Adversary(matrix), [0.1] * 5)
    members = [dataclasses.replace(alone, name=str(k), temporal=alone.temporal * 0.99) for k in range(people)]
    members[2_000] = dataclasses.replace(alone, name="worst")
    series = LeakageSeries(
        alone.epsilons, alone.backward, alone.forward, members[2_000].temporal, members=tuple(members)
    )
    asked = []
    find = LeakageSeries.worst_member.fget
    monkeypatch.setattr(
        LeakageSeries, "worst_member", property(lambda one: asked.append(len(one.members)) or find(one))
    )
    evidence = Report(
        (Adversary(matrix),) * people, series, Provenance("matrices", "Given."), ("t",) * 5, name_users=True
    )
    assert "'worst'" in explanation.witness(evidence)
    assert explanation.reasons(evidence)
    render_report(evidence)
    assert 0 < asked.count(people) < 100


@pytest.mark.long
def test_true_counts_appear_only_when_they_are_given(released):
    without = Report(
        released.adversaries, released.leakage, released.provenance, released.times, plan=released.plan,
        released=released.released,
    )  # fmt: skip
    assert "true counts" not in render_report(without).lower()
    labels = {text.get_text() for text in release_figure(without.released).legends[0].get_texts()}
    assert labels == {"released", "95 % of the noise"}
    labels = {
        text.get_text() for text in release_figure(released.released, released.true_counts).legends[0].get_texts()
    }
    assert labels == {"released", "true", "95 % of the noise"}


@pytest.mark.long
def test_page_is_self_contained(released):
    page = render_report(released)
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", page)
    assert "<script" not in page
    assert "url(" not in page
    assert "@import" not in page
    assert page.count("<img") == page.count('alt="') == 6


def test_nothing_in_the_data_becomes_markup():
    hostile = "<script>alert(1)</script>"
    data = from_sequences([[hostile, "b", "b", hostile, "b"]] * 2, users=[hostile, "x"])
    adversaries = tuple(estimate_adversaries(data, prior=1.0, per_user=True))
    series = temporal_leakage(adversaries, [0.1] * 5)
    page = render_report(
        Report(
            adversaries,
            series,
            Provenance("history", f"Estimated from other traces ({hostile}).", prior=1.0, per_user=True),
            (hostile,) * 5,
            paper=temporal_leakage(adversaries, [0.1] * 5, accounting=PaperBound()),
        ),
        title=hostile,
    )
    assert hostile not in page
    assert html.escape(hostile) in page


@pytest.mark.long
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
    assert "<title>shown,shown,shown,shown,shown,shown</title>" in shown.stdout


@pytest.mark.long
def test_page_one_is_one_printed_page(released, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    page = render_report(dataclasses.replace(released, publication=FIELDS), title="Sleep", step="5 min")
    for name, printed in (("all", page), ("first", page.partition('<section class="annex">')[0])):
        (tmp_path / f"{name}.html").write_text(printed)
        # fmt: off
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                   "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={tmp_path / f'{name}.pdf'}",
                   "--no-pdf-header-footer", f"file://{tmp_path / f'{name}.html'}"]
        # fmt: on
        subprocess.run(command, capture_output=True, check=True, timeout=120, env=os.environ)
    sheets = [
        len(re.findall(rb"/Type\s*/Page\b", (tmp_path / f"{name}.pdf").read_bytes())) for name in ("first", "all")
    ]
    assert sheets[0] == 1 < sheets[1]


def test_reasons_name_the_states_and_are_correct(audited):
    paper = temporal_leakage(audited.worst_adversary, audited.leakage.epsilons, accounting=PaperBound())
    for evidence, share in ((audited, ""), (dataclasses.replace(audited, leakage=paper), ", (.*) of the 1.0333 nats")):
        *_, backward, forward = explanation.reasons(evidence)
        matrix = evidence.adversaries[0].backward
        names = re.match(rf"Backward{share}: a person in (\w+) was in (.*) one step before with", backward).groups()
        value, likely = names[-2], [part.strip() for part in re.split(",| or ", names[-1])]
        row = matrix.dense()[matrix.states.index(value)]
        found = sum(row[matrix.states.index(state)] for state in likely)
        assert f"with probability {found:.1%}".replace("%", " %") in backward
        assert "will be in" in forward
        if share:
            assert float(names[0]) == pytest.approx(paper.backward[paper.worst_time] - 0.1, rel=1e-3)


@pytest.mark.long
def test_reasons_without_correlations():
    evidence = Report(
        (Adversary(),), temporal_leakage(Adversary(), [1.0, 1.0]), Provenance("matrices", "Given."), ("a", "b")
    )
    assert explanation.reasons(evidence) == []
    page = text_of(render_report(evidence))
    assert "has no temporal correlation" in page and "The adversary knows no temporal correlation." in page
    same = TransitionMatrix([[0.5, 0.5], [0.5, 0.5]])
    past = Report(
        (Adversary(same),), temporal_leakage(Adversary(same), [1.0]), Provenance("matrices", "Given."), ("a",)
    )
    assert "The adversary knows the backward correlation" in text_of(render_report(past))
    evidence = Report(
        (Adversary(same, same),),
        temporal_leakage(Adversary(same, same), [1.0, 2.0]),
        Provenance("matrices", "Given."),
        ("a", "b"),
    )
    assert explanation.reasons(evidence)[1:] == [
        "Backward: no leakage in this direction, because the rows of 0 and 1 are equal."
    ]
    paper = temporal_leakage(Adversary(same, same), [1.0, 2.0], accounting=PaperBound())
    evidence = dataclasses.replace(evidence, leakage=paper)
    assert explanation.reasons(evidence) == [
        "Backward: no leakage in this direction, because all rows of the matrix are equal."
    ]


def test_inconsistent_evidence_is_refused(released):
    with pytest.raises(InputError, match="47 time labels"):
        Report(released.adversaries, released.leakage, released.provenance, ("a",))
    with pytest.raises(InputError, match="beside released ones of the same shape"):
        Report(
            released.adversaries,
            released.leakage,
            released.provenance,
            released.times,
            true_counts=released.true_counts,
        )


def test_a_release_that_spent_more_than_is_accounted_for_is_refused(released):
    sample = sleep_sample()
    lavish = release_histograms(sample, plan_budget(Adversary(), alpha=5.0))
    with pytest.raises(InputError, match="they were not released under this plan"):
        Report(released.adversaries, released.leakage, released.provenance, released.times, released=lavish)


@pytest.mark.long
def test_names_with_formulas_or_missing_glyphs_are_drawn(tmp_path):
    names = ["$\\foo$", "cost $5^$ #", "\u5bb6", "x" * 5000]
    matrix = TransitionMatrix(random_correlation(4, rng=1).dense(), names)
    save_figure(matrix_figure(matrix, backward=True), tmp_path / "m.png")
    series = temporal_leakage(Adversary(matrix, matrix), [0.1] * 4)
    page = render_report(Report((Adversary(matrix, matrix),), series, Provenance("matrices", "Given."), tuple(names)))
    assert "cost $5^$ #" in page


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_figures_are_reproducible(tmp_path, released, suffix):
    for name in ("one", "two"):
        save_figure(leakage_figure(released.leakage, released.times, alpha=1.0), tmp_path / (name + suffix))
    assert (tmp_path / ("one" + suffix)).read_bytes() == (tmp_path / ("two" + suffix)).read_bytes()


@pytest.mark.long
def test_figures_of_long_and_wide_results_are_drawn(tmp_path):
    series = temporal_leakage(Adversary(random_correlation(60, rng=1)), np.full(1000, 0.2))
    times = [f"2024-01-01T{k:05d}" for k in range(1000)]
    for name, figure in {
        "leakage": leakage_figure(series, times),
        "witness": witness_figure(series.witness(500), times),
        "audit": audit_figure(series, times, series.witness(999)),
        "budgets": budget_figure(series, times),
        "matrix": matrix_figure(random_correlation(60, rng=1), backward=False),
    }.items():
        save_figure(figure, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_bar_of_many_steps_shows_the_largest():
    epsilons = np.full(4_500, 0.1)
    epsilons[[3, 4_499]] = 0.2, 0.3
    axes = budget_figure(temporal_leakage(Adversary(), epsilons), [str(k) for k in range(4_500)]).axes[0]
    (bars,) = axes.patches
    heights, edges, _ = bars.get_data()
    assert len(heights) == 1_500 and edges[0] == -0.5 and edges[-1] == 4_499.5
    assert heights[1] == 0.2 and heights[-1] == 0.3 and set(heights[2:-1]) == {0.1}


@pytest.mark.parametrize(("n", "named"), [(5, 5), (30, 30), (31, 16), (69, 23)])
def test_an_axis_of_values_always_names_some_of_them(n, named):
    matrix = random_correlation(n, rng=1)
    axes = matrix_figure(matrix, backward=True).axes[0]
    for axis in (axes.xaxis, axes.yaxis):
        texts = [label.get_text() for label in axis.get_ticklabels()]
        assert len(texts) == named and [matrix.states[int(at)] for at in axis.get_ticklocs()] == texts
    assert (f"{named} of {n} are named" in axes.get_ylabel()) == (named < n)


def test_small_probabilities_are_visible_in_the_figure():
    matrix = random_correlation(69, rng=1)
    image = matrix_figure(matrix, backward=True).axes[0].images[0]
    assert image.norm(matrix.dense()).max() == 1.0


@pytest.mark.long
def test_written_page_equals_the_rendered_page(tmp_path, audited):
    write_report(audited, tmp_path / "r.html", title="Sleep")
    assert "<h1>Sleep</h1>" in (tmp_path / "r.html").read_text()
