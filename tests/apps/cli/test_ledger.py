"""`release --ledger` and `ledger`, as processes of their own, day by day."""

from __future__ import annotations

import hashlib
import html
import json
import re
import sqlite3

import pytest

from command import refused, temporaldp, write_sample
from methods import method_of
from temporaldp import (
    ApproximateDP,
    Ledger,
    estimate_adversaries,
    load_plan,
    load_released,
    plan_noise,
    read_traces,
    save_correlation,
    save_plan,
    temporal_leakage,
)
from temporaldp import __version__ as temporaldp_version
from temporaldp.publish.project.document import read_settings
from temporaldp.publish.project.recipe import recipes_of
from temporaldp.publish.project.reporting import report_of


@pytest.fixture
def days(tmp_path):
    """The second half of the sample's people in three files, and the first half as history."""
    protected = slice(75, None)
    write_sample(
        tmp_path, past=(slice(75), range(46)), dawn=(protected, range(4)), morning=(protected, range(10)),
        noon=(protected, range(10, 20)), evening=(protected, range(25)), one=(protected, range(25, 26)),
        between=(protected, range(3, 4)),
    )  # fmt: skip
    (tmp_path / "closer.csv").write_text((tmp_path / "one.csv").read_text().replace("02:05", "01:37"))
    return tmp_path


EXACT = ("--alpha", "1", "--history", "past.csv", "--set", "correlation.prior=0.1", "--ledger", "release.db")
KNOWN = (*EXACT[:-2], "--set", "privacy.bound=paper", *EXACT[-2:])
"""By the paper's bound, in which most commands take no time: what is tested is the ledger."""


def run(days, *arguments):
    result = temporaldp(*arguments, cwd=days)
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.long
def test_ledger_commands_use_the_ledger_of_a_project_file(days):
    run(days, "release", "morning.csv", *KNOWN, "-o", "morning.parquet")
    (days / "sleep.toml").write_text('[release]\nledger = "release.db"\n')
    project = ("--project", "sleep.toml")
    assert json.loads(run(days, "ledger", "verify", *project, "--json").stdout)["steps"] == 10
    assert len(json.loads(run(days, "ledger", "show", *project, "--json").stdout)["steps"]) == 10
    run(days, "ledger", "export", *project, "-o", "steps.csv")
    run(days, "ledger", "backup", *project, "-o", "copy.db")
    with Ledger(days / "copy.db") as copy:
        assert len(copy) == 10
    assert "no ledger" in refused("ledger", "verify", "other.db", *project, cwd=days, code=4)


@pytest.mark.long
def test_release_of_several_days_resumes(days):
    first = json.loads(run(days, "release", "morning.csv", *EXACT, "-o", "morning.parquet", "--json").stdout)
    assert (first["ledger_steps"], first["new_steps"], first["steps"]) == (10, 10, 10)
    run(days, "release", "noon.csv", *EXACT, "-o", "noon.csv.csv")
    last = json.loads(run(days, "release", "evening.csv", *EXACT, "-o", "all.parquet", "--json").stdout)
    assert (last["ledger_steps"], last["new_steps"], last["steps"]) == (25, 5, 25)
    everything = load_released(days / "all.parquet")
    for part in ("morning.parquet", "noon.csv.csv"):
        released = load_released(days / part)
        for k, time in enumerate(released.times):
            assert everything.counts[everything.times.index(time)].tolist() == released.counts[k].tolist()
    assert 0.0 < last["worst_leakage"] <= 1.0
    with Ledger(days / "release.db") as ledger:
        assert ledger.epsilons.tolist() == everything.epsilons.tolist()
        assert last["head"] == ledger.head
    run(days, "release", "one.csv", *EXACT, "-o", "one.csv.csv")


@pytest.mark.long
def test_repeated_run_draws_nothing_and_replaces_its_own_output(days):
    run(days, "release", "morning.csv", *KNOWN, "-o", "out.parquet")
    before = load_released(days / "out.parquet").counts.tolist()
    run(days, "release", "morning.csv", *KNOWN, "-o", "out.parquet")
    assert load_released(days / "out.parquet").counts.tolist() == before
    run(days, "release", "evening.csv", *KNOWN, "-o", "out.parquet")
    assert load_released(days / "out.parquet").counts[:10].tolist() == before
    estimates = load_released(days / "out.parquet").estimates
    assert (estimates.counts >= 0).all() and (estimates.lower <= estimates.upper).all()


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.long
def test_report_on_a_ledger_states_how_to_reproduce_it(days):
    run(days, "release", "morning.csv", *KNOWN, "-o", "out.parquet")
    run(days, "release", "evening.csv", *KNOWN, "-o", "all.parquet")
    run(days, "report", "--ledger", "release.db", "-o", "report.html")
    page = html.unescape((days / "report.html").read_text())
    said = page[page.index("How to compute it again") : page.index("<h2>The ledger")]
    (head,) = re.findall("[0-9a-f]{64}", page[page.index("<h2>The ledger") : page.index("Every step")])
    run(days, "ledger", "verify", "release.db", "--head", head)
    assert said.count("temporaldp release") == 1  # both runs were computed from the same
    assert f"temporaldp {temporaldp_version}" in said
    assert re.findall("[0-9a-f]{64}", said) == [sha256(days / "past.csv")]  # none of the protected traces
    assert "Estimated from other traces (past.csv)" in page
    assert "A prior of 0.1 per cell was added" in page
    (days / "again.toml").write_text(re.search("<pre>(.*?)</pre>", said, re.DOTALL)[1])
    kept = read_settings(days / "again.toml")
    assert (kept.history.path, kept.correlation.prior, kept.privacy.bound, kept.privacy.alpha) == (
        days / "past.csv", 0.1, "paper", 1.0,
    )  # fmt: skip
    with Ledger(days / "release.db") as ledger:
        ledger.verify()
        assert "morning" not in str(ledger.events)


@pytest.mark.long
def test_a_ledger_keeps_what_its_release_warned_of(days):
    asked = ("--alpha", "1", "--horizon", "10", "--set", "privacy.guarantee=user", "--ledger", "user.db")
    run(days, "release", "morning.csv", *asked, "-o", "out.csv")
    run(days, "report", "--ledger", "user.db", "-o", "report.html")
    warned = "list of states was taken from the protected table"
    shown = run(days, "ledger", "show", "user.db")
    assert warned in shown.stderr.replace("\n", " ")
    assert "epsilon" in shown.stdout and "largest leakage" not in shown.stdout  # a plan alone has none: no empty column
    assert warned in (days / "report.html").read_text()


@pytest.mark.long
def test_another_correlation_is_another_recipe(days):
    run(days, "release", "morning.csv", *EXACT, "-o", "out.parquet")
    (days / "second.csv").write_text((days / "past.csv").read_text())
    lines = (days / "past.csv").read_text().splitlines()
    (days / "slow.csv").write_text("\n".join([lines[0], *(one for one in lines if re.search(r" \d\d:[0-5]0,", one))]))
    message = refused("ledger", "adopt", "release.db", "--history", "slow.csv", cwd=days)
    assert "one step of the release is 300 seconds, one step of the history 600 seconds" in message
    adopted = ["--history", "second.csv", "--set", "correlation.prior=0.5"]
    run(days, "ledger", "adopt", "release.db", *adopted)
    with Ledger(days / "release.db") as ledger:
        (first, before), (then, after) = recipes_of(ledger)
        found = report_of(ledger, None, None, name_users=False)
    assert (first, before.inputs, before.command) == (
        0,
        {"past.csv": sha256(days / "past.csv")},
        "temporaldp release TRACES",
    )
    assert (then, after.inputs, after.command) == (
        10,
        {"second.csv": sha256(days / "second.csv")},
        "temporaldp ledger adopt LEDGER",
    )
    assert found.recipes == ((first, before), (then, after))
    sentence = found.provenance.sentence
    assert sentence.startswith("From step 1 on: Estimated from other traces (past.csv)")
    assert "From step 11 on: Estimated from other traces (second.csv): one correlation for the whole" in sentence


@pytest.mark.long
def test_a_ledger_warns_as_its_release_did(days):
    own = [one if one != "past.csv" else "morning.csv" for one in KNOWN]
    released = run(days, "release", "morning.csv", *own, "-o", "morning.parquet").stderr
    shown = run(days, "ledger", "show", "release.db").stderr
    assert "estimated from the protected traces themselves" in released
    assert "estimated from the protected traces themselves" in shown


@pytest.mark.long
def test_a_correlation_file_is_adopted(days):
    run(days, "release", "morning.csv", *EXACT, "-o", "out.parquet")
    save_correlation(next(estimate_adversaries(read_traces(days / "past.csv"), prior=0.5)), days / "second.json")
    run(days, "ledger", "adopt", "release.db", "--set", "correlation.file=second.json")
    with Ledger(days / "release.db") as ledger:
        (_, _), (then, after) = recipes_of(ledger)
    assert (then, after.inputs) == (10, {"second.json": sha256(days / "second.json")})


@pytest.mark.long
def test_cost_of_learning_a_correlation_is_kept_in_the_ledger(days):
    run(days, "learn", "past.csv", "--epsilon", "8", "--ledger", "paid.db", "-o", "learnt.json")
    known = ("--alpha", "1", "--set", "correlation.file=learnt.json", "--horizon", "4", "--ledger", "learnt.db")
    run(days, "release", "dawn.csv", *known, "-o", "out.parquet")
    with Ledger(days / "learnt.db") as ledger:
        ((_, recipe),) = recipes_of(ledger)
    assert recipe.provenances[0].source == "learnt"
    assert recipe.provenances[0].epsilon == 8.0
    assert recipe.inputs == {"learnt.json": sha256(days / "learnt.json")}


@pytest.mark.long
def test_two_spends_of_the_same_epsilon_are_both_counted(days):
    for name in ("first", "second"):
        run(days, "learn", "past.csv", "--epsilon", "8", "--ledger", f"{name}.db", "-o", f"{name}.json")
    bound = ("--set", "privacy.bound=paper")
    known = ("--set", "correlation.file=first.json", *bound, "--alpha", "1", "--horizon", "20")
    run(days, "plan", *known, "-o", "plan.json")
    for name, cost in (("first", "8"), ("second", "16")):
        run(days, "report", "--plan", "plan.json", "--set", f"correlation.file={name}.json", *bound, "-o", "page.html")
        page = " ".join((days / "page.html").read_text().split())
        assert page.partition("Learning the correlation cost ")[2].partition(" nats")[0] == cost


@pytest.mark.long
@pytest.mark.parametrize("where", ["plan", "ledger"])
def test_cost_of_learning_is_reported_under_another_correlation(days, where):
    run(days, "learn", "past.csv", "--epsilon", "8", "--ledger", "paid.db", "-o", "learnt.json")
    bound = ("--set", "privacy.bound=paper")
    run(
        days,
        "plan",
        "--set",
        "correlation.file=learnt.json",
        *bound,
        "--alpha",
        "1",
        "--horizon",
        "20",
        "-o",
        "plan.json",
    )
    other = ("--history", "past.csv", "--set", "correlation.prior=1", *bound)
    if where == "plan":
        run(days, "report", "--plan", "plan.json", *other, "-o", "page.html")
    else:
        run(days, "release", "morning.csv", "--plan", "plan.json", *other, "--ledger", "planned.db", "-o", "out.csv")
        run(days, "report", "--ledger", "planned.db", "-o", "page.html")
    assert "Learning the correlation cost 8 nats" in " ".join((days / "page.html").read_text().split())
    shown = " ".join(run(days, "ledger", "show", "paid.db").stdout.split())
    assert "enforced by" not in shown


@pytest.mark.long
def test_foreign_file_is_not_replaced(days):
    run(days, "release", "morning.csv", *KNOWN, "-o", "out.csv")
    (days / "other.csv").write_text("time,state,noisy,scale,epsilon\n2024-01-01T00:00,W,5,20,0.1\n")
    before = (days / "release.db").read_bytes()
    assert "--overwrite" in refused("release", "noon.csv", *KNOWN, "-o", "other.csv", cwd=days)
    assert (days / "release.db").read_bytes() == before


@pytest.mark.long
def test_output_with_other_counts_than_the_ledgers_is_replaced_only_on_request(days):
    run(days, "release", "morning.csv", *KNOWN, "-o", "out.csv")
    first, *rows = (days / "out.csv").read_text().splitlines()
    cells = dict(zip(first.split(","), rows[0].split(","), strict=True))
    changed = ",".join((cells | {"noisy": str(int(cells["noisy"]) + 1)}).values())
    (days / "out.csv").write_text("\n".join([first, changed, *rows[1:]]) + "\n")
    assert "--overwrite" in refused("release", "noon.csv", *KNOWN, "-o", "out.csv", cwd=days)
    run(days, "release", "noon.csv", *KNOWN, "-o", "out.csv", "--overwrite")


@pytest.mark.long
def test_release_that_no_ledger_has_is_replaced_only_by_an_owner(days):
    (days / "out.csv").write_text("time,state,noisy,scale,epsilon\n2024-01-01T00:00,X,-5,20,0.1\n")
    asked = ("release", "morning.csv", *KNOWN, "-o", "out.csv")
    assert "--begin-anew" in refused(*asked, "--overwrite", cwd=days, code=4)
    run(days, *asked, "--begin-anew")


@pytest.mark.long
def test_dangling_links_are_refused(days):
    (days / "loop").symlink_to("loop")
    assert "cannot use the ledger" in refused(
        "release", "morning.csv", *KNOWN[:-1], "loop", "-o", "out.csv", cwd=days, code=4
    )
    (days / "loop.csv").symlink_to("loop.csv")
    assert "Traceback" not in temporaldp("release", "morning.csv", *KNOWN, "-o", "loop.csv", cwd=days).stderr


@pytest.mark.long
def test_failed_command_leaves_a_usable_ledger(days):
    result = temporaldp("release", "evening.csv", *KNOWN, "--horizon", "10", "-o", "out.csv", cwd=days)
    assert result.returncode == 3
    run(days, "release", "evening.csv", *KNOWN, "-o", "out.csv")


@pytest.mark.long
def test_gap_is_reported(days):
    run(days, "release", "morning.csv", *KNOWN, "-o", "a.csv")
    told = run(days, "release", "one.csv", *KNOWN, "-o", "b.csv").stderr
    assert "were passed over" in " ".join(told.split())


@pytest.mark.long
def test_plans_of_infinite_and_finite_horizons(days):
    for name, horizon in (("ever.json", ()), ("day.json", ("--horizon", "25"))):
        run(
            days,
            "plan",
            "--history",
            "past.csv",
            "--set",
            "correlation.prior=0.1",
            "--alpha",
            "1",
            "-o",
            name,
            *horizon,
        )
    alone = ("--plan", "day.json", "--ledger", "alone.db")
    run(days, "release", "morning.csv", *alone, "-o", "a.csv")
    run(days, "release", "evening.csv", *alone, "-o", "b.csv")
    both = ("--plan", "day.json", "--history", "past.csv", "--set", "correlation.prior=0.1", "--ledger", "both.db")
    run(days, "release", "evening.csv", *both, "-o", "c.csv")
    assert load_released(days / "b.csv").epsilons == pytest.approx(load_released(days / "c.csv").epsilons, rel=1e-6)
    for_ever = ("--plan", "ever.json", "--history", "past.csv", "--set", "correlation.prior=0.1", "--ledger", "ever.db")
    run(days, "release", "evening.csv", *for_ever, "-o", "d.csv")
    message = refused("release", "one.csv", *alone, "-o", "e.csv", cwd=days, code=3)
    assert "has room for 0 more" in message


@pytest.mark.long
def test_finite_horizon_spends_more_than_an_infinite_one(days):
    run(days, "release", "evening.csv", *EXACT[:-1], "ends.db", "--horizon", "25", "-o", "a.csv")
    run(days, "release", "evening.csv", *EXACT, "-o", "b.csv")
    ends, lasts = load_released(days / "a.csv").epsilons, load_released(days / "b.csv").epsilons
    assert (1 / ends).mean() < 0.95 * (1 / lasts).mean()


@pytest.mark.long
@pytest.mark.parametrize(
    ("traces", "message", "code"),
    [  # noon.csv ends at 01:35
        ("between.csv", "comes before", 5),
        ("closer.csv", "only 120 seconds after", 2),
    ],
)
def test_steps_that_are_late_or_too_close_are_refused(traces, message, code, days):
    run(days, "release", "noon.csv", *KNOWN, "-o", "noon.parquet")
    before = (days / "release.db").read_bytes()
    assert message in refused("release", traces, *KNOWN, "-o", "x.csv", cwd=days, code=code)
    assert (days / "release.db").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((*KNOWN[:-1], "out.csv"), 2, "release.ledger and an output are both"),
        ((*KNOWN[:-1], "sqlite:///out.csv", "--overwrite"), 2, "an SQLite file or a postgresql:// URL"),
        (("--plan", "past.csv", *KNOWN), 2, "past.csv"),
        (("--ledger", "x.db"), 2, "expected a level"),
        (("--alpha", "1"), 2, "or --ledger LEDGER"),
        ((), 2, "expected --plan FILE"),
        (("--alpha", "1", "--ledger", "x.db"), 2, "--alpha needs a correlation"),
        (
            ("--alpha", "1", "--ledger", "x.db", "--set", "correlation.prior=0.5"),
            2,
            "a correlation is estimated from a history",
        ),
        (("--alpha", "0", "--ledger", "x.db", "--history", "past.csv"), 2, "alpha"),
        ((*KNOWN[:-1], "past.csv"), 4, "if it is a ledger, say: chmod 600"),
        ((*KNOWN[:-1], "mysql://me:secret@host/db"), 2, "postgresql:// URL"),
        ((*KNOWN[:-1], "missing/release.db"), 4, "No such file"),
    ],
)
def test_what_cannot_be_released_is_refused(arguments, code, message, days):
    said = refused("release", "morning.csv", *arguments, "-o", "out.csv", cwd=days, code=code)
    assert message in said
    assert "secret" not in said


@pytest.mark.long
def test_another_correlation_is_refused_with_the_reason(days):
    run(days, "release", "morning.csv", *KNOWN, "-o", "a.csv")
    other = [*KNOWN]
    other[other.index("correlation.prior=0.1")] = "correlation.prior=0.2"
    message = refused("release", "noon.csv", *other, "-o", "b.csv", cwd=days, code=2)
    assert "correlations: " in message
    assert "alpha (privacy.alpha " in refused(
        "release", "noon.csv", "--alpha", "2", *KNOWN[2:], "-o", "b.csv", cwd=days, code=2
    )


@pytest.mark.long
def test_showing_and_verifying_a_ledger(days):
    run(days, "release", "evening.csv", *KNOWN, "-o", "out.csv")
    shown = run(days, "ledger", "show", "release.db").stdout
    for word in (
        "25, from 2024-01-01T00:00 to 2024-01-01T02:00",
        "at most 1 nat",
        "largest leakage so far",
        "accountant",
    ):
        assert word in shown
    assert "2024-01-01T00:30" not in shown
    assert "2024-01-01T00:30" in run(days, "ledger", "show", "release.db", "--all").stdout
    document = json.loads(run(days, "ledger", "show", "release.db", "--json").stdout)
    assert document["alpha"] == 1.0
    assert len(document["steps"]) == 25
    assert all("output" not in step for step in document["steps"])
    head = document["head"]
    assert "intact: 25 steps" in run(days, "ledger", "verify", "release.db", "--head", head[:16]).stdout
    assert json.loads(run(days, "ledger", "verify", "release.db", "--json").stdout)["intact"] is True
    assert "older copy" in refused("ledger", "verify", "release.db", "--head", "0" * 16, cwd=days, code=4)
    with sqlite3.connect(days / "release.db") as connection:
        connection.execute("UPDATE temporaldp_steps SET epsilon = 0.001 WHERE step = 7")
    connection.close()
    for command in (("ledger", "verify", "release.db"), ("ledger", "show", "release.db")):
        assert "step 7" in refused(*command, cwd=days, code=4)
    assert "step 7" in refused("release", "one.csv", *KNOWN, "-o", "x.csv", cwd=days, code=4)
    assert "there is no ledger" in refused("ledger", "show", "typo.db", cwd=days, code=4)


@pytest.mark.long
@pytest.mark.parametrize("bound", ["exact", "paper"])
def test_leakage_in_the_ledger_agrees_with_the_accounting(bound, days):
    asked = () if bound == "exact" else ("--set", f"privacy.bound={bound}")
    run(days, "release", "evening.csv", *EXACT, *asked, "-o", "out.csv")
    adversary = next(estimate_adversaries(read_traces(days / "past.csv"), prior=0.1))
    with Ledger(days / "release.db") as ledger:
        for steps in (1, 7, 25):
            expected = temporal_leakage(adversary, ledger.epsilons[:steps], accounting=method_of(bound)).worst
            assert ledger[steps - 1].leakage == pytest.approx(expected, rel=1e-11)
        assert ledger[-1].leakage <= 1.0
    words = {"exact": "exact", "paper": "upper bound (accounting method: paper)"}[bound]
    for command in ("show", "verify"):
        assert f"leakage{':' if command == 'verify' else ''} {words}" in " ".join(
            run(days, "ledger", command, "release.db").stdout.split()
        )
        assert json.loads(run(days, "ledger", command, "release.db", "--json").stdout)["accounting"] == {
            "method": bound
        }
    other = () if bound == "paper" else ("--set", "privacy.bound=paper")
    message = refused("release", "one.csv", *EXACT, *other, "-o", "x.csv", cwd=days, code=2)
    assert (
        f"accounting (privacy.bound in a project file, or --set): the ledger has method {bound}, this release"
        in " ".join(message.split())
    )


@pytest.mark.long
def test_the_exact_leakage_leaves_more_to_spend_than_the_paper_s_bound(days):
    run(days, "release", "evening.csv", *EXACT, "-o", "exact.csv")
    run(days, "release", "evening.csv", *EXACT[:-1], "paper.db", "--set", "privacy.bound=paper", "-o", "paper.csv")
    exact, paper = (load_released(days / f"{name}.csv").epsilons for name in ("exact", "paper"))
    assert (exact > 1.2 * paper).all()


@pytest.mark.long
def test_noise_plan_resumes_from_a_ledger_and_is_shown(days):
    known = ("--history", "past.csv", "--set", "correlation.prior=0.1")
    adversary = next(estimate_adversaries(read_traces(days / "past.csv"), prior=0.1))
    save_plan(
        plan_noise(adversary, alpha=1.0, horizon=10, accounting=ApproximateDP(1e-6, pairwise=False)),
        days / "noise.json",
    )
    plan, ledger = load_plan(days / "noise.json"), ("--plan", "noise.json", "--ledger", "release.db")
    run(days, "release", "dawn.csv", *ledger, "-o", "dawn.parquet")
    last = json.loads(run(days, "release", "morning.csv", *ledger, "-o", "all.parquet", "--json").stdout)
    assert (last["ledger_steps"], last["new_steps"], last["noise"], last["delta"]) == (10, 6, "gaussian", 1e-6)
    everything, first = load_released(days / "all.parquet"), load_released(days / "dawn.parquet")
    assert everything.counts[:4].tolist() == first.counts.tolist()
    assert everything.scales == pytest.approx(plan.scales, rel=1e-5)  # of six digits
    shown = " ".join(run(days, "ledger", "show", "release.db").stdout.split())
    assert "at most 1 nat at delta 1e-06 about any step ((1, 1e-06)-DP_T)" in shown
    assert (
        "discrete Gaussian noise (OpenDP), fixed before the first release, scale" in shown
        and "step time scale epsilon" in shown
    )
    document = json.loads(run(days, "ledger", "show", "release.db", "--json").stdout)
    assert [step["parameter"] for step in document["steps"]] == plan.scales.tolist()
    checked = run(days, "ledger", "verify", "release.db", "--head", last["head"]).stdout
    assert "intact: 10 steps" in checked and "at delta 1e-06" in checked and "Gaussian" in checked
    told = json.loads(run(days, "ledger", "verify", "release.db", "--json").stdout)
    assert (told["delta"], told["noise"], told["intact"]) == (1e-6, "gaussian", True)
    save_plan(
        plan_noise(adversary, alpha=1.0, horizon=2, accounting=ApproximateDP(1e-5, pairwise=False)), days / "other.json"
    )
    message = refused("release", "noon.csv", "--plan", "other.json", *ledger[2:], "-o", "x.csv", cwd=days, code=2)
    assert "delta: the ledger has 1e-06, this release has 1e-05" in " ".join(message.split())
    assert "has room for 0 more" in refused("release", "noon.csv", *ledger, "-o", "x.csv", cwd=days, code=3)
    report = ("report", "morning.csv", *known, "--plan", "noise.json", "--released", "all.parquet", "-o", "page.html")
    run(days, *report)
    assert "The plan satisfies" in " ".join((days / "page.html").read_text().split())


@pytest.mark.long
def test_an_older_copy_is_refused_in_one_message(days):
    """On opening, it is warned of in the same words: once is enough."""
    run(days, "release", "dawn.csv", *KNOWN, "-o", "a.csv")
    run(days, "ledger", "backup", "release.db", "-o", "older.db")
    run(days, "release", "morning.csv", *KNOWN, "-o", "b.csv")
    assert "only read" in run(days, "ledger", "verify", "older.db").stderr
    (days / "older.db").replace(days / "release.db")
    said = refused("ledger", "verify", "release.db", cwd=days, code=4)
    assert said.count("this machine has written 10 steps") == 1
    assert "only read" in run(days, "ledger", "show", "release.db").stderr
