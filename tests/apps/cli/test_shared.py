"""`ledger share` and `release --table`: two jobs on one account, as processes of their own."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from command import temporaldp
from exact_oracles import temporal_by_sign_rule
from temporaldp import Ledger, load_released

HOURS = 30
STATES = {"sleep": ("A", "S"), "places": ("H", "O")}


def written(folder, name, values, people, hours):
    lines = ["user,time,state"]
    lines += [f"{who},{hour},{values[who][hour]}" for who in people for hour in hours]
    (folder / name).write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Who sleeps is at home: the past of one half of the people, and two days of the other, in two tables."""
    folder, rng = tmp_path_factory.mktemp("shared"), np.random.default_rng(5)
    sleep, places = [], []
    for _ in range(80):
        asleep = [rng.random() < 0.5]
        for _ in range(HOURS - 1):
            asleep.append(asleep[-1] if rng.random() < 0.6 else not asleep[-1])
        sleep.append(["S" if one else "A" for one in asleep])
        places.append(["H" if one or rng.random() < 0.5 else "O" for one in asleep])
    for name, values in (("sleep", sleep), ("places", places)):
        written(folder, f"{name}-past.csv", values, range(40), range(24))
        written(folder, f"{name}.csv", values, range(40, 80), range(24, 28))
        written(folder, f"{name}-more.csv", values, range(40, 80), range(24, 30))
        written(folder, f"{name}-other.csv", values, range(41, 80), range(24, 28))
    return folder


SHARE = (
    "ledger",
    "share",
    "account.db",
    "--alpha",
    "1",
    "--table",
    "sleep=sleep-past.csv",
    "--table",
    "places=places-past.csv",
)


def run(folder, *arguments, code=0):
    result = temporaldp(*arguments, cwd=folder)
    assert result.returncode == code, result.stderr
    return result


def publish(table, data="", *more, place="account.db"):
    return (
        "release",
        f"{table}{data}.csv",
        "--ledger",
        place,
        "--set",
        f"release.table={table}",
        "-o",
        f"{table}{data}.parquet",
        *more,
    )


@pytest.mark.long
def test_two_jobs_share_an_account(made):
    told = json.loads(
        run(made, *SHARE, "--set", "correlation.prior=0.5", "--shares", "sleep=0.6,places=0.4", "--json").stdout
    )
    assert (told["shares"], told["independent"]) == ({"sleep": 0.6, "places": 0.4}, False)
    dry = json.loads(run(made, *publish("sleep", "", "--check", "--json")).stdout)
    assert (dry["new_steps"], dry["charged_already"], dry["ledger_steps"]) == (4, 0, 0)
    first = json.loads(run(made, *publish("sleep", "", "--json", "--set", "release.log=log.jsonl")).stdout)
    assert dry["worst_leakage"] == pytest.approx(first["worst_leakage"], rel=1e-12)
    assert [one["epsilon"] for one in dry["steps"]] == first["epsilons"]
    more = json.loads(run(made, *publish("places", "-more", "--json")).stdout)
    assert (more["ledger_steps"], more["new_steps"]) == (6, 2)
    dry = json.loads(run(made, *publish("sleep", "-more", "--check", "--json")).stdout)
    assert (dry["new_steps"], dry["charged_already"], dry["worst_leakage"]) == (0, 2, more["worst_leakage"])
    before = load_released(made / "sleep.parquet").counts
    again = run(made, *publish("sleep", "-more"))
    assert "of all tables together" in again.stdout
    assert "not compared with its tables" in " ".join((made / "sleep-more.md").read_text().split())
    assert (load_released(made / "sleep-more.parquet").counts[:4] == before).all()
    with Ledger(made / "account.db") as ledger:
        charged, told = ledger.epsilons, ledger[-1].leakage
        spent = {name: load_released(made / f"{name}-more.parquet").epsilons for name in STATES}
        states, rows = ledger.configuration["states"], _matrices(ledger)
    assert (spent["sleep"] + spent["places"] <= charged * (1 + 1e-5)).all()  # files have six digits, rounded up
    assert states == ["A, H", "A, O", "S, H"]  # nobody in the histories is asleep elsewhere
    exact = temporal_by_sign_rule(*rows, charged).max()
    assert exact <= told <= 1.0 and told == pytest.approx(exact, rel=1e-9)
    run(made, "ledger", "export", "account.db", "-o", "steps.parquet")
    steps = pq.read_table(made / "steps.parquet").to_pydict()
    assert [json.loads(text) for text in steps["output places"]] == load_released(
        made / "places-more.parquet"
    ).counts.tolist()
    shown = run(made, "ledger", "show", "account.db").stdout
    assert "60 % of every step; published at 6 steps" in shown and "of all tables together" in shown
    listed = json.loads(run(made, "ledger", "show", "account.db", "--json").stdout)["table_steps"]
    assert {name: one["published"] for name, one in listed.items()} == {"sleep": 6, "places": 6}
    run(made, "report", "--ledger", "account.db", "-o", "report.html")
    page = (made / "report.html").read_text()
    assert "Tables on this account" in page and "<td>sleep</td><td>6</td>" in page
    late = temporaldp(*publish("sleep", "-past"), cwd=made)
    assert late.returncode == 5 and "late" in late.stderr
    warned = run(made, *publish("sleep", "-other"))
    assert "differ from those that were released" in warned.stderr


def _matrices(ledger):
    from temporaldp.publish.release.resuming import kept_correlations

    (user,) = kept_correlations(ledger, ledger.correlations["users"]).users
    return user.backward.dense(), user.forward.dense()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*SHARE[:-2],), "two tables or more"),
        ((*SHARE, "--table", "sleep=places-past.csv"), "names of their own"),
        ((*SHARE, "--shares", "sleep=0.6"), "--shares for sleep, places"),
        ((*SHARE, "--shares", "sleep=0.6,places=0.6"), "at most 1 together"),
        ((*SHARE, "--shares", "sleep=most,places=0.6"), "--shares: release.shares"),
        ((*SHARE, "--shares", "sleep"), "expected NAME=NUMBER"),
        ((*SHARE, "--set", "correlation.confidence=0.95"), "leave out other keys of correlation"),
        ((*SHARE, "--set", "privacy.horizon=9"), "privacy.horizon, renew and bound"),
        (
            (*SHARE[:5], "--table", "sleep", "--table", "places"),
            "expected --table NAME=HISTORY",
        ),
        (publish("age", place="none.db"), "there is no ledger at none.db"),
        (
            ("release", "age.csv", "--ledger", "none.db", "--set", "release.table=age", "--check"),
            "there is no ledger at none.db",
        ),
        (("release", "sleep.csv", "--set", "release.table=sleep", "-o", "x.csv"), "give its ledger"),
        (publish("sleep", "", "--alpha", "1"), "leave out plan, alpha"),
        (publish("sleep", "", "--history", "sleep-past.csv"), "leave out plan, alpha"),
        (publish("sleep", "", "--set", "release.estimates=single"), "leave out plan, alpha"),
    ],
)
def test_inconsistent_arguments_are_refused(made, arguments, said):
    before = set(made.iterdir())
    result = temporaldp(*arguments, cwd=made)
    assert result.returncode == (4 if "no ledger" in said else 2)
    assert said in result.stderr and not result.stdout
    assert set(made.iterdir()) == before


@pytest.mark.long
def test_an_account_is_begun_anew_only_if_it_was_lost(made):
    place = "lost.db"
    share = (*(word if word != "account.db" else place for word in SHARE), "--independent")
    assert "leave it out" in run(made, *share, "--begin-anew", code=2).stderr and not (made / place).exists()
    run(made, *share)
    job = (*publish("sleep", place=place)[:-1], "lost.parquet", "--overwrite")
    run(made, *job)
    (made / place).unlink()
    assert "--begin-anew" in run(made, *share, code=4).stderr
    run(made, *share, "--begin-anew")
    assert "has published counts of 4 times" in run(made, *job, code=4).stderr
    run(made, "ledger", "backup", place, "-o", "older.db")
    run(made, *job, "--begin-anew")
    assert json.loads(run(made, *job, "--json").stdout)["new_steps"] == 0
    (made / "older.db").replace(made / place)
    assert run(made, *job, "--begin-anew").stderr.count("only read") == 1


@pytest.mark.long
def test_a_table_or_states_of_another_account_are_refused(made):
    run(made, *(word if word != "account.db" else "other.db" for word in SHARE), "--independent")
    assert (
        "no table 'age'"
        in temporaldp(
            "release", "sleep.csv", "--ledger", "other.db", "--set", "release.table=age", "-o", "x.csv", cwd=made
        ).stderr
    )
    forgotten = temporaldp("release", "sleep.csv", "--ledger", "other.db", "-o", "x.csv", cwd=made)
    assert (
        forgotten.returncode == 2
        and "the ledger is an account of several tables, places, sleep: name" in forgotten.stderr
    )
    result = temporaldp(
        "release", "places.csv", "--ledger", "other.db", "--set", "release.table=sleep", "-o", "x.csv", cwd=made
    )
    assert result.returncode == 2 and "H" in result.stderr
    run(made, *(word if word != "account.db" else "earlier.db" for word in SHARE), "--independent")
    run(made, *publish("sleep", place="earlier.db")[:-1], "kept.parquet")
    another = (*publish("sleep", place="other.db")[:-1], "kept.parquet")
    assert "this is another ledger" in temporaldp(*another, "--overwrite", cwd=made).stderr
    run(made, *another, "--begin-anew")
    result = temporaldp(*(word if word != "account.db" else "other.db" for word in SHARE), cwd=made)
    assert result.returncode == 2 and "a ledger of its own" in result.stderr
