"""One number at the command line, the exact one: what is shown beside it, what decides, and what `--bound paper` does."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from command import refused, temporaldp
from data_sets import sleep_sample
from making import random_correlation
from places import REPOSITORY
from temporaldp import (
    Exact,
    Ledger,
    PaperBound,
    TransitionMatrix,
    estimate_adversaries,
    leakage_supremum,
    load_plan,
    load_released,
    read_traces,
    save_matrix,
    temporal_leakage,
)

SAMPLE = REPOSITORY / "src" / "temporaldp" / "data" / "sample" / "sleep_5min.csv"


def words_of(result, code=0):
    assert result.returncode == code, result.stderr
    return " ".join(result.stdout.split())


@pytest.mark.long
def test_audit_answers_first_with_the_exact_leakage_and_its_condition_then_the_reason():
    words = words_of(temporaldp("audit", SAMPLE, "--epsilon", "0.1"))
    assert words.startswith(
        "One table alone: a suspicion of 50 % becomes at most 52.5 %. "
        "All 47: at most 66 % (0.6632 nats, exact), about step 26 (s25). "
        "This holds for observers who know how these people move from step to step (first order), and the states of all other "
        "people. A stronger model (longer memory, correlation between people) can leak more. "
        "All states of a person together, for every correlation: at most 4.7 nats (user level). "
        "the observer knows nats, at most attained first order 0.6632 0.6631 the most predictable 5 % of people, by their own "
        "habits (151 compared) 2.5238 1.647 or more anything: user level (all steps of a person) 4.7 Details"
    )
    assert "largest leakage 6.6318 times epsilon" in words
    assert words.count("66 %") == 1
    assert (
        words.count("1.0333")
        == words.count("by the paper's upper bound 1.0333; supremum over an infinite horizon 1.0503")
        == 1
    )
    assert "W is distinguished from N3 best." in words
    assert "N1, R and W at steps 23 to 25; W at step 26; N1 and W at steps 27 to 34" in words


@pytest.mark.long
def test_audit_as_json_has_both_bounds_the_witness_and_the_papers_bound():
    found = json.loads(temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--json").stdout)
    (adversary,) = estimate_adversaries(sleep_sample())
    series = temporal_leakage(adversary, [0.1] * 47)
    paper = temporal_leakage(adversary, [0.1] * 47, accounting=PaperBound())
    assert found["accounting"] == {"method": "exact"}
    for name in ("backward", "forward", "temporal"):
        assert found[name] == pytest.approx(getattr(series, name).tolist(), rel=1e-12)
        assert found["paper"][name] == pytest.approx(getattr(paper, name).tolist(), rel=1e-12)
        assert (np.array(found["attained"][name]) <= np.array(found[name])).all()
    assert found["worst_pair"] == ["W", "N3"]
    assert found["supremum"]["certified"] is True
    assert found["supremum"]["temporal"] == pytest.approx(leakage_supremum(adversary, 0.1).temporal, rel=1e-9)
    assert found["paper"]["worst_leakage"] == paper.worst
    assert found["paper"]["supremum"]["temporal"] == pytest.approx(1.0503, abs=1e-4)
    seen = series.witness()
    assert found["witness"]["time"] == found["worst_time"] == seen.time == 25
    assert (found["witness"]["state"], found["witness"]["other_state"]) == ("W", "N3")
    assert [set(high) for high in found["witness"]["high"]] == [set(seen.counts_high(step)) for step in range(47)]


@pytest.mark.long
def test_papers_bound_alone_mentions_no_other_method():
    words = words_of(temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--bound", "paper"))
    assert "(1.0333 nats, upper bound), about step 32" in words and "largest leakage 10.34 times epsilon" in words
    assert "0.663" not in words
    assert "exact" not in words
    found = json.loads(temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--bound", "paper", "--json").stdout)
    assert found["accounting"] == {"method": "paper"}
    assert found["worst_leakage"] == pytest.approx(1.03325, abs=1e-4)
    assert [found[name] for name in ("paper", "attained", "witness", "worst_pair")] == [None] * 4


@pytest.mark.long
def test_threshold_applies_to_the_leakage_that_is_shown():
    words = words_of(temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--alpha", "0.664"))
    assert "about step 26 (s25). The level 0.664-DP_T is satisfied. This holds for" in words
    gate = temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--alpha", "0.663")
    assert "The level 0.663-DP_T is not satisfied." in words_of(gate, 3)
    said = " ".join(gate.stderr.split())
    assert "The level 0.663-DP_T is not satisfied. The audit is of one budget, or one noise, at every step" in said
    gate = temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--alpha", "0.7", "--bound", "paper", "--json")
    assert gate.returncode == 3
    verdict = json.loads(gate.stdout)["verdict"]
    assert verdict[1:3] == [
        "All 47: at most 73.8 % (1.0333 nats, upper bound), about step 32 (s31).",
        "The level 0.7-DP_T is not shown to be satisfied.",
    ]
    assert verdict[2] in gate.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", ["uniform", "pairwise", "auto", "both"])
def test_unknown_bounds_are_refused(name, tmp_path):
    for command in (
        ("audit", "--epsilon", "0.1"),
        ("plan", "--alpha", "1"),
        ("report", "--epsilon", "1", "-o", "r.html"),
    ):
        message = refused(command[0], SAMPLE, *command[1:], "--bound", name, cwd=tmp_path)
        assert f"privacy.bound = '{name}' is not accepted: Input should be 'exact' or 'paper'" in message


@pytest.mark.long
def test_the_figure_of_an_audit(tmp_path):
    for name, bound in (("exact.png", "exact"), ("exact.svg", "exact"), ("paper.png", "paper")):
        shown = temporaldp("audit", SAMPLE, "--epsilon", "0.1", "--bound", bound, "--figure", name, cwd=tmp_path)
        assert f"figure written to {name}" in words_of(shown)
        assert (tmp_path / name).stat().st_size > 10_000
    assert (tmp_path / "exact.png").stat().st_size > (tmp_path / "paper.png").stat().st_size
    bad = ("audit", SAMPLE, "--epsilon", "0.1", "--figure")
    assert "ending in .png or .svg" in refused(*bad, "x.pdf", cwd=tmp_path)
    assert "folder no does not exist" in refused(*bad, "no/x.png", cwd=tmp_path)


@pytest.mark.long
def test_a_plan_by_the_exact_leakage_is_released_and_reported_on(tmp_path):
    plan, counts, page = tmp_path / "p.json", tmp_path / "r.parquet", tmp_path / "r.html"
    words = words_of(
        temporaldp("plan", SAMPLE, "--alpha", "1", "--horizon", "47", "--compare", "--details", "-o", plan)
    )
    assert "optimality not proved: another plan for this level could have less noise" in words
    assert "largest leakage (exact) 1 of 1" in words
    loaded = load_plan(plan)
    assert loaded.accounting == Exact()
    assert temporaldp("release", SAMPLE, "--plan", plan, "-o", counts).returncode == 0
    assert load_released(counts).accounting == Exact()
    report = ("report", SAMPLE, "--plan", plan, "--released", counts)
    words_of(temporaldp(*report, "-o", page))
    text = " ".join(page.read_text().split())
    assert "The plan satisfies 1-DP_T: the releases leak at most <strong>1 nat</strong>" in text
    assert "(nats, exact)</th><td>1</td>" in text
    message = refused(*report, "--bound", "paper", "-o", "q.html", cwd=tmp_path)
    assert "of which the paper's bound is not evidence: leave out --bound paper" in " ".join(message.split())


@pytest.mark.long
def test_plan_by_the_papers_bound_states_it_and_satisfies_the_level(tmp_path):
    plan, counts, page = tmp_path / "p.json", tmp_path / "r.parquet", tmp_path / "r.html"
    by_paper = ("--alpha", "1", "--horizon", "47", "--bound", "paper", "--details")
    words = words_of(temporaldp("plan", SAMPLE, *by_paper, "-o", plan))
    assert "method optimal: the least noise that was found for this horizon, held by the paper's upper bound" in words
    assert "no plan for this level by the same accounting reduces the noise by more than" in words
    words = words_of(temporaldp("release", SAMPLE, "--plan", plan, "-o", counts))
    assert "leakage upper bound (accounting method: paper)" in words
    assert load_released(counts).accounting == PaperBound()
    worst = {}
    for bound in ("exact", "paper"):
        words_of(temporaldp("report", SAMPLE, "--plan", plan, "--bound", bound, "-o", page))
        text = " ".join(page.read_text().split())
        worst[bound] = float(
            re.search(r"The plan satisfies 1-DP_T: the releases leak at most <strong>(\S+) nats?</strong>", text).group(
                1
            )
        )
    assert worst["exact"] < 0.8
    assert worst["paper"] == 1.0


@pytest.mark.long
def test_certificate_above_100_percent_is_not_shown(tmp_path):
    save_matrix(TransitionMatrix([[0.9, 0.1], [0.2, 0.8]]), tmp_path / "m.csv")
    matrix = (
        "--set",
        f"correlation.backward={tmp_path / 'm.csv'}",
        "--set",
        f"correlation.forward={tmp_path / 'm.csv'}",
        "--bound",
        "paper",
    )
    words = words_of(temporaldp("plan", *matrix, "--alpha", "100", "--horizon", "30", "--details"))
    percents = [float(share) for share in re.findall(r"by more than (\S+) %", words)]
    assert (percents and max(percents) <= 100.0) or "optimality not proved: another plan" in words


@pytest.mark.long
def test_accountant_of_exact_leakage_accepts_its_plan(tmp_path):
    plan, out, database = tmp_path / "p.json", tmp_path / "r.parquet", tmp_path / "l.db"
    history = ("--history", SAMPLE, "--set", "correlation.prior=0.1")
    temporaldp("plan", *history, "--alpha", "1", "-o", plan)
    ledger = ("release", SAMPLE, "--plan", plan, "--ledger", database, "-o", out)
    by_paper = refused(*ledger, *history, "--set", "privacy.bound=paper", cwd=tmp_path)
    assert "leave out privacy.bound = 'paper', or plan with it" in " ".join(by_paper.split())
    alone = " ".join(refused(*ledger, "--set", "privacy.bound=exact", cwd=tmp_path).split())
    assert "privacy.bound is the accounting method of an accountant" in alone and "leave it out" in alone
    assert not database.exists()
    assert temporaldp(*ledger, *history).returncode == 0
    adversary = next(estimate_adversaries(read_traces(SAMPLE), prior=0.1))
    with Ledger(database) as kept:
        assert kept.configuration["accounting"] == {"method": "exact"}
        assert kept.epsilons == pytest.approx(load_plan(plan).epsilons_for(len(kept)), rel=1e-5)  # of six digits
        exact = temporal_leakage(adversary, kept.epsilons).worst
        assert 0.9 < exact <= 1.0 and kept[-1].leakage == pytest.approx(exact, rel=1e-11)


@pytest.mark.long
def test_explanation_is_about_one_step_and_states_ties(tmp_path):
    matrix = tmp_path / "m.csv"
    matrix.write_text(",a,b,c\na,0.7,0.2,0.1\nb,0.2,0.7,0.1\nc,0,0,1\n")
    shown = temporaldp(
        "audit",
        "--set",
        f"correlation.backward={matrix}",
        "--set",
        f"correlation.forward={matrix}",
        "--horizon",
        "20",
        "--epsilon",
        "0.1",
    )
    words = words_of(shown)
    assert ", about step 11. " in words
    assert "from c is tied with it." in words
    alone = words_of(
        temporaldp("audit", "--set", f"correlation.backward={matrix}", "--horizon", "1", "--epsilon", "0.1")
    )
    assert "Any two states are distinguished equally well." in alone


@pytest.mark.long
def test_worst_person_is_named_with_the_witness():
    shown = temporaldp(
        "audit",
        SAMPLE,
        "--epsilon",
        "0.1",
        "--set",
        "correlation.per_user=true",
        "--set",
        "correlation.prior=1",
        "--horizon",
        "10",
    )
    words = words_of(shown)
    who = re.search(r", about step \d+ of '(\d+)'\.", words).group(1)
    assert f"in favour of '{who}' in " in words


LONG = (
    "import os, time\n"
    "import temporaldp.apps.cli.audit as audit\n"
    "from temporaldp.apps.cli import main\n"
    "from temporaldp.base.progress import progressed\n"
    "def slow(*arguments, **options):\n"
    "    progressed('leakage of every step', 0.43)\n"
    "    {work}\n"
    "audit.audit_of = slow\n"
    "main()\n"
)
SLEEPS = "time.sleep(60)"
IN_MACHINE_CODE = "import ctypes; ctypes.CDLL(None).usleep(3_000_000); ctypes.CDLL(None).sleep(60)"
IN_THREADS = "from concurrent.futures import ThreadPoolExecutor; list(ThreadPoolExecutor(2).map(time.sleep, [5] * 100))"


@pytest.mark.long
@pytest.mark.parametrize("work", [SLEEPS, IN_MACHINE_CODE, IN_THREADS], ids=["python", "machine code", "threads"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_interrupted_audit_reports_its_progress_and_exits(work, name, tmp_path):
    begins, started = os.pipe()
    command = [
        sys.executable,
        "-c",
        LONG.format(work=f"os.close(int(os.environ['STARTED'])); {work}"),
        "audit",
        str(SAMPLE),
        "--epsilon",
        "0.1",
        "--figure",
        "f.png",
    ]
    environment = os.environ | {"STARTED": str(started)}
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        pass_fds=[started],
    ) as process:
        os.close(started)
        os.read(begins, 1)  # returns when the audit closes the other end
        os.close(begins)
        time.sleep(0.1)  # into the long call
        process.send_signal(getattr(signal, name))
        said, warned = process.communicate(timeout=30)  # it would take a minute
    assert process.returncode == 128 + getattr(signal, name)
    assert warned == "interrupted at 43 % of leakage of every step; nothing was written\n"
    assert said == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_progress_is_shown_on_a_terminal_only(tmp_path):
    work = "time.sleep(4); progressed('leakage of every step', 0.5); time.sleep(1.5); raise SystemExit(7)"
    command = [sys.executable, "-c", LONG.format(work=work), "audit", str(SAMPLE), "--epsilon", "0.1"]
    piped = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    terminal, end = pty.openpty()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=end, env=os.environ | {"TERM": "xterm"}
    ) as process:
        os.close(end)
        shown = b""
        while select.select([terminal], [], [], 30.0)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # the other end is closed
                break
    os.close(terminal)
    assert process.returncode == 7
    assert (*piped.communicate(timeout=60), piped.returncode) == ("", "", 7)
    text = shown.decode(errors="replace")
    assert "leakage of every step" in text
    assert re.search(r"0:00:\d\d\x1b\[0m \x1b\[36m0:00:\d\d", text)  # the time that has passed, and what is left


def test_progress_of_many_people_and_many_pairs():
    from temporaldp import Adversary
    from temporaldp.base.progress import watched

    said = []
    people = [Adversary(random_correlation(3, rng=k)) for k in range(4)]
    with watched(lambda doing, share: said.append((doing, share))):
        temporal_leakage(people, [0.1] * 5)
    shares = [share for doing, share in said if doing == "leakage of every person"]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
